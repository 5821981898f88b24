#include "server/collector/alerts/command_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"

enum { SAID_MAX = 160 }; // bytes of standard error that are kept

struct command {
    pid_t pid;
    int pid_fd;   // readable when the program has ended
    int input_fd; // its standard input
    int said_fd;  // what it writes to standard error: as much as the pipe holds
};

static enum status open_input(struct command *command, const char *input, size_t size,
                              struct error *err)
{
    command->input_fd = memfd_create("alert", MFD_CLOEXEC);
    if (command->input_fd >= 0 && write(command->input_fd, input, size) == (ssize_t)size &&
        lseek(command->input_fd, 0, SEEK_SET) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_IO, "cannot make its standard input: %s", strerror(errno));
}

// posix_spawn, with standard descriptors and no others, and without the signal mask of our threads.
static int spawn(struct command *command, char *const argv[], int said)
{
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    static char lang[] = "LANG=C.UTF-8";
    char *const environment[] = {path, lang, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int fault = posix_spawn_file_actions_init(&actions);
    if (fault)
        return fault;
    fault = posix_spawnattr_init(&attributes);
    if (!fault) {
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                        POSIX_SPAWN_SETSIGDEF);
        (void)posix_spawnattr_setpgroup(&attributes, 0);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        fault = posix_spawn_file_actions_adddup2(&actions, command->input_fd, 0);
        if (!fault)
            fault = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
        if (!fault)
            fault = posix_spawn_file_actions_adddup2(&actions, said, 2);
        if (!fault)
            fault = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
        if (!fault)
            fault = posix_spawn(&command->pid, argv[0], &actions, &attributes, argv, environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return fault;
}

// Kills the program and all others of its group, and forgets it.
static void kill_group(struct command *command, siginfo_t *end)
{
    (void)kill(-command->pid, SIGKILL);
    (void)kill(command->pid, SIGKILL); // it may have left its group
    while (waitid(P_PID, (id_t)command->pid, end, WEXITED) != 0 && errno == EINTR)
        ;
}

static enum status start(struct command *command, char *const argv[], struct error *err)
{
    siginfo_t end;
    int said[2];
    if (pipe2(said, O_CLOEXEC | O_NONBLOCK) != 0)
        return error_set(err, STATUS_IO, "cannot start it: %s", strerror(errno));
    command->said_fd = said[0];
    int fault = spawn(command, argv, said[1]);
    (void)close(said[1]);
    if (!fault) {
        command->pid_fd = pidfd_open(command->pid, 0);
        if (command->pid_fd >= 0)
            return STATUS_OK;
        fault = errno;
        kill_group(command, &end);
    }
    return error_set(err, STATUS_IO, "cannot start it: %s", strerror(fault));
}

static enum status wait_end(struct command *command, uint64_t limit_ns, int stop_fd,
                            struct error *err)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + limit_ns;
    for (;;) {
        struct pollfd polled[] = {{.fd = command->pid_fd, .events = POLLIN},
                                  {.fd = stop_fd, .events = POLLIN}};
        const uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns)
            return error_set(err, STATUS_TIMEOUT, "it took too long and was killed");
        if (poll(polled, 2, (int)((deadline_ns - now_ns) / 1000000) + 1) <= 0)
            continue;
        if (polled[1].revents)
            return error_set(err, STATUS_CANCELLED, "the collector is stopping");
        return STATUS_OK;
    }
}

// Sets the text of how the program ended, with the first line that it said.
static enum status judge(struct command *command, const siginfo_t *end, struct error *err)
{
    char line[SAID_MAX], said[2 * SAID_MAX];
    if (end->si_code == CLD_EXITED && end->si_status == 0)
        return STATUS_OK;
    const ssize_t got = read(command->said_fd, line, sizeof line);
    const char *newline = got > 0 ? memchr(line, '\n', (size_t)got) : NULL;
    (void)text_escape(said, sizeof said, line,
                      newline   ? (size_t)(newline - line)
                      : got > 0 ? (size_t)got
                                : 0);
    return error_set(err, STATUS_CHECK_FAILED, "%s %d%s%s",
                     end->si_code == CLD_EXITED ? "it ended with code" : "it was ended by signal",
                     end->si_status, said[0] ? ": " : "", said);
}

enum status command_hook_run(char *const argv[], const char *input, size_t size, uint64_t limit_ns,
                             int stop_fd, struct error *err)
{
    struct command command = {.pid_fd = -1, .input_fd = -1, .said_fd = -1};
    siginfo_t end = {0};
    enum status status = open_input(&command, input, size, err);
    if (status == STATUS_OK)
        status = start(&command, argv, err);
    if (command.pid_fd >= 0) {
        status = wait_end(&command, limit_ns, stop_fd, err);
        kill_group(&command, &end); // what it left behind
        if (status == STATUS_OK)
            status = judge(&command, &end, err);
        (void)close(command.pid_fd);
    }
    if (command.said_fd >= 0)
        (void)close(command.said_fd);
    if (command.input_fd >= 0)
        (void)close(command.input_fd);
    return status;
}
