// A store with two runs of two hosts, three models and two devices: the slowest requests are
// attributed to what was planted.

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "common/store/query/latency_attribution.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)
#define DAY    (86400 * SECOND)

// When the slow one starts: a second after a usual one.
#define SLOW_NS (START_NS + 301 * SECOND)

static uint32_t models[3], devices[3];

TEST_FIXTURE(set_up)
{
    store_make(state);
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    models[2] = rows_name(db, "it's; --");
    devices[0] = rows_name(db, "gpu");
    devices[1] = rows_name(db, "cpu");
    devices[2] = rows_name(db, "cuda:0");
    rows_run(db, 1, "alpha", START_NS, START_NS + 400 * DAY);
    rows_run(db, 2, "beta", START_NS, START_NS + 400 * DAY);
    return store_read();
}

struct request {
    int64_t started_ns, queue_ns, prefill_ns, decode_ns;
    int64_t prompt, generated, concurrent;
    unsigned model, device;
};

// Inserts it as an inference of that run.
static void add_request(int64_t run, const struct request *request)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, request->started_ns);
    record_set_name(&record, INFERENCE_MODEL, models[request->model]);
    record_set_name(&record, INFERENCE_DEVICE, devices[request->device]);
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, request->prompt);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, request->generated);
    record_set_int(&record, INFERENCE_QUEUE_NS, request->queue_ns);
    record_set_int(&record, INFERENCE_PREFILL_NS, request->prefill_ns);
    record_set_int(&record, INFERENCE_TTFT_NS, request->queue_ns + request->prefill_ns);
    record_set_int(&record, INFERENCE_DECODE_NS, request->decode_ns);
    record_set_int(&record, INFERENCE_E2E_NS,
                   request->queue_ns + request->prefill_ns + request->decode_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    if (request->concurrent > 0)
        record_set_int(&record, INFERENCE_CONCURRENT, request->concurrent);
    (void)rows_add(db, run, &record);
}

// 10 ms of queue, 100 prompt tokens in 50 ms, 100 tokens in 990 ms; `wobble` is up to
// 2 % more.
static struct request usual(int64_t started_ns, uint64_t *random)
{
    const int64_t wobble = (int64_t)(test_random(random) % 20);
    return (struct request){.started_ns = started_ns,
                            .queue_ns = 10 * MS,
                            .prefill_ns = 50 * MS,
                            .decode_ns = 990 * MS + wobble * MS,
                            .prompt = 100,
                            .generated = 100,
                            .concurrent = 2};
}

static void add_usual(unsigned count)
{
    uint64_t random = 99;
    exec("BEGIN");
    for (unsigned i = 0; i < count; i++) {
        const struct request request = usual(START_NS + (int64_t)i * 20 * SECOND, &random);
        add_request(1 + i % 2, &request);
    }
    exec("COMMIT");
}

// The slowest of all: a usual request and `more`.
static void add_slow(const struct request *more)
{
    uint64_t random = 1;
    struct request slow = usual(SLOW_NS, &random);
    slow.queue_ns += more->queue_ns;
    slow.prefill_ns += more->prefill_ns;
    slow.decode_ns += more->decode_ns;
    slow.prompt += more->prompt;
    slow.generated += more->generated;
    slow.concurrent += more->concurrent;
    add_usual(60);
    add_request(1, &slow);
}

static void add_load(int64_t run, int64_t started_ns, int64_t duration_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, started_ns);
    for (unsigned i = LOAD_DURATION_NS; i <= LOAD_HOST_MEMORY_AFTER; i++)
        if (i != LOAD_ERROR)
            record_set_int(&record, i, 0);
    record_set_name(&record, LOAD_MODEL, models[1]);
    record_set_name(&record, LOAD_DEVICE, devices[0]);
    record_set_int(&record, LOAD_DURATION_NS, duration_ns);
    (void)rows_add(db, run, &record);
}

static void add_pipeline(int64_t run, int64_t started_ns, int64_t duration_ns, int64_t copy_ns,
                         int64_t starved_ns, unsigned device)
{
    struct record record;
    record_init(&record, RECORD_KIND_PIPELINE, started_ns);
    for (unsigned i = PIPELINE_STATUS; i < PIPELINE_COLUMNS; i++)
        if (!record_kind_info(RECORD_KIND_PIPELINE)->columns[i].maybe)
            record_set_int(&record, i, 0);
    record_set_name(&record, PIPELINE_WORKLOAD, models[2]);
    record_set_name(&record, PIPELINE_DEVICE, devices[device]);
    record_set_int(&record, PIPELINE_DURATION_NS, duration_ns);
    record_set_int(&record, PIPELINE_COPY_BUSY_NS, copy_ns);
    record_set_int(&record, PIPELINE_COPY_STARVED_NS, starved_ns);
    (void)rows_add(db, run, &record);
}

// A sample is read at its end; one without duration (0) is valid until the run's next one.
static void add_period(int64_t run, int64_t started_ns, int64_t duration_ns, int64_t reasons,
                       unsigned device)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, devices[device]);
    record_set_int(&record, DEVICE_SAMPLE_THROTTLE, reasons);
    if (duration_ns > 0)
        record_set_int(&record, DEVICE_SAMPLE_DURATION_NS, duration_ns);
    (void)rows_add(db, run, &record);
}

static void add_sample(int64_t run, int64_t started_ns, int64_t reasons, unsigned device)
{
    add_period(run, started_ns, 0, reasons, device);
}

static void plant_throttle_before(void)
{
    add_period(1, SLOW_NS - 5 * SECOND, SECOND, 0x24, 0);
}

// The last reading before the request shows it, the next one does not.
static void plant_throttle_ending(void)
{
    add_period(1, SLOW_NS - 5 * SECOND, 5 * SECOND, 0x24, 0);
    add_period(1, SLOW_NS, 4 * SECOND, 0, 0);
}

// The last reading before the request shows it no longer.
static void plant_throttle_ended(void)
{
    add_period(1, SLOW_NS - 6 * SECOND, 5 * SECOND, 0x24, 0);
    add_period(1, SLOW_NS - SECOND, SECOND, 0, 0);
    add_period(1, SLOW_NS, 4 * SECOND, 0, 0);
}

static const char *text_of(const struct result *result, size_t row, const char *key, char text[64])
{
    const struct value value = result_cell(result, row, (unsigned)result_find(result, key));
    (void)snprintf(text, 64, "%.*s", value.type == VALUE_TEXT ? (int)value.text.size : 1,
                   value.type == VALUE_TEXT ? value.text.bytes : "-");
    return text;
}

static void expect_sum(const struct result *result, size_t row)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < ATTRIBUTION_PART_COUNT; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "%s_excess_ns",
                       attribution_part_name((enum attribution_part)i));
        assert_true(result_find(result, key) >= 0);
        sum += result_integer(result, row, key, 0);
    }
    assert_int_equal(sum, result_integer(result, row, "excess_ns", -1));
    assert_int_equal(sum, result_integer(result, row, "took_ns", -1) -
                              result_integer(result, row, "median_ns", -1));
}

static void plant_load(void)
{
    add_load(1, SLOW_NS - 30 * SECOND, 60 * SECOND);
}

static void plant_load_elsewhere(void)
{
    add_load(2, SLOW_NS - 30 * SECOND, 60 * SECOND);
}

static void plant_load_before(void)
{
    add_load(1, SLOW_NS - 30 * SECOND, 30 * SECOND);
}

static void plant_copy(void)
{
    add_pipeline(1, SLOW_NS - SECOND, 10 * SECOND, 9 * SECOND, 0, 0);
}

static void plant_copy_elsewhere(void)
{
    add_pipeline(1, SLOW_NS - SECOND, 10 * SECOND, 9 * SECOND, 0, 1); // on the other device
    add_pipeline(2, SLOW_NS - SECOND, 10 * SECOND, 9 * SECOND, 0, 0); // on the other host
}

static void plant_starvation(void)
{
    add_pipeline(1, SLOW_NS - SECOND, 10 * SECOND, SECOND, 9 * SECOND, 0);
}

static void plant_throttle(void)
{
    for (int i = -3; i < 6; i++)
        add_sample(1, SLOW_NS + i * SECOND, i >= 0 && i < 4 ? 0x24 : 1, 0);
}

static void plant_idle_clocks(void)
{
    for (int i = -3; i < 6; i++) {
        add_sample(1, SLOW_NS + i * SECOND, 0x3, 0);
        add_sample(1, SLOW_NS + i * SECOND, 0x24, 1); // the other device
        add_sample(2, SLOW_NS + i * SECOND, 0x24, 0); // the other host
    }
    add_sample(1, SLOW_NS - 20 * SECOND, 0x24, 0); // over before
    add_sample(1, SLOW_NS + 20 * SECOND, 0x24, 0);
}

// Another run of the host samples its devices: `gpu` of the engine is its device 2.
static void add_sampler(const char *uuid, const char *uuid_of_gpu)
{
    rows_run(db, 3, "alpha", START_NS, START_NS + 400 * DAY);
    rows_device(db, 1, START_NS, devices[0], "GPU-1");
    rows_device(db, 3, START_NS, devices[0], uuid_of_gpu);
    rows_device(db, 3, START_NS, devices[2], uuid);
}

static void plant_sampler(void)
{
    add_sampler("GPU-1", "GPU-2");
    for (int i = -3; i < 6; i++)
        add_sample(3, SLOW_NS + i * SECOND, i >= 0 && i < 4 ? 0x24 : 1, 2);
}

static void plant_namesake(void)
{
    add_sampler("GPU-1", "GPU-2");
    for (int i = -3; i < 6; i++)
        add_sample(3, SLOW_NS + i * SECOND, 0x24, 0);
}

// The run of the samples does not know UUIDs: names decide.
static void plant_throttle_by_name(void)
{
    rows_device(db, 1, START_NS, devices[0], "GPU-1");
    rows_run(db, 3, "alpha", START_NS, START_NS + 400 * DAY);
    for (int i = -3; i < 6; i++) {
        add_sample(3, SLOW_NS + i * SECOND, i >= 0 && i < 4 ? 0x24 : 1, 0);
        add_sample(3, SLOW_NS + i * SECOND, 0x24, 2);
    }
}

// Among the samples of a fleet, 25,000 in five seconds.
static void plant_throttle_in_fleet(void)
{
    plant_throttle();
    execf("INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device) WITH"
          " RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 25000)"
          " SELECT 2, 9, i, %lld + i * 200000, %lld, %u FROM n",
          (long long)(SLOW_NS + 5 * SECOND), (long long)SLOW_NS, devices[0]);
}

// During all requests of the host and device.
static void plant_copy_always(void)
{
    add_pipeline(1, START_NS - SECOND, 3000 * SECOND, 2700 * SECOND, 0, 0);
    add_pipeline(2, START_NS - SECOND, 3000 * SECOND, 2700 * SECOND, 0, 0);
}

// A process whose requests run on a second device, too.
static void plant_other_device(void)
{
    uint64_t random = 7;
    struct request other = usual(SLOW_NS, &random);
    other.device = 1;
    add_request(1, &other);
}

static void plant_load_and_copies(void)
{
    plant_copy_always();
    plant_load();
}

static void plant_load_always(void)
{
    add_load(1, START_NS - SECOND, 3000 * SECOND);
    add_load(2, START_NS - SECOND, 3000 * SECOND);
}

static void plant_throttle_always(void)
{
    for (int i = -1; i < 1500; i += 5) {
        add_sample(1, START_NS + i * SECOND, 0x24, 0);
        add_sample(2, START_NS + i * SECOND, 0x24, 0);
    }
}

static void plant_failure(void)
{
    execf(
        "UPDATE inference SET finish = 3, ttft_ns = NULL, decode_ns = NULL WHERE started_ns = %lld",
        (long long)SLOW_NS);
}

// Samples of the slow request's process each second, but for one that comes after 2.5 s and tells
// of this use of processors.
static void add_gap(double cpu_ratio)
{
    static const int64_t at_ms[] = {-2800, -1800, -800, 200, 2700, 3700};
    for (size_t i = 0; i < COUNT_OF(at_ms); i++) {
        struct record record;
        record_init(&record, RECORD_KIND_PROCESS_SAMPLE, SLOW_NS + at_ms[i] * MS);
        record_set_real(&record, PROCESS_SAMPLE_CPU, i == 4 ? cpu_ratio : 0.3);
        record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, 1);
        (void)rows_add(db, 1, &record);
        record_set_name(&record, PROCESS_SAMPLE_MODEL, models[0]);
        (void)rows_add(db, 1, &record);
    }
}

// It ran for half a second of the 2.5.
static void plant_stop(void)
{
    add_gap(0.06);
}

static void plant_throttled_stop(void)
{
    plant_throttle();
    plant_stop();
}

// Its samples were lost.
static void plant_throttled_gap(void)
{
    plant_throttle();
    add_gap(0.3);
}

enum { REFUSED_TOKENS = 5000000 };

TEST_CASE(test_planted_causes_are_named)
{
    static const struct {
        const char *name;
        struct request more; // than usual
        void (*plant)(void);
        const char *attribution;
    } cases[] = {
        {"nothing", {.decode_ns = 30 * MS}, NULL, "-"},
        {"a queue", {.queue_ns = SECOND}, NULL, "queue"},
        {"a long prompt", {.prefill_ns = SECOND, .prompt = 2000}, NULL, "prompt"},
        {"a slow prompt", {.prefill_ns = SECOND}, NULL, "prefill"},
        {"a refused prompt",
         {.queue_ns = SECOND, .prefill_ns = -50 * MS, .prompt = REFUSED_TOKENS},
         NULL,
         "queue"},
        {"a prompt that failed",
         {.queue_ns = SECOND, .prefill_ns = -40 * MS, .prompt = REFUSED_TOKENS},
         plant_failure,
         "queue"},
        {"many tokens", {.decode_ns = 2 * SECOND, .generated = 200}, NULL, "tokens"},
        {"slow tokens", {.decode_ns = 2 * SECOND}, NULL, "decode"},
        {"fewer, slower tokens", {.decode_ns = SECOND, .generated = -50}, NULL, "decode"},
        {"a load", {.decode_ns = 2 * SECOND}, plant_load, "load"},
        {"waiting for a load", {.queue_ns = 2 * SECOND}, plant_load, "load"},
        {"another host's load", {.decode_ns = 2 * SECOND}, plant_load_elsewhere, "decode"},
        {"a load before", {.decode_ns = 2 * SECOND}, plant_load_before, "decode"},
        {"copies", {.decode_ns = 2 * SECOND}, plant_copy, "copy"},
        {"copies while in the queue", {.queue_ns = 2 * SECOND}, plant_copy, "queue"},
        {"copies elsewhere", {.decode_ns = 2 * SECOND}, plant_copy_elsewhere, "decode"},
        {"starvation", {.decode_ns = 2 * SECOND}, plant_starvation, "starvation"},
        {"throttling", {.decode_ns = 2 * SECOND}, plant_throttle, "throttle"},
        {"a throttled prompt", {.prefill_ns = 2 * SECOND}, plant_throttle, "throttle"},
        {"throttling that was over", {.decode_ns = 2 * SECOND}, plant_throttle_before, "decode"},
        {"throttling's end", {.decode_ns = 2 * SECOND}, plant_throttle_ending, "throttle"},
        {"throttling that ended", {.decode_ns = 2 * SECOND}, plant_throttle_ended, "decode"},
        {"throttling a sampler saw", {.decode_ns = 2 * SECOND}, plant_sampler, "throttle"},
        {"a namesake's throttling", {.decode_ns = 2 * SECOND}, plant_namesake, "decode"},
        {"throttling in a fleet", {.decode_ns = 2 * SECOND}, plant_throttle_in_fleet, "throttle"},
        {"throttling without UUIDs", {.decode_ns = 2 * SECOND}, plant_throttle_by_name, "throttle"},
        {"clocks of others", {.decode_ns = 2 * SECOND}, plant_idle_clocks, "decode"},
        {"copies during all", {.decode_ns = 2 * SECOND}, plant_copy_always, "decode"},
        {"a load beside these", {.decode_ns = 2 * SECOND}, plant_load_and_copies, "load"},
        {"a load during all", {.decode_ns = 2 * SECOND}, plant_load_always, "decode"},
        {"waiting while all load", {.queue_ns = 2 * SECOND}, plant_load_always, "queue"},
        {"throttling of all", {.decode_ns = 2 * SECOND}, plant_throttle_always, "decode"},
        {"a stop", {.decode_ns = 2 * SECOND}, plant_stop, "stopped"},
        {"waiting during a stop", {.queue_ns = 2 * SECOND}, plant_stop, "stopped"},
        {"a stop while throttled", {.decode_ns = 2 * SECOND}, plant_throttled_stop, "stopped"},
        {"half of it stopped", {.decode_ns = 5 * SECOND}, plant_throttled_stop, "throttle"},
        {"lost samples", {.decode_ns = 2 * SECOND}, plant_throttled_gap, "throttle"},
        {"a crowd", {.decode_ns = 2 * SECOND, .concurrent = 14}, NULL, "concurrency"},
        {"a crowd of devices",
         {.decode_ns = 2 * SECOND, .concurrent = 14},
         plant_other_device,
         "decode"},
        {"a crowd in slow times",
         {.decode_ns = 2 * SECOND, .concurrent = 200},
         plant_throttle,
         "throttle"},
        {"a smaller crowd", {.decode_ns = 2 * SECOND, .concurrent = -1}, NULL, "decode"},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        if (i > 0) {
            (void)store_tear_down(state);
            (void)set_up(state);
        }
        add_slow(&cases[i].more);
        if (cases[i].plant)
            cases[i].plant();
        const struct query query = {.kind = QUERY_SLOWEST, .limit = 3};
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 3);
        assert_int_equal(result_integer(result, 0, "started_ns", 0), SLOW_NS);
        assert_int_equal(result_integer(result, 0, "peers", 0), 61);
        char text[64];
        if (strcmp(text_of(result, 0, "blame", text), cases[i].attribution) != 0)
            fail_msg("%s: %s is blamed instead of %s", cases[i].name, text, cases[i].attribution);
        for (size_t row = 0; row < 3; row++)
            expect_sum(result, row);
        if (cases[i].more.prompt == REFUSED_TOKENS)
            assert_int_equal(result_integer(result, 0, "prompt_excess_ns", -1), 0);
        if (cases[i].plant == plant_throttled_stop)
            assert_in_range(result_integer(result, 0, "stopped_excess_ns", 0), 1900 * MS,
                            2000 * MS);
        for (size_t row = 1; row < 3; row++)
            assert_string_equal(text_of(result, row, "blame", text), "-");
        const int64_t reasons = result_integer(result, 0, "throttle_reasons", 0);
        const bool is_throttled = cases[i].plant == plant_throttle_always ||
                                  cases[i].plant == plant_throttled_stop ||
                                  strcmp(cases[i].attribution, "throttle") == 0;
        assert_int_equal(reasons, is_throttled ? 0x24 : 0);
        result_free(result);
    }
}

// The slowest by another metric are blamed for what that metric is about.
TEST_CASE(test_other_metrics)
{
    static const struct {
        const char *metric;
        struct request more;
        const char *attribution;
        int64_t took_ns;
    } cases[] = {
        {"ttft_ns", {.queue_ns = SECOND, .decode_ns = 0}, "queue", 1060 * MS},
        {"inference.prefill_ns", {.prefill_ns = SECOND}, "prefill", 1050 * MS},
        {"queue_ns", {.queue_ns = SECOND}, "queue", 1010 * MS},
        {"decode_ns", {.decode_ns = SECOND}, "decode", 1998 * MS},
        {"tokens_per_second", {.decode_ns = SECOND}, "decode", 1998 * MS},
        {"prefill_tokens_per_second", {.prefill_ns = SECOND}, "prefill", 1050 * MS},
        // As long as usual, but for half of the tokens.
        {"tokens_per_second", {.generated = -50}, "decode", 998 * MS},
        {"tpot_ns", {.generated = -50}, "decode", 998 * MS},
        {"prefill_tokens_per_second", {.prompt = -50}, "prefill", 50 * MS},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        (void)store_tear_down(state);
        (void)set_up(state);
        add_slow(&cases[i].more);
        struct query query = {.kind = QUERY_SLOWEST, .limit = 1};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        struct result *result = ask(&query);
        char text[64];
        assert_int_equal(result_integer(result, 0, "started_ns", 0), SLOW_NS);
        assert_string_equal(text_of(result, 0, "blame", text), cases[i].attribution);
        assert_in_range(result_integer(result, 0, "took_ns", 0), cases[i].took_ns - 20 * MS,
                        cases[i].took_ns + 20 * MS);
        expect_sum(result, 0);
        result_free(result);
    }
}

// Sixty requests, each 10 ms slower than the one before it; every third is of another model.
TEST_CASE(test_window_and_filter_limit_the_search)
{
    exec("BEGIN");
    for (unsigned i = 0; i < 60; i++) {
        uint64_t random = 1;
        struct request request = usual(START_NS + i * SECOND, &random);
        request.decode_ns += i * 10 * MS;
        request.model = i % 3 == 0;
        add_request(1 + i % 2, &request);
    }
    exec("COMMIT");
    static const struct {
        const char *metric, *model, *host;
        int64_t since_s, until_s; // 0: open
        unsigned seconds[3];      // when the slowest three started
    } cases[] = {
        {"e2e_ns", "", "", 0, 0, {59, 58, 57}},
        {"tokens_per_second", "", "", 0, 0, {59, 58, 57}},
        {"tpot_ns", "", "", 0, 0, {59, 58, 57}},
        {"e2e_ns", "large", "", 0, 0, {57, 54, 51}},
        {"e2e_ns", "", "alpha", 0, 0, {58, 56, 54}},
        {"e2e_ns", "large", "alpha", 0, 50, {48, 42, 36}},
        {"decode_ns", "", "", 10, 31, {30, 29, 28}},
        {"tokens_per_second", "large", "", 10, 30, {27, 24, 21}},
        {"queue_ns", "", "", 20, 0, {20, 21, 22}}, // as long: in order of arrival
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SLOWEST, .limit = 3};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", cases[i].model);
        (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", cases[i].host);
        if (cases[i].since_s)
            query.filter.since_ns = START_NS + cases[i].since_s * SECOND;
        if (cases[i].until_s)
            query.filter.until_ns = START_NS + cases[i].until_s * SECOND;
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 3);
        for (size_t row = 0; row < 3; row++)
            assert_int_equal(result_integer(result, row, "started_ns", 0),
                             START_NS + cases[i].seconds[row] * SECOND);
        result_free(result);
    }
}

// One request is explained by all that the filter covers.
TEST_CASE(test_one_request)
{
    add_slow(&(struct request){.queue_ns = 500 * MS});
    struct result *result = ask(&(struct query){.kind = QUERY_SLOWEST, .cursor = SLOW_NS});
    assert_int_equal(result_row_count(result), 1);
    assert_int_equal(result_integer(result, 0, "started_ns", 0), SLOW_NS);
    assert_int_equal(result_integer(result, 0, "peers", 0), 61);
    assert_true(result_is(result, 0, "blame", "queue"));
    result_free(result);
}

TEST_CASE(test_few_peers_blame_nothing)
{
    uint64_t random = 1;
    for (int i = 0; i < 3; i++) {
        struct request request = usual(START_NS + i * SECOND, &random);
        request.decode_ns *= i + 1;
        add_request(1, &request);
    }
    const struct query query = {.kind = QUERY_SLOWEST};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    char text[64];
    assert_string_equal(text_of(result, 0, "blame", text), "-");
    assert_non_null(strstr(text_of(result, 0, "note", text), "too few"));
    expect_sum(result, 0);
    result_free(result);
}

// Whether clocks were held back, where nobody can know.
TEST_CASE(test_expired_samples_are_told)
{
    add_slow(&(struct request){.decode_ns = 2 * SECOND});
    exec("INSERT OR REPLACE INTO ledger(run, kind, stored, expired) VALUES(1, 10, 9, 4)");
    for (int64_t i = 0; i < 2; i++) {
        const struct query query = {.kind = QUERY_SLOWEST, .limit = 1};
        execf("INSERT OR REPLACE INTO expiry VALUES(10, %lld)", (long long)(SLOW_NS + i));
        struct result *result = ask(&query);
        char text[64];
        assert_string_equal(text_of(result, 0, "blame", text), "decode");
        const char *note = text_of(result, 0, "note", text);
        assert_int_equal(strncmp(note, "the device's samples have expired", 33) == 0, i);
        result_free(result);
    }
}

// Which of the slowest are gone nobody knows, but that there were some is said.
TEST_CASE(test_what_expired_is_told)
{
    add_usual(10);
    exec("INSERT INTO expiry VALUES(6, 1790000050000000000);"
         "INSERT OR REPLACE INTO ledger(run, kind, stored, expired) VALUES(1, 6, 9, 4)");
    static const struct {
        int64_t since_ns, expired_ns;
    } cases[] = {
        {0, START_NS + 50 * SECOND},
        {START_NS + 49 * SECOND, START_NS + 50 * SECOND},
        {START_NS + 50 * SECOND, -1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct query query = {.kind = QUERY_SLOWEST, .filter.since_ns = cases[i].since_ns};
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "expired_ns", -1), cases[i].expired_ns);
        result_free(result);
    }
    // Of the other host's run nothing has.
    struct query query = {.kind = QUERY_SLOWEST};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "expired_ns", -1), -1);
    result_free(result);
    // A window without any record: slowest and listing.
    query = (struct query){.kind = QUERY_SLOWEST, .filter.since_ns = START_NS + 1};
    query.filter.until_ns = START_NS + 2;
    for (unsigned i = 0; i < 2; i++) {
        struct error err = {0};
        assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
        assert_string_equal(err.text, "records before 2026-09-21 14:14 UTC have expired");
        assert_true(err.expired_ns != 0);
        query.kind = QUERY_RECORDS;
        query.records.kind = RECORD_KIND_INFERENCE;
    }
    // Nothing is gone of a window where nothing was.
    query.filter.since_ns = START_NS + 300 * SECOND;
    query.filter.until_ns = 0;
    struct error err = {0};
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_OK);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
}

TEST_CASE(test_refusals)
{
    static const struct {
        const char *metric, *stage;
        uint32_t limit;
        enum status status;
        const char *words;
    } cases[] = {
        {"", "", 10, STATUS_NO_DATA, "no inference.e2e_ns"},
        {"prompt_tokens", "", 10, STATUS_INVALID, "requests are not slow in that"},
        {"load.duration_ns", "", 10, STATUS_INVALID, "requests are not slow in that"},
        {"e2e_n", "", 10, STATUS_INVALID, "did you mean e2e_ns"},
        {"", "read", 10, STATUS_INVALID, "no stage"},
        {"", "", 1001, STATUS_INVALID, "1000 at most"},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SLOWEST, .limit = cases[i].limit};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        (void)snprintf(query.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "%s", cases[i].stage);
        struct error err = {0};
        struct result *result = NULL;
        assert_int_equal(store_query(store, &query, &result, &err), cases[i].status);
        if (!strstr(err.text, cases[i].words))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].words);
    }
}

// Rows that the wire would never let in do not lead outside of 64 bits.
TEST_CASE(test_absurd_rows)
{
    add_usual(20);
    exec("UPDATE inference SET queue_ns = 9223372036854775807, prefill_ns = -5,"
         " decode_ns = 9223372036854775807, e2e_ns = 9223372036854775807,"
         " generated_tokens = 9223372036854775807,"
         " prompt_tokens = -9223372036854775807 WHERE id % 2 = 0;"
         " UPDATE inference SET started_ns = 9223372036854775807 WHERE id = 4;"
         " UPDATE inference SET started_ns = -9223372036854775807 WHERE id = 6");
    add_pipeline(1, START_NS, 0, 5, -1, 0);
    add_load(1, START_NS, INT64_MAX);
    const struct query query = {.kind = QUERY_SLOWEST, .limit = 20};
    struct result *result = ask(&query);
    for (size_t row = 0; row < result_row_count(result); row++)
        expect_sum(result, row);
    result_free(result);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_planted_causes_are_named, test_other_metrics,
               test_window_and_filter_limit_the_search, test_one_request,
               test_few_peers_blame_nothing, test_expired_samples_are_told,
               test_what_expired_is_told, test_refusals, test_absurd_rows)
