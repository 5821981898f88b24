// When the log is folded into the store's file, seen through a copy of that file
// alone.

#include <sqlite3.h>

#include "common/store/sqlite/checkpoint.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)
static const uint64_t start_ns = UINT64_C(5000000000000);

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
static sqlite3 *db;
static struct checkpoint checkpoint;

static void exec(const char *sql)
{
    struct error err = {0};
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail_msg("%s: %s", sql, err.text);
}

static void tick(uint64_t ms)
{
    struct error err = {0};
    expect_ok(checkpoint_tick(&checkpoint, db, false, start_ns + ms * MS, &err), &err);
}

static void tick_busy(uint64_t ms)
{
    struct error err = {0};
    expect_ok(checkpoint_tick(&checkpoint, db, true, start_ns + ms * MS, &err), &err);
}

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    assert_int_equal(database_open_writer(&db, path, NULL), STATUS_OK);
    exec("CREATE TABLE t(x)");
    checkpoint_init(&checkpoint, start_ns);
    tick(1000);
    return 0;
}

TEST_FIXTURE(tear_down)
{
    database_close(db);
    folder_remove(folder);
    return 0;
}

// Rows of t that the file has without its log.
static int64_t rows_in_file(void)
{
    sqlite3 *file = NULL;
    int64_t rows = -1;
    assert_int_equal(sqlite3_open_v2(format_text("file:%s?immutable=1", path), &file,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL),
                     SQLITE_OK);
    assert_int_equal(database_integer(file, "SELECT count(*) FROM t", &rows, NULL), STATUS_OK);
    database_close(file);
    return rows;
}

static void insert(uint64_t ms)
{
    exec("INSERT INTO t VALUES(1)");
    checkpoint_note(&checkpoint, start_ns + ms * MS);
}

TEST_CASE(test_half_a_second_after_the_last_commit)
{
    assert_int_equal(rows_in_file(), 0);
    insert(10000);
    tick(10100);
    tick(10499);
    assert_int_equal(rows_in_file(), 0);
    tick(10500);
    assert_int_equal(rows_in_file(), 1);
}

TEST_CASE(test_while_commits_go_on)
{
    int64_t rows = 0, before = 0;
    uint64_t changed_ms = 10000, folds = 0;
    for (uint64_t ms = 10000; ms < 20000; ms += 100, rows++) {
        insert(ms);
        tick(ms);
        const int64_t now = rows_in_file();
        if (now != before) {
            assert_true(ms - changed_ms <= 2100);
            changed_ms = ms;
            folds++;
        }
        before = now;
    }
    assert_true(folds >= 4 && folds <= 10); // seldom, all the same
    assert_true(rows - before <= 21);
}

// A reader in a transaction keeps what came after its beginning from being
// folded; nobody waits for it.
TEST_CASE(test_a_reader_is_not_waited_for)
{
    sqlite3 *reader = NULL;
    int64_t rows = -1;
    insert(10000);
    assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
    assert_int_equal(database_exec(reader, "BEGIN", NULL), STATUS_OK);
    assert_int_equal(database_integer(reader, "SELECT count(*) FROM t", &rows, NULL), STATUS_OK);
    insert(10100);
    tick(10700);
    assert_true(rows_in_file() < 2);
    assert_int_equal(database_exec(reader, "COMMIT", NULL), STATUS_OK);
    tick(11000); // not twice within a second
    assert_true(rows_in_file() < 2);
    tick(11700);
    assert_int_equal(rows_in_file(), 2);
    database_close(reader);
}

// A log that grows fast is folded sooner, between commits and never within one.
TEST_CASE(test_a_long_log_is_folded_soon)
{
    checkpoint_watch(&checkpoint, db);
    insert(10000);
    tick(10500);
    assert_int_equal(rows_in_file(), 1);
    exec("CREATE TABLE large(x)");
    for (unsigned i = 1; i < 5; i++) { // 1,250 pages each time
        tick_busy(10510);
        exec("BEGIN; INSERT INTO large WITH RECURSIVE n(i) AS"
             " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1250)"
             " SELECT zeroblob(4000) FROM n; INSERT INTO t VALUES(1); COMMIT");
        checkpoint_note(&checkpoint, start_ns + 10510 * MS);
        assert_int_equal(rows_in_file(), 1);
    }
    tick_busy(10520);
    assert_int_equal(rows_in_file(), 5);
    insert(10530);
    tick(10540); // not long any longer
    assert_int_equal(rows_in_file(), 5);
    checkpoint_watch(NULL, db);
    exec("INSERT INTO large SELECT x FROM large");
    assert_int_equal(rows_in_file(), 6); // within the commit, as ever
}

TEST_MAIN_EACH(set_up, tear_down, test_half_a_second_after_the_last_commit,
               test_while_commits_go_on, test_a_reader_is_not_waited_for,
               test_a_long_log_is_folded_soon)
