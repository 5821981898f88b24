// Columns that are kept as what they exceed others by: what goes in comes out, whatever
// 64-bit integers it is, by every way in and out.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/database.h"
#include "common/store/excess.h"
#include "common/store/schema.h"
#include "common/store/schema_tables.h"
#include "common/store/store.h"
#include "common/wire/codec.h"
#include "server/collector/writer/writer_insert.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

enum { BATCHES = 40, BATCH = 64, RECORDS = BATCHES * BATCH };

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
static sqlite3 *db;
static uint64_t seed;

static struct record records[RECORDS];
static int64_t received[RECORDS];

static void exec(const char *sql)
{
    struct error err = {0};
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

static int64_t integer(const char *sql)
{
    struct error err = {0};
    int64_t value = 0;
    if (database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

static void open_store(void)
{
    struct error err = {0};
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    exec("PRAGMA synchronous = OFF");
}

static int set_up(void **state)
{
    (void)state;
    seed = 4711;
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    open_store();
    exec("INSERT INTO name VALUES(1, 'a'), (2, 'b');"
         "INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\", worker_version,"
         " protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count, produced, stored,"
         " duplicates, heard_ns) VALUES(1, 1, 1, '01020304-0000-4000-8000-000000000001', 1, 1, 0,"
         " 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0, 1, 0, 1)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    database_close(db);
    db = NULL;
    folder_remove(folder);
    return 0;
}

// ---- Values -------------------------------------------------------------------------------

// The clocks are those of 1970, 2026 and 2262.
static const int64_t edges[] = {
    0,
    1,
    -1,
    INT64_MAX,
    INT64_MIN,
    INT64_MAX - 1,
    INT64_MIN + 1,
    INT64_MAX / 2,
    INT64_MIN / 2,
    INT64_MAX / 2 + 1,
    INT64_MIN / 2 - 1,
    INT64_C(1790000000000000000),
    INT64_C(9223286400000000000),
    INT64_C(9007199254740993), // no double holds it
    -INT64_C(9007199254740993),
    1000000,
};

static int64_t some_integer(void)
{
    const uint64_t bits = test_random(&seed), how = test_random(&seed) % 4;
    if (how == 0)
        return (int64_t)bits;
    if (how == 1)
        return (int64_t)(bits >> (20 + bits % 40));
    return edges[bits % COUNT_OF(edges)];
}

static void make_record(struct record *record, enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    record_init(record, kind, some_integer());
    for (unsigned c = 0; c < info->column_count; c++) {
        const enum column_type type = info->columns[c].type;
        if (info->columns[c].maybe && test_random(&seed) % 4 == 0)
            continue;
        if (type == COLUMN_REAL)
            record_set_real(record, c, 0.5);
        else if (type == COLUMN_NAME)
            record_set_name(record, c, 1 + (uint32_t)(test_random(&seed) % 2));
        else if (type == COLUMN_TEXT || type == COLUMN_BLOB)
            (void)record_set_text(record, c, "t", 1);
        else if (type == COLUMN_INT)
            record_set_int(record, c, some_integer());
        else
            record_set_int(record, c, (int64_t)(test_random(&seed) % 2));
    }
}

// Half of the inferences are as trackers give them: the parts are the whole.
static void make_records(enum record_kind kind)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        struct record *record = &records[i];
        make_record(record, kind);
        received[i] = some_integer();
        if (kind != RECORD_KIND_INFERENCE || i % 2)
            continue;
        const int64_t queue = (int64_t)(test_random(&seed) >> 40);
        const int64_t prefill = (int64_t)(test_random(&seed) >> 35);
        const int64_t decode = (int64_t)(test_random(&seed) >> 30);
        record_set_int(record, INFERENCE_QUEUE_NS, queue);
        record_set_int(record, INFERENCE_PREFILL_NS, prefill);
        record_set_int(record, INFERENCE_TTFT_NS, queue + prefill);
        record_set_int(record, INFERENCE_DECODE_NS, decode);
        record_set_int(record, INFERENCE_E2E_NS, queue + prefill + decode);
    }
}

// ---- Ways in ------------------------------------------------------------------------------

static void insert_as_collector(void)
{
    struct error err = {0};
    struct inserter *inserter = NULL;
    struct table_builder *builder = NULL;
    const int64_t names[] = {1, 2};
    assert_int_equal(inserter_new(&inserter, db, &err), STATUS_OK);
    assert_int_equal(table_builder_new(&builder), STATUS_OK);
    exec("BEGIN");
    for (unsigned first = 0; first < RECORDS; first += BATCH) {
        table_builder_reset(builder);
        for (unsigned i = first; i < first + BATCH; i++) {
            received[i] = received[first];
            assert_int_equal(table_builder_add(builder, i + 1, &records[i]), STATUS_OK);
        }
        size_t tables = 0;
        const struct wire_table *table = table_builder_tables(builder, &tables);
        const struct insert_run run = {
            .run = 1, .received_ns = received[first], .names = names, .name_count = 2};
        int64_t stored = 0, suspects = 0;
        assert_int_equal(tables, 1);
        if (insert_table(inserter, &run, table, 1, &stored, &suspects, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_int_equal(stored, BATCH);
    }
    exec("COMMIT");
    table_builder_free(builder);
    inserter_free(inserter);
}

static void bind_record(sqlite3_stmt *stmt, unsigned i)
{
    const struct record *record = &records[i];
    const struct record_kind_info *info = record_kind_info((enum record_kind)record->kind);
    const int64_t common[] = {i + 1, 1, 0, i + 1, record->started_ns, received[i]};
    for (int p = 0; p < SCHEMA_FIRST_COLUMN - 1; p++)
        (void)sqlite3_bind_int64(stmt, p + 1, common[p]);
    for (unsigned c = 0; c < info->column_count; c++) {
        const int p = SCHEMA_FIRST_COLUMN + (int)c;
        if (!record_has(record, c))
            (void)sqlite3_bind_null(stmt, p);
        else if (info->columns[c].type == COLUMN_REAL)
            (void)sqlite3_bind_double(stmt, p, record->values[c].r);
        else if (info->columns[c].type == COLUMN_TEXT || info->columns[c].type == COLUMN_BLOB)
            (void)sqlite3_bind_text(stmt, p, "t", 1, SQLITE_STATIC);
        else if (info->columns[c].type == COLUMN_NAME)
            (void)sqlite3_bind_int64(stmt, p, record->values[c].name);
        else
            (void)sqlite3_bind_int64(stmt, p, record->values[c].i);
    }
}

static void insert_with(char *sql)
{
    sqlite3_stmt *stmt = NULL;
    struct error err = {0};
    assert_non_null(sql);
    if (database_prepare(db, &stmt, sql, false, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    exec("BEGIN");
    for (unsigned i = 0; i < RECORDS; i++) {
        bind_record(stmt, i);
        if (database_run(db, stmt, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    }
    exec("COMMIT");
    (void)sqlite3_finalize(stmt);
    sqlite3_free(sql);
}

static void insert_as_sql(void)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    schema_insert_sql(sql, (enum record_kind)records[0].kind);
    insert_with(sqlite3_str_finish(sql));
}

// As version 4 has it, which keeps every column as it is; and what others may have made.
static void make_old_table(enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "DROP TABLE \"%w\"; CREATE TABLE \"%w\"(id INTEGER PRIMARY KEY,"
                        " run INTEGER NOT NULL, stream INTEGER NOT NULL, number INTEGER NOT NULL,"
                        " started_ns INTEGER NOT NULL, received_ns INTEGER NOT NULL",
                        info->name, info->name);
    for (unsigned c = 0; c < info->column_count; c++)
        sqlite3_str_appendf(sql, ", \"%w\" INTEGER%s", info->columns[c].name,
                            info->columns[c].maybe ? "" : " NOT NULL");
    sqlite3_str_appendf(sql,
                        ");CREATE INDEX \"%w_started\" ON \"%w\"(started_ns);"
                        "CREATE INDEX mine ON \"%w\"(number);"
                        "CREATE VIEW v_mine AS SELECT max(received_ns) AS last FROM \"%w\";"
                        "PRAGMA user_version = 4",
                        info->name, info->name, info->name, info->name);
    char *text = sqlite3_str_finish(sql);
    exec(text);
    sqlite3_free(text);
}

static void insert_and_migrate(void)
{
    const struct record_kind_info *info = record_kind_info((enum record_kind)records[0].kind);
    make_old_table((enum record_kind)records[0].kind);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES(?", info->name);
    for (unsigned c = 1; c < SCHEMA_FIRST_COLUMN - 1 + info->column_count; c++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    insert_with(sqlite3_str_finish(sql));
    const int64_t last = integer("SELECT last FROM v_mine");
    database_close(db);
    open_store();
    assert_int_equal(integer("PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(integer("SELECT count(*) FROM sqlite_schema WHERE name = 'mine'"), 1);
    assert_int_equal(integer("SELECT last FROM v_mine"), last);
}

// ---- Ways out -----------------------------------------------------------------------------

static void expect_integer(sqlite3_stmt *row, int place, bool has, int64_t expected)
{
    if (!has && sqlite3_column_type(row, place) == SQLITE_NULL)
        return;
    if (!has || sqlite3_column_type(row, place) != SQLITE_INTEGER ||
        sqlite3_column_int64(row, place) != expected)
        fail_msg("row %lld: %s is %s, not %" PRId64, (long long)sqlite3_column_int64(row, 0),
                 sqlite3_column_name(row, place), (const char *)sqlite3_column_text(row, place),
                 expected);
}

// As anybody reads it.
static void expect_rows(void)
{
    const enum record_kind kind = (enum record_kind)records[0].kind;
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "SELECT id, started_ns, received_ns");
    for (unsigned c = 0; c < info->column_count; c++)
        sqlite3_str_appendf(sql, ", \"%w\"", info->columns[c].name);
    sqlite3_str_appendf(sql, " FROM \"%w\" ORDER BY id", info->name);
    char *text = sqlite3_str_finish(sql);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(text);
    unsigned i = 0;
    for (; sqlite3_step(stmt) == SQLITE_ROW; i++) {
        assert_true(i < RECORDS);
        expect_integer(stmt, 0, true, i + 1);
        expect_integer(stmt, 1, true, records[i].started_ns);
        expect_integer(stmt, 2, true, received[i]);
        for (unsigned c = 0; c < info->column_count; c++)
            if (info->columns[c].type == COLUMN_INT)
                expect_integer(stmt, 3 + (int)c, record_has(&records[i], c),
                               records[i].values[c].i);
    }
    assert_int_equal(i, RECORDS);
    (void)sqlite3_finalize(stmt);
}

// As queries read it.
static void expect_listed(void)
{
    struct error err = {0};
    struct store *store = NULL;
    struct query query = {.kind = QUERY_RECORDS,
                          .records.kind = (enum record_kind)records[0].kind,
                          .limit = 500,
                          .records.oldest_first = true};
    const struct record_kind_info *info = record_kind_info(query.records.kind);
    assert_int_equal(store_open(&store, path, &err), STATUS_OK);
    size_t seen = 0;
    do {
        struct result *result = NULL;
        if (store_query(store, &query, &result, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        for (size_t row = 0; row < result_row_count(result); row++, seen++) {
            const size_t i = (size_t)result_integer(result, row, "number", 0) - 1;
            assert_true(i < RECORDS);
            assert_int_equal(result_integer(result, row, "received_ns", 0), received[i]);
            for (unsigned c = 0; c < info->column_count; c++) {
                const int place = result_find(result, info->columns[c].name);
                if (info->columns[c].type != COLUMN_INT || place < 0)
                    continue;
                const struct value cell = result_cell(result, row, (unsigned)place);
                assert_int_equal(cell.type, record_has(&records[i], c) ? VALUE_INT : VALUE_NULL);
                if (cell.type == VALUE_INT)
                    assert_int_equal(cell.i, records[i].values[c].i);
            }
        }
        query.cursor = result_next_cursor(result);
        result_free(result);
    } while (query.cursor);
    assert_int_equal(seen, RECORDS);
    store_close(store);
}

// A row keeps nothing where the parts are the whole, and texts only where it must.
static void expect_kept(void)
{
    if (records[0].kind != RECORD_KIND_INFERENCE)
        return;
    assert_int_equal(integer("SELECT count(*) FROM inference WHERE id % 2 = 1 AND"
                             " (prefill_excess_ns IS NOT 0 OR decode_excess_ns IS NOT 0)"),
                     0);
    assert_true(integer("SELECT count(*) FROM inference WHERE typeof(prefill_excess_ns) = 'text'") >
                RECORDS / 20);
    assert_true(integer("SELECT count(*) FROM inference WHERE typeof(received_after_ns) = 'text'") >
                RECORDS / 20);
}

static void check_way(void (*insert)(void))
{
    char sql[128];
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const char *name = record_kind_info((enum record_kind)kind)->name;
        make_records((enum record_kind)kind);
        insert();
        expect_rows();
        expect_kept();
        expect_listed();
        (void)snprintf(sql, sizeof sql, "DROP VIEW IF EXISTS v_mine; DELETE FROM \"%s\"", name);
        exec(sql);
        exec("DROP INDEX IF EXISTS mine");
    }
    assert_int_equal(integer("SELECT count(*) FROM pragma_integrity_check WHERE"
                             " integrity_check <> 'ok'"),
                     0);
}

static void test_through_the_collector(void **state)
{
    (void)state;
    check_way(insert_as_collector);
}

static void test_through_sql(void **state)
{
    (void)state;
    check_way(insert_as_sql);
}

static void test_through_a_migration(void **state)
{
    (void)state;
    check_way(insert_and_migrate);
}

// More rows than go over at once, with holes between their ids.
static void test_a_migration_of_many_rows(void **state)
{
    (void)state;
    static const char count[] = "SELECT count(*) * 1000 + sum(id) + sum(received_ns - started_ns) +"
                                " sum(duration_ns) + min(id) + max(id) FROM operation";
    make_old_table(RECORD_KIND_OPERATION);
    exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)"
         " INSERT INTO operation(id, run, stream, number, started_ns, received_ns, operation,"
         " duration_ns) SELECT 7 * i - 3, 1, 0, i, 1790000000000000000 + i,"
         " 1790000000000000000 + 5 * i, 1, i FROM n;"
         "CREATE TRIGGER mine_too AFTER DELETE ON Operation BEGIN"
         " SELECT raise(ABORT, 'rows are kept'); END");
    const int64_t expected = integer(count);
    database_close(db);
    open_store();
    assert_int_equal(integer(count), expected);
    assert_int_equal(integer("SELECT count(*) FROM operation INDEXED BY operation_started WHERE"
                             " started_ns >= 0"),
                     45000);
    assert_int_not_equal(sqlite3_exec(db, "DELETE FROM operation", NULL, NULL, NULL), SQLITE_OK);
    // As many pages as before: what has moved made room.
    assert_true(integer("SELECT freelist_count * 3 < page_count FROM pragma_freelist_count,"
                        " pragma_page_count"));
}

// SQLite's own check takes generated columns of all these for sound.
static void test_a_full_store_is_sound(void **state)
{
    (void)state;
    make_records(RECORD_KIND_INFERENCE);
    insert_as_sql();
    assert_int_equal(integer("SELECT count(*) FROM pragma_integrity_check WHERE"
                             " integrity_check <> 'ok'"),
                     0);
}

// ---- The sum --------------------------------------------------------------------------------

static void test_what_is_kept(void **state)
{
    (void)state;
    static const struct {
        int64_t value, base, less;
        bool fits;
        int64_t kept;
    } cases[] = {
        {0, 0, 0, true, 0},
        {5, 12, 7, true, 0},
        {6, 12, 7, true, 1},
        {-6, 12, 7, true, -11},
        {INT64_MAX, 0, 0, true, INT64_MAX},
        {INT64_MIN, 0, 0, true, INT64_MIN},
        {INT64_MIN, 1, 0, false, 0},
        {INT64_MAX, 0, 1, false, 0},
        {INT64_MAX, INT64_MAX, 0, true, 0},
        {INT64_MAX, INT64_MAX, INT64_MIN, false, 0}, // base - less
        {INT64_MIN, INT64_MIN, 1, false, 0},
        {0, INT64_MIN, INT64_MIN, true, 0},
        {-1, INT64_MAX, 0, true, INT64_MIN},
        {-2, INT64_MAX, 0, false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t kept = 0;
        assert_int_equal(excess_of(&kept, cases[i].value, cases[i].base, cases[i].less),
                         cases[i].fits);
        if (cases[i].fits)
            assert_int_equal(kept, cases[i].kept);
    }
}

static void test_every_kept_column_has_one_that_is_read(void **state)
{
    (void)state;
    unsigned found = 0;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const int count = (int)record_kind_info((enum record_kind)kind)->column_count;
        for (int c = EXCESS_RECEIVED; c < count; c++) {
            const struct excess *excess = excess_find((enum record_kind)kind, c);
            if (!excess)
                continue;
            found++;
            assert_ptr_equal(excess_of_kept((enum record_kind)kind, excess->kept), excess);
            assert_true(c < 0 ||
                        record_kind_info((enum record_kind)kind)->columns[c].type == COLUMN_INT);
        }
    }
    assert_int_equal(found, RECORD_KIND_COUNT - 1 + 2);
    assert_null(excess_find(RECORD_KIND_RUN, EXCESS_RECEIVED));
    assert_null(excess_of_kept(RECORD_KIND_LOAD, "prefill_excess_ns"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_kept),          TEST(test_every_kept_column_has_one_that_is_read),
        TEST(test_through_the_collector), TEST(test_through_sql),
        TEST(test_through_a_migration),   TEST(test_a_migration_of_many_rows),
        TEST(test_a_full_store_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
