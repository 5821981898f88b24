// The built-in rule "slower than its baseline" on a store: a baseline of a day, then 5 hours
// (INFERSTAT_TEST_VOLUME times that) of two hosts with two models under the noise that
// test_alert_simulation.c states, and then requests that take 4 times as long.
#include <math.h>

#include <sqlite3.h>

#include "common/core/alert/alert_file.h"
#include "common/core/alert/alert_state.h"
#include "common/store/alert/alert_source.h"
#include "common/store/read/session.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

enum { HOSTS = 2, MODELS = 2, STEP_S = 15, REQUESTS_A_STEP = 3, SERIES = HOSTS * MODELS };

static uint64_t seed = 3;
static double drifts[HOSTS];
static sqlite3_stmt *insert;

static double normal(void)
{
    const double a = ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
    const double b = ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
    return sqrt(-2 * log(a)) * cos(2 * acos(-1) * b);
}

static void add_request(int host, int model, int64_t started_ns, double slow)
{
    const int64_t ttft_ns = (int64_t)(0.4e9 * slow * exp(0.5 * normal()));
    const int64_t decode_ns = (int64_t)(49 * 0.025e9 * slow * exp(0.5 * normal()));
    const int64_t values[] = {host + 1, started_ns, started_ns, rows_name(db, model ? "m1" : "m0"),
                              ttft_ns,  ttft_ns,    decode_ns,  ttft_ns + decode_ns};
    for (int i = 0; i < (int)COUNT_OF(values); i++)
        (void)sqlite3_bind_int64(insert, i + 1, values[i]);
    assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
    (void)sqlite3_reset(insert);
}

// The requests of the step that ends at `now_ns`, for each `rate` of them at the mean load.
static void make_step(int64_t now_ns, double slowness)
{
    const double keep = exp(-STEP_S / 720.0);
    for (int host = 0; host < HOSTS; host++) {
        const double hour = (double)(now_ns / SECOND) / 3600 + 12.0 * host;
        const double load = 1 + 0.8 * sin(hour * acos(-1) / 12);
        drifts[host] = keep * drifts[host] + sqrt(1 - keep * keep) * normal();
        const double slow = slowness * exp(0.15 * drifts[host]) * (1 + 0.15 * (load - 1) / 0.8);
        for (int model = 0; model < MODELS; model++)
            for (int i = 0; i < 2 * REQUESTS_A_STEP; i++)
                if ((double)(test_random(&seed) >> 11) * 0x1p-53 < load / 2)
                    add_request(host, model, now_ns - (1 + 2 * i) * SECOND, slow);
    }
}

struct fleet {
    struct alert_rule rule;
    struct alert_source_state *state;
    struct alert_series series[SERIES];
    struct alert_reading readings[SERIES];
    int fired;
};

static enum status on_value(void *context, const int64_t *keys, double value, struct error *err)
{
    struct fleet *fleet = context;
    (void)err;
    const int host = keys[1] == rows_name(db, "h1"), model = keys[0] == rows_name(db, "m1");
    fleet->readings[MODELS * host + model] =
        (struct alert_reading){.has_data = true, .value = value, .count = 1};
    return STATUS_OK;
}

static void evaluate(struct fleet *fleet, int64_t now_ns)
{
    const struct alert_times times = {now_ns, 0};
    struct error err = {0};
    memset(fleet->readings, 0, sizeof fleet->readings);
    expect_ok(alert_source_read(&fleet->state, store, &fleet->rule, &times, on_value, fleet, &err),
              &err);
    for (int i = 0; i < SERIES; i++)
        fleet->fired +=
            alert_step(&fleet->series[i], &fleet->rule, &fleet->readings[i], now_ns) == ALERT_FIRED;
}

static void take_built_in(struct alert_rule *rule)
{
    struct alert_file file;
    struct error err = {0};
    expect_ok(alert_file_read(&file, "", 0, &err), &err);
    for (size_t i = 0; i < file.rule_count; i++)
        if (file.rules[i].source == ALERT_SOURCE_BASELINE_SLOWER)
            *rule = file.rules[i];
    alert_file_deinit(&file);
}

TEST_CASE(a_day_is_the_baseline)
{
    struct fleet fleet = {.fired = 0};
    int64_t now_ns = START_NS / (24 * HOUR) * 24 * HOUR;
    take_built_in(&fleet.rule);
    rows_run(db, 1, "h0", now_ns, now_ns + 10000 * HOUR);
    rows_run(db, 2, "h1", now_ns, now_ns + 10000 * HOUR);
    exec("INSERT OR IGNORE INTO name(text) VALUES('gpu')");
    assert_int_equal(sqlite3_prepare_v2(
                         db,
                         "INSERT INTO inference(run, stream, number, started_ns, received_ns,"
                         " model, device, request, finish, prompt_tokens, cached_prompt_tokens,"
                         " generated_tokens, queue_ns, prefill_ns, ttft_ns, decode_ns, e2e_ns,"
                         " host_memory_bytes) VALUES(?, 0, 1, ?, ?, ?,"
                         " (SELECT id FROM name WHERE text = 'gpu'), 1, 0, 100, 0, 50, 0, ?, ?, ?,"
                         " ?, 1)",
                         -1, &insert, NULL),
                     SQLITE_OK);
    exec("BEGIN");
    for (int i = 0; i < 24 * 3600 / STEP_S; i++)
        make_step(now_ns += STEP_S * SECOND, 1);
    exec("COMMIT");
    saved("h0");

    const unsigned hours = test_volume(5);
    for (unsigned window = 0; window < hours * 6; window++) {
        exec("BEGIN");
        for (int i = 0; i < 600 / STEP_S; i++)
            make_step(now_ns += STEP_S * SECOND, 1);
        exec("COMMIT");
        for (int i = 0; i < 4; i++)
            evaluate(&fleet, now_ns + (45 + i * STEP_S) * SECOND);
    }
    print_message("%u hours of %d series: %d false alerts\n", hours, SERIES, fleet.fired);
    assert_int_equal(fleet.fired, 0);
    for (int window = 0; window < 2; window++) {
        exec("BEGIN");
        for (int i = 0; i < 600 / STEP_S; i++)
            make_step(now_ns += STEP_S * SECOND, 4);
        exec("COMMIT");
        evaluate(&fleet, now_ns + 45 * SECOND);
    }
    // 45 s after two windows; the other host has too few requests at its least load.
    assert_int_equal(fleet.fired, MODELS);
    for (int i = 0; i < MODELS; i++)
        assert_int_equal(fleet.series[i].state, ALERT_FIRING);
    (void)sqlite3_finalize(insert);
    alert_source_state_free(fleet.state);
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, a_day_is_the_baseline)
