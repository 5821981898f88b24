#include "tests/support/daemon.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

static void run_child(const char *const *argv, int errors)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that dies takes it along
    (void)signal(SIGINT, SIG_DFL);          // ignored where the tests are a background job
    (void)dup2(errors, STDERR_FILENO);
    char *arguments[32] = {0};
    for (int i = 0; argv[i] && i < 31; i++)
        arguments[i] = strdup(argv[i]);
    if (arguments[0])
        (void)execv(arguments[0], arguments);
    perror("exec");
    _exit(127);
}

// Reads more of its words; false at their end.
static bool read_more(struct daemon *daemon)
{
    struct pollfd event = {.fd = daemon->errors, .events = POLLIN};
    const size_t room = sizeof daemon->output - 1 - daemon->output_size;
    if (room == 0 || poll(&event, 1, PATIENCE_MS) <= 0)
        return false;
    const ssize_t size = read(daemon->errors, daemon->output + daemon->output_size, room);
    if (size <= 0)
        return false;
    daemon->output_size += (size_t)size;
    daemon->output[daemon->output_size] = '\0';
    return true;
}

bool daemon_start(struct daemon *daemon, const char *const *argv)
{
    int ends[2];
    *daemon = (struct daemon){.pid = -1, .errors = -1};
    if (pipe(ends) != 0)
        return false;
    daemon->pid = fork();
    if (daemon->pid == 0) {
        (void)close(ends[0]);
        run_child(argv, ends[1]);
    }
    (void)close(ends[1]);
    daemon->errors = ends[0];
    while (!strstr(daemon->output, "ready: "))
        if (!read_more(daemon))
            return false;
    return true;
}

int daemon_end(struct daemon *daemon, int signal)
{
    int status = 0;
    if (daemon->pid <= 0)
        return 0;
    if (signal)
        (void)kill(daemon->pid, signal);
    while (read_more(daemon)) {
        // Its last words, so that it never waits for a reader.
    }
    (void)waitpid(daemon->pid, &status, 0);
    (void)close(daemon->errors);
    daemon->pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
