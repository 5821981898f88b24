// Repeating a workload until its speed is steady (common/core/stats/convergence.h): the same
// options, figures and words for all that can be repeated.
#ifndef INFERSTAT_SERVER_WORKER_REPEATS_H
#define INFERSTAT_SERVER_WORKER_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/core/base/error.h"
#include "common/core/base/status.h"
#include "common/core/base/unit.h"
#include "common/core/query/json_writer.h"
#include "common/core/stats/convergence.h"

enum { REPEATS_MAX = 1000 };

// Help texts of the options.
#define REPEATS_RATIO_LEAST 0.001
#define REPEATS_RATIO_HELP  "until the median of the speed is known to this ratio, such as 0.03"
#define REPEATS_MOST_HELP   "maximum number of repeats, 5 to 1000 (default 30)"

struct repeats {
    double ratio; // 0: nothing is repeated
    size_t most;
    size_t tries; // how often it ran to its end; those without a speed count too
    struct convergence convergence;
    bool is_reached;
    double values[REPEATS_MAX]; // in no order
};

// `ratio` and `most` as given, 0 where not.  Fails with STATUS_INVALID on a number of
// repeats without a ratio.
MUST_CHECK enum status repeats_init(struct repeats *repeats, double ratio, int64_t most,
                                    struct error *err);

// It ran to its end once more, at this speed (NaN: unknown).  Returns whether it is to run again.
bool repeats_add(struct repeats *repeats, double speed);

// Members of an object: null where nothing is repeated.  `metric` is the speed's key.
void repeats_write(struct json_writer *json, const struct repeats *repeats, const char *metric);

// A line for people; nothing where nothing is repeated.
void repeats_print(FILE *out, const struct repeats *repeats, enum unit unit);

#endif
