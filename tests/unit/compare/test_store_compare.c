// Baselines and comparisons of runs whose speed is known.
#include <math.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

// ---- Verdicts ---------------------------------------------------------------------

TEST_CASE(what_is_slower)
{
    add((struct measured){.run = 1, .host = "a", .requests = 900, .loads = 20});
    add((struct measured){.run = 2, .host = "b", .requests = 900, .loads = 20, .slowness = 1.08});
    saved("a");
    saved("b");
    const struct query slower = of_two("a", "b"), faster = of_two("b", "a");
    static const char *const metrics[] = {
        "ttft_ns",   "tpot_ns", "tokens_per_second", "e2e_ns", "prefill_tokens_per_second",
        "itl_p99_ns"};
    struct result *worse = ask(&slower), *better = ask(&faster);
    for (size_t i = 0; i < COUNT_OF(metrics); i++) {
        verdict_is(worse, metrics[i], "WORSE");
        verdict_is(better, metrics[i], "BETTER");
    }
    // 20 loads with 5 % noise: the interval is wider than what they differ by.
    const size_t load = row_of(worse, "load.duration_ns");
    assert_int_equal(result_integer(worse, load, "before_count", 0), 20);
    assert_int_equal(result_integer(worse, load, "needed_count", 0), 5);
    const size_t row = row_of(worse, "e2e_ns");
    const double ratio = result_number(worse, row, "ratio", 0);
    assert_true(fabs(ratio - 1.08) < 0.02);
    assert_true(result_number(worse, row, "ratio_low", 0) < ratio);
    assert_true(result_number(worse, row, "ratio_high", 0) > ratio);
    assert_true(result_number(worse, row, "after_median", 0) >
                result_number(worse, row, "before_median", 0));
    assert_true(result_number(worse, row, "margin", 0) == STATS_MARGIN_DEFAULT);
    assert_true(result_number(worse, row, "before_coverage_ratio", 0) == 1);
    assert_int_equal(result_integer(worse, row, "before_runs", 0), 1);
    assert_string_equal(text_at(worse, row, "model"), "tiny");
    assert_string_equal(text_at(worse, row, "device"), "cpu");
    assert_string_equal(text_at(worse, row, "unit"), "ns");
    assert_string_equal(text_at(worse, row, "differences"), "");
    result_free(worse);
    result_free(better);
    // What differs by less than the margin is the same.
    struct query margin = slower;
    margin.compare.margin = 0.2;
    struct result *same = ask(&margin);
    for (size_t i = 0; i < COUNT_OF(metrics); i++)
        verdict_is(same, metrics[i], "SAME");
    result_free(same);
}

TEST_CASE(the_same_twice)
{
    add((struct measured){.run = 1, .host = "a", .requests = 1000, .noise = 0.01, .loads = 1});
    saved("a");
    const struct query query = of_two("a", "a");
    struct result *result = ask(&query);
    for (size_t row = 0; row < result_row_count(result); row++) {
        const char *expected = "SAME", *metric = text_at(result, row, "metric");
        if (strcmp(metric, "load.duration_ns") == 0)
            expected = "UNDECIDED";
        else if (strcmp(metric, "request_rate") == 0 || strstr(metric, "_token_rate") == metric + 6)
            expected = ""; // matters of demand
        assert_string_equal(text_at(result, row, "verdict"), expected);
        assert_true(result_number(result, row, "ratio", 1) == 1);
    }
    const size_t load = row_of(result, "load.duration_ns");
    assert_non_null(strstr(text_at(result, load, "note"), "too few values: 1 and 1, where 5"));
    const int high = result_find(result, "ratio_high");
    assert_int_equal(result_cell(result, load, (unsigned)high).type, VALUE_NULL);
    result_free(result);
}

// Two workers at the same time, of which the medians differ: what differs between two sides of
// them may be that and no more.
TEST_CASE(workers_beside_each_other)
{
    static const struct {
        const char *host;
        double slowness[2];
    } sides[] = {{"a", {1, 1.2}}, {"b", {1.05, 1.26}}};
    for (size_t i = 0; i < COUNT_OF(sides); i++) {
        for (size_t k = 0; k < 2; k++)
            add((struct measured){.run = (int)(1 + 2 * i + k),
                                  .host = sides[i].host,
                                  .requests = 1500,
                                  .slowness = sides[i].slowness[k]});
        saved(sides[i].host);
    }
    const struct query names = of_two("a", "b");
    struct query filters = {.kind = QUERY_COMPARE};
    set(filters.filter.by[QUERY_BY_HOST], "a");
    set(filters.compare.other.by[QUERY_BY_HOST], "b");
    const struct query *queries[] = {&names, &filters};
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        struct result *result = ask(queries[i]);
        verdict_is(result, "e2e_ns", "UNDECIDED");
        verdict_is(result, "tpot_ns", "UNDECIDED");
        result_free(result);
    }
}

// A device's name is that of every host: each host is compared with itself.
TEST_CASE(hosts_apart)
{
    static const char *const hosts[] = {"a", "b", "c"};
    const int64_t later_ns = START_NS + INT64_C(3600000000000);
    for (int i = 0; i < 6; i++)
        add((struct measured){.run = i + 1,
                              .host = hosts[i / 2],
                              .requests = i / 2 == 1 ? 400 : 2000,
                              .noise = 0.005,
                              .slowness = i == 3 ? 2 : 1, // b, in the second window
                              .started_ns = i % 2 ? later_ns : START_NS});
    struct query query = {.kind = QUERY_COMPARE};
    query.filter.until_ns = query.compare.other.since_ns = later_ns;
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3 * 11);
    for (size_t row = 0; row < result_row_count(result); row++)
        if (result_is(result, row, "metric", "e2e_ns"))
            assert_string_equal(text_at(result, row, "verdict"),
                                result_is(result, row, "host", "b") ? "WORSE" : "SAME");
    assert_string_equal(text_at(result, 0, "differences"), "");
    result_free(result);

    // What one side alone has is named with its host.
    change("DELETE FROM inference WHERE run = 6");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 2 * 11);
    assert_string_equal(text_at(result, 0, "differences"),
                        "only in the first: inference of tiny on cpu of host c");
    result_free(result);

    // Where no host is on both sides, all are merged.
    set(query.filter.by[QUERY_BY_HOST], "a");
    set(query.compare.other.by[QUERY_BY_HOST], "b");
    result = ask(&query);
    verdict_is(result, "e2e_ns", "WORSE");
    assert_string_equal(text_at(result, 0, "host"), "");
    assert_string_equal(text_at(result, 0, "differences"), "");
    result_free(result);
    query = (struct query){.kind = QUERY_COMPARE};
    set(query.filter.by[QUERY_BY_RUN], "00000001");
    set(query.compare.other.by[QUERY_BY_RUN], "00000004");
    result = ask(&query);
    verdict_is(result, "e2e_ns", "WORSE");
    result_free(result);

    // A baseline has no hosts.
    saved("a");
    query = about(QUERY_COMPARE, "a");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 11);
    assert_string_equal(text_at(result, 0, "host"), "");
    assert_string_equal(text_at(result, 0, "differences"),
                        "the second has 3 hosts, whose devices of one name are compared as one");
    result_free(result);
}

// A side may be what a filter covers just now; the answer is that of baselines of it.
TEST_CASE(filters_instead_of_names)
{
    add((struct measured){.run = 1, .host = "a", .requests = 400});
    add((struct measured){.run = 2, .host = "b", .requests = 400, .slowness = 1.2});
    saved("a");
    saved("b");
    const struct query names = of_two("a", "b");
    struct query filters = {.kind = QUERY_COMPARE};
    set(filters.filter.by[QUERY_BY_HOST], "a");
    set(filters.compare.other.by[QUERY_BY_HOST], "b");
    struct query mixed = of_two("a", "");
    mixed.compare.other = filters.compare.other;
    const struct query *others[] = {&filters, &mixed};
    struct result *expected = ask(&names);
    assert_true(result_row_count(expected) == 11);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct result *result = ask(others[i]);
        assert_int_equal(result_row_count(result), result_row_count(expected));
        for (size_t row = 0; row < result_row_count(result); row++) {
            char metric[64];
            (void)snprintf(metric, sizeof metric, "%s", text_at(expected, row, "metric"));
            assert_string_equal(text_at(result, row, "metric"), metric);
            static const char *const keys[] = {"ratio", "ratio_low", "ratio_high"};
            for (size_t k = 0; k < COUNT_OF(keys); k++)
                assert_true(result_number(result, row, keys[k], 0) ==
                            result_number(expected, row, keys[k], 0));
        }
        result_free(result);
    }
    result_free(expected);
    struct query nobody = filters;
    set(nobody.compare.other.by[QUERY_BY_HOST], "nobody");
    refused(&nobody, STATUS_NO_DATA, "the second of the two: no requests");
}

TEST_CASE(one_metric)
{
    add((struct measured){.run = 1, .host = "a", .requests = 100, .loads = 3});
    saved("a");
    struct query query = of_two("a", "a");
    set(query.metric, "tpot_ns");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    (void)row_of(result, "tpot_ns");
    result_free(result);
    set(query.metric, "load.duration_ns");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    set(query.metric, "queue_ns");
    refused(&query, STATUS_INVALID, "queue_ns is not compared (a comparison without");
    set(query.metric, "prompt_tokens");
    refused(&query, STATUS_INVALID, "prompt_tokens is not compared");
    set(query.metric, "tpot_n");
    refused(&query, STATUS_INVALID, "did you mean tpot_ns");
    set(query.metric, "operation.duration_ns");
    refused(&query, STATUS_NO_DATA, "no values to compare");
}

// Imports have 0 where nobody knows, which differs from nothing.
TEST_CASE(what_is_not_known_differs_from_nothing)
{
    struct measured one = {.run = 1, .host = "a", .device = "H200", .requests = 100};
    struct error err;
    add(one);
    saved("a");
    one.run = 2;
    one.host = "b";
    add(one);
    assert_int_equal(database_exec(db,
                                   "UPDATE run SET cpu_count = 0 WHERE run = 2;"
                                   "UPDATE device SET memory_bytes = 0 WHERE run = 2",
                                   &err),
                     STATUS_OK);
    saved("b");
    struct query query = of_two("a", "b");
    struct result *result = NULL;
    expect_ok(store_query(store, &query, &result, &err), &err);
    result_free(result);
}

// The slowest are judged apart from the median, which stays the verdict.
TEST_CASE(tails_of_times)
{
    add((struct measured){.run = 1, .host = "a", .requests = 4000, .noise = 0.01});
    add((struct measured){.run = 2, .host = "b", .requests = 4000, .noise = 0.01});
    change("UPDATE inference SET e2e_ns = e2e_ns * 2 WHERE run = 2 AND number % 10 = 0");
    saved("a");
    saved("b");
    const struct query query = of_two("a", "b");
    struct result *result = ask(&query);
    const size_t row = row_of(result, "e2e_ns");
    assert_string_equal(text_at(result, row, "verdict"), "SAME");
    assert_string_equal(text_at(result, row, "p95_verdict"), "WORSE");
    assert_true(result_number(result, row, "p95_ratio_low", 0) > 1.5);
    const size_t rate = row_of(result, "tokens_per_second"); // the fastest are no tail
    assert_int_equal(result_cell(result, rate, (unsigned)result_find(result, "p95_ratio")).type,
                     VALUE_NULL);
    result_free(result);
}

// ---- What may not be compared ---------------------------------------------------------

// A device that may draw less, or whose clocks end lower, is another one.
TEST_CASE(unlike_limits_of_a_device)
{
    static const struct {
        const char *host, *set, *words;
    } cases[] = {
        {"b", "power_cap_watts = 350", "device H200: power_cap_watts 700.0 / 350.0"},
        {"c", "sm_clock_max_hz = 1200000000", "device H200: sm_clock_max_hz 1980000000 / 12000"},
        {"d", "memory_clock_max_hz = 1", "device H200: memory_clock_max_hz 3201000000 / 1"},
        {"e", "power_cap_watts = NULL", NULL}, // one that does not say it
    };
    add((struct measured){.run = 1, .host = "a", .device = "H200", .requests = 100});
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        add((struct measured){
            .run = (int)i + 2, .host = cases[i].host, .device = "H200", .requests = 100});
    change("UPDATE device SET power_cap_watts = 700, sm_clock_max_hz = 1980000000,"
           " memory_clock_max_hz = 3201000000");
    saved("a");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        change(format_text("UPDATE device SET %s WHERE run = %d", cases[i].set, (int)i + 2));
        saved(cases[i].host);
        struct query query = of_two("a", cases[i].host);
        if (cases[i].words) {
            refused(&query, STATUS_INVALID, cases[i].words);
            query.compare.force = true;
        }
        struct result *result = ask(&query);
        if (cases[i].words)
            assert_non_null(strstr(text_at(result, 0, "differences"), cases[i].words));
        else
            assert_string_equal(text_at(result, 0, "differences"), "");
        result_free(result);
    }
}

// Clocks count that another run of the host sampled, by the UUID of the device.
TEST_CASE(clocks_of_a_sampler)
{
    for (int run = 1; run <= 2; run++) {
        const char *host = run == 1 ? "a" : "b";
        add((struct measured){.run = run, .host = host, .device = "H200", .requests = 100});
        change(format_text("UPDATE device SET uuid = 'GPU-%d' WHERE run = %d", run, run));
        change("INSERT OR IGNORE INTO name(text) VALUES('cuda:0')");
        change(format_text("CREATE TEMP TABLE copy AS SELECT * FROM run WHERE run = %d;"
                           "UPDATE temp.copy SET run = run + 10, uuid = 'sampler-%d';"
                           "INSERT INTO run SELECT * FROM temp.copy; DROP TABLE temp.copy",
                           run, run));
        for (int device = 0; device < 2; device++) { // the second one is another
            const char *name = format_text("(SELECT id FROM name WHERE text = '%s')",
                                           device == 0 ? "cuda:0" : "H200");
            char own[64];
            (void)snprintf(own, sizeof own, "%s", name);
            change(format_text("INSERT INTO device(run, stream, number, started_ns, received_ns,"
                               " ordinal, name, uuid, memory_bytes)"
                               " SELECT %d, 0, 1, started_ns, 1, 0, %s, 'GPU-%d', 1 FROM run"
                               " WHERE run = %d",
                               run + 10, own, device == 0 ? run : 9, run));
            change(format_text("INSERT INTO device_sample(run, stream, number, started_ns,"
                               " received_ns, device, sm_clock_hz_stored) SELECT %d, 0, 1,"
                               " started_ns + 1, 1, %s, '%d' FROM run WHERE run = %d",
                               run + 10, own, device == 0 ? 2000000000 - run * 400000000 : 1, run));
        }
        saved(host);
    }
    const struct query query = of_two("a", "b");
    refused(&query, STATUS_INVALID, "device H200: sm_clock_hz 1600000000 / 1200000000");
}

TEST_CASE(unlike_fingerprints)
{
    const struct measured like = {.run = 1,
                                  .host = "a",
                                  .driver = "550.54",
                                  .device = "H200",
                                  .pcie_width = 16,
                                  .sm_clock_hz = INT64_C(1980000000),
                                  .requests = 100};
    add(like);
    saved("a");
    struct measured unlike[] = {like, like, like, like, like, like, like, like};
    unlike[0].driver = "560.28";
    unlike[1].digest = "cd34";
    unlike[2].quantisation = "f16";
    unlike[3].pcie_width = 8;
    unlike[4].sm_clock_hz = INT64_C(1500000000);
    unlike[5].cpu = "another cpu";
    unlike[6].version = "2.0";                   // may differ
    unlike[7].sm_clock_hz = INT64_C(1965000000); // nearly the same
    static const char *const words[COUNT_OF(unlike)] = {
        "driver 550.54 / 560.28",
        "model tiny: digest ab12 / cd34",
        "model tiny: quantisation q8_0 / f16",
        "device H200: pcie_width 16 / 8",
        "device H200: sm_clock_hz 1980000000 / 1500000000",
        "cpu cpu model / another cpu",
    };
    for (size_t i = 0; i < COUNT_OF(unlike); i++) {
        char host[8] = {(char)('b' + i), '\0'};
        unlike[i].run = (int)i + 2;
        unlike[i].host = host;
        add(unlike[i]);
        saved(host);
        struct query query = of_two("a", host);
        if (words[i]) {
            refused(&query, STATUS_INVALID, words[i]);
            refused(&query, STATUS_INVALID, "(--force compares them all the same)");
            query.compare.force = true;
        }
        struct result *result = ask(&query);
        if (words[i])
            assert_non_null(strstr(text_at(result, 0, "differences"), words[i]));
        assert_int_equal(result_row_count(result), 12); // with the clock
        result_free(result);
    }
    const struct query version = of_two("a", "h");
    struct result *result = ask(&version);
    assert_string_equal(text_at(result, 0, "differences"), "worker_version 1.0 / 2.0");
    result_free(result);
}

// Settings of the processes: other huge pages are refused, another malloc or build is named.
TEST_CASE(unlike_settings)
{
    static const struct {
        const char *host, *column, *value, *words;
        bool is_refused;
    } cases[] = {
        {"b", "huge_pages", "always", "huge_pages madvise / always", true},
        {"c", "allocator", "jemalloc", "allocator glibc 2.36 / jemalloc", false},
        {"d", "build_flags", "Release gcc 12.2.0 -O2 -g -march=native",
         "build_flags Release gcc 12.2.0 -O2 -g / Release gcc 12.2.0 -O2 -g -march=native", false},
    };
    add((struct measured){.run = 1, .host = "a", .requests = 100});
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        add((struct measured){.run = (int)i + 2, .host = cases[i].host, .requests = 100});
    change("UPDATE run SET huge_pages = 'madvise', allocator = 'glibc 2.36',"
           " build_flags = 'Release gcc 12.2.0 -O2 -g'");
    saved("a");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        change(format_text("UPDATE run SET %s = '%s' WHERE run = %d", cases[i].column,
                           cases[i].value, (int)i + 2));
        saved(cases[i].host);
        struct query query = of_two("a", cases[i].host);
        if (cases[i].is_refused)
            refused(&query, STATUS_INVALID, cases[i].words);
        query.compare.force = cases[i].is_refused;
        struct result *result = ask(&query);
        assert_string_equal(text_at(result, 0, "differences"), cases[i].words);
        result_free(result);
    }
}

TEST_CASE(nothing_in_common)
{
    add((struct measured){.run = 1, .host = "a", .requests = 100, .model = "tiny | odd"});
    add((struct measured){
        .run = 2, .host = "b", .requests = 100, .device = "gpu", .model = "tiny | odd"});
    add((struct measured){.run = 3, .host = "c", .requests = 100, .model = "big", .digest = "ee"});
    saved("a");
    saved("b");
    saved("c");
    struct query devices = of_two("a", "b"), models = of_two("a", "c");
    refused(&devices, STATUS_INVALID,
            "nothing in common: only in the first: inference of tiny | "
            "odd on cpu; only in the second: inference of tiny | odd on "
            "gpu (--force");
    refused(&models, STATUS_INVALID, "only in the second: inference of big on cpu");
    devices.compare.force = models.compare.force = true;
    struct result *result = ask(&devices);
    assert_string_equal(text_at(result, 0, "model"), "tiny | odd");
    assert_string_equal(text_at(result, 0, "device"), "cpu / gpu");
    result_free(result);
    result = ask(&models);
    assert_string_equal(text_at(result, 0, "model"), "tiny | odd / big");
    result_free(result);
}

TEST_CASE(what_only_one_side_has)
{
    add((struct measured){.run = 1, .host = "a", .requests = 100, .loads = 1});
    add((struct measured){.run = 2, .host = "b", .requests = 100});
    add((struct measured){.run = 3, .host = "b", .requests = 100, .model = "big"});
    saved("a");
    saved("b");
    const struct query query = of_two("a", "b");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 11);
    assert_string_equal(text_at(result, 0, "differences"),
                        "only in the first: load of tiny on cpu; only in the second: inference of "
                        "big on cpu");
    assert_int_equal(result_integer(result, 0, "after_runs", 0), 2);
    result_free(result);
}

// Twice the tokens take twice the time: that says nothing of the speed.
TEST_CASE(other_work)
{
    add((struct measured){.run = 1, .host = "a", .requests = 300, .loads = 12});
    add((struct measured){
        .run = 2, .host = "b", .requests = 300, .loads = 12, .generated_tokens = 100});
    add((struct measured){.run = 3,
                          .host = "c",
                          .requests = 300,
                          .loads = 12,
                          .prompt_tokens = 200,
                          .page_cache_ratio = 1,
                          .slowness = 0.5});
    saved("a");
    saved("b");
    saved("c");
    struct query query = of_two("a", "b");
    struct result *result = ask(&query);
    verdict_is(result, "e2e_ns", "UNDECIDED");
    assert_string_equal(text_at(result, row_of(result, "e2e_ns"), "note"),
                        "the work differs: median generated_tokens 50 / 100");
    assert_string_equal(text_at(result, row_of(result, "tpot_ns"), "note"), "");
    result_free(result);
    query.compare.force = true;
    result = ask(&query);
    verdict_is(result, "e2e_ns", "WORSE");
    assert_non_null(strstr(text_at(result, row_of(result, "e2e_ns"), "note"), "generated_tokens"));
    result_free(result);
    query = of_two("a", "c");
    result = ask(&query);
    verdict_is(result, "ttft_ns", "UNDECIDED");
    verdict_is(result, "prefill_tokens_per_second", "UNDECIDED");
    verdict_is(result, "tpot_ns", "BETTER");
    verdict_is(result, "load.duration_ns", "UNDECIDED"); // the file was in memory already
    assert_non_null(strstr(text_at(result, row_of(result, "load.duration_ns"), "note"),
                           "page_cache_ratio 0 / 1"));
    result_free(result);
}

// What failed is not compared.
TEST_CASE(failures_do_not_count)
{
    add((struct measured){.run = 1, .host = "a", .requests = 200, .loads = 2});
    saved("a");
    struct error err;
    assert_int_equal(database_exec(db,
                                   "UPDATE inference SET finish = 3 WHERE id % 2;"
                                   "UPDATE load SET status = 1 WHERE id = 1",
                                   &err),
                     STATUS_OK);
    struct query query = of_two("a", "");
    struct result *result = ask(&query);
    const size_t row = row_of(result, "ttft_ns"), load = row_of(result, "load.duration_ns");
    assert_int_equal(result_integer(result, row, "before_count", 0), 200);
    assert_int_equal(result_integer(result, row, "after_count", 0), 100);
    assert_int_equal(result_integer(result, load, "after_count", 0), 1);
    result_free(result);
}

TEST_CASE(saving_and_deleting)
{
    struct error err = {0};
    add((struct measured){.run = 1, .host = "june", .requests = 100, .loads = 1});
    saved("june");
    assert_int_equal(save("june", false, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "--force replaces it"));
    assert_int_equal(save("june", true, &err), STATUS_OK);
    const struct query list = {.kind = QUERY_BASELINES};
    struct result *result = ask(&list);
    assert_int_equal(result_row_count(result), 1);
    assert_string_equal(text_at(result, 0, "baseline"), "june");
    assert_string_equal(text_at(result, 0, "filter"), "host=june");
    assert_int_equal(result_integer(result, 0, "runs", 0), 1);
    assert_int_equal(result_integer(result, 0, "samples", 0), 11);
    assert_int_equal(result_integer(result, 0, "values", 0), 1702);
    assert_true(result_number(result, 0, "coverage_ratio", 0) == 1);
    assert_int_equal(result_integer(result, 0, "since_ns", 0), INT64_C(1790000000000000000));
    assert_int_equal(result_integer(result, 0, "until_ns", 0), INT64_C(1790000050715395259));
    assert_string_equal(
        text_at(result, 0, "fingerprint"),
        "{\"runs\":1,\"machine\":{\"cpu\":[\"cpu model\"],\"cpu_count\":[8],"
        "\"host_memory_bytes\":[16000000000],\"kernel\":[\"6.1\"],\"os\":[\"Linux\"],"
        "\"worker_version\":[\"1.0\"]},\"device\":{\"cpu\":{\"memory_bytes\":[1000000000]}},"
        "\"model\":{\"tiny\":{\"digest\":[\"ab12\"],\"format\":[\"gguf\"],"
        "\"parameters\":[15000000],\"quantisation\":[\"q8_0\"]}}}");
    result_free(result);
    // A name that is nearly right.
    const struct query near = of_two("juno", "june");
    refused(&near, STATUS_NO_DATA, "no baseline is called \"juno\" (did you mean june?)");
    const struct query deletion = about(QUERY_BASELINE_DELETE, "june");
    assert_int_equal(baseline_write(db, &deletion, NULL, &result, &err), STATUS_OK);
    assert_string_equal(text_at(result, 0, "baseline"), "june");
    result_free(result);
    assert_int_equal(baseline_write(db, &deletion, NULL, &result, &err), STATUS_NO_DATA);
    result = ask(&list);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
    int64_t left = -1;
    assert_int_equal(database_integer(db, "SELECT count(*) FROM baseline_sample", &left, &err),
                     STATUS_OK);
    assert_int_equal(left, 0);
    refused(&deletion, STATUS_INVALID, "no query, but a change");
}

// Baselines outlive the rows they were made of.
TEST_CASE(rows_may_go)
{
    add((struct measured){.run = 1, .host = "a", .requests = 200});
    add((struct measured){.run = 2, .host = "b", .requests = 200, .slowness = 2});
    saved("a");
    struct error err;
    assert_int_equal(database_exec(db,
                                   "DELETE FROM inference WHERE run = 1;"
                                   "DELETE FROM model WHERE run = 1",
                                   &err),
                     STATUS_OK);
    struct query query = of_two("a", "");
    struct result *result = ask(&query);
    verdict_is(result, "tpot_ns", "WORSE");
    result_free(result);
}

TEST_CASE(on_a_file)
{
    struct error err = {0};
    add((struct measured){.run = 1, .host = "a", .requests = 100});
    struct query query = about(QUERY_BASELINE_SAVE, "x");
    struct result *result = NULL;
    struct lock lock = LOCK_NONE;
    assert_int_equal(lock_acquire_store(&lock, path, &err), STATUS_OK);
    assert_int_equal(baseline_write_file(path, &query, &result, &err), STATUS_BUSY);
    lock_withdraw(&lock);
    assert_int_equal(baseline_write_file(path, &query, &result, &err), STATUS_OK);
    assert_int_equal(result_integer(result, 0, "values", 0), 1700);
    result_free(result);
    query.kind = QUERY_BASELINE_DELETE;
    assert_int_equal(baseline_write_file(path, &query, &result, &err), STATUS_OK);
    result_free(result);
    assert_int_equal(baseline_write_file("/nowhere/s.db", &query, &result, &err), STATUS_NOT_FOUND);
    query = about(QUERY_BASELINE_SAVE, "a b");
    assert_int_equal(baseline_write_file(path, &query, &result, &err), STATUS_INVALID);
    query = about(QUERY_BASELINE_SAVE, "x");
    set(query.filter.by[QUERY_BY_MODEL], "nothing");
    assert_int_equal(baseline_write_file(path, &query, &result, &err), STATUS_NO_DATA);
    (void)strcat(path, ".lock");
    assert_int_not_equal(access(path, F_OK), 0);
}

TEST_CASE(damage_is_told)
{
    struct error err;
    add((struct measured){.run = 1, .host = "a", .requests = 100});
    saved("a");
    const struct query query = of_two("a", "a");
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {"UPDATE baseline_sample SET samples = CAST(x'55' || substr(samples, 2) AS BLOB)"
         " WHERE metric = 'inference.ttft_ns'",
         "the baseline's sample of inference.ttft_ns is damaged"},
        {"UPDATE baseline_sample SET count = count + 1", "is damaged"},
        {"UPDATE baseline_sample SET samples = x''", "is damaged"},
        {"UPDATE baseline_sample SET samples = x'0011223344'", "is damaged"},
        {"UPDATE baseline SET fingerprint = 'x'", "the fingerprint of baseline a is damaged"},
        {"UPDATE baseline SET fingerprint = substr(fingerprint, 1, 40)", "fingerprint"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(database_exec(db, "BEGIN", &err), STATUS_OK);
        assert_int_equal(database_exec(db, cases[i].sql, &err), STATUS_OK);
        assert_int_equal(database_exec(db, "COMMIT", &err), STATUS_OK);
        refused(&query, STATUS_CORRUPT, cases[i].words);
        assert_int_equal(save("a", true, &err), STATUS_OK);
    }
    // What is unknown to this version is passed over.
    assert_int_equal(database_exec(db,
                                   "UPDATE baseline SET fingerprint = '{\"machine\": 5,"
                                   " \"device\": {\"cpu\": [1]}, \"planet\": {}}';"
                                   "INSERT INTO baseline_sample VALUES(1, 'new.metric', 1, 1,"
                                   " 1, x'00')",
                                   &err),
                     STATUS_OK);
    result_free(ask(&query));
}

// ---- Samples --------------------------------------------------------------------------

TEST_CASE(samples_are_even)
{
    static const uint64_t counts[] = {1, 9999, 10000, 10001, 15000, 20000, 20001, 123457};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct sample sample = {0};
        for (uint64_t value = 0; value < counts[i]; value++)
            assert_int_equal(sample_add(&sample, (double)value, (uint16_t)value), STATUS_OK);
        assert_true(sample.count == counts[i]);
        assert_true(sample.kept <= STATS_SAMPLES_MAX);
        assert_true(sample.kept == (counts[i] + sample.stride - 1) / sample.stride);
        assert_true(sample.kept >= STATS_SAMPLES_MAX / 2 || sample.kept == counts[i]);
        for (size_t k = 0; k < sample.kept; k++) {
            assert_true(sample.values[k] == (double)(k * sample.stride));
            assert_int_equal(sample.sources[k], (uint16_t)(k * sample.stride));
        }
        sample_deinit(&sample);
    }
}

// Each bit and each length of a blob counts.
static void try_blob(const struct sample *sample, size_t expected_size)
{
    struct sample read = {0};
    struct error err;
    size_t size = 0;
    unsigned char *blob = baseline_encode("load.duration_ns", sample, &size);
    assert_non_null(blob);
    assert_int_equal(size, expected_size);
    assert_int_equal(baseline_decode(&read, "load.duration_ns", 9, blob, size, &err), STATUS_OK);
    assert_int_equal(read.kept, sample->kept);
    assert_true(read.count == 9);
    assert_memory_equal(read.values, sample->values, sample->kept * sizeof *sample->values);
    assert_true(!read.sources == !sample->sources);
    if (read.sources)
        assert_memory_equal(read.sources, sample->sources, sample->kept * sizeof *sample->sources);
    sample_deinit(&read);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        blob[bit / 8] ^= (unsigned char)(1U << bit % 8);
        assert_int_equal(baseline_decode(&read, "load.duration_ns", 9, blob, size, &err),
                         STATUS_CORRUPT);
        blob[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(baseline_decode(&read, "load.duration_ns", 9, blob, cut, &err),
                         STATUS_CORRUPT);
    assert_int_equal(baseline_decode(&read, "ttft_ns", 9, blob, size, &err), STATUS_CORRUPT);
    assert_int_equal(baseline_decode(&read, "load.duration_ns", 8, blob, size, &err),
                     STATUS_CORRUPT);
    free(blob);
}

TEST_CASE(blobs)
{
    double values[] = {1, -2.5, 1e-300, 1e300, 0};
    uint16_t sources[] = {0, 1, 65535, 256, 1};
    struct sample sample = {.values = values, .kept = 5, .room = 5, .count = 9};
    try_blob(&sample, 5 * 8 + 4); // as earlier versions wrote them
    sample.sources = sources;
    try_blob(&sample, 5 * 10 + 1 + 4);
    for (unsigned with = 0; with < 2; with++) {
        struct sample read = {0};
        struct error err;
        size_t size = 0;
        values[2] = (double)INFINITY; // its checksum is right
        sample.sources = with ? sources : NULL;
        unsigned char *blob = baseline_encode("load.duration_ns", &sample, &size);
        assert_non_null(blob);
        assert_int_equal(baseline_decode(&read, "load.duration_ns", 9, blob, size, &err),
                         STATUS_CORRUPT);
        free(blob);
    }
}

// Says of a host's requests that those before `until_ns` have expired.
static void expire(const char *host, int64_t until_ns)
{
    char *sql =
        sqlite3_mprintf("INSERT OR REPLACE INTO expiry VALUES(%d, %lld);"
                        "INSERT OR REPLACE INTO ledger(run, kind, stored, expired) SELECT r.run, "
                        "%d, 1, 1 FROM run r"
                        " JOIN name n ON n.id = r.host WHERE n.text = %Q",
                        RECORD_KIND_INFERENCE, (long long)until_ns, RECORD_KIND_INFERENCE, host);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
}

TEST_CASE(what_expired_is_told)
{
    const int64_t noon_ns = INT64_C(1774699200000000000); // 2026-03-28 12:00
    add((struct measured){
        .run = 1, .host = "a", .requests = 100, .loads = 20, .started_ns = noon_ns});
    add((struct measured){
        .run = 2, .host = "b", .requests = 100, .loads = 20, .started_ns = noon_ns});
    expire("a", noon_ns + 50 * INT64_C(1000000));
    struct query query = about(QUERY_COMPARE, "");
    set(query.filter.by[QUERY_BY_HOST], "a");
    set(query.compare.other.by[QUERY_BY_HOST], "b");
    struct result *result = ask(&query);
    const char *note = text_at(result, row_of(result, "e2e_ns"), "note");
    if (strcmp(note, "of the first, records before 2026-03-28 12:00 UTC have expired") != 0)
        fail_msg("the note is \"%s\"", note);
    assert_string_equal(text_at(result, row_of(result, "load.duration_ns"), "note"), "");
    result_free(result);
    // A window that begins later is whole.
    query.filter.since_ns = query.compare.other.since_ns = noon_ns + 50 * INT64_C(1000000);
    result = ask(&query);
    assert_null(strstr(text_at(result, row_of(result, "e2e_ns"), "note"), "expired"));
    result_free(result);
    // Of a model with nothing left, that is said.
    query.filter.since_ns = 0;
    set(query.filter.by[QUERY_BY_MODEL], "nothing");
    refused(&query, STATUS_NO_DATA, "that match: records before 2026-03-28 12:00 UTC have expired");
}

TEST_CASE(a_baseline_tells_what_expired)
{
    const int64_t noon_ns = INT64_C(1774699200000000000);
    struct error err = {0};
    add((struct measured){
        .run = 1, .host = "a", .requests = 100, .loads = 20, .started_ns = noon_ns});
    add((struct measured){
        .run = 2, .host = "b", .requests = 100, .loads = 20, .started_ns = noon_ns});
    expire("a", noon_ns + 1);
    static const char *const hosts[] = {"a", "b"};
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct query query = about(QUERY_BASELINE_SAVE, hosts[i]);
        set(query.filter.by[QUERY_BY_HOST], hosts[i]);
        struct baseline *baseline = NULL;
        struct result *result = NULL;
        assert_int_equal(baseline_prepare(&baseline, store, &query, &err), STATUS_OK);
        assert_int_equal(baseline_write(db, &query, baseline, &result, &err), STATUS_OK);
        assert_int_equal(result_integer(result, 0, "expired_ns", -1), i == 0 ? noon_ns + 1 : -1);
        result_free(result);
        baseline_free(baseline);
        set(query.filter.by[QUERY_BY_MODEL], "nothing");
        assert_int_equal(baseline_prepare(&baseline, store, &query, &err), STATUS_NO_DATA);
        assert_int_equal(
            strstr(err.text, ": records before 2026-03-28 12:00 UTC have expired") != NULL, i == 0);
    }
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, what_is_slower, the_same_twice, hosts_apart,
               workers_beside_each_other, filters_instead_of_names, one_metric,
               what_is_not_known_differs_from_nothing, tails_of_times, unlike_fingerprints,
               clocks_of_a_sampler, unlike_settings, unlike_limits_of_a_device, nothing_in_common,
               what_only_one_side_has, other_work, failures_do_not_count, saving_and_deleting,
               rows_may_go, on_a_file, damage_is_told, what_expired_is_told,
               a_baseline_tells_what_expired, samples_are_even, blobs)
