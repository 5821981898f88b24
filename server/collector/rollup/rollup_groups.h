// Groups the records of a memtable by series and minute.  Writer thread only.
#ifndef INFERSTAT_COLLECTOR_ROLLUP_GROUPS_H
#define INFERSTAT_COLLECTOR_ROLLUP_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"
#include "server/collector/rollup/rollup_upsert.h"
#include "server/collector/rollup/rollup_memtable.h"

// The records of one full series in one minute.
struct rollup_minute {
    int64_t minute;
    uint32_t series;       // of the memtable
    uint32_t first, count; // in `order`
};

// A group in one grouping.
struct rollup_member {
    int64_t series, minute; // the series' id in the grouping
    uint32_t group;
};

// A range of a memtable's rows: from `first_row` on, until the groups or the bytes of
// sketches reach a limit.
struct rollup_slice {
    const struct rollup_memtable *memtable;
    size_t first_row;
    size_t groups_most, bytes_most; // 0: any
};

// Zero-initialised: empty.
struct rollup_groups {
    const struct rollup_memtable *memtable; // borrowed
    size_t first_row, end_row;              // those of its rows that are in groups
    uint32_t *order;                        // they by group
    struct rollup_minute *list;
    size_t count, room;
    struct rollup_member *members[ROLLUP_GROUPING_COUNT]; // `count`, by series, then minute
};

// Groups the records of a slice, at least one if there is any, and looks up or inserts the
// ids of their series in the caller's transaction.  `groups` is zeroed.
MUST_CHECK enum status rollup_groups_init(struct rollup_groups *groups,
                                          const struct rollup_slice *slice,
                                          struct rollup_upsert *upsert, struct error *err);
void rollup_groups_deinit(struct rollup_groups *groups);

#endif
