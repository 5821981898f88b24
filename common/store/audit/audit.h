// Audit: recounts a store's rows and compares them with its ledgers (record counts by run and kind;
// schema.h).  Reads every row of every kind once; each contradiction becomes a finding, in words.
//
// For each run:
//   * the ranges of each stream cover 1 to next - 1 without holes or overlaps, and at least as
//     many records were produced; exactly as many for a closed or killed run
//   * run.stored, the stored ranges and the ledger agree, and so do run.produced and the
//     streams
//   * each kind's table has stored - expired - cleared rows of the run
//   * present, expired and cleared rows together are exactly the numbers stored: same count,
//     same set hash (set_hash.h)
//   * ranges, streams, ledgers and rows belong to an existing run and stream
//   * no row counts as expired of a kind without an expiry time (table expiry)
//   * an open run has no end time
//
// Not checked, since the store has no second copy: the columns of measurements and of the run (its
// times, its end if nothing is missing, duplicates, refused, key); the reasons, details and times
// of dropped ranges; unnumbered losses; streams without records; whether a missing row expired or
// was cleared if both are possible; and the kind of records that are all gone.  For a run that lost
// rows before schema version 3, only their number is checked, and that no row has a number outside
// of the run.
//
// Memory: a fixed size for each run and stream of a page.  A page ends after AUDIT_RUNS_MAX runs or
// AUDIT_STREAMS_MAX streams.
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
    AUDIT_FINDING_SIZE = 1024, // text of a run's findings, with the terminating NUL
};

enum audit_verdict {
    AUDIT_BALANCED,
    AUDIT_UNBALANCED,
    AUDIT_OPEN,    // no contradiction; the run is still open
    AUDIT_UNKNOWN, // no contradiction; unknown whether the run continues
};

// Static: "balanced", "unbalanced", "open", "unknown".
const char *audit_verdict_text(enum audit_verdict verdict);

struct audit_stream {
    int64_t stream;
    int64_t rows;      // of all kinds
    uint64_t sum;      // set hash of its rows
    int64_t stored;    // numbers in stored ranges
    uint64_t expected; // set hash of the stored numbers
    bool is_too_many;  // far more numbers than rows: `expected` is incomplete
};

struct audit_run {
    int64_t run, host, started_ns, end, duplicates;
    bool has_ended;                   // ended_ns is not null
    int64_t run_produced, run_stored; // from the table run
    int64_t ledger_stored;
    int64_t produced, unnumbered, in_flight; // sums over its streams
    int64_t stored;                          // numbers in stored ranges
    int64_t dropped[DELIVERY_REASON_COUNT];  // numbers in dropped ranges, by reason
    int64_t expired, cleared;                // from its ledger
    uint64_t gone_sum;                  // set hash of expired and cleared rows, from its ledger
    bool is_gone_unknown;               // its ledger lacks a gone_sum
    int64_t kept[RECORD_KIND_COUNT];    // expected rows, by kind
    int64_t counted[RECORD_KIND_COUNT]; // actual rows, by kind
    uint64_t hashes[RECORD_KIND_COUNT]; // set hashes of the rows, by kind
    int64_t rows;                       // of all kinds
    int64_t strays;                     // rows of streams that do not exist
    struct audit_stream *streams;       // in audit.streams, ascending
    size_t stream_count;
    bool is_stranger;        // not in the table run
    uint64_t findings, told; // findings, and those that fit into `finding`
    char *finding;           // text of the findings; NULL: none
    size_t finding_size;
};

struct audit {
    struct store *store;
    const struct query_filter *filter;
    bool is_whole;          // no filter: rows without a run are audited, too
    int64_t after, last;    // the page has the runs with after < id <= last
    bool more;              // there are runs after `last`
    uint32_t limit;         // max. runs in the page
    struct audit_run *runs; // ascending by id
    size_t run_count, run_room;
    struct audit_stream *streams;
    size_t stream_count;
    struct audit_run strangers[AUDIT_STRANGERS_MAX]; // not in the table run
    size_t stranger_count;
    uint64_t strangers_left_out; // rows of runs beyond AUDIT_STRANGERS_MAX
    enum record_kind kind;       // kind being read
    struct audit_run *at_run;    // last one found
    struct audit_stream *at_stream;
    uint64_t began_ns;
    unsigned searches;
};

// Audits at most `limit` runs with ids above `after` that the filter's host, run and window cover.
// To audit one snapshot of the store, the caller holds a transaction.  `audit` is the caller's;
// audit_deinit frees its contents, also after a failure.  STATUS_TIMEOUT over the store's budget.
MUST_CHECK enum status audit_page(struct audit *audit, struct store *store,
                                  const struct query_filter *filter, int64_t after, uint32_t limit,
                                  struct error *err);
void audit_deinit(struct audit *audit);

enum audit_verdict audit_verdict(const struct audit_run *run);

// Answers QUERY_AUDIT (store.h).
MUST_CHECK enum status query_audit(struct store *store, const struct query *query,
                                   struct result **out, struct error *err);

#endif
