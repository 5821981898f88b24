// Values of one kind of records by group and step of time: from rollups, where these
// say it, and from records where they do not.  What AVERAGE, SUMMARY and OVERVIEW are
// made from.
//
// Rollups hold the records with ids up to a metric's watermark.  So a window is its
// pieces (rollup_plan.h) of rollups and of records up to the watermark, and then all
// records of it above.  Where a query wants what rollups do not keep apart (runs,
// stages), or there are none, all of the window is records.
#ifndef INFERSTAT_STORE_GATHER_H
#define INFERSTAT_STORE_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/aggregate.h"
#include "common/store/rollup_plan.h"

struct store;

enum {
    GATHER_METRICS_MAX = 6,
    GATHER_SKETCHES_MAX = 2000, // beyond, the note says why
    GATHER_NOTE_SIZE = 512,
};

struct gather_metric {
    const struct query_metric *metric;
    bool wants_quantiles;
    // How the value is made from a record; set for derived metrics, and by the caller for
    // what is no column (then it is of records only).
    const struct record_derived *derived;
};

struct gather {
    // What is asked.  Borrowed; of the query: filter, group_by, step_ns.
    const struct query *query;
    enum record_kind kind;
    struct gather_metric metrics[GATHER_METRICS_MAX];
    unsigned metric_count;

    // The answer.  A group's keys are those of group_by, then the start of its step; its
    // data are `metric_count` struct ratio.  Groups without values may be among them.
    struct groups *groups;
    int64_t sketches;            // rollups read
    int64_t rows;                // records read
    struct rollup_span window;   // with steps: cut to where there are records
    struct rollup_span seen;     // from the first to the last start of records read
    bool lacks_expired;          // there are expired records in it that no rollup stands for
    int64_t expired_ns;          // records started before have; INT64_MIN: none
    char note[GATHER_NOTE_SIZE]; // what is to be said about the answer; "": nothing

    struct sketch_budget budget;
    struct rollup_plan plan;
};

// Adds a metric of the gather's kind, by its name, which the kind has.
void gather_want(struct gather *gather, const char *name, bool wants_quantiles);

// STATUS_INVALID for a dimension that the kind does not have, or too many steps;
// STATUS_FULL for too many groups; those of SQLite.
MUST_CHECK enum status gather_run(struct gather *gather, struct store *store, struct error *err);
// Also after a failure.
void gather_deinit(struct gather *gather);

// Adds to the note.
void gather_say(struct gather *gather, const char *text);

// The start of a group's newest record, or where rollups stand for that, of its newest
// bucket; INT64_MIN where it has none.
int64_t gather_last_ns(const struct group *group);

// The sums of a group.
const struct ratio *gather_ratio(const struct group *group, unsigned metric);

#endif
