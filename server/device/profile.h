// Profile of a device's operations: measures each operation of device.h, on the device by timed
// events, on the CPU by the clock.  A device that is not profiled has no cost from it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/device/device.h"

struct profile_call {
    const char *operation; // "matmul"; a literal
    const void *weight;    // data of the tensor that may be a weight; NULL: there is none
    size_t rows;           // positions computed
    uint64_t bytes;        // of the weights, inputs and outputs, each counted once
    double flops;          // multiplications and additions of matrices; 0: of other operations
    double ns;
};

// Receives the calls in their order, on the device's thread.
typedef void profile_sink(void *context, const struct profile_call *call);

// Starts to measure.  Calls that fail are not reported.  Borrows `context` until
// device_profile_stop; the device must not be profiled yet.  Fails with STATUS_NOMEM or STATUS_IO.
MUST_CHECK enum status device_profile_start(struct device *device, profile_sink *sink,
                                            void *context, struct error *err);

// Waits until the calls so far are done and reports those that have not been reported.
MUST_CHECK enum status device_profile_collect(struct device *device, struct error *err);

// Stops measuring; calls that have not been reported are forgotten.  Does nothing on a device that
// is not profiled.
void device_profile_stop(struct device *device);
