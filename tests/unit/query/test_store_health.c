// Devices and hosts as their newest samples show them, and the figures of a window.
#include <string.h>

#include <sqlite3.h>

#include "common/store/store.h"
#include "tests/support/store/health.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)

TEST_FIXTURE(set_up)
{
    store_make(state);
    return store_read();
}

static void add_run(int64_t run, const char *host, enum record_run_end end, int64_t heard_ns)
{
    rows_run(db, run, host, START_NS, heard_ns);
    execf("UPDATE run SET \"end\" = %d WHERE run = %lld", (int)end, (long long)run);
}

static void describe(int64_t run, const char *name, const char *uuid, int64_t slowdown)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, START_NS);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, rows_name(db, name));
    record_set_int(&record, DEVICE_MEMORY_BYTES, slowdown > 0); // 0: it does not tell
    if (uuid)
        (void)record_set_text(&record, DEVICE_UUID, uuid, strlen(uuid));
    if (slowdown)
        record_set_real(&record, DEVICE_SLOWDOWN, (double)slowdown);
    rows_add(db, run, &record);
}

// A sample of a period that began `second` seconds after the start and took one second.
static void sample(int64_t run, const char *device, int second, double util, int64_t throttle)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, START_NS + second * SECOND);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, rows_name(db, device));
    record_set_real(&record, DEVICE_SAMPLE_GPU_UTIL, util);
    record_set_int(&record, DEVICE_SAMPLE_SM_CLOCK, 2000000000 - throttle * 100000000);
    record_set_int(&record, DEVICE_SAMPLE_THROTTLE, throttle);
    record_set_int(&record, DEVICE_SAMPLE_DURATION_NS, SECOND);
    record_set_real(&record, DEVICE_SAMPLE_ENERGY_USED, 250);
    record_set_int(&record, DEVICE_SAMPLE_PROCESSES, 1);
    rows_add(db, run, &record);
}

static void process(int64_t run, const char *device, int second, int64_t pid, const char *name,
                    int64_t memory_bytes)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE_PROCESS, START_NS + second * SECOND);
    record_set_name(&record, DEVICE_PROCESS_DEVICE, rows_name(db, device));
    record_set_int(&record, DEVICE_PROCESS_PID, pid);
    if (name)
        (void)record_set_text(&record, DEVICE_PROCESS_NAME, name, strlen(name));
    if (memory_bytes >= 0)
        record_set_int(&record, DEVICE_PROCESS_MEMORY, memory_bytes);
    rows_add(db, run, &record);
}

static void event(int64_t run, const char *name, const char *device, int second, int seconds)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, START_NS + second * SECOND);
    record_set_name(&record, EVENT_EVENT, rows_name(db, name));
    if (device)
        record_set_name(&record, EVENT_DEVICE, rows_name(db, device));
    if (seconds >= 0)
        record_set_int(&record, EVENT_DURATION_NS, seconds * SECOND);
    if (strcmp(name, "xid") == 0)
        record_set_int(&record, EVENT_CODE, 48);
    rows_add(db, run, &record);
}

static struct result *devices(void)
{
    return ask(&(struct query){.kind = QUERY_DEVICE_HEALTH});
}

static void expect_text(const struct result *result, size_t row, const char *key, const char *text)
{
    const struct value value = result_get(result, row, key);
    if (!text)
        assert_int_equal(value.type, VALUE_NULL);
    else
        assert_string_equal(value.type == VALUE_TEXT ? value.text.bytes : "(no text)", text);
}

// The newest sample of each, in the natural order of names; one that is not sampled has no figures.
TEST_CASE(the_newest_sample_of_each_device)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS + 9 * SECOND);
    describe(1, "gpu:2", "U-2", 87);
    describe(1, "gpu:10", "U-10", 0);
    sample(1, "gpu:10", 1, 0.25, 0);
    sample(1, "gpu:10", 2, 0.75, 4);
    struct result *result = devices();
    assert_int_equal(result_integer(result, 0, "memory_bytes", 0), 1);
    expect_text(result, 1, "memory_bytes", NULL);
    assert_int_equal(result_row_count(result), 2);
    expect_text(result, 0, "device", "gpu:2");
    assert_true(result_number(result, 0, "slowdown_celsius", 0) == 87);
    expect_text(result, 0, "gpu_util_ratio", NULL);
    expect_text(result, 0, "sampled_ns", NULL);
    expect_text(result, 1, "uuid", "U-10");
    assert_true(result_number(result, 1, "gpu_util_ratio", 0) == 0.75);
    assert_true(result_number(result, 1, "throttled_ratio", 0) == 1);
    assert_int_equal(result_integer(result, 1, "sampled_ns", 0), START_NS + 3 * SECOND);
    assert_int_equal(result_integer(result, 1, "as_of_ns", 0), START_NS + 9 * SECOND);
    expect_text(result, 1, "samples", NULL);
    result_free(result);
}

// An engine and a sampler describe the same device by two names, or one of them without its UUID;
// on another host it is another device.
TEST_CASE(one_row_for_a_device_of_several_runs)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS);
    add_run(2, "a", RECORD_RUN_END_OPEN, START_NS);
    add_run(3, "b", RECORD_RUN_END_OPEN, START_NS);
    describe(1, "first", "U-0", 0);
    describe(1, "cuda:1", NULL, 0);
    describe(2, "cuda:0", "U-0", 90);
    describe(2, "cuda:1", "U-1", 91);
    describe(3, "cuda:0", "U-0", 0);
    sample(2, "cuda:0", 0, 0.5, 0);
    sample(2, "cuda:1", 0, 0.6, 0);
    struct result *result = devices();
    assert_int_equal(result_row_count(result), 3);
    expect_text(result, 0, "device", "cuda:0");
    assert_true(result_number(result, 0, "slowdown_celsius", 0) == 90);
    expect_text(result, 1, "uuid", "U-1");
    assert_true(result_number(result, 1, "gpu_util_ratio", 0) == 0.6);
    expect_text(result, 2, "host", "b");
    result_free(result);
}

// PCIe throughput is that of the newest sample that has it, of the last two minutes.
TEST_CASE(pcie_throughput_is_read_at_times)
{
    static const struct {
        int second;
        double rx, tx;
    } cases[] = {{2, 9, 2}, {121, 9, 2}, {122, -1, -1}};
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS + 9 * SECOND);
    for (int i = 0; i < 3; i++)
        sample(1, i < 2 ? "cuda:0" : "cuda:1", i, 0.5, 0);
    exec("UPDATE device_sample SET pcie_rx_bytes_per_second = 7 + id, pcie_tx_bytes_per_second = "
         "id");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sample(1, "cuda:0", cases[i].second, 0.5, 0);
        struct result *result = devices();
        assert_true(result_number(result, 0, "pcie_rx_bytes_per_second", -1) == cases[i].rx);
        assert_true(result_number(result, 0, "pcie_tx_bytes_per_second", -1) == cases[i].tx);
        result_free(result);
    }
}

// A device of which the newest sample has over 95 % of its memory in use, or errors of its memory.
TEST_CASE(trouble_of_the_newest_sample)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS + 9 * SECOND);
    struct record record;
    for (int i = 0; i < 2; i++) {
        record_init(&record, RECORD_KIND_DEVICE_SAMPLE, START_NS);
        record_set_name(&record, DEVICE_SAMPLE_DEVICE, rows_name(db, i ? "cuda:1" : "cuda:0"));
        record_set_int(&record, DEVICE_SAMPLE_MEMORY_TOTAL, 1000);
        record_set_int(&record, DEVICE_SAMPLE_MEMORY_USED, 950 + i);
        record_set_int(&record, DEVICE_SAMPLE_ECC_UNCORRECTED, 2 * i);
        rows_add(db, 1, &record);
    }
    health_host_sample(&record, &(struct health){.random = 1}, START_NS, SECOND);
    rows_add(db, 1, &record);
    struct result *result = devices();
    expect_text(result, 0, "events", NULL);
    expect_text(result, 1, "events", "ecc_uncorrected, memory_full");
    result_free(result);
    event(1, "throttling", "cuda:0", 2, -1);
    event(1, "throttling", "cuda:1", 2, -1);
    result = ask(&(struct query){.kind = QUERY_HOST_HEALTH});
    expect_text(result, 0, "events", NULL);
    expect_text(result, 0, "device_events", "throttling (2 devices), ecc_uncorrected, memory_full");
    result_free(result);
}

// A sampler that describes nothing, such as an imported one, has its devices, too.
TEST_CASE(samples_without_a_description)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS);
    sample(1, "cuda:0", 0, 0.5, 0);
    struct result *result = devices();
    assert_int_equal(result_row_count(result), 1);
    expect_text(result, 0, "uuid", NULL);
    assert_true(result_number(result, 0, "gpu_util_ratio", 0) == 0.5);
    result_free(result);
}

TEST_CASE(a_run_of_long_ago_counts_only_in_its_window)
{
    add_run(1, "a", RECORD_RUN_END_CLOSED, START_NS);
    add_run(2, "b", RECORD_RUN_END_OPEN, START_NS + 2 * DAY);
    describe(1, "cuda:0", NULL, 0);
    describe(2, "cuda:0", NULL, 0);
    struct result *result = devices();
    assert_int_equal(result_row_count(result), 1);
    expect_text(result, 0, "host", "b");
    result_free(result);
    result = ask(&(struct query){.kind = QUERY_DEVICE_HEALTH,
                                 .filter = {.since_ns = START_NS - 1, .by[QUERY_BY_HOST] = "a"}});
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    expect_error(&(struct query){.kind = QUERY_DEVICE_HEALTH, .filter.by[QUERY_BY_HOST] = "c"},
                 STATUS_NO_DATA, "no device");
}

// What a sampler said last is no more once it has ended; its window has its means, and one that
// ended before it what it said last.
TEST_CASE(a_sampler_that_has_ended)
{
    add_run(1, "a", RECORD_RUN_END_KILLED, START_NS + 9 * SECOND);
    exec("UPDATE run SET owner = 1");
    add_run(2, "b", RECORD_RUN_END_OPEN, START_NS + 60 * SECOND);
    describe(1, "cuda:0", NULL, 87);
    sample(1, "cuda:0", 1, 0.25, 4);
    process(1, "cuda:0", 1, 7, "gone", 1);
    struct record record;
    health_host_sample(&record, &(struct health){.random = 1}, START_NS, SECOND);
    rows_add(db, 1, &record);
    struct query query = {.filter.since_ns = START_NS};
    for (int is_silent = 0; is_silent <= 1; is_silent++) {
        const int64_t ended_ns = START_NS + (is_silent ? 9 : 8) * SECOND;
        exec(is_silent ? "UPDATE run SET \"end\" = 3, ended_ns = NULL"
                       : "UPDATE run SET \"end\" = 1, ended_ns = heard_ns - 1000000000");
        query.kind = QUERY_DEVICE_HEALTH;
        struct result *result = ask(&query);
        static const char *const none[] = {"gpu_util_ratio", "throttle_reasons", "throttled_ratio",
                                           "processes"};
        for (size_t i = 0; i < COUNT_OF(none); i++)
            expect_text(result, 0, none[i], NULL);
        assert_int_equal(result_integer(result, 0, "sampled_ns", 0), START_NS + 2 * SECOND);
        assert_int_equal(result_integer(result, 0, "sampler_ended_ns", 0), ended_ns);
        assert_int_equal(result_integer(result, 0, "sampler_closed", 0), !is_silent);
        assert_true(result_number(result, 0, "slowdown_celsius", 0) == 87);
        assert_true(result_number(result, 0, "gpu_util_mean_ratio", 0) == 0.25);
        result_free(result);
        query.kind = QUERY_HOST_HEALTH;
        result = ask(&query);
        expect_text(result, 0, "cpu_util_ratio", NULL);
        assert_int_equal(result_integer(result, 0, "sampler_ended_ns", 0), ended_ns);
        result_free(result);
        exec("UPDATE run SET owner = 0"); // it was imported
        result = ask(&query);
        assert_int_equal(result_integer(result, 0, "sampler_closed", 0), 1);
        result_free(result);
        exec("UPDATE run SET owner = 1");
        query.filter.until_ns = START_NS + 5 * SECOND; // it was sampled all the time
        result = ask(&query);
        expect_text(result, 0, "sampler_ended_ns", NULL);
        assert_int_equal(result_integer(result, 0, "as_of_ns", 0), query.filter.until_ns);
        assert_true(result_number(result, 0, "cpu_util_ratio", -1) >= 0);
        result_free(result);
        query.kind = QUERY_DEVICE_HEALTH;
        result = ask(&query);
        assert_true(result_number(result, 0, "gpu_util_ratio", 0) == 0.25);
        expect_text(result, 0, "processes", "gone 7 0.0 MB");
        result_free(result);
        query.filter.until_ns = 0;
    }
    query.kind = QUERY_HOST_HEALTH;
    exec("UPDATE run SET \"end\" = 0");
    struct result *result = ask(&query);
    expect_text(result, 0, "sampler_ended_ns", NULL);
    assert_int_equal(result_get(result, 0, "cpu_util_ratio").type, VALUE_REAL);
    result_free(result);
}

// What closed in the last seconds of a file is as it was then: processes that end together do not
// end at once.  What went silent is gone.
TEST_CASE(a_sampler_that_closed_with_the_file)
{
    struct record record;
    add_run(1, "a", RECORD_RUN_END_CLOSED, START_NS + 9 * SECOND);
    add_run(2, "b", RECORD_RUN_END_CLOSED, START_NS + 12 * SECOND);
    health_host_sample(&record, &(struct health){.random = 1}, START_NS, SECOND);
    rows_add(db, 1, &record);
    const struct query query = {.kind = QUERY_HOST_HEALTH};
    for (int is_silent = 0; is_silent <= 1; is_silent++) {
        if (is_silent)
            exec("UPDATE run SET \"end\" = 3");
        struct result *result = ask(&query);
        assert_int_equal(result_get(result, 0, "cpu_util_ratio").type,
                         is_silent ? VALUE_NULL : VALUE_REAL);
        assert_int_equal(result_get(result, 0, "sampler_ended_ns").type,
                         is_silent ? VALUE_INT : VALUE_NULL);
        result_free(result);
    }
}

// The processes of the newest record of them, the largest first, and none once there are none.
TEST_CASE(processes_on_a_device)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS);
    describe(1, "cuda:0", NULL, 0);
    sample(1, "cuda:0", 0, 0.5, 0);
    process(1, "cuda:0", 1, 7, "gone", 1);
    process(1, "cuda:0", 2, 8, "small", 3 << 20);
    process(1, "cuda:0", 2, 9, "large", INT64_C(5) << 30);
    process(1, "cuda:0", 2, 10, NULL, -1);
    struct result *result = devices();
    expect_text(result, 0, "processes", "large 9 5.0 GB, small 8 3.0 MB, 10");
    result_free(result);
    exec("UPDATE device_sample SET process_count = 0");
    result = devices();
    expect_text(result, 0, "processes", NULL);
    result_free(result);
}

// Only what has begun and not ended, and XIDs of the last 10 minutes, of a run that is open; the
// newest comes first.
TEST_CASE(events_that_last)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS);
    describe(1, "cuda:0", NULL, 0);
    describe(1, "cuda:1", NULL, 0);
    event(1, "throttling", "cuda:0", 1, -1);
    event(1, "pcie_downgrade", "cuda:0", 1, -1);
    event(1, "device_lost", "cuda:0", 1, -1);
    event(1, "device_lost", "cuda:0", 1, 5);
    event(1, "xid", "cuda:1", 1, 0);
    execf("UPDATE event SET code = 13 WHERE code = 48"); // the older one
    event(1, "memory_pressure", NULL, 1, -1);
    for (int i = 0; i < 400; i++) { // of a producer that repeats itself
        event(1, "xid", "cuda:1", 2, -1);
        event(1, "xid", "cuda:1", 2, 0);
    }
    struct record record;
    health_host_sample(&record, &(struct health){.random = 1}, START_NS, SECOND);
    rows_add(db, 1, &record);
    struct result *result = devices();
    expect_text(result, 0, "events", "pcie_downgrade, throttling");
    expect_text(result, 1, "events", "xid 48, xid 13");
    result_free(result);
    execf("UPDATE run SET heard_ns = heard_ns + %lld", (long long)(602 * SECOND + 1));
    result = devices();
    expect_text(result, 1, "events", NULL);
    result_free(result);
    describe(1, "cpu", NULL, 0);
    describe(1, "cpu:1", NULL, 0);
    result = ask(&(struct query){.kind = QUERY_HOST_HEALTH});
    assert_int_equal(result_row_count(result), 1);
    expect_text(result, 0, "events", "memory_pressure");
    assert_int_equal(result_integer(result, 0, "devices", 0), 2); // without processors
    result_free(result);
    exec("UPDATE run SET \"end\" = 2");
    result = devices();
    expect_text(result, 2, "device", "cuda:0");
    expect_text(result, 2, "events", NULL);
    result_free(result);
}

static void process_sample(int64_t run, int second, double cpu, int64_t memory_bytes)
{
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, START_NS + second * SECOND);
    record_set_real(&record, PROCESS_SAMPLE_CPU, cpu);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, memory_bytes);
    rows_add(db, run, &record);
}

// The newest sample of each process of a host that runs; memory of any size.
TEST_CASE(processes_of_a_host)
{
    struct record record;
    for (int64_t run = 1; run <= 4; run++)
        add_run(run, run < 4 ? "a" : "b", RECORD_RUN_END_OPEN, START_NS + 9 * SECOND);
    health_host_sample(&record, &(struct health){.random = 1}, START_NS, SECOND);
    rows_add(db, 1, &record);
    rows_add(db, 4, &record);
    process_sample(1, 1, 8, 1000);
    process_sample(1, 2, 0.5, 5000);
    process_sample(2, 1, 1.25, 300);
    process_sample(3, 1, 16, 70);
    exec("UPDATE run SET \"end\" = 2 WHERE run = 3");
    struct result *result = ask(&(struct query){.kind = QUERY_HOST_HEALTH});
    assert_true(result_number(result, 0, "processes_cpu_ratio", 0) == 1.75);
    assert_int_equal(result_integer(result, 0, "processes_memory_bytes", 0), 5300);
    expect_text(result, 1, "processes_cpu_ratio", NULL);
    expect_text(result, 1, "processes_memory_bytes", NULL);
    result_free(result);
    process_sample(1, 3, 0.5, INT64_MAX);
    result = ask(&(struct query){.kind = QUERY_HOST_HEALTH});
    assert_int_equal(result_integer(result, 0, "processes_memory_bytes", 0), INT64_MAX);
    result_free(result);
}

TEST_CASE(figures_of_a_window)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS + 100 * SECOND);
    describe(1, "cuda:0", NULL, 0);
    describe(1, "cuda:1", NULL, 0);
    for (int i = 0; i < 10; i++)
        sample(1, "cuda:0", i, i / 10.0, i == 5 ? 4 : 0);
    struct result *result = ask(&(struct query){
        .kind = QUERY_DEVICE_HEALTH,
        .filter = {.since_ns = START_NS + 2 * SECOND, .until_ns = START_NS + 6 * SECOND}});
    assert_int_equal(result_integer(result, 0, "window_ns", 0), 4 * SECOND);
    assert_int_equal(result_integer(result, 0, "samples", 0), 4);
    expect_close(result_number(result, 0, "gpu_util_mean_ratio", 0), 0.35, "mean");
    assert_true(result_number(result, 0, "gpu_util_max_ratio", 0) == 0.5);
    assert_true(result_number(result, 0, "sm_clock_min_hz", 0) == 1.6e9);
    assert_true(result_number(result, 0, "energy_window_joules", 0) == 1000);
    assert_true(result_number(result, 0, "throttled_mean_ratio", 0) == 0.25);
    assert_true(result_number(result, 0, "gpu_util_ratio", 0) == 0.5); // the last sample's
    assert_int_equal(result_integer(result, 0, "sampled_ns", 0), START_NS + 6 * SECOND);
    assert_int_equal(result_integer(result, 1, "samples", 9), 0);
    expect_text(result, 1, "gpu_util_mean_ratio", NULL);
    result_free(result);
}

// Hosts with more devices than others are read further back.
// A long window is one of whole minutes, or hours; START_NS is 20 s into one, and 800 s.
TEST_CASE(a_long_window)
{
    static const int seconds[] = {99, 110, 140, 750, 759, 765};
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS + 900 * SECOND);
    for (size_t i = 0; i < COUNT_OF(seconds); i++)
        sample(1, "gpu:0", seconds[i], 0.5, 0);
    static const struct {
        int since, until, samples, window;
    } cases[] = {{130, 745, 4, 660},
                 {130, 729, 1, 599},
                 {130, 0, 5, 800},
                 {765, 36764, 1, 36060},
                 {890, 36900, 6, 39600}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_DEVICE_HEALTH};
        query.filter.since_ns = START_NS + cases[i].since * SECOND;
        query.filter.until_ns = cases[i].until ? START_NS + cases[i].until * SECOND : 0;
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "samples", 0), cases[i].samples);
        assert_int_equal(result_integer(result, 0, "window_ns", 0), cases[i].window * SECOND);
        result_free(result);
    }
}

TEST_CASE(many_devices)
{
    char name[24];
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS);
    for (int i = 0; i < 128; i++) {
        (void)snprintf(name, sizeof name, "cuda:%d", i);
        describe(1, name, NULL, 0);
        sample(1, name, 0, i / 128.0, 0);
    }
    struct result *result = devices();
    assert_int_equal(result_row_count(result), 128);
    for (size_t i = 0; i < 128; i++)
        assert_true(result_number(result, i, "gpu_util_ratio", -1) == (double)i / 128);
    result_free(result);
}

TEST_CASE(filters)
{
    add_run(1, "a", RECORD_RUN_END_OPEN, START_NS);
    describe(1, "cuda:0", NULL, 0);
    describe(1, "cuda:1", NULL, 0);
    sample(1, "cuda:0", 0, 0.5, 0);
    sample(1, "cuda:1", 0, 0.5, 0);
    struct result *result =
        ask(&(struct query){.kind = QUERY_DEVICE_HEALTH, .filter.by[QUERY_BY_DEVICE] = "cuda:1"});
    assert_int_equal(result_row_count(result), 1);
    expect_text(result, 0, "device", "cuda:1");
    result_free(result);
    result = ask(&(struct query){.kind = QUERY_DEVICE_HEALTH, .limit = 1});
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    expect_error(&(struct query){.kind = QUERY_DEVICE_HEALTH, .filter.by[QUERY_BY_MODEL] = "m"},
                 STATUS_INVALID, "no model");
    expect_error(&(struct query){.kind = QUERY_HOST_HEALTH, .filter.by[QUERY_BY_DEVICE] = "cuda:1"},
                 STATUS_INVALID, "no device");
    expect_error(&(struct query){.kind = QUERY_HOST_HEALTH}, STATUS_NO_DATA, "no host");
}

TEST_MAIN_EACH(set_up, store_tear_down, the_newest_sample_of_each_device,
               pcie_throughput_is_read_at_times, one_row_for_a_device_of_several_runs,
               samples_without_a_description, a_run_of_long_ago_counts_only_in_its_window,
               processes_on_a_device, processes_of_a_host, a_sampler_that_has_ended,
               a_sampler_that_closed_with_the_file, events_that_last, trouble_of_the_newest_sample,
               figures_of_a_window, a_long_window, many_devices, filters)
