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
#include "common/store/clear.h"
#include "common/store/database.h"
#include "common/store/lock.h"
#include "common/store/schema.h"
#include "common/store/reader.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE];
static char path[FOLDER_PATH_SIZE];
static sqlite3 *db;
static struct store *store;

#define START_NS INT64_C(1790000000000000000)

static void exec(const char *sql)
{
    struct error err;
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

static double number(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const double value =
        sqlite3_column_type(stmt, 0) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return value;
}

static int set_up(void **state)
{
    (void)state;
    struct error err = {0};
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    // Two runs on two hosts; the second has lost 10 of 30 and 5 without numbers.
    exec("INSERT INTO name(id, text) VALUES (1, 'alpha'), (2, 'beta'), (3, 'cpu'), (4, 'gpu'),"
         " (5, 'tiny'), (6, 'big''; DROP TABLE inference; --'), (7, 'read'), (8, 'build')");
    for (int run = 1; run <= 2; run++) {
        char sql[1024];
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
                       " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes,"
                       " device_count, produced, stored, duplicates, heard_ns) VALUES(%d, %lld,"
                       " %lld, '%08d-0000-4000-8000-00000000000%d', %d, 1, %d, 'v', 1, 'o', 'k',"
                       " 'c', 1, 1, 1, 0, %d, 3, %lld)",
                       run, (long long)START_NS, (long long)START_NS, 12340000 + run, run, run,
                       run == 1 ? 1 : 0, run == 1 ? 100 : 20, (long long)(START_NS + 1000000));
        exec(sql);
    }
    exec("INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(1, 0, 101, 100, 0),"
         " (2, 0, 31, 32, 5)");
    exec("INSERT INTO range(run, stream, first, last, state, reason) VALUES(1, 0, 1, 100, 0, NULL),"
         " (2, 0, 1, 20, 0, NULL), (2, 0, 21, 30, 1, 1)");
    exec("INSERT INTO ledger(run, kind, stored) VALUES(1, 6, 100), (2, 6, 20)");
    if (store_open(&store, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_close(store);
    database_close(db);
    folder_remove(folder);
    return 0;
}

// Inferences with random figures, some absent, some huge.
static void add_inferences(unsigned count)
{
    uint64_t random = 12345;
    sqlite3_str *text = sqlite3_str_new(db);
    schema_insert_sql(text, RECORD_KIND_INFERENCE);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    exec("BEGIN");
    for (unsigned i = 0; i < count; i++) {
        const unsigned run = 1 + (unsigned)(test_random(&random) % 2);
        int64_t values[INFERENCE_COLUMNS];
        for (unsigned c = 0; c < INFERENCE_COLUMNS; c++)
            values[c] = (int64_t)(test_random(&random) >> (24 + test_random(&random) % 36));
        values[INFERENCE_MODEL] = 5 + (int64_t)(test_random(&random) % 2);
        values[INFERENCE_DEVICE] = 3 + (int64_t)(test_random(&random) % 2);
        values[INFERENCE_FINISH] = (int64_t)(test_random(&random) % 4);
        values[INFERENCE_GENERATED_TOKENS] = (int64_t)(test_random(&random) % 5);
        (void)sqlite3_bind_int64(stmt, 1, (int64_t)i + 1);
        (void)sqlite3_bind_int64(stmt, 2, run);
        (void)sqlite3_bind_int64(stmt, 3, 0);
        (void)sqlite3_bind_int64(stmt, 4, (int64_t)i + 1);
        (void)sqlite3_bind_int64(stmt, 5, START_NS + (int64_t)i / 3 * 1000); // with ties
        (void)sqlite3_bind_int64(stmt, 6, START_NS);
        for (unsigned c = 0; c < INFERENCE_COLUMNS; c++) {
            if (record_kind_info(RECORD_KIND_INFERENCE)->columns[c].maybe &&
                test_random(&random) % 4 == 0)
                (void)sqlite3_bind_null(stmt, SCHEMA_FIRST_COLUMN + (int)c);
            else
                (void)sqlite3_bind_int64(stmt, SCHEMA_FIRST_COLUMN + (int)c, values[c]);
        }
        assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
        (void)sqlite3_reset(stmt);
    }
    exec("COMMIT");
    (void)sqlite3_finalize(stmt);
}

static struct result *ask(const struct query *query)
{
    struct error err = {0};
    struct result *result = NULL;
    if (store_query(store, query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return result;
}

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
    add_inferences(3000);
    unsigned count = 0;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned m = 0; m < count; m++) {
        if (metrics[m].kind != RECORD_KIND_INFERENCE || !query_metric_is_of_records(&metrics[m]))
            continue;
        char name[128], sql[1024];
        (void)snprintf(name, sizeof name, "inference.%s", metrics[m].name);
        const struct query query = average(name);
        struct result *result = ask(&query);
        (void)snprintf(sql, sizeof sql, "SELECT count(\"%s\") FROM v_inference", metrics[m].name);
        assert_int_equal(result_integer(result, 0, "count", -1), (int64_t)number(sql));
        (void)snprintf(sql, sizeof sql,
                       "SELECT CAST(sum(\"%s\") AS REAL) / count(\"%s\") FROM v_inference",
                       metrics[m].name, metrics[m].name);
        expect_close(result_number(result, 0, "mean", NAN), number(sql), name);
        (void)snprintf(sql, sizeof sql, "SELECT min(\"%s\") FROM v_inference", metrics[m].name);
        expect_close(result_number(result, 0, "min", NAN), number(sql), name);
        (void)snprintf(sql, sizeof sql, "SELECT max(\"%s\") FROM v_inference", metrics[m].name);
        expect_close(result_number(result, 0, "max", NAN), number(sql), name);
        if (metrics[m].derived) {
            (void)snprintf(sql, sizeof sql,
                           "SELECT sum(CAST(%s AS REAL)) / sum(%s) FROM inference"
                           " WHERE (%s) > 0 AND (%s) IS NOT NULL",
                           metrics[m].derived->numerator, metrics[m].derived->denominator,
                           metrics[m].derived->denominator, metrics[m].derived->numerator);
            expect_close(result_number(result, 0, "total_over_total", NAN), number(sql), name);
        }
        result_free(result);
    }
}

static void test_quantiles_within_one_percent(void **state)
{
    (void)state;
    add_inferences(3000);
    static const struct {
        const char *key;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    const struct query query = average("e2e_ns");
    struct result *result = ask(&query);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        char sql[256];
        (void)snprintf(sql, sizeof sql,
                       "SELECT e2e_ns FROM inference ORDER BY e2e_ns LIMIT 1 OFFSET %d",
                       (int)sketch_rank(quantiles[i].q, 3000));
        const double expected = number(sql);
        const double actual = result_number(result, 0, quantiles[i].key, NAN);
        assert_true(fabs(actual - expected) <= 0.01 * expected);
    }
    result_free(result);
}

static void test_groups_cover_everything_once(void **state)
{
    (void)state;
    add_inferences(2000);
    struct query query = average("ttft_ns");
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
        expect_close(result_number(result, row, "mean", NAN), number(sql), sql);
        count += result_integer(result, row, "count", 0);
        // Coverage is the host's: alpha lost nothing, beta 15 of 35.
        const bool alpha = strcmp(texts[1], "alpha") == 0;
        assert_int_equal(result_integer(result, row, "lost", -1), alpha ? 0 : 15);
        expect_close(result_number(result, row, "coverage_ratio", NAN), alpha ? 1 : 20.0 / 35,
                     "cov");
    }
    assert_int_equal(count, (int64_t)number("SELECT count(ttft_ns) FROM inference"));
    result_free(result);
}

static void test_filters(void **state)
{
    (void)state;
    add_inferences(1000);
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
        struct result *result = ask(&query);
        char sql[512];
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM v_inference WHERE %s AND started_ns >= %lld"
                       " AND started_ns < %lld",
                       cases[i].where, (long long)query.filter.since_ns,
                       (long long)query.filter.until_ns);
        assert_int_equal(result_integer(result, 0, "count", -1), (int64_t)number(sql));
        assert_true(number(sql) > 50);
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
    add_inferences(20000);
    store_set_budget(store, 1);
    struct query query = average("e2e_ns");
    expect_error(&query, STATUS_TIMEOUT, "too long");
    store_set_budget(store, 0);
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 20000);
    result_free(result);
}

// ---- Listings -------------------------------------------------------------------------

static void test_listings_go_on_behind_their_cursor(void **state)
{
    (void)state;
    add_inferences(250);
    for (int oldest = 0; oldest < 2; oldest++) {
        struct query query = {.kind = QUERY_RECORDS,
                              .record_kind = RECORD_KIND_INFERENCE,
                              .limit = 37,
                              .oldest_first = oldest != 0};
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

// Inserts one row of each kind whose columns hold their own position.
static void add_one_of_each(void)
{
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        sqlite3_str *sql = sqlite3_str_new(db);
        sqlite3_str_appendf(sql, "INSERT INTO %s VALUES(1, 1, 0, %u, %lld, %lld", info->name,
                            kind == RECORD_KIND_LOAD ? 2 : kind + 100, (long long)START_NS,
                            (long long)START_NS);
        for (unsigned c = 0; c < info->column_count; c++) {
            static const char *const values[] = {
                [COLUMN_REAL] = "0.5",     [COLUMN_NAME] = "5",   [COLUMN_TEXT] = "'text'",
                [COLUMN_BLOB] = "x'01ff'", [COLUMN_STATUS] = "1", [COLUMN_FINISH] = "1",
                [COLUMN_RUN_END] = "1",    [COLUMN_SYNC] = "1",
            };
            if (info->columns[c].type == COLUMN_INT)
                sqlite3_str_appendf(sql, ", %u", c + 2);
            else
                sqlite3_str_appendf(sql, ", %s", values[info->columns[c].type]);
        }
        sqlite3_str_appendall(sql, ")");
        char *text = sqlite3_str_finish(sql);
        exec(text);
        sqlite3_free(text);
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
    add_one_of_each();
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        const struct query query = {.kind = QUERY_RECORDS, .record_kind = (enum record_kind)kind};
        struct result *result = ask(&query);
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

static void test_stages_know_their_load(void **state)
{
    (void)state;
    add_one_of_each();
    struct query query = {.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_LOAD_STAGE};
    struct result *result = ask(&query);
    expect_text(result, "model", "tiny");
    expect_text(result, "device", "tiny");
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    query = average("load_stage.duration_ns");
    query.group_count = 2;
    query.group_by[0] = QUERY_BY_MODEL;
    query.group_by[1] = QUERY_BY_STAGE;
    result = ask(&query);
    expect_text(result, "model", "tiny");
    result_free(result);
}

static void test_runs_and_their_balance(void **state)
{
    (void)state;
    struct query query = {
        .kind = QUERY_RECORDS, .record_kind = RECORD_KIND_RUN, .oldest_first = true};
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
        if (number("SELECT balanced FROM v_ledger WHERE id = 1") != 0)
            fail_msg("balanced in spite of %s", damages[i]);
        exec("ROLLBACK");
    }
    assert_true(number("SELECT balanced FROM v_ledger WHERE id = 1") == 1);
}

// ---- The whole at a glance ----------------------------------------------------------------

static void test_summary_equals_plain_sql(void **state)
{
    (void)state;
    add_inferences(2000);
    exec("INSERT INTO process_sample VALUES(1, 2, 0, 1, 5, 5, 0.5, 700, NULL),"
         " (2, 2, 0, 2, 6, 6, 0.5, 900, NULL)");
    const struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = ask(&query);
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
        expect_close(result_number(result, 0, cases[i].key, NAN), number(cases[i].sql),
                     cases[i].key);
    result_free(result);
}

// Numbers that no producer can have made, in a file from elsewhere: sums stop at
// the largest integer, and the rest of the answer is there.
static void test_sums_do_not_overflow(void **state)
{
    (void)state;
    add_inferences(100);
    exec("UPDATE stream SET produced = 9223372036854775806;"
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
    struct result *result = ask(&query);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (result_integer(result, 0, keys[i], 0) != INT64_MAX)
            fail_msg("%s is not the largest integer", keys[i]);
    assert_int_equal(result_integer(result, 0, "inferences", -1), 100);
    expect_close(result_number(result, 0, "e2e_mean_ns", NAN), 9223372036854775806.0, "e2e");
    result_free(result);
    query.kind = QUERY_OVERVIEW;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 8);
    assert_int_equal(result_integer(result, 0, "prompt_tokens", -1), INT64_MAX);
    assert_int_equal(result_integer(result, 0, "lost", -1), INT64_MAX);
    result_free(result);
    query = (struct query){.kind = QUERY_RECORDS, .record_kind = RECORD_KIND_RUN};
    result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    result_free(result);
    query = average("e2e_ns");
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "lost", -1), INT64_MAX);
    result_free(result);
}

static void test_an_empty_store_has_a_summary(void **state)
{
    (void)state;
    exec("DELETE FROM run; DELETE FROM stream; DELETE FROM range; DELETE FROM ledger");
    struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "inferences", -1), 0);
    assert_int_equal(result_integer(result, 0, "produced", -1), 0);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "ttft_mean_ns")).type,
                     VALUE_NULL);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "coverage_ratio")).type,
                     VALUE_NULL);
    result_free(result);
    query.kind = QUERY_OVERVIEW;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
    query.kind = QUERY_PING;
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "runs_open", -1), 0);
    assert_true(result_integer(result, 0, "store_bytes", 0) > 4096);
    result_free(result);
}

static void test_the_log_is_part_of_the_size(void **state)
{
    (void)state;
    char log[FOLDER_PATH_SIZE];
    struct stat of_file, of_log;
    add_inferences(500);
    (void)folder_path(log, folder, "s.db-wal");
    assert_int_equal(stat(path, &of_file), 0);
    assert_int_equal(stat(log, &of_log), 0);
    assert_true(of_log.st_size > 0);
    static const enum query_kind kinds[] = {QUERY_PING, QUERY_SUMMARY};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct query query = {.kind = kinds[i]};
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "store_bytes", -1),
                         of_file.st_size + of_log.st_size);
        result_free(result);
    }
}

static void test_a_summary_of_nothing(void **state)
{
    (void)state;
    add_inferences(100);
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
    exec("DELETE FROM inference");
    struct query query = {.kind = QUERY_SUMMARY};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "runs", -1), 1);
    result_free(result);
}

static void test_overview_equals_plain_sql(void **state)
{
    (void)state;
    add_inferences(2000);
    const struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = ask(&query);
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
        expect_close(result_number(result, row, "ttft_mean_ns", NAN), number(where), where);
        sqlite3_free(where);
        const bool alpha = cells[0].text.bytes[0] == 'a';
        assert_int_equal(result_integer(result, row, "runs_open", -1), alpha ? 0 : 1);
        assert_int_equal(result_integer(result, row, "lost", -1), alpha ? 0 : 15);
    }
    result_free(result);
}

// Each restart of a worker is a run: there are many more of them than groups.
static void test_more_runs_than_groups(void **state)
{
    (void)state;
    add_inferences(1);
    exec("WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 11002)"
         " INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
         " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count,"
         " produced, stored, duplicates, heard_ns) SELECT i, 1, 1, printf('%08d-n', i), 1, 1,"
         " i % 10 > 0, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0, 1, 0, 1 FROM n;"
         "CREATE TEMP TABLE one AS SELECT * FROM inference;"
         "DELETE FROM inference;"
         "UPDATE one SET model = 5, device = 3;"
         "CREATE TEMP TABLE two AS SELECT i.*, r.run AS r FROM one i, run r WHERE r.run > 2"
         " AND r.run <= 10902;" // the rest are idle
         "UPDATE two SET id = r, run = r; ALTER TABLE two DROP COLUMN r;"
         "INSERT INTO inference SELECT * FROM two;"
         "UPDATE two SET id = id + 20000; INSERT INTO inference SELECT * FROM two");
    struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = ask(&query);
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
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 21800);
    result_free(result);
}

// ---- Clearing -----------------------------------------------------------------------------

static void test_clear_moves_rows_to_the_ledger(void **state)
{
    (void)state;
    add_inferences(120);
    exec("UPDATE ledger SET stored = (SELECT count(*) FROM inference i WHERE i.run = ledger.run)");
    const double of_first = number("SELECT count(*) FROM inference WHERE run = 1");
    database_close(db);
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    uint64_t cleared = 0;
    struct error err = {0};
    if (store_clear(path, &filter, &cleared, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    assert_int_equal(cleared, (uint64_t)of_first);
    assert_true(number("SELECT count(*) FROM inference WHERE run = 1") == 0);
    assert_true(number("SELECT cleared FROM ledger WHERE run = 1 AND kind = 6") == of_first);
    assert_true(number("SELECT cleared FROM ledger WHERE run = 2 AND kind = 6") == 0);
    assert_true(number("SELECT sum(stored - cleared) FROM ledger") ==
                number("SELECT count(*) FROM inference"));
    assert_true(number("SELECT count(*) FROM run") == 2);
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

static void test_a_reader_is_ended_when_the_log_grows(void **state)
{
    (void)state;
    const struct query query = {.kind = QUERY_PING};
    struct store *asked = NULL;
    struct error err = {0};
    add_inferences(10);
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

static void test_clear_goes_in_slices(void **state)
{
    (void)state;
    const unsigned count = 2 * CLEAR_SLICE + 100;
    add_inferences(count);
    exec("UPDATE inference SET id = id + 1000000;" // as after an earlier clearing
         "UPDATE ledger SET stored = (SELECT count(*) FROM inference i WHERE i.run = ledger.run)");
    const double of_second = number("SELECT count(*) FROM inference WHERE run = 2");
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    struct clearing clearing;
    struct error err = {0};
    bool done = false;
    unsigned slices = 0;
    assert_int_equal(clear_begin(&clearing, db, &filter, &err), STATUS_OK);
    clearing.slice = CLEAR_SLICE;
    while (!done) {
        if (slices == 2) // arrives meanwhile, and stays
            exec("CREATE TEMP TABLE one AS SELECT * FROM inference WHERE run = 1 LIMIT 1;"
                 "UPDATE one SET run = 2, id = 9000000; INSERT INTO inference SELECT * FROM one;"
                 "UPDATE ledger SET stored = stored + 1 WHERE run = 2");
        const uint64_t before = clearing.cleared;
        if (clear_slice(&clearing, db, &done, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_true(clearing.cleared - before <= CLEAR_SLICE);
        slices += clearing.cleared > before;
        assert_true(number("SELECT sum(stored - cleared) FROM ledger") ==
                    number("SELECT count(*) FROM inference"));
    }
    assert_int_equal(slices, 3);
    assert_true((double)clearing.cleared == of_second);
    assert_true(number("SELECT count(*) FROM inference WHERE run = 2") == 1);
    assert_true(number("PRAGMA freelist_count") == 0);
}

// Slices that take long become smaller, and short ones larger, within bounds.
static void test_slices_follow_what_they_take(void **state)
{
    (void)state;
    struct clearing clearing = {
        .kind = RECORD_KIND_OPERATION, .slice = CLEAR_SLICE_FIRST, .pages = CLEAR_PAGES_FIRST};
    clear_took(&clearing, 2 * (uint64_t)CLEAR_SLICE_NS);
    assert_int_equal(clearing.slice, CLEAR_SLICE_FIRST / 2);
    clear_took(&clearing, (uint64_t)CLEAR_SLICE_NS * 3 / 4);
    assert_int_equal(clearing.slice, CLEAR_SLICE_FIRST / 2);
    clear_took(&clearing, (uint64_t)CLEAR_SLICE_NS / 4);
    assert_int_equal(clearing.slice, CLEAR_SLICE_FIRST);
    for (int i = 0; i < 30; i++)
        clear_took(&clearing, UINT64_MAX);
    assert_in_range(clearing.slice, CLEAR_SLICE_MIN, 2 * CLEAR_SLICE_MIN - 1);
    for (int i = 0; i < 30; i++)
        clear_took(&clearing, 0);
    assert_in_range(clearing.slice, CLEAR_SLICE / 2, CLEAR_SLICE);
    assert_int_equal(clearing.pages, CLEAR_PAGES_FIRST);
    clearing.kind = RECORD_KIND_RUN; // only room is left
    clear_took(&clearing, UINT64_MAX);
    assert_int_equal(clearing.pages, CLEAR_PAGES_FIRST / 2);
}

static void test_clear_needs_the_lock(void **state)
{
    (void)state;
    struct lock lock;
    struct error err = {0};
    assert_int_equal(lock_take_store(&lock, path, &err), STATUS_OK);
    const struct query_filter filter = {0};
    uint64_t cleared = 0;
    assert_int_equal(store_clear(path, &filter, &cleared, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "in use by process"));
    lock_release(&lock);
    assert_int_equal(store_clear("/no/such/file.db", &filter, &cleared, &err), STATUS_NOT_FOUND);
}

static void test_clear_by_model_takes_the_stages_along(void **state)
{
    (void)state;
    add_one_of_each();
    exec("WITH v(kind) AS (VALUES (1), (2), (3), (4), (5), (7), (8), (9), (10), (11))"
         " INSERT INTO ledger(run, kind, stored) SELECT 1, kind, 1 FROM v");
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    uint64_t cleared = 0;
    assert_int_equal(store_clear(path, &filter, &cleared, NULL), STATUS_OK);
    // model, load, load_stage, inference, itl: what has a model.
    assert_int_equal(cleared, 5);
    assert_true(number("SELECT count(*) FROM load_stage") == 0);
    assert_true(number("SELECT count(*) FROM operation") == 1);
    assert_true(number("SELECT cleared FROM ledger WHERE run = 1 AND kind = 5") == 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_averages_equal_plain_sql),
        TEST(test_quantiles_within_one_percent),
        TEST(test_groups_cover_everything_once),
        TEST(test_filters),
        TEST(test_queries_that_make_no_sense),
        TEST(test_a_query_over_its_budget_is_ended),
        TEST(test_listings_go_on_behind_their_cursor),
        TEST(test_every_kind_is_listed_with_all_its_columns),
        TEST(test_stages_know_their_load),
        TEST(test_runs_and_their_balance),
        TEST(test_summary_equals_plain_sql),
        TEST(test_sums_do_not_overflow),
        TEST(test_an_empty_store_has_a_summary),
        TEST(test_the_log_is_part_of_the_size),
        TEST(test_a_summary_of_nothing),
        TEST(test_overview_equals_plain_sql),
        TEST(test_more_runs_than_groups),
        TEST(test_clear_moves_rows_to_the_ledger),
        TEST(test_a_reader_is_ended_when_the_log_grows),
        TEST(test_clear_goes_in_slices),
        TEST(test_slices_follow_what_they_take),
        TEST(test_clear_needs_the_lock),
        TEST(test_clear_by_model_takes_the_stages_along),
    };
    return cmocka_run_group_tests_name("store_query", tests, NULL, NULL);
}
