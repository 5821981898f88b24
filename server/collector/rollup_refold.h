// Rollups of a span made from its records: these are read a chunk at a time, by their time,
// and each chunk is folded a metric at a time, so that a step takes some milliseconds
// however many there are.  Inside of a transaction of the caller's; writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_REFOLD_H
#define INFERSTAT_COLLECTOR_ROLLUP_REFOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/gap_table.h"
#include "server/collector/rollup_fold.h"

struct sqlite3;
struct rollup_refold;

MUST_CHECK enum status rollup_refold_new(struct rollup_refold **out, struct sqlite3 *db,
                                         struct error *err);
void rollup_refold_free(struct rollup_refold *refold); // NULL is fine

// Takes up a kind, of whose records those up to the watermark are wanted.
MUST_CHECK enum status rollup_refold_open(struct rollup_refold *refold, enum record_kind kind,
                                          int64_t watermark, struct error *err);

// Forgets the kind, and what was under way: after a rollback, too.
void rollup_refold_close(struct rollup_refold *refold);

// Goes on to the records of a time on.
void rollup_refold_begin(struct rollup_refold *refold, int64_t since_ns);

// Whether what was begun is before that time, and nothing of it is half done.
bool rollup_refold_is_before(const struct rollup_refold *refold, int64_t since_ns);

// Reads a chunk of the records up to the span's end, or folds one metric of the chunk into
// the rows of the scope.
MUST_CHECK enum status rollup_refold_step(struct rollup_refold *refold, const struct gap_span *span,
                                          const struct rollup_scope *scope, struct error *err);

// Whether all of the span is in.
bool rollup_refold_is_done(const struct rollup_refold *refold);

#endif
