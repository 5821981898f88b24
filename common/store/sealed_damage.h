// Damaged segments of a kind (sealed.h), joined where they share an hour.  The rollups of
// such an hour stand for rows that nobody can read, and cannot be made again from what is
// left of it.
#ifndef INFERSTAT_STORE_SEALED_DAMAGE_H
#define INFERSTAT_STORE_SEALED_DAMAGE_H

#include "common/store/sealed.h"

enum { SEALED_DAMAGE_MAX = 32 }; // spans; with more the nearest are joined

// Zeroed to begin with.
struct sealed_damage {
    struct sealed_segment spans[SEALED_DAMAGE_MAX]; // their first and last ids and starts
    unsigned count;
};

void sealed_damage_add(struct sealed_damage *damage, const struct sealed_segment *segment);

// The span that a segment which was added is in; NULL: it was not.
const struct sealed_segment *sealed_damage_find(const struct sealed_damage *damage,
                                                const struct sealed_segment *segment);

// The whole hours of a span, from the first to the last time.
void sealed_damage_hours(const struct sealed_segment *span, int64_t *first_ns, int64_t *last_ns);

#endif
