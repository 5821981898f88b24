// Recounts what a store holds and compares it with its ledger.  Every row of every kind is
// read once; each contradiction becomes a finding, in words.
//
// For each run:
//   * the ranges of each stream cover 1 to next - 1 without holes and overlaps, and no less
//     was produced; of a closed or killed run exactly that
//   * run.stored, the stored ranges and the ledger agree, and so do run.produced and the
//     streams
//   * each kind's table has stored - expired - cleared rows of the run
//   * the rows and what expired or was cleared are exactly the numbers stored: as many, with
//     the same set hash (set_hash.h)
//   * ranges, streams, ledgers and rows belong to a run and a stream that exist
//   * nothing is counted as expired of a kind of which nothing has (table expiry)
//   * an open run has no time at which it ended
//
// Not checked, since nothing repeats them: the columns of measurements and of the run (its
// times, how it ended where nothing is missing, duplicates, refused, key), the reasons, words
// and times of dropped ranges, counts of what was lost before it got a number, streams
// without records, whether what is gone expired or was cleared where both are possible, and
// the kind of records that are all gone.  Of a run that was in a store before version 3 and had
// rows gone by then, which rows are gone: only their number, and rows that cannot be its.
//
// Memory: a fixed size for each run and stream of a page.  A page ends with AUDIT_RUNS_MAX
// runs or, sooner, AUDIT_STREAMS_MAX streams.
#ifndef INFERSTAT_STORE_AUDIT_AUDIT_H
#define INFERSTAT_STORE_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

struct store;

enum {
    AUDIT_RUNS_MAX = QUERY_ROWS_MAX,
    AUDIT_STREAMS_MAX = 131072,
    AUDIT_STRANGERS_MAX = 16,
    AUDIT_FINDING_SIZE = 1024, // of a run's findings, terminating NUL included
};

enum audit_verdict {
    AUDIT_BALANCED,
    AUDIT_UNBALANCED,
    AUDIT_OPEN,    // nothing wrong so far, and more may come
    AUDIT_UNKNOWN, // nothing wrong so far; unknown whether more will come
};

// "balanced", "unbalanced", "open", "unknown"; static.
const char *audit_verdict_text(enum audit_verdict verdict);

struct audit_stream {
    int64_t stream;
    int64_t rows;      // of all kinds
    uint64_t sum;      // their set hash
    int64_t stored;    // numbers in stored ranges
    uint64_t expected; // their set hash
    bool is_too_many;  // far more numbers than rows: `expected` is not complete
};

struct audit_run {
    int64_t run, host, started_ns, end, duplicates;
    bool has_ended;                   // it has an ended_ns
    int64_t run_produced, run_stored; // as the table run says
    int64_t ledger_stored;
    int64_t produced, unnumbered, in_flight; // sums over its streams
    int64_t stored;                          // numbers in stored ranges
    int64_t dropped[DELIVERY_REASON_COUNT];  // numbers in dropped ranges
    int64_t expired, cleared;                // as its ledger says
    uint64_t gone_sum;                       // the set hash of these
    bool is_gone_unknown;                    // some of it has no set hash
    int64_t kept[RECORD_KIND_COUNT];         // rows there should be
    int64_t counted[RECORD_KIND_COUNT];      // rows there are
    uint64_t hashes[RECORD_KIND_COUNT];      // their set hashes
    int64_t rows;                            // of all kinds
    int64_t strays;                          // rows of streams that are not there
    struct audit_stream *streams;            // in audit.streams, rising
    size_t stream_count;
    bool is_stranger;        // not in the table run
    uint64_t findings, told; // all, and those that `finding` had room for
    char *finding;           // in words; NULL: none
    size_t finding_size;
};

struct audit {
    struct store *store;
    const struct query_filter *filter;
    bool is_whole;          // no filter: what belongs to no run counts too
    int64_t after, last;    // runs of this page have ids above, up to `last`
    bool more;              // there are runs behind `last`
    uint32_t limit;         // runs in the page
    struct audit_run *runs; // rising by id
    size_t run_count, run_room;
    struct audit_stream *streams;
    size_t stream_count;
    struct audit_run strangers[AUDIT_STRANGERS_MAX]; // not in the table run
    size_t stranger_count;
    uint64_t strangers_left_out; // rows of still others
    enum record_kind kind;       // being read
    struct audit_run *at_run;    // found last
    struct audit_stream *at_stream;
    uint64_t began_ns;
    unsigned searches;
};

// Audits the runs that the filter's host, run and window cover, from the first
// with an id above `after`, at most `limit` of them.  The caller's transaction
// makes it one state of the store.  `audit` is the caller's; audit_deinit frees
// what is in it, also after a failure.  STATUS_TIMEOUT over the store's budget.
MUST_CHECK enum status audit_page(struct audit *audit, struct store *store,
                                  const struct query_filter *filter, int64_t after, uint32_t limit,
                                  struct error *err);
void audit_deinit(struct audit *audit);

enum audit_verdict audit_verdict(const struct audit_run *run);

// Answers QUERY_AUDIT (store.h).
MUST_CHECK enum status query_audit(struct store *store, const struct query *query,
                                   struct result **out, struct error *err);

#endif
