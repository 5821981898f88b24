// The table rollup_gap: the periods without a level of rollups (rollup.h).  For writers of
// rollups; and which ids new records may get.
//
// Changes are made inside of a transaction of the caller's.
#ifndef INFERSTAT_STORE_ROLLUP_GAP_TABLE_H
#define INFERSTAT_STORE_ROLLUP_GAP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

struct sqlite3;

// One row.
struct gap {
    enum record_kind kind;
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t since_ns, until_ns; // since <= time < until
    enum rollup_why why;
};

struct gap_span {
    int64_t since_ns, until_ns;
};

// Adds a gap, merged with those of the same kind, grouping, level and reason that it touches.
MUST_CHECK enum status gap_add(struct sqlite3 *db, const struct gap *gap, struct error *err);

// Removes the gap's period from all gaps of the same kind, grouping, level and reason.
MUST_CHECK enum status gap_remove(struct sqlite3 *db, const struct gap *gap, struct error *err);

// Requests that the days that touch the spans are rebuilt from their records; until then
// queries read these.  For changes of records that rollups include; new records need no call.
MUST_CHECK enum status gap_request_rebuild(struct sqlite3 *db, enum record_kind kind,
                                           const struct gap_span *spans, size_t count,
                                           struct error *err);

// The highest id that a record of the kind ever had, as far as the store knows: watermarks
// cover deleted rows.  New ids are above it.
MUST_CHECK enum status gap_last_id(struct sqlite3 *db, enum record_kind kind, int64_t *id,
                                   struct error *err);

// ---- In memory ---------------------------------------------------------------------------

// Per level the periods in which its rows must not be used, rising and disjoint.
struct gap_set {
    struct gap_span *spans[ROLLUP_LEVEL_COUNT];
    size_t count[ROLLUP_LEVEL_COUNT], room[ROLLUP_LEVEL_COUNT];
};

// Reads the gaps of a kind and grouping, except the parts of days to be rebuilt that lie in
// `but`: GAP_NO_SPAN leaves out none, GAP_ALL_TIME all.  `*set` is zeroed or of an earlier call.
#define GAP_NO_SPAN  (&(const struct gap_span){0, 0})
#define GAP_ALL_TIME (&(const struct gap_span){INT64_MIN, INT64_MAX})
MUST_CHECK enum status gap_set_read(struct gap_set *set, struct sqlite3 *db, enum record_kind kind,
                                    enum rollup_grouping grouping, const struct gap_span *but,
                                    struct error *err);
void gap_set_deinit(struct gap_set *set);

// Whether a level must not be used anywhere between the times.
bool gap_set_covers(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                    int64_t until_ns);

// Whether a level must not be used somewhere between the times.
bool gap_set_touches(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                     int64_t until_ns);

#endif
