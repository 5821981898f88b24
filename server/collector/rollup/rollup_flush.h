// Memtable flush: aggregates the records of a memtable by series and time bucket, one metric after
// the other, and merges the results into the rows of the SQL table rollup.
//
// A memtable holds records that are not in rollups yet (rollup_memtable.h).  A grouping is a set of
// columns, such as model and host (enum rollup_grouping).  A series is one combination of values of
// these columns.
//
// For each slice of a memtable the caller calls rollup_flush_begin, then rollup_flush_write, then
// rollup_flush_end (also after a failure).
//
// Writer thread only, inside a transaction that the caller has begun.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/key_index.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/rollup/rollup.h"
#include "common/store/rollup/rollup_row.h"
#include "server/collector/rollup/rollup_memtable.h"

struct rollup_flush;

MUST_CHECK enum status rollup_flush_new(struct rollup_flush **out, struct sqlite3 *db,
                                        struct error *err);
void rollup_flush_free(struct rollup_flush *flush); // NULL is fine

// A range of a memtable's rows: from `first_row` on, until the number of rows or groups or the
// bytes of quantile sketches reach a limit.  The next slice begins at rollup_groups.end_row.
struct rollup_slice {
    const struct rollup_memtable *memtable;
    size_t first_row, rows_most;
    size_t groups_most, bytes_most; // the limits; 0: none
};

// A group is the records of one full series (by all grouping columns) in one minute.  In each
// grouping it belongs to one, possibly coarser, series: a member is this pair of group and series.
struct rollup_member {
    int64_t series, minute; // id of the series in the grouping, and the minute
    uint32_t first, count;  // the group's records: a range of rollup_groups.order
    uint32_t group;         // number of the group, from 0
    int64_t host;           // name id of the group's host
};

// The groups of a slice.
struct rollup_groups {
    const struct rollup_memtable *memtable; // borrowed
    size_t first_row, end_row;              // the memtable's rows that are in groups
    uint32_t *order;                        // these rows, ordered by group
    struct key_index index;                 // full series and minute of each group
    // By grouping: a member for each group, ordered by series, then minute.
    struct rollup_member *members[ROLLUP_GROUPING_COUNT];
};

// Groups the records of a slice, at least one if there is any, and looks up or inserts the ids
// of their series.  Borrows the slice's memtable until rollup_flush_end or rollup_flush_free.
MUST_CHECK enum status rollup_flush_begin(struct rollup_flush *flush,
                                          const struct rollup_slice *slice, struct error *err);
void rollup_flush_end(struct rollup_flush *flush);

// Restricts rollup_flush_write, until the next call or rollup_flush_begin, to the next hosts after
// `after` by name id (INT64_MIN: from the first on) that have `groups_most` groups together, or one
// host that has more.  Returns the last of them; INT64_MAX: none follows.  INT64_MIN: out of
// memory.
int64_t rollup_flush_choose(struct rollup_flush *flush, int64_t after, size_t groups_most);

// Returns the groups of the slice, valid until rollup_flush_end.
const struct rollup_groups *rollup_flush_groups(const struct rollup_flush *flush);

enum { ROLLUP_ALL_LEVELS = (1 << ROLLUP_LEVEL_COUNT) - 1 };

// Metrics of a kind: places in rollup_metrics_of.
struct rollup_metric_span {
    unsigned first, end;
};
#define ROLLUP_METRICS_ALL ((struct rollup_metric_span){0, ROLLUP_METRICS_MAX})

// Adds the slice's records to the rollup rows of the levels (bit i: enum rollup_level i), for some
// metrics.  `gaps` is an array with a set per grouping: rollup rows that overlap a gap, an interval
// without rollups (gap_table.h), are left out.  Returns STATUS_CORRUPT if an existing row is
// damaged, and sets `*damaged` to the key of that row; otherwise `damaged->metric` is 0.
MUST_CHECK enum status rollup_flush_write(struct rollup_flush *flush,
                                          const struct rollup_metric_span *span, unsigned levels,
                                          const struct gap_set *gaps,
                                          struct rollup_row_key *damaged, struct error *err);
