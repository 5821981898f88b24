#include "tests/unit/store/schema_fixture.h"

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"

char folder[FOLDER_PATH_SIZE];
char path[FOLDER_PATH_SIZE];

int set_up(__attribute__((unused)) void **state)
{
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    return 0;
}

int tear_down(__attribute__((unused)) void **state)
{
    folder_remove(folder);
    return 0;
}

sqlite3 *new_store(void)
{
    struct error err;
    sqlite3 *db = NULL;
    const enum status status = database_open_writer(&db, path, &err);
    expect_ok(status, &err);
    return db;
}

int64_t integer(sqlite3 *db, const char *sql)
{
    struct error err;
    int64_t value = 0;
    if (database_integer(db, sql, &value, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
    return value;
}

void expect_refused(enum status expected, const char *words)
{
    struct error err = {0};
    struct store *store = NULL;
    assert_int_equal(store_open(&store, path, &err), expected);
    if (!strstr(err.text, words) || !strstr(err.text, path))
        fail_msg("\"%s\" does not say \"%s\" and the path", err.text, words);
}

void expect_writer_refused(enum status expected, const char *words)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    assert_int_equal(database_open_writer(&db, path, &err), expected);
    if (!strstr(err.text, words) || !strstr(err.text, path))
        fail_msg("\"%s\" does not say \"%s\" and the path", err.text, words);
}

void change_store(const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}
