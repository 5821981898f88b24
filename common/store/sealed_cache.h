// Segments that a connection has read lately, so that what asks for one row after the
// other, or for the same hour again, does not decode them anew.
#ifndef INFERSTAT_STORE_SEALED_CACHE_H
#define INFERSTAT_STORE_SEALED_CACHE_H

#include "common/store/sealed.h"

enum { SEALED_KEPT = 4 };

// A segment at hand, with the places of the kind's columns in it.
struct sealed_opened {
    struct sealed_segment segment;
    struct seal_reader *reader;
    int places[SEAL_COLUMNS_MAX];                 // of seal_columns; -1: it does not have that
    struct seal_column columns[SEAL_COLUMNS_MAX]; // values: NULL, not looked at yet
    uint64_t used;                                // when, by the cache's count
    unsigned users;
};

// Zeroed to begin with.  Of one connection, and so of one thread.
struct sealed_cache {
    struct sealed_opened *kept[SEALED_KEPT];
    uint64_t clock;
};

// A segment by its id and what is known of it: one that was cleared or opened meanwhile,
// and whose id another has now, is another.  Give it back with sealed_cache_give.
MUST_CHECK enum status sealed_cache_take(struct sealed_cache *cache, struct sqlite3 *db,
                                         const struct sealed_segment *segment,
                                         struct sealed_opened **out, struct error *err);
// A value of one of seal_columns; 0 where it is absent.  STATUS_CORRUPT, STATUS_NOMEM.
MUST_CHECK enum status sealed_value(struct sealed_opened *opened, unsigned kept, uint32_t row,
                                    int64_t *value, bool *is_absent);

void sealed_cache_give(struct sealed_cache *cache, struct sealed_opened *opened); // NULL is fine
void sealed_cache_deinit(struct sealed_cache *cache);

#endif
