// What the devices do that a model uses on a host, for NOW (query_now.c): use and memory by the
// newest samples of a window, power by the energy that the devices used in it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

struct groups;
struct store;

// Sums over devices.  Those of several models or hosts may be added up.
struct now_device_sums {
    double util; // sum of gpu_util_ratio of `util_count` devices
    int64_t util_count;
    double used_bytes, total_bytes; // of devices that tell both
    double watts;                   // mean power by the energy counter; 0: a device tells none
    double seconds;                 // the shortest time of which that is the mean
    bool is_shared;                 // another model uses one of the devices, too
};

// Reads struct now_device_sums by model and host (ids) of processes that had not ended at the end
// of the filter's window, from samples in it.  A process' device is the sampled one of its host
// with the same UUID; without one, with the same name.  The caller frees `*out` with groups_free,
// also after a failure.
MUST_CHECK enum status now_devices_read(struct groups **out, struct store *store,
                                        const struct query_filter *filter, struct error *err);
