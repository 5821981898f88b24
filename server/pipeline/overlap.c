#include "server/pipeline/overlap.h"

#include "common/core/base/later.h"

bool overlap_ratio(const struct overlap_figures *figures, double *out)
{
    const uint64_t copy = figures->busy_ns[OVERLAP_COPY];
    const uint64_t compute = figures->busy_ns[OVERLAP_COMPUTE];
    const uint64_t least = copy < compute ? copy : compute;
    if (least == 0)
        return false;
    *out = (double)figures->both_ns / (double)least;
    return true;
}

// Times may be anything: their distance always fits what it is kept in.
static uint64_t distance(int64_t from, int64_t to)
{
    return (uint64_t)to - (uint64_t)from;
}

// Interval `i` of all that were added, one of the kept.
static struct overlap_interval *at(struct overlap_ring *ring, uint64_t i)
{
    return &ring->intervals[i % OVERLAP_KEPT];
}

static uint64_t first_kept(const struct overlap_ring *ring)
{
    return ring->added > OVERLAP_KEPT ? ring->added - OVERLAP_KEPT : 0;
}

// Adds the time that `interval` shares with each interval of the other side, the newest first.
static uint64_t share(struct overlap_interval *interval, struct overlap_ring *other)
{
    for (uint64_t i = other->added; i > first_kept(other); i--) {
        struct overlap_interval *beside = at(other, i - 1);
        const int64_t start = later(beside->start_ns, interval->start_ns);
        const int64_t end = earlier(beside->end_ns, interval->end_ns);
        if (beside->end_ns <= interval->start_ns)
            break;
        if (start < end) {
            beside->both_ns += distance(start, end);
            interval->both_ns += distance(start, end);
        }
    }
    return interval->both_ns;
}

void overlap_add(struct overlap *overlap, enum overlap_side side, uint64_t number, int64_t start_ns,
                 int64_t end_ns)
{
    struct overlap_ring *own = &overlap->rings[side];
    struct overlap_ring *other = &overlap->rings[OVERLAP_SIDES - 1 - side];
    const bool is_late = first_kept(other) > 0 && start_ns < at(other, first_kept(other))->start_ns;
    if (end_ns < start_ns || is_late) {
        overlap->figures.unmeasured++;
        return;
    }
    const bool is_first = own->added == 0 && other->added == 0;
    overlap->first_ns = is_first ? start_ns : earlier(overlap->first_ns, start_ns);
    overlap->last_ns = is_first ? end_ns : later(overlap->last_ns, end_ns);
    if (own->added > 0)
        start_ns = later(start_ns, at(own, own->added - 1)->end_ns);

    struct overlap_interval *new = at(own, own->added++);
    *new = (struct overlap_interval){number, start_ns, later(start_ns, end_ns), 0};
    overlap->figures.busy_ns[side] += distance(new->start_ns, new->end_ns);
    overlap->figures.both_ns += share(new, other);
}

bool overlap_pop_copy(struct overlap *overlap, bool none_comes, struct overlap_interval *out)
{
    struct overlap_ring *copies = &overlap->rings[OVERLAP_COPY];
    struct overlap_ring *computes = &overlap->rings[OVERLAP_COMPUTE];
    if (overlap->popped < first_kept(copies))
        overlap->popped = first_kept(copies);
    if (overlap->popped == copies->added)
        return false;
    const struct overlap_interval *copy = at(copies, overlap->popped);
    const bool is_final =
        computes->added > 0 && at(computes, computes->added - 1)->end_ns >= copy->end_ns;
    if (!is_final && !none_comes)
        return false;
    *out = *copy;
    overlap->popped++;
    return true;
}

void overlap_finish(const struct overlap *overlap, struct overlap_figures *out)
{
    *out = overlap->figures;
    const uint64_t busy = out->busy_ns[OVERLAP_COPY] + out->busy_ns[OVERLAP_COMPUTE] - out->both_ns;
    out->exposed_copy_ns = out->busy_ns[OVERLAP_COPY] - out->both_ns;
    out->span_ns = distance(overlap->first_ns, overlap->last_ns);
    out->idle_ns = out->span_ns - busy;
}
