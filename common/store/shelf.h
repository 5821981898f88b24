// Rollups that were read, ready to be added up again: the cells of a bucket of time side
// by side, in memory, so that a question asked again takes neither rows apart nor
// sketches; and beside them sums of many buckets, so that it adds up only what differs.
// A few megabytes of those used last.
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

// Which buckets: one, where the first and the last start are the same, or a sum of them.
struct shelf_key {
    int metric;
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t first_ns, last_ns;
};

// A rollup, or a sum of those of one series; its sketch as packed counts.
struct shelf_cell {
    int64_t series;
    struct cell_mark mark; // of a rollup; a sum has none
    struct ratio ratio;    // without a sketch
    struct sketch_packed packed;
    const uint32_t *counts; // of `packed`
    int64_t last_ns;        // where the newest rollup in it starts
    uint32_t rollups;       // in it
};

// All rollups of a bucket, or all sums, rising by series.
struct shelf_bucket {
    uint64_t state;
    size_t count;
    const struct shelf_cell *cells;
    bool is_asked; // a sum that was asked for, and not made yet: it has no cells
    bool is_vain;  // one that cannot be made: nor has this
    uint64_t made; // rises with each that is put; set by shelf_put
};

struct shelf;

// At most so many bytes.
MUST_CHECK enum status shelf_new(struct shelf **out, size_t bytes);
void shelf_free(struct shelf *shelf);

// The bucket of that key, or NULL.  Good until the next shelf_put, shelf_drop or
// shelf_free; `state` may be set.
struct shelf_bucket *shelf_find(struct shelf *shelf, const struct shelf_key *key);

// Keeps a copy of a bucket's cells, in the place of what is there of it; those that were
// not used longest make room.  What does not fit at all, or finds no memory, is not kept.
void shelf_put(struct shelf *shelf, const struct shelf_key *key, const struct shelf_bucket *bucket);

void shelf_drop(struct shelf *shelf, const struct shelf_key *key);

// Bytes in use, never more than allowed.
size_t shelf_bytes(const struct shelf *shelf);

#endif
