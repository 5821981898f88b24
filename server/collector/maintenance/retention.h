// Lets go of what is older than the rules say, or more than they allow, in small
// slices between the writer's groups.  Writer thread only; times are passed in.
//
// A pass looks at records by age, at rollups by age, at the file's size, and gives
// free pages back; then it rests until the next minute.  Records go before rollups,
// finer rollups before coarser ones, and the oldest first.  Free pages that the next
// records will fill stay in the file: a thirty-second of it, where bytes allow.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/maintenance/retention_rules.h"

struct sqlite3;
struct retention;

// `db` is borrowed.  `has_rollups`: records are rolled up, and only go once they are.
MUST_CHECK enum status retention_new(struct retention **out, struct sqlite3 *db,
                                     const struct retention_rules *rules, bool has_rollups,
                                     struct error *err);
void retention_free(struct retention *retention); // NULL is fine

// When the next slice is due, as a monotonic time.
uint64_t retention_due_ns(const struct retention *retention);

// Does one slice, at most one transaction, outside of any other.  `wall_ns`: now.
// `*changed`: something was written.  Where it fails the pass is over, and said once.
MUST_CHECK enum status retention_step(struct retention *retention, int64_t wall_ns, bool *changed,
                                      struct error *err);

// What the slice took: the next one is made larger or smaller to take about 15 ms, and
// waits three times as long where others have work to do.
void retention_took(struct retention *retention, uint64_t began_ns, uint64_t ended_ns,
                    bool is_busy);

// All sums of days that were requested are built, as far as they can be.  If records were
// waiting for them, the next pass is due at once; after that pass the minute's rest applies.
void retention_sums_built(struct retention *retention);

#endif
