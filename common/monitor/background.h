// Background thread of the library: samples the process's memory and processor use, writes the
// histograms of inter-token latencies (ITL) of all threads as records, and runs the publisher
// (publisher.h), which sends records to the collector.  A run is the lifetime of a monitor.  Each
// thread of the run writes its records to a stream; stream 0 is the background thread's.
#ifndef INFERSTAT_MONITOR_BACKGROUND_H
#define INFERSTAT_MONITOR_BACKGROUND_H

#include "common/monitor/delivery/publisher.h"
#include "common/monitor/thread_slot.h"

// The last sample of the process, so that hot paths need no system call for it.  Any thread.
struct sampled {
    _Atomic int64_t wall_offset_ns; // wall clock minus monotonic clock
    _Atomic int64_t host_memory;    // bytes of this process
    _Atomic int64_t device_memory;  // bytes, as set by the application; negative: unknown
    // CPU time per wall-clock time, 2: two busy processors; negative: not sampled yet.
    _Atomic double cpu_ratio;
};

struct background;

// Everything is borrowed until background_stop.
struct background_settings {
    struct thread_slots *slots;          // state of the application's threads
    struct sampled *sampled;             // receives the samples
    uint32_t sample_ms;                  // 0: do not sample memory and processor use
    struct publisher_settings publisher; // file NULL: nothing is reported
};

// Opens the publisher and starts the thread, with all signals blocked.
MUST_CHECK enum status background_start(struct background **out,
                                        const struct background_settings *settings,
                                        struct error *err);

// The outcome of background_stop.
struct background_end {
    // True if the collector has committed Goodbye, the run's last message, or nothing is reported.
    bool finished;
    uint64_t acknowledged; // number of records that the collector has committed
    uint64_t in_rings;     // number of records that are only in the run file, not in the spool
};

// Waits up to `timeout_ns` until all records are acknowledged, moves the others to the spool
// (records on disk), ends the thread and frees `background`.
struct background_end background_stop(struct background *background, uint64_t timeout_ns);

// Returns the number of records acknowledged so far.  Any thread.
uint64_t background_acknowledged(const struct background *background);

#endif
