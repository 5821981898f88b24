// Averages of what is in no column: gaps between tokens, goodput.
#include <inttypes.h>
#include <math.h>

#include <sqlite3.h>

#include "common/core/stats/sketch.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "common/sys/clock.h"
#include "tests/support/store/rollup_builder.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND_NS INT64_C(1000000000)

TEST_FIXTURE(set_up)
{
    store_make(state);
    exec("INSERT INTO name(id, text) VALUES (1, 'alpha'), (2, 'gpu'), (3, 'tiny'), (4, 'big')");
    store_run(1, 1, RECORD_RUN_END_CLOSED, 1, START_NS + 200 * SECOND_NS);
    exec("UPDATE run SET stored = 10, uuid = '12340000-0000-4000-8000-000000000001'");
    return store_read();
}

static void expect_real(const struct result *result, size_t row, const char *key, double expected)
{
    const double actual = result_number(result, row, key, NAN);
    if (isnan(expected) ? !isnan(actual) : !(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("row %zu: %s is %.17g, not %.17g", row, key, actual, expected);
}

static void add_itl(int id, int model, const void *bytes, size_t size)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "INSERT INTO itl(id, run, stream, number, started_ns,"
                                        " received_ns, model, device, duration_ns, sketch)"
                                        " VALUES(?1, 1, 0, ?1, ?2, ?2 + 1, ?3, 2, 1000, ?4)",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    (void)sqlite3_bind_int64(stmt, 1, id);
    (void)sqlite3_bind_int64(stmt, 2, START_NS + id);
    (void)sqlite3_bind_int64(stmt, 3, model);
    (void)sqlite3_bind_blob(stmt, 4, bytes, (int)size, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
}

// Values from `first` on, `count` of them, as one span's sketch.
static void add_span(int id, int model, int first, int count)
{
    struct sketch *sketch = NULL;
    unsigned char bytes[4096];
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    for (int i = 0; i < count; i++)
        sketch_add(sketch, (first + i) * 1e6, 1);
    add_itl(id, model, bytes, sketch_encode_whole(sketch, bytes, sizeof bytes));
    sketch_free(sketch);
}

TEST_CASE(test_itl_is_of_all_requests)
{
    add_span(1, 3, 1, 60);
    add_span(2, 3, 61, 40);
    add_span(3, 4, 500, 1);
    add_itl(4, 3, "no sketch", 9); // has no values
    struct query query = store_average_of(QUERY_METRIC_ITL);
    query.group_count = 1;
    query.group_by[0] = QUERY_BY_MODEL;
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    assert_int_equal(result_integer(result, 0, "count", -1), 100);
    static const struct {
        const char *key;
        double ms;
    } near[] = {{"min", 1}, {"p50", 50}, {"p99", 99}, {"max", 100}, {"mean", 50.5}};
    for (size_t i = 0; i < COUNT_OF(near); i++)
        assert_true(fabs(result_number(result, 0, near[i].key, NAN) / 1e6 - near[i].ms) <=
                    0.01 * near[i].ms);
    assert_int_equal(result_integer(result, 1, "count", -1), 1);
    result_free(result);
}

TEST_CASE(test_histogram)
{
    add_span(1, 3, 1, 60);
    add_span(2, 3, 41, 40);
    struct query query = store_average_of(QUERY_METRIC_ITL);
    struct error err;
    query.average.histogram = true;
    struct result *result = ask(&query);
    int64_t count = 0;
    for (size_t row = 0; row < result_row_count(result); row++) {
        const double value = result_number(result, row, "value", 0);
        assert_true(row == 0 || value > result_number(result, row - 1, "value", 0));
        count += result_integer(result, row, "count", 0);
        if (fabs(value - 50e6) < 0.01 * 50e6)
            assert_int_equal(result_integer(result, row, "count", 0), 2);
    }
    assert_int_equal(count, 100);
    result_free(result);
    query.step_ns = SECOND_NS;
    assert_int_equal(query_check(&query, &err), STATUS_INVALID);
    query = store_average_of("request_rate");
    query.average.histogram = true;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
}

static void add_inferences(const char *values)
{
    exec(format_text(
        "WITH v(id, at, model, finish, tokens, ttft, e2e) AS (VALUES %s)"
        " INSERT INTO inference(id, run, stream, number, started_ns, received_ns, model,"
        " device, request, finish, prompt_tokens, cached_prompt_tokens,"
        " generated_tokens, queue_ns, prefill_ns, ttft_ns, e2e_ns, host_memory_bytes)"
        " SELECT id, 1, 0, id, 1790000000000000000 + at * 1000000000, "
        "1790000000000000001 + at * 1000000000, model, 2, id,"
        " finish, 1, 0, tokens, 0, 0, ttft * 1000000, e2e * 1000000, 1 "
        "FROM v",
        values));
}

// Where records have expired that no rollup holds, the answer says so, also one by steps, which
// begin with what is left.
TEST_CASE(test_what_has_expired_is_said)
{
    add_inferences("(1, 100, 3, 0, 11, 100, 1100), (2, 161, 3, 0, 1, 100, 100)");
    exec("INSERT INTO expiry VALUES(6, 1790000100000000000)");
    struct query query = store_average_of("ttft_ns");
    for (int steps = 0; steps < 2; steps++) {
        query.step_ns = steps ? 60 * SECOND_NS : 0;
        for (int later = 0; later < 2; later++) {
            query.filter.since_ns = later ? INT64_C(1790000100000000000) : 0;
            struct result *result = ask(&query);
            assert_int_equal(result_row_count(result), steps ? 2 : 1);
            const struct value note = result_cell(result, 0, (unsigned)result_find(result, "note"));
            if (later)
                assert_int_equal(note.type, VALUE_NULL);
            else if (note.type != VALUE_TEXT ||
                     !memmem(note.text.bytes, note.text.size, "have expired", 12))
                fail_msg("%s: nothing is said", steps ? "steps" : "all");
            result_free(result);
        }
    }
}

TEST_CASE(test_goodput)
{
    // id, second, model, finish, tokens, ttft, e2e
    add_inferences("(1, 0, 3, 0, 11, 100, 200)," // good
                   "(2, 1, 3, 1, 11, 100, 700)," // 60 ms a token
                   "(3, 2, 3, 0, 11, 300, 400)," // late
                   "(4, 3, 3, 3, 11, 100, 200)," // failed
                   "(5, 4, 3, 0, 1, 200, 200),"  // good, at the limit, with one token
                   "(6, 5, 3, 0, 0, NULL, 9),"   // never answered
                   "(7, 8, 4, 0, 11, 100, 200)," // good
                   "(8, 10, 4, 2, 11, 0, 0)");   // cancelled
    struct query query = store_average_of(QUERY_METRIC_GOODPUT);
    expect_error(&query, STATUS_INVALID, "needs objectives");
    (void)snprintf(query.average.slo, sizeof query.average.slo, "ttft=200ms,tpot=30ms");
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 8);
    expect_real(result, 0, "mean", 3 / 10.0);
    expect_real(result, 0, "met_ratio", 3 / 8.0);
    expect_real(result, 0, "total_over_total", NAN);
    assert_int_equal(result_column(result, (unsigned)result_find(result, "met_ratio"))->unit,
                     UNIT_RATIO);
    expect_real(result, 0, "p99", NAN);
    result_free(result);

    query.group_count = 1;
    query.group_by[0] = QUERY_BY_MODEL;
    query.filter.since_ns = START_NS + SECOND_NS;
    query.filter.until_ns = START_NS + 21 * SECOND_NS;
    result = ask(&query);
    expect_real(result, 0, "mean", 1 / 20.0);
    expect_real(result, 1, "mean", 1 / 20.0);
    result_free(result);

    query.group_count = 0;
    query.step_ns = 4 * SECOND_NS; // START_NS is a multiple
    result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    expect_real(result, 0, "mean", 0 / 3.0);
    expect_real(result, 1, "mean", 1 / 4.0);
    expect_real(result, 2, "mean", 1 / 4.0);
    result_free(result);
}

// Four requests one after the other, each of ten seconds: the last one takes its time, too.
TEST_CASE(test_goodput_to_the_end_of_the_last)
{
    add_inferences("(1, 0, 3, 0, 11, 100, 10000), (2, 10, 3, 0, 11, 100, 10000),"
                   "(3, 20, 3, 0, 11, 100, 10000), (4, 30, 4, 0, 11, 100, 10000)");
    struct query query = store_average_of(QUERY_METRIC_GOODPUT);
    (void)snprintf(query.average.slo, sizeof query.average.slo, "ttft=200ms");
    struct result *result = ask(&query);
    expect_real(result, 0, "mean", 4 / 40.0);
    result_free(result);
    query.group_count = 1; // all groups are counted over the same time
    query.group_by[0] = QUERY_BY_MODEL;
    result = ask(&query);
    expect_real(result, 0, "mean", 3 / 40.0);
    expect_real(result, 1, "mean", 1 / 40.0);
    result_free(result);
    query.filter.since_ns = START_NS - 10 * SECOND_NS; // until the last message
    result = ask(&query);
    expect_real(result, 0, "mean", 3 / 210.0);
    result_free(result);
    // Of a host whose clock is fast the last request ends after the last message, whether requests
    // are read or, after NOW, kept.
    static const struct {
        const char *metric;
        int64_t until, step;
        double window;
    } cases[] = {{QUERY_METRIC_GOODPUT, 0, 0, 50},
                 {QUERY_METRIC_REQUEST_RATE, 0, 0, 50},
                 {QUERY_METRIC_REQUEST_RATE, 37, 0, 47},
                 {QUERY_METRIC_REQUEST_RATE, 0, 1000, 40}};
    execf("UPDATE run SET heard_ns = %lld", (long long)(START_NS + 35 * SECOND_NS));
    add_inferences("(9, 30.5, 3, 0, 11, 1, 4000000000)"); // of a time that cannot be
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        const size_t at = i % COUNT_OF(cases);
        if (i == COUNT_OF(cases))
            result_free(ask(&(struct query){.kind = QUERY_NOW}));
        query = store_average_of(cases[at].metric);
        (void)snprintf(query.average.slo, sizeof query.average.slo, "%s", at ? "" : "ttft=200ms");
        query.filter.since_ns = START_NS - 10 * SECOND_NS;
        query.filter.until_ns = cases[at].until ? START_NS + cases[at].until * SECOND_NS : 0;
        query.step_ns = cases[at].step * SECOND_NS;
        result = ask(&query);
        expect_real(result, 0, "window_ns", cases[at].window * 1e9);
        result_free(result);
    }
}

// A second apart, the first just before a step is over, the last just behind another: that is
// no burst in either.
TEST_CASE(test_goodput_of_steps_that_are_not_full)
{
    add_inferences("(1, 3.999, 3, 0, 11, 1, 9), (2, 4.999, 3, 0, 11, 1, 9),"
                   "(3, 5.999, 3, 0, 11, 1, 9), (4, 6.999, 3, 0, 11, 1, 9),"
                   "(5, 7.999, 3, 0, 11, 1, 9), (6, 8.001, 3, 0, 11, 1, 9)");
    struct query query = store_average_of(QUERY_METRIC_GOODPUT);
    (void)snprintf(query.average.slo, sizeof query.average.slo, "ttft=200ms");
    query.step_ns = 4 * SECOND_NS; // START_NS is a multiple
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    expect_real(result, 0, "mean", 1 / 4.0);
    expect_real(result, 1, "mean", 4 / 4.0);
    expect_real(result, 2, "mean", 1 / 4.0);
    result_free(result);
    // What the window cuts off does not count.
    query.filter.since_ns = START_NS + 2 * SECOND_NS;
    query.filter.until_ns = START_NS + 6 * SECOND_NS;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    expect_real(result, 0, "mean", 1 / 2.0);
    expect_real(result, 1, "mean", 2 / 2.0);
    result_free(result);
}

// Steps are cut at the first process and the last message, of goodput as of rates.
TEST_CASE(test_steps_at_the_ends_of_a_file)
{
    static const char *const metrics[] = {QUERY_METRIC_GOODPUT, QUERY_METRIC_REQUEST_RATE};
    add_inferences("(1, 3.5, 3, 0, 11, 1, 9), (2, 8.5, 3, 0, 11, 1, 9)");
    exec("UPDATE run SET started_ns = 1790000003000000000, heard_ns = 1790000009000000000");
    for (size_t i = 0; i < 2 * COUNT_OF(metrics); i++) {
        struct query query = store_average_of(metrics[i / 2]);
        (void)snprintf(query.average.slo, i / 2 ? 0 : sizeof query.average.slo, "ttft=200ms");
        query.step_ns = 4 * SECOND_NS; // START_NS is a multiple
        query.filter.since_ns = i % 2 ? START_NS - SECOND_NS : 0;
        struct result *result = ask(&query);
        expect_real(result, 0, "mean", 1 / 1.0);
        expect_real(result, 1, "mean", 1 / 1.0);
        result_free(result);
    }
}

// What has expired is not counted, nor its time.
TEST_CASE(test_goodput_of_what_is_left)
{
    add_inferences("(1, 100, 3, 0, 11, 1, 9), (2, 105, 3, 0, 11, 1, 9), (3, 106, 3, 0, 11, 1, 9)");
    exec("INSERT INTO expiry VALUES(6, 1790000102000000000)"); // the first came late
    struct query query = store_average_of(QUERY_METRIC_GOODPUT);
    (void)snprintf(query.average.slo, sizeof query.average.slo, "ttft=200ms");
    query.filter.since_ns = START_NS;
    query.filter.until_ns = START_NS + 110 * SECOND_NS;
    struct result *result = ask(&query);
    expect_real(result, 0, "mean", 3 / 10.0);
    result_free(result);
    exec("DELETE FROM inference WHERE id = 1");
    result = ask(&query);
    expect_real(result, 0, "mean", 2 / 8.0);
    result_free(result);
    query.step_ns = 4 * SECOND_NS;
    exec("INSERT OR REPLACE INTO expiry VALUES(6, 1790000105000000000)");
    result = ask(&query);
    expect_real(result, 0, "mean", 2 / 3.0); // of 104 to 108
    result_free(result);
}

// All at one moment: as in a second.
TEST_CASE(test_goodput_of_no_time)
{
    add_inferences("(1, 0, 3, 0, 11, 0, 0), (2, 0, 3, 0, 11, 0, 0)");
    struct query query = store_average_of(QUERY_METRIC_GOODPUT);
    (void)snprintf(query.average.slo, sizeof query.average.slo, "e2e=1s");
    struct result *result = ask(&query);
    expect_real(result, 0, "mean", 2);
    expect_real(result, 0, "met_ratio", 1);
    result_free(result);
}

TEST_CASE(test_objectives_are_checked)
{
    add_inferences("(1, 0, 3, 0, 11, 100, 200)");
    struct query query = store_average_of(QUERY_METRIC_GOODPUT);
    (void)snprintf(query.average.slo, sizeof query.average.slo, "ttft=200ms,tpto=30ms");
    expect_error(&query, STATUS_INVALID, "\"tpto\"");
    query = store_average_of("e2e_ns");
    (void)snprintf(query.average.slo, sizeof query.average.slo, "ttft=200ms");
    expect_error(&query, STATUS_INVALID, "objectives are for the metric goodput_per_second");
    // All of them at once.
    query = store_average_of(QUERY_METRIC_GOODPUT);
    (void)snprintf(query.average.slo, sizeof query.average.slo,
                   "ttft=1s,tpot=1s,e2e=1s,queue=1s,prefill=1s,decode=1s,itl_max=1s,itl_p99=1s");
    query.filter.until_ns = START_NS + SECOND_NS;
    query.filter.since_ns = START_NS;
    struct result *result = ask(&query);
    expect_real(result, 0, "mean", 0); // decode_ns is not known
    result_free(result);
}

// Two processes, of which one lives for the second half: of both together twice and four requests.
TEST_CASE(test_requests_of_all_processes)
{
    const int64_t began_ns = START_NS / (60 * SECOND_NS) * 60 * SECOND_NS;
    exec("DELETE FROM run");
    for (int run = 1; run <= 2; run++) {
        const int64_t since_ns = began_ns + (run - 1) * 60 * SECOND_NS;
        store_run(run, 1, RECORD_RUN_END_CLOSED, since_ns, began_ns + 120 * SECOND_NS);
        execf("UPDATE run SET started_ns = %" PRId64 ", heard_ns = %" PRId64 " WHERE run = %d",
              since_ns, began_ns + 120 * SECOND_NS, run);
        for (int64_t at = since_ns; at < began_ns + 120 * SECOND_NS; at += SECOND_NS)
            execf("INSERT INTO process_sample(run, stream, number, started_ns, received_ns,"
                  " cpu_ratio, host_memory_bytes, running_requests) VALUES(%d, 0, %" PRId64
                  ", %" PRId64 ", %" PRId64 ", 1, 1, %d)",
                  run, at / SECOND_NS, at, at, 2 * run);
    }
    static const struct {
        int64_t step_ns;
        bool by_run;
        double sums[3]; // NaN: no such row
    } cases[] = {
        {0, false, {4, NAN, NAN}},
        {60 * SECOND_NS, false, {2, 6, NAN}},
        {0, true, {2, 2, NAN}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = store_average_of("running_requests");
        query.filter.since_ns = began_ns;
        query.filter.until_ns = began_ns + 120 * SECOND_NS;
        query.step_ns = cases[i].step_ns;
        query.group_by[0] = QUERY_BY_RUN;
        query.group_count = cases[i].by_run;
        struct result *result = ask(&query);
        for (size_t row = 0; row < COUNT_OF(cases[i].sums); row++)
            if (row < result_row_count(result) || !isnan(cases[i].sums[row]))
                expect_real(result, row, "sum", cases[i].sums[row]);
        result_free(result);
    }
}

static struct result *ask_running(int64_t since_ns)
{
    struct query query = store_average_of("running_requests");
    query.filter.since_ns = since_ns;
    return ask(&query);
}

// Rollups change no sum: the time over which a file's processes are counted ends with the last
// message, not with a rollup's day; a collector's ends now.
TEST_CASE(test_requests_with_rollups)
{
    const int64_t began_ns = clock_wall_ns() - 120 * SECOND_NS;
    const struct {
        int64_t since_ns;
        double sum;
    } cases[] = {{0, 3}, {began_ns + 30 * SECOND_NS, 3}, {began_ns - 60 * SECOND_NS, 1.5}};
    const struct query_metric *metric = NULL;
    struct error err;
    assert_int_equal(query_metric_find(&metric, "process_sample.running_requests", &err),
                     STATUS_OK);
    exec("DELETE FROM run");
    store_run(1, 1, RECORD_RUN_END_OPEN, began_ns, began_ns + 60 * SECOND_NS);
    for (int second = 0; second < 60; second++)
        execf("INSERT INTO process_sample(run, stream, number, started_ns, received_ns, cpu_ratio,"
              " host_memory_bytes, running_requests) VALUES(1, 0, %d, %" PRId64 ", %" PRId64
              ", 1, 1, 3)",
              second, began_ns + second * SECOND_NS, began_ns + second * SECOND_NS);
    for (int has_rollups = 0; has_rollups < 2; has_rollups++) {
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            struct result *result = ask_running(cases[i].since_ns);
            expect_real(result, 0, "sum", cases[i].sum);
            result_free(result);
        }
        rollup_builder_fill(db, metric, 60, false);
    }
    store_set_live(store);
    const double before = (double)(clock_wall_ns() - began_ns);
    struct result *result = ask_running(began_ns);
    const double after = (double)(clock_wall_ns() - began_ns);
    const double sum = result_number(result, 0, "sum", NAN);
    assert_true(sum >= 3 * 60e9 / after * 0.999999 && sum <= 3 * 60e9 / before * 1.000001);
    result_free(result);
}

// The requests of a model at a second in a process: what the next test counts by itself.
static int64_t requests_at(int run, int model, int64_t second)
{
    return model == 3 ? (second * run) % 4 : second % 3 == 0 ? 2 * run : 0;
}

// Samples have rows of the models with requests alone.  The means of the models, with the samples
// in which they had none, are together that of the process; other figures leave those rows out.
TEST_CASE(test_requests_by_model)
{
    enum { SECONDS = 120, RUNS = 2 };
    const int64_t began_ns = START_NS / (60 * SECOND_NS) * 60 * SECOND_NS;
    double sums[RUNS + 1][5] = {{0}}; // by run and model; in the last place both
    int64_t number = 0;
    exec("DELETE FROM run; BEGIN");
    for (int run = 1; run <= RUNS; run++) {
        store_run(run, 1, RECORD_RUN_END_CLOSED, began_ns, began_ns + SECONDS * SECOND_NS);
        execf("UPDATE run SET started_ns = %" PRId64 ", heard_ns = %" PRId64 " WHERE run = %d",
              began_ns, began_ns + SECONDS * SECOND_NS, run);
        for (int64_t second = 0; second < SECONDS; second++) {
            int64_t counts[5] = {0};
            for (int model = 3; model <= 4; model++) {
                counts[model] = requests_at(run, model, second);
                counts[0] += counts[model];
                sums[run][model] += (double)counts[model];
                sums[0][model] += (double)counts[model];
            }
            for (int model = 4; model >= 0; model = model == 3 ? 0 : model - 1)
                if (model == 0 || counts[model] > 0)
                    execf("INSERT INTO process_sample(run, stream, number, started_ns, received_ns,"
                          " cpu_ratio, host_memory_bytes, running_requests, model) VALUES(%d, 0,"
                          " %" PRId64 ", %" PRId64 ", %" PRId64 ", %g, 1, %" PRId64
                          ", nullif(%d, 0))",
                          run, ++number, began_ns + second * SECOND_NS,
                          began_ns + second * SECOND_NS, model ? 9.0 : 1.0, counts[model], model);
        }
    }
    exec("COMMIT");
    struct query query = store_average_of("running_requests");
    query.filter.since_ns = began_ns;
    query.filter.until_ns = began_ns + SECONDS * SECOND_NS;
    struct result *result = ask(&query);
    const double all = sums[0][3] + sums[0][4];
    expect_real(result, 0, "count", RUNS * SECONDS);
    expect_real(result, 0, "mean", all / RUNS / SECONDS);
    expect_real(result, 0, "sum", all / SECONDS);
    result_free(result);

    query.group_by[0] = QUERY_BY_RUN;
    query.group_by[1] = QUERY_BY_MODEL;
    query.group_count = 2;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 4);
    for (size_t row = 0; row < 4; row++) {
        const int model = result_is(result, row, "model", "tiny") ? 3 : 4;
        const int run = result_get(result, row, "run").text.bytes[7] - '0';
        expect_real(result, row, "count", SECONDS);
        expect_real(result, row, "mean", sums[run][model] / SECONDS);
        expect_real(result, row, "sum", sums[run][model] / SECONDS);
        expect_real(result, row, "min", 0);
        expect_real(result, row, "p50", model == 3 && run == 1 ? 1 : 0);
    }
    result_free(result);

    query.group_count = 0;
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "big");
    query.step_ns = 60 * SECOND_NS;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    expect_real(result, 1, "mean", 1);
    expect_real(result, 1, "sum", 2);
    result_free(result);

    // Steps of one sample each: in those without requests the model had none.
    for (int by_model = 0; by_model < 2; by_model++) {
        query.step_ns = SECOND_NS;
        query.group_by[0] = QUERY_BY_MODEL;
        query.group_count = (unsigned)by_model;
        result = ask(&query);
        assert_int_equal(result_row_count(result), SECONDS);
        for (size_t row = 0; row < SECONDS; row++) {
            expect_real(result, row, "count", RUNS);
            expect_real(result, row, "mean", row % 3 == 0 ? 3 : 0);
            assert_true(!by_model || result_is(result, row, "model", "big"));
        }
        result_free(result);
    }

    // A process whose samples say nothing of models: only those without requests count.
    exec("UPDATE process_sample SET running_requests = 1 - number % 2 WHERE run = 2;"
         " DELETE FROM process_sample WHERE run = 2 AND model IS NOT NULL");
    query.step_ns = 0;
    query.group_count = 0;
    result = ask(&query);
    const double idle =
        store_number("SELECT count(*) FROM process_sample WHERE run = 2 AND running_requests = 0");
    assert_true(idle > 0 && idle < SECONDS);
    expect_real(result, 0, "count", SECONDS + idle);
    expect_real(result, 0, "mean", sums[1][4] / (SECONDS + idle));
    result_free(result);

    static const char *const of_process[] = {"cpu_ratio", "process_sample.host_memory_bytes"};
    for (size_t i = 0; i < 2 * COUNT_OF(of_process); i++) {
        query = store_average_of(of_process[i / 2]);
        query.group_by[0] = QUERY_BY_MODEL;
        query.group_count = i % 2;
        if (i % 2 == 0)
            (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "big");
        expect_error(&query, STATUS_INVALID, "not of one of its models");
    }
    query = store_average_of("cpu_ratio");
    result = ask(&query);
    expect_real(result, 0, "count", RUNS * SECONDS);
    expect_real(result, 0, "mean", 1);
    result_free(result);
}

// Of one of many hosts, each rollup is found by itself: nothing is lost, in any window.  A long one
// is of whole minutes, which the note says; START_NS is 20 s into one.
TEST_CASE(test_one_of_many_hosts)
{
    enum { HOSTS = 40, FIRST_RUN = 100, SAMPLES = 360 };
    const struct query_metric *metric = NULL;
    exec("BEGIN");
    for (int host = 0; host < HOSTS; host++) {
        execf("INSERT INTO name(id, text) VALUES(%d, 'host-%d')", FIRST_RUN + host, host);
        store_run(FIRST_RUN + host, FIRST_RUN + host, RECORD_RUN_END_CLOSED, START_NS,
                  START_NS + SAMPLES * 20 * SECOND_NS);
        execf("WITH RECURSIVE i(n) AS (VALUES(0) UNION ALL SELECT n + 1 FROM i WHERE n < %d - 1)"
              " INSERT INTO device_sample(run, stream, number, started_ns, received_ns, device,"
              " retired_pages) SELECT %d, 0, n + 1, %" PRId64 " + n * 20000000000, %" PRId64
              " + n * 20000000000, 2,"
              " %d * 1000 + n FROM i",
              SAMPLES, FIRST_RUN + host, START_NS, START_NS, host);
    }
    exec("COMMIT");
    assert_int_equal(query_metric_find(&metric, "retired_pages", NULL), STATUS_OK);
    rollup_builder_fill(db, metric, (int64_t)HOSTS * SAMPLES, false);
    static const struct {
        int64_t since_s, until_s, step_s, widened_since_s, widened_until_s;
    } cases[] = {
        {0, 0, 0, 0, 0},          {40, 220, 0, 0, 0}, {40, 6100, 0, 0, 0}, {47, 3333, 0, 40, 3340},
        {107, 710, 60, 100, 760}, {47, 646, 0, 0, 0}, {47, 727, 90, 0, 0}, {40, 7000, 600, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int host = 0; host < HOSTS; host += 13) {
            struct query query = store_average_of("retired_pages");
            int64_t since_ns = START_NS + cases[i].since_s * SECOND_NS;
            int64_t until_ns =
                START_NS + (cases[i].until_s ? cases[i].until_s : 20 * SAMPLES) * SECOND_NS;
            query.filter.since_ns = cases[i].since_s ? since_ns : 0;
            query.filter.until_ns = cases[i].until_s ? until_ns : 0;
            query.step_ns = cases[i].step_s * SECOND_NS;
            (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "host-%d", host);
            struct result *result = ask(&query);
            double count = 0, sum = 0;
            for (size_t row = 0; row < result_row_count(result); row++) {
                const double n = result_number(result, row, "count", NAN);
                count += n;
                sum += n * result_number(result, row, "mean", NAN);
            }
            char note[256];
            (void)result_text(note, sizeof note, result, 0, "note");
            assert_int_equal(strstr(note, "whole minutes") != NULL, cases[i].widened_until_s > 0);
            result_free(result);
            if (cases[i].widened_until_s) {
                since_ns = START_NS + cases[i].widened_since_s * SECOND_NS;
                until_ns = START_NS + cases[i].widened_until_s * SECOND_NS;
            }
            const int64_t of[] = {(since_ns - START_NS + 20 * SECOND_NS - 1) / (20 * SECOND_NS),
                                  (until_ns - START_NS - 1) / (20 * SECOND_NS)};
            const double expected = (double)(of[1] - of[0] + 1);
            assert_true(count == expected);
            const double mean = host * 1000 + (double)(of[0] + of[1]) / 2;
            assert_true(fabs(sum / count - mean) < 1e-6);
        }
}

TEST_MAIN_EACH(set_up, store_tear_down, test_histogram, test_itl_is_of_all_requests,
               test_what_has_expired_is_said, test_goodput, test_goodput_to_the_end_of_the_last,
               test_goodput_of_steps_that_are_not_full, test_steps_at_the_ends_of_a_file,
               test_goodput_of_what_is_left, test_goodput_of_no_time, test_objectives_are_checked,
               test_requests_of_all_processes, test_requests_with_rollups, test_requests_by_model,
               test_one_of_many_hosts)
