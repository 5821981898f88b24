// Batched delete: deletes the records that match a filter, in short transactions, and then returns
// the free pages to the file system (incremental vacuum).
// Each run has a ledger: per kind, how many records were stored, and how many of these have expired
// or were cleared (schema.h).  A deleted record counts as cleared.  Exception: it counts as expired
// if rollups (aggregates computed in advance) go on counting it (struct gap_kept in gap_table.h).
//
// The collector's writing thread calls clear_begin, then clear_slice and clear_took until `*done`,
// with other work in between.  store_clear does all of this on a file without a collector.
//
// QUERY_FORGET removes a run, or all runs of an owner (forget.h): it deletes their records in the
// same way, and then the runs.  It begins with clear_begin_forget instead of clear_begin.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/slice_size.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/retention/forget.h"

enum {
    CLEAR_SLICE = 50000,       // max. ids visited in a batch (one transaction) by store_clear
    CLEAR_SLICE_BUSY = 16384,  // the same for the collector, whose other jobs wait meanwhile
    CLEAR_SLICE_NS = 15000000, // target duration of a batch for the collector
};

// A delete in progress, private but for `cleared`.  It covers the matching records that existed at
// its start, of all kinds except RECORD_KIND_RUN.
struct clearing {
    struct query_filter filter;
    bool forgets; // QUERY_FORGET: after the records it removes the runs of `forget`
    struct forget forget;
    uint64_t cleared;        // rows deleted so far
    struct slice_size slice; // ids visited per batch (adaptive; slice_size.h)
    struct slice_size pages; // when no records are left: runs removed or pages returned per batch
    bool is_whole;           // the last batch visited all slice.now ids, or no records were left
    int kind;                // current kind, descending; RECORD_KIND_RUN: no records are left
    int64_t after;           // ids of that kind up to this one are done
    int64_t last[RECORD_KIND_COUNT]; // per kind, the highest id at the start
};

// Begins the delete; reads the highest ids.
MUST_CHECK enum status clear_begin(struct clearing *clearing, struct sqlite3 *db,
                                   const struct query_filter *filter, struct error *err);

// Begins QUERY_FORGET; the errors are those of forget_begin.
MUST_CHECK enum status clear_begin_forget(struct clearing *clearing, struct sqlite3 *db,
                                          const struct query *query, struct error *err);

// Runs the next batch in its own transaction: deletes records and counts them in the ledgers.  When
// no records are left, it removes runs (QUERY_FORGET), and at last returns free pages.  A call may
// only advance to the next kind.  Sets `*done` to whether nothing is left.  After a failure earlier
// batches stay committed.
MUST_CHECK enum status clear_slice(struct clearing *clearing, struct sqlite3 *db, bool *done,
                                   struct error *err);

// Adapts the batch size to the duration of the last batch, aiming at CLEAR_SLICE_NS.  A batch that
// visited fewer ids can only decrease it, since a small table says nothing about large ones.
void clear_took(struct clearing *clearing, uint64_t took_ns);

// Creates the answer to QUERY_CLEAR, or to QUERY_FORGET if clearing->forgets: one row with the
// number of records deleted (`cleared`), and of runs and names removed (`runs`, `names`).
MUST_CHECK enum status clear_answer(struct result **out, const struct clearing *clearing,
                                    struct error *err);

// Runs QUERY_CLEAR or QUERY_FORGET on the file at `path`.  Takes the store's lock: returns
// STATUS_BUSY while a collector has it.
MUST_CHECK enum status store_clear(const char *path, const struct query *query, struct result **out,
                                   struct error *err);
