// Background thread of a monitor.  It
// - samples the memory and processor use of the process
// - writes the histograms of inter-token latencies (ITL) of all threads as records
// - runs the sampler of devices and host (sampler.h), if that is wanted
// - runs the publisher (publisher.h), which sends records to the collector.
// A run is the time from inferstat_open to inferstat_close.  A stream is the numbered records of
// one thread of the run; stream 0 has the records of the background thread.
#pragma once

#include "common/monitor/delivery/publisher.h"
#include "common/monitor/sampler/device_registry.h"
#include "common/monitor/thread_slot.h"

// The last sample of the process, so that hot paths need no system call for it.  Any thread.
struct sampled {
    _Atomic int64_t wall_offset_ns; // wall clock minus monotonic clock
    _Atomic int64_t host_memory;    // bytes of this process
    _Atomic int64_t device_memory;  // bytes, as set by the application or sampled; negative:
                                    // unknown
    _Atomic bool device_memory_set; // by the application: it is not sampled
    // Requests in the application's own queues, without trackers, as it set them; for a moment
    // negative while two threads set them.
    _Atomic int64_t queued_requests;
    // CPU time per wall-clock time, 2: two busy processors; negative: not sampled yet.
    _Atomic double cpu_ratio;
};

struct background;

// The structure is copied; everything that it points to is borrowed until background_stop.
struct background_settings {
    struct thread_slots *slots;          // state of the application's threads
    struct sampled *sampled;             // receives the samples
    uint32_t sample_ms;                  // 0: do not sample memory and processor use
    uint32_t device_ms;                  // 0, or nothing is reported: do not sample devices
    struct device_registry *registry;    // devices that the application describes
    struct publisher_settings publisher; // file NULL: nothing is reported
};

// Adds stream 0 to the run file, which must have no stream yet, opens the publisher and starts the
// thread, with all signals blocked.  If nothing is reported, only starts the thread.
MUST_CHECK enum status background_start(struct background **out,
                                        const struct background_settings *settings,
                                        struct error *err);

// The outcome of background_stop.
struct background_end {
    // True if nothing is reported, or the collector has committed Goodbye, the run's last message,
    // or has removed the run.
    bool finished;
    uint64_t acknowledged; // number of records that the collector has committed
    uint64_t in_rings;     // number of records that are only in the run file, not in the spool
};

// Waits up to `timeout_ns` until the collector has committed all records and Goodbye.  Moves the
// uncommitted records to the spool (files on disk), ends the thread and frees `background`.
struct background_end background_stop(struct background *background, uint64_t timeout_ns);

// Returns the number of records acknowledged so far.  Any thread.
uint64_t background_acknowledged(const struct background *background);
