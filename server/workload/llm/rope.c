#include "server/workload/llm/rope.h"

#include <math.h>

// The pair, as a fraction, that turns `turns` times within the context.
static double pair_of(const struct rope *rope, double turns)
{
    const double pi = 3.14159265358979323846;
    return (double)rope->size * log((double)rope->context / (turns * 2.0 * pi)) /
           (2.0 * log(rope->base));
}

double rope_frequencies(double *frequencies, const struct rope *rope, const float *divisors)
{
    const double first = fmax(0.0, floor(pair_of(rope, rope->fast)));
    const double last = fmin((double)(rope->size - 1), ceil(pair_of(rope, rope->slow)));
    for (size_t i = 0; i < rope->size / 2; i++) {
        double frequency = pow(rope->base, -2.0 * (double)i / (double)rope->size);
        if (divisors)
            frequency /= (double)divisors[i];
        // How much of the frequency is scaled: 0 for the fast pairs, 1 for the slow ones.
        double scaled = 1.0;
        if (rope->yarn)
            scaled = fmin(1.0, fmax(0.0, ((double)i - first) / fmax(0.001, last - first)));
        frequencies[i] = frequency * (scaled / rope->factor + 1.0 - scaled);
    }
    return rope->magnitude *
           (rope->yarn && rope->factor > 1.0 ? 1.0 + 0.1 * log(rope->factor) : 1.0);
}
