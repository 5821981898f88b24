// Benchmark repetition: decides after each run of a workload whether another one is needed, and
// prints the statistics.  Runs end when the median of their throughput has converged
// (common/core/stats/stats.h) or at a maximum.  Used by the commands `encode` and `llm`.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/core/base/unit.h"
#include "common/core/query/json_writer.h"
#include "common/core/stats/stats.h"

enum { REPEATS_MAX = 1000 };

// Help texts of the options --until-steady and --repeats, and the least ratio.  The option tables
// of the commands check the options' ranges.
#define REPEATS_RATIO_LEAST 0.001
#define REPEATS_RATIO_HELP  "until the median of the speed is known to this ratio, such as 0.03"
#define REPEATS_MOST_HELP   "maximum number of repeats, 5 to 1000 (default 30)"

struct repeats {
    double ratio; // precision to which the median must be known; 0: no repetition
    size_t most;  // maximum number of runs
    size_t tries; // finished runs, including those of unknown speed
    struct convergence convergence;
    bool is_reached;            // the median is known to `ratio`
    double values[REPEATS_MAX]; // the known speeds, convergence.count of them, unordered
};

// Initialises the state.  `ratio` and `most` are the values of --until-steady and --repeats; 0: not
// given.  Without `ratio` there is no repetition; without `most` at most 30 runs are made.  Fails
// with STATUS_INVALID if `most` is given without `ratio`.
MUST_CHECK enum status repeats_init(struct repeats *repeats, double ratio, int64_t most,
                                    struct error *err);

// Adds a finished run with its speed (NaN: unknown).  Returns true if another run is needed; do not
// call it again after false.  Without repetition only returns false.
bool repeats_add(struct repeats *repeats, double speed);

// Writes the statistics as members of a JSON object: "repeats", "steady", and statistics whose
// names begin with `metric`.  Without repetition their values are null.
void repeats_write(struct json_writer *json, const struct repeats *repeats, const char *metric);

// Prints the statistics as a line of text; nothing without repetition.
void repeats_print(FILE *out, const struct repeats *repeats, enum unit unit);
