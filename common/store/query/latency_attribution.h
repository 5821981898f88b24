// Latency attribution: splits a slow request's time beyond the median of its peers (the excess)
// into phases and causes.  Pure: no database.
//
// A request's time is queue + prefill + decode.  Each phase's excess over its median is split into
//
//   prompt       more prompt tokens to compute: extra tokens x the median time per token
//   tokens       more generated tokens: extra tokens x the median time per token
//
// each at most the excess of its phase.  The remainder goes to causes that were present during the
// phase, each at most for as long as it was present:
//
//   throttle     the device's clocks were throttled
//   load         a model was being loaded on the host
//   copy         a pipeline was copying to or from the device
//   starvation   a pipeline on the device waited for filled slots
//   concurrency  more requests than the median were in progress: at most the share
//                1 - median / requests of the phase
//
// in proportion if their sum exceeds the remainder.  The rest stays with the phase (queue, prefill,
// decode).  `other` is the excess that no phase has: the median of a sum is not the sum of the
// medians.  Parts are signed; their sum is exactly the excess.
//
// A named cause was present at the time; that it caused the delay is likely, not proven.
#ifndef INFERSTAT_STORE_QUERY_LATENCY_ATTRIBUTION_H
#define INFERSTAT_STORE_QUERY_LATENCY_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

// One line per part: enum suffix, name.
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

// One phase of a request, and its peers' medians.  Times in nanoseconds, not negative.
struct attribution_times {
    bool known; // both the request's time and the median are known
    int64_t took_ns, median_ns;
    double more_units;                      // tokens minus the median
    double unit_ns;                         // median time per token; 0: unknown
    int64_t overlap_ns[ATTRIBUTION_CAUSES]; // presence of each cause during the phase
};

struct attribution {
    int64_t took_ns, median_ns; // of the whole request
    struct attribution_times phases[ATTRIBUTION_PHASES];
};

// Splits took_ns - median_ns into `parts`, which add up to it.  All times must be at most
// ATTRIBUTION_TIME_MAX_NS (36 years); callers clamp values from a store.
#define ATTRIBUTION_TIME_MAX_NS (INT64_C(1) << 60)
void attribution_split(const struct attribution *attribution,
                       int64_t parts[ATTRIBUTION_PART_COUNT]);

// The time of a phase of `took_ns` that requests above the median may account for; 0 if `requests`
// is not above it.
int64_t attribution_concurrency_ns(int64_t took_ns, int64_t requests, double median);

// The largest part, if the excess is above ATTRIBUTION_NOTABLE of the median; else
// ATTRIBUTION_PART_COUNT.
#define ATTRIBUTION_NOTABLE 0.1
enum attribution_part attribution_main(const int64_t parts[ATTRIBUTION_PART_COUNT],
                                       int64_t median_ns);

#endif
