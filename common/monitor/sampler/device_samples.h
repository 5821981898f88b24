// Turns readings of all devices into records: samples, descriptions of devices, their processes and
// events.  Pure but for the ring that it fills: the readings have all times.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/devices/gpu_reading.h"
#include "common/monitor/sampler/sampler_output.h"

struct device_samples;

// `interval_ns`: between readings.  `own_pid`: of this process.
MUST_CHECK enum status device_samples_open(struct device_samples **out,
                                           const struct sampler_output *output,
                                           uint64_t interval_ns, int64_t own_pid,
                                           struct error *err);

// Ends the events that have an end.  NULL is fine.
void device_samples_close(struct device_samples *samples);

// Records a reading of all devices, which ended at `wall_ns`.  Completes its samples.
//
// A device is named as the application describes it (inferstat_add_device: the same UUID, or no
// UUID and the same name).  Another one has the name of the reading, or "host:" and that name where
// the application uses it for another device.
void device_samples_add(struct device_samples *samples, struct gpu_snapshot *snapshot,
                        int64_t wall_ns);

// The memory of all devices that this process used in the last reading; negative: unknown.
int64_t device_samples_own_memory(const struct device_samples *samples);
