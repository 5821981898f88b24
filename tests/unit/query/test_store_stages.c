// Loads by stage: averages that can be worked out by hand, and in general those of
// plain SQL.
#include <math.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)
#define ABSENT (-1e300)

static uint32_t models[2], device, stages[3];

TEST_FIXTURE(set_up)
{
    store_make(state);
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    device = rows_name(db, "gpu");
    stages[0] = rows_name(db, "read_header");
    stages[1] = rows_name(db, "model_building");
    stages[2] = rows_name(db, "file_opening");
    rows_run(db, 1, "alpha", START_NS, START_NS + 1000 * SECOND);
    rows_run(db, 2, "beta", START_NS, START_NS + 1000 * SECOND);
    return store_read();
}

struct load {
    int64_t run, at_s; // after the start
    unsigned model;
    double cached; // below 0: unknown
    enum record_status status;
    int64_t stage_ms[2]; // 0: it has none
    int64_t other_ms;
};

// A load is number 2 * id, its stages follow: all of one run's stream.
static void add_load(const struct load *load)
{
    struct record record;
    int64_t at = START_NS + load->at_s * SECOND;
    record_init(&record, RECORD_KIND_LOAD, at);
    record_set_name(&record, LOAD_MODEL, models[load->model]);
    record_set_name(&record, LOAD_DEVICE, device);
    record_set_int(&record, LOAD_DURATION_NS,
                   (load->stage_ms[0] + load->stage_ms[1] + load->other_ms) * MS);
    record_set_int(&record, LOAD_STATUS, (int64_t)load->status);
    record_set_int(&record, LOAD_MODEL_BYTES, 1000000);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 0);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 0);
    if (load->cached >= 0)
        record_set_real(&record, LOAD_PAGE_CACHE_RATIO, load->cached);
    const int64_t number = rows_add(db, load->run, &record);
    for (int i = 0; i < 2; i++) {
        if (load->stage_ms[i] == 0)
            continue;
        record_init(&record, RECORD_KIND_LOAD_STAGE, at);
        record_set_int(&record, LOAD_STAGE_PARENT, number);
        record_set_int(&record, LOAD_STAGE_ORDINAL, i);
        record_set_name(&record, LOAD_STAGE_STAGE, stages[i]);
        record_set_int(&record, LOAD_STAGE_DURATION_NS, load->stage_ms[i] * MS);
        (void)rows_add(db, load->run, &record);
        at += load->stage_ms[i] * MS;
    }
}

static bool cell_is(const struct result *result, size_t row, const char *key, const char *text)
{
    const struct value value = result_cell(result, row, (unsigned)result_find(result, key));
    if (value.type != VALUE_TEXT)
        return text[0] == '\0';
    return value.text.size == strlen(text) && memcmp(value.text.bytes, text, strlen(text)) == 0;
}

static void expect_near(double actual, double expected, double most)
{
    if (!(fabs(actual - expected) <= most))
        fail_msg("%.17g instead of %.17g", actual, expected);
}

struct row {
    const char *model, *cache, *part, *stage;
    int64_t loads, count;
    double mean_ms, max_ms, share;
};

static void expect_rows(const struct result *result, const struct row *rows, size_t count)
{
    assert_int_equal(result_row_count(result), count);
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        if (!cell_is(result, i, "model", row->model) || !cell_is(result, i, "cache", row->cache) ||
            !cell_is(result, i, "part", row->part) || !cell_is(result, i, "stage", row->stage))
            fail_msg("row %zu is not %s %s %s %s", i, row->model, row->cache, row->part,
                     row->stage);
        assert_int_equal(result_integer(result, i, "loads", -1), row->loads);
        assert_int_equal(result_integer(result, i, "count", -1), row->count);
        if (row->count == 0)
            continue;
        expect_near(result_number(result, i, "mean_ns", ABSENT), row->mean_ms * 1e6, 1e-3);
        expect_near(result_number(result, i, "max_ns", ABSENT), row->max_ms * 1e6, 1e-3);
        expect_near(result_number(result, i, "share_ratio", ABSENT), row->share, 1e-9);
        const double p50 = result_number(result, i, "p50_ns", ABSENT);
        assert_true(p50 >= 0 && p50 <= row->max_ms * 1e6);
    }
}

TEST_CASE(test_waterfalls)
{
    static const struct load loads[] = {
        {1, 10, 0, 0.0, RECORD_STATUS_OK, {100, 800}, 100},
        {1, 20, 0, 1.0, RECORD_STATUS_OK, {100, 300}, 0},
        {2, 30, 0, 0.95, RECORD_STATUS_OK, {100, 100}, 0},
        {2, 40, 0, -1, RECORD_STATUS_OK, {0, 0}, 400},
        {2, 50, 0, 0.5, RECORD_STATUS_ERROR, {100, 0}, 5000}, // does not count
        {1, 60, 1, 0.5, RECORD_STATUS_OK, {0, 600}, 400},
        {1, 70, 1, 0.05, RECORD_STATUS_CANCELLED, {0, 0}, 1},
    };
    for (unsigned i = 0; i < COUNT_OF(loads); i++)
        add_load(&loads[i]);
    static const struct row expected[] = {
        {"small", "all", "total", "", 4, 4, 500, 1000, 1},
        {"small", "all", "stage", "read_header", 4, 3, 100, 100, 300.0 / 2000},
        {"small", "all", "stage", "model_building", 4, 3, 400, 800, 1200.0 / 2000},
        {"small", "all", "other", "", 4, 3, 100.0 / 3, 100, 100.0 / 2000},
        {"small", "cold", "total", "", 1, 1, 1000, 1000, 1},
        {"small", "cold", "stage", "read_header", 1, 1, 100, 100, 0.1},
        {"small", "cold", "stage", "model_building", 1, 1, 800, 800, 0.8},
        {"small", "cold", "other", "", 1, 1, 100, 100, 0.1},
        {"small", "warm", "total", "", 2, 2, 300, 400, 1},
        {"small", "warm", "stage", "read_header", 2, 2, 100, 100, 200.0 / 600},
        {"small", "warm", "stage", "model_building", 2, 2, 200, 300, 400.0 / 600},
        {"small", "warm", "other", "", 2, 2, 0, 0, 0},
        {"small", "unknown", "total", "", 1, 1, 400, 400, 1},
        {"large", "all", "total", "", 1, 1, 1000, 1000, 1},
        {"large", "all", "stage", "model_building", 1, 1, 600, 600, 0.6},
        {"large", "all", "other", "", 1, 1, 400, 400, 0.4},
        {"large", "mixed", "total", "", 1, 1, 1000, 1000, 1},
        {"large", "mixed", "stage", "model_building", 1, 1, 600, 600, 0.6},
        {"large", "mixed", "other", "", 1, 1, 400, 400, 0.4},
    };
    struct query query = {
        .kind = QUERY_STAGES, .group_by = {QUERY_BY_MODEL, QUERY_BY_DEVICE}, .group_count = 2};
    struct result *result = ask(&query);
    expect_rows(result, expected, COUNT_OF(expected));
    assert_int_equal(result_integer(result, 0, "failed", -1), 1);
    assert_int_equal(result_integer(result, 13, "failed", -1), 1);
    expect_near(result_number(result, 0, "page_cache_ratio", ABSENT), 1.95 / 3, 1e-12);
    expect_near(result_number(result, 0, "load_bytes_per_second", ABSENT), 4e6 / 2, 1e-3);
    result_free(result);

    // All models together, of one host, in a window: its first and third load only.
    query.group_count = 0;
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    query.filter.since_ns = START_NS + 30 * SECOND;
    query.filter.until_ns = START_NS + 40 * SECOND;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 8);
    assert_int_equal(result_integer(result, 0, "loads", -1), 1);
    expect_near(result_number(result, 0, "mean_ns", ABSENT), 200e6, 1e-3);
    result_free(result);
}

// Random loads; stages of startups and of other loads do not get in.
TEST_CASE(test_sums_equal_plain_sql)
{
    uint64_t random = 5;
    exec("BEGIN");
    for (unsigned i = 0; i < 500; i++) {
        const struct load load = {
            .run = 1 + (int64_t)(test_random(&random) % 2),
            .at_s = (int64_t)(test_random(&random) % 900),
            .model = (unsigned)(test_random(&random) % 2),
            .cached = (double)(test_random(&random) % 1000) / 900 - 0.1,
            .status = test_random(&random) % 5 ? RECORD_STATUS_OK : RECORD_STATUS_ERROR,
            .stage_ms = {1 + (int64_t)(test_random(&random) % 1000),
                         (int64_t)(test_random(&random) % 3000)},
            .other_ms = (int64_t)(test_random(&random) % 200),
        };
        add_load(&load);
    }
    exec("COMMIT");
    struct query query = {.kind = QUERY_STAGES, .group_by = {QUERY_BY_MODEL}, .group_count = 1};
    query.filter.since_ns = START_NS + 100 * SECOND;
    query.filter.until_ns = START_NS + 700 * SECOND;
    struct result *result = ask(&query);
    unsigned compared = 0;
    for (size_t row = 0; row < result_row_count(result); row++) {
        const struct value model = result_cell(result, row, 0);
        const struct value stage = result_cell(result, row, (unsigned)result_find(result, "stage"));
        if (!cell_is(result, row, "cache", "all") || stage.type != VALUE_TEXT)
            continue;
        char *sql = sqlite3_mprintf(
            "SELECT sum(s.duration_ns) FROM load_stage s JOIN load l ON (l.run, l.stream,"
            " l.number) = (s.run, s.stream, s.parent) WHERE l.status = 0 AND l.started_ns >= %lld"
            " AND l.started_ns < %lld AND l.model = (SELECT id FROM name WHERE text = '%.*q') AND"
            " s.stage = (SELECT id FROM name WHERE text = '%.*q')",
            (long long)query.filter.since_ns, (long long)query.filter.until_ns,
            (int)model.text.size, model.text.bytes, (int)stage.text.size, stage.text.bytes);
        int64_t sum = 0;
        struct error err;
        assert_int_equal(database_integer(db, sql, &sum, &err), STATUS_OK);
        sqlite3_free(sql);
        expect_near(result_number(result, row, "mean_ns", ABSENT) *
                        (double)result_integer(result, row, "count", 0),
                    (double)sum, 10);
        compared++;
    }
    assert_int_equal(compared, 4);
    // Shares of a waterfall sum to one.
    double sum = 0;
    for (size_t row = 0; row < result_row_count(result); row++) {
        if (cell_is(result, row, "part", "total")) {
            assert_true(row == 0 || fabs(sum - 1) < 1e-9);
            sum = 0;
        } else {
            sum += result_number(result, row, "share_ratio", ABSENT);
        }
    }
    assert_true(fabs(sum - 1) < 1e-9);
    result_free(result);
}

TEST_CASE(test_refusals)
{
    struct error err = {0};
    struct result *result = NULL;
    struct query query = {.kind = QUERY_STAGES};
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
    query.group_by[0] = QUERY_BY_OPERATION;
    query.group_count = 1;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "no operation to group by"));
    query.group_count = 0;
    (void)snprintf(query.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "read_header");
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "no stage to filter by"));
}

TEST_MAIN_EACH(set_up, store_tear_down, test_waterfalls, test_sums_equal_plain_sql, test_refusals)
