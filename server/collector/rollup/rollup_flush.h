// Flushes records from a memtable to the table rollup: aggregates them by series and time
// bucket, one metric after the other, and merges the results into the rows that are there.
//
// Writer thread only; inside of a transaction of the caller's.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_FLUSH_H
#define INFERSTAT_COLLECTOR_ROLLUP_FLUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/key_index.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/rollup/rollup.h"
#include "common/store/rollup/rollup_row.h"
#include "server/collector/rollup/rollup_memtable.h"

struct sqlite3;
struct rollup_flush;

MUST_CHECK enum status rollup_flush_new(struct rollup_flush **out, struct sqlite3 *db,
                                        struct error *err);
void rollup_flush_free(struct rollup_flush *flush);

// A range of a memtable's rows: from `first_row` on, until the groups or the bytes of
// sketches reach a limit.
struct rollup_slice {
    const struct rollup_memtable *memtable;
    size_t first_row;
    size_t groups_most, bytes_most; // 0: any
};

// A group, the records of one full series in one minute, as a grouping sees it.
struct rollup_member {
    int64_t series, minute; // the series' id in the grouping
    uint32_t first, count;  // in `order`
    uint32_t group;
};

// The records of a slice by full series and minute.
struct rollup_groups {
    const struct rollup_memtable *memtable;               // borrowed
    size_t first_row, end_row;                            // those of its rows that are in groups
    uint32_t *order;                                      // they by group
    struct key_index index;                               // full series and minute of each group
    struct rollup_member *members[ROLLUP_GROUPING_COUNT]; // one a group, by series, then minute
};

// Groups the records of a slice, at least one if there is any, and looks up or inserts the ids
// of their series.  Borrows the slice's memtable until the next end or free.
MUST_CHECK enum status rollup_flush_begin(struct rollup_flush *flush,
                                          const struct rollup_slice *slice, struct error *err);
void rollup_flush_end(struct rollup_flush *flush);

// The groups of the slice; valid until it ends.
const struct rollup_groups *rollup_flush_groups(const struct rollup_flush *flush);

enum { ROLLUP_ALL_LEVELS = (1 << ROLLUP_LEVEL_COUNT) - 1 };

// Adds the slice's records to the rows of the levels (bit: enum rollup_level), for all metrics;
// rows that touch `gaps` (by grouping) are left out.  Fails with STATUS_CORRUPT where an
// existing row is damaged: `*damaged` is its key.  Otherwise `damaged->metric` is 0.
MUST_CHECK enum status rollup_flush_write(struct rollup_flush *flush, unsigned levels,
                                          const struct gap_set *gaps,
                                          struct rollup_row_key *damaged, struct error *err);

#endif
