// Attributes the time that a slow request took beyond the median of its peers to phases and
// causes.  Pure: no database.
//
// A request's time is queue + prefill + decode.  What each took more than its median
// (the excess) is split:
//
//   prompt       the prompt had more tokens to compute: those x the median time of one
//   tokens       more tokens were put out: those x the median time of one
//
// each at most the excess of its phase.  What is left of a phase's excess goes to the causes
// that were present at the time, each at most for as long as it was:
//
//   throttle     the device's clocks were held back
//   load         a model was being loaded on the host
//   copy         a pipeline was copying to or from the device
//   starvation   a pipeline on the device waited for filled slots
//   concurrency  more requests than usual were in progress: up to the share of the
//                phase that those above the median take (1 - median / requests)
//
// in proportion where together they claim more than there is.  The rest stays with the
// phase (queue, prefill, decode).  What the phases do not account for is `other`: the
// median of a sum is not the sum of the medians.  Parts are signed, and their sum is
// the excess to the nanosecond.
//
// A named cause was present at the time; that it caused the delay is likely, not proven.
#ifndef INFERSTAT_STORE_QUERY_LATENCY_ATTRIBUTION_H
#define INFERSTAT_STORE_QUERY_LATENCY_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

// One line a part: enum's end, name.
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
}; // the parts from copy on

// The part's name; static.
const char *attribution_part_name(enum attribution_part part);

enum attribution_phase { PHASE_QUEUE, PHASE_PREFILL, PHASE_DECODE, ATTRIBUTION_PHASES };

// A phase of one request, beside its median.  Times in nanoseconds, not negative.
struct attribution_times {
    bool known; // whether the request has it and the median, too
    int64_t took_ns, median_ns;
    double more_units;                      // tokens beyond the median (below: negative)
    double unit_ns;                         // the median time of one; 0: not known
    int64_t overlap_ns[ATTRIBUTION_CAUSES]; // for how long each cause was there meanwhile
};

struct attribution {
    int64_t took_ns, median_ns; // of the whole
    struct attribution_times phases[ATTRIBUTION_PHASES];
};

// Splits took_ns - median_ns into `parts`, whose sum it is.  All times are below
// ATTRIBUTION_TIME_MAX_NS (36 years): what a store says may be anything.
#define ATTRIBUTION_TIME_MAX_NS (INT64_C(1) << 60)
void attribution_split(const struct attribution *attribution,
                       int64_t parts[ATTRIBUTION_PART_COUNT]);

// How much of a phase that took `took_ns` a number of requests above the median may
// account for; 0 where it is not above.
int64_t attribution_concurrency_ns(int64_t took_ns, int64_t requests, double median);

// The part that explains most: the largest, when the excess is above
// ATTRIBUTION_NOTABLE of the median.  ATTRIBUTION_PART_COUNT where nothing is to be explained.
#define ATTRIBUTION_NOTABLE 0.1
enum attribution_part attribution_main(const int64_t parts[ATTRIBUTION_PART_COUNT],
                                       int64_t median_ns);

#endif
