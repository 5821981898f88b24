// The table rollup_gap: where levels of rollups are not kept (rollup.h), as those need
// it who write rollups; and which ids records may get that come to a store.
//
// All of it inside of a transaction of the caller's, where anything is changed.
#ifndef INFERSTAT_STORE_GAP_TABLE_H
#define INFERSTAT_STORE_GAP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup.h"

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

// Adds a gap; what it touches or overlaps of the same sort becomes one with it.
MUST_CHECK enum status gap_add(struct sqlite3 *db, const struct gap *gap, struct error *err);

// The same of many: `gap` with the times of each span.
MUST_CHECK enum status gap_add_spans(struct sqlite3 *db, const struct gap *gap,
                                     const struct gap_span *spans, size_t count, struct error *err);

// Takes the gap's time out of all gaps of the same sort.
MUST_CHECK enum status gap_remove(struct sqlite3 *db, const struct gap *gap, struct error *err);

// Has the days that touch the spans rebuilt from their records; until then these are read.
// For whoever changes records that rollups hold.  New records need no such call.
MUST_CHECK enum status gap_request_rebuild(struct sqlite3 *db, enum record_kind kind,
                                           const struct gap_span *spans, size_t count,
                                           struct error *err);

// The highest id that a record of the kind ever had, as far as the store knows: rollups
// remember those of rows that are gone.  A new record's id is above it.
MUST_CHECK enum status gap_last_id(struct sqlite3 *db, enum record_kind kind, int64_t *id,
                                   struct error *err);

// ---- In memory ---------------------------------------------------------------------------

// Per level the times in which no row of it is to be used: those of its own gaps and of
// coarser levels', rising and apart.
struct gap_set {
    struct gap_span *spans[ROLLUP_LEVEL_COUNT];
    size_t count[ROLLUP_LEVEL_COUNT];
};

// Reads the gaps of a kind and grouping; all but those of days that are to be rebuilt where
// `without_cleared`.  `*set` is zeroed, or one of before, which is freed.
MUST_CHECK enum status gap_set_read(struct gap_set *set, struct sqlite3 *db, enum record_kind kind,
                                    enum rollup_grouping grouping, bool without_cleared,
                                    struct error *err);

// The same of all gaps, but for the part of days to be rebuilt that lies in `span`.
MUST_CHECK enum status gap_set_read_but(struct gap_set *set, struct sqlite3 *db,
                                        enum record_kind kind, enum rollup_grouping grouping,
                                        const struct gap_span *span, struct error *err);
void gap_set_deinit(struct gap_set *set);

// Whether a level is not to be used anywhere between the times.
bool gap_set_covers(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                    int64_t until_ns);

// Whether a level is not to be used somewhere between the times.
bool gap_set_touches(const struct gap_set *set, enum rollup_level level, int64_t since_ns,
                     int64_t until_ns);

#endif
