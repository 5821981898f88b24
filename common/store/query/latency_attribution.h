// Latency attribution: splits the excess of a slow request (its time minus the median of its peers)
// into parts by phase and cause.  Used by the query SLOWEST.  Only concurrent_events_read does I/O.
//
// A request's time is queue + prefill + decode.  The excess of each phase over the median of that
// phase is split in three steps.  First, the time for more (or less) work, up to all of the excess:
//
//   prompt       more prompt tokens to compute: extra tokens x the median time per token
//                (none if the request failed before its first token); or more items of the batch,
//                of a request that has items, whose computing is the phase prefill
//   tokens       more generated tokens: extra tokens x the median time per token
//
// Second, a positive remainder goes to causes that were present during the phase.  Each gets the
// time for which it was present beyond the share for which it is present in usual requests (a
// pipeline that runs during all requests makes none of them slow); if these times exceed the
// remainder, it is shared in proportion; all causes together get no more than the excess beyond
// that for work:
//
//   stopped      the process did not run; comes first: nothing else delayed it meanwhile
//   throttle     the device's clocks were throttled
//   load         a model was being loaded on the host
//   copy         a pipeline was copying to or from the device
//   starvation   a pipeline on the device waited for filled slots
//   concurrency  more requests than the median were in progress; at most the share
//                1 - median / requests of the phase, and what the other causes leave: more requests
//                are in progress wherever requests are slow.  None in a process whose requests run
//                on several devices, as those of other devices are counted, too
//
// Third, the rest stays with the phase itself (queue, prefill, decode).  The part `other` has the
// excess of phases of unknown time (such as a prefill that never began), and makes up for the fact
// that the median of the whole time is not the sum of the phases' medians.  Parts can be negative;
// their sum is exactly the excess.
//
// A cause that got a part was present at the time.  That it caused the delay is likely, not proven.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"

struct store;

// Expands X(enum suffix, name) for each part.
#define ATTRIBUTION_PARTS(X)                                                                       \
    X(QUEUE, "queue")                                                                              \
    X(PROMPT, "prompt")                                                                            \
    X(PREFILL, "prefill")                                                                          \
    X(TOKENS, "tokens")                                                                            \
    X(DECODE, "decode")                                                                            \
    X(COPY, "copy")                                                                                \
    X(LOAD, "load")                                                                                \
    X(STARVATION, "starvation")                                                                    \
    X(THROTTLE, "throttle")                                                                        \
    X(STOPPED, "stopped")                                                                          \
    X(CONCURRENCY, "concurrency")                                                                  \
    X(OTHER, "other")

enum attribution_part {
#define ATTRIBUTION_ENUM(name, text) ATTRIBUTION_##name,
    ATTRIBUTION_PARTS(ATTRIBUTION_ENUM)
#undef ATTRIBUTION_ENUM
        ATTRIBUTION_PART_COUNT
};

enum {
    ATTRIBUTION_CAUSES = ATTRIBUTION_CONCURRENCY - ATTRIBUTION_COPY + 1
}; // the parts from COPY to CONCURRENCY

// The part's name; static.
const char *attribution_part_name(enum attribution_part part);

enum attribution_phase { PHASE_QUEUE, PHASE_PREFILL, PHASE_DECODE, ATTRIBUTION_PHASES };

// One phase of a request, and the medians of its peers.  Times are not negative.
struct attribution_times {
    bool known; // the times of the request and of the median are both known
    int64_t took_ns, median_ns;
    double more_units; // the phase's tokens minus their median
    double unit_ns;    // median time per token; 0: unknown
    // For how long each cause was present beyond what is usual; its index is the cause's part minus
    // ATTRIBUTION_COPY.
    int64_t overlap_ns[ATTRIBUTION_CAUSES];
};

struct attribution {
    int64_t took_ns, median_ns; // of the whole request
    struct attribution_times phases[ATTRIBUTION_PHASES];
};

// Splits took_ns - median_ns into `parts`, which add up to it.  All times must be at most
// ATTRIBUTION_TIME_MAX_NS (36 years); callers must clamp values from a store.
#define ATTRIBUTION_TIME_MAX_NS (INT64_C(1) << 60)
void attribution_split(const struct attribution *attribution,
                       int64_t parts[ATTRIBUTION_PART_COUNT]);

// How much of a phase that took `took_ns` may be due to concurrency: `requests` were in progress,
// `median` is usual.  0 unless `requests` exceeds `median`.
int64_t attribution_concurrency_ns(int64_t took_ns, int64_t requests, double median);

// For how long a cause was present beyond the share of the phase that is usual.  Present for
// `overlap_ns` of a phase that took `took_ns`.
int64_t attribution_beyond_usual_ns(int64_t overlap_ns, int64_t took_ns, double usual_share);

// The part that explains most: the largest one.  ATTRIBUTION_PART_COUNT if the excess is at most
// the share ATTRIBUTION_NOTABLE of `median_ns`, the whole request's median.
#define ATTRIBUTION_NOTABLE 0.1
enum attribution_part attribution_main(const int64_t parts[ATTRIBUTION_PART_COUNT],
                                       int64_t median_ns);

// ---- Concurrent events -----------------------------------------------------------------------
//
// For how long model loads on the request's host, pipelines and clock throttling on its device, and
// stops of its process overlapped each of its phases.  All times are by the host's clock.  Any run
// of the host may have recorded them: the device is the same if its UUID is, or its name where a
// run does not know the UUID.
//
// The number of records read is limited:
//   loads, pipelines  those that began in EVENTS_BEFORE_NS before the request, or during it, and
//                     ended after it began: the newest EVENTS_SPANS_MAX of each, of all hosts
//   process samples   from EVENTS_STOP_NS before the request to EVENTS_STOP_NS after it: the newest
//                     EVENTS_SAMPLES_MAX of its run; those of all hosts in that time are looked at
//   device samples    from EVENTS_SAMPLE_NS before the request to EVENTS_SAMPLE_NS after it: the
//                     newest EVENTS_SAMPLES_MAX of its host
// A device sample is read at the end of its duration, and shows what the device was doing from its
// start until the next sample of its run is read: a change happened between the two readings.  The
// last sample is valid for its duration.  Each is valid for at most EVENTS_SAMPLE_NS.
//
// A process was stopped between two of its samples if these are more than twice as far apart as the
// two before, and it used less than half of the processors that it used beside them.
// The stop lasted up to the second one, and began when as much would have been used.

#define EVENTS_BEFORE_NS INT64_C(3600000000000) // an hour
#define EVENTS_SAMPLE_NS INT64_C(10000000000)   // ten seconds
#define EVENTS_STOP_NS   INT64_C(5000000000)    // processes have a sample each second
enum { EVENTS_SPANS_MAX = 4096, EVENTS_SAMPLES_MAX = 20000 };

// A request's run, its host and device (ids of the table name), and the starts of its phases,
// ascending; the last element of `starts_ns` is the end of the last phase.
struct concurrent_events_request {
    int64_t run, host, device;
    int64_t starts_ns[ATTRIBUTION_PHASES + 1];
};

// Sets starts_ns from the start of the first phase and the phases' durations, of which one below 0
// (absent) counts as 0.
void concurrent_events_place(struct concurrent_events_request *request, int64_t started_ns,
                             const int64_t durations_ns[ATTRIBUTION_PHASES]);

// Result.
struct concurrent_events {
    // Overlap by phase and cause, at most the phase's duration.  The index of a cause is its part
    // minus ATTRIBUTION_COPY; ATTRIBUTION_CONCURRENCY stays 0.
    int64_t ns[ATTRIBUTION_PHASES][ATTRIBUTION_CAUSES];
    int64_t throttle_reasons; // bitwise OR over prefill and decode (record/throttle.h)
};

MUST_CHECK enum status concurrent_events_read(struct concurrent_events *out, struct store *store,
                                              const struct concurrent_events_request *request,
                                              struct error *err);
