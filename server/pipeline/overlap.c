#include "server/pipeline/overlap.h"

#include <stdlib.h>
#include <string.h>

struct interval {
    int64_t start, end; // start < end
};

// Intervals of one side that are not settled: in order of time, none touching the next.
struct held {
    size_t count;
    struct interval intervals[OVERLAP_HELD + 1];
};

struct overlap {
    struct held held[OVERLAP_SIDES];
    struct overlap_figures figures; // of what is settled; idle and span are made at the end
    bool any;                       // first and last are valid
    int64_t first, last;            // first start, last end
    bool is_settled;                // settled is valid
    int64_t settled;
};

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

enum status overlap_new(struct overlap **out, struct error *err)
{
    struct overlap *overlap = calloc(1, sizeof *overlap);
    if (!overlap)
        return error_no_memory(err, "overlap");
    *out = overlap;
    return STATUS_OK;
}

void overlap_free(struct overlap *overlap)
{
    free(overlap);
}

// Times may be anything: their distance always fits what it is kept in.
static uint64_t distance(int64_t from, int64_t to)
{
    return (uint64_t)to - (uint64_t)from;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// The index of the first interval that ends at `start` or later; new ones mostly go last.
static size_t find(const struct held *held, int64_t start)
{
    size_t place = held->count;
    while (place > 0 && held->intervals[place - 1].end >= start)
        place--;
    return place;
}

// Puts the interval in its place, one with all that it touches.
static void insert(struct held *held, struct interval new)
{
    const size_t place = find(held, new.start);
    size_t behind = place;
    while (behind < held->count && held->intervals[behind].start <= new.end) {
        new.start = earlier(new.start, held->intervals[behind].start);
        new.end = later(new.end, held->intervals[behind].end);
        behind++;
    }
    memmove(&held->intervals[place + 1], &held->intervals[behind],
            (held->count - behind) * sizeof *held->intervals);
    held->intervals[place] = new;
    held->count = held->count - (behind - place) + 1;
}

void overlap_add(struct overlap *overlap, enum overlap_side side, int64_t start_ns, int64_t end_ns)
{
    if (end_ns < start_ns || (overlap->is_settled && start_ns < overlap->settled)) {
        overlap->figures.unmeasured++;
        return;
    }
    overlap->first = overlap->any ? earlier(overlap->first, start_ns) : start_ns;
    overlap->last = overlap->any ? later(overlap->last, end_ns) : end_ns;
    overlap->any = true;
    if (start_ns == end_ns)
        return;

    struct held *held = &overlap->held[side];
    insert(held, (struct interval){start_ns, end_ns});
    if (held->count > OVERLAP_HELD)
        overlap_settle(overlap, held->intervals[held->count / 2].start);
}

void overlap_add_unmeasured(struct overlap *overlap, uint64_t intervals)
{
    overlap->figures.unmeasured += intervals;
}

// Time before `ns` in which both sides were busy.
static uint64_t both_before(const struct held *a, const struct held *b, int64_t ns)
{
    uint64_t both = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const struct interval *x = &a->intervals[i];
        const struct interval *y = &b->intervals[j];
        const int64_t start = later(x->start, y->start);
        const int64_t end = earlier(earlier(x->end, y->end), ns);
        if (start < end)
            both += distance(start, end);
        if (x->end < y->end)
            i++;
        else
            j++;
    }
    return both;
}

// Forgets what lies before `ns`; returns how long it is.
static uint64_t cut_before(struct held *held, int64_t ns)
{
    uint64_t busy = 0;
    size_t gone = 0;
    for (; gone < held->count && held->intervals[gone].start < ns; gone++) {
        struct interval *interval = &held->intervals[gone];
        busy += distance(interval->start, earlier(interval->end, ns));
        if (interval->end > ns) {
            interval->start = ns;
            break;
        }
    }
    held->count -= gone;
    memmove(held->intervals, &held->intervals[gone], held->count * sizeof *held->intervals);
    return busy;
}

void overlap_settle(struct overlap *overlap, int64_t ns)
{
    if (overlap->is_settled && ns <= overlap->settled)
        return;
    struct held *held = overlap->held;
    overlap->figures.both_ns += both_before(&held[OVERLAP_COPY], &held[OVERLAP_COMPUTE], ns);
    for (int side = 0; side < OVERLAP_SIDES; side++)
        overlap->figures.busy_ns[side] += cut_before(&held[side], ns);
    overlap->settled = ns;
    overlap->is_settled = true;
}

void overlap_finish(struct overlap *overlap, struct overlap_figures *out)
{
    if (overlap->any)
        overlap_settle(overlap, overlap->last);
    struct overlap_figures figures = overlap->figures;
    const uint64_t copy = figures.busy_ns[OVERLAP_COPY];
    const uint64_t compute = figures.busy_ns[OVERLAP_COMPUTE];
    figures.exposed_copy_ns = copy - figures.both_ns;
    figures.span_ns = overlap->any ? distance(overlap->first, overlap->last) : 0;
    figures.idle_ns = figures.span_ns - (copy + compute - figures.both_ns);
    *out = figures;
    memset(overlap, 0, sizeof *overlap);
}
