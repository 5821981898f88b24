#include "tests/unit/store/random_store.h"

#include <inttypes.h>
#include <math.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_select.h"
#include "tests/support/test.h"

char full_path[FOLDER_PATH_SIZE];
sqlite3 *full;
uint64_t seed;
bool implausible_times;

int64_t pick(int64_t room)
{
    return (int64_t)(test_random(&seed) % (uint64_t)room);
}

const char *const rig_metrics[RIG_METRICS] = {
    "inference.ttft_ns",           "inference.e2e_ns",
    "inference.tokens_per_second", "operation.duration_ns",
    "operation.items_per_second",  "process_sample.cpu_ratio",
    "load.memory_delta_bytes",     "process_sample.device_memory_bytes",
    "load.page_cache_ratio",       "process_sample.running_requests",
};

const char *const rig_names[RIG_NAMES] = {"alpha", "beta", "gamma", "cpu",
                                          "gpu",   "tiny", "small", "x'; DROP TABLE name; --",
                                          "read",  "build"};

int64_t pick_time(void)
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
    // Of durations only ttft_ns is ever negative.
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

void add_records(enum record_kind kind, int64_t count)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *text = sqlite3_str_new(db);
    schema_insert_sql(text, kind);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    for (int64_t i = 1; i <= count; i++) {
        const int64_t absurd[] = {INT64_MIN, 0, INT64_MAX, MARCH_NS + 3000 * DAY_NS};
        const bool is_absurd = implausible_times && pick(8) == 0;
        const int64_t started_ns =
            is_absurd ? absurd[pick((int64_t)COUNT_OF(absurd))] : pick_time();
        const int64_t numbers[] = {i, 1 + pick(RUNS), 0, i, started_ns, MARCH_NS + 40 * DAY_NS};
        for (size_t n = 0; n < COUNT_OF(numbers); n++)
            (void)sqlite3_bind_int64(stmt, (int)n + 1, numbers[n]);
        for (unsigned c = 0; c < info->column_count; c++)
            bind_value(stmt, SCHEMA_FIRST_COLUMN + (int)c, &info->columns[c]);
        assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
}

void add_gaps(enum record_kind kind)
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
    for (size_t i = 0; i < RIG_NAMES; i++) {
        char *sql =
            sqlite3_mprintf("INSERT INTO name(id, text) VALUES(%d, %Q)", (int)i + 1, rig_names[i]);
        exec(sql);
        sqlite3_free(sql);
    }
    for (int run = 1; run <= RUNS; run++)
        store_run(run, 1 + run % HOSTS, RECORD_RUN_END_CLOSED, 1, INT64_MAX);
    exec("UPDATE run SET stored = 10");
}

const struct query_metric *metric_of(const char *name)
{
    struct error err;
    const struct query_metric *metric = NULL;
    expect_ok(query_metric_find(&metric, name, &err), &err);
    return metric;
}

struct store *open_store(void)
{
    struct error err;
    struct store *opened = NULL;
    expect_ok(store_open(&opened, path, &err), &err);
    return opened;
}

void make_store(enum record_kind kind, int64_t count)
{
    struct error err;
    (void)folder_path(path, folder, "s.db");
    (void)folder_path(full_path, folder, "full.db");
    expect_ok(database_open_writer(&db, path, &err), &err);
    exec("PRAGMA synchronous=OFF;BEGIN");
    add_names_and_runs();
    add_records(kind, count);
    exec("COMMIT");
    execf("VACUUM INTO '%s'", full_path);
    expect_ok(database_open_reader(&full, full_path, &err), &err);
}

int random_set_up(__attribute__((unused)) void **state)
{
    folder_make(folder);
    return 0;
}

int random_tear_down(void **state)
{
    database_close(full);
    full = NULL;
    return store_tear_down(state);
}

void drop_store(void)
{
    database_close(db);
    database_close(full);
    db = full = NULL;
    folder_remove(folder);
    folder_make(folder);
}

int64_t integer_in(sqlite3 *of, const char *sql)
{
    struct error err;
    int64_t value = 0;
    if (database_integer(of, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

void make_random(int64_t count)
{
    make_store(RECORD_KIND_INFERENCE, count);
    exec("UPDATE inference SET received_ns = started_ns + abs(random() % 1000000000) WHERE id % 7");
    exec("UPDATE inference SET prefill_ns = 'text' WHERE id % 53 = 0");
    exec("UPDATE inference SET finish = 3 WHERE id % 11 = 3");
    exec("UPDATE inference SET number = id, stream = 0");
    execf("INSERT OR REPLACE INTO ledger(run, kind, stored) SELECT run, %d, count(*)"
          " FROM inference GROUP BY run",
          (int)RECORD_KIND_INFERENCE);
}
