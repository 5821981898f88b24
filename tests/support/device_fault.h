// A device for tests around another one: slower, failing, and forgetful on purpose.
//
//   delays    every copy, fill and kernel first sleeps a while that a seed decides:
//             what is queued is read and written late, so that a slot filled again too
//             early, or a buffer overwritten under a kernel, shows as wrong data
//   failures  the N-th call of a kind fails: at once where the call answers, later on
//             the stream where it is queued
//   loss      from the N-th copy, fill or kernel on the whole device is lost
//   poison    memory is filled with DEVICE_FAULT_POISON when it is allocated, when it is
//             freed (and kept until the device is closed, to be looked at), and where a
//             copy is about to write, before its delay
//
// Streams are threads of the host whatever the device inside is: each does one call at
// a time on a stream of the inner device and waits for it.  Tensors and their
// operations go straight to the inner device; only their allocation can fail.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/device/device.h"

enum { DEVICE_FAULT_POISON = 0xdb };

// One line a kind of call: the name's end, what it is called in messages, and what its
// failure answers.
#define DEVICE_FAULT_TABLE(X)                                                                      \
    X(COPY_IN, "copy_in", IO)                                                                      \
    X(COPY_OUT, "copy_out", IO)                                                                    \
    X(COPY_WITHIN, "copy_within", IO)                                                              \
    X(FILL, "fill", IO)                                                                            \
    X(KERNEL, "kernel", IO)                                                                        \
    X(MEMORY, "device memory", NOMEM)                                                              \
    X(PINNED, "pinned memory", NOMEM)                                                              \
    X(STREAM, "stream", IO)                                                                        \
    X(EVENT, "event", NOMEM)

enum device_fault_kind {
#define DEVICE_FAULT_ENUM(name, text, status) DEVICE_FAULT_##name,
    DEVICE_FAULT_TABLE(DEVICE_FAULT_ENUM)
#undef DEVICE_FAULT_ENUM
        DEVICE_FAULT_COUNT
};

struct device_fault_options {
    uint64_t seed;
    uint64_t delay_max_ns;                // 0: no delays
    uint64_t fail_at[DEVICE_FAULT_COUNT]; // calls count from 1; 0: none fails
    uint64_t lose_at;                     // counts copies, fills and kernels together; 0: never
    bool poison;
};

// Wraps `inner` and takes ownership of it: device_close closes both.  On failure it is
// still the caller's.
MUST_CHECK enum status device_fault_open(struct device **out, struct device *inner,
                                         const struct device_fault_options *options,
                                         struct error *err);

// Calls of a kind so far, those that failed among them.  Any thread.
uint64_t device_fault_calls(const struct device *device, enum device_fault_kind kind);
