// Telemetry of a workload: records the properties of its device, and converts the metrics of a
// pipeline run (server/pipeline/pipeline.h) to a record.  The properties include the device's
// rates: the bandwidths of its memory and of copies to it, and the arithmetic rate of a CPU.
// device_calibrate_for_later measures the rates with a short benchmark (calibration) and caches
// them for later processes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/monitor/inferstat.h"
#include "server/device/properties.h"
#include "server/pipeline/pipeline.h"

// Reads the device's properties, and its rates from the calibration cache (device_rates_cached in
// files_cache_folder) if they are steady; measures nothing.
void device_look_up(const struct device *device, struct device_properties *out);

// Records the device's metadata; unknown properties are absent.  Returns the id of the interned
// device name, for other records.  `monitor` may be NULL.
uint32_t device_record(struct inferstat_monitor *monitor,
                       const struct device_properties *properties);

// Calibrates the device: measures its rates and caches them for later runs (device_calibrate). Call
// it after all timed work of a successful run.  Ignores failures.
void device_calibrate_for_later(struct device *device);

// The result of work that ended with `status`: ok, cancelled (STATUS_CANCELLED) or error.
enum inferstat_result telemetry_result(enum status status);

// Whether `figures` has the times of copies and kernels: false when they were not tracked, or when
// every interval was lost.
bool pipeline_knows_overlap(const struct pipeline_plan *plan,
                            const struct pipeline_figures *figures);

// Whether the figures of a run have those of its pool: false when they were not counted, or when
// the chunks were lent, so that no slot was acquired to be filled.
bool pipeline_knows_pool(const struct pipeline_plan *plan);

// Fills `*out` from `plan` and `figures`; unknown or disabled metrics are absent.  The caller then
// sets the other fields: workload, model, device, result, start, items and batch_items.
void pipeline_record(struct inferstat_pipeline *out, const struct pipeline_plan *plan,
                     const struct pipeline_figures *figures);
