// A restored store is its backup, and the earlier store is whole under one of two names, whenever
// the work is cut off.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/store/store.h"
#include "common/store/schema/schema.h"
#include "common/store/sqlite/lock.h"
#include "tests/support/test.h"
#include "tests/unit/transfer/copy_fixture.h"

static struct error err;

// The process ends before call number `ends_at` of those below; 0: it does not.
static unsigned calls, ends_at;

static void count_call(void)
{
    if (++calls == ends_at)
        _exit(9);
}

int rename(const char *from, const char *to)
{
    count_call();
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0U);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    count_call();
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int fsync(int fd)
{
    count_call();
    return (int)syscall(SYS_fsync, fd);
}

int unlink(const char *path)
{
    count_call();
    return (int)syscall(SYS_unlink, path);
}

// Restores b.db in the place of s.db in a process of its own; returns its exit status.
static int restore_until(unsigned call)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct result *answer = NULL;
        char before[QUERY_PATH_SIZE];
        calls = 0;
        ends_at = call;
        _exit(store_restore(copy_path("s.db"), copy_path("b.db"), &answer, before, &err) !=
              STATUS_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

// Whether a file of the folder named s.db or s.db.before-TIME is the store with this digest.
static bool has_store(uint64_t digest)
{
    DIR *folder = opendir(copy_folder);
    bool found = false;
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        const char *name = entry->d_name;
        const size_t size = strlen(name);
        if (strcmp(name, "s.db") == 0 ||
            (strncmp(name, "s.db.before-", 12) == 0 && name[size - 1] == 'Z'))
            found |= copy_digest(copy_path(name)) == digest;
    }
    (void)closedir(folder);
    return found;
}

TEST_CASE(test_cut_off_anywhere)
{
    int code = 9;
    for (unsigned call = 1; code != 0; call++) {
        struct result *answer = NULL;
        assert_true(call < 60);
        copy_make_store(copy_path("s.db"), 2, 5);
        assert_int_equal(copy_to(copy_path("s.db"), copy_path("b.db"), NULL, &answer, &err),
                         STATUS_OK);
        result_free(answer);
        const uint64_t backup = copy_digest(copy_path("s.db"));
        copy_exec(copy_path("s.db"), "DELETE FROM inference WHERE id % 2");
        const uint64_t earlier = copy_digest(copy_path("s.db"));
        assert_true(earlier != backup);
        code = restore_until(call);
        assert_true(code == 0 || code == 9);
        assert_true(call > 3 || code == 9);
        assert_true(has_store(earlier));
        if (code == 9)
            assert_int_equal(restore_until(0), 0);
        assert_int_equal(copy_digest(copy_path("s.db")), backup);
        assert_int_equal(copy_digest(copy_path("b.db")), backup);
        assert_true(has_store(earlier));
        assert_int_equal(copy_integer(copy_path("s.db"),
                                      "SELECT count(*) FROM admin WHERE action = 'restore'"
                                      " AND outcome = 'ok' AND rows > 0"),
                         1);
        assert_int_equal(access(copy_path("s.db.restored"), F_OK), -1);
        copy_tear_down(NULL);
        copy_set_up(NULL);
    }
}

TEST_CASE(test_what_is_refused)
{
    struct result *answer = NULL;
    char before[QUERY_PATH_SIZE];
    struct lock lock = LOCK_NONE;
    struct stat about;
    const char *store = copy_path("s.db"), *backup = copy_path("b.db"), *text = copy_path("text");
    copy_make_store(store, 1, 5);
    copy_make_store(backup, 2, 5);
    copy_exec(backup, "PRAGMA user_version = 99");
    write_text(text, "");
    const uint64_t earlier = copy_digest(store);
    const char *const wrong[] = {store, backup, text, copy_path("none")};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_not_equal(store_restore(store, wrong[i], &answer, before, &err), STATUS_OK);
    expect_ok(lock_acquire_store(&lock, store, &err), &err);
    copy_exec(backup, format_text("PRAGMA user_version = %d", SCHEMA_VERSION));
    const pid_t child = fork(); // the lock is of a process
    if (child == 0)
        _exit((int)store_restore(store, backup, &answer, before, &err));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), STATUS_BUSY);
    lock_withdraw(&lock);
    assert_int_equal(copy_digest(store), earlier);
    // A new store where there was none, by a link.
    assert_int_equal(chmod(store, 0640), 0);
    assert_int_equal(symlink("s.db", copy_path("link")), 0);
    expect_ok(store_restore(copy_path("link"), backup, &answer, before, &err), &err);
    result_free(answer);
    assert_non_null(strstr(before, "s.db.before-"));
    assert_int_equal(stat(store, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0640);
    expect_ok(store_restore(copy_path("new.db"), backup, &answer, before, &err), &err);
    result_free(answer);
    assert_string_equal(before, "");
    assert_int_equal(copy_digest(copy_path("new.db")), copy_digest(backup));
}

TEST_MAIN_EACH(copy_set_up, copy_tear_down, test_cut_off_anywhere, test_what_is_refused)
