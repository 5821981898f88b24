#include "server/collector/alerts/command_hook.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define MS UINT64_C(1000000)

static char folder[FOLDER_PATH_SIZE];
static int never; // a descriptor that does not become readable

TEST_FIXTURE(set_up)
{
    folder_make(folder);
    never = eventfd(0, EFD_CLOEXEC);
    return never < 0;
}

TEST_FIXTURE(tear_down)
{
    (void)close(never);
    folder_remove(folder);
    return 0;
}

// Runs a script, which is told the folder as $1, with `input`.
static enum status run(const char *script, const char *input, size_t size, uint64_t limit_ms,
                       struct error *err)
{
    char shell[] = "/bin/sh", option[] = "-c", name[] = "hook";
    char *text = strdup(script);
    char *const argv[] = {shell, option, text, name, folder, NULL};
    assert_non_null(text);
    const enum status status = command_hook_run(argv, input, size, limit_ms * MS, never, err);
    free(text);
    return status;
}

static void expect_run(const char *script, enum status wanted, const char *says)
{
    struct error err = {.text = ""};
    assert_int_equal(run(script, "{}", 2, 5000, &err), wanted);
    if (says && !strstr(err.text, says))
        fail_msg("\"%s\" lacks \"%s\"", err.text, says);
}

static bool is_there(const char *name)
{
    char path[FOLDER_PATH_SIZE];
    return access(folder_path(path, folder, name), F_OK) == 0;
}

TEST_CASE(test_ends)
{
    expect_run("exit 0", STATUS_OK, NULL);
    expect_run("exit 3", STATUS_CHECK_FAILED, "code 3");
    expect_run("echo it broke >&2; echo and more >&2; exit 1", STATUS_CHECK_FAILED,
               "it ended with code 1: it broke");
    expect_run("printf '\\033[2J\\377' >&2; exit 1", STATUS_CHECK_FAILED, "\\x1B[2J\\xFF");
    expect_run("kill -9 $$", STATUS_CHECK_FAILED, "signal 9");
    expect_run("kill -TERM $$", STATUS_CHECK_FAILED, "signal 15"); // no signal is blocked
}

TEST_CASE(test_programs_that_are_none)
{
    char missing[] = "/nowhere/hook";
    char plain[FOLDER_PATH_SIZE];
    struct error err;
    folder_path(plain, folder, "plain");
    const int fd = open(plain, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    char *const first[] = {missing, NULL}, *const second[] = {plain, NULL};
    assert_int_equal(command_hook_run(first, "", 0, 1000 * MS, never, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(command_hook_run(second, "", 0, 1000 * MS, never, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "Permission denied"));
}

// The input arrives whole, also where the program does not read it, or closes it.
TEST_CASE(test_input)
{
    enum { LARGE = 1 << 20 };
    struct error err = {.text = ""};
    char *large = malloc(LARGE);
    assert_non_null(large);
    memset(large, 'a', LARGE);
    expect_ok(run("test \"$(wc -c)\" = 1048576", large, LARGE, 5000, &err), &err);
    expect_ok(run("exec 0<&-; exit 0", large, LARGE, 5000, &err), &err);
    expect_ok(run("true", large, LARGE, 5000, &err), &err);
    free(large);
    static const char hostile[] = "{\"a\":\"`touch $1/x`; $(touch $1/x)\n'\\\"\"}";
    expect_ok(run("cat >$1/input", hostile, sizeof hostile - 1, 5000, &err), &err);
    assert_false(is_there("x"));
    expect_ok(run("test \"$(wc -c <$1/input)\" = 39", "", 0, 5000, &err), &err);
}

// Nothing of ours is left to the program: descriptors, environment, signals, arguments to a shell.
TEST_CASE(test_what_it_gets)
{
    char echo[] = "/bin/sh", option[] = "-c", name[] = "x", hostile[] = "$(exit 7)`exit 7`; exit 7";
    char script[] = "test \"$1\" = '$(exit 7)`exit 7`; exit 7'";
    char *const argv[] = {echo, option, script, name, hostile, NULL};
    struct error err = {.text = ""};
    const int leaked = dup(never); // not close-on-exec
    assert_true(leaked >= 0);
    expect_ok(command_hook_run(argv, "", 0, 5000 * MS, never, &err), &err);
    expect_run(format_text("test ! -e /proc/self/fd/%d", leaked), STATUS_OK, NULL);
    (void)close(leaked);
    assert_int_equal(setenv("SECRET", "1", 1), 0);
    expect_run("test -z \"$SECRET$HOME\" && test -n \"$PATH\"", STATUS_OK, NULL);
    expect_run("test \"$(ps -o pgid= -p $$ | tr -d ' ')\" = $$ || test ! -x \"$(command -v ps)\"",
               STATUS_OK, NULL);
}

// However it hangs, it is killed in time, with all it has started.
TEST_CASE(test_time_limit)
{
    static const char *const scripts[] = {
        "sleep 60; touch $1/late",          "trap '' TERM INT HUP; while :; do :; done",
        "(sleep 60; touch $1/late) & wait", "while :; do echo flood; echo flood >&2; done",
        "exec 0<&- 1>&- 2>&-; sleep 60",    "sleep 60 & sleep 60 & sleep 60",
    };
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        struct error err = {.text = ""};
        const uint64_t began_ns = clock_monotonic_ns();
        assert_int_equal(run(scripts[i], "{}", 2, 300, &err), STATUS_TIMEOUT);
        assert_true(clock_monotonic_ns() - began_ns >= 300 * MS);
    }
}

// Waits until a process is gone; false: it is not within 5 s.
static bool is_gone(pid_t pid)
{
    for (unsigned i = 0; i < 500; i++) {
        char path[64], state[512] = "";
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *stat = fopen(path, "re");
        const size_t size = stat ? fread(state, 1, sizeof state - 1, stat) : 0;
        if (stat)
            (void)fclose(stat);
        if (size == 0 || strstr(state, ") Z"))
            return true;
        clock_sleep_until_ns(clock_monotonic_ns() + 10 * MS);
    }
    return false;
}

// A child that goes on after the program has ended is killed.
TEST_CASE(test_children)
{
    char path[FOLDER_PATH_SIZE];
    struct error err = {.text = ""};
    int pid = 0;
    expect_ok(run("sleep 60 & echo $! >$1/child", "", 0, 5000, &err), &err);
    FILE *file = fopen(folder_path(path, folder, "child"), "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    (void)fclose(file);
    assert_true(pid > 1 && is_gone(pid));
}

TEST_CASE(test_stop)
{
    char shell[] = "/bin/sh", option[] = "-c", script[] = "sleep 60";
    char *const argv[] = {shell, option, script, NULL};
    struct error err;
    const int stop = eventfd(1, EFD_CLOEXEC);
    assert_true(stop >= 0);
    assert_int_equal(command_hook_run(argv, "", 0, 60000 * MS, stop, &err), STATUS_CANCELLED);
    (void)close(stop);
}

TEST_MAIN_ONCE(set_up, tear_down, test_ends, test_programs_that_are_none, test_input,
               test_what_it_gets, test_time_limit, test_children, test_stop)
