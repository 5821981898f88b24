// Consistency check of a store (audit): recounts the rows of every kind of records, and compares
// the counts with the store's ledgers.  Each contradiction becomes a finding, in words.
//
// A run is the lifetime of one monitored process; a stream, the numbered records of one of its
// threads.  A ledger (schema.h) has counts per run and kind: stored records, expired ones (deleted
// by retention) and cleared ones (deleted by an administrator).  An audit checks that:
//   * the ranges of each stream (intervals of numbers, stored or dropped) cover all numbers below
//     the next expected one, `next`, without holes or overlaps; the stream has produced at least
//     next - 1 records, and exactly as many if its run was closed or killed
//   * run.stored, the total of the stored ranges, and the total of the ledger are equal;
//     run.produced is the total of the streams
//   * the table of each kind has stored - expired - cleared rows of the run
//   * each number in a stored range belongs to exactly one row, expired or cleared record.  This is
//     checked by counts and set hashes (sums of a hash of each number, set_hash.h)
//   * there are no orphan rows: each range, stream, ledger and record belongs to an existing run
//     and stream
//   * if a ledger counts expired records of a kind, the table expiry has a time for that kind
//   * an open run has no end time; no count is negative; no kind, end or reason is unknown
//
// An audit cannot check data that the store holds without redundancy:
//   * measurements
//   * a run's times and key, and its counts of duplicate and refused records
//   * how a run ended (open, closed, killed), unless records are missing that contradict it
//   * reason, detail and times of dropped ranges
//   * counts of records that were lost before they got a number
//   * streams without records
//   * whether a missing record expired or was cleared, if both are possible
//   * which kinds of records a run had, if none of its records are left
//
// If rows of a run expired or were cleared before schema version 3, its set hashes are unknown; the
// audit then checks counts, and that no row's number is outside the stored ranges.
//
// An audit proceeds by pages of runs.  It uses a fixed amount of memory for each run and stream of
// a page.  A page ends after the caller's `limit` of runs, or before AUDIT_STREAMS_MAX is exceeded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/delivery/delivery.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/core/record/record.h"

struct sqlite3;
struct store;

enum {
    AUDIT_RUNS_MAX = QUERY_ROWS_MAX, // most runs of a page; callers enforce it
    AUDIT_STREAMS_MAX = 131072,
    AUDIT_ORPHANS_MAX = 16,    // runs with orphan rows that are reported one by one
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

// The counts of one stream.
struct audit_stream {
    int64_t stream;
    int64_t rows;      // found, of all kinds
    uint64_t sum;      // set hash of these rows
    int64_t stored;    // numbers in stored ranges
    uint64_t expected; // set hash of the stored numbers
    bool is_too_many;  // far more stored numbers than rows: `expected` is incomplete
};

// The counts of one run.
struct audit_run {
    // From the table run.  `end`: enum record_run_end; `duplicates`: repeated records skipped.
    int64_t run, host, started_ns, end, duplicates;
    bool has_ended;                   // ended_ns is not null
    int64_t run_produced, run_stored; // from the table run
    int64_t ledger_stored;            // from its ledger, of all kinds
    // Totals of its streams: records produced, records lost before they got a number, of these by
    // threads without a ring, and records produced with a number that is in no range yet.
    int64_t produced, unnumbered, no_room, in_flight;
    int64_t stored;                         // numbers in stored ranges
    int64_t dropped[DELIVERY_REASON_COUNT]; // numbers in dropped ranges, by reason
    int64_t expired, cleared;               // from its ledger
    uint64_t gone_sum;                      // set hash of expired and cleared rows, from its ledger
    bool is_gone_unknown;                   // its ledger lacks a gone_sum
    int64_t kept[RECORD_KIND_COUNT];        // rows that its ledger expects, by kind
    int64_t counted[RECORD_KIND_COUNT];     // rows found, by kind
    uint64_t hashes[RECORD_KIND_COUNT];     // set hashes of the rows found, by kind
    int64_t rows;                           // found, of all kinds
    int64_t orphan_rows;                    // rows of streams that do not exist
    struct audit_stream *streams;           // its part of audit.streams, ascending
    size_t stream_count;
    bool is_orphan;          // some rows have its id, but the table run has not
    uint64_t findings, told; // count of findings, and of those whose text is in `finding`
    char *finding;           // text of the findings; NULL: none
    size_t finding_size;     // length of `finding`
};

// A page of an audit.  The members from `kind` on are internal.
struct audit {
    struct store *store;
    const struct query_filter *filter; // borrowed
    bool is_whole;                     // no filter: orphan rows of missing runs are audited, too
    int64_t after, last;               // the page has the runs with after < id <= last
    bool more;                         // there are runs above `last`
    uint32_t limit;                    // max. runs in the page
    struct audit_run *runs;            // ascending by id
    size_t run_count, run_room;
    struct audit_stream *streams; // of all runs of the page
    size_t stream_count;
    struct audit_run orphans[AUDIT_ORPHANS_MAX]; // missing runs that have orphan rows
    size_t orphan_count;
    uint64_t orphans_left_out;      // orphan rows of further missing runs
    enum record_kind kind;          // kind being read
    struct audit_run *at_run;       // last run found
    struct audit_stream *at_stream; // last stream found
    uint64_t began_ns;              // monotonic clock
    unsigned searches;              // runs whose wrong numbers were searched for
};

// Audits at most `limit` runs with ids above `after` (0, then the `last` of the page before) that
// the filter's host, run and window cover.  Initialises `audit`; audit_deinit frees its contents,
// also after a failure and before the next page.  The caller holds a transaction if all pages are
// to be of one snapshot.  Returns STATUS_TIMEOUT if it exceeds the store's time budget.
MUST_CHECK enum status audit_page(struct audit *audit, struct store *store,
                                  const struct query_filter *filter, int64_t after, uint32_t limit,
                                  struct error *err);
void audit_deinit(struct audit *audit);

// The verdict on one run, from its findings and its end.
enum audit_verdict audit_verdict(const struct audit_run *run);

// Answers QUERY_AUDIT (store.h).
MUST_CHECK enum status query_audit(struct store *store, const struct query *query,
                                   struct result **out, struct error *err);

// ---- The file --------------------------------------------------------------------------

// Reads every page of the file and compares tables with their indexes, then verifies the checksum
// of each rollup (rollup_row.h).  Returns STATUS_CORRUPT if there is damage, and `err` names the
// first; STATUS_TIMEOUT if it exceeds the store's time budget.
MUST_CHECK enum status integrity_check(struct store *store, struct error *err);

// Runs one of SQLite's own checks; `pragma` is "PRAGMA integrity_check(1)" or "PRAGMA
// quick_check(1)".  Sets `finding` to what is damaged, in one line, or to "".
enum { INTEGRITY_FINDING_SIZE = 200 };
MUST_CHECK enum status integrity_pragma(char finding[INTEGRITY_FINDING_SIZE], struct sqlite3 *db,
                                        const char *pragma, struct error *err);
