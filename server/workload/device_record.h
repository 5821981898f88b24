// Records the device that a workload runs on.
#ifndef INFERSTAT_SERVER_WORKLOAD_DEVICE_RECORD_H
#define INFERSTAT_SERVER_WORKLOAD_DEVICE_RECORD_H

#include <stdint.h>

#include "common/monitor/inferstat.h"
#include "server/device/properties.h"

// Reads the device's properties and its cached rates (device_calibrate, files_cache_folder);
// measures nothing.
void device_look_up(const struct device *device, struct device_properties *out);

// Records that the run uses the device; unknown properties are absent.  Returns the number of
// its name.  `monitor` may be NULL.
uint32_t device_record(struct inferstat_monitor *monitor,
                       const struct device_properties *properties);

// Measures the device's rates for later runs unless they are cached.  Call it at the end of a
// successful run, when nothing is timed any more.  Failures are ignored.
void device_get_to_know(struct device *device);

#endif
