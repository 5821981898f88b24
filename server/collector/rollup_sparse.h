// Rollups that are not worth it: where a level has few records in a row, reading the
// records is as good, and its rows cost more than they save.  So the rows of a bucket
// that is over are looked at, in each grouping, and where they do not pay they go, with
// a gap (ROLLUP_SPARSE) in their place; of older records that come all at once they are
// not even made.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_SPARSE_H
#define INFERSTAT_COLLECTOR_ROLLUP_SPARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/gap_table.h"
#include "server/collector/rollup_groups.h"

struct sqlite3;
struct rollup_sparse;

MUST_CHECK enum status rollup_sparse_new(struct rollup_sparse **out, struct sqlite3 *db,
                                         struct error *err);
void rollup_sparse_free(struct rollup_sparse *sparse);

// Before a sheet's first metric is folded: adds gaps where its records alone are all
// there is of a bucket that is over, and too few.  `gaps` (by grouping) are those there
// are.  Sets `*added` where it added some.
MUST_CHECK enum status rollup_sparse_foresee(struct rollup_sparse *sparse,
                                             const struct rollup_groups *groups,
                                             const struct gap_set *gaps, int64_t wall_ns,
                                             bool *added, struct error *err);

// Whether there is something to look at or to delete.
bool rollup_sparse_is_due(const struct rollup_sparse *sparse, int64_t wall_ns);

// Looks at one bucket that is over, or deletes some of the rows of one, in the caller's
// transaction.  Sets `*added` where it added a gap.
MUST_CHECK enum status rollup_sparse_step(struct rollup_sparse *sparse, int64_t wall_ns,
                                          bool *added, struct error *err);

// Whether rows are under way to be deleted; deletes some of them, and nothing else.
bool rollup_sparse_is_erasing(const struct rollup_sparse *sparse);
MUST_CHECK enum status rollup_sparse_erase(struct rollup_sparse *sparse, struct error *err);

// After a rollback: looks again.
void rollup_sparse_forget(struct rollup_sparse *sparse);

#endif
