// The ranges of numbers that a spool cannot read back: found once, told once.
// Bounded: where there are too many, neighbours become one, with what lies between.
#ifndef INFERSTAT_MONITOR_SPOOL_LOST_H
#define INFERSTAT_MONITOR_SPOOL_LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/delivery/delivery.h"

enum { SPOOL_LOST_MAX = DELIVERY_DROPS_MAX };

// Zeroed: empty.  In order of stream and first number, without overlaps.
struct spool_lost {
    struct spool_lost_item {
        struct delivery_range range;
        bool told;
    } * items;
    size_t count, room;
};

void spool_lost_deinit(struct spool_lost *lost);

// Adds what of the range is not there yet.  False: no room for all of it, some may
// be missing.
bool spool_lost_add(struct spool_lost *lost, const struct delivery_range *range);

// Forgets numbers first..last of a stream.  False: no room for what is left on both
// sides, the upper one is forgotten too.
bool spool_lost_cut(struct spool_lost *lost, uint32_t stream, uint64_t first, uint64_t last);

// The first part of `range` that is not in the list, in `*out`; false when all is.
bool spool_lost_outside(const struct spool_lost *lost, const struct delivery_range *range,
                        struct delivery_range *out);

// Takes the next range not yet told; gives one back.
bool spool_lost_next(struct spool_lost *lost, struct delivery_range *out);
void spool_lost_untake(struct spool_lost *lost, const struct delivery_range *range);

#endif
