// Events: their records are merged, and what they cost is what was planted.
#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/stats/stats.h"
#include "common/store/query/event_cost.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)
#define HOUR   (3600 * SECOND)
#define AT(s)  (START_NS + (s)*SECOND)

enum { ENGINE = 1, SAMPLER, ENDED, SILENT, OTHER_HOST };

static uint32_t models[2], gpu, namesake, sampled, throttling, xid, pressure, foreign;
static uint64_t random_state;

// The engine's `gpu` is what its host's sampler calls `cuda:1`; the sampler's `gpu` is another one.
TEST_FIXTURE(set_up)
{
    store_make(state);
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    gpu = rows_name(db, "gpu");
    namesake = gpu;
    sampled = rows_name(db, "cuda:1");
    throttling = rows_name(db, "throttling");
    xid = rows_name(db, "xid");
    pressure = rows_name(db, "memory_pressure");
    foreign = rows_name(db, "foreign_process");
    random_state = 5;
    rows_run(db, ENGINE, "alpha", START_NS, AT(100000));
    rows_run(db, SAMPLER, "alpha", START_NS, AT(100000));
    rows_run(db, ENDED, "alpha", START_NS, AT(900));
    rows_run(db, SILENT, "alpha", START_NS, AT(800));
    rows_run(db, OTHER_HOST, "beta", START_NS, AT(100000));
    exec("UPDATE run SET \"end\" = 0");
    execf("UPDATE run SET \"end\" = 1, ended_ns = %lld WHERE run = %d", (long long)AT(900), ENDED);
    execf("UPDATE run SET \"end\" = 3 WHERE run = %d", SILENT);
    return store_read();
}

static void add_devices(void)
{
    rows_device(db, ENGINE, START_NS, gpu, "GPU-1");
    rows_device(db, SAMPLER, START_NS, sampled, "GPU-1");
    rows_device(db, SAMPLER, START_NS, namesake, "GPU-0");
}

// `device` 0: of the host; `duration_ns` below 0: none.
static void add_event(int64_t run, uint32_t name, uint32_t device, int64_t started_ns,
                      int64_t duration_ns, int64_t code)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, started_ns);
    record_set_name(&record, EVENT_EVENT, name);
    if (device)
        record_set_name(&record, EVENT_DEVICE, device);
    if (duration_ns >= 0)
        record_set_int(&record, EVENT_DURATION_NS, duration_ns);
    record_set_int(&record, EVENT_CODE, code);
    (void)rows_add(db, run, &record);
}

// From `slower` on, a token takes so many times the usual 10 ms; its noise is 2 %.
static void add_request(int64_t run, uint32_t model, int64_t started_ns, double slower)
{
    struct record record;
    const double noise = 1 + 0.04 * ((double)(test_random(&random_state) >> 11) / 0x1p53 - 0.5);
    const int64_t decode_ns = (int64_t)(990e6 * slower * noise);
    const int64_t ttft_ns = (int64_t)(100e6 * slower * noise);
    record_init(&record, RECORD_KIND_INFERENCE, started_ns);
    record_set_name(&record, INFERENCE_MODEL, model);
    record_set_name(&record, INFERENCE_DEVICE, gpu);
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, 10);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, 100);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_PREFILL_NS, ttft_ns);
    record_set_int(&record, INFERENCE_TTFT_NS, ttft_ns);
    record_set_int(&record, INFERENCE_DECODE_NS, decode_ns);
    record_set_int(&record, INFERENCE_E2E_NS, ttft_ns + decode_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    (void)rows_add(db, run, &record);
}

static void add_sample(uint32_t device, int64_t started_ns, double joules)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, device);
    record_set_int(&record, DEVICE_SAMPLE_DURATION_NS, SECOND);
    record_set_real(&record, DEVICE_SAMPLE_ENERGY_USED, joules);
    (void)rows_add(db, SAMPLER, &record);
}

// A request each two seconds for `seconds`, slower from `since` to `until`, and samples: 300 W, of
// which the throttled device takes as much.
static void add_history(int seconds, int since, int until, double slower)
{
    exec("BEGIN");
    add_devices();
    for (int s = 0; s < seconds; s += 2)
        add_request(ENGINE, models[0], AT(s), s >= since && s < until ? slower : 1);
    add_sample(sampled, AT(0), 300);
    add_sample(namesake, AT(0), 7);
    execf("WITH RECURSIVE i(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM i WHERE n + 1 < %d)"
          " INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,"
          " duration_ns, energy_used_joules_stored) SELECT run, stream, number + 2 * n,"
          " started_ns + n * 1000000000, received_ns, device, duration_ns,"
          " energy_used_joules_stored FROM i CROSS JOIN (SELECT * FROM device_sample)",
          seconds);
    exec("COMMIT");
}

static double real_of(const struct result *result, size_t row, const char *key)
{
    assert_true(result_find(result, key) >= 0);
    return result_number(result, row, key, NAN);
}

static void expect_about(const struct result *result, const char *key, double expected,
                         double share)
{
    const double actual = real_of(result, 0, key);
    if (!(fabs(actual - expected) <= share * fabs(expected)))
        fail_msg("%s is %g, not about %g", key, actual, expected);
}

static bool is_null(const struct result *result, size_t row, const char *key)
{
    assert_true(result_find(result, key) >= 0);
    return result_cell(result, row, (unsigned)result_find(result, key)).type == VALUE_NULL;
}

TEST_CASE(test_records_are_merged)
{
    add_event(SAMPLER, throttling, sampled, AT(10), -1, 4);
    add_event(SAMPLER, throttling, gpu, AT(10), -1, 8); // of the other device, and lasts
    add_event(SAMPLER, throttling, sampled, AT(10), 20 * SECOND, 0x24);
    add_event(SAMPLER, xid, sampled, AT(50), 0, 79);
    add_event(SAMPLER, xid, sampled, AT(50), 0, 48);
    add_event(SAMPLER, foreign, sampled, AT(60), -1, 100);
    add_event(SAMPLER, foreign, sampled, AT(60), -1, 200);
    add_event(SAMPLER, foreign, sampled, AT(60), 5 * SECOND, 100);
    add_event(ENDED, pressure, 0, AT(700), -1, 0);
    add_event(SILENT, pressure, 0, AT(710), -1, 0);
    add_event(OTHER_HOST, pressure, 0, AT(720), 10 * SECOND, 0);
    static const struct {
        const char *event, *device;
        int64_t started_s, ended_s, duration_s, code; // ended -1: it lasts
    } expected[] = {
        {"memory_pressure", NULL, 720, 730, 10, 0},
        {"memory_pressure", NULL, 710, 800, 90, 0},
        {"memory_pressure", NULL, 700, 900, 200, 0},
        {"foreign_process", "cuda:1", 60, 65, 5, 100},
        {"foreign_process", "cuda:1", 60, -1, 99940, 200},
        {"xid", "cuda:1", 50, 50, 0, 48},
        {"xid", "cuda:1", 50, 50, 0, 79},
        {"throttling", "cuda:1", 10, 30, 20, 0x24},
        {"throttling", "gpu", 10, -1, 99990, 8},
    };
    const struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_true(result_is(result, i, "event", expected[i].event));
        assert_true(expected[i].device ? result_is(result, i, "device", expected[i].device)
                                       : is_null(result, i, "device"));
        assert_int_equal(result_integer(result, i, "started_ns", 0), AT(expected[i].started_s));
        if (expected[i].ended_s < 0)
            assert_true(is_null(result, i, "ended_ns"));
        else
            assert_int_equal(result_integer(result, i, "ended_ns", 0), AT(expected[i].ended_s));
        assert_int_equal(result_integer(result, i, "duration_ns", -1),
                         expected[i].duration_s * SECOND);
        assert_int_equal(result_integer(result, i, "code", -1), expected[i].code);
        assert_int_equal(result_integer(result, i, "requests", -1), 0);
        assert_true(is_null(result, i, "model"));
    }
    result_free(result);
}

TEST_CASE(test_window_filter_and_limit)
{
    add_event(SAMPLER, throttling, sampled, AT(0), -1, 4); // lasts
    add_event(SAMPLER, throttling, sampled, AT(10), 20 * SECOND, 4);
    add_event(SAMPLER, xid, gpu, AT(50), 0, 79);
    add_event(OTHER_HOST, pressure, 0, AT(95000), 10 * SECOND, 0);
    static const struct {
        int64_t since_s, until_s;
        const char *host, *device, *model;
        uint32_t limit;
        size_t rows;
    } cases[] = {
        {0, 0, NULL, NULL, NULL, 0, 4},       {0, 0, NULL, NULL, NULL, 2, 2},
        {0, 0, "alpha", NULL, NULL, 0, 3},    {0, 0, NULL, "gpu", NULL, 0, 1},
        {20, 50, NULL, NULL, NULL, 0, 2},     {30, 50, NULL, NULL, NULL, 0, 1},
        {30, 51, NULL, NULL, NULL, 0, 2},     {50, 51, NULL, NULL, NULL, 0, 2},
        {95000, 0, NULL, NULL, NULL, 0, 2},   {95011, 0, NULL, NULL, NULL, 0, 1},
        {95000, 0, "beta", NULL, NULL, 0, 1}, {190000, 0, "alpha", NULL, NULL, 0, 0},
        {0, 0, NULL, NULL, "small", 0, 0},    {0, 0, "gamma", NULL, NULL, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_EVENTS, .limit = cases[i].limit};
        query.filter.since_ns = cases[i].since_s ? AT(cases[i].since_s) : 0;
        query.filter.until_ns = cases[i].until_s ? AT(cases[i].until_s) : 0;
        const char *const texts[] = {cases[i].model, cases[i].host, cases[i].device};
        for (unsigned d = QUERY_BY_MODEL; d <= QUERY_BY_DEVICE; d++)
            if (texts[d])
                (void)snprintf(query.filter.by[d], QUERY_TEXT_SIZE, "%s", texts[d]);
        struct result *result = NULL;
        struct error err = {0};
        const enum status status = store_query(store, &query, &result, &err);
        assert_int_equal(status, cases[i].rows ? STATUS_OK : STATUS_NO_DATA);
        if (status == STATUS_OK && result_row_count(result) != cases[i].rows)
            fail_msg("case %zu has %zu rows", i, result_row_count(result));
        result_free(result);
    }
}

// Of one name, or of those like a pattern.
TEST_CASE(test_events_of_a_name)
{
    static const struct {
        const char *host, *device, *event;
        size_t rows;
    } cases[] = {{"", "", "xid", 1},     {"", "", "t*ing", 2},      {"alpha", "", "t*", 2},
                 {"beta", "", "t*", 0},  {"", "cuda:1", "xid", 0},  {"", "gpu", "xid", 1},
                 {"", "cuda:1", "*", 2}, {"", "", "unheard_of", 0}, {"", "", "", 4}};
    add_event(SAMPLER, throttling, sampled, AT(0), -1, 4); // lasts
    add_event(SAMPLER, throttling, sampled, AT(10), 20 * SECOND, 4);
    add_event(SAMPLER, xid, gpu, AT(50), 0, 79);
    add_event(OTHER_HOST, pressure, 0, AT(95000), 10 * SECOND, 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_EVENTS};
        const char *const texts[] = {cases[i].host, cases[i].device, cases[i].event};
        const enum query_dimension by[] = {QUERY_BY_HOST, QUERY_BY_DEVICE, QUERY_BY_EVENT};
        for (unsigned d = 0; d < COUNT_OF(by); d++)
            (void)snprintf(query.filter.by[by[d]], QUERY_TEXT_SIZE, "%s", texts[d]);
        if (cases[i].rows == 0) {
            expect_error(&query, STATUS_NO_DATA, "no events that match");
            continue;
        }
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), cases[i].rows);
        result_free(result);
    }
    struct query query = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_EVENT};
    (void)snprintf(query.filter.by[QUERY_BY_EVENT], QUERY_TEXT_SIZE, "xid");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    query.records.kind = RECORD_KIND_LOAD;
    expect_error(&query, STATUS_INVALID, "no event to filter by");
}

// The metric of XIDs has a value of each of them, and none of other events.
TEST_CASE(test_xids_are_a_metric)
{
    struct query query = {.kind = QUERY_AVERAGE, .metric = "xid_count", .step_ns = 60 * SECOND};
    query.group_by[query.group_count++] = QUERY_BY_DEVICE;
    add_event(SAMPLER, throttling, sampled, AT(0), 20 * SECOND, 4);
    for (int i = 0; i < 5; i++)
        add_event(SAMPLER, xid, i < 4 ? sampled : gpu, AT(50 * i), 0, 79);
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 4);
    assert_int_equal(result_integer(result, 2, "count", 0), 2);
    result_free(result);
    query.step_ns = 0;
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", 0), 4);
    assert_int_equal(result_integer(result, 1, "count", 0), 1);
    result_free(result);
}

// The requests of an engine and the events of a sampler meet by the UUID of the device.
TEST_CASE(test_cost_is_what_was_planted)
{
    add_history(3000, 1200, 1500, 1.6);
    add_event(SAMPLER, throttling, sampled, AT(1200), -1, 4);
    add_event(SAMPLER, throttling, sampled, AT(1200), 300 * SECOND, 4);
    const struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_true(result_is(result, 0, "model", "small"));
    assert_int_equal(result_integer(result, 0, "requests", 0), 150);
    assert_int_equal(result_integer(result, 0, "usual_requests", 0), 1350);
    expect_about(result, "tokens_per_second", 62.5, 0.01);
    expect_about(result, "usual_tokens_per_second", 100, 0.01);
    expect_about(result, "tokens_per_second_ratio", 0.625, 0.01);
    expect_about(result, "ttft_ratio", 1.6, 0.01);
    expect_about(result, "usual_ttft_ns", 100e6, 0.01);
    expect_about(result, "tokens_lost", 150 * 100 * 0.6, 0.03);
    assert_true(real_of(result, 0, "tokens_per_second_ratio_low") <= 0.625);
    assert_true(real_of(result, 0, "tokens_per_second_ratio_high") >= 0.625);
    assert_true(real_of(result, 0, "tokens_lost_low") <= 9000);
    assert_true(real_of(result, 0, "tokens_lost_high") >= 9000);
    // A request each two seconds takes 600 J, slow or not.
    expect_about(result, "joules_per_token", 6, 0.02);
    expect_about(result, "usual_joules_per_token", 6, 0.02);
    expect_about(result, "joules_per_token_ratio", 1, 0.02);
    assert_true(real_of(result, 0, "joules_lost_low") < 0);
    assert_true(real_of(result, 0, "joules_lost_high") > 0);
    assert_true(is_null(result, 0, "note"));

    // The medians are those of the records.
    const double speeds = store_number(
        "SELECT avg(v) FROM (SELECT v, row_number() OVER (ORDER BY v) AS place, count(*) OVER () AS"
        " n FROM (SELECT (generated_tokens - 1) * 1e9 / decode_ns AS v FROM inference"
        " WHERE started_ns BETWEEN 1790000000000000000 + 1200000000000"
        " AND 1790000000000000000 + 1499999999999)) WHERE place IN ((n + 1) / 2, (n + 2) / 2)");
    expect_close(real_of(result, 0, "tokens_per_second"), speeds, "the median");
    result_free(result);

    // What draws less while it is throttled has used less.
    execf("UPDATE device_sample SET energy_used_joules_stored = 150.0 WHERE device = %u AND "
          "started_ns"
          " BETWEEN %lld AND %lld",
          sampled, (long long)AT(1200), (long long)AT(1499));
    result = ask(&query);
    expect_about(result, "joules_per_token_ratio", 0.5, 0.02);
    expect_about(result, "joules_lost", -45000, 0.1);
    result_free(result);

    // What two runs sample is used once.
    execf("INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,"
          " duration_ns, energy_used_joules_stored) SELECT %d, 9, id, started_ns + 100000000, "
          "received_ns,"
          " %u, duration_ns, energy_used_joules FROM device_sample WHERE device = %u",
          ENGINE, gpu, sampled);
    result = ask(&query);
    expect_about(result, "joules_per_token_ratio", 0.5, 0.02);
    expect_about(result, "joules_lost", -45000, 0.1);
    result_free(result);
}

// An error lasts no time: it costs what the minute after it does.
TEST_CASE(test_cost_of_a_moment)
{
    add_history(3000, 1200, 1260, 1.6);
    add_event(SAMPLER, xid, sampled, AT(1200), 0, 79);
    const struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_int_equal(result_integer(result, 0, "duration_ns", -1), 0);
    assert_int_equal(result_integer(result, 0, "requests", 0), 30);
    assert_int_equal(result_integer(result, 0, "usual_requests", 0), 1470);
    expect_about(result, "tokens_per_second_ratio", 0.625, 0.02);
    expect_about(result, "ttft_ratio", 1.6, 0.02);
    assert_true(real_of(result, 0, "tokens_per_second_ratio_high") < 0.7);
    expect_about(result, "joules_per_token", 6, 0.05);
    result_free(result);

    // Nor are these requests usual ones of another event, half an hour before and after it.
    add_event(SAMPLER, throttling, sampled, AT(1000), 100 * SECOND, 4);
    result = ask(&query);
    assert_int_equal(result_integer(result, 1, "usual_requests", 0), 1370);
    result_free(result);
    add_event(SAMPLER, rows_name(db, "ecc_uncorrected"), sampled, AT(2900), -1, 2);
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "duration_ns", -1), 0); // though it has no end yet
    result_free(result);
}

// Requests that other events touched are not usual, also of events that are not asked for.
TEST_CASE(test_other_events_are_left_out)
{
    add_history(2000, 1000, 2000, 3);
    add_event(SAMPLER, throttling, sampled, AT(999), 100 * SECOND, 4);
    add_event(SAMPLER, pressure, 0, AT(1099), 901 * SECOND, 0);
    add_event(SAMPLER, throttling, gpu, AT(0), 900 * SECOND, 4); // of another device
    for (int named = 0; named < 2; named++) {
        struct query query = {.kind = QUERY_EVENTS};
        (void)snprintf(query.filter.by[QUERY_BY_EVENT], QUERY_TEXT_SIZE, named ? "thr*" : "");
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 3 - named); // no requests on the other device
        size_t row = 0;
        while (!result_is(result, row, "device", "cuda:1"))
            row++;
        assert_int_equal(result_integer(result, row, "requests", 0), 50);
        assert_int_equal(result_integer(result, row, "usual_requests", 0),
                         499); // the last reaches into it
        expect_close(round(real_of(result, row, "usual_tokens_per_second")), 100, "speed");
        result_free(result);
    }
}

// Requests of other hosts, 400 a second, do not keep those of the event's device from being found.
TEST_CASE(test_a_busy_fleet)
{
    add_history(3000, 1200, 1500, 1.6);
    execf(
        "WITH RECURSIVE i(n) AS (VALUES(0) UNION ALL SELECT n + 1 FROM i WHERE n < 159999)"
        " INSERT INTO inference(run, stream, number, started_ns, received_ns, model, device,"
        " request, finish, prompt_tokens, generated_tokens, queue_ns, prefill_ns, ttft_ns,"
        " decode_ns, e2e_ns, host_memory_bytes) SELECT %d, 1, n, %lld + n * 2500000, 0, %u, %u, 1,"
        " 1, 1, 2, 0, 1, 1, 1, 2, 1 FROM i",
        OTHER_HOST, (long long)AT(1150), models[0], gpu);
    add_event(SAMPLER, throttling, sampled, AT(1200), 300 * SECOND, 4);
    const struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_true(result_integer(result, 0, "requests", 0) >= 100);
    assert_true(result_integer(result, 0, "usual_requests", 0) >= 100);
    expect_about(result, "tokens_per_second_ratio", 0.625, 0.02);
    expect_about(result, "tokens_per_second_ratio_low", 0.625, 0.05);
    assert_true(result_is(result, 0, "note", "compares only the end of the event"));
    result_free(result);
}

// A name that a run has for a device finds what other runs of its host tell of it, and what they
// tell keeps requests from being usual ones.
TEST_CASE(test_names_of_a_device)
{
    add_history(2000, 0, 0, 1);
    add_event(SAMPLER, throttling, sampled, AT(1000), 100 * SECOND, 4);
    add_event(ENGINE, throttling, gpu, AT(0), 900 * SECOND, 4);
    add_event(SAMPLER, xid, namesake, AT(500), 0, 79);
    execf("WITH RECURSIVE i(n) AS (VALUES(0) UNION ALL SELECT n + 1 FROM i WHERE n < 24999)"
          " INSERT INTO event(run, stream, number, started_ns, received_ns, event, device,"
          " duration_ns, code) SELECT %d, 1, n, %lld + n, 0, %u, %u, 0, 31 FROM i",
          SAMPLER, (long long)AT(3000), xid, rows_name(db, "cuda:7"));
    struct query query = {.kind = QUERY_EVENTS};
    (void)snprintf(query.filter.by[QUERY_BY_DEVICE], QUERY_TEXT_SIZE, "gpu");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    assert_true(result_is(result, 0, "device", "cuda:1"));
    assert_int_equal(result_integer(result, 0, "requests", 0), 50);
    assert_int_equal(result_integer(result, 0, "usual_requests", 0), 500);
    assert_true(result_is(result, 1, "event", "xid"));
    assert_true(result_is(result, 2, "device", "gpu"));
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_DEVICE], QUERY_TEXT_SIZE, "cuda:1");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    result_free(result);
}

// Tokens of a host count once, although its devices are read one after the other.
TEST_CASE(test_energy_of_a_host)
{
    add_history(1000, 0, 0, 1);
    execf("UPDATE device_sample SET started_ns = started_ns + 3000000 WHERE device = %u", namesake);
    add_event(SAMPLER, pressure, 0, AT(400), 200 * SECOND, 0);
    const struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    expect_about(result, "joules_per_token", 6.14, 0.02);
    expect_about(result, "usual_joules_per_token", 6.14, 0.02);
    result_free(result);

    // What two runs sample is used once.
    execf("INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,"
          " duration_ns, energy_used_joules_stored) SELECT %d, 9, id, started_ns + 600000000, "
          "received_ns,"
          " %u, duration_ns, energy_used_joules_stored FROM device_sample WHERE device = %u",
          ENGINE, gpu, sampled);
    result = ask(&query);
    expect_about(result, "joules_per_token", 6.14, 0.02);
    expect_about(result, "usual_joules_per_token", 6.14, 0.02);
    result_free(result);
}

TEST_CASE(test_what_is_unknown_is_null)
{
    add_history(400, 0, 0, 1);
    add_request(ENGINE, models[1], AT(150), 1);
    add_event(SAMPLER, throttling, sampled, AT(100), 100 * SECOND, 4);
    struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    assert_true(is_null(result, 0, "joules_per_token"));
    assert_true(result_is(result, 0, "note", "several models ran: the energy of one is unknown"));
    assert_true(is_null(result, 1, "tokens_per_second_ratio"));
    assert_true(is_null(result, 1, "tokens_lost"));
    assert_true(result_is(
        result, 1, "note",
        "not compared: too few requests meanwhile; several models ran: the energy of one is"
        " unknown"));
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "large");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_int_equal(result_integer(result, 0, "requests", 0), 1);
    result_free(result);
}

// Without a change the interval holds 1 in nearly all of many random histories.
TEST_CASE(test_no_change_is_none)
{
    unsigned outside = 0, compared = 0;
    add_history(12000, 0, 0, 1);
    for (int i = 0; i < 60; i++)
        add_event(SAMPLER, throttling, sampled, AT(200 + i * 190), (10 + i) * SECOND, 4);
    const struct query query = {.kind = QUERY_EVENTS};
    struct result *result = ask(&query);
    static const char *const figures[] = {"tokens_per_second", "ttft", "joules_per_token"};
    for (size_t row = 0; row < result_row_count(result); row++)
        for (unsigned i = 0; i < COUNT_OF(figures); i++) {
            char low[64], high[64];
            (void)snprintf(low, sizeof low, "%s_ratio_low", figures[i]);
            (void)snprintf(high, sizeof high, "%s_ratio_high", figures[i]);
            if (is_null(result, row, low))
                continue;
            compared++;
            outside += real_of(result, row, low) > 1 || real_of(result, row, high) < 1;
        }
    assert_true(compared > 100);
    assert_true(outside * 20 <= compared);
    result_free(result);
}

TEST_CASE(test_refusals_and_absurd_rows)
{
    struct query query = {.kind = QUERY_EVENTS};
    expect_error(&query, STATUS_NO_DATA, "no events that match");
    (void)snprintf(query.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "x");
    expect_error(&query, STATUS_INVALID, "filters are host, device, model and event, not stage");
    query = (struct query){.kind = QUERY_EVENTS, .limit = 1001};
    expect_error(&query, STATUS_INVALID, "events are 1000 at most");
    query.limit = 0;
    add_history(50, 0, 0, 1);
    add_event(SAMPLER, throttling, sampled, INT64_MAX - 5, 100, 4);
    add_event(SAMPLER, throttling, sampled, INT64_MIN + 5, INT64_MAX, 4);
    add_event(SAMPLER, throttling, sampled, AT(10), INT64_MAX, 4);
    exec("UPDATE inference SET e2e_ns = 9223372036854775807, ttft_ns = -9223372036854775807"
         " WHERE id % 3 = 0; UPDATE inference SET generated_tokens = 9223372036854775807"
         " WHERE id % 3 = 1; UPDATE device_sample SET duration_ns = 9223372036854775807"
         " WHERE id % 5 = 0");
    add_event(ENDED, pressure, 0, INT64_MIN, -1, 4);
    exec("UPDATE run SET ended_ns = 9223372036854775807 WHERE run = 3");
    struct result *result = ask(&query);
    assert_true(result_row_count(result) >= 4);
    for (size_t row = 0; row < result_row_count(result); row++)
        assert_true(result_integer(result, row, "duration_ns", -1) >= 0);
    result_free(result);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_records_are_merged, test_window_filter_and_limit,
               test_xids_are_a_metric, test_events_of_a_name, test_cost_is_what_was_planted,
               test_cost_of_a_moment, test_other_events_are_left_out, test_a_busy_fleet,
               test_names_of_a_device, test_energy_of_a_host, test_what_is_unknown_is_null,
               test_no_change_is_none, test_refusals_and_absurd_rows)
