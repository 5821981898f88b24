// Forgetting rows, with the ledger knowing.
#ifndef INFERSTAT_STORE_RETENTION_CLEAR_H
#define INFERSTAT_STORE_RETENTION_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/slice_size.h"
#include "common/core/query/query.h"

struct sqlite3;

enum {
    CLEAR_SLICE = 50000,       // ids looked at in one transaction, at most
    CLEAR_SLICE_BUSY = 16384,  // the same where others wait
    CLEAR_SLICE_NS = 15000000, // what a slice is to take there
};

// A clearing under way: of the rows of all kinds but runs that the filter covers
// and that were there when it began.
struct clearing {
    struct query_filter filter;
    uint64_t cleared;        // rows so far
    struct slice_size slice; // ids looked at in one transaction
    struct slice_size pages; // given back at once
    bool is_whole;           // the last slice did as much as it might
    int kind;                // the current one; RECORD_KIND_RUN: only free pages remain
    int64_t after;           // ids of that kind up to here are done
    int64_t last[RECORD_KIND_COUNT];
};

MUST_CHECK enum status clear_begin(struct clearing *clearing, struct sqlite3 *db,
                                   const struct query_filter *filter, struct error *err);

// Deletes the next rows and counts them as cleared in their runs' ledgers, in a
// transaction of its own; when all are gone, gives room back to the file system.
// Sets `*done` when there is nothing left to do.  What went before stays cleared
// where it fails.
MUST_CHECK enum status clear_slice(struct clearing *clearing, struct sqlite3 *db, bool *done,
                                   struct error *err);

// What the slice took: the next one is made to take some milliseconds, for a writer whom
// others wait for.  It only becomes larger by what a whole one took: those of tables with
// few rows or none say nothing of one with many.
void clear_took(struct clearing *clearing, uint64_t took_ns);

// Forgets the rows of all kinds that the filter covers (runs, ledgers and names
// stay; the ledger counts them as cleared) in the file at `path`.  Takes the
// store's lock: STATUS_BUSY while a collector has it.  `*cleared`: rows.
MUST_CHECK enum status store_clear(const char *path, const struct query_filter *filter,
                                   uint64_t *cleared, struct error *err);

#endif
