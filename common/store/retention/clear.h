// Batched delete: removes rows that match a filter in short transactions, counts them as cleared in
// their runs' ledgers (record counts by run and kind), then returns free pages to the file system
// (incremental vacuum).
#ifndef INFERSTAT_STORE_RETENTION_CLEAR_H
#define INFERSTAT_STORE_RETENTION_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/slice_size.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

struct sqlite3;

enum {
    CLEAR_SLICE = 50000,       // max. ids visited in one transaction (a batch)
    CLEAR_SLICE_BUSY = 16384,  // the same while others wait for the writer
    CLEAR_SLICE_NS = 15000000, // target duration of a batch then
};

// A delete in progress: the rows of all kinds but runs that match the filter and existed at its
// start.
struct clearing {
    struct query_filter filter;
    uint64_t cleared;        // rows deleted so far
    struct slice_size slice; // ids per batch
    struct slice_size pages; // free pages returned per batch
    bool is_whole;           // the last batch visited its maximum of ids or pages
    int kind;                // current kind; RECORD_KIND_RUN: only free pages remain
    int64_t after;           // ids of that kind up to this one are done
    int64_t last[RECORD_KIND_COUNT];
};

MUST_CHECK enum status clear_begin(struct clearing *clearing, struct sqlite3 *db,
                                   const struct query_filter *filter, struct error *err);

// Deletes the next batch of rows and counts them as cleared in their runs' ledgers, in its own
// transaction; after the last row, returns free pages to the file system.  Sets `*done` when
// nothing is left.  Earlier batches stay committed if it fails.
MUST_CHECK enum status clear_slice(struct clearing *clearing, struct sqlite3 *db, bool *done,
                                   struct error *err);

// Adapts the batch size to the last batch's duration, aiming at CLEAR_SLICE_NS.  Only full batches
// may enlarge it: batches of small tables say nothing about large ones.
void clear_took(struct clearing *clearing, uint64_t took_ns);

// Creates the answer to QUERY_CLEAR: one row with the number of rows deleted.
MUST_CHECK enum status clear_answer(struct result **out, uint64_t cleared, struct error *err);

// Deletes the matching rows of all kinds (runs, ledgers and names stay) from the file at `path`,
// and counts them as cleared.  Takes the store's lock: STATUS_BUSY while a collector has it.
// `*cleared`: rows.
MUST_CHECK enum status store_clear(const char *path, const struct query_filter *filter,
                                   uint64_t *cleared, struct error *err);

#endif
