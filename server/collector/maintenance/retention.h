// Retention: deletes records and rollups (pre-aggregated rows) by age and by the store's size, in
// slices between the writer's group commits.  Writer thread only; times are arguments.
//
// A pass consists of slices, in this order: expire records by age; expire rollups by age; remove
// runs without records (forget.h), those that never had any after an hour, the others when they are
// older than records become; shrink the store to its size limit; truncate free pages.  The next
// pass begins a minute later, while the store exceeds its limit a second later.
//
// To shrink the store, a pass deletes the oldest hours of records; if no records may be deleted,
// the oldest rollups of the finest level.  Records may be deleted only after the rollups of their
// days are built: while any wait for that, up to 5 passes in a row delete nothing for size.  Up to
// 1/32 of the file stays as free pages for new records, unless the file exceeds the limit.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_H

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

// Sets `*bytes` to what each owner of runs may send in a second: the less, the more the store
// exceeds its limit; 0 from 17/16 of the limit on (64 KB where for two minutes nothing could be
// deleted: a store that cannot shrink must not refuse everything without end), UINT64_MAX while the
// store does not exceed it.  A pass that awaits its time is due at once when the store begins to
// exceed its limit.
MUST_CHECK enum status retention_pressure(struct retention *retention, uint64_t *bytes,
                                          struct error *err);

// True if runs were removed since the last call.
bool retention_removed_runs(struct retention *retention);

// Reports the times of the last slice, call it after each.  Adapts the size of later slices to
// about 15 ms, and schedules the next: at once, after three times the duration if `is_busy` and the
// store is within its limit, or when the next pass begins.
void retention_record_time(struct retention *retention, uint64_t began_ns, uint64_t ended_ns,
                           bool is_busy);

// Says that the rebuilding of rollups has ended: all daily rollups that a pass requested are
// built, as far as they can be.  If a pass requested any, the next pass is due at once.
void retention_sums_built(struct retention *retention);

#endif
