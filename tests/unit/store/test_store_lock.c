// The store's lock: one for all paths to a file, withdrawn without a trace; and
// what the file's first bytes tell.
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/store/schema/schema.h"
#include "common/store/schema/file_probe.h"
#include "common/store/schema/database_open.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE], lock_path[FOLDER_PATH_SIZE];

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    (void)folder_path(lock_path, folder, "s.db.lock");
    return 0;
}

TEST_FIXTURE(tear_down)
{
    folder_remove(folder);
    return 0;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

TEST_CASE(test_withdrawn_it_leaves_no_trace)
{
    struct lock lock;
    assert_int_equal(lock_acquire_store(&lock, path, NULL), STATUS_OK);
    assert_int_equal(access(lock_path, F_OK), 0);
    lock_withdraw(&lock);
    assert_int_equal(access(lock_path, F_OK), -1);
    lock_withdraw(&lock); // of nothing
    // Released it stays, and what was there before stays, too.
    assert_int_equal(lock_acquire_store(&lock, path, NULL), STATUS_OK);
    lock_release(&lock);
    assert_int_equal(access(lock_path, F_OK), 0);
    assert_int_equal(lock_acquire_store(&lock, path, NULL), STATUS_OK);
    lock_withdraw(&lock);
    assert_int_equal(access(lock_path, F_OK), 0);
}

TEST_CASE(test_all_paths_meet_one_lock)
{
    char link[FOLDER_PATH_SIZE], sub[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE], before[PATH_MAX];
    write_file(path, "", 0);
    assert_int_equal(symlink(path, folder_path(link, folder, "link.db")), 0);
    assert_int_equal(mkdir(folder_path(sub, folder, "sub"), 0755), 0);
    assert_int_equal(symlink(folder, folder_path(other, folder, "sub/up")), 0);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(sub), 0);
    const char *const paths[] = {path, link, "../s.db", "up/s.db", "up/sub/../link.db"};
    for (size_t held = 0; held < COUNT_OF(paths); held++) {
        struct lock lock, second;
        struct error err = {0};
        assert_int_equal(lock_acquire_store(&lock, paths[held], &err), STATUS_OK);
        for (size_t i = 0; i < COUNT_OF(paths); i++)
            assert_int_equal(lock_acquire_store(&second, paths[i], &err), STATUS_BUSY);
        assert_non_null(strstr(err.text, "in use by process"));
        lock_withdraw(&lock);
    }
    assert_int_equal(access(lock_path, F_OK), -1);
    // The same where the store is still to be made.
    assert_int_equal(unlink(path), 0);
    struct lock lock, second;
    assert_int_equal(lock_acquire_store(&lock, "up/s.db", NULL), STATUS_OK);
    assert_int_equal(lock_acquire_store(&second, path, NULL), STATUS_BUSY);
    assert_int_equal(access(lock_path, F_OK), 0);
    lock_withdraw(&lock);
    struct error err = {0};
    assert_int_equal(lock_acquire_store(&lock, link, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "a link to a file that is not there"));
    assert_int_equal(lock_acquire_store(&lock, "no/such.db", &err), STATUS_NOT_FOUND);
    assert_int_equal(chdir(before), 0);
}

// One that was removed between opening and locking locks nothing.
TEST_CASE(test_a_lock_taken_away_is_made_anew)
{
    struct lock first, second, third;
    assert_int_equal(lock_acquire_store(&first, path, NULL), STATUS_OK);
    assert_int_equal(unlink(lock_path), 0);
    assert_int_equal(lock_acquire_store(&second, path, NULL), STATUS_OK);
    assert_int_equal(lock_acquire_store(&third, path, NULL), STATUS_BUSY);
    lock_release(&first);
    assert_int_equal(lock_acquire_store(&third, path, NULL), STATUS_BUSY);
    lock_withdraw(&second);
}

static void expect_verdict(enum status expected, const char *words)
{
    struct error err = {0};
    assert_int_equal(file_probe_check(path, &err), expected);
    if (expected != STATUS_OK && (!strstr(err.text, words) || !strstr(err.text, path)))
        fail_msg("\"%s\" does not say \"%s\" and the path", err.text, words);
}

TEST_CASE(test_first_bytes)
{
    unsigned char header[100] = "SQLite format 3";
    expect_verdict(STATUS_NOT_FOUND, "no such file");
    write_file(path, "", 0);
    expect_verdict(STATUS_OK, "");
    write_file(path, header, 40);
    expect_verdict(STATUS_CORRUPT, "not an SQLite database");
    write_file(path, header, sizeof header); // its tables may be in a log
    expect_verdict(STATUS_OK, "");
    header[71] = 99;
    write_file(path, header, sizeof header);
    expect_verdict(STATUS_CORRUPT, "another program");
    static const unsigned char ours[4] = {0x49, 0x66, 0x73, 0x74};
    memcpy(header + 68, ours, sizeof ours);
    header[63] = SCHEMA_VERSION;
    write_file(path, header, sizeof header);
    expect_verdict(STATUS_OK, "");
    header[62] = 1;
    write_file(path, header, sizeof header);
    char newer[32];
    (void)snprintf(newer, sizeof newer, "version %d", 256 + SCHEMA_VERSION);
    expect_verdict(STATUS_TOO_NEW, newer);
    header[0] = 's';
    write_file(path, header, sizeof header);
    expect_verdict(STATUS_CORRUPT, "not an SQLite database");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    expect_verdict(STATUS_IO, "a folder, not a file");
}

TEST_CASE(test_a_store_of_ours_passes)
{
    struct sqlite3 *db = NULL;
    assert_int_equal(database_open_writer(&db, path, NULL), STATUS_OK);
    database_close(db);
    expect_verdict(STATUS_OK, "");
}

TEST_MAIN_EACH(set_up, tear_down, test_withdrawn_it_leaves_no_trace, test_all_paths_meet_one_lock,
               test_a_lock_taken_away_is_made_anew, test_first_bytes, test_a_store_of_ours_passes)
