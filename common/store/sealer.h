// Seals rows of a kind (sealed.h): reads them, packs them and puts a segment in their
// place, in steps of some milliseconds.
//
// Nothing is changed but by the last step of a segment, in a transaction of its own: the
// segment goes in and its rows go out.  Rows that were deleted meanwhile make that step
// give the segment up.  What stays where it is: what is no integer where integers belong,
// what failed (an index finds it), what arrived more than an hour after it started, and
// what is too young.  The newest row stays in any case: ids go on from it.  Nothing is
// sealed of a table on which others hung something (own_table.h): STATUS_UNSUPPORTED.
#ifndef INFERSTAT_STORE_SEALER_H
#define INFERSTAT_STORE_SEALER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/record.h"

struct sealer;
struct sqlite3;

enum {
    SEALER_LEAST_ROWS = 1024, // of a segment between others; elsewhere it is full
};

MUST_CHECK enum status sealer_new(struct sealer **out, struct sqlite3 *db, enum record_kind kind,
                                  struct error *err);
void sealer_free(struct sealer *sealer); // NULL is fine

// What may be sealed: rows that started and arrived before a time, with ids up to one.
struct sealer_limits {
    int64_t before_ns;
    int64_t last_id;
    uint32_t rows; // of the next segment that is begun; up to SEAL_ROWS_MAX
};

// Rows with lower ids are there again, or may be sealed now: the next step begins with the
// lowest.
void sealer_restart(struct sealer *sealer);

// Does one step.  `*done`: there is nothing more to seal for now, and the next step begins
// to look anew.  `*sealed`: it committed a
// segment of so many rows.  After a failure the
// next step begins anew, too.
MUST_CHECK enum status sealer_step(struct sealer *sealer, const struct sealer_limits *limits,
                                   bool *done, uint32_t *sealed, struct error *err);

#endif
