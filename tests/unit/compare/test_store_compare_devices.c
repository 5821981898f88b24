// Comparisons show what devices did meanwhile, without a verdict.
#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/compare/samples.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"
#include "common/store/sqlite/database.h"
#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

#define SECOND_NS INT64_C(1000000000)

// Adds a sample of a device each second, after `delay_s`: the k-th has these values, as SQL, of
// gpu_util_ratio (1/10000), temperature_celsius, sm_clock_hz (MHz) and throttle_reasons.
static void sampled(int run, const char *device, double delay_s, int seconds, const char *values)
{
    change(format_text(
        "INSERT OR IGNORE INTO name(text) VALUES('%s'); WITH RECURSIVE s(k) AS (SELECT 0 UNION ALL"
        " SELECT k + 1 FROM s WHERE k + 1 < %d) INSERT INTO device_sample(run, stream, number,"
        " started_ns, received_ns, device, gpu_util_ratio_stored, temperature_celsius,"
        " sm_clock_hz_stored, throttle_reasons) SELECT %d, 9, k + 1, %lld + k * 1000000000, 1, id,"
        " %s FROM s, name WHERE text = '%s'",
        device, seconds, run, (long long)(START_NS + (int64_t)(delay_s * 1e9)), values, device));
}

// Adds a run that only samples: on the same host, with other properties.
static void add_sampler(int run, const char *host)
{
    add((struct measured){.run = run, .host = host, .cpu = "another", .driver = "1"});
    change(format_text("DELETE FROM device WHERE run = %d; DELETE FROM model WHERE run = %d", run,
                       run));
}

// They are not what two sides have in common, or one of them lacks, and not beside 400 operations.
TEST_CASE(devices_explain_and_no_more)
{
    add((struct measured){.run = 1, .host = "a", .requests = 100});
    add_sampler(11, "a");
    sampled(11, "gpu0", 0, 50, "0, 0, 1980, 0");
    sampled(11, "gpu1", 0, 50, "0, 0, 345, 0");
    add((struct measured){.run = 3, .host = "c", .requests = 100, .model = "big", .digest = "ee"});
    add_sampler(13, "c");
    sampled(13, "gpu0", 0, 50, "0, 0, 0, 0");
    add((struct measured){.run = 4, .host = "d", .requests = 100});
    add_sampler(15, "e");
    sampled(15, "gpu0", 0, 50, "0, 0, 0, 0");
    saved("a");
    saved("c");
    saved("d");
    struct error err;
    assert_int_equal(save("e", false, &err), STATUS_NO_DATA);
    struct query query = of_two("a", "c");
    refused(&query, STATUS_INVALID,
            "nothing in common: only in the first: inference of tiny on cpu; only in the second: "
            "inference of big on cpu");
    query.compare.force = true;
    struct result *result = ask(&query);
    assert_true(result_number(result, row_of(result, "sm_clock_hz"), "before_median", 0) == 1980e6);
    result_free(result);
    query = of_two("a", "d");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 11);
    assert_string_equal(text_at(result, 0, "differences"), "");
    result_free(result);
    change("WITH RECURSIVE s(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM s WHERE k < 400) INSERT"
           " INTO name(text) SELECT 'operation ' || k FROM s; INSERT INTO operation(run, stream,"
           " number, started_ns, received_ns, operation, duration_ns) SELECT 1, 8, n.id,"
           " r.started_ns, 1, n.id, 1 FROM name n, run r WHERE n.text GLOB 'operation *'"
           " AND r.run = 1");
    query = (struct query){.kind = QUERY_COMPARE};
    result = ask(&query);
    assert_int_equal(result_row_count(result), 3 * 11 + 400);
    result_free(result);
}

// Of 210 hosts with 8 devices each, one and then 61 measured something: of the devices of 61 hosts
// there are no rows, but the others are by host.
TEST_CASE(few_hosts_of_a_fleet_measured)
{
    const struct query query = {.kind = QUERY_COMPARE};
    add((struct measured){.run = 1, .host = "a", .requests = 100});
    for (int device = 0; device < 8; device++)
        sampled(1, format_text("gpu%d", device), 0.01 * device, 2, "0, 0, 0, 0");
    for (int run = 2; run <= 210; run++)
        add_sampler(run, format_text("host %d", run));
    change("INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,"
           " temperature_celsius, gpu_util_ratio_stored, sm_clock_hz_stored, throttle_reasons)"
           " SELECT r.run, 9, number, s.started_ns, 1, device, 0, 0, 0, 0 FROM run r,"
           " device_sample s WHERE r.run > 1;"
           " UPDATE device_sample SET memory_used_bytes_stored = 0, power_watts_stored = 0");
    for (int measured = 1; measured <= 61; measured += 60) {
        if (measured > 1)
            change(
                "INSERT INTO name(text) VALUES('sort'); INSERT INTO operation(run, stream, number,"
                " started_ns, received_ns, operation, duration_ns) SELECT run, 8, 1, started_ns, 1,"
                " (SELECT id FROM name WHERE text = 'sort'), 1 FROM run WHERE run BETWEEN 2 AND "
                "61");
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), measured == 1 ? 11 + 8 * 6 : 11 + 60);
        for (size_t row = 0; row < result_row_count(result); row++)
            assert_string_not_equal(text_at(result, row, "host"), "");
        result_free(result);
    }
}

static void collect(struct sample *out, const struct query_filter *filter, const char *device)
{
    struct samples samples = {0};
    struct error err;
    char name[QUERY_TEXT_SIZE];
    expect_ok(samples_collect(&samples, store, filter, true, &err), &err);
    for (size_t i = 0; i < samples_count(&samples); i++) {
        struct sample_group *group = samples_at(&samples, i);
        (void)answer_name_text(store, group->key.device, name);
        if (strcmp(name, device) == 0) {
            struct sample *sample = &group->samples[samples_find_metric("gpu_util_ratio")];
            *out = *sample;
            *sample = (struct sample){0};
        }
    }
    samples_deinit(&samples);
}

// Of many hours, a few samples are read: their median is close to that of all.
TEST_CASE(medians_of_a_few_samples)
{
    static const char *const series[] = {
        "10 * abs((k / 600 * 7919) % 1000), 0, 0, 0",                   // in phases
        "5000 + 4999 * sin(k / 13751.0), 0, 0, 0",                      // with the hour
        "abs(random() % 10000), 0, 0, 0",                               // of no order
        "iif(k % 7 < 3, 9000, abs(random() % 900)) + k % 10, 0, 0, 0"}; // short bursts
    add((struct measured){.run = 1, .host = "a", .requests = 10});
    add_sampler(11, "a");
    add_sampler(12, "a");
    for (size_t i = 0; i < COUNT_OF(series); i++) {
        struct sample kept = {0};
        struct error err;
        int64_t below = 0;
        sampled(11, "gpu0", 0, 40000, series[i]);
        sampled(12, "gpu0", 40000, 40000, series[i]);
        collect(&kept, &(struct query_filter){0}, "gpu0");
        assert_in_range(kept.kept, 990, 1010);
        stats_sort(kept.values, kept.kept);
        expect_ok(database_integerf(db, &below, &err,
                                    "SELECT count(*) FROM device_sample WHERE gpu_util_ratio < %f",
                                    stats_median(kept.values, kept.kept)),
                  &err);
        assert_in_range(below, 80000 * 45 / 100, 80000 * 55 / 100);
        sample_deinit(&kept);
        change("DELETE FROM device_sample");
    }
}

// Of a short window all are read, each once, wherever the clocks of other hosts are.
TEST_CASE(which_samples_are_read)
{
    const struct query_filter filters[] = {
        {.since_ns = 0}, {.since_ns = START_NS, .until_ns = START_NS + 20 * SECOND_NS}};
    add((struct measured){.run = 1, .host = "a", .requests = 10});
    add_sampler(11, "a");
    add_sampler(12, "b");
    sampled(12, "gpu9", 1e8, 900, "0, 0, 0, 0");
    for (int device = 0; device < 8; device++)
        sampled(11, format_text("gpu%d", device), 0.01 * device, 900, "0, 0, 0, 0");
    for (int i = 0; i < 16; i++) {
        struct sample kept = {0};
        collect(&kept, &filters[i / 8], format_text("gpu%d", i % 8));
        assert_int_equal(kept.kept, i < 8 ? 900 : 20);
        sample_deinit(&kept);
    }
}

// The energy of requests is that which avg says, and has no verdict.
TEST_CASE(energy_of_requests)
{
    static const char *const metrics[] = {"tokens_per_joule", "joules_per_request"};
    for (int run = 1; run <= 2; run++) {
        const char *host = run == 1 ? "a" : "b";
        add((struct measured){
            .run = run, .host = host, .requests = 100, .slowness = run == 1 ? 1 : 1.3});
        sampled(run, "cpu", 0, 70, "0, 0, 0, 0");
        change("UPDATE device_sample SET duration_ns = 1000000000, received_ns = started_ns,"
               " energy_used_joules_stored = 500000");
        saved(host);
    }
    const struct query stored = of_two("a", "b");
    struct query windows = {.kind = QUERY_COMPARE};
    set(windows.filter.by[QUERY_BY_HOST], "a");
    set(windows.compare.other.by[QUERY_BY_HOST], "b");
    struct result *results[] = {ask(&stored), ask(&windows)};
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        struct query average = {.kind = QUERY_AVERAGE, .filter = windows.compare.other};
        set(average.metric, metrics[i]);
        struct result *expected = ask(&average);
        const double mean = result_number(expected, 0, "mean", -1);
        for (size_t k = 0; k < COUNT_OF(results); k++) {
            const size_t row = row_of(results[k], metrics[i]);
            const double ratio = result_number(results[k], row, "ratio", 0);
            assert_true(mean > 0 && result_number(results[k], row, "after_total", 0) == mean);
            assert_true(fabs((i == 0 ? 1 / ratio : ratio) - 1.3) < 0.05);
            assert_string_equal(text_at(results[k], row, "verdict"), "");
        }
        result_free(expected);
    }
    result_free(results[0]);
    result_free(results[1]);
}

static int count_scans(unsigned what, void *context, void *stmt, void *text)
{
    (void)what, (void)text;
    *(unsigned *)context += strstr(sqlite3_sql(stmt), "FROM main.\"load\" t") != NULL;
    return 0;
}

// A refusal for unlike machines is not computed again with the hosts merged.
TEST_CASE(refusals_are_computed_once)
{
    const int64_t later_ns = START_NS + 3600 * SECOND_NS;
    unsigned scans = 0;
    add((struct measured){.run = 1, .requests = 100, .driver = "1"});
    add((struct measured){.run = 2, .requests = 100, .driver = "2", .started_ns = later_ns});
    struct query query = {.kind = QUERY_COMPARE};
    query.filter.until_ns = query.compare.other.since_ns = later_ns;
    (void)sqlite3_trace_v2(store->db, SQLITE_TRACE_STMT, count_scans, &scans);
    refused(&query, STATUS_INVALID, "driver 1 / 2");
    (void)sqlite3_trace_v2(store->db, 0, NULL, NULL);
    assert_int_equal(scans, 2);
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, devices_explain_and_no_more,
               few_hosts_of_a_fleet_measured, medians_of_a_few_samples, which_samples_are_read,
               energy_of_requests, refusals_are_computed_once)
