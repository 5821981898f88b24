#include "server/workload/llm/token_sampler.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "server/workload/llm/random.h"

struct candidate {
    double probability; // not divided by the sum
    uint32_t id;
};

struct token_sampler {
    struct token_sampler_options options;
    struct random random;
    size_t count;
    struct candidate *candidates; // `count` of them
};

enum status token_sampler_new(struct token_sampler **out,
                              const struct token_sampler_options *options, size_t count,
                              struct error *err)
{
    struct token_sampler *sampler = calloc(1, sizeof *sampler);
    struct candidate *candidates = calloc(count, sizeof *candidates);
    if (!sampler || !candidates) {
        free(sampler);
        free(candidates);
        return error_no_memory(err, "sampler");
    }
    sampler->options = *options;
    sampler->count = count;
    sampler->candidates = candidates;
    random_seed(&sampler->random, options->seed);
    *out = sampler;
    return STATUS_OK;
}

void token_sampler_free(struct token_sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->candidates);
    free(sampler);
}

// The first of the best scores.
static enum status find_best(const float *logits, size_t count, uint32_t *best, struct error *err)
{
    *best = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(logits[i]))
            return error_set(err, STATUS_CORRUPT,
                             "the model's score for token %zu is no finite number", i);
        if (logits[i] > logits[*best])
            *best = (uint32_t)i;
    }
    return STATUS_OK;
}

static bool is_likelier(const struct candidate *a, const struct candidate *b)
{
    return a->probability != b->probability ? a->probability > b->probability : a->id < b->id;
}

static void swap(struct candidate *a, struct candidate *b)
{
    const struct candidate kept = *a;
    *a = *b;
    *b = kept;
}

// Moves the candidates of [low, high) that are likelier than the one at `pivot` before it; returns
// where it is then, and the sum of those before it.
static size_t partition(struct candidate *candidates, size_t low, size_t high, size_t pivot,
                        double *sum)
{
    size_t border = low;
    *sum = 0.0;
    swap(&candidates[pivot], &candidates[high - 1]);
    for (size_t i = low; i + 1 < high; i++) {
        if (!is_likelier(&candidates[i], &candidates[high - 1]))
            continue;
        *sum += candidates[i].probability;
        swap(&candidates[i], &candidates[border++]);
    }
    swap(&candidates[border], &candidates[high - 1]);
    return border;
}

// Moves the most likely candidates that together reach `share` of `sum` to the front; returns their
// number and sum.  Quickselect: on average the time grows with `count` alone.
static size_t keep_likeliest(struct candidate *candidates, size_t count, double share, double *sum)
{
    const double wanted = share * *sum;
    struct random random;
    random_seed(&random, count);
    double reached = 0.0;
    size_t low = 0, high = count; // those before `low` are kept, those from `high` on are not
    while (low < high && reached < wanted) {
        const size_t pivot = low + (size_t)(random_unit(&random) * (double)(high - low));
        double likelier;
        const size_t border = partition(candidates, low, high, pivot, &likelier);
        if (reached + likelier >= wanted) {
            high = border;
        } else {
            reached += likelier + candidates[border].probability;
            low = border + 1;
        }
    }
    *sum = reached;
    return low;
}

enum status token_sampler_pick(struct token_sampler *sampler, const float *logits, uint32_t *id,
                               struct error *err)
{
    uint32_t best;
    enum status status = find_best(logits, sampler->count, &best, err);
    if (status != STATUS_OK || sampler->options.temperature == 0.0) {
        *id = best;
        return status;
    }

    struct candidate *candidates = sampler->candidates;
    size_t count = sampler->count;
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        double above = (double)logits[i] - (double)logits[best];
        candidates[i] = (struct candidate){.probability = exp(above / sampler->options.temperature),
                                           .id = (uint32_t)i};
        sum += candidates[i].probability;
    }
    if (sampler->options.top_p < 1.0)
        count = keep_likeliest(candidates, count, sampler->options.top_p, &sum);

    double left = random_unit(&sampler->random) * sum;
    size_t chosen = 0;
    while (chosen + 1 < count && left >= candidates[chosen].probability)
        left -= candidates[chosen++].probability;
    *id = candidates[chosen].id;
    return STATUS_OK;
}
