// The store's lock: one for all paths to a file, withdrawn without a trace; and
// what the file's first bytes tell.
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/store/sqlite/database.h"
#include "common/store/sqlite/file_mode.h"
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

// A lock held by a living process is refused, with its pid; the kernel frees it
// when the holder is killed.
TEST_CASE(test_a_lock_ends_with_its_holder)
{
    struct lock lock;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char answer = lock_acquire(&lock, lock_path, NULL) == STATUS_OK;
        (void)!write(ready[1], &answer, 1);
        pause();
        _exit(0);
    }
    char answer = 0;
    assert_int_equal(read(ready[0], &answer, 1), 1);
    assert_int_equal(answer, 1);
    struct error err;
    assert_int_equal(lock_acquire(&lock, lock_path, &err), STATUS_BUSY);
    char missing[FOLDER_PATH_SIZE];
    assert_non_null(strstr(err.text, format_text("process %ld", (long)child)));

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(lock_acquire(&lock, lock_path, &err), STATUS_OK);
    lock_release(&lock);
    assert_int_equal(lock_acquire(&lock, folder_path(missing, folder, "no/such.lock"), &err),
                     STATUS_IO);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

TEST_CASE(test_all_paths_meet_one_lock)
{
    char link[FOLDER_PATH_SIZE], sub[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE], before[PATH_MAX];
    write_text(path, "");
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

// A hard link is another path with another lock file, but the same file.
TEST_CASE(test_two_names_of_one_file)
{
    char other[FOLDER_PATH_SIZE], fresh[FOLDER_PATH_SIZE];
    struct lock lock, second;
    struct error err = {0};
    write_text(path, "");
    assert_int_equal(link(path, folder_path(other, folder, "other.db")), 0);
    for (int round = 0; round < 3; round++) { // the descriptor is used again
        assert_int_equal(lock_acquire_store(&lock, path, &err), STATUS_OK);
        assert_int_equal(lock_acquire_store(&second, other, &err), STATUS_BUSY);
        assert_non_null(strstr(err.text, "under another name"));
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) { // another process has descriptors of its own
            execl("/usr/bin/flock", "flock", "-n", other, "true", NULL);
            _exit(99);
        }
        int ended = 0;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(WIFEXITED(ended));
        assert_int_equal(WEXITSTATUS(ended), 1);
        lock_withdraw(&lock);
        assert_int_equal(lock_acquire_store(&second, other, &err), STATUS_OK);
        lock_withdraw(&second);
    }
    // A store that is made after its lock is locked then.
    assert_int_equal(lock_acquire_store(&lock, folder_path(fresh, folder, "fresh.db"), NULL),
                     STATUS_OK);
    write_text(fresh, "");
    assert_int_equal(lock_new_store(&lock, NULL), STATUS_OK);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(link(fresh, other), 0);
    assert_int_equal(lock_acquire_store(&second, other, NULL), STATUS_BUSY);
    lock_withdraw(&lock);
}

// Whether this process holds POSIX locks on the file, which only another process can tell.
static bool holds_posix_lock(const char *name)
{
    int ended = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        const int fd = open(name, O_RDWR | O_CLOEXEC);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &lock) != 0 ? 99 : lock.l_type != F_UNLCK);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) < 2);
    return WEXITSTATUS(ended);
}

// Closing any descriptor of a file drops the POSIX locks of the process on it.
TEST_CASE(test_sqlite_keeps_its_locks)
{
    struct sqlite3 *db = NULL;
    struct lock lock;
    assert_int_equal(database_open_writer(&db, path, NULL), STATUS_OK);
    assert_int_equal(database_exec(db, "BEGIN; SELECT count(*) FROM run", NULL), STATUS_OK);
    assert_true(holds_posix_lock(path));
    for (int i = 0; i < 100; i++) {
        struct sqlite3 *reader = NULL;
        assert_int_equal(lock_acquire_store(&lock, path, NULL), STATUS_OK);
        assert_int_equal(database_open_reader(&reader, path, NULL), STATUS_OK);
        file_mode_restrict(path, i % 2);
        database_close(reader);
        lock_withdraw(&lock);
        assert_true(holds_posix_lock(path));
    }
    database_close(db);
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
    write_text(path, "");
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
    expect_verdict(STATUS_TOO_NEW, format_text("version %d", 256 + SCHEMA_VERSION));
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

TEST_MAIN_EACH(set_up, tear_down, test_withdrawn_it_leaves_no_trace,
               test_a_lock_ends_with_its_holder, test_all_paths_meet_one_lock,
               test_a_lock_taken_away_is_made_anew, test_two_names_of_one_file,
               test_sqlite_keeps_its_locks, test_first_bytes, test_a_store_of_ours_passes)
