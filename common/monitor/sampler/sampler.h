// Sampler: records samples of all GPUs and of the host, and events, at an interval.
//
// One process of a user on a host samples for a collector: the one that has the lock, a file in the
// user's folder (runfile_user_folder), wherever its run file is.  Another one says so once in its
// log, and takes over when the first ends.
//
// Only the driver thread (driver_thread.h) calls a driver.  While it does not return, there are no
// samples of devices, but of the host; after max(2 s, 2 intervals) the driver is said to hang.  The
// first reading may take 30 s, since opening the drivers does.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/sampler/driver_thread.h"
#include "common/monitor/sampler/sampler_output.h"

// The structure is copied; everything that it points to is borrowed until sampler_close.
struct sampler_settings {
    struct sampler_output output;
    uint32_t interval_ms;
    const char *host, *collector;    // as the run names them
    const struct driver_ops *driver; // &driver_thread_ops; tests have another
    void *driver_context;            // for its start
    const char *host_root;           // of host_open
};

// Used by the background thread only.
struct sampler;

// Starts nothing yet: the first sampler_step does.
MUST_CHECK enum status sampler_open(struct sampler **out, const struct sampler_settings *settings,
                                    struct error *err);

// Records the reading that has ended since the last step, if any, and begins another one when it is
// due.  The times are those of now.  Waits for no driver.
void sampler_step(struct sampler *sampler, uint64_t monotonic_ns, int64_t wall_ns);

// Device memory of this process, as the driver tells; negative: unknown.
int64_t sampler_own_memory(const struct sampler *sampler);

// Records the ends of events that are known, and stops the driver thread; one that hangs is left
// behind.  NULL is fine.
void sampler_close(struct sampler *sampler);
