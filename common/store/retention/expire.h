// Retention: deletes old records in batches, the oldest first.  Such records have expired.  Each
// run's ledger (counts of its records by kind; schema.h) counts them as expired, and the table
// `expiry` has the time before which records have expired.  The collector decides when and how
// much.  Each batch is one transaction; earlier batches stay committed after a failure.
//
// Rollups (aggregates of records, computed in advance; rollup.h) of expired records stay.  These
// rows do not expire:
//   * runs, devices and models, since other rows refer to them
//   * records that rollups do not include yet.  A metric's rollups include the ids up to its
//     watermark; expire_last_id finds the lowest one, which the caller passes to expire_slice
//   * records at or after the first time whose rollups are to be rebuilt.  Records with implausible
//     times are in a bucket of their own, before all others (rollup.h)
// A record that arrives later but is older than the expired ones is stored, counted, and deleted
// with the next batch.
//
// Rollups of a level (minute, hour, day, month) have a retention age, too.  The transaction that
// deletes rollups adds a gap (a period for which queries must not use the level) to the table
// rollup_gap, so that queries are correct at any time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/record/record.h"
#include "common/store/rollup/rollup.h"

struct sqlite3;

// True if records of the kind can expire.
bool expire_has_kind(enum record_kind kind);

// Sets `*out` to the highest id of a kind that may expire: the lowest watermark of its metrics; 0
// if a metric has no watermark yet; INT64_MAX for a kind without rollups.
MUST_CHECK enum status expire_last_id(struct sqlite3 *db, enum record_kind kind, int64_t *out,
                                      struct error *err);

// Before records expire, their days need daily rollups ("sums" in the names).  Requests them for
// days before `*before_ns` that lack them (gaps ROLLUP_EXPIRING); expire_slice keeps the records
// until the collector has built them.  Visits at most 40 days with records per call, and lowers
// `*before_ns` to the end of the last one.  Sets `*changed` to whether rollups were missing.  Also
// removes daily gaps of days without records, so that records that come late are counted.
MUST_CHECK enum status expire_want_sums(struct sqlite3 *db, enum record_kind kind,
                                        int64_t *before_ns, bool *changed, struct error *err);

// Sets `*out` to true if rollups requested by expire_want_sums have not been built yet.
MUST_CHECK enum status expire_awaits_sums(struct sqlite3 *db, bool *out, struct error *err);

// A batch of rows to expire: rows of a kind that started before `before_ns` with ids up to
// `last_id`; or, if `is_ahead`, those that started after `before_ns`, a time in the future.
struct expire_rows {
    enum record_kind kind;
    int64_t before_ns; // the start of a minute
    int64_t last_id;   // from expire_last_id; INT64_MAX: any id, if rollups are off
    unsigned count;    // max. rows in the batch
    bool is_ahead;
};

// Deletes the oldest of these rows.  The kind's time in the table `expiry` rises to the end of the
// minute of the last deleted row, at most `before_ns`; if `is_ahead`, only to that of implausible
// times.  Sets `*gone` to the number of rows deleted; 0: none may be deleted now.
MUST_CHECK enum status expire_slice(struct sqlite3 *db, const struct expire_rows *rows,
                                    unsigned *gone, struct error *err);

// Finds the oldest row that may expire: sets its kind and its start.  `any_id`: also considers rows
// above the watermark.  Returns STATUS_NO_DATA if there is none.
MUST_CHECK enum status expire_oldest(struct sqlite3 *db, bool any_id, enum record_kind *kind,
                                     int64_t *started_ns, struct error *err);

// A batch of rollups to expire: those of a grouping and level, of all metrics, that started before
// `before_ns`, which is a bucket boundary of the next coarser level.
struct expire_level {
    enum rollup_grouping grouping;
    enum rollup_level level;
    int64_t before_ns;
    unsigned count; // max. rollups in the batch
};

// Adds the gaps (ROLLUP_OLD) of these rollups and deletes up to `count` of them.  Sets `*gone` to
// the number of rollups deleted; 0: none are left.
MUST_CHECK enum status expire_level_slice(struct sqlite3 *db, const struct expire_level *rollups,
                                          unsigned *gone, struct error *err);

// Sets `*started_ns` to the start of the level's oldest bucket.  Returns STATUS_NO_DATA if there is
// none.
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
