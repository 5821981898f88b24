// A coarser rollup made from finer ones: of one metric and grouping, all rows of a bucket
// from the rows of the buckets in it, some series at a time.  Inside of a transaction of
// the caller's; writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_MERGE_H
#define INFERSTAT_COLLECTOR_ROLLUP_MERGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/cell.h"
#include "common/store/rollup.h"

struct sqlite3;
struct rollup_merge;

enum { ROLLUP_CHILDREN_MAX = 60 };

// What to make from what.
struct rollup_merge_job {
    int metric;
    bool is_derived;
    enum rollup_grouping grouping;
    enum rollup_level level; // of the bucket; its children's is the next finer one
    int64_t started_ns;
    int64_t children[ROLLUP_CHILDREN_MAX]; // when those start that there are rows of
    unsigned child_count;
};

MUST_CHECK enum status rollup_merge_new(struct rollup_merge **out, struct sqlite3 *db,
                                        struct error *err);
void rollup_merge_free(struct rollup_merge *merge); // NULL is fine

// Begins anew, with the first series.
MUST_CHECK enum status rollup_merge_begin(struct rollup_merge *merge, struct error *err);

// Makes the rows of some more series, for some milliseconds, in place of those there are.
// `*left`: there are others; else the next step begins with the first series again.  Where
// a child's row is damaged, fails with STATUS_CORRUPT, nothing has changed, and it is
// `*damaged`, whose metric is 0 otherwise.
MUST_CHECK enum status rollup_merge_step(struct rollup_merge *merge,
                                         const struct rollup_merge_job *job, bool *left,
                                         struct cell_key *damaged, struct error *err);

#endif
