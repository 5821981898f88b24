// Hosts beside each other: planted faults are found and named, alike ones left alone.
#include <math.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/query/fleet.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)
#define ABSENT (-1e300)

static uint32_t model, device;
static uint64_t random_state;

TEST_FIXTURE(set_up)
{
    store_make(state);
    model = rows_name(db, "small");
    device = rows_name(db, "gpu");
    random_state = 11;
    return store_read();
}

// A deviation of about `share`, up and down.
static double wobble(double share)
{
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (double)(test_random(&random_state) >> 11) / 0x1p53 - 0.5;
    return 1 + share * sum;
}

// How one host of the fleet is; 0 and NULL: as the others.
struct host {
    double slower; // decoding: 0.06 takes 6 % more time
    double slower_prefill;
    double slower_load;
    int64_t width, generation, throttle, sm_clock_hz, prompt, concurrent, memory_bytes;
    double cached;
    const char *driver, *kernel, *governor, *huge_pages, *allocator;
    bool is_narrow;   // its link has x8 for a sixth of the time under load
    bool has_sampler; // another run samples the device, by another name
};

static void add_requests(int64_t run, const struct host *host, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_INFERENCE, START_NS + i * SECOND);
        const int64_t prompt = host->prompt ? host->prompt : 100;
        const int64_t prefill =
            (int64_t)(50e6 * (1 + host->slower_prefill) * wobble(0.05) * (double)prompt / 100);
        const int64_t decode = (int64_t)(990e6 * (1 + host->slower) * wobble(0.05));
        record_set_name(&record, INFERENCE_MODEL, model);
        record_set_name(&record, INFERENCE_DEVICE, device);
        record_set_int(&record, INFERENCE_REQUEST, i);
        record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
        record_set_int(&record, INFERENCE_PROMPT_TOKENS, prompt);
        record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
        record_set_int(&record, INFERENCE_GENERATED_TOKENS, 100);
        record_set_int(&record, INFERENCE_QUEUE_NS, MS);
        record_set_int(&record, INFERENCE_PREFILL_NS, prefill);
        record_set_int(&record, INFERENCE_TTFT_NS, MS + prefill);
        record_set_int(&record, INFERENCE_DECODE_NS, decode);
        record_set_int(&record, INFERENCE_E2E_NS, MS + prefill + decode);
        record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
        record_set_int(&record, INFERENCE_CONCURRENT, host->concurrent ? host->concurrent : 2);
        (void)rows_add(db, run, &record);
    }
}

static void add_loads(int64_t run, const struct host *host)
{
    for (unsigned i = 0; i < 5; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_LOAD, START_NS + i * SECOND);
        record_set_name(&record, LOAD_MODEL, model);
        record_set_name(&record, LOAD_DEVICE, device);
        record_set_int(&record, LOAD_DURATION_NS,
                       (int64_t)(2e9 * (1 + host->slower_load) * wobble(0.02)));
        record_set_int(&record, LOAD_STATUS, RECORD_STATUS_OK);
        record_set_int(&record, LOAD_MODEL_BYTES, 1000000000);
        record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 0);
        record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 0);
        record_set_real(&record, LOAD_PAGE_CACHE_RATIO, host->cached > 0 ? host->cached : 1);
        (void)rows_add(db, run, &record);
    }
}

static void describe(int64_t run, uint32_t name, const char *uuid, const struct host *host)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, START_NS);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, name);
    if (uuid)
        record_set_text(&record, DEVICE_UUID, uuid, strlen(uuid));
    record_set_int(&record, DEVICE_MEMORY_BYTES, 1);
    record_set_int(&record, DEVICE_PCIE_GENERATION, 1); // idle, when it was described
    record_set_int(&record, DEVICE_PCIE_WIDTH, host->width ? host->width : 16);
    record_set_int(&record, DEVICE_PCIE_GENERATION_MAX, 5);
    record_set_int(&record, DEVICE_PCIE_WIDTH_MAX, 16);
    (void)rows_add(db, run, &record);
}

static void add_samples(int64_t run, uint32_t name, const struct host *host)
{
    for (int i = 0; i < 40; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_DEVICE_SAMPLE, START_NS + i * SECOND);
        record_set_name(&record, DEVICE_SAMPLE_DEVICE, name);
        record_set_real(&record, DEVICE_SAMPLE_GPU_UTIL, i % 4 ? 0.9 : 0.0);
        record_set_int(&record, DEVICE_SAMPLE_SM_CLOCK,
                       i % 4 ? (host->sm_clock_hz ? host->sm_clock_hz : 1980000000) : 345000000);
        record_set_int(&record, DEVICE_SAMPLE_PCIE_GENERATION,
                       i % 4 ? (host->generation ? host->generation : 5) : 1);
        record_set_int(&record, DEVICE_SAMPLE_PCIE_WIDTH,
                       host->width                     ? host->width
                       : host->is_narrow && i % 8 == 1 ? 8
                       : i % 4                         ? 16
                                                       : 2);
        record_set_int(&record, DEVICE_SAMPLE_THROTTLE, i % 4 ? host->throttle : 1);
        (void)rows_add(db, run, &record);
    }
}

// The sampler's other device has the name that the engine's device has.
static void add_sampler(int64_t engine, const struct host *host)
{
    static const struct host other = {.throttle = 0x04, .sm_clock_hz = 1000000000};
    const int64_t run = engine + 100;
    const char *name = format_text("host-%02d", (int)engine);
    rows_run(db, run, name, START_NS - SECOND, START_NS + 100 * SECOND);
    execf("UPDATE run SET worker_version = 'inferstat-worker 1' WHERE run = %d", (int)run);
    describe(engine, device, "GPU-1", host);
    describe(run, rows_name(db, "cuda:1"), "GPU-1", host);
    describe(run, device, "GPU-0", host);
    add_samples(run, rows_name(db, "cuda:1"), host);
    add_samples(run, device, &other);
    execf("INSERT INTO ledger(run, kind, stored) VALUES(%d, %d, 60), (%d, %d, 80)", (int)engine,
          RECORD_KIND_INFERENCE, (int)run, RECORD_KIND_DEVICE_SAMPLE);
}

static void add_device(int64_t run, const struct host *host)
{
    if (host->has_sampler) {
        add_sampler(run, host);
    } else {
        describe(run, device, NULL, host);
        add_samples(run, device, host);
    }
}

static void add_host(int64_t run, const struct host *host, unsigned requests)
{
    rows_run(db, run, format_text("host-%02d", (int)run), START_NS, START_NS + 100 * SECOND);
    char *sql = sqlite3_mprintf(
        "UPDATE run SET driver = %Q, kernel = %Q, cpu_governor = %Q, huge_pages = %Q,"
        " allocator = %Q, host_memory_bytes = %lld"
        " WHERE run = %lld",
        host->driver ? host->driver : "550.54", host->kernel ? host->kernel : "6.1.0",
        host->governor ? host->governor : "performance",
        host->huge_pages ? host->huge_pages : "madvise",
        host->allocator ? host->allocator : "glibc 2.36",
        (long long)(host->memory_bytes ? host->memory_bytes : INT64_C(1) << 36), (long long)run);
    exec(sql);
    sqlite3_free(sql);
    add_requests(run, host, requests);
    add_loads(run, host);
    add_device(run, host);
}

// `odd` and `count - 1` usual hosts; the odd one is number 3.
static void add_fleet(const struct host *odd, int count)
{
    static const struct host usual = {0};
    exec("BEGIN");
    for (int i = 1; i <= count; i++)
        add_host(i, i == 3 ? odd : &usual, 60);
    exec("COMMIT");
}

static const char *text_of(const struct result *result, size_t row, const char *key,
                           char text[FLEET_REASON_SIZE])
{
    const struct value value = result_cell(result, row, (unsigned)result_find(result, key));
    (void)snprintf(text, FLEET_REASON_SIZE, "%.*s",
                   value.type == VALUE_TEXT ? (int)value.text.size : 0,
                   value.type == VALUE_TEXT ? value.text.bytes : "");
    return text;
}

static size_t standing_out(const struct result *result)
{
    size_t count = 0;
    char text[FLEET_REASON_SIZE];
    for (size_t row = 0; row < result_row_count(result); row++) {
        (void)text_of(result, row, "verdict", text);
        count += strcmp(text, "worse") == 0 || strcmp(text, "better") == 0;
    }
    return count;
}

TEST_CASE(test_planted_faults_are_named)
{
    static const struct {
        const char *name;
        struct host host;
        const char *metric, *verdict;
        double deviation; // about
        const char *reason;
    } cases[] = {
        {"lanes",
         {.slower = 0.064, .width = 8},
         "tokens_per_second",
         "worse",
         -0.06,
         "PCIe x8 of x16 (peers x16)"},
        {"lanes at times",
         {.slower = 0.064, .is_narrow = true},
         "tokens_per_second",
         "worse",
         -0.06,
         "PCIe x8 of x16 (peers x16)"},
        {"a generation",
         {.slower = 0.25, .generation = 3},
         "tokens_per_second",
         "worse",
         -0.2,
         "PCIe gen 3 of gen 5 (peers gen 5)"},
        {"throttling",
         {.slower = 0.25, .throttle = 0x40},
         "tokens_per_second",
         "worse",
         -0.2,
         "throttled 75.0 % by hardware thermal (peers 0.0 %)"},
        {"clocks",
         {.slower = 0.25, .sm_clock_hz = 1500000000},
         "tokens_per_second",
         "worse",
         -0.2,
         "clock 1500 MHz (peers 1980 MHz)"},
        {"what another run sampled",
         {.slower = 0.25, .throttle = 0x40, .has_sampler = true},
         "tokens_per_second",
         "worse",
         -0.2,
         "throttled 75.0 % by hardware thermal (peers 0.0 %)"},
        {"a driver",
         {.slower = 0.25, .driver = "535.1"},
         "tokens_per_second",
         "worse",
         -0.2,
         "driver 535.1 (peers 550.54)"},
        {"a kernel and a governor",
         {.slower = 0.25, .kernel = "5.10", .governor = "powersave"},
         "tokens_per_second",
         "worse",
         -0.2,
         "governor powersave (peers performance), kernel 5.10 (peers 6.1.0)"},
        {"huge pages and an allocator",
         {.slower = 0.25, .huge_pages = "never", .allocator = "jemalloc"},
         "tokens_per_second",
         "worse",
         -0.2,
         "huge pages never (peers madvise), allocator jemalloc (peers glibc 2.36)"},
        {"a crowd",
         {.slower = 0.25, .concurrent = 4},
         "tokens_per_second",
         "worse",
         -0.2,
         "requests at once 4 (peers 2)"},
        {"long prompts", {.prompt = 200}, "ttft_ns", "worse", 1, "prompts of 200 (peers 100)"},
        {"no reason", {.slower = 0.25}, "tokens_per_second", "worse", -0.2, ""},
        {"slow prefill",
         {.slower_prefill = 0.25, .width = 8},
         "prefill_tokens_per_second",
         "worse",
         -0.2,
         "PCIe x8 of x16 (peers x16)"},
        {"slow loads",
         {.slower_load = 1, .cached = 0.2},
         "load_bytes_per_second",
         "worse",
         -0.5,
         "page cache 20.0 % (peers 100.0 %)"},
        {"faster",
         {.slower = -0.2, .sm_clock_hz = 2400000000},
         "tokens_per_second",
         "better",
         0.25,
         "clock 2400 MHz (peers 1980 MHz)"},
        // Slow, with better clocks than others: these are no reason.
        {"no excuse",
         {.slower = 0.25, .sm_clock_hz = 2400000000},
         "tokens_per_second",
         "worse",
         -0.2,
         ""},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        (void)store_tear_down(state);
        (void)set_up(state);
        add_fleet(&cases[i].host, 6);
        struct query query = {.kind = QUERY_FLEET};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        struct result *result = ask(&query);
        char text[FLEET_REASON_SIZE];
        assert_int_equal(result_row_count(result), 6);
        if (standing_out(result) != 1)
            fail_msg("%s: %zu hosts stand out", cases[i].name, standing_out(result));
        assert_string_equal(text_of(result, 0, "host", text), "host-03");
        assert_string_equal(text_of(result, 0, "verdict", text), cases[i].verdict);
        const double deviation = result_number(result, 0, "deviation_ratio", ABSENT);
        if (fabs(deviation - cases[i].deviation) > 0.25 * fabs(cases[i].deviation))
            fail_msg("%s: off by %g", cases[i].name, deviation);
        if (strcmp(text_of(result, 0, "reason", text), cases[i].reason) != 0)
            fail_msg("%s: \"%s\" instead of \"%s\"", cases[i].name, text, cases[i].reason);
        result_free(result);
    }
}

// Without a metric, what people look at is compared: all of it.
TEST_CASE(test_all_that_people_look_at)
{
    const struct host odd = {.slower = 0.3, .slower_load = 1, .width = 4};
    add_fleet(&odd, 5);
    const struct query query = {.kind = QUERY_FLEET};
    struct result *result = ask(&query);
    char text[FLEET_REASON_SIZE];
    assert_int_equal(result_row_count(result), 4 * 5);
    assert_int_equal(standing_out(result), 2);
    for (size_t row = 0; row < 2; row++) {
        assert_string_equal(text_of(result, row, "host", text), "host-03");
        assert_string_equal(text_of(result, row, "reason", text), "PCIe x4 of x16 (peers x16)");
    }
    result_free(result);
}

// Models that make no tokens are compared by items per second; a smaller batch is a reason.
// Samples have no model, and a host no device: means are compared, and whose sampler names a device
// otherwise than its engine gets no reason.
TEST_CASE(test_metrics_of_samples)
{
    static const struct {
        const char *metric, *device;
        double value, median;
    } cases[] = {{"sm_clock_hz", "gpu", 1.13625e9, 1.57125e9},
                 {"throttled_ratio", "gpu", 0.75, 0},
                 {"memory_available_bytes", "", 4e9, 8e9}};
    const struct host odd = {.sm_clock_hz = 1400000000, .throttle = 0x04};
    char text[FLEET_REASON_SIZE];
    add_fleet(&odd, 5);
    for (int run = 1; run <= 5; run++)
        for (int i = 0; i < 20; i++) {
            struct record record;
            record_init(&record, RECORD_KIND_HOST_SAMPLE, START_NS + i * SECOND);
            record_set_int(&record, HOST_SAMPLE_MEMORY_AVAILABLE,
                           INT64_C(4000000000) * (run == 3 ? 1 : 2));
            (void)rows_add(db, run, &record);
        }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_FLEET};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 5);
        assert_string_equal(text_of(result, 0, "host", text), "host-03");
        assert_string_equal(text_of(result, 0, "verdict", text), "different");
        assert_string_equal(text_of(result, 1, "verdict", text), "usual");
        assert_string_equal(text_of(result, 0, "model", text), "");
        assert_string_equal(text_of(result, 0, "device", text), cases[i].device);
        assert_string_equal(text_of(result, 0, "reason", text), "");
        expect_close(result_number(result, 0, "value", ABSENT), cases[i].value, cases[i].metric);
        expect_close(result_number(result, 0, "median", ABSENT), cases[i].median, cases[i].metric);
        result_free(result);
    }
}

TEST_CASE(test_requests_of_items)
{
    add_fleet(&(struct host){.slower = 0}, 5);
    exec("UPDATE inference SET prompt_tokens = NULL, cached_prompt_tokens = NULL,"
         " generated_tokens = NULL, prefill_ns = NULL, ttft_ns = NULL, decode_ns = NULL,"
         " items = iif(run = 3, 2, 8)");
    const struct query query = {.kind = QUERY_FLEET};
    struct result *result = ask(&query);
    char text[FLEET_REASON_SIZE];
    assert_int_equal(result_row_count(result), 2 * 5); // and loads
    assert_int_equal(standing_out(result), 1);
    assert_string_equal(text_of(result, 0, "host", text), "host-03");
    assert_string_equal(text_of(result, 0, "metric", text), "items_per_second");
    assert_string_equal(text_of(result, 0, "reason", text), "batches of 2 (peers 8)");
    result_free(result);
}

// A host at a third of the others' speed stands out of three, though another is mildly off.
TEST_CASE(test_a_mild_outlier_hides_no_other)
{
    static const struct host hosts[] = {{0}, {.slower = 0.15}, {.slower = 2}};
    exec("BEGIN");
    for (unsigned i = 0; i < COUNT_OF(hosts); i++)
        add_host(1 + i, &hosts[i], 60);
    exec("COMMIT");
    const struct query query = {.kind = QUERY_FLEET, .metric = "tokens_per_second"};
    struct result *result = ask(&query);
    char text[FLEET_REASON_SIZE];
    assert_int_equal(standing_out(result), 1);
    assert_string_equal(text_of(result, 0, "host", text), "host-03");
    assert_string_equal(text_of(result, 0, "verdict", text), "worse");
    result_free(result);
}

TEST_CASE(test_few_hosts_and_few_values)
{
    static const struct host usual = {0}, slow = {.slower = 1};
    exec("BEGIN");
    add_host(1, &usual, 60);
    add_host(2, &slow, 60);
    add_host(3, &slow, 9);
    exec("COMMIT");
    struct query query = {.kind = QUERY_FLEET, .metric = "tokens_per_second"};
    struct result *result = ask(&query);
    char text[FLEET_REASON_SIZE];
    assert_int_equal(result_row_count(result), 3);
    unsigned few_hosts = 0, few_values = 0;
    for (size_t row = 0; row < 3; row++) {
        (void)text_of(result, row, "verdict", text);
        few_hosts += strcmp(text, "few hosts") == 0;
        few_values += strcmp(text, "few values") == 0;
        assert_int_equal(result_integer(result, row, "hosts", -1), 2);
        assert_true(result_number(result, row, "score", ABSENT) <= ABSENT);
    }
    assert_int_equal(few_hosts, 2);
    assert_int_equal(few_values, 1);
    result_free(result);
}

// Where nothing is wrong, hosts that are said to stand out are rare: of 30 fleets of
// 8 hosts, each a few per mille off by nature, none.
TEST_CASE(test_alike_hosts_are_left_alone)
{
    for (unsigned round = 0; round < 30; round++) {
        (void)store_tear_down(state);
        (void)set_up(state);
        random_state = 1000 + round;
        exec("BEGIN");
        for (int i = 1; i <= 8; i++) {
            const struct host host = {.slower = wobble(0.01) - 1,
                                      .slower_prefill = wobble(0.01) - 1};
            add_host(i, &host, 25);
        }
        exec("COMMIT");
        const struct query query = {.kind = QUERY_FLEET};
        struct result *result = ask(&query);
        if (standing_out(result) > 0)
            fail_msg("fleet %u: %zu hosts stand out", round, standing_out(result));
        result_free(result);
    }
}

TEST_CASE(test_refusals)
{
    struct error err = {0};
    struct result *result = NULL;
    struct query query = {.kind = QUERY_FLEET};
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
    (void)snprintf(query.metric, sizeof query.metric, "cpu_ratio");
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "no model and device"));
    (void)snprintf(query.metric, sizeof query.metric, "ttft_n");
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "did you mean ttft_ns"));
}

TEST_CASE(test_reasons)
{
    struct fleet_facts host, peers[3];
    const struct fleet_facts *others[3];
    fleet_facts_init(&host);
    for (unsigned i = 0; i < COUNT_OF(peers); i++) {
        fleet_facts_init(&peers[i]);
        others[i] = &peers[i];
    }
    char text[FLEET_REASON_SIZE];
    // Nothing known says nothing.
    assert_string_equal(fleet_reason(text, FLEET_OF_REQUESTS, true, &host, others, 3), "");
    // A link below its best is told where the peers' links are not known, and not where
    // these are below it, too.
    host.numbers[FLEET_PCIE_WIDTH] = 8;
    host.numbers[FLEET_PCIE_WIDTH_MAX] = 16;
    assert_string_equal(fleet_reason(text, FLEET_OF_REQUESTS, true, &host, others, 3),
                        "PCIe x8 of x16");
    assert_string_equal(fleet_reason(text, FLEET_OF_REQUESTS, false, &host, others, 3), "");
    assert_string_equal(fleet_reason(text, FLEET_OF_REQUESTS, true, &host, others, 0),
                        "PCIe x8 of x16");
    for (unsigned i = 0; i < COUNT_OF(peers); i++)
        peers[i].numbers[FLEET_PCIE_WIDTH] = 8;
    assert_string_equal(fleet_reason(text, FLEET_OF_REQUESTS, true, &host, others, 3), "");
    // Texts: only where most others agree.
    (void)snprintf(host.texts[FLEET_KERNEL], FLEET_TEXT_SIZE, "5");
    (void)snprintf(peers[0].texts[FLEET_KERNEL], FLEET_TEXT_SIZE, "6");
    (void)snprintf(peers[1].texts[FLEET_KERNEL], FLEET_TEXT_SIZE, "7");
    assert_string_equal(fleet_reason(text, FLEET_OF_LOADS, true, &host, others, 3), "");
    (void)snprintf(peers[2].texts[FLEET_KERNEL], FLEET_TEXT_SIZE, "7");
    assert_string_equal(fleet_reason(text, FLEET_OF_LOADS, true, &host, others, 3),
                        "kernel 5 (peers 7)");
    // However much there is to say, it fits.
    for (unsigned k = 0; k < FLEET_TEXTS; k++) {
        memset(host.texts[k], 'a', FLEET_TEXT_SIZE - 1);
        for (unsigned i = 0; i < COUNT_OF(peers); i++)
            memset(peers[i].texts[k], 'b', FLEET_TEXT_SIZE - 1);
    }
    for (unsigned k = 0; k < FLEET_TOLD; k++) {
        host.numbers[k] = 1;
        for (unsigned i = 0; i < COUNT_OF(peers); i++)
            peers[i].numbers[k] = 1e300;
    }
    (void)fleet_reason(text, FLEET_OF_REQUESTS, true, &host, others, 3);
    assert_true(strlen(text) > 200 && strlen(text) < FLEET_REASON_SIZE);
    assert_string_not_equal(text + strlen(text) - 1, ",");
}

TEST_MAIN_EACH(set_up, store_tear_down, test_planted_faults_are_named, test_all_that_people_look_at,
               test_metrics_of_samples, test_requests_of_items, test_a_mild_outlier_hides_no_other,
               test_few_hosts_and_few_values, test_alike_hosts_are_left_alone, test_refusals,
               test_reasons)
