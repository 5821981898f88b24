// Averages and listings against what plain SQL says of the same rows.
#include <math.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/core/stats/sketch.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/session.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

TEST_CASE(test_averages_equal_plain_sql)
{
    store_add_inferences(3000);
    unsigned count = 0;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned m = 0; m < count; m++) {
        if (metrics[m].kind != RECORD_KIND_INFERENCE || !query_metric_is_of_records(&metrics[m]))
            continue;
        char name[128];
        (void)snprintf(name, sizeof name, "inference.%s", metrics[m].name);
        const struct query query = store_average_of(name);
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "count", -1),
                         (int64_t)store_number(format_text("SELECT count(\"%s\") FROM v_inference",
                                                           metrics[m].name)));
        expect_close(result_number(result, 0, "mean", NAN),
                     store_number(format_text(
                         "SELECT CAST(sum(\"%s\") AS REAL) / count(\"%s\") FROM v_inference",
                         metrics[m].name, metrics[m].name)),
                     name);
        expect_close(
            result_number(result, 0, "min", NAN),
            store_number(format_text("SELECT min(\"%s\") FROM v_inference", metrics[m].name)),
            name);
        expect_close(
            result_number(result, 0, "max", NAN),
            store_number(format_text("SELECT max(\"%s\") FROM v_inference", metrics[m].name)),
            name);
        if (metrics[m].derived) {
            expect_close(result_number(result, 0, "total_over_total", NAN),
                         store_number(format_text(
                             "SELECT sum(CAST(%s AS REAL)) / sum(%s) FROM inference"
                             " WHERE (%s) > 0 AND (%s) IS NOT NULL",
                             metrics[m].derived->numerator, metrics[m].derived->denominator,
                             metrics[m].derived->denominator, metrics[m].derived->numerator)),
                         name);
        }
        result_free(result);
    }
}

TEST_CASE(test_quantiles_within_one_percent)
{
    store_add_inferences(3000);
    static const struct {
        const char *key;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    const struct query query = store_average_of("e2e_ns");
    struct result *result = ask(&query);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        const double expected = store_number(
            format_text("SELECT e2e_ns FROM inference ORDER BY e2e_ns LIMIT 1 OFFSET %d",
                        (int)sketch_rank(quantiles[i].q, 3000)));
        const double actual = result_number(result, 0, quantiles[i].key, NAN);
        assert_true(fabs(actual - expected) <= 0.01 * expected);
    }
    result_free(result);
}

TEST_CASE(test_groups_cover_everything_once)
{
    store_add_inferences(2000);
    struct query query = store_average_of("ttft_ns");
    query.group_count = 4;
    query.group_by[0] = QUERY_BY_MODEL;
    query.group_by[1] = QUERY_BY_HOST;
    query.group_by[2] = QUERY_BY_DEVICE;
    query.group_by[3] = QUERY_BY_RUN;
    struct result *result = ask(&query);
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

TEST_CASE(test_filters)
{
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
        struct query query = store_average_of("e2e_ns");
        (void)snprintf(query.filter.by[cases[i].dimension], QUERY_TEXT_SIZE, "%s", cases[i].text);
        query.filter.since_ns = START_NS + 50000;
        query.filter.until_ns = START_NS + 250000;
        struct result *result = ask(&query);
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
    struct query query = store_average_of("e2e_ns");
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "' OR 1 --");
    expect_error(&query, STATUS_NO_DATA, "no inference.e2e_ns");
}

TEST_CASE(test_queries_that_make_no_sense)
{
    struct query query = store_average_of("no_such_metric");
    expect_error(&query, STATUS_INVALID, "no_such_metric");
    query = store_average_of("duration_ns");
    expect_error(&query, STATUS_INVALID, "load.duration_ns");
    query = store_average_of("operation.duration_ns");
    query.group_count = 1;
    query.group_by[0] = QUERY_BY_MODEL;
    expect_error(&query, STATUS_INVALID, "operation have no model");
    query.group_count = 0;
    (void)snprintf(query.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "read");
    expect_error(&query, STATUS_INVALID, "operation have no stage");
    query = (struct query){.kind = QUERY_CLEAR};
    expect_error(&query, STATUS_INVALID, "no query");
    query = (struct query){.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_LOAD, .cursor = 99};
    expect_error(&query, STATUS_INVALID, "cannot continue");
    query.cursor = UINT64_MAX;
    expect_error(&query, STATUS_INVALID, "no such cursor");
}

TEST_CASE(test_a_query_over_its_budget_is_ended)
{
    store_add_inferences(20000);
    store_set_budget(store, 1);
    struct query query = store_average_of("e2e_ns");
    expect_error(&query, STATUS_TIMEOUT, "too long");
    store_set_budget(store, 0);
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 20000);
    result_free(result);
}

// ---- Listings -------------------------------------------------------------------------

TEST_CASE(test_listings_go_on_behind_their_cursor)
{
    store_add_inferences(250);
    for (int oldest = 0; oldest < 2; oldest++) {
        struct query query = {.kind = QUERY_RECORDS,
                              .records.kind = RECORD_KIND_INFERENCE,
                              .limit = 37,
                              .records.oldest_first = oldest != 0};
        size_t rows = 0;
        int64_t before = oldest ? 0 : INT64_MAX;
        int64_t numbers = 0;
        do {
            struct result *result = ask(&query);
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

TEST_CASE(test_every_kind_is_listed_with_all_its_columns)
{
    store_add_one_of_each();
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        const struct query query = {.kind = QUERY_RECORDS, .records.kind = (enum record_kind)kind};
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 1);
        assert_int_equal(result_next_cursor(result), 0);
        assert_true(result_cpu_ns(result) > 0);
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

// What a load takes at least, in the list as in averages: its bytes by the device's measured rate
// of copies, whatever the load's own rates were on a disturbed machine; not known where its copies
// were faster than that rate.
TEST_CASE(test_loads_have_a_floor)
{
    static const struct {
        const char *device, *own;
        double floor_ns; // -1: not known
    } cases[] = {
        {"1e10", "NULL", 100000000}, {"1e10", "1e9", 100000000}, {"1e10", "1e10", 100000000},
        {"1e10", "1.1e10", -1},      {"NULL", "1e10", -1},       {"NULL", "NULL", -1},
        {"0.0", "NULL", -1},         {"3e9", "2e9", 1e9 / 3},
    };
    store_add_one_of_each();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        exec(format_text("UPDATE load SET model_bytes = 1000000000, storage_bytes_per_second = 1e3,"
                         " h2d_bytes_per_second = %s;"
                         "UPDATE device SET h2d_bytes_per_second = %s",
                         cases[i].own, cases[i].device));
        struct query query = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_LOAD};
        struct result *result = ask(&query);
        assert_true(result_number(result, 0, "floor_ns", -1) == cases[i].floor_ns);
        result_free(result);
        query = store_average_of(QUERY_METRIC_FLOOR);
        struct error err = {0};
        result = NULL;
        const enum status status = store_query(store, &query, &result, &err);
        assert_int_equal(status, cases[i].floor_ns < 0 ? STATUS_NO_DATA : STATUS_OK);
        if (status == STATUS_OK)
            assert_true(result_number(result, 0, "mean", -1) == cases[i].floor_ns);
        result_free(result);
    }
}

TEST_CASE(test_stages_know_their_load)
{
    store_add_one_of_each();
    struct query query = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_LOAD_STAGE};
    struct result *result = ask(&query);
    expect_text(result, "model", "tiny");
    expect_text(result, "device", "tiny");
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    query = store_average_of("load_stage.duration_ns");
    query.group_count = 2;
    query.group_by[0] = QUERY_BY_MODEL;
    query.group_by[1] = QUERY_BY_STAGE;
    result = ask(&query);
    expect_text(result, "model", "tiny");
    result_free(result);
}

// Runs of pipelines are told apart by their settings, and no other records have these.
TEST_CASE(test_pipelines_by_setting)
{
    exec("INSERT INTO pipeline(id, run, stream, number, started_ns, received_ns, workload,"
         " device, status, items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d,"
         " source) SELECT value, 1, 0, value, 1790000000000000000, 1790000000000000001, 7, 3, 0,"
         "  10 * value, 1000000000, 4096 * (1 + value % 2), 4 * (1 + value / 8), 1, value / 4 % 2,"
         "  1, iif(value < 3, NULL, 5 + value % 2) FROM json_each('[1,2,3,4,5,6,7,8,9,10,11,12]')");
    static const struct {
        enum query_dimension dimension;
        const char *value, *condition;
        size_t groups;
    } cases[] = {
        {QUERY_BY_SYNC, "periodic", "sync = 'periodic'", 2},
        {QUERY_BY_CHUNK_BYTES, "8KB", "chunk_bytes = 8192", 2},
        {QUERY_BY_POOL_SIZE, "8", "pool_size = 8", 2},
        {QUERY_BY_SOURCE, "tiny", "source = 'tiny'", 3},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = store_average_of("pipeline.items_per_second");
        query.group_count = 1;
        query.group_by[0] = cases[i].dimension;
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), cases[i].groups);
        result_free(result);
        (void)snprintf(query.filter.by[cases[i].dimension], QUERY_TEXT_SIZE, "%s", cases[i].value);
        result = ask(&query);
        assert_int_equal(result_row_count(result), 1);
        expect_close(result_number(result, 0, "mean", NAN),
                     store_number(format_text("SELECT avg(items_per_second) FROM v_pipeline"
                                              " WHERE %s",
                                              cases[i].condition)),
                     cases[i].condition);
        const bool is_bytes = cases[i].dimension == QUERY_BY_CHUNK_BYTES;
        if (is_bytes)
            assert_int_equal(result_integer(result, 0, "chunk_bytes", -1), 8192);
        else if (cases[i].dimension == QUERY_BY_POOL_SIZE)
            assert_int_equal(result_integer(result, 0, "pool_size", -1), 8);
        else
            expect_text(result, query_dimension_name(cases[i].dimension), cases[i].value);
        result_free(result);
        query = store_average_of("e2e_ns");
        (void)snprintf(query.filter.by[cases[i].dimension], QUERY_TEXT_SIZE, "%s", cases[i].value);
        expect_error(&query, STATUS_INVALID, "to filter by");
    }
}

// Runs of pipelines are told apart by what streamed and by the model, where they have one;
// of what was not measured there is no average.
TEST_CASE(test_pipelines_by_workload_and_model)
{
    exec("INSERT INTO pipeline(id, run, stream, number, started_ns, received_ns, workload,"
         " device, status, items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d,"
         " copy_busy_ns, compute_busy_ns, both_busy_ns, model, batch_items)"
         " SELECT value, 1, 0, value, 1790000000000000000, 1790000000000000001, iif(value < 4, 7, "
         "8), 3, 0,"
         "  10 * value, 1000000000, 1, 1, 1, 0, 1, iif(value < 3, NULL, 100), 100, 50,"
         "  iif(value = 2, NULL, 5), 16 FROM json_each('[1, 2, 3, 4]')");
    struct query query = store_average_of("pipeline.items_per_second");
    query.group_count = 2;
    query.group_by[0] = QUERY_BY_WORKLOAD;
    query.group_by[1] = QUERY_BY_MODEL;
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    (void)snprintf(query.filter.by[QUERY_BY_WORKLOAD], QUERY_TEXT_SIZE, "read");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    assert_true(result_number(result, 0, "mean", 0) == 20.0);
    result_free(result);
    query = store_average_of("copy_busy_ns");
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    assert_true(result_number(result, 0, "min", 0) == 100.0);
    result_free(result);
    query = store_average_of("overlap_ratio");
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    result_free(result);
    query = (struct query){.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_PIPELINE};
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    assert_int_equal(result_integer(result, 0, "batch_items", -1), 16);
    result_free(result);
}

// A run of which nothing came has no rate, and averages may leave out what failed.
TEST_CASE(test_pipelines_by_status)
{
    static const struct {
        const char *status;
        int64_t runs, rates;
        double mean;
    } cases[] = {
        {"", 4, 3, 20.0}, {"ok", 2, 2, 15.0}, {"error", 1, 0, 0}, {"cancelled", 1, 1, 30.0}};
    exec("INSERT INTO pipeline(id, run, stream, number, started_ns, received_ns, workload,"
         " device, status, items, duration_ns, chunk_bytes, pool_size, prefetch, sync, bytes_h2d)"
         " SELECT value, 1, 0, value, 1790000000000000000, 1790000000000000001, 7, 3, max(value - "
         "2, 0) % 3,"
         "  iif(value = 3, 0, 10 * iif(value = 4, 3, value)), 1000000000, 1, 1, 1, 0, 1"
         " FROM json_each('[1, 2, 3, 4]')");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = store_average_of("pipeline.duration_ns");
        (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "%s", cases[i].status);
        struct result *result = ask(&query);
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
        query.records.kind = RECORD_KIND_PIPELINE;
        result = ask(&query);
        assert_int_equal(result_row_count(result), cases[i].runs);
        result_free(result);
    }
    struct query query = store_average_of("pipeline.duration_ns");
    query.group_by[query.group_count++] = QUERY_BY_STATUS;
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    expect_text(result, "status", "ok");
    assert_int_equal(result_integer(result, 0, "count", -1), 2);
    result_free(result);
}

// A request that stopped or reached its length is ok.
TEST_CASE(test_requests_by_status)
{
    static const struct {
        const char *status, *expected;
    } cases[] = {{"ok", "SELECT count(*) FROM inference WHERE finish < 2"},
                 {"cancelled", "SELECT count(*) FROM inference WHERE finish = 2"},
                 {"error", "SELECT count(*) FROM inference WHERE finish = 3"}};
    store_add_inferences(60);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = store_average_of("e2e_ns");
        (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "%s", cases[i].status);
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "count", -1), store_number(cases[i].expected));
        result_free(result);
    }
    struct query query = store_average_of("queue_ns");
    (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "fine");
    struct error err = {0};
    assert_int_equal(query_check(&query, &err), STATUS_INVALID);
}

// By what they used, as their names or their descriptions say; numbers are no dimensions of runs.
TEST_CASE(test_runs_by_what_they_used)
{
    static const struct {
        enum query_dimension dimension;
        const char *name;
        size_t runs;
    } cases[] = {
        {QUERY_BY_MODEL, "tiny", 1},
        {QUERY_BY_DEVICE, "cpu", 2},
        {QUERY_BY_DEVICE, "gpu", 0},
        {QUERY_BY_MODEL, "nothing", 0},
    };
    exec("DELETE FROM run_name WHERE (run = 2 AND name = 5) OR name = 4");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_RUN};
        (void)snprintf(query.filter.by[cases[i].dimension], QUERY_TEXT_SIZE, "%s", cases[i].name);
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), cases[i].runs);
        result_free(result);
    }
    struct query query = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_RUN};
    (void)snprintf(query.filter.by[QUERY_BY_STATUS], QUERY_TEXT_SIZE, "error");
    expect_error(&query, STATUS_INVALID, "records of kind run have no status to filter by");
}

// One row a device of a host: what has a uuid is the same under another ordinal.
TEST_CASE(test_devices_of_hosts)
{
    static const char row[] = "INSERT INTO device(run, stream, number, started_ns, received_ns,"
                              " ordinal, name, memory_bytes, uuid) VALUES";
    store_run(3, 1, RECORD_RUN_END_OPEN, START_NS, START_NS + 1);
    exec(format_text("%s(1, 0, 901, 10, 1, 0, 3, 1000, NULL), (3, 0, 902, 30, 2, 0, 3, 3000, NULL),"
                     " (3, 0, 903, 20, 3, 0, 3, 2000, NULL), (3, 0, 904, 20, 4, 1, 3, 9, NULL),"
                     " (2, 0, 905, 5, 5, 0, 3, 7, NULL), (1, 0, 906, 11, 6, 0, 4, 5, 'u'),"
                     " (3, 0, 907, 12, 7, 1, 4, 6, 'u'), (3, 0, 908, 13, 8, 0, 4, 6, 'v')",
                     row));
    static const struct {
        const char *host, *name;
        int64_t memory, runs;
    } expected[] = {
        {"alpha", "cpu", 3000, 2}, {"alpha", "cpu", 9, 1}, {"alpha", "gpu", 6, 1},
        {"alpha", "gpu", 6, 2},    {"beta", "cpu", 7, 1},
    };
    struct query query = {.kind = QUERY_RECORDS,
                          .records.kind = RECORD_KIND_DEVICE,
                          .group_by = {QUERY_BY_DEVICE},
                          .group_count = 1,
                          .limit = 2};
    size_t seen = 0;
    do { // by pages, newest first
        struct result *result = ask(&query);
        for (size_t i = 0; i < result_row_count(result); i++, seen++) {
            assert_true(seen < COUNT_OF(expected));
            assert_true(result_is(result, i, "host", expected[seen].host));
            assert_true(result_is(result, i, "name", expected[seen].name));
            assert_int_equal(result_integer(result, i, "memory_bytes", -1), expected[seen].memory);
            assert_int_equal(result_integer(result, i, "runs", -1), expected[seen].runs);
        }
        query.cursor = result_next_cursor(result);
        result_free(result);
    } while (query.cursor != 0);
    assert_int_equal(seen, COUNT_OF(expected));
    // Of one run what it said; without groups what each said.
    query.limit = 0;
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    query.filter.until_ns = 12;
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    assert_int_equal(result_integer(result, 1, "memory_bytes", -1), 1000);
    assert_int_equal(result_integer(result, 1, "runs", -1), 1);
    result_free(result);
    query = (struct query){.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_DEVICE};
    result = ask(&query);
    assert_int_equal(result_row_count(result), 8);
    assert_int_equal(result_find(result, "runs"), -1);
    result_free(result);
}

// A silent run whose process is known to have ended is down, as NOW has it.
TEST_CASE(test_ends_of_runs)
{
    static const struct {
        enum record_run_end end;
        const char *ended_ns, *text;
    } cases[] = {
        {RECORD_RUN_END_OPEN, "NULL", "open"},  {RECORD_RUN_END_CLOSED, "5", "closed"},
        {RECORD_RUN_END_KILLED, "5", "killed"}, {RECORD_RUN_END_SILENT, "NULL", "silent"},
        {RECORD_RUN_END_SILENT, "5", "down"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        exec(format_text("UPDATE run SET \"end\" = %d, ended_ns = %s WHERE run = 1",
                         (int)cases[i].end, cases[i].ended_ns));
        struct query query = {
            .kind = QUERY_RECORDS, .records.kind = RECORD_KIND_RUN, .records.oldest_first = true};
        struct result *result = ask(&query);
        expect_text(result, "end", cases[i].text);
        result_free(result);
        query = (struct query){.kind = QUERY_AUDIT};
        result = ask(&query);
        expect_text(result, "end", cases[i].text);
        result_free(result);
    }
}

TEST_CASE(test_runs_and_their_balance)
{
    struct query query = {
        .kind = QUERY_RECORDS, .records.kind = RECORD_KIND_RUN, .records.oldest_first = true};
    struct result *result = ask(&query);
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
        exec("BEGIN");
        exec(damages[i]);
        if (store_number("SELECT balanced FROM v_ledger WHERE id = 1") != 0)
            fail_msg("balanced in spite of %s", damages[i]);
        exec("ROLLBACK");
    }
    assert_true(store_number("SELECT balanced FROM v_ledger WHERE id = 1") == 1);
}

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
    exec("INSERT INTO meta VALUES(hex(randomblob(8)), zeroblob(3000000))");
    return database_integer(asked->db,
                            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                            " WHERE i < 1000000) SELECT sum(i) FROM n",
                            &sum, err);
}

TEST_CASE(test_a_reader_is_ended_when_the_log_grows)
{
    const struct query query = {.kind = QUERY_PING};
    struct store *asked = NULL;
    struct error err = {0};
    store_add_inferences(10);
    assert_int_equal(store_open(&asked, path, &err), STATUS_OK);
    store_set_log_limit(asked, INT64_C(1) << 30);
    assert_int_equal(session_run(asked, read_for_long, &query, NULL, &err), STATUS_OK);
    store_set_log_limit(asked, INT64_C(1) << 20);
    assert_int_equal(session_run(asked, read_for_long, &query, NULL, &err), STATUS_FULL);
    assert_non_null(strstr(err.text, "grew by more than 1 MB"));
    // The next one counts from what is there then.
    struct result *result = NULL;
    assert_int_equal(store_query(asked, &query, &result, &err), STATUS_OK);
    result_free(result);
    store_close(asked);
}

// What a pattern stands for, the client and SQLite see alike.
TEST_CASE(test_patterns)
{
    static const char *const parts[] = {"a", "b", "c", "*", "?", "[", "]", "^", "-", "\xc3\xa9"};
    uint64_t seed = 1;
    unsigned matched = 0;
    for (unsigned i = 0; i < 200000; i++) {
        char texts[2][32] = {"", ""};
        for (unsigned side = 0; side < 2; side++)
            for (uint64_t left = test_random(&seed) % 8; left > 0; left--)
                (void)strcat(texts[side], parts[test_random(&seed) % (side ? 3 : COUNT_OF(parts))]);
        const bool is = strcmp(texts[0], texts[1]) == 0 || sqlite3_strglob(texts[0], texts[1]) == 0;
        matched += is;
        if (query_name_matches(texts[0], texts[1]) != is)
            fail_msg("'%s' and '%s'", texts[0], texts[1]);
    }
    assert_true(matched > 5000);
    assert_true(query_name_matches("[ab", "[ab") && !query_name_matches("[ab", "a"));
    assert_true(query_name_matches("?", "\xc3\xa9") && !query_name_matches("?", "\xc3"));
}

TEST_MAIN_EACH(store_set_up, store_tear_down, test_averages_equal_plain_sql,
               test_quantiles_within_one_percent, test_groups_cover_everything_once, test_filters,
               test_queries_that_make_no_sense, test_a_query_over_its_budget_is_ended,
               test_listings_go_on_behind_their_cursor,
               test_every_kind_is_listed_with_all_its_columns, test_loads_have_a_floor,
               test_stages_know_their_load, test_pipelines_by_setting,
               test_pipelines_by_workload_and_model, test_pipelines_by_status,
               test_requests_by_status, test_runs_by_what_they_used, test_devices_of_hosts,
               test_ends_of_runs, test_runs_and_their_balance,
               test_a_reader_is_ended_when_the_log_grows, test_patterns)
