// Retention: deletes records and rollups (pre-aggregated rows) by age and by the store's size, in
// slices between the writer's group commits.  Writer thread only; times are arguments.
//
// A pass has these steps, each of one or more slices:
//   1. delete records by age;
//   2. delete rollups by age;
//   3. remove runs without records (forget.h): after an hour if the run never had records, else at
//      the age at which records expire; if the store exceeds its limit, after 10 minutes;
//   4. shrink the store to its size limit: delete records with implausible times, then the oldest
//      records.  If no records may be deleted, delete the oldest rollups of the finest level;
//   5. truncate free pages.  Up to 1/32 of the file stays free, unless the file exceeds the limit.
// The next pass begins a minute later; a second later while the store exceeds its limit and does
// not wait for rollups.
//
// If rollups are written, records are deleted only after the rollups of their day are built.  While
// some records still wait for this, step 4 deletes nothing, but for at most 5 passes in a row.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"

struct sqlite3;
struct retention;

// `db` is borrowed, `rules` is copied.  If `has_rollups`, records are deleted only after they were
// rolled up.
MUST_CHECK enum status retention_new(struct retention **out, struct sqlite3 *db,
                                     const struct retention_rules *rules, bool has_rollups,
                                     struct error *err);
void retention_free(struct retention *retention); // accepts NULL

// Returns the monotonic time at which the next slice is due.
uint64_t retention_due_ns(const struct retention *retention);

// Runs one slice, outside any transaction; `wall_ns` is the current wall-clock time.  Sets
// `*changed` to true if the slice wrote to the store.  A failure ends the pass.
MUST_CHECK enum status retention_step(struct retention *retention, int64_t wall_ns, bool *changed,
                                      struct error *err);

// Sets `*over` to the bytes by which the store exceeds its limit, or 0.  When it begins to exceed
// it, the next pass is due at once.
MUST_CHECK enum status retention_excess(struct retention *retention, uint64_t *over,
                                        struct error *err);

// True if runs were removed since the last call.
bool retention_removed_runs(struct retention *retention);

// Reports the monotonic times of the last slice; call it after each.  Adapts the size of later
// slices to about 15 ms.  Schedules the next slice: when the next pass begins, if this one has
// ended; else after three times the slice's duration, if `is_busy` and the store is within its
// limit; else at once.
void retention_record_time(struct retention *retention, uint64_t began_ns, uint64_t ended_ns,
                           bool is_busy);

// Says that all daily rollups that a pass requested are built, as far as they can be.  If a pass
// requested any, the next pass is due at once.
void retention_sums_built(struct retention *retention);
