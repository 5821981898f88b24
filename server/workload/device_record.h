// The record of a device that a workload runs on.
#ifndef INFERSTAT_SERVER_WORKLOAD_DEVICE_RECORD_H
#define INFERSTAT_SERVER_WORKLOAD_DEVICE_RECORD_H

#include <stdint.h>

#include "common/monitor/inferstat.h"
#include "server/device/properties.h"

// What the device says of itself, and what was measured of it before (device_calibrate,
// files_cache_folder); measures nothing.
void device_look_up(const struct device *device, struct device_properties *out);

// Records that the run uses it; what is not known is absent.  Returns the number of its
// name.  `monitor` may be NULL.
uint32_t device_record(struct inferstat_monitor *monitor,
                       const struct device_properties *properties);

// Measures the device where that was never done, for the runs that come: at the end of
// one that went well, when nothing is timed any more.  What fails is left for the next.
void device_get_to_know(struct device *device);

#endif
