// Queries against what plain SQL says of the same rows.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/record.h"
#include "common/core/sketch.h"
#include "common/core/text.h"
#include "common/store/database.h"
#include "common/store/schema.h"
#include "common/store/reader.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/store_fixture.h"

static void expect_error(const struct query *query, enum status expected, const char *words)
{
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, query, &result, &err), expected);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void expect_close(double actual, double expected, const char *what)
{
    if (isnan(expected) ? !isnan(actual) : !(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%s: %.17g instead of %.17g", what, actual, expected);
}

static struct query average(const char *metric)
{
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    return query;
}

static void test_averages_equal_plain_sql(void **state)
{
    (void)state;
    store_add_inferences(3000);
    unsigned count = 0;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned m = 0; m < count; m++) {
        if (metrics[m].kind != RECORD_KIND_INFERENCE || !query_metric_is_of_records(&metrics[m]))
            continue;
        char name[128], sql[1024];
        (void)snprintf(name, sizeof name, "inference.%s", metrics[m].name);
        const struct query query = average(name);
        struct result *result = store_ask(&query);
        (void)snprintf(sql, sizeof sql, "SELECT count(\"%s\") FROM v_inference", metrics[m].name);
        assert_int_equal(result_integer(result, 0, "count", -1), (int64_t)store_number(sql));
        (void)snprintf(sql, sizeof sql,
                       "SELECT CAST(sum(\"%s\") AS REAL) / count(\"%s\") FROM v_inference",
                       metrics[m].name, metrics[m].name);
        expect_close(result_number(result, 0, "mean", NAN), store_number(sql), name);
        (void)snprintf(sql, sizeof sql, "SELECT min(\"%s\") FROM v_inference", metrics[m].name);
        expect_close(result_number(result, 0, "min", NAN), store_number(sql), name);
        (void)snprintf(sql, sizeof sql, "SELECT max(\"%s\") FROM v_inference", metrics[m].name);
        expect_close(result_number(result, 0, "max", NAN), store_number(sql), name);
        if (metrics[m].derived) {
            (void)snprintf(sql, sizeof sql,
                           "SELECT sum(CAST(%s AS REAL)) / sum(%s) FROM inference"
                           " WHERE (%s) > 0 AND (%s) IS NOT NULL",
                           metrics[m].derived->numerator, metrics[m].derived->denominator,
                           metrics[m].derived->denominator, metrics[m].derived->numerator);
            expect_close(result_number(result, 0, "total_over_total", NAN), store_number(sql),
                         name);
        }
        result_free(result);
    }
}

static void test_quantiles_within_one_percent(void **state)
{
    (void)state;
    store_add_inferences(3000);
    static const struct {
        const char *key;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    const struct query query = average("e2e_ns");
    struct result *result = store_ask(&query);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "SELECT e2e_ns FROM inference ORDER BY e2e_ns LIMIT 1 OFFSET %d",
                       (int)sketch_rank(quantiles[i].q, 3000));
        const double expected = store_number(sql);
        const double actual = result_number(result, 0, quantiles[i].key, NAN);
        assert_true(fabs(actual - expected) <= 0.01 * expected);
    }
    result_free(result);
}

static void test_groups_cover_everything_once(void **state)
{
    (void)state;
    store_add_inferences(2000);
    struct query query = average("ttft_ns");
    query.group_count = 4;
    query.group_by[0] = QUERY_BY_MODEL;
    query.group_by[1] = QUERY_BY_HOST;
    query.group_by[2] = QUERY_BY_DEVICE;
    query.group_by[3] = QUERY_BY_RUN;
    struct result *result = store_ask(&query);
    assert_int_equal(result_row_count(result), 8);
    int64_t count = 0;
    for (size_t row = 0; row < 8; row++) {
        char texts[3][64], sql[512];
        static const char *const keys[] = {"model", "host", "device"};
        for (int i = 0; i < 3; i++) {
            const struct value value =
                result_cell(result, row, (unsigned)result_find(result, keys[i]));
            assert_int_equal(value.type, VALUE_TEXT);
            (void)snprintf(texts[i], sizeof texts[i], "%.*s", (int)value.text.size,
                           value.text.bytes);
        }
        char *quoted = sqlite3_mprintf("SELECT avg(ttft_ns) FROM v_inference WHERE model = %Q"
                                       " AND host = %Q AND device = %Q",
                                       texts[0], texts[1], texts[2]);
        (void)snprintf(sql, sizeof sql, "%s", quoted);
        sqlite3_free(quoted);
        expect_close(result_number(result, row, "mean", NAN), store_number(sql), sql);
        count += result_integer(result, row, "count", 0);
        // Coverage is the host's: alpha lost nothing, beta 15 of 35.
        const bool alpha = strcmp(texts[1], "alpha") == 0;
        assert_int_equal(result_integer(result, row, "lost", -1), alpha ? 0 : 15);
        expect_close(result_number(result, row, "coverage_ratio", NAN), alpha ? 1 : 20.0 / 35,
                     "cov");
    }
    assert_int_equal(count, (int64_t)store_number("SELECT count(ttft_ns) FROM inference"));
    result_free(result);
}

static void test_filters(void **state)
{
    (void)state;
    store_add_inferences(1000);
    static const struct {
        enum query_dimension dimension;
        const char *text;
        const char *where;
    } cases[] = {
        {QUERY_BY_MODEL, "tiny", "model = 'tiny'"},
        {QUERY_BY_MODEL, "big'; DROP TABLE inference; --", "model LIKE 'big%'"},
        {QUERY_BY_HOST, "beta", "host = 'beta'"},
        {QUERY_BY_DEVICE, "gpu", "device = 'gpu'"},
        {QUERY_BY_RUN, "12340001", "run LIKE '12340001%'"},
        {QUERY_BY_RUN, "1234", "1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = average("e2e_ns");
        (void)snprintf(query.filter.by[cases[i].dimension], QUERY_TEXT_SIZE, "%s", cases[i].text);
        query.filter.since_ns = START_NS + 50000;
        query.filter.until_ns = START_NS + 250000;
        struct result *result = store_ask(&query);
        char sql[512];
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM v_inference WHERE %s AND started_ns >= %lld"
                       " AND started_ns < %lld",
                       cases[i].where, (long long)query.filter.since_ns,
                       (long long)query.filter.until_ns);
        assert_int_equal(result_integer(result, 0, "count", -1), (int64_t)store_number(sql));
        assert_true(store_number(sql) > 50);
        result_free(result);
    }
    struct query query = average("e2e_ns");
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "' OR 1 --");
    expect_error(&query, STATUS_NO_DATA, "no inference.e2e_ns");
}

static void test_queries_that_make_no_sense(void **state)
{
    (void)state;
    struct query query = average("no_such_metric");
    expect_error(&query, STATUS_INVALID, "no_such_metric");
    query = average("duration_ns");
    expect_error(&query, STATUS_INVALID, "load.duration_ns");
    query = average("operation.duration_ns");
    query.group_count = 1;
    query.group_by[0] = QUERY_BY_MODEL;
    expect_error(&query, STATUS_INVALID, "operation have no model");
    query.group_count = 0;
    (void)snprintf(query.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "read");
    expect_error(&query, STATUS_INVALID, "operation have no stage");
    query = (struct query){.kind = QUERY_CLEAR};
    expect_error(&query, STATUS_INVALID, "no query");
    query = (struct query){.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_LOAD, .cursor = 99};
    expect_error(&query, STATUS_INVALID, "cannot go on");
    query.cursor = UINT64_MAX;
    expect_error(&query, STATUS_INVALID, "no such cursor");
}

static void test_a_query_over_its_budget_is_ended(void **state)
{
    (void)state;
    store_add_inferences(20000);
    store_set_budget(store, 1);
    struct query query = average("e2e_ns");
    expect_error(&query, STATUS_TIMEOUT, "too long");
    store_set_budget(store, 0);
    struct result *result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 20000);
    result_free(result);
}

// ---- Listings -------------------------------------------------------------------------

static void test_listings_go_on_behind_their_cursor(void **state)
{
    (void)state;
    store_add_inferences(250);
    for (int oldest = 0; oldest < 2; oldest++) {
        struct query query = {.kind = QUERY_RECORDS,
                              .record_kind = RECORD_KIND_INFERENCE,
                              .limit = 37,
                              .oldest_first = oldest != 0};
        size_t rows = 0;
        int64_t before = oldest ? 0 : INT64_MAX;
        int64_t numbers = 0;
        do {
            struct result *result = store_ask(&query);
            for (size_t row = 0; row < result_row_count(result); row++) {
                const int64_t started = result_integer(result, row, "started_ns", -1);
                assert_true(oldest ? started >= before : started <= before);
                before = started;
                numbers += result_integer(result, row, "number", 0);
            }
            rows += result_row_count(result);
            query.cursor = result_next_cursor(result);
            result_free(result);
        } while (query.cursor);
        assert_int_equal(rows, 250);
        assert_int_equal(numbers, 250 * 251 / 2);
    }
}

static void expect_text(const struct result *result, const char *key, const char *expected)
{
    const struct value value = result_cell(result, 0, (unsigned)result_find(result, key));
    if (value.type != VALUE_TEXT || value.text.size != strlen(expected) ||
        memcmp(value.text.bytes, expected, value.text.size) != 0)
        fail_msg("%s is not \"%s\"", key, expected);
}

static void test_every_kind_is_listed_with_all_its_columns(void **state)
{
    (void)state;
    store_add_one_of_each();
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        const struct query query = {.kind = QUERY_RECORDS, .record_kind = (enum record_kind)kind};
        struct result *result = store_ask(&query);
        assert_int_equal(result_row_count(result), 1);
        assert_int_equal(result_next_cursor(result), 0);
        expect_text(result, "run", "12340001-0000-4000-8000-000000000001");
        expect_text(result, "host", "alpha");
        for (unsigned c = 0; c < info->column_count; c++) {
            const struct record_column *column = &info->columns[c];
            const int place = result_find(result, column->name);
            assert_true(place >= 0);
            assert_int_equal(result_column(result, (unsigned)place)->unit, column->unit);
            if (column->type == COLUMN_INT)
                assert_int_equal(result_integer(result, 0, column->name, -1), c + 2);
            else if (column->type == COLUMN_REAL)
                assert_true(result_number(result, 0, column->name, -1) == 0.5);
            else if (column->type == COLUMN_NAME)
                expect_text(result, column->name, "tiny");
            else if (column->type == COLUMN_BLOB)
                expect_text(result, column->name, "01ff");
            else if (column_type_is_enum(column->type))
                expect_text(result, column->name, column_enum_text(column->type, 1));
        }
        result_free(result);
    }
}

// What a load takes at least: its bytes by the slower of storage and bus, where known.
static void test_loads_have_a_floor(void **state)
{
    (void)state;
    static const struct {
        const char *storage, *bus;
        int64_t floor_ns; // -1: not known
    } cases[] = {
        {"2e9", "1e10", 500000000},  {"2e10", "1e10", 100000000}, {"NULL", "1e10", 100000000},
        {"5e8", "NULL", 2000000000}, {"NULL", "NULL", -1},        {"0.0", "NULL", -1},
    };
    store_add_one_of_each();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "UPDATE load SET model_bytes = 1000000000, storage_bytes_per_second = %s,"
                       " h2d_bytes_per_second = %s",
                       cases[i].storage, cases[i].bus);
        store_exec(sql);
        struct query query = {.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_LOAD};
        struct result *result = store_ask(&query);
        assert_int_equal(result_number(result, 0, "floor_ns", -1), cases[i].floor_ns);
        result_free(result);
        query = average(QUERY_METRIC_FLOOR);
        struct error err = {0};
        result = NULL;
        const enum status status = store_query(store, &query, &result, &err);
        assert_int_equal(status, cases[i].floor_ns < 0 ? STATUS_NO_DATA : STATUS_OK);
        if (status == STATUS_OK)
            assert_int_equal(result_number(result, 0, "mean", -1), cases[i].floor_ns);
        result_free(result);
    }
}

static void test_stages_know_their_load(void **state)
{
    (void)state;
    store_add_one_of_each();
    struct query query = {.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_LOAD_STAGE};
    struct result *result = store_ask(&query);
    expect_text(result, "model", "tiny");
    expect_text(result, "device", "tiny");
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    result = store_ask(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    query = average("load_stage.duration_ns");
    query.group_count = 2;
    query.group_by[0] = QUERY_BY_MODEL;
    query.group_by[1] = QUERY_BY_STAGE;
    result = store_ask(&query);
    expect_text(result, "model", "tiny");
    result_free(result);
}

// Runs of pipelines are told apart by what streamed and by the model, where they have one;
// of what was not measured there is no average.
static void test_pipelines_by_workload_and_model(void **state)
{
    (void)state;
    store_exec(
        "INSERT INTO pipeline(id, run, stream, number, started_ns, received_after_ns, workload,"
        " device, status, items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d,"
        " copy_busy_ns, compute_busy_ns, both_busy_ns, model, batch_items)"
        " SELECT value, 1, 0, value, 1790000000000000000, 1, iif(value < 4, 7, 8), 3, 0,"
        "  10 * value, 1000000000, 1, 1, 1, 0, 1, iif(value < 3, NULL, 100), 100, 50,"
        "  iif(value = 2, NULL, 5), 16 FROM json_each('[1, 2, 3, 4]')");
    struct query query = average("pipeline.items_per_second");
    query.group_count = 2;
    query.group_by[0] = QUERY_BY_WORKLOAD;
    query.group_by[1] = QUERY_BY_MODEL;
    struct result *result = store_ask(&query);
    assert_int_equal(result_row_count(result), 3);
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    (void)snprintf(query.filter.by[QUERY_BY_WORKLOAD], QUERY_TEXT_SIZE, "read");
    result = store_ask(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    assert_true(result_number(result, 0, "mean", 0) == 20.0);
    result_free(result);
    query = average("copy_busy_ns");
    result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    assert_true(result_number(result, 0, "min", 0) == 100.0);
    result_free(result);
    query = average("overlap_ratio");
    result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    result_free(result);
    query = (struct query){.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_PIPELINE};
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    result = store_ask(&query);
    assert_int_equal(result_row_count(result), 3);
    assert_int_equal(result_integer(result, 0, "batch_items", -1), 16);
    result_free(result);
}

// A run of which nothing came has no rate, and averages may leave out what failed.
static void test_pipelines_by_status(void **state)
{
    (void)state;
    static const struct {
        const char *status;
        int64_t runs, rates;
        double mean;
    } cases[] = {
        {"", 4, 3, 20.0}, {"ok", 2, 2, 15.0}, {"error", 1, 0, 0}, {"cancelled", 1, 1, 30.0}};
    store_exec(
        "INSERT INTO pipeline(id, run, stream, number, started_ns, received_after_ns, workload,"
        " device, status, items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d)"
        " SELECT value, 1, 0, value, 1790000000000000000, 1, 7, 3, max(value - 2, 0) % 3,"
        "  iif(value = 3, 0, 10 * iif(value = 4, 3, value)), 1000000000, 1, 1, 1, 0, 1"
        " FROM json_each('[1, 2, 3, 4]')");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = average("pipeline.duration_ns");
        (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "%s", cases[i].status);
        struct result *result = store_ask(&query);
        assert_int_equal(result_integer(result, 0, "count", -1), cases[i].runs);
        result_free(result);
        (void)snprintf(query.metric, sizeof query.metric, "pipeline.items_per_second");
        struct error err = {0};
        result = NULL;
        const enum status status = store_query(store, &query, &result, &err);
        assert_int_equal(status, cases[i].rates ? STATUS_OK : STATUS_NO_DATA);
        if (status == STATUS_OK) {
            assert_int_equal(result_integer(result, 0, "count", 0), cases[i].rates);
            assert_true(result_number(result, 0, "mean", 0) == cases[i].mean);
        }
        result_free(result);
        query.kind = QUERY_RECORDS;
        query.record_kind = RECORD_KIND_PIPELINE;
        result = store_ask(&query);
        assert_int_equal(result_row_count(result), cases[i].runs);
        result_free(result);
    }
    struct query query = average("pipeline.duration_ns");
    query.group_by[query.group_count++] = QUERY_BY_STATUS;
    struct result *result = store_ask(&query);
    assert_int_equal(result_row_count(result), 3);
    expect_text(result, "status", "ok");
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    result_free(result);
}

// A request that stopped or reached its length is ok.
static void test_requests_by_status(void **state)
{
    (void)state;
    static const struct {
        const char *status, *expected;
    } cases[] = {{"ok", "SELECT count(*) FROM inference WHERE finish < 2"},
                 {"cancelled", "SELECT count(*) FROM inference WHERE finish = 2"},
                 {"error", "SELECT count(*) FROM inference WHERE finish = 3"}};
    store_add_inferences(60);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = average("e2e_ns");
        (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "%s", cases[i].status);
        struct result *result = store_ask(&query);
        assert_int_equal(result_integer(result, 0, "count", -1), store_number(cases[i].expected));
        result_free(result);
    }
    struct query query = average("queue_ns");
    (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "fine");
    struct error err = {0};
    assert_int_equal(query_check(&query, &err), STATUS_INVALID);
}

static void test_runs_and_their_balance(void **state)
{
    (void)state;
    struct query query = {
        .kind = QUERY_RECORDS, .record_kind = RECORD_KIND_RUN, .oldest_first = true};
    struct result *result = store_ask(&query);
    assert_int_equal(result_row_count(result), 2);
    assert_int_equal(result_integer(result, 0, "balanced", -1), 1);
    assert_int_equal(result_cell(result, 1, (unsigned)result_find(result, "balanced")).type,
                     VALUE_NULL);
    assert_int_equal(result_integer(result, 1, "dropped", -1), 10);
    assert_int_equal(result_integer(result, 1, "unnumbered", -1), 5);
    assert_int_equal(result_integer(result, 1, "in_flight", -1), 2);
    result_free(result);
    // Each way in which a ledger can be wrong shows.
    static const char *const damages[] = {
        "UPDATE range SET last = 99 WHERE run = 1",
        "UPDATE range SET first = 2 WHERE run = 1",
        "UPDATE run SET stored = 99 WHERE run = 1",
        "UPDATE ledger SET stored = 99 WHERE run = 1",
        "UPDATE stream SET produced = 101 WHERE run = 1",
        "INSERT INTO range(run, stream, first, last, state) VALUES(1, 0, 50, 60, 1)",
        "INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(1, 1, 1, 1, 0)",
    };
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        store_exec("BEGIN");
        store_exec(damages[i]);
        if (store_number("SELECT balanced FROM v_ledger WHERE id = 1") != 0)
            fail_msg("balanced in spite of %s", damages[i]);
        store_exec("ROLLBACK");
    }
    assert_true(store_number("SELECT balanced FROM v_ledger WHERE id = 1") == 1);
}

// ---- The whole at a glance ----------------------------------------------------------------

static void test_summary_equals_plain_sql(void **state)
{
    (void)state;
    store_add_inferences(2000);
    store_exec("INSERT INTO process_sample VALUES(1, 2, 0, 1, 5, 5, 0.5, 700, NULL),"
               " (2, 2, 0, 2, 6, 6, 0.5, 900, NULL)");
    const struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = store_ask(&query);
    static const struct {
        const char *key, *sql;
    } cases[] = {
        {"runs", "SELECT count(*) FROM run"},
        {"runs_open", "SELECT 1"},
        {"hosts", "SELECT 2"},
        {"models", "SELECT 2"},
        {"inferences", "SELECT count(*) FROM inference"},
        {"inferences_failed", "SELECT count(*) FROM v_inference WHERE finish = 'error'"},
        {"prompt_tokens", "SELECT sum(prompt_tokens) FROM inference"},
        {"generated_tokens", "SELECT sum(generated_tokens) FROM inference"},
        {"mean_tokens_per_second", "SELECT avg(tokens_per_second) FROM v_inference"},
        {"ttft_mean_ns", "SELECT avg(ttft_ns) FROM inference"},
        {"e2e_mean_ns", "SELECT CAST(sum(e2e_ns) AS REAL) / count(*) FROM inference"},
        {"host_memory_bytes", "SELECT 900"},
        {"produced", "SELECT 132"},
        {"stored", "SELECT 120"},
        {"dropped", "SELECT 10"},
        {"unnumbered", "SELECT 5"},
        {"duplicates", "SELECT 6"},
        {"in_flight", "SELECT 2"},
        {"coverage_ratio", "SELECT 120.0 / 135"},
        {"loads", "SELECT 0"},
        {"last_inference_started_ns", "SELECT max(started_ns) FROM inference"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_close(result_number(result, 0, cases[i].key, NAN), store_number(cases[i].sql),
                     cases[i].key);
    result_free(result);
}

// Runs, hosts and what was lost are those of the runs that know what is asked for.
static void test_a_summary_counts_the_runs_of_its_model(void **state)
{
    (void)state;
    store_add_inferences(100);
    store_exec("UPDATE inference SET model = 5 WHERE run = 1;" // the second has the other only
               "UPDATE inference SET model = 6 WHERE run = 2;"
               "DELETE FROM run_name WHERE run = 1 AND name = 6;"
               "DELETE FROM run_name WHERE run = 2 AND name = 5");
    static const struct {
        const char *model, *host;
        int64_t runs, hosts, stored, dropped;
    } cases[] = {{"", "", 2, 2, 120, 10},
                 {"tiny", "", 1, 1, 100, 0},
                 {"big'; DROP TABLE inference; --", "", 1, 1, 20, 10},
                 {"tiny", "alpha", 1, 1, 100, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SUMMARY};
        (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", cases[i].model);
        (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", cases[i].host);
        struct result *result = store_ask(&query);
        assert_int_equal(result_integer(result, 0, "runs", -1), cases[i].runs);
        assert_int_equal(result_integer(result, 0, "hosts", -1), cases[i].hosts);
        assert_int_equal(result_integer(result, 0, "stored", -1), cases[i].stored);
        assert_int_equal(result_integer(result, 0, "dropped", -1), cases[i].dropped);
        result_free(result);
    }
    // One whose names are not kept is known by what describes it.
    store_exec("DELETE FROM run_name WHERE run = 1");
    store_exec(
        "INSERT INTO model(id, run, stream, number, started_ns, received_after_ns, name, format)"
        " VALUES(1, 1, 0, 999, 1, 1, 5, 'gguf')");
    struct query query = {.kind = QUERY_SUMMARY};
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    struct result *result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "runs", -1), 1);
    result_free(result);
}

// Numbers that no producer can have made, in a file from elsewhere: sums stop at
// the largest integer, and the rest of the answer is there.
static void test_sums_do_not_overflow(void **state)
{
    (void)state;
    store_add_inferences(100);
    store_exec(
        "UPDATE stream SET produced = 9223372036854775806;"
        "INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(1, 1, 1, "
        "9223372036854775806, 9223372036854775806),"
        " (2, 1, 1, 9223372036854775806, 9223372036854775806);"
        "INSERT INTO range(run, stream, first, last, state, reason) VALUES"
        " (1, 1, 1, 9223372036854775806, 1, 2), (2, 1, 1, 9223372036854775806, 1, 2);"
        "UPDATE run SET stored = 9223372036854775806, refused = 9223372036854775806,"
        " duplicates = 9223372036854775806, \"end\" = 0;"
        "UPDATE inference SET prompt_tokens = 9223372036854775806, e2e_ns = 9223372036854775806;"
        "INSERT INTO process_sample VALUES(1, 1, 0, 1, 5, 5, 0.5, 9223372036854775806, NULL),"
        " (2, 2, 0, 2, 6, 6, 0.5, 9223372036854775806, NULL)");
    static const char *const keys[] = {"produced",   "stored",        "dropped",
                                       "unnumbered", "duplicates",    "refused",
                                       "in_flight",  "prompt_tokens", "host_memory_bytes"};
    struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = store_ask(&query);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (result_integer(result, 0, keys[i], 0) != INT64_MAX)
            fail_msg("%s is not the largest integer", keys[i]);
    assert_int_equal(result_integer(result, 0, "inferences", -1), 100);
    expect_close(result_number(result, 0, "e2e_mean_ns", NAN), 9223372036854775806.0, "e2e");
    result_free(result);
    query.kind = QUERY_OVERVIEW;
    result = store_ask(&query);
    assert_int_equal(result_row_count(result), 8);
    assert_int_equal(result_integer(result, 0, "prompt_tokens", -1), INT64_MAX);
    assert_int_equal(result_integer(result, 0, "lost", -1), INT64_MAX);
    result_free(result);
    query = (struct query){.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_RUN};
    result = store_ask(&query);
    assert_int_equal(result_row_count(result), 2);
    result_free(result);
    query = average("e2e_ns");
    result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "lost", -1), INT64_MAX);
    result_free(result);
}

static void test_an_empty_store_has_a_summary(void **state)
{
    (void)state;
    store_exec("DELETE FROM run; DELETE FROM stream; DELETE FROM range; DELETE FROM ledger");
    struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "inferences", -1), 0);
    assert_int_equal(result_integer(result, 0, "produced", -1), 0);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "ttft_mean_ns")).type,
                     VALUE_NULL);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "coverage_ratio")).type,
                     VALUE_NULL);
    result_free(result);
    query.kind = QUERY_OVERVIEW;
    result = store_ask(&query);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
    query.kind = QUERY_PING;
    result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "runs_open", -1), 0);
    assert_true(result_integer(result, 0, "store_bytes", 0) > 4096);
    result_free(result);
}

static void test_the_log_is_part_of_the_size(void **state)
{
    (void)state;
    char log[FOLDER_PATH_SIZE];
    struct stat of_file, of_log;
    store_add_inferences(500);
    (void)folder_path(log, folder, "s.db-wal");
    assert_int_equal(stat(path, &of_file), 0);
    assert_int_equal(stat(log, &of_log), 0);
    assert_true(of_log.st_size > 0);
    static const enum query_kind kinds[] = {QUERY_PING, QUERY_SUMMARY};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct query query = {.kind = kinds[i]};
        struct result *result = store_ask(&query);
        assert_int_equal(result_integer(result, 0, "store_bytes", -1),
                         of_file.st_size + of_log.st_size);
        result_free(result);
    }
}

// What happened last has expired: the rest of the answer is there.
static void test_a_summary_of_what_has_expired(void **state)
{
    (void)state;
    store_add_inferences(10);
    store_exec("INSERT INTO ledger(run, kind, stored) SELECT 1, 4, 10 WHERE NOT EXISTS"
               " (SELECT 1 FROM ledger WHERE run = 1 AND kind = 4);"
               "INSERT INTO expiry SELECT DISTINCT kind, 9000000000000000000 FROM ledger;"
               "DELETE FROM inference;"
               "UPDATE ledger SET expired = stored");
    static const enum query_kind kinds[] = {QUERY_SUMMARY, QUERY_OVERVIEW};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct query query = {.kind = kinds[i]};
        struct error err = {0};
        struct result *result = NULL;
        const enum status status = store_query(store, &query, &result, &err);
        if (status != STATUS_OK)
            fail_msg("query %d: %s", (int)kinds[i], err.text);
        if (kinds[i] == QUERY_SUMMARY)
            assert_int_equal(result_integer(result, 0, "runs", -1), 2);
        result_free(result);
    }
}

static void test_a_summary_of_nothing(void **state)
{
    (void)state;
    store_add_inferences(100);
    static const struct {
        enum query_dimension by;
        const char *text;
        int64_t since_ns;
        enum status status;
    } cases[] = {
        {QUERY_BY_MODEL, "tiny", 0, STATUS_OK},
        {QUERY_BY_MODEL, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_DEVICE, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_OPERATION, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_HOST, "alpha", 0, STATUS_OK},
        {QUERY_BY_HOST, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_RUN, "ffff", 0, STATUS_NO_DATA},
        {QUERY_BY_MODEL, "", INT64_MAX - 1, STATUS_NO_DATA},
        {QUERY_BY_MODEL, "tiny", INT64_MAX - 1, STATUS_NO_DATA},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SUMMARY, .filter.since_ns = cases[i].since_ns};
        struct error err = {0};
        struct result *result = NULL;
        (void)snprintf(query.filter.by[cases[i].by], QUERY_TEXT_SIZE, "%s", cases[i].text);
        const enum status status = store_query(store, &query, &result, &err);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].text, status_text(status));
        if (status == STATUS_NO_DATA)
            assert_string_equal(err.text, "summary: no data: the filters match nothing");
        result_free(result);
    }
    // A run that has made nothing yet is there all the same.
    store_exec("DELETE FROM inference");
    struct query query = {.kind = QUERY_SUMMARY};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    struct result *result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "runs", -1), 1);
    result_free(result);
}

static void test_overview_equals_plain_sql(void **state)
{
    (void)state;
    store_add_inferences(2000);
    const struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = store_ask(&query);
    assert_int_equal(result_row_count(result), 8);
    for (size_t row = 0; row < 8; row++) {
        struct value cells[3];
        char *where = NULL;
        for (unsigned i = 0; i < 3; i++)
            cells[i] = result_cell(result, row, i);
        where = sqlite3_mprintf(
            "SELECT avg(ttft_ns) FROM v_inference WHERE host = '%.*q' AND device = '%.*q'"
            " AND model = '%.*q'",
            (int)cells[0].text.size, cells[0].text.bytes, (int)cells[1].text.size,
            cells[1].text.bytes, (int)cells[2].text.size, cells[2].text.bytes);
        expect_close(result_number(result, row, "ttft_mean_ns", NAN), store_number(where), where);
        sqlite3_free(where);
        const bool alpha = cells[0].text.bytes[0] == 'a';
        assert_int_equal(result_integer(result, row, "runs_open", -1), alpha ? 0 : 1);
        assert_int_equal(result_integer(result, row, "lost", -1), alpha ? 0 : 15);
    }
    result_free(result);
}

// A slip of the hand in a model's name makes no model, and an open run that only failed to
// load is idle.
static void test_what_failed_to_load_is_no_model(void **state)
{
    (void)state;
    static const struct {
        int status;
        int64_t models, rows;
    } cases[] = {{0, 1, 2}, {1, 0, 1}, {2, 0, 1}};
    store_exec("INSERT INTO load(id, run, stream, number, started_ns, received_after_ns, model,"
               " device, duration_ns, status, model_bytes, host_memory_before_bytes,"
               " host_memory_after_bytes) VALUES(1, 1, 0, 1, 1790000000000000000, 1, 5, 3, 1000,"
               " 0, 9, 1, 2)");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char sql[64];
        (void)snprintf(sql, sizeof sql, "UPDATE load SET status = %d", cases[i].status);
        store_exec(sql);
        struct query query = {.kind = QUERY_SUMMARY};
        struct result *result = store_ask(&query);
        assert_int_equal(result_integer(result, 0, "models", -1), cases[i].models);
        assert_int_equal(result_integer(result, 0, "loads", -1), 1);
        result_free(result);
        query.kind = QUERY_OVERVIEW;
        result = store_ask(&query);
        assert_int_equal(result_row_count(result), cases[i].rows);
        result_free(result);
    }
}

// Each restart of a worker is a run: there are many more of them than groups.
static void test_more_runs_than_groups(void **state)
{
    (void)state;
    store_add_inferences(1);
    store_exec(
        "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 11002)"
        " INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
        " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count,"
        " produced, stored, duplicates, heard_ns) SELECT i, 1, 1, printf('%08d-n', i), 1, 1,"
        " i % 10 > 0, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0, 1, 0, 1 FROM n;"
        "CREATE TEMP TABLE one(id, run, stream, number, started_ns, received_after_ns, model, "
        "device,"
        " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
        " prefill_excess_ns, ttft_ns, decode_excess_ns, e2e_ns, itl_max_ns, itl_p99_ns,"
        " host_memory_bytes, device_memory_bytes, concurrent_requests);"
        "INSERT INTO one SELECT id, run, stream, number, started_ns, received_after_ns, 5, 3,"
        " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
        " prefill_excess_ns, ttft_ns, decode_excess_ns, e2e_ns, itl_max_ns, itl_p99_ns,"
        " host_memory_bytes, device_memory_bytes, concurrent_requests FROM inference;"
        "DELETE FROM inference;"
        "CREATE TEMP TABLE two AS SELECT i.*, r.run AS r FROM one i, run r WHERE r.run > 2"
        " AND r.run <= 10902;" // the rest are idle
        "UPDATE two SET id = r, run = r; ALTER TABLE two DROP COLUMN r;"
        "INSERT INTO inference SELECT * FROM two;"
        "UPDATE two SET id = id + 20000; INSERT INTO inference SELECT * FROM two");
    struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = store_ask(&query);
    assert_int_equal(result_row_count(result), 3); // alpha's, alpha's idle runs, beta's idle run
    assert_int_equal(result_integer(result, 0, "inferences", -1), 21800);
    // Who is at work is read from the newest 4000 records.
    assert_int_equal(result_integer(result, 0, "runs_open", -1), 400);
    int64_t idle = 0;
    for (size_t row = 1; row < 3; row++)
        idle += result_integer(result, row, "runs_open", -1);
    assert_int_equal(idle, 1101 - 400);
    result_free(result);
    query = average("e2e_ns");
    query.group_count = 1;
    query.group_by[0] = QUERY_BY_RUN;
    expect_error(&query, STATUS_FULL, "more than 10000 groups");
    query.group_by[0] = QUERY_BY_MODEL;
    result = store_ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 21800);
    result_free(result);
}

// ---- A log that grows ---------------------------------------------------------------------

// Reads on while the log grows, as when records come in.
static enum status read_for_long(struct store *asked, const struct query *query, void *out,
                                 struct error *err)
{
    (void)query;
    (void)out;
    int64_t sum = 0;
    enum status status = database_integer(asked->db, "SELECT count(*) FROM inference", &sum, err);
    if (status != STATUS_OK)
        return status;
    store_exec("INSERT INTO meta VALUES(hex(randomblob(8)), zeroblob(3000000))");
    return database_integer(asked->db,
                            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                            " WHERE i < 1000000) SELECT sum(i) FROM n",
                            &sum, err);
}

static void test_a_reader_is_ended_when_the_log_grows(void **state)
{
    (void)state;
    const struct query query = {.kind = QUERY_PING};
    struct store *asked = NULL;
    struct error err = {0};
    store_add_inferences(10);
    assert_int_equal(store_open(&asked, path, &err), STATUS_OK);
    store_set_log_limit(asked, INT64_C(1) << 30);
    assert_int_equal(reader_run(asked, read_for_long, &query, NULL, &err), STATUS_OK);
    store_set_log_limit(asked, INT64_C(1) << 20);
    assert_int_equal(reader_run(asked, read_for_long, &query, NULL, &err), STATUS_FULL);
    assert_non_null(strstr(err.text, "grew by more than 1 MB"));
    // The next one counts from what is there then.
    struct result *result = NULL;
    assert_int_equal(store_query(asked, &query, &result, &err), STATUS_OK);
    result_free(result);
    store_close(asked);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, store_set_up, store_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_averages_equal_plain_sql),
        TEST(test_quantiles_within_one_percent),
        TEST(test_groups_cover_everything_once),
        TEST(test_filters),
        TEST(test_queries_that_make_no_sense),
        TEST(test_a_query_over_its_budget_is_ended),
        TEST(test_listings_go_on_behind_their_cursor),
        TEST(test_every_kind_is_listed_with_all_its_columns),
        TEST(test_loads_have_a_floor),
        TEST(test_stages_know_their_load),
        TEST(test_pipelines_by_workload_and_model),
        TEST(test_pipelines_by_status),
        TEST(test_requests_by_status),
        TEST(test_runs_and_their_balance),
        TEST(test_summary_equals_plain_sql),
        TEST(test_a_summary_counts_the_runs_of_its_model),
        TEST(test_sums_do_not_overflow),
        TEST(test_an_empty_store_has_a_summary),
        TEST(test_the_log_is_part_of_the_size),
        TEST(test_a_summary_of_what_has_expired),
        TEST(test_a_summary_of_nothing),
        TEST(test_overview_equals_plain_sql),
        TEST(test_what_failed_to_load_is_no_model),
        TEST(test_more_runs_than_groups),
        TEST(test_a_reader_is_ended_when_the_log_grows),
    };
    return cmocka_run_group_tests_name("store_query", tests, NULL, NULL);
}
