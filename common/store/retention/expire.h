// Letting old rows go, a slice at a time, with the ledger and the table `expiry`
// knowing: for the collector's retention.  Each slice is a transaction of its own, as
// large as the caller asks; what went before a failure stays gone.
//
// Rows of a kind go by their time, the oldest first.  Their rollups stay.  Never go:
//   * runs, devices and models: they say what all else is of
//   * rows that their metrics' rollups do not hold yet (ids above the watermark)
//   * rows at or behind a time whose rollups are to be made from them again
// A row that comes late and is older than what has expired is stored, counted, and
// goes with the next slice.
//
// Rollups of a level go in the opposite order of things: first the table rollup_gap
// says that the level is not there, then the rows go.  So readers are right all along.
#ifndef INFERSTAT_STORE_RETENTION_EXPIRE_H
#define INFERSTAT_STORE_RETENTION_EXPIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/store/rollup/rollup.h"

struct sqlite3;

// Whether rows of the kind expire at all.
bool expire_has_kind(enum record_kind kind);

// The highest id of a kind that may go: what all rollups of it hold; INT64_MAX for
// kinds without rollups.
MUST_CHECK enum status expire_last_id(struct sqlite3 *db, enum record_kind kind, int64_t *out,
                                      struct error *err);

// Before records of a kind that started before a time expire: requests the sums of their
// days where these are not kept (ROLLUP_EXPIRING).  Until the collector has built them,
// expire_slice leaves the records alone.  Looks at some days; `*changed`: some lacked sums.
MUST_CHECK enum status expire_want_sums(struct sqlite3 *db, enum record_kind kind,
                                        int64_t before_ns, bool *changed, struct error *err);

// Rows of a kind that started before `before_ns` and have ids up to `last_id`.
struct expire_rows {
    enum record_kind kind;
    int64_t before_ns; // a minute's start
    int64_t last_id;
    unsigned count; // at most so many in one slice
};

// Deletes the oldest of these rows.  `*gone`: how many; 0: there are no more, and all of the
// kind before `before_ns` counts as expired if any has.
MUST_CHECK enum status expire_slice(struct sqlite3 *db, const struct expire_rows *rows,
                                    unsigned *gone, struct error *err);

// The kind whose oldest row is the oldest of all that may go, that row's time, and the end
// of its hour.  STATUS_NO_DATA: there is none.
// `any_id`: also of rows that no rollup holds.
MUST_CHECK enum status expire_oldest(struct sqlite3 *db, bool any_id, enum record_kind *kind,
                                     int64_t *started_ns, int64_t *end_ns, struct error *err);

// Rollups of one metric, grouping and level that started before `before_ns`, a start
// of the next coarser level's.
struct expire_level {
    const struct query_metric *metric;
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t before_ns;
    unsigned count;
};

// Says in rollup_gap that they are old, then deletes some.  `*gone` as above.
MUST_CHECK enum status expire_level_slice(struct sqlite3 *db, const struct expire_level *rollups,
                                          unsigned *gone, struct error *err);

// The metric and grouping with the level's oldest bucket, into `*out` with that bucket
// as before_ns.  STATUS_NO_DATA: there is no bucket.
MUST_CHECK enum status expire_oldest_level(struct sqlite3 *db, enum rollup_level level,
                                           struct expire_level *out, struct error *err);

// What the store's file is made of.
struct expire_room {
    int64_t bytes; // of the file, all pages
    int64_t free;  // of them not in use
};
MUST_CHECK enum status expire_room(struct sqlite3 *db, struct expire_room *room, struct error *err);

// Gives up to `pages` free pages back to the file system.
MUST_CHECK enum status expire_give_back(struct sqlite3 *db, unsigned pages, struct error *err);

#endif
