// Telemetry coverage of a query's window: stored / (stored + known lost) over all kinds of records,
// by host, run and time step; never by model, since the model of a lost record is unknown.
//
// Times are the host's clock, as for windows.  A loss counts in the window and in each step that
// its possible interval overlaps, cut to its run's lifetime (COVERAGE_VAGUE if it reaches beyond
// the window or a step); a loss without times has its run's lifetime as interval.  The interval by
// reason:
//   spool_full, spool_damaged, unspecified  as the producer reported
//   acknowledged_elsewhere                  any time before the producer noticed
//   refused                                 when the collector refused the records
//   host_lost                               when the run was last heard of
//   ring_full                               from the table `unnumbered`; none for losses
//                                           that it lacks, as in stores of older versions
//
// Stored records are counted only if there are losses.  For runs within the window: from the
// ledger, expired ones included, cleared ones excluded.  For other runs: from rollups, or record by
// record if the answer is by run.  Device samples are counted by their most frequent metric in
// rollups, since none is present in all samples.
#ifndef INFERSTAT_STORE_AGGREGATE_COVERAGE_H
#define INFERSTAT_STORE_AGGREGATE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct store;

// Remarks on an answer; bits.
enum {
    COVERAGE_VAGUE = 1,   // some losses may lie outside of the window
    COVERAGE_EXPIRED = 2, // expired records are not counted as stored
    COVERAGE_UNKNOWN = 4, // stored records not counted: over the budget, or too many groups
};

struct coverage {
    struct groups *shares; // by host, run and step; only those with losses
    bool by_host, by_run;
    int64_t step_ns;
    unsigned remarks;
};

// Reads the coverage of the filter's host, run and window, by the query's steps and, of its groups,
// hosts and runs.  Uses at most half of the store's remaining budget.  `*coverage` must be freed
// also after a failure.
MUST_CHECK enum status coverage_read(struct coverage *coverage, struct store *store,
                                     const struct query *query, struct error *err);
void coverage_deinit(struct coverage *coverage); // accepts a zeroed structure

// Coverage of a group: its host and run, if the query groups by these, and its step's start.
// `*ratio`: 1 if nothing was lost; NaN: unknown.
void coverage_of(const struct coverage *coverage, int64_t host, int64_t run, int64_t step_ns,
                 double *ratio, int64_t *lost);

// stored / (stored + lost); NaN if both are 0.
double coverage_ratio(int64_t stored, int64_t lost);

// The text of one remark; static.
const char *coverage_remark(unsigned remark);

#endif
