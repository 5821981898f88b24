// Choosing tokens: greedy, by temperature, among the likeliest.
#include <math.h>

#include "server/workload/llm/random.h"
#include "server/workload/llm/token_sampler.h"
#include "tests/support/test.h"

static struct token_sampler *make(double temperature, double top_p, uint64_t seed, size_t count)
{
    struct token_sampler *sampler = NULL;
    struct token_sampler_options options = {temperature, top_p, seed};
    assert_int_equal(token_sampler_new(&sampler, &options, count, NULL), STATUS_OK);
    return sampler;
}

static uint32_t pick(struct token_sampler *sampler, const float *logits)
{
    uint32_t id = UINT32_MAX;
    assert_int_equal(token_sampler_pick(sampler, logits, &id, NULL), STATUS_OK);
    return id;
}

// The first numbers xoshiro256** gives where splitmix64 makes its state from 0:
// computed from the authors' definitions.
TEST_CASE(random_numbers)
{
    struct random random;
    random_seed(&random, 0);
    assert_true(random.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(random.state[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(random_next(&random) == UINT64_C(0x99ec5f36cb75f2b4));
    for (int i = 0; i < 1000; i++) {
        double x = random_unit(&random);
        assert_true(x >= 0.0 && x < 1.0);
    }
}

TEST_CASE(greedy)
{
    struct token_sampler *sampler = make(0, 1, 1, 4);
    assert_int_equal(pick(sampler, (float[]){0.0F, 3.0F, 1.0F, 3.0F}), 1); // the first of equals
    assert_int_equal(pick(sampler, (float[]){-5.0F, -7.0F, -6.0F, -8.0F}), 0);
    token_sampler_free(sampler);
}

TEST_CASE(scores_that_are_none)
{
    for (int temperature = 0; temperature <= 1; temperature++) {
        struct token_sampler *sampler = make(temperature, 1, 1, 3);
        uint32_t id;
        struct error err = {0};
        assert_int_equal(token_sampler_pick(sampler, (float[]){0, NAN, 0}, &id, &err),
                         STATUS_CORRUPT);
        assert_non_null(strstr(err.text, "token 1"));
        assert_int_equal(token_sampler_pick(sampler, (float[]){0, 0, INFINITY}, &id, &err),
                         STATUS_CORRUPT);
        assert_int_equal(token_sampler_pick(sampler, (float[]){-INFINITY, 0, 0}, &id, &err),
                         STATUS_CORRUPT);
        token_sampler_free(sampler);
    }
}

TEST_CASE(same_seed_same_choices)
{
    float logits[50];
    for (size_t i = 0; i < COUNT_OF(logits); i++)
        logits[i] = (float)(i % 7) * 0.3F;
    struct token_sampler *a = make(1, 0.9, 42, COUNT_OF(logits));
    struct token_sampler *b = make(1, 0.9, 42, COUNT_OF(logits));
    struct token_sampler *c = make(1, 0.9, 43, COUNT_OF(logits));
    unsigned int different = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t id = pick(a, logits);
        assert_int_equal(id, pick(b, logits));
        different += id != pick(c, logits);
    }
    assert_true(different > 100);
    token_sampler_free(a);
    token_sampler_free(b);
    token_sampler_free(c);
}

// Shares of many choices against softmax(logits / temperature).
TEST_CASE(shares)
{
    enum { ROUNDS = 40000 };
    static const float logits[4] = {1.0F, 0.0F, 2.0F, -1.0F};
    static const double temperatures[] = {0.5, 1.0, 3.0};
    for (size_t t = 0; t < COUNT_OF(temperatures); t++) {
        struct token_sampler *sampler = make(temperatures[t], 1, 7, 4);
        unsigned int counts[4] = {0};
        double sum = 0;
        for (int i = 0; i < ROUNDS; i++)
            counts[pick(sampler, logits)]++;
        for (int i = 0; i < 4; i++)
            sum += exp((double)logits[i] / temperatures[t]);
        for (int i = 0; i < 4; i++) {
            double expected = exp((double)logits[i] / temperatures[t]) / sum;
            double deviation = sqrt(expected * (1 - expected) / ROUNDS);
            assert_true(fabs((double)counts[i] / ROUNDS - expected) < 5 * deviation);
        }
        token_sampler_free(sampler);
    }
}

// Probabilities 0.5, 0.25, 0.125, ...: which tokens each top-p leaves.
TEST_CASE(top_p)
{
    float logits[10];
    for (size_t i = 0; i < 10; i++)
        logits[9 - i] = (float)(-log(2.0) * (double)(i < 9 ? i + 1 : 9));
    static const struct {
        double top_p;
        uint32_t least; // the lowest id that may come: ids are by rising probability
    } cases[] = {{0.4, 9}, {0.5 + 1e-9, 8}, {0.75 + 1e-9, 7}, {0.9, 6}, {1.0, 0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct token_sampler *sampler = make(1, cases[c].top_p, 3, 10);
        uint32_t least = 9;
        for (int i = 0; i < 20000; i++) {
            uint32_t id = pick(sampler, logits);
            least = id < least ? id : least;
        }
        assert_int_equal(least, cases[c].least);
        token_sampler_free(sampler);
    }
}

static int falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

// As many tokens as real vocabularies have, nearly as likely as each other and with equals among
// them: none comes that is not among the first of the sorted ones, and the last of these do come.
TEST_CASE(top_p_of_many)
{
    enum { COUNT = 32000, ROUNDS = 2000 };
    static float logits[COUNT], sorted[COUNT];
    uint64_t seed = 11;
    for (size_t i = 0; i < COUNT; i++)
        logits[i] = (float)(test_random(&seed) % 1000) / 1e4F;
    memcpy(sorted, logits, sizeof sorted);
    qsort(sorted, COUNT, sizeof *sorted, falling);
    double sum = 0, reached = 0;
    for (size_t i = 0; i < COUNT; i++)
        sum += exp((double)sorted[i]);
    size_t last = 0;
    while ((reached += exp((double)sorted[last])) < 0.8 * sum)
        last++;
    struct token_sampler *sampler = make(1, 0.8, 5, COUNT);
    float least = sorted[0];
    for (int i = 0; i < ROUNDS; i++) {
        const float logit = logits[pick(sampler, logits)];
        least = logit < least ? logit : least;
    }
    assert_true(least >= sorted[last]);
    assert_true(least <= sorted[last - COUNT / 100]);
    token_sampler_free(sampler);
}

// Scores far apart neither overflow nor lose the best.
TEST_CASE(extremes)
{
    struct token_sampler *sampler = make(1e-3, 0.99, 3, 3);
    for (int i = 0; i < 100; i++)
        assert_int_equal(pick(sampler, (float[]){-1e30F, 1e30F, 0.0F}), 1);
    token_sampler_free(sampler);
    token_sampler_free(NULL);
}

TEST_MAIN(random_numbers, greedy, scores_that_are_none, same_seed_same_choices, shares, top_p,
          top_p_of_many, extremes)
