// Data access for the table rollup_gap, which lists the gaps of rollups.  Rollups are stored
// aggregates of records per minute, hour, day or month (the level; rollup.h).  A gap is a period
// for which queries must not use a level, since its rollups are missing or invalid.  A gap of a
// level is also a gap of all finer levels; exception: ROLLUP_MONTHS_ALONE means only the months.
// Modules that write or delete rollups change gaps.  Queries read them into a struct gap_set.
// The module also reads the highest record ids, and the times before which records have expired.
//
// Functions that change the table run inside the caller's transaction.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

struct sqlite3;

// One row of the table.
struct gap {
    enum record_kind kind; // applies to all metrics of the kind
    enum rollup_grouping grouping;
    enum rollup_level level;    // the coarsest unusable level, or ROLLUP_MONTHS_ALONE
    int64_t since_ns, until_ns; // since <= time < until
    enum rollup_why why;
};

struct gap_span {
    int64_t since_ns, until_ns;
};

// Adds a gap, merging it with adjacent or overlapping gaps of the same kind, grouping, level and
// reason.
MUST_CHECK enum status gap_add(struct sqlite3 *db, const struct gap *gap, struct error *err);

// Subtracts the gap's period from all gaps of the same kind, grouping, level and reason.
MUST_CHECK enum status gap_remove(struct sqlite3 *db, const struct gap *gap, struct error *err);

// Calls `change` (gap_add or gap_remove) with the gap once for each grouping; gap.grouping is
// ignored.
typedef enum status gap_change(struct sqlite3 *db, const struct gap *gap, struct error *err);
MUST_CHECK enum status gap_each_grouping(struct sqlite3 *db, gap_change *change, struct gap gap,
                                         struct error *err);

// Adds a gap (ROLLUP_MONTHS_ALONE) for the months that overlap `span`.  Queries then use the
// rollups of these months' days, since rollups of months are not rebuilt.
MUST_CHECK enum status gap_drop_months(struct sqlite3 *db, enum record_kind kind,
                                       const struct gap_span *span, struct error *err);

// Requests a rebuild of the rollups of all days that overlap the spans.  Until the rebuild, queries
// read the records of these days.  The rollups of the days' months are not used again.  To be
// called when records that rollups include are changed or deleted; not for new records.
MUST_CHECK enum status gap_request_rebuild(struct sqlite3 *db, enum record_kind kind,
                                           const struct gap_span *spans, size_t count,
                                           struct error *err);

// Deletes up to `count` rollups that start in `span`, of the metrics, groupings and levels that the
// SQL condition `where` on the table rollup selects.  Sets `*gone` to the number of rollups
// deleted.
MUST_CHECK enum status gap_erase(struct sqlite3 *db, const char *where, const struct gap_span *span,
                                 unsigned count, unsigned *gone, struct error *err);

// Sets `*id` to the highest known id that a record of the kind has ever had; watermarks (per metric
// the highest id in its rollups) tell the ids of deleted rows.  New records must get higher ids.
MUST_CHECK enum status gap_last_id(struct sqlite3 *db, enum record_kind kind, int64_t *id,
                                   struct error *err);

// Sets `*until_ns` to the time before which some or all records of a kind have expired (the table
// expiry); INT64_MIN: none have.
MUST_CHECK enum status gap_read_expired(struct sqlite3 *db, enum record_kind kind,
                                        int64_t *until_ns, struct error *err);

// The records of a kind that rollups go on counting after their rows are deleted: those with ids up
// to `last_id` (the highest watermark) that started before `until_ns` (the end of the last day with
// expired records).  For a kind without rollups `last_id` is 0 and `until_ns` is the time in the
// table expiry.  INT64_MIN: nothing has expired.
struct gap_kept {
    int64_t last_id, until_ns;
};
MUST_CHECK enum status gap_read_kept(struct sqlite3 *db, enum record_kind kind,
                                     struct gap_kept *kept, struct error *err);

// ---- In memory ---------------------------------------------------------------------------

// For each level, the periods in which its rollups must not be used, ascending and disjoint; at
// first zeroed.  `room`: spans allocated.
struct gap_set {
    struct gap_span *spans[ROLLUP_LEVEL_COUNT];
    size_t count[ROLLUP_LEVEL_COUNT], room[ROLLUP_LEVEL_COUNT];
};

// Reads the gaps of a kind and grouping.  Of gaps to be rebuilt (ROLLUP_CLEARED, ROLLUP_EXPIRING)
// the part inside `but` is omitted: GAP_NO_SPAN omits nothing, GAP_ALL_TIME omits them all.  `*set`
// is zeroed or from an earlier call.
#define GAP_NO_SPAN  (&(const struct gap_span){0, 0})
#define GAP_ALL_TIME (&(const struct gap_span){INT64_MIN, INT64_MAX})
MUST_CHECK enum status gap_set_read(struct gap_set *set, struct sqlite3 *db, enum record_kind kind,
                                    enum rollup_grouping grouping, const struct gap_span *but,
                                    struct error *err);
void gap_set_deinit(struct gap_set *set);

// Adds a gap to the levels that it makes unusable: `level` and all finer ones, or for
// ROLLUP_MONTHS_ALONE the months only.  Gaps must come in ascending order of their starts.
MUST_CHECK enum status gap_set_add(struct gap_set *set, enum rollup_level level, int64_t since_ns,
                                   int64_t until_ns);

// The first gap of a level that ends after `time_ns`; NULL: none.
const struct gap_span *gap_set_behind(const struct gap_set *set, enum rollup_level level,
                                      int64_t time_ns);

// True if gaps make the level unusable in all of the period.
bool gap_set_covers(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                    int64_t until_ns);

// True if gaps make the level unusable in some of the period.
bool gap_set_touches(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                     int64_t until_ns);
