// Comparisons of throughput and tails: what a median hides is WORSE, and other demand is not.
#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/compare/judge.h"
#include "common/store/sqlite/database.h"
#include "tests/support/store/served.h"
#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

static const char total[] = "busy_output_token_rate";

static void insert(sqlite3_stmt *row, const struct served_request *request, int64_t number)
{
    const int64_t ttft_ns = request->queue_ns + request->prefill_ns;
    const int64_t values[] = {request->run,
                              number,
                              request->started_ns,
                              request->prompt_tokens,
                              request->generated_tokens,
                              request->queue_ns,
                              request->prefill_ns,
                              ttft_ns,
                              request->decode_ns,
                              ttft_ns + request->decode_ns,
                              request->itl_p99_ns};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        assert_int_equal(sqlite3_bind_int64(row, (int)i + 1, values[i]), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_DONE);
    (void)sqlite3_reset(row);
}

// Puts what the engine served into the store, as runs of the host.
static void served_by(const char *host, const struct served *engine, int first_run)
{
    static struct served_request requests[SERVED_MAX];
    static const char sql[] =
        "INSERT INTO inference(run, stream, number, started_ns, received_ns, model, device,"
        " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
        " prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_p99_ns, host_memory_bytes)"
        " VALUES(?1, 0, 10 + ?2, ?3, ?3, (SELECT id FROM name WHERE text = 'tiny'),"
        " (SELECT id FROM name WHERE text = 'cpu'), ?2, 0, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1)";
    uint64_t seed = 7 + (uint64_t)first_run;
    sqlite3_stmt *row = NULL;
    for (unsigned i = 0; i < (engine->runs ? engine->runs : 1); i++) {
        add((struct measured){.run = first_run + (int)i, .host = host});
        served_run(requests, engine, first_run + (int)i, &seed);
        change("BEGIN");
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
        for (unsigned k = 0; k < engine->requests; k++)
            insert(row, &requests[k], k);
        (void)sqlite3_finalize(row);
        change("COMMIT");
    }
}

#define CLOSED .clients = 1, .noise = 0.05
#define OPEN   .requests = 4000, .slots = 64, .noise = 0.1

static const struct engine_case {
    const char *what;
    struct served before, after;
    const char *verdict, *note; // of the total; a part of the note, NULL: there is none
} cases[] = {
    {"a competitor takes the processor from 4 of 10 requests",
     {CLOSED, .requests = 2000},
     {CLOSED, .requests = 2000, .slow_share = 0.42, .slow_add = 4.8},
     "WORSE",
     NULL},
    {"it is gone",
     {CLOSED, .requests = 2000, .slow_share = 0.42, .slow_add = 4.8},
     {CLOSED, .requests = 2000},
     "BETTER",
     NULL},
    {"nothing", {CLOSED, .requests = 8000}, {CLOSED, .requests = 8000}, "SAME", NULL},
    {"half the demand of an engine with many slots",
     {OPEN, .rate = 800},
     {OPEN, .rate = 400},
     "UNDECIDED",
     "requests in progress on average: less demand may explain it"},
    {"twice the demand", {OPEN, .rate = 400}, {OPEN, .rate = 800}, "UNDECIDED", ": more demand"},
    {"a slower engine under the same demand",
     {OPEN, .rate = 200},
     {OPEN, .rate = 200, .slowness = 1.5},
     "WORSE",
     NULL},
    {"half the demand of a slower engine",
     {OPEN, .rate = 800},
     {OPEN, .rate = 400, .slowness = 1.5},
     "WORSE",
     NULL},
    {"half of the slots, though as many clients",
     {.requests = 2000, .noise = 0.05, .clients = 8, .slots = 8},
     {.requests = 2000, .noise = 0.05, .clients = 8, .slots = 4},
     "WORSE",
     NULL},
    {"all at once, 20 % slower",
     {.requests = 2000, .slots = 8, .noise = 0.05},
     {.requests = 2000, .slots = 8, .noise = 0.05, .slowness = 1.2},
     "WORSE",
     NULL},
    {"half the demand of one slot, which has a queue",
     {.requests = 8000, .rate = 250, .noise = 0.02},
     {.requests = 8000, .rate = 125, .noise = 0.02},
     "SAME",
     "requests in progress on average"},
    {"two runs instead of one",
     {CLOSED, .requests = 8000},
     {CLOSED, .requests = 4000, .runs = 2},
     "SAME",
     NULL},
};

TEST_CASE(totals)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct engine_case *is = &cases[i];
        char hosts[SIDES][16];
        for (int side = 0; side < SIDES; side++) {
            (void)snprintf(hosts[side], sizeof hosts[side], "%zu-%d", i, side);
            served_by(hosts[side], side == BEFORE ? &is->before : &is->after,
                      1 + 10 * (int)i + 3 * side);
            saved(hosts[side]);
        }
        struct query query = of_two(hosts[BEFORE], hosts[AFTER]);
        set(query.metric, total);
        query.compare.margin = 0.02;
        struct result *result = ask(&query);
        const char *note = text_at(result, 0, "note");
        const bool is_noted = is->note ? strstr(note, is->note) != NULL : true;
        if (!is_noted)
            fail_msg("%s: the note is \"%s\"", is->what, note);
        if (strcmp(text_at(result, 0, "verdict"), is->verdict) != 0)
            fail_msg("%s: %s, not %s (%g, %g to %g)", is->what, text_at(result, 0, "verdict"),
                     is->verdict, result_number(result, 0, "ratio", 0),
                     result_number(result, 0, "ratio_low", 0),
                     result_number(result, 0, "ratio_high", 0));
        result_free(result);
    }
}

// With 3.0 ms a request of 50 tokens alone, and 4.8 ms more for 42 of 100.
TEST_CASE(a_competitor_on_the_same_core)
{
    const struct served alone = {CLOSED, .requests = 2000},
                        beside = {CLOSED, .requests = 2000, .slow_share = 0.42, .slow_add = 4.8};
    served_by("alone", &alone, 1);
    served_by("beside", &beside, 2);
    change("UPDATE inference SET prefill_ns = 0 WHERE run = 2"); // they count no prompt tokens
    saved("alone");
    saved("beside");
    struct query query = of_two("alone", "beside");
    struct result *result = ask(&query);
    const size_t row = row_of(result, total);
    verdict_is(result, total, "WORSE");
    verdict_is(result, "ttft_ns", "UNDECIDED");
    const double before = result_number(result, row, "before_total", 0);
    assert_true(fabs(before - 50 / 3.0e-3) < 0.02 * before);
    assert_true(fabs(result_number(result, row, "after_total", 0) - 50 / 5.016e-3) < 0.02 * before);
    assert_int_equal(result_cell(result, row, (unsigned)result_find(result, "before_median")).type,
                     VALUE_NULL);
    assert_int_equal(result_integer(result, row, "after_count", 0), 2000);
    const size_t prompt = row_of(result, "prompt_token_rate");
    assert_true(result_number(result, prompt, "before_total", 0) > 0);
    assert_true(result_number(result, prompt, "after_total", -1) == 0);
    const size_t e2e = row_of(result, "e2e_ns");
    assert_string_equal(text_at(result, e2e, "p95_verdict"), "WORSE");
    assert_true(result_number(result, e2e, "confidence", 0) > 0.995); // of many verdicts
    result_free(result);
    // A baseline of an earlier version has no total; the rest stays.
    change("DELETE FROM baseline_sample WHERE metric = 'inference.busy_output_token_rate'"
           " AND baseline = (SELECT id FROM baseline WHERE name = 'alone')");
    result = ask(&query);
    for (size_t i = 0; i < result_row_count(result); i++)
        assert_string_not_equal(text_at(result, i, "metric"), total);
    verdict_is(result, "ttft_ns", "UNDECIDED");
    result_free(result);
}

// One host's requests, window by window: nothing changed between any two.
TEST_CASE(windows_of_one_host)
{
    enum { WINDOWS = 8, EACH = 1500 };
    const struct served engine = {.requests = WINDOWS * EACH,
                                  .rate = 300,
                                  .burst = 0.5,
                                  .slots = 4,
                                  .noise = 0.1,
                                  .drift = 0.05,
                                  .token_noise = 0.2,
                                  .slow_share = 0.02,
                                  .slow_add = 5};
    int64_t starts[WINDOWS + 1];
    struct error err;
    unsigned wrong = 0, pairs = 0, intervals = 0;
    served_by("alike", &engine, 1);
    for (int i = 0; i <= WINDOWS; i++)
        expect_ok(database_integerf(db, &starts[i], &err,
                                    "SELECT max(started_ns) + (%d = %d) FROM inference"
                                    " WHERE request <= %d",
                                    i, WINDOWS, i * EACH),
                  &err);
    for (int i = 0; i < WINDOWS; i++)
        for (int k = i + 1; k < WINDOWS; k++) {
            struct query query = {.kind = QUERY_COMPARE};
            query.compare.margin = 1e-9;
            query.filter.since_ns = starts[i];
            query.filter.until_ns = starts[i + 1];
            query.compare.other.since_ns = starts[k];
            query.compare.other.until_ns = starts[k + 1];
            struct result *result = ask(&query);
            bool is_wrong = false;
            for (size_t row = 0; row < result_row_count(result); row++) {
                static const char *const keys[] = {"verdict", "p95_verdict", "p99_verdict"};
                for (size_t key = 0; key < COUNT_OF(keys); key++)
                    is_wrong |= result_is(result, row, keys[key], "WORSE") ||
                                result_is(result, row, keys[key], "BETTER");
                intervals += result_get(result, row, "ratio_high").type != VALUE_NULL;
            }
            wrong += is_wrong;
            pairs++;
            result_free(result);
        }
    print_message("of %u pairs of windows wrong %u\n", pairs, wrong);
    assert_true(wrong <= 0.05 * pairs);
    assert_int_equal(intervals, 7 * pairs); // each metric but ratios of totals has enough values
}

// Failed and cancelled requests take their time; those of a model without others do not count.
TEST_CASE(failed_requests_take_their_time)
{
    const struct served engine = {CLOSED, .requests = 2000};
    served_by("good", &engine, 1);
    served_by("bad", &engine, 2);
    change(
        "UPDATE inference SET finish = 3, generated_tokens = 0 WHERE run = 2 AND request % 3 = 0");
    saved("good");
    saved("bad");
    const struct query query = of_two("good", "bad");
    struct result *result = ask(&query);
    const size_t row = row_of(result, total);
    verdict_is(result, total, "WORSE");
    assert_true(fabs(result_number(result, row, "ratio", 0) - 2 / 3.0) < 0.02);
    const size_t errors = row_of(result, "error_ratio"); // from none: there is no ratio
    verdict_is(result, "error_ratio", "WORSE");
    assert_true(result_number(result, errors, "before_total", 1) == 0);
    assert_true(fabs(result_number(result, errors, "after_total", 0) - 1 / 3.0) < 0.001);
    verdict_is(result, "request_rate", ""); // a matter of demand
    const size_t rate = row_of(result, "output_token_rate");
    assert_true(fabs(result_number(result, rate, "before_total", 0) - 50 / 3.0e-3) < 500);
    result_free(result);
    change("UPDATE inference SET finish = 3 WHERE run = 2");
    struct query none = about(QUERY_COMPARE, "good");
    set(none.compare.other.by[QUERY_BY_HOST], "bad");
    refused(&none, STATUS_NO_DATA, "no requests");
}

// Parts are merged two by two: their sums stay, and their starts ascend.
TEST_CASE(parts_are_merged)
{
    static const unsigned counts[] = {1,
                                      TOTAL_PARTS_MAX - 1,
                                      TOTAL_PARTS_MAX,
                                      TOTAL_PARTS_MAX + 1,
                                      2 * TOTAL_PARTS_MAX + 3,
                                      100 * TOTAL_PARTS_MAX + 77};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct sample sample = {0};
        double sums[TOTAL_COLUMNS] = {0};
        for (unsigned k = 0; k < counts[i]; k++) {
            const double part[TOTAL_COLUMNS] = {k, k + 9, 1, 2, 3 + k, 4, 5, 1, 1};
            assert_int_equal(sample_add_part(&sample, part, 5), STATUS_OK);
        }
        const size_t parts = sample.kept / TOTAL_COLUMNS;
        assert_true(parts <= TOTAL_PARTS_MAX &&
                    (parts >= TOTAL_PARTS_MAX / 2 || parts == counts[i]));
        assert_true(sample.count == (uint64_t)counts[i] * TOTAL_COLUMNS);
        for (size_t k = 0; k < sample.kept; k++) {
            sums[k % TOTAL_COLUMNS] += sample.values[k];
            assert_int_equal(sample.sources[k], 5);
        }
        for (size_t k = 0; k < parts; k++)
            assert_true(sample.values[k * TOTAL_COLUMNS] == (double)(k * sample.stride));
        const double n = counts[i];
        assert_true(sample.values[sample.kept - TOTAL_COLUMNS + TOTAL_ENDED_NS] == n + 8);
        assert_true(sums[TOTAL_TOKENS] == n && sums[TOTAL_BUSY_NS] == 2 * n);
        assert_true(sums[TOTAL_E2E_NS] == 3 * n + n * (n - 1) / 2);
        assert_true(sums[TOTAL_RUNNING_NS] == 4 * n);
        sample_deinit(&sample);
    }
}

// A total in a store whose number of values is not one of whole parts is refused, not read.
TEST_CASE(a_cut_total_is_damage)
{
    double values[TOTAL_COLUMNS + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const struct sample cut = {
        .values = values, .kept = COUNT_OF(values), .count = COUNT_OF(values)};
    static const char metric[] = "inference.busy_output_token_rate";
    size_t size = 0;
    sqlite3_stmt *row = NULL;
    served_by("good", &(struct served){CLOSED, .requests = 100}, 1);
    saved("good");
    unsigned char *blob = baseline_encode(metric, &cut, &size);
    assert_non_null(blob);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "UPDATE baseline_sample SET samples = ?1, count = ?2"
                                        " WHERE metric = ?3",
                                        -1, &row, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_bind_blob(row, 1, blob, (int)size, SQLITE_STATIC), SQLITE_OK);
    assert_int_equal(sqlite3_bind_int(row, 2, (int)COUNT_OF(values)), SQLITE_OK);
    assert_int_equal(sqlite3_bind_text(row, 3, metric, -1, SQLITE_STATIC), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_DONE);
    assert_int_equal(sqlite3_changes(db), 1);
    (void)sqlite3_finalize(row);
    free(blob);
    const struct query query = of_two("good", "good");
    refused(&query, STATUS_CORRUPT, "sample of inference.busy_output_token_rate is damaged");
}

// Requests beside each other, of two runs, and with times that no request has.
TEST_CASE(busy_time)
{
    const int64_t most = INT64_MAX;
    const struct sample_request requests[] = {
        {1, 100, 50, 10, 5, 1, false},     {1, 120, 10, 0, 5, 1, false},
        {1, 140, 30, 40, 5, 1, false},     {1, 500, 5, 0, 5, 1, false},
        {2, 90, 20, 0, 5, 1, false},       {2, 100, 20, 0, 5, 1, false},
        {2, most - 5, 10, 0, 5, 1, false}, {2, 100, -1, 0, 5, 1, false},
    };
    static const double busy[] = {50, 0, 20, 5, 20, 10}, running[] = {40, 10, 0, 5, 20, 20};
    struct sample_group *group = calloc(1, sizeof *group);
    assert_non_null(group);
    for (size_t i = 0; i < COUNT_OF(requests); i++)
        assert_int_equal(sample_group_add_request(group, &requests[i]), STATUS_OK);
    struct sample *sample = &group->samples[samples_find_metric(total)];
    assert_int_equal(sample->kept, COUNT_OF(busy) * TOTAL_COLUMNS);
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        const double *part = &sample->values[i * TOTAL_COLUMNS];
        assert_true(part[TOTAL_BUSY_NS] == busy[i]);
        assert_true(part[TOTAL_RUNNING_NS] == running[i]);
    }
    sample_deinit(sample);
    free(group);
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, totals, a_competitor_on_the_same_core,
               windows_of_one_host, failed_requests_take_their_time, parts_are_merged,
               a_cut_total_is_damage, busy_time)
