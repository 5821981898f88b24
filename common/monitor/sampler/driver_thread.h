// The thread that calls the GPU drivers, since a driver may hang: the background thread asks it for
// a reading of all devices and takes the result when there is one, without waiting.
//
// A process has at most one such thread at a time, also one that hangs.  A thread that hangs when
// it is stopped is left behind: it ends when its call returns, and frees what it used.  Until then
// it keeps the lock of the host's sampler (sampler.h), so that no other process enters the driver
// for this user.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"
#include "common/devices/gpu_reading.h"

enum driver_state {
    DRIVER_BUSY,   // the reading goes on
    DRIVER_READ,   // it has ended
    DRIVER_FAILED, // out of memory: there is none this time
};

// Operations of the thread; tests have others.  The background thread calls all of them; none
// waits for a driver.
struct driver_ops {
    // Starts a thread without a request.  `lock_fd`: of fork_safe_lock_acquire, which the thread
    // closes when it ends, if this succeeds.  Returns STATUS_BUSY if an earlier one still runs.
    enum status (*start)(void **out, void *context, int lock_fd, struct error *err);
    // Asks for a reading, after the one before was collected.  `slow`: as gpu_set_read.
    void (*request)(void *driver, bool slow);
    // Sets `*out` to the reading that was asked for, if it has ended; valid until the next request.
    enum driver_state (*collect)(void *driver, struct gpu_snapshot **out);
    // Ends the thread; waits for that half a second, or if `is_hung` not at all.
    void (*stop)(void *driver, bool is_hung);
};

// `context`: NULL.
extern const struct driver_ops driver_thread_ops;
