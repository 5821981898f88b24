// Rollups that were read, ready to be added up again: the cells of a bucket of time side
// by side, in memory, so that a question asked again takes neither rows apart nor
// sketches.  A few megabytes of those used last.
//
// Pure: it knows nothing of what is valid.  Each bucket carries the state of the store
// (an opaque number) that it was last seen in, and of each cell what tells its row from
// others (its count, the checksum in its blob and the blob's size): gather_shelf.c, which
// fills it, asks the store for both before it trusts them.
#ifndef INFERSTAT_STORE_SHELF_H
#define INFERSTAT_STORE_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/sketch.h"
#include "common/store/aggregate.h"
#include "common/store/cell.h"

// A rollup; its sketch as packed counts.
struct shelf_cell {
    int64_t series;
    struct cell_mark mark;
    struct ratio ratio; // without a sketch
    struct sketch_packed packed;
    const uint32_t *counts; // of `packed`
};

// All rollups of a bucket, rising by series.
struct shelf_bucket {
    uint64_t state;
    size_t count;
    const struct shelf_cell *cells;
};

// Which bucket: of a cell's key, all but the series.
struct shelf;

// At most so many bytes.
MUST_CHECK enum status shelf_new(struct shelf **out, size_t bytes);
void shelf_free(struct shelf *shelf);

// The bucket of that key (its series is not looked at), or NULL.  Good until the next
// shelf_put, shelf_drop or shelf_free; `state` may be set.
struct shelf_bucket *shelf_find(struct shelf *shelf, const struct cell_key *key);

// Keeps a copy of a bucket's cells, in the place of what is there of it; those that were
// not used longest make room.  What does not fit at all, or finds no memory, is not kept.
void shelf_put(struct shelf *shelf, const struct cell_key *key, const struct shelf_bucket *bucket);

void shelf_drop(struct shelf *shelf, const struct cell_key *key);

// Bytes in use, never more than allowed.
size_t shelf_bytes(const struct shelf *shelf);

#endif
