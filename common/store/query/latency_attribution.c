#include "common/store/query/latency_attribution.h"

#include <assert.h>
#include <math.h>

const char *attribution_part_name(enum attribution_part part)
{
    static const char *const names[ATTRIBUTION_PART_COUNT] = {
#define ATTRIBUTION_NAME(name, text) [ATTRIBUTION_##name] = text,
        ATTRIBUTION_PARTS(ATTRIBUTION_NAME)
#undef ATTRIBUTION_NAME
    };
    assert((unsigned)part < ATTRIBUTION_PART_COUNT);
    return names[part];
}

// The part of a phase itself, and of the work that it had to do.
static const struct {
    enum attribution_part own, work;
} phase_parts[ATTRIBUTION_PHASES] = {
    [PHASE_QUEUE] = {ATTRIBUTION_QUEUE, ATTRIBUTION_QUEUE}, // waiting has no units of work
    [PHASE_PREFILL] = {ATTRIBUTION_PREFILL, ATTRIBUTION_PROMPT},
    [PHASE_DECODE] = {ATTRIBUTION_DECODE, ATTRIBUTION_TOKENS},
};

// What more (or less) work than usual accounts for.  Work that goes the same way as
// the excess does not account for more than all of it.
static int64_t work_ns(const struct attribution_times *phase, int64_t excess_ns)
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
static int64_t share_out(const struct attribution_times *phase, int64_t slower_ns,
                         int64_t parts[ATTRIBUTION_PART_COUNT])
{
    double claimed = 0;
    for (unsigned i = 0; i < ATTRIBUTION_CAUSES; i++)
        claimed += (double)(phase->overlap_ns[i] > 0 ? phase->overlap_ns[i] : 0);
    if (slower_ns <= 0 || !(claimed > 0))
        return slower_ns;
    const double scale = claimed > (double)slower_ns ? (double)slower_ns / claimed : 1;
    int64_t left = slower_ns;
    for (unsigned i = 0; i < ATTRIBUTION_CAUSES; i++) {
        if (phase->overlap_ns[i] <= 0)
            continue;
        int64_t share =
            scale < 1 ? llround((double)phase->overlap_ns[i] * scale) : phase->overlap_ns[i];
        share = share < left ? share : left;
        parts[ATTRIBUTION_COPY + i] += share;
        left -= share;
    }
    return left;
}

void attribution_split(const struct attribution *attribution, int64_t parts[ATTRIBUTION_PART_COUNT])
{
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++)
        parts[i] = 0;
    int64_t other = attribution->took_ns - attribution->median_ns;
    for (unsigned i = 0; i < ATTRIBUTION_PHASES; i++) {
        const struct attribution_times *phase = &attribution->phases[i];
        if (!phase->known)
            continue;
        const int64_t excess = phase->took_ns - phase->median_ns;
        const int64_t work = work_ns(phase, excess);
        parts[phase_parts[i].work] += work;
        parts[phase_parts[i].own] += share_out(phase, excess - work, parts);
        other -= excess;
    }
    parts[ATTRIBUTION_OTHER] = other;
}

int64_t attribution_concurrency_ns(int64_t took_ns, int64_t requests, double median)
{
    if (!(median > 0) || !((double)requests > median))
        return 0;
    return llround((double)took_ns * (1 - median / (double)requests));
}

enum attribution_part attribution_main(const int64_t parts[ATTRIBUTION_PART_COUNT],
                                       int64_t median_ns)
{
    int64_t excess = 0;
    unsigned most = 0;
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++) {
        excess += parts[i];
        if (parts[i] > parts[most])
            most = i;
    }
    if (!((double)excess > ATTRIBUTION_NOTABLE * (double)median_ns))
        return ATTRIBUTION_PART_COUNT;
    return (enum attribution_part)most;
}
