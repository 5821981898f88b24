// What the verdicts of whole comparisons are worth: generated requests whose truth is known, with
// queues, bursts, drift, heavy tails and several runs.
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

#include "common/store/compare/judge.h"
#include "tests/support/store/served.h"

#define VARIED .noise = 0.08, .drift = 0.05, .token_noise = 0.2, .failures = 0.02

// Engines and their demand.  Where starts of a process differ, there are five: with fewer, stats.h
// says what is wrong how often.
static const struct served engines[] = {
    {.requests = 200, .clients = 1, VARIED},
    {.requests = 1000, .clients = 1, VARIED, .heavy = 1.5},
    {.requests = 4500, .clients = 1, VARIED, .slow_share = 0.3, .slow_add = 3},
    {.requests = 1000, .clients = 6, .slots = 4, VARIED},
    {.requests = 1500, .rate = 200, VARIED},
    {.requests = 1200, .rate = 600, .burst = 1, .slots = 8, VARIED},
    {.requests = 900, .rate = 500, .burst = 0.5, .slots = 64, VARIED, .heavy = 2},
    {.requests = 300, .slots = 8, .runs = 2, VARIED},
    {.requests = 300, .clients = 2, .slots = 2, .runs = 5, VARIED, .run_noise = 0.02},
    {.requests = 1000, .clients = 1, .runs = 5, VARIED, .slow_share = 0.01, .slow_add = 20},
};

// ---- Groups of samples ----------------------------------------------------------------

static void add_request(struct sample_group *group, const struct served_request *request)
{
    static const char *const metrics[] = {
        "ttft_ns",          "tpot_ns",    "tokens_per_second", "prefill_tokens_per_second",
        "inference.e2e_ns", "itl_p99_ns", "prompt_tokens",     "generated_tokens"};
    static int places[COUNT_OF(metrics)];
    const double ttft_ns = (double)(request->queue_ns + request->prefill_ns);
    const double decode_ns = (double)request->decode_ns;
    const double tpot_ns = decode_ns / (request->generated_tokens - 1);
    const double values[COUNT_OF(metrics)] = {
        ttft_ns,
        tpot_ns,
        1e9 / tpot_ns,
        1e9 * request->prompt_tokens / (double)request->prefill_ns,
        ttft_ns + decode_ns,
        (double)request->itl_p99_ns,
        request->prompt_tokens,
        request->generated_tokens,
    };
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        if (places[COUNT_OF(metrics) - 1] == 0)
            places[i] = samples_find_metric(metrics[i]);
        assert_int_equal(sample_add(&group->samples[places[i]], values[i], (uint16_t)request->run),
                         STATUS_OK);
    }
}

static int by_start(const void *left, const void *right)
{
    const struct served_request *a = left, *b = right;
    return (a->started_ns > b->started_ns) - (a->started_ns < b->started_ns);
}

// A side as the store would read it: totals run by run, the others in order of time.
static struct sample_group *side_of(const struct served *engine, uint64_t *seed)
{
    static struct served_request requests[SERVED_MAX];
    struct sample_group *group = calloc(1, sizeof *group);
    const unsigned runs = engine->runs ? engine->runs : 1, count = runs * engine->requests;
    assert_non_null(group);
    group->key.kind = RECORD_KIND_INFERENCE;
    for (unsigned i = 0; i < runs; i++)
        served_run(&requests[i * engine->requests], engine, (int)i + 1, seed);
    for (unsigned i = 0; i < count; i++) {
        const struct served_request *is = &requests[i];
        const struct sample_request request = {
            is->run,       is->started_ns,       is->queue_ns + is->prefill_ns + is->decode_ns,
            is->queue_ns,  is->generated_tokens, is->prompt_tokens,
            is->has_failed};
        assert_int_equal(sample_group_add_request(group, &request), STATUS_OK);
    }
    qsort(requests, count, sizeof *requests, by_start);
    for (unsigned i = 0; i < count; i++)
        add_request(group, &requests[i]);
    return group;
}

static void drop(struct sample_group *group)
{
    for (unsigned i = 0; samples_sampled(i); i++)
        sample_deinit(&group->samples[i]);
    free(group);
}

// ---- Verdicts -------------------------------------------------------------------------

enum { VERDICTS_MAX = SAMPLED_MAX * JUDGED_COUNT };

// By metric and what of it is judged.
struct verdicts {
    unsigned verdict[VERDICTS_MAX];    // a bit for the one that was said
    bool without_margin[VERDICTS_MAX]; // whether the interval excludes that nothing changed
    unsigned count;                    // with an interval
};

static struct verdicts compare(const struct served *before, const struct served *after,
                               uint64_t *seed)
{
    struct sample_group *sides[SIDES] = {side_of(before, seed), side_of(after, seed)};
    const struct pair pair = {{sides[BEFORE], sides[AFTER]}};
    struct judge judge = {
        .pairs = &pair, .pair_count = 1, .only = -1, .margin = STATS_MARGIN_DEFAULT};
    struct verdicts verdicts = {0};
    judge_set_error_rates(&judge);
    for (unsigned place = 0; samples_sampled(place); place++) {
        struct judgement judgement;
        if (!judge_compares(&judge, &pair, place) || !judge_has_verdict(&judge, place))
            continue;
        assert_int_equal(judge_metric(&judgement, &judge, &pair, place), STATUS_OK);
        for (unsigned i = 0; i < JUDGED_COUNT; i++) {
            const struct stats_effect *effect = &judgement.values[i].effect;
            const unsigned verdict = place * JUDGED_COUNT + i;
            verdicts.verdict[verdict] = 1U << effect->verdict;
            verdicts.without_margin[verdict] =
                !judgement.demand_may_explain && (effect->low > 1 || effect->high < 1);
            verdicts.count += isfinite(effect->high) && effect->low > 0;
        }
    }
    drop(sides[BEFORE]);
    drop(sides[AFTER]);
    return verdicts;
}

struct tally {
    unsigned of_verdict[VERDICTS_MAX], of_comparison;
};

static void count(struct tally *tally, const bool differs[VERDICTS_MAX])
{
    bool is_wrong = false;
    for (unsigned k = 0; k < VERDICTS_MAX; k++) {
        is_wrong |= differs[k];
        tally->of_verdict[k] += differs[k];
    }
    tally->of_comparison += is_wrong;
}

static void check(const char *what, const struct tally *tally, unsigned pairs, double most)
{
    unsigned worst = 0;
    for (unsigned k = 1; k < VERDICTS_MAX; k++)
        worst = tally->of_verdict[k] > tally->of_verdict[worst] ? k : worst;
    print_message("%s: of %u comparisons wrong %u; of one verdict at most %u (%s)\n", what, pairs,
                  tally->of_comparison, tally->of_verdict[worst],
                  samples_sampled(worst / JUDGED_COUNT)->name);
    assert_true(tally->of_verdict[worst] <= most * pairs);
    assert_true(tally->of_comparison <= 0.05 * pairs);
}

// The same engine twice, in 500 comparisons: with the default margin, and with none.
static void compare_alike(size_t first)
{
    enum { ROUNDS = 100, ERRORS = 1U << STATS_BETTER | 1U << STATS_WORSE };
    struct tally with = {0}, without = {0};
    unsigned pairs = 0, verdicts = 0;
    uint64_t seed = 20261123 + first;
    for (size_t i = first; i < COUNT_OF(engines); i += 2)
        for (unsigned round = 0; round < ROUNDS; round++) {
            const struct verdicts said = compare(&engines[i], &engines[i], &seed);
            bool differs[VERDICTS_MAX];
            for (unsigned k = 0; k < VERDICTS_MAX; k++)
                differs[k] = (said.verdict[k] & ERRORS) != 0;
            count(&with, differs);
            count(&without, said.without_margin);
            verdicts += said.count;
            pairs++;
        }
    print_message("%.1f intervals in each\n", (double)verdicts / pairs);
    check("with the margin", &with, pairs, 0.01);
    check("without", &without, pairs, 0.02);
}

TEST_CASE(nothing_changed_one_half)
{
    compare_alike(0);
}

TEST_CASE(nothing_changed_other_half)
{
    compare_alike(1);
}

// How often a slow-down is found, with the default margin.
TEST_CASE(changes_are_found)
{
    static const struct {
        const char *what, *metric;
        enum judged judged;
        struct served before;
        double least[3]; // of comparisons, for 5, 10 and 20 %
    } cases[] = {
        {"median, 1,000 requests",
         "tpot_ns",
         JUDGED_MIDDLE,
         {.requests = 1000, .clients = 1, VARIED},
         {0.5, 0.9, 0.95}},
        {"p95, 1,000 requests",
         "tpot_ns",
         JUDGED_P95,
         {.requests = 1000, .clients = 1, VARIED},
         {0, 0.4, 0.5}},
        {"p95, 5,000 requests",
         "tpot_ns",
         JUDGED_P95,
         {.requests = 5000, .clients = 1, VARIED},
         {0.9, 0.95, 0.95}},
        {"p99, 5,000 requests",
         "tpot_ns",
         JUDGED_P99,
         {.requests = 5000, .clients = 1, VARIED},
         {0.1, 0.5, 0.5}},
        {"throughput, 1,000 requests",
         "busy_output_token_rate",
         JUDGED_MIDDLE,
         {.requests = 1000, .clients = 1, VARIED},
         {0.5, 0.9, 0.95}},
        {"throughput, 1,000 requests, 4 at once",
         "busy_output_token_rate",
         JUDGED_MIDDLE,
         {.requests = 1000, .clients = 6, .slots = 4, VARIED},
         {0.3, 0.9, 0.95}},
        {"throughput, 2,000 requests, 200 a second",
         "busy_output_token_rate",
         JUDGED_MIDDLE,
         {.requests = 2000, .rate = 200, .slots = 8, VARIED},
         {0, 0.5, 0.9}},
    };
    static const double slowness[] = {1.05, 1.1, 1.2};
    enum { ROUNDS = 20 };
    uint64_t seed = 3;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const unsigned place =
            (unsigned)samples_find_metric(cases[i].metric) * JUDGED_COUNT + cases[i].judged;
        unsigned found[COUNT_OF(slowness)] = {0};
        for (size_t k = 0; k < COUNT_OF(slowness); k++) {
            struct served after = cases[i].before;
            after.slowness = slowness[k];
            for (unsigned round = 0; round < ROUNDS; round++) {
                const struct verdicts said = compare(&cases[i].before, &after, &seed);
                found[k] += said.verdict[place] >> STATS_WORSE & 1;
            }
        }
        print_message("%s: of %d, 5 %% found in %u, 10 %% in %u, 20 %% in %u\n", cases[i].what,
                      ROUNDS, found[0], found[1], found[2]);
        for (size_t k = 0; k < COUNT_OF(slowness); k++)
            assert_true(found[k] >= cases[i].least[k] * ROUNDS);
    }
}

TEST_MAIN(nothing_changed_one_half, nothing_changed_other_half, changes_are_found)
