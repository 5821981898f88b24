#include "tests/bench/lttng_session.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/sys/clock.h"
#include "tests/support/folder.h"

enum { OUTPUT_SIZE = 8192, ARGUMENTS_MAX = 12 };

#define PATIENCE_NS UINT64_C(10000000000)

static pid_t daemon_id = -1;

// Starts a program whose output goes to `out`, or nowhere (-1).
static pid_t start(const char *const *argv, int out)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    FILE *nowhere = fopen("/dev/null", "r+");
    if (nowhere) {
        (void)dup2(fileno(nowhere), STDIN_FILENO);
        (void)dup2(out >= 0 ? out : fileno(nowhere), STDOUT_FILENO);
        (void)dup2(fileno(nowhere), STDERR_FILENO);
    }
    char *arguments[ARGUMENTS_MAX + 1] = {0};
    for (int i = 0; argv[i] && i < ARGUMENTS_MAX; i++)
        arguments[i] = strdup(argv[i]);
    if (arguments[0])
        (void)execvp(arguments[0], arguments);
    _exit(127);
}

// Runs a program to its end; `output` (OUTPUT_SIZE bytes) gets what it prints.
static bool run(const char *const *argv, char *output)
{
    int ends[2], status = 1;
    size_t used = 0;
    ssize_t got;
    if (pipe(ends) != 0)
        return false;
    const pid_t child = start(argv, ends[1]);
    (void)close(ends[1]);
    while (used < OUTPUT_SIZE - 1 &&
           (got = read(ends[0], output + used, OUTPUT_SIZE - 1 - used)) > 0)
        used += (size_t)got;
    output[used] = '\0';
    (void)close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

// "lttng --no-sessiond WORDS": the daemon is the one that was started here.
static bool lttng(const char *const *words, char *output)
{
    const char *argv[ARGUMENTS_MAX + 1] = {"lttng", "--no-sessiond"};
    char unread[OUTPUT_SIZE];
    for (unsigned i = 0; words[i] && i + 2 < ARGUMENTS_MAX; i++)
        argv[i + 2] = words[i];
    return run(argv, output ? output : unread);
}

// Root's daemon always listens under /var/run: it gets a /var/run of its own.
static bool enter_own_place(void)
{
    if (geteuid() != 0)
        return true;
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("tmpfs", "/var/run", "tmpfs", 0, "size=64m,mode=0755") == 0)
        return true;
    return access("/var/run/lttng/client-lttng-sessiond", F_OK) != 0;
}

static bool start_daemon(void)
{
    static const char *const program[] = {"lttng-sessiond", "--no-kernel", NULL};
    static const char *const list[] = {"list", NULL};
    const uint64_t deadline = clock_monotonic_ns() + PATIENCE_NS;
    daemon_id = start(program, -1);
    while (daemon_id > 0 && !lttng(list, NULL)) {
        if (clock_monotonic_ns() > deadline || waitpid(daemon_id, NULL, WNOHANG) != 0)
            return false;
        clock_sleep_until_ns(clock_monotonic_ns() + 50000000);
    }
    return daemon_id > 0;
}

static void stop_daemon(void)
{
    if (daemon_id > 0 && kill(daemon_id, SIGTERM) == 0)
        (void)waitpid(daemon_id, NULL, 0);
    daemon_id = -1;
}

static bool start_session(const char *folder)
{
    char output[FOLDER_PATH_SIZE + 32];
    (void)snprintf(output, sizeof output, "--output=%s/trace", folder);
    const char *const steps[][8] = {
        {"create", "bench", output},
        {"enable-channel", "--userspace", "--subbuf-size=1M", "--num-subbuf=8", "channel"},
        {"enable-event", "--userspace", "--channel=channel", "inferstat_bench:inference"},
        {"start", "bench"},
    };
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
        if (!lttng(steps[i], NULL))
            return false;
    return true;
}

bool lttng_session_open(const char *folder, const char **why)
{
    (void)setenv("LTTNG_HOME", folder, 1);
    (void)setenv("LTTNG_UST_REGISTER_TIMEOUT", "10000", 1);
    *why = NULL;
    if (!*BENCH_TRACEPOINT)
        *why = "built without it (install liblttng-ust-dev)";
    else if (!enter_own_place())
        *why = "another session daemon runs here";
    else if (!start_daemon())
        *why = "its session daemon does not start (install lttng-tools)";
    else if (!start_session(folder))
        *why = "the session cannot be made";
    if (*why)
        stop_daemon();
    return !*why;
}

double lttng_session_time(unsigned requests, unsigned tokens)
{
    char output[OUTPUT_SIZE], first[16], second[16];
    (void)snprintf(first, sizeof first, "%u", requests);
    (void)snprintf(second, sizeof second, "%u", tokens);
    const char *const argv[] = {BENCH_TRACEPOINT, first, second, NULL};
    return run(argv, output) ? strtod(output, NULL) : 0;
}

bool lttng_session_close(void)
{
    static const char *const stop[] = {"stop", NULL};
    static const char *const list[] = {"list", "bench", NULL};
    static const char *const destroy[] = {"destroy", "bench", NULL};
    char about[OUTPUT_SIZE];
    const bool whole =
        lttng(stop, NULL) && lttng(list, about) && strstr(about, "Discarded events: 0\n");
    (void)lttng(destroy, NULL);
    stop_daemon();
    return whole;
}
