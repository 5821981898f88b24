#include "common/store/rollup/rollup_plan.h"

#include <assert.h>
#include <stdlib.h>

#include "common/core/base/array.h"

struct maker {
    struct rollup_plan *plan;
    const struct gap_set *gaps;
};

// The last time in the bucket that starts there.
static int64_t bucket_last(enum rollup_level level, int64_t bucket)
{
    const int64_t next = rollup_next(level, bucket);
    return next == INT64_MAX ? next : next - 1;
}

// The first gap of a level that ends at or behind a time, widened to whole buckets; false where
// there is none.
static bool find_gap(const struct maker *maker, enum rollup_level level, int64_t time_ns,
                     struct rollup_span *out)
{
    const struct gap_span *gap = gap_set_behind(maker->gaps, level, rollup_bucket(level, time_ns));
    if (!gap)
        return false;
    *out = (struct rollup_span){rollup_bucket(level, gap->since_ns),
                                bucket_last(level, rollup_bucket(level, gap->until_ns - 1))};
    return true;
}

static enum status add_piece(struct rollup_plan *plan, struct rollup_piece piece)
{
    struct rollup_piece *before = plan->count ? &plan->pieces[plan->count - 1] : NULL;
    if (before && before->is_raw == piece.is_raw && before->level == piece.level &&
        before->span.last_ns + 1 == piece.span.first_ns) {
        before->span.last_ns = piece.span.last_ns;
        return STATUS_OK;
    }
    if (!ARRAY_RESERVE(&plan->pieces, &plan->room, plan->count + 1))
        return STATUS_NOMEM;
    plan->pieces[plan->count++] = piece;
    return STATUS_OK;
}

// The whole buckets in a span, from the first to the last; false where there is none.
static bool whole_buckets(struct rollup_span *out, enum rollup_level level, struct rollup_span span)
{
    int64_t first = rollup_bucket(level, span.first_ns);
    if (first != span.first_ns) {
        first = rollup_next(level, first);
        if (first == INT64_MAX) // there is no further bucket
            return false;
    }
    int64_t last = span.last_ns;
    const int64_t bucket = rollup_bucket(level, last);
    if (bucket_last(level, bucket) != last) {
        if (bucket == INT64_MIN)
            return false;
        last = bucket - 1;
    }
    *out = (struct rollup_span){first, last};
    return first <= last;
}

// The pieces of a span, with buckets of levels below `levels`; it is not empty.
static enum status add_span(struct maker *maker, unsigned levels, struct rollup_span span)
{
    struct rollup_span whole = {0};
    while (levels > 0 && !whole_buckets(&whole, (enum rollup_level)(levels - 1), span))
        levels--;
    if (levels == 0)
        return add_piece(maker->plan, (struct rollup_piece){.span = span, .is_raw = true});
    const enum rollup_level level = (enum rollup_level)(levels - 1);
    enum status status = STATUS_OK;
    if (span.first_ns < whole.first_ns)
        status =
            add_span(maker, levels - 1, (struct rollup_span){span.first_ns, whole.first_ns - 1});
    int64_t at = whole.first_ns;
    bool goes_on = true;
    while (goes_on && status == STATUS_OK) {
        struct rollup_span gap, part = {at, whole.last_ns};
        const bool has_gap = find_gap(maker, level, at, &gap);
        if (has_gap && gap.first_ns <= at) {
            part.last_ns = gap.last_ns < part.last_ns ? gap.last_ns : part.last_ns;
            status = add_span(maker, levels - 1, part);
        } else {
            if (has_gap && gap.first_ns <= part.last_ns)
                part.last_ns = gap.first_ns - 1;
            status = add_piece(maker->plan, (struct rollup_piece){.span = part, .level = level});
        }
        goes_on = part.last_ns < whole.last_ns;
        at = goes_on ? part.last_ns + 1 : at;
    }
    if (status == STATUS_OK && whole.last_ns < span.last_ns)
        status = add_span(maker, levels - 1, (struct rollup_span){whole.last_ns + 1, span.last_ns});
    return status;
}

static enum status add_steps(struct maker *maker, const struct rollup_question *question)
{
    struct rollup_span rest = question->window;
    enum status status = STATUS_OK;
    bool goes_on = true;
    while (goes_on && status == STATUS_OK) {
        struct rollup_span step = rest;
        int64_t last;
        if (question->step_ns > 0 &&
            !__builtin_add_overflow(rollup_step(question->step_ns, rest.first_ns),
                                    question->step_ns - 1, &last) &&
            last >= rest.first_ns && last < rest.last_ns)
            step.last_ns = last;
        status = add_span(maker, ROLLUP_LEVEL_COUNT, step);
        goes_on = step.last_ns < rest.last_ns;
        rest.first_ns = goes_on ? step.last_ns + 1 : rest.first_ns;
    }
    return status;
}

// Takes back what the pieces cover from a time on.  They are whole buckets of finer
// levels up to there.
static void cut_back(struct rollup_plan *plan, int64_t first_ns)
{
    while (plan->count && plan->pieces[plan->count - 1].span.first_ns >= first_ns)
        plan->count--;
    struct rollup_piece *last = plan->count ? &plan->pieces[plan->count - 1] : NULL;
    if (last && last->span.last_ns >= first_ns)
        last->span.last_ns = first_ns - 1;
}

// The finest bucket that holds a time and that no gap forbids.  Where there is none,
// `*bucket` is the time from there on in which that does not change.
static bool finest_bucket(const struct maker *maker, int64_t time_ns, enum rollup_level *level,
                          struct rollup_span *bucket)
{
    *bucket = (struct rollup_span){time_ns, INT64_MAX};
    for (unsigned i = 0; i < ROLLUP_LEVEL_COUNT; i++) {
        struct rollup_span gap;
        if (find_gap(maker, (enum rollup_level)i, time_ns, &gap) && gap.first_ns <= time_ns) {
            bucket->last_ns = gap.last_ns < bucket->last_ns ? gap.last_ns : bucket->last_ns;
            continue;
        }
        *level = (enum rollup_level)i;
        bucket->first_ns = rollup_bucket(*level, time_ns);
        bucket->last_ns = bucket_last(*level, bucket->first_ns);
        return true;
    }
    return false;
}

// Puts rollups, where there are any, in the place of a piece's expired records.
static enum status replace_expired(struct maker *maker, struct rollup_piece piece,
                                   int64_t expired_ns)
{
    struct rollup_plan *plan = maker->plan;
    int64_t at = piece.span.first_ns;
    bool goes_on = true;
    enum status status = STATUS_OK;
    while (goes_on && at < expired_ns && status == STATUS_OK) {
        enum rollup_level level = ROLLUP_MINUTE;
        struct rollup_span bucket;
        if (finest_bucket(maker, at, &level, &bucket)) {
            cut_back(plan, bucket.first_ns);
            plan->widened_to =
                plan->is_widened && plan->widened_to > level ? plan->widened_to : level;
            plan->is_widened = true;
            status = add_piece(plan, (struct rollup_piece){.span = bucket, .level = level});
        } else {
            // Of what has come late there may be records.
            struct rollup_piece part = {.span = {at, piece.span.last_ns}, .is_raw = true};
            if (bucket.last_ns < part.span.last_ns)
                part.span.last_ns = bucket.last_ns;
            plan->is_lacking = true;
            status = add_piece(plan, part);
        }
        goes_on = bucket.last_ns < piece.span.last_ns;
        at = goes_on ? bucket.last_ns + 1 : at;
    }
    piece.span.first_ns = at;
    return status == STATUS_OK && goes_on ? add_piece(plan, piece) : status;
}

// A second walk over the pieces, since a bucket that stands in may reach over its
// neighbours.
static enum status stand_in(struct maker *maker, int64_t expired_ns)
{
    struct rollup_plan first = *maker->plan;
    struct rollup_plan *plan = maker->plan;
    *plan = (struct rollup_plan){0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < first.count && status == STATUS_OK; i++) {
        struct rollup_piece piece = first.pieces[i];
        const struct rollup_piece *before = plan->count ? &plan->pieces[plan->count - 1] : NULL;
        if (before && before->span.last_ns >= piece.span.last_ns)
            continue;
        if (before && before->span.last_ns >= piece.span.first_ns)
            piece.span.first_ns = before->span.last_ns + 1;
        status = piece.is_raw ? replace_expired(maker, piece, expired_ns) : add_piece(plan, piece);
    }
    rollup_plan_deinit(&first);
    return status;
}

enum status rollup_plan_make(struct rollup_plan *plan, const struct rollup_question *question)
{
    assert(question->window.first_ns <= question->window.last_ns);
    struct maker maker = {plan, question->gaps};
    plan->count = 0;
    plan->is_widened = false;
    plan->is_lacking = false;
    const enum status status = add_steps(&maker, question);
    if (status == STATUS_OK && question->window.first_ns < question->expired_ns)
        return stand_in(&maker, question->expired_ns);
    return status;
}

void rollup_plan_deinit(struct rollup_plan *plan)
{
    free(plan->pieces);
    *plan = (struct rollup_plan){0};
}
