// Rows taken out of a sealed segment: it is written anew without them.
#ifndef INFERSTAT_STORE_SEALED_CUT_H
#define INFERSTAT_STORE_SEALED_CUT_H

#include "common/store/sealed.h"

struct sealed_cut {
    struct sealed_segment segment; // that is cut
    int64_t *ids;                  // that go, rising
    uint32_t count, room;
    struct sealed_segment left; // what it becomes; no rows: it goes
    struct seal_writer *writer; // of that
    struct seal_rows rows;
    unsigned char *absent[SEAL_COLUMNS_MAX];
};

// Ids rise.  Begins with zeros but for the segment.
MUST_CHECK enum status sealed_cut_add(struct sealed_cut *cut, int64_t id, struct error *err);

// Packs what is left.  Changes nothing yet.
MUST_CHECK enum status sealed_cut_prepare(struct sealed_cut *cut, struct sqlite3 *db,
                                          struct error *err);

// Puts what is left in the segment's place, in the caller's transaction.
MUST_CHECK enum status sealed_cut_store(const struct sealed_cut *cut, struct sqlite3 *db,
                                        struct error *err);

void sealed_cut_deinit(struct sealed_cut *cut);

#endif
