// Interval set of the records that a spool cannot read back; each range is reported once.
// Bounded: when full, neighbouring unreported ranges are merged, including the gap between
// them.
#ifndef INFERSTAT_MONITOR_SPOOL_LOST_H
#define INFERSTAT_MONITOR_SPOOL_LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/delivery/delivery.h"

enum { SPOOL_LOST_MAX = DELIVERY_DROPS_MAX };

// Zeroed: empty.  Sorted by stream and first number, disjoint.
struct spool_lost {
    struct spool_lost_item {
        struct delivery_range range;
        bool told; // reported by spool_lost_next
    } * items;
    size_t count, room;
};

void spool_lost_deinit(struct spool_lost *lost);

// Adds the parts of the range that the set lacks.  False: out of memory, or full of reported
// ranges; some parts are missing.
bool spool_lost_add(struct spool_lost *lost, const struct delivery_range *range);

// Removes numbers first..last of a stream.  False: a range could not be split (as for
// spool_lost_add); its upper part is removed too.
bool spool_lost_cut(struct spool_lost *lost, uint32_t stream, uint64_t first, uint64_t last);

// Sets `*out` to the first part of `range` that is not in the set; false if there is none.
bool spool_lost_outside(const struct spool_lost *lost, const struct delivery_range *range,
                        struct delivery_range *out);

// Returns the next unreported range and marks it as reported; false when there is none.
// spool_lost_untake undoes that mark.
bool spool_lost_next(struct spool_lost *lost, struct delivery_range *out);
void spool_lost_untake(struct spool_lost *lost, const struct delivery_range *range);

#endif
