// Plausible samples of devices and hosts: what a GPU under a changing load and its host would have
// told, with every column that a device of a data centre has.
#pragma once

#include <stdint.h>

#include "common/core/record/record.h"

enum { HEALTH_DEVICES_MAX = 16 }; // of a host, of those who make samples

// What goes on from sample to sample.  Begins with zeros and a seed.
struct health {
    uint64_t random;
    double load, energy_joules; // of a device
};

// A number from 0 to below 1.
double health_uniform(struct health *health);

// A sample of the device that the run calls `name`: the period of `duration_ns` from `started_ns`
// on.
void health_device_sample(struct record *record, struct health *device, uint32_t name,
                          int64_t started_ns, int64_t duration_ns);

// A sample of the host.
void health_host_sample(struct record *record, struct health *host, int64_t started_ns,
                        int64_t duration_ns);
