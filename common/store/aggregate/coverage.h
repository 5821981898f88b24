// Data completeness ("coverage") of a query's window: stored / (stored + known lost), the share of
// the produced records that the store has, over all kinds of records.  It is computed by host, run
// and time step; never by model, since the model of a lost record is unknown.  But a filter by
// names (of a model, device, ...) selects the runs that used these names: only they can have lost
// records that the filter would match.  Averages, summaries, overviews and baselines use this one
// rule.
//
// Each loss has an interval in which it happened, by the host's clock.  The interval is clipped to
// the run's lifetime; if its times are unknown, it is the whole lifetime.  A loss counts in full in
// the window, and in every step, that its interval overlaps.  So the losses of the steps may add up
// to more than those of the window.  COVERAGE_VAGUE reports that.  The interval, by the reason:
//   spool_full, spool_damaged, unspecified  as the producer reported it
//   acknowledged_elsewhere (another store   any time before the producer noticed the loss
//   has the records)
//   refused                                 when the collector refused the records
//   host_lost                               when the collector last heard of the run
//   ring_full                               as in the table `unnumbered` (schema.h); unknown if the
//                                           table lacks the loss (stores of older versions)
//
// Stored records are counted only if there are losses.  The count of a host or run comes from:
//   without steps, if all its   the ledger (counts of records per run and kind, schema.h).  It
//   runs lie inside the window  includes records deleted by retention, but not those that an
//                               administrator cleared
//   with a filter by names      the ledger, in proportion to the part of the run's lifetime
//   otherwise                   rollups (aggregates computed in advance, rollup.h), or single
//                               records if the answer is by run or the kind has no rollups
// Rollups do not count records, only the values of each metric.  In most kinds of records one
// metric always has a value, so that its count is that of the records.  Samples of devices have no
// such metric: their number is estimated as the largest count.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct store;

// Remarks on the answer, which are ORed together.
enum {
    COVERAGE_VAGUE = 1,   // some losses may lie outside the window or in another step
    COVERAGE_EXPIRED = 2, // some expired records are not counted as stored
    COVERAGE_UNKNOWN = 4, // stored records not counted: over the budget, or too many groups
    COVERAGE_NAMES = 8,   // of the runs that used the filter's names
};

struct coverage {
    struct groups *shares; // by host, run and step; only those with losses
    bool by_host, by_run;  // whether the query groups by them
    int64_t step_ns;       // of the query; 0: no steps
    unsigned remarks;      // COVERAGE_...
};

// Reads the coverage for the filter's host, run and window, by the query's time steps, and by host
// or run if the query groups by these.  Uses at most half of the store's remaining time budget.
// Call coverage_deinit also after a failure.
MUST_CHECK enum status coverage_read(struct coverage *coverage, struct store *store,
                                     const struct query *query, struct error *err);
void coverage_deinit(struct coverage *coverage); // accepts a zeroed structure

// Sets `*ratio` and `*lost` for a group: its host and run (ignored unless the query groups by
// these), and its step's start.  `*ratio`: 1 if nothing was lost; NaN: unknown.
void coverage_of(const struct coverage *coverage, int64_t host, int64_t run, int64_t step_ns,
                 double *ratio, int64_t *lost);

// stored / (stored + lost); NaN if both are 0.
double coverage_ratio(int64_t stored, int64_t lost);

// The texts of the remarks: of bit i at index i.
enum { COVERAGE_REMARKS = 4 };
extern const char *const coverage_remarks[COVERAGE_REMARKS];
