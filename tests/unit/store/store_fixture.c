#include "tests/unit/store/store_fixture.h"

#include <math.h>

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_select.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"

char folder[FOLDER_PATH_SIZE];
char path[FOLDER_PATH_SIZE];
sqlite3 *db;
struct store *store;

void exec(const char *sql)
{
    struct error err;
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

void execf(const char *format, ...)
{
    char sql[4096];
    va_list list;
    va_start(list, format);
    const int size = vsnprintf(sql, sizeof sql, format, list);
    va_end(list);
    assert_in_range(size, 1, sizeof sql - 1);
    exec(sql);
}

double store_number(const char *sql)
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

int64_t integer(const char *sql)
{
    struct error err;
    int64_t value = 0;
    if (database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

int store_make(__attribute__((unused)) void **state)
{
    struct error err = {0};
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    expect_ok(database_open_writer(&db, path, &err), &err);
    exec("PRAGMA synchronous = OFF"); // nothing here asks what a disk keeps
    return 0;
}

int store_read(void)
{
    struct error err = {0};
    expect_ok(store_open(&store, path, &err), &err);
    return 0;
}

void store_run(int64_t run, int host, enum record_run_end end, int64_t started_ns, int64_t heard_ns)
{
    execf(
        "INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\", worker_version,"
        " protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count, produced, stored,"
        " duplicates, heard_ns) VALUES(%lld, %lld, %lld, '%08lld-0000-4000-8000-000000000000',"
        " %d, 1, %d, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0, 0, 0, %lld)",
        (long long)run, (long long)started_ns, (long long)started_ns, (long long)run, host,
        (int)end, (long long)heard_ns);
}

int store_set_up(void **state)
{
    store_make(state);
    exec("INSERT INTO name(id, text) VALUES (1, 'alpha'), (2, 'beta'), (3, 'cpu'), (4, 'gpu'),"
         " (5, 'tiny'), (6, 'big''; DROP TABLE inference; --'), (7, 'read'), (8, 'build')");
    for (int run = 1; run <= 2; run++)
        store_run(run, run, run == 1 ? RECORD_RUN_END_CLOSED : RECORD_RUN_END_OPEN, START_NS,
                  START_NS + 1000000);
    // The second has lost 10 of 30 and 5 without numbers.
    exec("UPDATE run SET stored = CASE run WHEN 1 THEN 100 ELSE 20 END, duplicates = 3, uuid ="
         " printf('%08d-0000-4000-8000-00000000000%d', 12340000 + run, run);"
         "INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(1, 0, 101, 100, 0),"
         " (2, 0, 31, 32, 5);"
         "INSERT INTO range(run, stream, first, last, state, reason) VALUES(1, 0, 1, 100, 0, NULL),"
         " (2, 0, 1, 20, 0, NULL), (2, 0, 21, 30, 1, 1);"
         "INSERT INTO ledger(run, kind, stored) VALUES(1, 6, 100), (2, 6, 20);"
         "INSERT INTO run_name SELECT run, id, id FROM run, name WHERE id BETWEEN 3 AND 6");
    return store_read();
}

int store_tear_down(__attribute__((unused)) void **state)
{
    store_close(store);
    database_close(db);
    store = NULL;
    db = NULL;
    folder_remove(folder);
    return 0;
}

// Inferences with random figures, some absent, some huge.
void store_add_inferences(unsigned count)
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

struct result *ask(const struct query *query)
{
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(store, query, &result, &err), &err);
    return result;
}

// Inserts one row of each kind whose columns hold their own position.
void store_add_one_of_each(void)
{
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        sqlite3_str *sql = sqlite3_str_new(db);
        sqlite3_str_appendall(sql, "INSERT ");
        schema_append_copy(sql, (enum record_kind)kind, info->name);
        sqlite3_str_appendf(sql,
                            " FROM (SELECT 1 AS id, 1 AS run, 0 AS stream, %u AS number,"
                            " %lld AS started_ns, %lld AS received_ns",
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
            sqlite3_str_appendf(sql, " AS \"%w\"", info->columns[c].name);
        }
        sqlite3_str_appendall(sql, ")");
        char *text = sqlite3_str_finish(sql);
        exec(text);
        sqlite3_free(text);
    }
}

void expect_error(const struct query *query, enum status expected, const char *words)
{
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, query, &result, &err), expected);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

void expect_close(double actual, double expected, const char *what)
{
    if (isnan(expected) ? !isnan(actual) : !(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%s: %.17g instead of %.17g", what, actual, expected);
}

void expect_same_cell(struct value a, struct value b, const char *what)
{
    if (a.type != b.type || (a.type == VALUE_TEXT && !value_is_same(a, b)))
        fail_msg("%s is not the same", what);
    if (a.type == VALUE_INT || a.type == VALUE_REAL)
        expect_close(value_number(a, 0), value_number(b, 0), what);
}

struct query store_average_of(const char *metric)
{
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    return query;
}
