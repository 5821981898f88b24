// Forgetting rows, with the ledger knowing.
#ifndef INFERSTAT_STORE_CLEAR_H
#define INFERSTAT_STORE_CLEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query.h"
#include "common/core/slice_size.h"
#include "common/store/sealed_damage.h"

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
    int kind;                // the one at work; RECORD_KIND_RUN: only room to give back
    bool is_looking;         // at sealed rows of the kind first, for damage
    bool in_sealed;          // then they go, a segment at a time
    int64_t after;           // ids of that kind up to here are done
    int64_t last[RECORD_KIND_COUNT];
    struct sealed_damage damaged; // of the kind at work
    bool is_left;                 // some, or what is of the same hours
    struct error damage;
};

MUST_CHECK enum status clear_begin(struct clearing *clearing, struct sqlite3 *db,
                                   const struct query_filter *filter, struct error *err);

// Deletes the next rows and counts them as cleared in their runs' ledgers, in a
// transaction of its own; when all are gone, gives room back to the file system.
// Sets `*done` when there is nothing left to do.  What went before stays cleared
// where it fails.
//
// A sealed segment that is damaged goes where the filter is a window that holds all of it.
// Else it is left, and so is what shares an hour with it: rollups of that hour could not be
// made again without it, and go on to stand for all of them.  In the end that is a
// failure: STATUS_CORRUPT.
MUST_CHECK enum status clear_slice(struct clearing *clearing, struct sqlite3 *db, bool *done,
                                   struct error *err);

// What the slice took: the next one is made to take some milliseconds, for a writer whom
// others wait for.  It only becomes larger by what a whole one took: those of tables with
// few rows or none say nothing of one with many.
void clear_took(struct clearing *clearing, uint64_t took_ns);

#endif
