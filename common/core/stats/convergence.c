#include "common/core/stats/convergence.h"

#include <math.h>

#include "common/core/stats/stats.h"

// The value at a share of the way from the first to the last, between two of them where it
// falls there.
static double at_share(const double *sorted, size_t count, double share)
{
    const double place = share * (double)(count - 1);
    const size_t below = (size_t)place;
    const size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (sorted[above] - sorted[below]) * (place - (double)below);
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

void convergence_measure(struct convergence *out, double *values, size_t count)
{
    *out = (struct convergence){count, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (count == 0)
        return;
    stats_sort(values, count);
    const size_t cut = count / 5;
    out->median = stats_median(values, count);
    out->trimmed_mean = mean_of(values + cut, count - 2 * cut);
    if (fpclassify(out->median) == FP_ZERO)
        return;
    const double iqr = at_share(values, count, 0.75) - at_share(values, count, 0.25);
    out->iqr_ratio = iqr / fabs(out->median);
    out->interval_ratio = 1.57 * out->iqr_ratio / sqrt((double)count);
}

bool convergence_is_reached(const struct convergence *convergence, double ratio)
{
    return convergence->count >= CONVERGENCE_RUNS_MIN && convergence->interval_ratio <= ratio;
}
