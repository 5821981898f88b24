#include "common/store/sealed_damage.h"

#include "common/store/rollup.h"

void sealed_damage_hours(const struct sealed_segment *span, int64_t *first_ns, int64_t *last_ns)
{
    const int64_t end_ns =
        rollup_next(ROLLUP_HOUR, rollup_bucket(ROLLUP_HOUR, span->last_started_ns));
    *first_ns = rollup_bucket(ROLLUP_HOUR, span->first_started_ns);
    *last_ns = end_ns == INT64_MAX ? end_ns : end_ns - 1;
}

// How many hours lie between two spans, about; below 0 where they share one.
static double hours_between(const struct sealed_segment *a, const struct sealed_segment *b)
{
    int64_t a_first, a_last, b_first, b_last;
    sealed_damage_hours(a, &a_first, &a_last);
    sealed_damage_hours(b, &b_first, &b_last);
    if (a_first <= b_last && b_first <= a_last)
        return -1;
    return a_first > b_last ? (double)a_first - (double)b_last : (double)b_first - (double)a_last;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Takes a span out of the list and into another.
static void absorb(struct sealed_damage *damage, unsigned place, struct sealed_segment *into)
{
    const struct sealed_segment *span = &damage->spans[place];
    into->first_id = least(into->first_id, span->first_id);
    into->last_id = greatest(into->last_id, span->last_id);
    into->first_started_ns = least(into->first_started_ns, span->first_started_ns);
    into->last_started_ns = greatest(into->last_started_ns, span->last_started_ns);
    damage->spans[place] = damage->spans[--damage->count];
}

static unsigned nearest(const struct sealed_damage *damage, const struct sealed_segment *to)
{
    unsigned best = 0;
    for (unsigned i = 1; i < damage->count; i++)
        if (hours_between(&damage->spans[i], to) < hours_between(&damage->spans[best], to))
            best = i;
    return best;
}

void sealed_damage_add(struct sealed_damage *damage, const struct sealed_segment *segment)
{
    struct sealed_segment span = *segment;
    while (damage->count > 0) {
        const unsigned place = nearest(damage, &span);
        if (damage->count < SEALED_DAMAGE_MAX && hours_between(&damage->spans[place], &span) >= 0)
            break;
        absorb(damage, place, &span);
    }
    damage->spans[damage->count++] = span;
}

const struct sealed_segment *sealed_damage_find(const struct sealed_damage *damage,
                                                const struct sealed_segment *segment)
{
    for (unsigned i = 0; i < damage->count; i++)
        if (damage->spans[i].first_id <= segment->first_id &&
            segment->last_id <= damage->spans[i].last_id)
            return &damage->spans[i];
    return NULL;
}
