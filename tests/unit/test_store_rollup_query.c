// Averages from rollups, records and both, against plain SQL over all rows: of random
// stores, windows, filters, groupings and steps, with gaps, expired rows, and
// watermarks anywhere.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/sketch.h"
#include "common/store/database.h"
#include "common/store/rollup.h"
#include "common/store/rollup_plan.h"
#include "common/store/schema.h"
#include "common/store/store.h"
#include "server/collector/rollups.h"
#include "tests/support/folder.h"
#include "tests/support/rollup_builder.h"
#include "tests/support/test.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define MARCH_NS  INT64_C(1772323200000000000) // 2026-03-01 00:00

enum { RUNS = 5, HOSTS = 3, ROWS_MAX = 400, GROUPS_SEEN_MAX = ROWS_MAX };

static char folder[FOLDER_PATH_SIZE];
static char path[FOLDER_PATH_SIZE];
static char full_path[FOLDER_PATH_SIZE];
static sqlite3 *db;   // the store
static sqlite3 *full; // what it was before rows expired
static uint64_t seed;

static int64_t pick(int64_t room)
{
    return (int64_t)(test_random(&seed) % (uint64_t)room);
}

static void exec(const char *sql)
{
    struct error err;
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

__attribute__((format(printf, 1, 2))) static void execf(const char *format, ...)
{
    char sql[1024];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(sql, sizeof sql, format, list);
    va_end(list);
    exec(sql);
}

// ---- A random store -----------------------------------------------------------------------

static const char *const metric_names[] = {
    "inference.ttft_ns",           "inference.e2e_ns",
    "inference.tokens_per_second", "operation.duration_ns",
    "operation.items_per_second",  "process_sample.cpu_ratio",
    "load.memory_delta_bytes",     "process_sample.device_memory_bytes",
    "load.page_cache_ratio",
};

static const char *const names[] = {"alpha", "beta", "gamma", "cpu",
                                    "gpu",   "tiny", "small", "x'; DROP TABLE name; --",
                                    "read",  "build"};

// A time, often near an edge of a bucket or in a crowd.
static int64_t pick_time(void)
{
    int64_t time_ns = MARCH_NS + pick(80 * DAY_NS) - 40 * DAY_NS;
    const unsigned level = (unsigned)pick(8);
    if (level < ROLLUP_LEVEL_COUNT)
        time_ns = rollup_bucket((enum rollup_level)level, time_ns) + pick(3) - 1;
    else if (level < 7)
        time_ns = MARCH_NS - HOUR_NS + pick(3 * HOUR_NS);
    return time_ns;
}

// Small, large, zero, negative, and the ends of 64 bits.
static int64_t pick_integer(bool positive)
{
    static const int64_t special[] = {0, 1, INT64_MAX, INT64_MAX - 1, INT64_MIN, -1, 0, 2};
    int64_t value = (int64_t)(test_random(&seed) >> (1 + pick(62)));
    if (pick(8) == 0)
        value = special[pick((int64_t)COUNT_OF(special))];
    else if (pick(6) == 0)
        value = -value;
    return positive && value < 0 ? 1 + pick(1000) : value;
}

static double pick_real(void)
{
    return ldexp((double)pick(1000), (int)pick(60) - 40) * (pick(5) ? 1 : -1);
}

static void bind_value(sqlite3_stmt *stmt, int place, const struct record_column *column)
{
    // Distances between durations and numbers of tokens stay inside of 64 bits.
    const bool positive = column->unit != UNIT_DURATION || strcmp(column->name, "ttft_ns") != 0;
    if (column->maybe && pick(4) == 0)
        (void)sqlite3_bind_null(stmt, place);
    else if (column->type == COLUMN_REAL)
        (void)sqlite3_bind_double(stmt, place, pick_real());
    else if (column->type == COLUMN_NAME)
        (void)sqlite3_bind_int64(stmt, place,
                                 strcmp(column->name, "device") == 0      ? 4 + pick(2)
                                 : strcmp(column->name, "operation") == 0 ? 9 + pick(2)
                                                                          : 6 + pick(3));
    else if (column->type == COLUMN_INT &&
             (column->unit == UNIT_TOKENS || column->unit == UNIT_COUNT))
        (void)sqlite3_bind_int64(stmt, place, pick(6)); // rates stay below 2^64
    else if (column->type == COLUMN_INT)
        (void)sqlite3_bind_int64(stmt, place, pick_integer(positive));
    else if (column_type_is_enum(column->type))
        (void)sqlite3_bind_int64(stmt, place, pick(3));
    else
        (void)sqlite3_bind_text(stmt, place, "x", 1, SQLITE_STATIC);
}

static void add_records(enum record_kind kind, int64_t count)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *text = sqlite3_str_new(db);
    schema_insert_sql(text, kind);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    for (int64_t i = 1; i <= count; i++) {
        const int64_t numbers[] = {i, 1 + pick(RUNS), 0, i, pick_time(), MARCH_NS};
        for (size_t n = 0; n < COUNT_OF(numbers); n++)
            (void)sqlite3_bind_int64(stmt, (int)n + 1, numbers[n]);
        for (unsigned c = 0; c < info->column_count; c++)
            bind_value(stmt, SCHEMA_FIRST_COLUMN + (int)c, &info->columns[c]);
        assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
}

static void add_gaps(enum record_kind kind)
{
    for (int64_t count = pick(12); count > 0; count--) {
        const int64_t a = pick_time(), b = pick_time();
        execf("INSERT OR IGNORE INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
              " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
              (int)kind, (int)pick(ROLLUP_GROUPING_COUNT), (int)pick(ROLLUP_LEVEL_COUNT),
              a < b ? a : b, (a < b ? b : a) + 1, (int)pick(3));
    }
}

static void add_names_and_runs(void)
{
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char *sql =
            sqlite3_mprintf("INSERT INTO name(id, text) VALUES(%d, %Q)", (int)i + 1, names[i]);
        exec(sql);
        sqlite3_free(sql);
    }
    for (int run = 1; run <= RUNS; run++)
        execf("INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
              " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes,"
              " device_count, produced, stored, duplicates, heard_ns) VALUES(%d, 1, 1,"
              " '%08d-0000-4000-8000-000000000000', %d, 1, 1, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0,"
              " 10, 0, %" PRId64 ")",
              run, run, 1 + run % HOSTS, INT64_MAX);
}

// ---- What plain SQL says ------------------------------------------------------------------

struct figure {
    int64_t integer;
    double real;
};

struct group_seen {
    char names[QUERY_DIMENSION_COUNT][64];
    int64_t step_ns;
    struct figure values[ROWS_MAX];
    size_t count;
    bool is_real;
};

static struct group_seen *seen; // GROUPS_SEEN_MAX of them
static size_t seen_count;

static struct group_seen *see_group(const struct query *query, sqlite3_stmt *stmt)
{
    struct group_seen wanted = {0};
    for (unsigned i = 0; i < query->group_count; i++) {
        const unsigned char *text = sqlite3_column_text(stmt, (int)i + 2);
        (void)snprintf(wanted.names[i], sizeof wanted.names[i], "%s",
                       text ? (const char *)text : "");
    }
    if (query->step_ns)
        wanted.step_ns = rollup_step(query->step_ns, sqlite3_column_int64(stmt, 1));
    for (size_t i = 0; i < seen_count; i++)
        if (memcmp(seen[i].names, wanted.names, sizeof wanted.names) == 0 &&
            seen[i].step_ns == wanted.step_ns)
            return &seen[i];
    assert_true(seen_count < GROUPS_SEEN_MAX);
    seen[seen_count] = wanted;
    return &seen[seen_count++];
}

// The rows that a query covers, read from the views that people read.
static sqlite3_stmt *select_plain(const struct query *query, const struct query_metric *metric)
{
    sqlite3_str *text = sqlite3_str_new(full);
    sqlite3_str_appendf(text, "SELECT \"%w\", started_ns", metric->name);
    for (unsigned i = 0; i < query->group_count; i++)
        sqlite3_str_appendf(text, ", \"%w\"", query_dimension_name(query->group_by[i]));
    sqlite3_str_appendf(text, " FROM \"v_%w\" WHERE \"%w\" IS NOT NULL",
                        record_kind_info(metric->kind)->name, metric->name);
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (query->filter.by[i][0])
            sqlite3_str_appendf(text, " AND \"%w\" = %Q",
                                query_dimension_name((enum query_dimension)i), query->filter.by[i]);
    if (query->filter.since_ns)
        sqlite3_str_appendf(text, " AND started_ns >= %lld", (long long)query->filter.since_ns);
    if (query->filter.until_ns)
        sqlite3_str_appendf(text, " AND started_ns < %lld", (long long)query->filter.until_ns);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(full, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(full));
    sqlite3_free(sql);
    return stmt;
}

static void see(const struct query *query, const struct query_metric *metric)
{
    seen_count = 0;
    sqlite3_stmt *stmt = select_plain(query, metric);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        struct group_seen *group = see_group(query, stmt);
        group->is_real = sqlite3_column_type(stmt, 0) == SQLITE_FLOAT;
        assert_true(group->count < ROWS_MAX);
        group->values[group->count++] =
            (struct figure){sqlite3_column_int64(stmt, 0), sqlite3_column_double(stmt, 0)};
    }
    (void)sqlite3_finalize(stmt);
}

// ---- Both compared ------------------------------------------------------------------------

static char asked[2048]; // the query in words

static bool is_text(const struct result *result, size_t row, const char *key, const char *text)
{
    const int column = result_find(result, key);
    assert_true(column >= 0);
    const struct value cell = result_cell(result, row, (unsigned)column);
    const char *bytes = cell.type == VALUE_TEXT ? cell.text.bytes : "";
    const size_t size = cell.type == VALUE_TEXT ? cell.text.size : 0;
    return size == strlen(text) && memcmp(bytes, text, size) == 0;
}

static size_t find_row(const struct query *query, const struct result *result,
                       const struct group_seen *group)
{
    for (size_t row = 0; row < result_row_count(result); row++) {
        bool is =
            !query->step_ns || result_integer(result, row, "started_ns", -1) == group->step_ns;
        for (unsigned i = 0; i < query->group_count && is; i++)
            is = is_text(result, row, query_dimension_name(query->group_by[i]), group->names[i]);
        if (is)
            return row;
    }
    fail_msg("%s: no row for %s", asked, group->names[0]);
    return 0;
}

static int by_value(const void *left, const void *right)
{
    const struct figure *a = left, *b = right;
    if (a->real < b->real || a->real > b->real)
        return a->real < b->real ? -1 : 1;
    return (a->integer > b->integer) - (a->integer < b->integer);
}

static void expect_near(double actual, double expected, double allowed, const char *what)
{
    if (!(fabs(actual - expected) <= allowed))
        fail_msg("%s: %s is %.17g, not %.17g", asked, what, actual, expected);
}

static void compare_integers(const struct result *result, size_t row,
                             const struct group_seen *group)
{
    __extension__ __int128 sum = 0;
    int64_t min = INT64_MAX, max = INT64_MIN;
    for (size_t i = 0; i < group->count; i++) {
        const int64_t value = group->values[i].integer;
        sum += value;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    const double mean = (double)((long double)sum / (long double)group->count);
    expect_near(result_number(result, row, "mean", NAN), mean, 0, "mean");
    assert_true(result_integer(result, row, "min", 0) == min);
    assert_true(result_integer(result, row, "max", 0) == max);
}

static void compare_reals(const struct result *result, size_t row, const struct group_seen *group)
{
    long double sum = 0, size = 0;
    for (size_t i = 0; i < group->count; i++) {
        sum += (long double)group->values[i].real;
        size += fabsl((long double)group->values[i].real);
    }
    const double count = (double)group->count;
    expect_near(result_number(result, row, "mean", NAN), (double)sum / count,
                1e-12 * (double)size / count, "mean");
    expect_near(result_number(result, row, "min", NAN), group->values[0].real, 0, "min");
    expect_near(result_number(result, row, "max", NAN), group->values[group->count - 1].real, 0,
                "max");
}

static void compare_row(const struct query *query, const struct result *result,
                        struct group_seen *group)
{
    static const struct {
        const char *key;
        double q;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}};
    const size_t row = find_row(query, result, group);
    if (result_integer(result, row, "count", -1) != (int64_t)group->count)
        fail_msg("%s: count is %" PRId64 ", not %zu", asked,
                 result_integer(result, row, "count", -1), group->count);
    qsort(group->values, group->count, sizeof *group->values, by_value);
    if (group->is_real)
        compare_reals(result, row, group);
    else
        compare_integers(result, row, group);
    for (size_t i = 0; i < COUNT_OF(quantiles); i++) {
        const double exact = group->values[sketch_rank(quantiles[i].q, group->count)].real;
        expect_near(result_number(result, row, quantiles[i].key, NAN), exact, 0.01 * fabs(exact),
                    quantiles[i].key);
    }
}

static void compare(struct store *store, const struct query *query,
                    const struct query_metric *metric)
{
    struct error err = {0};
    struct result *result = NULL;
    see(query, metric);
    const enum status status = store_query(store, query, &result, &err);
    if (seen_count == 0) {
        assert_int_equal(status, STATUS_NO_DATA);
        return;
    }
    if (status != STATUS_OK)
        fail_msg("%s: %s", asked, err.text);
    if (result_row_count(result) != seen_count)
        fail_msg("%s: %zu rows, not %zu", asked, result_row_count(result), seen_count);
    for (size_t i = 0; i < seen_count; i++)
        compare_row(query, result, &seen[i]);
    result_free(result);
}

// ---- Random queries -------------------------------------------------------------------------

static void pick_filter(struct query *query, const struct query_metric *metric)
{
    static const enum query_dimension dimensions[] = {
        QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE, QUERY_BY_OPERATION, QUERY_BY_RUN};
    for (size_t i = 0; i < COUNT_OF(dimensions); i++) {
        if (!schema_dimension(metric->kind, dimensions[i]))
            continue;
        if (pick(4) == 0 && query->group_count < 3)
            query->group_by[query->group_count++] = dimensions[i];
        static const int64_t first[] = {[QUERY_BY_MODEL] = 5,
                                        [QUERY_BY_HOST] = 0,
                                        [QUERY_BY_DEVICE] = 3,
                                        [QUERY_BY_OPERATION] = 8};
        if (pick(5) == 0 && dimensions[i] != QUERY_BY_RUN)
            (void)snprintf(query->filter.by[dimensions[i]], QUERY_TEXT_SIZE, "%s",
                           pick(12) ? names[first[dimensions[i]] + pick(2)] : "nobody");
    }
}

static struct query pick_query(const struct query_metric *metric)
{
    static const int64_t steps[] = {HOUR_NS, 7 * HOUR_NS, DAY_NS, 30 * DAY_NS, 90 * MINUTE_NS + 1};
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s.%s", record_kind_info(metric->kind)->name,
                   metric->name);
    pick_filter(&query, metric);
    if (pick(3))
        query.filter.since_ns = pick_time();
    if (pick(3))
        query.filter.until_ns = pick_time();
    if (query.filter.until_ns && query.filter.until_ns <= query.filter.since_ns)
        query.filter.until_ns = query.filter.since_ns + 1 + pick(40 * DAY_NS);
    if (pick(3) == 0)
        query.step_ns = steps[pick((int64_t)COUNT_OF(steps))];
    (void)snprintf(asked, sizeof asked,
                   "seed %" PRIu64 ": %s by %u, model=%s host=%s device=%s operation=%s, %" PRId64
                   "..%" PRId64 " step %" PRId64,
                   seed, query.metric, query.group_count, query.filter.by[QUERY_BY_MODEL],
                   query.filter.by[QUERY_BY_HOST], query.filter.by[QUERY_BY_DEVICE],
                   query.filter.by[QUERY_BY_OPERATION], query.filter.since_ns,
                   query.filter.until_ns, query.step_ns);
    return query;
}

static const struct query_metric *metric_of(const char *name)
{
    struct error err;
    const struct query_metric *metric = NULL;
    if (query_metric_find(&metric, name, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return metric;
}

static struct store *open_store(void)
{
    struct error err;
    struct store *store = NULL;
    if (store_open(&store, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return store;
}

static void make_store(enum record_kind kind, int64_t count)
{
    struct error err;
    (void)folder_path(path, folder, "s.db");
    (void)folder_path(full_path, folder, "full.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    exec("PRAGMA synchronous=OFF;BEGIN");
    add_names_and_runs();
    add_records(kind, count);
    exec("COMMIT");
    execf("VACUUM INTO '%s'", full_path);
    if (database_open_reader(&full, full_path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void drop_store(void)
{
    database_close(db);
    database_close(full);
    db = full = NULL;
    folder_remove(folder);
    folder_make(folder);
}

// By the collector's own code, once all buckets are over.
static void fill_by_writer(void)
{
    struct error err = {0};
    struct rollups *rollups = NULL;
    uint64_t now_ns = 0;
    if (rollups_new(&rollups, db, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    rollups_tell_time(rollups, MARCH_NS + 400 * DAY_NS);
    for (bool left = true; left;) {
        now_ns += 1000000000;
        while (rollups_are_behind(rollups, now_ns))
            rollups_catch_up(rollups, now_ns, false);
        exec("BEGIN");
        if (rollups_flush(rollups, ROLLUPS_ALL, now_ns, &left, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        exec("COMMIT");
    }
    while (rollups_prune(rollups, now_ns))
        now_ns += 1000000000;
    rollups_free(rollups);
}

// A third of the stores by the builder at any watermark, a third with wrong rows in the
// gaps, a third by the collector's code; some have no rollups.
static void fill(unsigned round, const struct query_metric *metric, int64_t count)
{
    exec("BEGIN");
    add_gaps(metric->kind);
    if (round % 7 != 6 && round % 3 < 2)
        rollup_builder_fill(db, metric, pick(4) ? pick(count + 1) : count, round % 3 == 0);
    exec("COMMIT");
    if (round % 7 != 6 && round % 3 == 2)
        fill_by_writer();
}

static void test_any_store(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 27; round++) {
        seed = 1000 + round;
        const struct query_metric *metric =
            metric_of(metric_names[(round / 3) % COUNT_OF(metric_names)]);
        const int64_t count = 1 + pick(ROWS_MAX);
        make_store(metric->kind, count);
        fill(round, metric, count);
        struct store *store = open_store();
        for (unsigned i = 0; i < 24; i++) {
            const struct query query = pick_query(metric);
            compare(store, &query, metric);
        }
        store_close(store);
        drop_store();
    }
}

// ---- Expired rows -----------------------------------------------------------------------

static int64_t count_of(const struct query *query, const struct query_metric *metric)
{
    see(query, metric);
    return seen_count ? (int64_t)seen[0].count : 0;
}

// At edges of buckets the rollups say all; between them the bucket counts whole, and
// the answer says so.
static void test_expired_rows(void **state)
{
    (void)state;
    const struct query_metric *metric = metric_of("inference.e2e_ns");
    for (unsigned round = 0; round < 12; round++) {
        seed = 2000 + round;
        make_store(metric->kind, ROWS_MAX);
        const int64_t expired_ns = rollup_bucket(ROLLUP_MINUTE, pick_time());
        const int64_t watermark = ROWS_MAX / 2 + pick(ROWS_MAX / 2);
        exec("BEGIN");
        execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
              " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
              (int)metric->kind, ROLLUP_ALL, (int)(round % 2) * ROLLUP_HOUR, INT64_MIN, expired_ns,
              ROLLUP_OLD);
        rollup_builder_fill(db, metric, watermark, true);
        execf("DELETE FROM inference WHERE started_ns < %" PRId64 " AND id <= %" PRId64, expired_ns,
              watermark);
        execf("INSERT INTO expiry VALUES(%d, %" PRId64 ")", (int)metric->kind, expired_ns);
        exec("COMMIT");
        struct store *store = open_store();
        for (unsigned i = 0; i < 40; i++) {
            struct query query = pick_query(metric);
            memset(&query.filter.by, 0, sizeof query.filter.by);
            query.group_count = 0;
            query.step_ns = 0;
            const int64_t least = count_of(&query, metric);
            struct query wide = query;
            if (wide.filter.since_ns)
                wide.filter.since_ns = rollup_bucket(ROLLUP_DAY, wide.filter.since_ns);
            if (wide.filter.until_ns)
                wide.filter.until_ns =
                    rollup_next(ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, wide.filter.until_ns - 1));
            const int64_t most = count_of(&wide, metric);
            struct error err = {0};
            struct result *result = NULL;
            const enum status status = store_query(store, &query, &result, &err);
            assert_true(status == STATUS_OK || (status == STATUS_NO_DATA && least == 0));
            const int64_t count = result ? result_integer(result, 0, "count", -1) : 0;
            if (count < least || count > most)
                fail_msg("%s: %" PRId64 " of %" PRId64 " to %" PRId64, asked, count, least, most);
            if (count != least)
                assert_false(is_text(result, 0, "note", ""));
            result_free(result);
            if (!wide.filter.since_ns || !wide.filter.until_ns ||
                wide.filter.since_ns < wide.filter.until_ns)
                compare(store, &wide, metric);
        }
        store_close(store);
        drop_store();
    }
}

// Runs are in no rollup: what expired of them is not there, and that is said.
static void test_expired_runs(void **state)
{
    (void)state;
    const struct query_metric *metric = metric_of("inference.e2e_ns");
    seed = 3000;
    make_store(metric->kind, ROWS_MAX);
    rollup_builder_fill(db, metric, ROWS_MAX, false);
    execf("DELETE FROM inference WHERE started_ns < %" PRId64, MARCH_NS);
    execf("INSERT INTO expiry VALUES(%d, %" PRId64 ")", (int)metric->kind, MARCH_NS);
    struct store *store = open_store();
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .group_count = 1};
    query.group_by[0] = QUERY_BY_RUN;
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_OK);
    assert_true(is_text(result, 0, "note",
                        "records before 2026-03-01 00:00 UTC have expired; they are in no rollup of"
                        " this question, and not counted"));
    result_free(result);
    store_close(store);
}

// ---- Summaries ----------------------------------------------------------------------------

// Whether both answers say the same, sums of reals but for their last digits.
static void expect_same(const struct result *a, const struct result *b)
{
    assert_int_equal(result_row_count(a), result_row_count(b));
    for (size_t row = 0; row < result_row_count(a); row++)
        for (unsigned i = 0; i < result_column_count(a); i++) {
            const struct value left = result_cell(a, row, i), right = result_cell(b, row, i);
            const char *key = result_column(a, i)->key;
            if (strcmp(key, "store_bytes") == 0)
                continue;
            const bool same =
                left.type == right.type &&
                (left.type == VALUE_NULL || (left.type == VALUE_INT && left.i == right.i) ||
                 (left.type == VALUE_REAL && fabs(left.r - right.r) <= 1e-9 * fabs(right.r)) ||
                 (left.type == VALUE_TEXT && left.text.size == right.text.size &&
                  memcmp(left.text.bytes, right.text.bytes, left.text.size) == 0));
            if (!same)
                fail_msg("%s: row %zu: %s: types %d and %d, %" PRId64 " and %" PRId64 ", %g and %g",
                         asked, row, key, (int)left.type, (int)right.type, left.i, right.i, left.r,
                         right.r);
        }
}

static struct result *ask_either(struct store *store, const struct query *query,
                                 enum status *status)
{
    struct error err = {0};
    struct result *result = NULL;
    *status = store_query(store, query, &result, &err);
    if (*status != STATUS_OK && *status != STATUS_NO_DATA)
        fail_msg("%s: %s", asked, err.text);
    return result;
}

// A store with rollups says what the same one without any says.
static void test_summaries(void **state)
{
    (void)state;
    static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE, RECORD_KIND_LOAD,
                                             RECORD_KIND_OPERATION, RECORD_KIND_STARTUP};
    static const enum query_kind asks[] = {QUERY_SUMMARY, QUERY_OVERVIEW};
    for (unsigned round = 0; round < 4; round++) {
        seed = 5000 + round;
        make_store(RECORD_KIND_INFERENCE, 60);
        exec("BEGIN");
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            const struct query_metric *metrics[ROLLUP_METRICS_MAX];
            const unsigned count = rollup_metrics(kinds[k], metrics);
            if (k > 0)
                add_records(kinds[k], 40);
            add_gaps(kinds[k]);
            for (unsigned m = 0; m < count; m++)
                rollup_builder_fill(db, metrics[m], pick(60), false);
        }
        exec("COMMIT");
        database_close(full);
        full = NULL;
        (void)remove(full_path);
        execf("VACUUM INTO '%s'", full_path);
        struct error err = {0};
        if (database_open_writer(&full, full_path, &err) != STATUS_OK ||
            database_exec(full, "DELETE FROM rollup; DELETE FROM rollup_state", &err) != STATUS_OK)
            fail_msg("%s", err.text);
        struct store *stores[2] = {NULL, NULL};
        if (store_open(&stores[0], path, &err) != STATUS_OK ||
            store_open(&stores[1], full_path, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        for (unsigned i = 0; i < 40; i++) {
            struct query query = pick_query(metric_of("inference.e2e_ns"));
            query.kind = asks[i % COUNT_OF(asks)];
            query.group_count = 0;
            query.step_ns = 0;
            enum status statuses[2];
            struct result *answers[2];
            for (size_t s = 0; s < COUNT_OF(stores); s++)
                answers[s] = ask_either(stores[s], &query, &statuses[s]);
            assert_int_equal(statuses[0], statuses[1]);
            if (statuses[0] == STATUS_OK)
                expect_same(answers[0], answers[1]);
            result_free(answers[0]);
            result_free(answers[1]);
        }
        store_close(stores[0]);
        store_close(stores[1]);
        drop_store();
    }
}

// ---- Edges --------------------------------------------------------------------------------

static void test_steps_have_a_bound(void **state)
{
    (void)state;
    seed = 4000;
    make_store(RECORD_KIND_INFERENCE, ROWS_MAX);
    struct store *store = open_store();
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = 1};
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "at most 10000 (--step "));
    // What it says to do is enough, and not much too much.
    const char *advice = strstr(err.text, "(--step ") + strlen("(--step ");
    char unit = '\0';
    long long step = 0;
    assert_int_equal(sscanf(advice, "%lld%c or longer", &step, &unit), 2);
    const int64_t unit_ns = unit == 'd'   ? DAY_NS
                            : unit == 'h' ? HOUR_NS
                            : unit == 'm' ? MINUTE_NS
                                          : 0;
    query.step_ns = step * unit_ns;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_OK);
    result_free(result);
    query.step_ns /= 4;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_INVALID);
    query.step_ns = 1;
    query.filter.since_ns = INT64_MAX - 1; // nothing is there yet
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
    query.filter.since_ns = 0;
    query.filter.until_ns = 1;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
    store_close(store);
}

// ---- Steps over expired rows ----------------------------------------------------------------

enum { MINUTES = 300, MINUTES_EXPIRED = 240 };

// A record in the middle of each minute from March on, of which the older have expired, and
// of these the minutes' rollups up to `without_minutes`.
static void make_minutes(int64_t expired, int64_t without_minutes)
{
    seed = 5000;
    make_store(RECORD_KIND_INFERENCE, MINUTES);
    exec("BEGIN");
    execf("UPDATE inference SET e2e_ns = id, started_ns = %" PRId64 " + (id - 1) * %" PRId64,
          MARCH_NS + MINUTE_NS / 2, MINUTE_NS);
    if (without_minutes)
        execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
              " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
              (int)RECORD_KIND_INFERENCE, ROLLUP_ALL, ROLLUP_MINUTE, INT64_MIN,
              MARCH_NS + without_minutes * MINUTE_NS, ROLLUP_OLD);
    rollup_builder_fill(db, metric_of("inference.e2e_ns"), MINUTES, false);
    execf("DELETE FROM inference WHERE id <= %" PRId64, expired);
    execf("INSERT INTO expiry VALUES(%d, %" PRId64 ")", (int)RECORD_KIND_INFERENCE,
          MARCH_NS + expired * MINUTE_NS);
    exec("COMMIT");
}

// Steps of a window, in minutes and seconds of March; until 0: it is open.
static const struct {
    int64_t expired, without_minutes, since, until, step_s;
    int64_t rows, first, first_count, last, last_count;
    const char *note; // a part of it; NULL: there is none
} windows[] = {
    // Open, at its end and at both.
    {MINUTES_EXPIRED, 0, 0, 0, 60, 300, 0, 1, 299, 1, NULL},
    {MINUTES_EXPIRED, 0, 200, 0, 60, 100, 200, 1, 299, 1, NULL},
    {MINUTES_EXPIRED, 0, -1, 0, 60, 300, 0, 1, 299, 1, NULL},
    {MINUTES_EXPIRED, 0, 250, 0, 1, 50, 250, 1, 299, 1, NULL},
    {MINUTES, 0, 200, 0, 1, 100, 200, 1, 299, 1, "counted in the step where it begins"},
    {MINUTES, 0, -1, 0, 60, 300, 0, 1, 299, 1, NULL},
    // Hours in place of minutes count where they begin, or where the window does.
    {MINUTES_EXPIRED, 120, -1, 0, 60, 182, 0, 60, 299, 1, "a whole hour"},
    {MINUTES_EXPIRED, 120, 90, 0, 60, 181, 90, 60, 299, 1, "counted in the step where it begins"},
    {MINUTES_EXPIRED, 120, 0, 0, 3600, 5, 0, 60, 240, 60, NULL},
    {MINUTES, 300, 0, 0, 60, 5, 0, 60, 240, 60, "a whole hour"},
    {MINUTES_EXPIRED, 120, 30, 60, 60, 1, 30, 60, 30, 60, "a whole hour"},
};

static void expect_step(const struct result *result, size_t row, int64_t minute, int64_t count)
{
    const int64_t started_ns = result_integer(result, row, "started_ns", -1);
    const int64_t in_second = (started_ns - MARCH_NS) % MINUTE_NS;
    if (started_ns - in_second != MARCH_NS + minute * MINUTE_NS || in_second > MINUTE_NS / 2 ||
        result_integer(result, row, "count", -1) != count)
        fail_msg("%s: row %zu: %" PRId64 " at %" PRId64 " s, not %" PRId64 " in minute %" PRId64,
                 asked, row, result_integer(result, row, "count", -1),
                 (started_ns - MARCH_NS) / (MINUTE_NS / 60), count, minute);
}

static void check_window(size_t at)
{
    struct query query = {
        .kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = windows[at].step_s * MINUTE_NS / 60};
    (void)snprintf(asked, sizeof asked, "window %zu", at);
    if (windows[at].since >= 0)
        query.filter.since_ns = MARCH_NS + windows[at].since * MINUTE_NS;
    if (windows[at].until)
        query.filter.until_ns = MARCH_NS + windows[at].until * MINUTE_NS;
    struct store *store = open_store();
    struct error err = {0};
    struct result *result = NULL;
    if (store_query(store, &query, &result, &err) != STATUS_OK)
        fail_msg("%s: %s", asked, err.text);
    if ((int64_t)result_row_count(result) != windows[at].rows)
        fail_msg("%s: %zu rows", asked, result_row_count(result));
    expect_step(result, 0, windows[at].first, windows[at].first_count);
    expect_step(result, result_row_count(result) - 1, windows[at].last, windows[at].last_count);
    const struct value note = result_cell(result, 0, (unsigned)result_find(result, "note"));
    const char *wanted = windows[at].note;
    if (wanted ? note.type != VALUE_TEXT ||
                     !memmem(note.text.bytes, note.text.size, wanted, strlen(wanted))
               : note.type != VALUE_NULL)
        fail_msg("%s: note \"%.*s\"", asked, note.type == VALUE_TEXT ? (int)note.text.size : 0,
                 note.type == VALUE_TEXT ? note.text.bytes : "");
    result_free(result);
    store_close(store);
}

static void test_steps_over_expired_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        make_minutes(windows[i].expired, windows[i].without_minutes);
        check_window(i);
        drop_store();
    }
}

// Records in hours whose newest minutes are in no rollup are not cut off.
static void test_steps_end_behind_gaps(void **state)
{
    (void)state;
    make_minutes(MINUTES, 0);
    const int64_t of[] = {MARCH_NS + 270 * MINUTE_NS, MARCH_NS + 300 * MINUTE_NS};
    execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
          " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
          (int)RECORD_KIND_INFERENCE, ROLLUP_ALL, ROLLUP_MINUTE, of[0], of[1], ROLLUP_OLD);
    execf("DELETE FROM rollup WHERE level = %d AND started_ns >= %" PRId64, ROLLUP_MINUTE, of[0]);
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = HOUR_NS};
    query.filter.since_ns = MARCH_NS;
    struct store *store = open_store();
    struct error err = {0};
    struct result *result = NULL;
    if (store_query(store, &query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(result_row_count(result), 5);
    for (size_t i = 0; i < 5; i++)
        expect_step(result, i, (int64_t)i * 60, 60);
    result_free(result);
    store_close(store);
}

// The end of an open window is the newest record, though its hour is in no rollup.
static void test_steps_end_in_gaps(void **state)
{
    (void)state;
    make_minutes(MINUTES_EXPIRED, 0);
    const int64_t of[] = {MARCH_NS + MINUTES_EXPIRED * MINUTE_NS, MARCH_NS + 6 * HOUR_NS};
    execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
          " VALUES(%d, %d, %d, %" PRId64 ", %" PRId64 ", %d)",
          (int)RECORD_KIND_INFERENCE, ROLLUP_ALL, ROLLUP_HOUR, of[0], of[1], ROLLUP_SPARSE);
    execf("DELETE FROM rollup WHERE level <= %d AND started_ns >= %" PRId64, ROLLUP_HOUR, of[0]);
    struct query query = {.kind = QUERY_AVERAGE, .metric = "e2e_ns", .step_ns = MINUTE_NS / 60};
    query.filter.since_ns = MARCH_NS + 200 * MINUTE_NS;
    struct store *store = open_store();
    struct error err = {0};
    struct result *result = NULL;
    if (store_query(store, &query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(result_row_count(result), 100);
    expect_step(result, 99, 299, 1);
    result_free(result);
    store_close(store);
}

static int set_up(void **state)
{
    (void)state;
    folder_make(folder);
    seen = calloc(GROUPS_SEEN_MAX, sizeof *seen);
    return seen ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    database_close(db);
    database_close(full);
    db = full = NULL;
    folder_remove(folder);
    free(seen);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expired_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expired_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_summaries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps_have_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps_over_expired_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps_end_behind_gaps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_steps_end_in_gaps, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
