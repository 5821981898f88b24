// How many processes there were at a time, by group and step: what samples of processes tell of one
// is theirs together, times that number.
#pragma once

#include "common/store/aggregate/aggregate_scan.h"

// Initialise it with zeros.
struct process_lives {
    const struct query *query; // borrowed
    struct groups *groups;     // seconds of processes' lives by group, without models, and step
    struct rollup_span span;   // in which they are counted
};

// Reads the lives of the processes that the query covers.  Call process_lives_deinit also after a
// failure.
MUST_CHECK enum status process_lives_read(struct process_lives *lives, struct store *store,
                                          const struct query *query, struct error *err);
void process_lives_deinit(struct process_lives *lives);

// The mean number of processes in a group and step; the keys are those of the query's group_by,
// then the start of the step.  NaN: unknown.
double process_lives_mean(const struct process_lives *lives, const int64_t *keys);
