// A walk over the sealed rows of a kind: by id, or by start and then by id; rising or
// falling; segment by segment, so that whoever stops early has read few.
//
// By time, segments may overlap: those that the row at hand may come from are open at the
// same time.  They are few, since rows that arrived long after they started are not
// sealed (sealer.h).
#ifndef INFERSTAT_STORE_SEALED_WALK_H
#define INFERSTAT_STORE_SEALED_WALK_H

#include "common/store/sealed_cache.h"

struct sqlite3_stmt;
struct sealed_sorted;

struct sealed_span {
    int64_t first, last;
};

struct sealed_walk {
    // Set between init and begin; all rows, rising by id, where they are not.
    struct sealed_span ids, times;
    bool is_falling, by_time;

    // The row at hand, after a step.
    struct sealed_opened *at;
    uint32_t row;

    struct sqlite3 *db;
    struct sealed_cache *cache;
    enum record_kind kind;
    struct sqlite3_stmt *segments; // what is left of them
    struct sealed_segment next;    // by time: the first of those; id 0: none
    struct sealed_sorted *open;    // by time
    unsigned open_count, open_room;
};

// The cache is borrowed.
void sealed_walk_init(struct sealed_walk *walk, struct sqlite3 *db, struct sealed_cache *cache,
                      enum record_kind kind);
MUST_CHECK enum status sealed_walk_begin(struct sealed_walk *walk, struct error *err);
// Steps to the next row; STATUS_NO_DATA: there is none.
MUST_CHECK enum status sealed_walk_next(struct sealed_walk *walk, struct error *err);
void sealed_walk_deinit(struct sealed_walk *walk); // also zeroed, and after a failure

// What a failure to decode means, in words.
enum status sealed_walk_failed(const struct sealed_opened *opened, enum status status,
                               struct error *err);

#endif
