// The slowest requests are found whatever rollups there are, and by little reading.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/rollup.h"
#include "common/store/slowest.h"
#include "common/store/store.h"
#include "tests/support/rows.h"
#include "tests/support/test.h"
#include "tests/unit/request_fixture.h"

static const struct query_metric *metric_of(const char *name)
{
    const struct query_metric *metric = NULL;
    struct error err;
    assert_int_equal(query_metric_find(&metric, name, &err), STATUS_OK);
    return metric;
}

// Gives the rollups of a metric, of which the extremes stand there, all that belongs to
// a row, as if there were no other values.
static void complete_rollups(const struct query_metric *metric)
{
    const struct cell_key of = {.metric = rollup_metric_number(metric)};
    sqlite3_stmt *from = NULL, *to = NULL;
    char *sql = sqlite3_mprintf("SELECT grouping, level, started_ns, series, min, max FROM rollup"
                                " WHERE metric = %d",
                                of.metric);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &from, NULL), SQLITE_OK);
    sqlite3_free(sql);
    rows_exec(db, "CREATE TEMP TABLE whole AS SELECT * FROM rollup WHERE 0");
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "INSERT INTO whole(metric, grouping, level, started_ns,"
                                        " series, " CELL_COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6,"
                                        " ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                                        -1, &to, NULL),
                     SQLITE_OK);
    while (sqlite3_step(from) == SQLITE_ROW) {
        struct cell_key key = of;
        key.grouping = (enum rollup_grouping)sqlite3_column_int(from, 0);
        key.level = (enum rollup_level)sqlite3_column_int(from, 1);
        key.started_ns = sqlite3_column_int64(from, 2);
        key.series = sqlite3_column_int64(from, 3);
        struct ratio cell = {0};
        assert_int_equal(aggregate_want_quantiles(&cell.values, NULL), STATUS_OK);
        for (int i = 4; i < 6; i++) {
            if (metric->derived)
                ratio_add(&cell, sqlite3_column_double(from, i), 1);
            else
                aggregate_add_int(&cell.values, sqlite3_column_int64(from, i));
        }
        (void)sqlite3_bind_int(to, 1, key.metric);
        (void)sqlite3_bind_int(to, 2, (int)key.grouping);
        (void)sqlite3_bind_int(to, 3, (int)key.level);
        (void)sqlite3_bind_int64(to, 4, key.started_ns);
        (void)sqlite3_bind_int64(to, 5, key.series);
        struct error err;
        assert_int_equal(cell_bind(to, 6, &key, &cell, metric->derived != NULL, &err), STATUS_OK);
        assert_int_equal(sqlite3_step(to), SQLITE_DONE);
        (void)sqlite3_reset(to);
        aggregate_deinit(&cell.values);
    }
    (void)sqlite3_finalize(from);
    (void)sqlite3_finalize(to);
    rows_exec(db, "INSERT OR REPLACE INTO rollup SELECT * FROM whole; DROP TABLE whole");
}

// Makes the extremes that the search reads of all records with ids up to the
// watermark, as the collector keeps them.
static void add_rollups(const struct query_metric *metric, int64_t watermark)
{
    static const char *const folds[ROLLUP_GROUPING_COUNT] = {
        [ROLLUP_FULL] = "i.model, r.host, i.device, 0",
        [ROLLUP_MODEL] = "i.model, 0, 0, 0",
        [ROLLUP_HOST] = "0, r.host, 0, 0",
        [ROLLUP_ALL] = "0, 0, 0, 0",
    };
    const int number = rollup_metric_number(metric);
    for (int grouping = 0; grouping < (int)ROLLUP_GROUPING_COUNT; grouping++) {
        char *sql =
            sqlite3_mprintf("INSERT OR IGNORE INTO series(grouping, model, host, device, operation)"
                            " SELECT DISTINCT %d, %s FROM inference i JOIN run r ON r.run = i.run",
                            grouping, folds[grouping]);
        rows_exec(db, sql);
        sqlite3_free(sql);
        for (int level = 0; level < (int)ROLLUP_LEVEL_COUNT; level++) {
            sql = sqlite3_mprintf(
                "INSERT INTO rollup(metric, grouping, level, started_ns, series, count, sum, carry,"
                " min, max) SELECT %d, %d, %d, bucket(%d, i.started_ns) AS b,"
                " (SELECT s.id FROM series s WHERE s.grouping = %d AND (s.model, s.host, s.device,"
                "  s.operation) = (%s)) AS k, count(\"%w\"), 0, 0, min(\"%w\"), max(\"%w\")"
                " FROM v i JOIN run r ON r.run = i.run"
                " WHERE i.id <= %lld AND \"%w\" IS NOT NULL GROUP BY b, k",
                number, grouping, level, level, grouping, folds[grouping], metric->name,
                metric->name, metric->name, (long long)watermark, metric->name);
            rows_exec(db, sql);
            sqlite3_free(sql);
        }
    }
    complete_rollups(metric);
    char *sql =
        sqlite3_mprintf("INSERT INTO rollup_state VALUES(%d, %lld)", number, (long long)watermark);
    rows_exec(db, sql);
    sqlite3_free(sql);
}

static void bucket_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int64(context, rollup_bucket((enum rollup_level)sqlite3_value_int(values[0]),
                                                sqlite3_value_int64(values[1])));
}

// The rows with the derived columns that the tests rank by.
static void add_helpers(void)
{
    assert_int_equal(sqlite3_create_function(db, "bucket", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                             NULL, bucket_of, NULL, NULL),
                     SQLITE_OK);
    rows_exec(db, "CREATE TEMP VIEW v AS SELECT *, CASE WHEN generated_tokens >= 2 AND"
                  " decode_ns > 0 THEN (generated_tokens - 1) * 1e9 / decode_ns END"
                  " AS tokens_per_second FROM inference");
}

// A level of a grouping, and all finer ones, that are not kept for a while.
static void add_gap(enum rollup_grouping grouping, enum rollup_level level, int64_t since_ns,
                    int64_t until_ns)
{
    char *sql = sqlite3_mprintf(
        "DELETE FROM rollup WHERE grouping = %d AND level <= %d AND started_ns >= %lld"
        " AND started_ns < %lld; INSERT INTO rollup_gap(kind, grouping,"
        " level, since_ns, until_ns, why) VALUES(%d, %d, %d, %lld, %lld, 0)"
        " ON CONFLICT DO UPDATE SET until_ns = max(until_ns, excluded.until_ns)",
        (int)grouping, (int)level, (long long)since_ns, (long long)until_ns,
        (int)RECORD_KIND_INFERENCE, (int)grouping, (int)level, (long long)since_ns,
        (long long)until_ns);
    rows_exec(db, sql);
    sqlite3_free(sql);
}

static void add_random_requests(unsigned count, int64_t span_ns, uint64_t *random)
{
    rows_exec(db, "BEGIN");
    for (unsigned i = 0; i < count; i++) {
        const struct request request = {
            .started_ns = START_NS + (int64_t)(test_random(random) % (uint64_t)span_ns),
            .queue_ns = (int64_t)(test_random(random) % 1000),
            .prefill_ns = (int64_t)(test_random(random) % 100000),
            .decode_ns = (int64_t)(test_random(random) >> (24 + test_random(random) % 30)),
            .prompt = 10,
            .generated = (int64_t)(test_random(random) % 200),
            .model = (unsigned)(test_random(random) % 3),
            .device = (unsigned)(test_random(random) % 2),
        };
        add_request(1 + (int64_t)(test_random(random) % 2), &request);
    }
    rows_exec(db, "COMMIT");
}

// Compares with what plain SQL says.
static void expect_slowest(const struct query_metric *metric, const struct query_filter *filter,
                           bool lowest, size_t wanted)
{
    struct slowest slowest;
    struct error err;
    rows_exec(store->db, "BEGIN");
    if (slowest_find(&slowest, store, metric, filter, lowest, wanted, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    rows_exec(store->db, "COMMIT");
    sqlite3_str *text = sqlite3_str_new(db);
    sqlite3_str_appendf(text,
                        "SELECT id, \"%w\" AS value FROM v WHERE value IS NOT NULL"
                        " AND started_ns >= %lld AND started_ns < %lld",
                        metric->name, (long long)filter->since_ns,
                        (long long)(filter->until_ns ? filter->until_ns : INT64_MAX));
    static const char *const of[QUERY_DIMENSION_COUNT] = {
        [QUERY_BY_MODEL] = "model",
        [QUERY_BY_DEVICE] = "device",
        [QUERY_BY_HOST] = "(SELECT host FROM run r WHERE r.run = v.run)",
    };
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && of[i])
            sqlite3_str_appendf(text, " AND %s = (SELECT id FROM name WHERE text = %Q)", of[i],
                                filter->by[i]);
    if (filter->by[QUERY_BY_RUN][0])
        sqlite3_str_appendf(text, " AND run = %d", atoi(filter->by[QUERY_BY_RUN]));
    sqlite3_str_appendf(text, " ORDER BY value %s LIMIT %d", lowest ? "ASC" : "DESC", (int)wanted);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    size_t row = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        assert_true(row < slowest.count);
        const double expected = sqlite3_column_double(stmt, 1);
        if (fabs(slowest.values[row].value - expected) > 1e-12 * fabs(expected))
            fail_msg("%s, place %zu: %.17g instead of %.17g", sql, row, slowest.values[row].value,
                     expected);
        row++;
    }
    assert_int_equal(row, slowest.count);
    (void)sqlite3_finalize(stmt);
    sqlite3_free(sql);
    slowest_deinit(&slowest);
}

static struct query_filter random_filter(int64_t span_ns, uint64_t *random)
{
    static const char *const names[QUERY_DIMENSION_COUNT][3] = {
        [QUERY_BY_MODEL] = {"small", "it's; --", "nobody's"},
        [QUERY_BY_HOST] = {"alpha", "beta", "alpha"},
        [QUERY_BY_DEVICE] = {"gpu", "cpu", "gpu"},
        [QUERY_BY_RUN] = {"00000001", "00000002", "00000001"},
    };
    struct query_filter filter = {0};
    for (unsigned i = 0; i <= QUERY_BY_RUN; i++)
        if (test_random(random) % 4 == 0)
            (void)snprintf(filter.by[i], QUERY_TEXT_SIZE, "%s", names[i][test_random(random) % 3]);
    const int64_t from = (int64_t)(test_random(random) % (uint64_t)span_ns);
    if (test_random(random) % 2)
        filter.since_ns = START_NS + from;
    if (test_random(random) % 2)
        filter.until_ns =
            START_NS + from + 1 +
            (int64_t)(test_random(random) >> (4 + test_random(random) % 40)) % span_ns;
    return filter;
}

static void test_search_finds_what_sql_finds(void **state)
{
    (void)state;
    uint64_t random = 2024;
    const int64_t span_ns = 100 * DAY;
    const struct query_metric *const metrics[] = {metric_of("e2e_ns"),
                                                  metric_of("tokens_per_second")};
    add_random_requests(1500, span_ns, &random);
    add_helpers();
    // Without rollups, then with them up to some record, then with holes in them.
    for (unsigned stage = 0; stage < 3; stage++) {
        rows_exec(db, "BEGIN");
        for (unsigned i = 0; i < COUNT_OF(metrics) && stage == 1; i++)
            add_rollups(metrics[i], 1450);
        for (unsigned i = 0; i < 60 && stage == 2; i++) {
            const enum rollup_level level =
                (enum rollup_level)(test_random(&random) % ROLLUP_LEVEL_COUNT);
            int64_t since = rollup_bucket(
                level, START_NS + (int64_t)(test_random(&random) % (uint64_t)span_ns));
            int64_t until = since;
            for (unsigned k = 0; k <= test_random(&random) % 3; k++)
                until = rollup_next(level, until);
            add_gap((enum rollup_grouping)(test_random(&random) % ROLLUP_GROUPING_COUNT), level,
                    since, until);
        }
        rows_exec(db, "COMMIT");
        for (unsigned round = 0; round < 80; round++) {
            const struct query_filter filter = random_filter(span_ns, &random);
            expect_slowest(metrics[round % 2], &filter, round % 3 == 0,
                           1 + test_random(&random) % 40);
        }
    }
}

// Ten of thousands take a few hundred reads, not all.
static void test_search_reads_little(void **state)
{
    (void)state;
    uint64_t random = 7;
    add_random_requests(6000, 3 * DAY, &random);
    add_helpers();
    const struct query_metric *metric = metric_of("e2e_ns");
    rows_exec(db, "BEGIN");
    add_rollups(metric, 6000);
    rows_exec(db, "COMMIT");
    static const struct query_filter filters[] = {
        {{""}, 0, 0},
        {.by = {[QUERY_BY_MODEL] = "small"}},
        {.by = {[QUERY_BY_HOST] = "beta", [QUERY_BY_DEVICE] = "cpu", [QUERY_BY_MODEL] = "large"}},
        {.since_ns = START_NS + DAY / 2, .until_ns = START_NS + 2 * DAY + 1},
    };
    for (unsigned i = 0; i < COUNT_OF(filters); i++) {
        struct slowest slowest;
        struct error err;
        assert_int_equal(slowest_find(&slowest, store, metric, &filters[i], false, 10, &err),
                         STATUS_OK);
        assert_int_equal(slowest.count, 10);
        // Some three records a minute; days, hours and minutes of ten of them.
        if (slowest.rows_read >= 10 * 3 * 4 || slowest.rollups_read >= 10 * (31 + 24 + 60))
            fail_msg("filter %u: %llu rows, %llu rollups", i, (unsigned long long)slowest.rows_read,
                     (unsigned long long)slowest.rollups_read);
        slowest_deinit(&slowest);
    }
}

// An extreme that is no longer what was written leads nobody astray.
static void test_damaged_rollups_are_reported(void **state)
{
    (void)state;
    uint64_t random = 8;
    add_random_requests(200, DAY, &random);
    add_helpers();
    const struct query_metric *metric = metric_of("e2e_ns");
    rows_exec(db, "BEGIN");
    add_rollups(metric, 200);
    rows_exec(db, "UPDATE rollup SET max = max - 1 WHERE level = 3 AND grouping = 3; COMMIT");
    const struct query query = {.kind = QUERY_SLOWEST};
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "rollup"));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, request_set_up, request_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_search_finds_what_sql_finds),
        TEST(test_search_reads_little),
        TEST(test_damaged_rollups_are_reported),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
