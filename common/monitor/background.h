// Background thread of the library: samples the process, drains the ITL histograms of all
// threads and runs the publisher.  Its records are stream 0.
#ifndef INFERSTAT_MONITOR_BACKGROUND_H
#define INFERSTAT_MONITOR_BACKGROUND_H

#include "common/monitor/delivery/publisher.h"
#include "common/monitor/sampler.h"
#include "common/monitor/thread_slot.h"

struct background;

// Everything is borrowed until background_stop.
struct background_settings {
    struct thread_slots *slots;
    struct sampled *sampled;
    uint32_t sample_ms;                  // 0: do not sample memory and processor use
    struct publisher_settings publisher; // file NULL: nothing is reported
};

// Starts the thread, with all signals blocked, waits until it has opened the publisher,
// and returns the status of that.
MUST_CHECK enum status background_start(struct background **out,
                                        const struct background_settings *settings,
                                        struct error *err);

// The outcome of background_stop.
struct background_end {
    bool finished;         // the collector has committed the run's Goodbye, or nothing is reported
    uint64_t acknowledged; // records
    uint64_t in_rings;     // records that are only in the run file
};

// Waits up to `timeout_ns` until all records are acknowledged, spools the others and ends
// the thread.
struct background_end background_stop(struct background *background, uint64_t timeout_ns);

// Records acknowledged so far.  Any thread.
uint64_t background_acknowledged(const struct background *background);

#endif
