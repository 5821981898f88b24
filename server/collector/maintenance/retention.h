// Retention: deletes records and rollups by age and by the store's size, in slices between the
// writer's groups.  Writer thread only; times are arguments.
//
// A pass expires records by age, then rollups by age, then shrinks the store to its size limit,
// then truncates free pages; the next pass begins a minute later.  To shrink it deletes the
// oldest hours of records first; when none may go, the oldest rollups of the finest level.
// While records wait for the sums of their days, up to 60 passes delete nothing to shrink it.
// Up to 1/32 of the file stays as free pages, for new records, unless it exceeds the limit.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"

struct sqlite3;
struct retention;

// `db` is borrowed.  `has_rollups`: records are deleted only after they were rolled up.
MUST_CHECK enum status retention_new(struct retention **out, struct sqlite3 *db,
                                     const struct retention_rules *rules, bool has_rollups,
                                     struct error *err);
void retention_free(struct retention *retention); // accepts NULL

// Monotonic time at which the next slice is due.
uint64_t retention_due_ns(const struct retention *retention);

// Runs one slice outside of any transaction; `wall_ns` is the current time.  Sets `*changed` to
// true if it wrote to the store.  A failure ends the pass.
MUST_CHECK enum status retention_step(struct retention *retention, int64_t wall_ns, bool *changed,
                                      struct error *err);

// Reports the duration of the slice: adapts the size of its next ones to about 15 ms, and sets
// when the next is due: at once, after three times the duration if `is_busy`, or in a minute
// after the end of a pass.
void retention_record_time(struct retention *retention, uint64_t began_ns, uint64_t ended_ns,
                           bool is_busy);

// Rebuilding has ended: what sums of days were requested are built, as far as they can be.  If a
// pass requested some, the next pass is due at once; after that pass the minute's rest applies.
void retention_sums_built(struct retention *retention);

#endif
