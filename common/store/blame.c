#include "common/store/blame.h"

#include <assert.h>
#include <math.h>

const char *blame_part_name(enum blame_part part)
{
    static const char *const names[BLAME_PART_COUNT] = {
#define BLAME_NAME(name, text) [BLAME_##name] = text,
        BLAME_PARTS(BLAME_NAME)
#undef BLAME_NAME
    };
    assert((unsigned)part < BLAME_PART_COUNT);
    return names[part];
}

// The part of a phase itself, and of the work that it had to do.
static const struct {
    enum blame_part own, work;
} phase_parts[BLAME_PHASES] = {
    [PHASE_QUEUE] = {BLAME_QUEUE, BLAME_QUEUE}, // waiting has no units of work
    [PHASE_PREFILL] = {BLAME_PREFILL, BLAME_PROMPT},
    [PHASE_DECODE] = {BLAME_DECODE, BLAME_TOKENS},
};

// What more (or less) work than usual accounts for.  Work that goes the same way as
// the excess does not account for more than all of it.
static int64_t work_ns(const struct blame_times *phase, int64_t excess_ns)
{
    const double limit = 0x1p61;
    double work = phase->more_units * phase->unit_ns;
    if (!(fabs(work) > 0))
        return 0;
    work = fmin(fmax(work, -limit), limit);
    const int64_t whole = llround(work);
    if (whole > 0 && excess_ns > 0 && whole > excess_ns)
        return excess_ns;
    if (whole < 0 && excess_ns < 0 && whole < excess_ns)
        return excess_ns;
    return whole;
}

// Gives what a phase was slower to its causes; returns what is left.
static int64_t share_out(const struct blame_times *phase, int64_t slower_ns,
                         int64_t parts[BLAME_PART_COUNT])
{
    double claimed = 0;
    for (unsigned i = 0; i < BLAME_CAUSES; i++)
        claimed += (double)(phase->overlap_ns[i] > 0 ? phase->overlap_ns[i] : 0);
    if (slower_ns <= 0 || !(claimed > 0))
        return slower_ns;
    const double scale = claimed > (double)slower_ns ? (double)slower_ns / claimed : 1;
    int64_t left = slower_ns;
    for (unsigned i = 0; i < BLAME_CAUSES; i++) {
        if (phase->overlap_ns[i] <= 0)
            continue;
        int64_t share =
            scale < 1 ? llround((double)phase->overlap_ns[i] * scale) : phase->overlap_ns[i];
        share = share < left ? share : left;
        parts[BLAME_COPY + i] += share;
        left -= share;
    }
    return left;
}

void blame_split(const struct blame *blame, int64_t parts[BLAME_PART_COUNT])
{
    for (unsigned i = 0; i < BLAME_PART_COUNT; i++)
        parts[i] = 0;
    int64_t other = blame->took_ns - blame->median_ns;
    for (unsigned i = 0; i < BLAME_PHASES; i++) {
        const struct blame_times *phase = &blame->phases[i];
        if (!phase->known)
            continue;
        const int64_t excess = phase->took_ns - phase->median_ns;
        const int64_t work = work_ns(phase, excess);
        parts[phase_parts[i].work] += work;
        parts[phase_parts[i].own] += share_out(phase, excess - work, parts);
        other -= excess;
    }
    parts[BLAME_OTHER] = other;
}

int64_t blame_concurrency_ns(int64_t took_ns, int64_t requests, double median)
{
    if (!(median > 0) || !((double)requests > median))
        return 0;
    return llround((double)took_ns * (1 - median / (double)requests));
}

enum blame_part blame_main(const int64_t parts[BLAME_PART_COUNT], int64_t median_ns)
{
    int64_t excess = 0;
    unsigned most = 0;
    for (unsigned i = 0; i < BLAME_PART_COUNT; i++) {
        excess += parts[i];
        if (parts[i] > parts[most])
            most = i;
    }
    if (!((double)excess > BLAME_NOTABLE * (double)median_ns))
        return BLAME_PART_COUNT;
    return (enum blame_part)most;
}
