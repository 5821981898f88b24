// The schema: made from the record table, checked when opened.
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/schema_migrate.h"
#include "common/store/store.h"
#include "common/store/schema/schema_select.h"
#include "tests/support/test.h"
#include "tests/unit/store/schema_fixture.h"

TEST_CASE(test_tables_are_those_of_the_record_table)
{
    sqlite3 *db = new_store();
    char sql[512];
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        for (unsigned i = 0; i < info->column_count; i++) {
            (void)snprintf(
                sql, sizeof sql,
                "SELECT \"notnull\" + 10 FROM pragma_table_xinfo('%s') WHERE name = '%s'",
                info->name, info->columns[i].name);
            assert_int_equal(integer(db, sql), info->columns[i].maybe ? 10 : 11);
        }
        assert_int_equal(integer(db, format_text("SELECT count(*) FROM v_%s", info->name)), 0);
        struct result *columns = NULL;
        sqlite3_str *list = sqlite3_str_new(db);
        assert_int_equal(result_new(&columns), STATUS_OK);
        assert_int_equal(schema_select_list(list, (enum record_kind)kind, columns), STATUS_OK);
        sqlite3_free(sqlite3_str_finish(list));
        for (unsigned i = 0; i < result_column_count(columns); i++) {
            assert_int_equal(
                integer(db, format_text(
                                "SELECT count(*) FROM pragma_table_info('v_%s') WHERE name = '%s'",
                                info->name, result_column(columns, i)->key)),
                1);
        }
        result_free(columns);
    }
    database_close(db);
}

static void refuse_as_view(const char *table)
{
    static const char view[] = " AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
                               " SELECT x AS key FROM n";
    static const struct {
        const char *begin, *end;
    } forms[] = {{"CREATE VIEW ", view},
                 {"CREATE VIRTUAL TABLE ", " USING rtree(id, a, b)"},
                 {"DROP TABLE IF EXISTS ", ""}};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char name[64], sql[256];
        struct error why = {0};
        sqlite3 *db = new_store(), *reader = NULL;
        (void)snprintf(name, sizeof name, "%s", table);
        if (i == 0)
            name[0] = (char)(name[0] - 32); // names are compared without regard to case
        (void)snprintf(sql, sizeof sql, "DROP TABLE \"%s\"; %s \"%s\" %s", name, forms[i].begin,
                       name, forms[i].end);
        assert_int_equal(database_exec(db, sql, NULL), STATUS_OK);
        database_close(db);
        if (database_open_reader(&reader, path, &why) != STATUS_CORRUPT)
            fail_msg("%s: opened", sql);
        assert_non_null(strstr(why.text, i < 2 ? "not a store: it has a v"
                                               : "does not have the tables of a store"));
        assert_int_equal(database_open_writer(&reader, path, &why), STATUS_CORRUPT);
        assert_int_equal(unlink(path), 0);
    }
}

TEST_CASE(test_all_tables_are_tables)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *tables = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(schema_migrate(db, ":memory:", NULL), STATUS_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT name FROM sqlite_schema WHERE type = 'table' AND"
                                        " name NOT LIKE 'sqlite%'",
                                        -1, &tables, NULL),
                     SQLITE_OK);
    unsigned count = 0;
    for (; sqlite3_step(tables) == SQLITE_ROW; count++)
        refuse_as_view((const char *)sqlite3_column_text(tables, 0));
    assert_true(count > RECORD_KIND_COUNT);
    assert_int_equal(sqlite3_finalize(tables), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

// Neither a trigger of the file nor its own v_ledger is used.
TEST_CASE(test_foreign_triggers_and_views)
{
    sqlite3 *db = new_store();
    assert_int_equal(
        database_exec(db,
                      "CREATE TRIGGER t AFTER DELETE ON meta BEGIN INSERT INTO meta"
                      " WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
                      " SELECT x, x FROM n; END;"
                      "DELETE FROM meta WHERE key = 'created_ns';"
                      "DROP VIEW v_ledger; CREATE VIEW v_ledger AS"
                      " WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
                      " SELECT x AS id FROM n",
                      NULL),
        STATUS_OK);
    assert_int_equal(integer(db, "SELECT count(*) FROM meta"), 1);
    database_close(db);
    assert_int_equal(database_open_reader(&db, path, NULL), STATUS_OK);
    assert_int_equal(integer(db, "SELECT count(*) FROM v_ledger"), 0);
    database_close(db);
}

TEST_CASE(test_settings_of_a_new_store)
{
    sqlite3 *db = new_store();
    assert_int_equal(integer(db, "PRAGMA application_id"), SCHEMA_APPLICATION_ID);
    assert_int_equal(integer(db, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(integer(db, "PRAGMA auto_vacuum"), 2); // incremental
    assert_int_equal(integer(db, "PRAGMA synchronous"), 2); // full
    assert_int_equal(integer(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    assert_int_equal(integer(db, "SELECT length(value) FROM meta WHERE key = 'store'"), 36);
    database_close(db);
}

TEST_CASE(test_every_store_is_another)
{
    char first[64], second[64];
    char *const texts[] = {first, second};
    for (int i = 0; i < 2; i++) {
        sqlite3 *db = new_store();
        sqlite3_stmt *stmt = NULL;
        assert_int_equal(
            sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'store'", -1, &stmt, NULL),
            SQLITE_OK);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        (void)snprintf(texts[i], 64, "%s", (const char *)sqlite3_column_text(stmt, 0));
        (void)sqlite3_finalize(stmt);
        database_close(db);
        assert_int_equal(unlink(path), 0);
    }
    assert_string_not_equal(first, second);
}

TEST_CASE(test_opened_again_it_stays_as_it_is)
{
    sqlite3 *db = new_store();
    assert_int_equal(database_exec(db, "INSERT INTO meta VALUES('mark', 7)", NULL), STATUS_OK);
    database_close(db);
    db = new_store();
    assert_int_equal(integer(db, "SELECT value FROM meta WHERE key = 'mark'"), 7);
    database_close(db);
}

TEST_CASE(test_no_file)
{
    expect_refused(STATUS_NOT_FOUND, "no such file");
    assert_int_equal(access(path, F_OK), -1);
}

TEST_CASE(test_text_file)
{
    char text[5000];
    memset(text, 'x', sizeof text);
    write_file(path, text, sizeof text);
    expect_refused(STATUS_CORRUPT, "not an SQLite database");
    expect_writer_refused(STATUS_CORRUPT, "not an SQLite database");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, sizeof text);
}

TEST_CASE(test_empty_file)
{
    write_text(path, "");
    expect_refused(STATUS_CORRUPT, "empty");
    sqlite3 *db = new_store(); // for a collector it is a place to begin
    database_close(db);
}

TEST_CASE(test_folder_instead_of_a_file)
{
    assert_int_equal(mkdir(path, 0755), 0);
    expect_refused(STATUS_IO, "a folder, not a file");
    expect_writer_refused(STATUS_IO, "a folder, not a file");
}

TEST_CASE(test_truncated_store)
{
    database_close(new_store());
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    expect_refused(STATUS_CORRUPT, "damaged");
    expect_refused(STATUS_CORRUPT, "s.db export KIND");
    expect_writer_refused(STATUS_CORRUPT, "damaged");
}

TEST_CASE(test_other_application)
{
    change_store("CREATE TABLE t(x); PRAGMA application_id = 4711; PRAGMA user_version = 1");
    expect_refused(STATUS_CORRUPT, "of another program");
    expect_writer_refused(STATUS_CORRUPT, "of another program");
    change_store("PRAGMA application_id = 0; PRAGMA user_version = 0");
    expect_writer_refused(STATUS_CORRUPT, "of another program");
}

TEST_CASE(test_newer_schema)
{
    database_close(new_store());
    change_store("PRAGMA user_version = 99");
    expect_refused(STATUS_TOO_NEW, "99");
    expect_writer_refused(STATUS_TOO_NEW, "99");
}

// Root may write everywhere, so root becomes nobody for a while.
TEST_CASE(test_read_only_ground)
{
    const bool root = geteuid() == 0;
    if (root) {
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    database_close(new_store());
    assert_int_equal(chmod(path, 0444), 0);
    expect_writer_refused(STATUS_DENIED, "read-only");
    assert_int_equal(chmod(folder, 0555), 0); // nor can a log be made beside it
    struct error err = {0};
    struct store *store = NULL;
    const enum status status = store_open(&store, path, &err);
    store_close(store);
    assert_int_equal(chmod(path, 0000), 0);
    expect_refused(STATUS_DENIED, "this user may not read it");
    assert_int_equal(chmod(folder, 0755), 0);
    if (root)
        assert_int_equal(seteuid(0), 0);
    expect_ok(status, &err);
}

TEST_CASE(test_awkward_names)
{
    static const char *const names[] = {"a b.db", "50%.db", "what?.db", "#1.db", "ä.db"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)folder_path(path, folder, names[i]);
        database_close(new_store());
        assert_int_equal(access(path, F_OK), 0);
        struct store *store = NULL;
        assert_int_equal(store_open(&store, path, NULL), STATUS_OK);
        store_close(store);
    }
}

// What was appended runs; of nothing appended nothing does, which is no lack of memory.
TEST_CASE(test_built_statements_run)
{
    sqlite3 *db = NULL;
    struct error err = {0};
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(database_exec_built(db, sqlite3_str_new(db), &err), STATUS_OK);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "CREATE TABLE t(a); INSERT INTO t VALUES(7), (8);");
    assert_int_equal(database_exec_built(db, sql, &err), STATUS_OK);
    assert_int_equal(integer(db, "SELECT sum(a) FROM t"), 15);
    sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "INSERT INTO nowhere VALUES(1)");
    assert_int_not_equal(database_exec_built(db, sql, &err), STATUS_OK);
    assert_non_null(strstr(err.text, "nowhere"));
    (void)sqlite3_close(db);
}

TEST_MAIN_EACH(set_up, tear_down, test_tables_are_those_of_the_record_table,
               test_all_tables_are_tables, test_foreign_triggers_and_views,
               test_settings_of_a_new_store, test_every_store_is_another, test_built_statements_run,
               test_opened_again_it_stays_as_it_is, test_no_file, test_text_file, test_empty_file,
               test_folder_instead_of_a_file, test_truncated_store, test_other_application,
               test_newer_schema, test_read_only_ground, test_awkward_names)
