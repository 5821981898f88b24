// Where the time of a slow request went, compared with the median of its peers.
// Pure: no database.
//
// A request's time is queue + prefill + decode.  What each took more than its median
// (the excess) is split:
//
//   prompt       the prompt had more tokens to compute: those x the median time of one
//   tokens       more tokens were put out: those x the median time of one
//
// each up to what the phase took more.  What then is left of a phase, if it was slower,
// goes to what was going on meanwhile, each up to the time for which it was:
//
//   throttle     the device's clocks were held back
//   load         a model was being loaded on the host
//   copy         a pipeline was copying to or from the device
//   starvation   a pipeline on the device wanted for filled slots
//   concurrency  more requests than usual were in progress: up to the share of the
//                phase that those above the median take (1 - median / requests)
//
// in proportion where together they claim more than there is.  The rest stays with the
// phase (queue, prefill, decode).  What the phases do not account for is `other`: the
// median of a sum is not the sum of the medians.  Parts are signed, and their sum is
// the excess to the nanosecond.
//
// So what is named was there at the time; that it was the cause is likely, not proven.
#ifndef INFERSTAT_STORE_BLAME_H
#define INFERSTAT_STORE_BLAME_H

#include <stdbool.h>
#include <stdint.h>

// One line a part: enum's end, name.
#define BLAME_PARTS(X)                                                                             \
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

enum blame_part {
#define BLAME_ENUM(name, text) BLAME_##name,
    BLAME_PARTS(BLAME_ENUM)
#undef BLAME_ENUM
        BLAME_PART_COUNT
};

enum { BLAME_CAUSES = BLAME_CONCURRENCY - BLAME_COPY + 1 }; // the parts from copy on

// The part's name; static.
const char *blame_part_name(enum blame_part part);

enum blame_phase { PHASE_QUEUE, PHASE_PREFILL, PHASE_DECODE, BLAME_PHASES };

// A phase of one request, beside its median.  Times in nanoseconds, not negative.
struct blame_times {
    bool known; // whether the request has it and the median, too
    int64_t took_ns, median_ns;
    double more_units;                // tokens beyond the median (below: negative)
    double unit_ns;                   // the median time of one; 0: not known
    int64_t overlap_ns[BLAME_CAUSES]; // for how long each cause was there meanwhile
};

struct blame {
    int64_t took_ns, median_ns; // of the whole
    struct blame_times phases[BLAME_PHASES];
};

// Splits took_ns - median_ns into `parts`, whose sum it is.  All times are below
// BLAME_TIME_MAX_NS (36 years): what a store says may be anything.
#define BLAME_TIME_MAX_NS (INT64_C(1) << 60)
void blame_split(const struct blame *blame, int64_t parts[BLAME_PART_COUNT]);

// How much of a phase that took `took_ns` a number of requests above the median may
// account for; 0 where it is not above.
int64_t blame_concurrency_ns(int64_t took_ns, int64_t requests, double median);

// The part that explains most: the largest, when the excess is above
// BLAME_NOTABLE of the median.  BLAME_PART_COUNT where nothing is to be explained.
#define BLAME_NOTABLE 0.1
enum blame_part blame_main(const int64_t parts[BLAME_PART_COUNT], int64_t median_ns);

#endif
