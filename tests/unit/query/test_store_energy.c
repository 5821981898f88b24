// Energy of requests: what the devices used in a window, by tokens and requests of groups, is what
// can be worked out by hand, and what plain SQL says.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/aggregate/energy.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define MS      INT64_C(1000000)
#define SECOND  (1000 * MS)
#define DAWN_NS INT64_C(1772323200000000000) // 2026-03-01 00:00
#define AT(s)   (DAWN_NS + (s)*SECOND)

enum { ENGINE = 1, SAMPLER, OTHER_ENGINE, ENGINES_TOKENS = 100 };

static uint32_t models[2], names[2], sampled[2];

// The engine on alpha calls its devices otherwise than the sampler there; on beta the engine
// samples its device itself.
TEST_FIXTURE(set_up)
{
    store_make(state);
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    names[0] = rows_name(db, "cuda:0");
    names[1] = rows_name(db, "cuda:1");
    sampled[0] = names[1]; // the engine sees the devices in the other order
    sampled[1] = names[0];
    rows_run(db, ENGINE, "alpha", AT(-100), AT(10000));
    rows_run(db, SAMPLER, "alpha", AT(-100), AT(10000));
    rows_run(db, OTHER_ENGINE, "beta", AT(-100), AT(10000));
    for (int device = 0; device < 2; device++)
        for (int run = ENGINE; run <= SAMPLER; run++)
            rows_device(db, run, AT(-100), run == ENGINE ? names[device] : sampled[device],
                        device == 0 ? "GPU-0" : "GPU-1");
    execf("INSERT INTO ledger(run, kind, stored) VALUES(%d, %d, 1), (%d, %d, 1)", ENGINE,
          RECORD_KIND_INFERENCE, SAMPLER, RECORD_KIND_DEVICE_SAMPLE);
    return store_read();
}

static void add_request(int64_t run, int model, int device, int64_t started_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, started_ns);
    record_set_name(&record, INFERENCE_MODEL, models[model]);
    record_set_name(&record, INFERENCE_DEVICE, names[device]);
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, 10);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, ENGINES_TOKENS);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_PREFILL_NS, 10 * MS);
    record_set_int(&record, INFERENCE_TTFT_NS, 10 * MS);
    record_set_int(&record, INFERENCE_DECODE_NS, 490 * MS);
    record_set_int(&record, INFERENCE_E2E_NS, 500 * MS);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    (void)rows_add(db, run, &record);
}

// Samples of each second of a time; joules below 0: without energy.
static void add_samples(int64_t run, uint32_t device, int since, int until, double joules)
{
    for (int s = since; s < until; s++) {
        struct record record;
        record_init(&record, RECORD_KIND_DEVICE_SAMPLE, AT(s));
        record_set_name(&record, DEVICE_SAMPLE_DEVICE, device);
        record_set_int(&record, DEVICE_SAMPLE_DURATION_NS, SECOND);
        if (joules >= 0)
            record_set_real(&record, DEVICE_SAMPLE_ENERGY_USED, joules);
        (void)rows_add(db, run, &record);
    }
}

// In 100 s: on alpha 100 requests of `small` on a device of 200 W, and 50 of each model on one of
// 300 W; on beta 20 of `large` on a device of 100 W.
static void add_hosts(void)
{
    exec("BEGIN");
    for (int s = 0; s < 100; s++) {
        add_request(ENGINE, 0, 0, AT(s));
        add_request(ENGINE, s % 2, 1, AT(s) + 100 * MS);
        if (s % 5 == 0)
            add_request(OTHER_ENGINE, 1, 0, AT(s));
    }
    add_samples(SAMPLER, sampled[0], -50, 150, 200);
    add_samples(SAMPLER, sampled[1], -50, 150, 300);
    add_samples(OTHER_ENGINE, names[0], -50, 150, 100);
    exec("COMMIT");
}

static struct query about(const char *metric, const char *by)
{
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = {.since_ns = AT(0), .until_ns = AT(100)}};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    for (const char *c = by; *c; c++)
        query.group_by[query.group_count++] = *c == 'm'   ? QUERY_BY_MODEL
                                              : *c == 'h' ? QUERY_BY_HOST
                                                          : QUERY_BY_DEVICE;
    return query;
}

static void expect_row(const struct result *result, size_t row, const char *key, double expected)
{
    const double actual = result_number(result, row, key, NAN);
    if (!(isnan(actual) && isnan(expected)) && !(fabs(actual - expected) <= 1e-9 * expected))
        fail_msg("%s of row %zu is %.12g, not %.12g", key, row, actual, expected);
}

static size_t row_with(const struct result *result, const char *key, const char *text)
{
    for (size_t row = 0; row < result_row_count(result); row++)
        if (result_is(result, row, key, text))
            return row;
    fail_msg("no row with %s %s", key, text);
    return 0;
}

TEST_CASE(test_groups)
{
    static const struct {
        const char *by, *model, *host, *device; // the filter
        const char *key, *text;                 // of the row
        double tokens, requests, joules;
    } cases[] = {
        {"", NULL, NULL, NULL, NULL, NULL, 22000, 220, 60000},
        {"h", NULL, NULL, NULL, "host", "alpha", 20000, 200, 50000},
        {"h", NULL, NULL, NULL, "host", "beta", 2000, 20, 10000},
        {"d", NULL, "alpha", NULL, "device", "cuda:0", 10000, 100, 20000},
        {"d", NULL, "alpha", NULL, "device", "cuda:1", 10000, 100, 30000},
        {"", NULL, NULL, "cuda:1", NULL, NULL, 10000, 100, 30000},
        {"m", NULL, NULL, NULL, "model", "small", 10000, 100, 20000},
        {"m", NULL, NULL, NULL, "model", "large", 2000, 20, 10000},
        {"", "large", NULL, NULL, NULL, NULL, 2000, 20, 10000},
        {"hd", "small", NULL, NULL, NULL, NULL, 10000, 100, 20000},
        {"", "large", "alpha", NULL, NULL, NULL, 0, 0, 0}, // shares its device
    };
    add_hosts();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *const filter[] = {cases[i].model, cases[i].host, cases[i].device};
        const bool is_none = cases[i].requests < 1;
        for (int is_tokens = 0; is_tokens < 2; is_tokens++) {
            struct query query =
                about(is_tokens ? "tokens_per_joule" : "joules_per_request", cases[i].by);
            for (unsigned d = QUERY_BY_MODEL; d <= QUERY_BY_DEVICE; d++)
                if (filter[d])
                    (void)snprintf(query.filter.by[d], QUERY_TEXT_SIZE, "%s", filter[d]);
            struct result *result = ask(&query);
            const size_t row = cases[i].key ? row_with(result, cases[i].key, cases[i].text) : 0;
            expect_row(result, row, "count", cases[i].requests);
            expect_row(result, row, "sum", is_tokens ? cases[i].tokens : cases[i].joules);
            expect_row(result, row, "mean",
                       is_none     ? (double)NAN
                       : is_tokens ? cases[i].tokens / cases[i].joules
                                   : cases[i].joules / cases[i].requests);
            expect_row(result, row, "window_ns", 100e9);
            if (is_none)
                assert_true(result_is(result, row, "note",
                                      "a device and its requests are left out 1 times: requests of"
                                      " several models ran on it"));
            result_free(result);
        }
    }
}

TEST_CASE(test_steps)
{
    add_hosts();
    exec(
        "UPDATE device_sample SET energy_used_joules_stored = 400.0 WHERE run = 3 AND started_ns >="
        " 1772323200000000000 + 60000000000"); // beta draws more in the second step
    struct query query = about("joules_per_request", "h");
    query.step_ns = 60 * SECOND;
    struct result *result = ask(&query);
    static const struct {
        const char *host;
        int64_t step_s;
        double requests, joules, seconds;
    } expected[] = {{"alpha", 0, 120, 30000, 60},
                    {"beta", 0, 12, 6000, 60},
                    {"alpha", 60, 80, 20000, 40},
                    {"beta", 60, 8, 16000, 40}};
    assert_int_equal(result_row_count(result), COUNT_OF(expected));
    for (size_t row = 0; row < COUNT_OF(expected); row++) {
        assert_true(result_is(result, row, "host", expected[row].host));
        assert_int_equal(result_integer(result, row, "started_ns", 0), AT(expected[row].step_s));
        expect_row(result, row, "count", expected[row].requests);
        expect_row(result, row, "sum", expected[row].joules);
        expect_row(result, row, "mean", expected[row].joules / expected[row].requests);
        expect_row(result, row, "window_ns", expected[row].seconds * 1e9);
    }
    result_free(result);
}

// A device counts if its samples with energy cover the window; what they lack is taken to be alike.
TEST_CASE(test_coverage)
{
    static const struct {
        const char *lost; // samples of beta
        double joules;
    } cases[] = {
        {"0", 10000},
        {"started_ns < 1772323200000000000 + 9000000000", 10000},
        {"started_ns < 1772323200000000000 + 11000000000", 0},
        {"1", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int is_null = 0; is_null < 2; is_null++) {
            (void)store_tear_down(state);
            (void)set_up(state);
            add_hosts();
            execf(is_null ? "UPDATE device_sample SET energy_used_joules_stored = NULL WHERE run = "
                            "3 AND %s"
                          : "DELETE FROM device_sample WHERE run = 3 AND %s",
                  cases[i].lost);
            struct query query = about("joules_per_request", "h");
            struct result *result = ask(&query);
            const size_t row = row_with(result, "host", "beta");
            expect_row(result, row, "mean",
                       cases[i].joules > 0 ? cases[i].joules / 20 : (double)NAN);
            if (cases[i].joules < 1)
                assert_true(result_is(result, row, "note",
                                      "a device and its requests are left out 1 times: no samples"
                                      " with its energy cover the time"));
            expect_row(result, row_with(result, "host", "alpha"), "mean", 250);
            result_free(result);
        }
}

// Two engines of a host that each call their device cuda:0: each model's requests used its own.
TEST_CASE(test_engines_with_the_same_name)
{
    enum { FIRST = OTHER_ENGINE + 1, SECOND_ENGINE, BESIDE };
    static const char *const uuids[] = {"GPU-2", "GPU-3"};
    exec("BEGIN");
    for (int run = FIRST; run <= BESIDE; run++)
        rows_run(db, run, "gamma", AT(-100), AT(10000));
    for (int i = 0; i < 2; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_MODEL, AT(-100));
        record_set_name(&record, MODEL_NAME, models[i]);
        record_set_text(&record, MODEL_FORMAT, "gguf", 4);
        (void)rows_add(db, FIRST + i, &record);
        rows_device(db, FIRST + i, AT(-100), names[0], uuids[i]);
        rows_device(db, BESIDE, AT(-100), names[i], uuids[i]);
        execf("INSERT INTO ledger(run, kind, stored) VALUES(%d, %d, 1)", FIRST + i,
              RECORD_KIND_INFERENCE);
        for (int s = 0; s < 100; s++)
            add_request(FIRST + i, i, 0, AT(s));
        add_samples(BESIDE, names[i], -50, 150, 200 + 100 * i);
    }
    execf("INSERT INTO ledger(run, kind, stored) VALUES(%d, %d, 1)", BESIDE,
          RECORD_KIND_DEVICE_SAMPLE);
    exec("COMMIT");
    const struct query by_model = about("joules_per_request", "m"),
                       all = about("joules_per_request", "");
    struct result *result = ask(&by_model);
    expect_row(result, row_with(result, "model", "small"), "mean", 200);
    expect_row(result, row_with(result, "model", "large"), "mean", 300);
    result_free(result);
    result = ask(&all);
    expect_row(result, 0, "mean", 250);
    result_free(result);
}

// A second run samples a device by a name of its own: its energy is used once, also if the first
// one ends in between.
TEST_CASE(test_two_samplers)
{
    enum { SECOND_SAMPLER = OTHER_ENGINE + 1 };
    const uint32_t name = rows_name(db, "host:gpu");
    struct query query = about("joules_per_request", "");
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    add_hosts();
    rows_run(db, SECOND_SAMPLER, "alpha", AT(-100), AT(10000));
    rows_device(db, SECOND_SAMPLER, AT(-100), name, "GPU-0");
    execf("INSERT INTO ledger(run, kind, stored) VALUES(%d, %d, 1)", SECOND_SAMPLER,
          RECORD_KIND_DEVICE_SAMPLE);
    add_samples(SECOND_SAMPLER, name, -50, 150, 200);
    for (int i = 0; i < 2; i++) {
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 1);
        expect_row(result, 0, "mean", 250);
        result_free(result);
        execf("DELETE FROM device_sample WHERE run = %d AND started_ns >= %lld", SAMPLER,
              (long long)AT(40));
        add_samples(SAMPLER, sampled[1], 40, 150, 300);
    }
}

// Random requests and samples: the sums of plain SQL.
TEST_CASE(test_random_stores)
{
    uint64_t random = 3;
    for (int round = 0; round < 5; round++) {
        (void)store_tear_down(state);
        (void)set_up(state);
        exec("BEGIN");
        const int requests = 1 + (int)(test_random(&random) % 60);
        for (int i = 0; i < requests; i++)
            add_request(test_random(&random) % 2 ? ENGINE : OTHER_ENGINE,
                        (int)(test_random(&random) % 2), (int)(test_random(&random) % 2),
                        AT(0) + (int64_t)(test_random(&random) % 99) * SECOND);
        for (int device = 0; device < 2; device++)
            for (int s = -20; s < 120; s++) {
                const double joules = (double)(test_random(&random) % 700);
                add_samples(SAMPLER, sampled[device], s, s + 1, joules);
                add_samples(OTHER_ENGINE, names[device], s, s + 1, joules);
            }
        exec("COMMIT");
        exec("CREATE TEMP TABLE used AS SELECT DISTINCT run, device FROM inference");
        const double joules = store_number(
            format_text("SELECT sum((SELECT total(s.energy_used_joules) FROM device_sample s"
                        " WHERE s.run = iif(d.run = 1, 2, 3) AND s.device = CASE WHEN d.run <> 1"
                        " THEN d.device WHEN d.device = %u THEN %u ELSE %u END"
                        " AND s.started_ns BETWEEN 1772323200000000000"
                        " AND 1772323200000000000 + 99999999999)) FROM temp.used d",
                        names[0], sampled[0], sampled[1]));
        const struct query tokens = about("tokens_per_joule", "");
        const struct query each = about("joules_per_request", "");
        struct result *result = ask(&tokens);
        expect_row(result, 0, "mean", requests * (double)ENGINES_TOKENS / joules);
        result_free(result);
        result = ask(&each);
        expect_row(result, 0, "mean", joules / requests);
        result_free(result);
        exec("DROP TABLE temp.used");
    }
}

TEST_CASE(test_refusals)
{
    struct query query = about("joules_per_request", "");
    expect_error(&query, STATUS_NO_DATA, "no inference.joules_per_request in the store");
    query.group_by[query.group_count++] = QUERY_BY_RUN;
    expect_error(&query, STATUS_INVALID, "groups and filters are model, host and device, not run");
    query = about("tokens_per_joule", "m");
    (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "ok");
    expect_error(&query, STATUS_INVALID, "not status");
}

TEST_MAIN_EACH(set_up, store_tear_down, test_groups, test_steps, test_coverage,
               test_engines_with_the_same_name, test_two_samplers, test_random_stores,
               test_refusals)
