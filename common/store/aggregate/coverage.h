// What share of the records of an answer's window is in the store: stored / (stored +
// known lost), over all kinds of records, by host, run and step of time.  What was lost
// has no model, so it is never split by one.
//
// Times are those of the host's clock, as windows are.  A loss counts where it may have
// been: from its first to its last time, cut to its run's life, and wherever that touches
// the window or a step (COVERAGE_VAGUE says so); where no time is known, all of the run's
// life.  By reason:
//   spool_full, spool_damaged, unspecified  the times that the producer said
//   acknowledged_elsewhere                  any time before the producer noticed
//   refused                                 when the collector refused them
//   host_lost                               when the run was last heard of
//   ring_full                               as far as the table `unnumbered` knows; what it
//                                           lacks, as in stores of before: no time
//
// Only where something was lost are records counted: of runs that lie in the window whole
// those that their ledger has, also the expired ones, less the cleared ones; else those of
// the window, from rollups where these keep hosts apart, and one by one by run.  Device
// samples have no value that all have: the one that most have stands for them there.
#ifndef INFERSTAT_STORE_AGGREGATE_COVERAGE_H
#define INFERSTAT_STORE_AGGREGATE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/store/rollup/aggregate.h"

struct store;

// What is to be said beside it; bits.
enum {
    COVERAGE_VAGUE = 1,   // of some losses it is not known whether they were in the window
    COVERAGE_EXPIRED = 2, // records of it have expired, and are not among the stored
    COVERAGE_UNKNOWN = 4, // counting the stored ones takes too long, or they are too many
};

struct coverage {
    struct groups *shares; // by host, run and step: only where something was lost
    bool by_host, by_run;
    int64_t step_ns;
    unsigned remarks;
};

// Of what the filter's host, run and window cover, for answers grouped as the query is
// (hosts and runs; the rest does not matter) and by its steps.  Within half of what is left
// of the store's budget.  `*coverage` is to be freed also after a failure.
MUST_CHECK enum status coverage_read(struct coverage *coverage, struct store *store,
                                     const struct query *query, struct error *err);
void coverage_deinit(struct coverage *coverage); // also zeroed

// Of a group: its host and run, where the query groups by these, and a step's start.
// `*ratio`: 1 where nothing was lost; NaN: not known.
void coverage_of(const struct coverage *coverage, int64_t host, int64_t run, int64_t step_ns,
                 double *ratio, int64_t *lost);

// stored / (stored + lost); NaN when nothing was stored or lost.
double coverage_ratio(int64_t stored, int64_t lost);

// The remark in words; static.
const char *coverage_remark(unsigned remark);

#endif
