// Retention: deletes old rows in batches, the oldest first, and records it in the runs' ledgers
// (record counts by run and kind) and the table `expiry`.  Each batch is one transaction; earlier
// batches stay committed after a failure.
//
// Rollups of expired rows stay.  These rows never expire:
//   * runs, devices and models: other rows refer to them
//   * rows above the watermark of a metric, which its rollups do not include yet
//   * rows at or after a time whose rollups are to be rebuilt
// A row that arrives later but is older than the expired ones is stored, counted, and deleted with
// the next batch.
//
// To delete a level of rollups, a gap is first added to the table rollup_gap, then the rows are
// deleted; so queries are correct at any time.
#ifndef INFERSTAT_STORE_RETENTION_EXPIRE_H
#define INFERSTAT_STORE_RETENTION_EXPIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/store/rollup/rollup.h"

struct sqlite3;

// Whether rows of the kind can expire.
bool expire_has_kind(enum record_kind kind);

// The highest id of a kind that may expire: the lowest watermark of its metrics; INT64_MAX for
// kinds without rollups.
MUST_CHECK enum status expire_last_id(struct sqlite3 *db, enum record_kind kind, int64_t *out,
                                      struct error *err);

// Requests daily rollups for days before `*before_ns` that have none (ROLLUP_EXPIRING), before
// their records expire; expire_slice keeps the records until the collector has built them.  Visits
// a few days per call and lowers `*before_ns` to the end of the last one; `*changed`: some rollups
// were missing.  Daily gaps of days without records are removed, for records that come late.
MUST_CHECK enum status expire_want_sums(struct sqlite3 *db, enum record_kind kind,
                                        int64_t *before_ns, bool *changed, struct error *err);

// Whether some of these have not been built yet.
MUST_CHECK enum status expire_awaits_sums(struct sqlite3 *db, bool *out, struct error *err);

// A batch of rows to expire: rows of a kind that started before `before_ns` with ids up to
// `last_id`.
struct expire_rows {
    enum record_kind kind;
    int64_t before_ns; // a minute's start
    int64_t last_id;
    unsigned count; // max. rows in the batch
};

// Deletes the oldest of these rows; the kind's time in the table `expiry` becomes the end of the
// last deleted row's minute, at most `before_ns`.  `*gone`: rows deleted; 0: none are left.
MUST_CHECK enum status expire_slice(struct sqlite3 *db, const struct expire_rows *rows,
                                    unsigned *gone, struct error *err);

// Finds the oldest row that may expire: its kind and its start.  `any_id`: includes rows above the
// watermark.  STATUS_NO_DATA: none.
MUST_CHECK enum status expire_oldest(struct sqlite3 *db, bool any_id, enum record_kind *kind,
                                     int64_t *started_ns, struct error *err);

// A batch of rollups to expire: those of one metric, grouping and level that started before
// `before_ns`, which is a bucket boundary of the next coarser level.
struct expire_level {
    const struct query_metric *metric;
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t before_ns;
    unsigned count;
};

// Adds the gap (ROLLUP_OLD), then deletes up to `count` rollups.  `*gone`: rows deleted.
MUST_CHECK enum status expire_level_slice(struct sqlite3 *db, const struct expire_level *rollups,
                                          unsigned *gone, struct error *err);

// The start of the oldest bucket of a level.  STATUS_NO_DATA: none.
MUST_CHECK enum status expire_oldest_level(struct sqlite3 *db, enum rollup_level level,
                                           int64_t *started_ns, struct error *err);

// Size of the store's file.
struct expire_room {
    int64_t bytes; // all pages
    int64_t free;  // free pages
};
MUST_CHECK enum status expire_room(struct sqlite3 *db, struct expire_room *room, struct error *err);

// Returns up to `pages` free pages to the file system.
MUST_CHECK enum status expire_give_back(struct sqlite3 *db, unsigned pages, struct error *err);

#endif
