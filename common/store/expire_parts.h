// What the files of expire.h share.
#ifndef INFERSTAT_STORE_EXPIRE_PARTS_H
#define INFERSTAT_STORE_EXPIRE_PARTS_H

#include "common/store/expire.h"

// Says that rows of the kind that started before a time have expired; never takes that
// back.
MUST_CHECK enum status expire_until(struct sqlite3 *db, enum record_kind kind, int64_t until_ns,
                                    struct error *err);

// Ends the transaction: with its changes where `status` is STATUS_OK, or without.
MUST_CHECK enum status expire_end(struct sqlite3 *db, enum status status, struct error *err);

// The sealed rows of a slice, a segment at a time; `before_ns`: as far as rollups do not
// need them.  `*gone`: so many; 0: there is nothing to do now.
MUST_CHECK enum status expire_sealed(struct sqlite3 *db, const struct expire_rows *rows,
                                     int64_t before_ns, unsigned *gone, struct error *err);

#endif
