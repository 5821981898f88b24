// Recounts what a store holds against what its ledger says.  Every row of every
// kind is read once; what cannot be explained becomes a finding, in words.
//
// What is checked, run by run:
//   * the ranges of each stream follow each other from 1 to next - 1 without holes
//     and overlaps, and what is produced is not less; of a closed or killed run it
//     is exactly that
//   * run.stored, the stored ranges and the ledger agree, and so do run.produced
//     and the streams
//   * each kind's table has stored - expired - cleared rows of the run
//   * each row's number is in a stored range of its stream.  Where something is wrong,
//     a number that does not rise with the rows' ids is named, too: they do as records
//     come, and not always as they are imported
//   * the rows and what expired or was cleared are exactly the numbers stored: as
//     many, with the same fingerprint (fingerprint.h)
//   * ranges, streams, ledgers and rows belong to a run and a stream that exist
//   * nothing is counted as expired of a kind of which nothing has (table expiry)
//   * an open run has no time at which it ended
//
// What it cannot see: values that nothing else repeats.  These are the columns of
// measurements and of the run (its times, how it ended where nothing is missing,
// duplicates, refused, key), the reasons, words and times of dropped ranges, counts
// of what was lost before it got a number, streams without records, whether what is
// gone expired or was cleared where it can have been either, and the kind of records
// that are all gone.  Of a run that was there when its store came from a
// version before 3, and had rows gone by then: which rows are gone, only how many
// there are too few or too many.
//
// Memory: a fixed size for each run and stream of a page, however many rows there
// are.  A page ends with AUDIT_RUNS_MAX runs or, sooner, AUDIT_STREAMS_MAX streams.
#ifndef INFERSTAT_STORE_AUDIT_H
#define INFERSTAT_STORE_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/delivery.h"
#include "common/core/error.h"
#include "common/core/query.h"
#include "common/core/record.h"

struct store;
struct sqlite3_stmt;

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
    AUDIT_UNKNOWN, // nothing wrong so far, and nobody knows whether more will come
};

// "balanced", "unbalanced", "open", "unknown"; static.
const char *audit_verdict_text(enum audit_verdict verdict);

struct audit_stream {
    int64_t stream;
    int64_t next, produced; // as the table stream says
    int64_t end;            // last number of its ranges
    int64_t stored;         // numbers in stored ranges
    int64_t rows;           // rows found, of all kinds
    uint64_t sum;           // their fingerprint
    int64_t last_number;    // of the kind being read
    int64_t first, last;    // the range that was looked up last; first 0: none
    bool is_stored;         // what that range is
};

// A row whose number is not above that of the row before it.
struct audit_disorder {
    int64_t stream, id, number, before;
    enum record_kind kind;
};

struct audit_run {
    int64_t run, host, started_ns, end;
    int64_t run_produced, run_stored, duplicates; // as the table run says
    int64_t produced, unnumbered, in_flight;      // as its streams say
    int64_t stored;                               // numbers in stored ranges
    int64_t dropped[DELIVERY_REASON_COUNT];       // numbers in dropped ranges
    int64_t ledger_stored, expired, cleared;
    uint64_t gone_sum;                  // the fingerprint of what expired or was cleared
    bool is_gone_unknown;               // of some of it there is none
    bool has_ended;                     // it has an ended_ns
    int64_t kept[RECORD_KIND_COUNT];    // rows there should be
    int64_t counted[RECORD_KIND_COUNT]; // rows there are
    int64_t rows;
    int64_t strays, stray_id; // rows of streams that are not there, and the first one
    enum record_kind stray_kind;
    uint64_t disorders; // rows whose numbers do not rise, and the first one
    struct audit_disorder disorder;
    size_t first_stream, stream_count; // its places in audit.streams
    bool is_stranger;                  // not in the table run
    uint64_t findings, told;           // all, and those that `finding` had room for
    char *finding;                     // in words; NULL: none
    size_t finding_size;
};

struct audit {
    struct store *store;
    const struct query_filter *filter;
    bool is_whole; // no filter: what belongs to no run counts too
    int64_t after; // runs of this page have ids above, up to `last`
    int64_t last;
    bool more;                           // there are runs behind `last`
    int64_t no_fingerprints;             // up to this run ledgers may have none of what is gone
    bool has_expired[RECORD_KIND_COUNT]; // some of the kind, as the table expiry says
    struct audit_run *runs;              // rising by id
    size_t run_count, run_room;
    struct audit_stream *streams;
    size_t stream_count, stream_room;
    struct audit_run strangers[AUDIT_STRANGERS_MAX]; // not in the table run
    size_t stranger_count;
    uint64_t strangers_left_out; // rows of still others
    struct sqlite3_stmt *range;  // the range at or before a number
    enum record_kind kind;       // being read
    size_t at_run, at_stream;    // places found last
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

// ---- Between the files of the audit ------------------------------------------------

// Adds a finding to the run's.
__attribute__((format(printf, 2, 3))) void audit_find(struct audit_run *run, const char *format,
                                                      ...);

// What is wrong with the numbers of a stream, by the first one: it is missing, or
// there more than once.  False where that could not be found out in a time that
// stands in a fair relation to the rest.
struct audit_fault {
    int64_t number;
    bool is_missing;
};
bool audit_search(struct audit *audit, const struct audit_run *run,
                  const struct audit_stream *stream, struct audit_fault *fault);

// The sum of the mixes of all numbers that a stream's stored ranges hold.
MUST_CHECK enum status audit_expected(struct audit *audit, const struct audit_run *run,
                                      const struct audit_stream *stream, uint64_t *sum,
                                      struct error *err);

#endif
