// Batched delete: deletes the records that match a filter, in short transactions.  It counts them
// as cleared in their runs' ledgers (per run and kind: records stored, expired, cleared; schema.h),
// then returns free pages to the file system (incremental vacuum).  Exception: deleted records that
// rollups go on counting (struct gap_kept in gap_table.h) count as expired.  The collector's writer
// runs it between other jobs: clear_begin, then clear_slice and clear_took until `*done`.
// store_clear runs it on a file without a collector.
//
// QUERY_FORGET (forget.h) deletes all records of a run, or of all runs of an owner, in the same
// way, and then removes these runs.  It begins with clear_begin_forget.
#ifndef INFERSTAT_STORE_RETENTION_CLEAR_H
#define INFERSTAT_STORE_RETENTION_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/slice_size.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/retention/forget.h"

struct sqlite3;

enum {
    CLEAR_SLICE = 50000,       // max. ids visited in a batch (one transaction) by store_clear
    CLEAR_SLICE_BUSY = 16384,  // the same for the collector, whose other jobs wait meanwhile
    CLEAR_SLICE_NS = 15000000, // target duration of a batch for the collector
};

// A delete in progress, private but for `cleared`.  It covers the matching records that existed at
// its start, of all kinds except RECORD_KIND_RUN.
struct clearing {
    struct query_filter filter;
    bool forgets; // also removes the runs of `forget`, whose records it clears
    struct forget forget;
    uint64_t cleared;        // rows deleted so far
    struct slice_size slice; // ids per batch (adaptive; slice_size.h)
    struct slice_size pages; // free pages returned per batch, while only these remain
    bool is_whole;           // the last batch visited all slice.now ids, or returned pages
    int kind;                // current kind, descending; RECORD_KIND_RUN: only free pages remain
    int64_t after;           // ids of that kind up to this one are done
    int64_t last[RECORD_KIND_COUNT]; // per kind, the highest id at the start
};

// Begins the delete; reads the highest ids.
MUST_CHECK enum status clear_begin(struct clearing *clearing, struct sqlite3 *db,
                                   const struct query_filter *filter, struct error *err);

// Begins QUERY_FORGET; the errors are those of forget_begin.
MUST_CHECK enum status clear_begin_forget(struct clearing *clearing, struct sqlite3 *db,
                                          const struct query *query, struct error *err);

// Runs the next batch in its own transaction: deletes records and counts them in the ledgers; when
// no records are left, returns free pages.  A call may only advance to the next kind.  Sets `*done`
// to whether nothing is left.  After a failure earlier batches stay committed.
MUST_CHECK enum status clear_slice(struct clearing *clearing, struct sqlite3 *db, bool *done,
                                   struct error *err);

// Adapts the batch size to the duration of the last batch, aiming at CLEAR_SLICE_NS.  A batch
// smaller than the maximum can only decrease the size: a small table says nothing about large ones.
void clear_took(struct clearing *clearing, uint64_t took_ns);

// Creates the answer to QUERY_CLEAR, or to QUERY_FORGET if clearing->forgets: one row with the
// number of records deleted (`cleared`), and of runs and names removed (`runs`, `names`).
MUST_CHECK enum status clear_answer(struct result **out, const struct clearing *clearing,
                                    struct error *err);

// Runs QUERY_CLEAR or QUERY_FORGET on the file at `path`.  Takes the store's lock: returns
// STATUS_BUSY while a collector has it.
MUST_CHECK enum status store_clear(const char *path, const struct query *query, struct result **out,
                                   struct error *err);

#endif
