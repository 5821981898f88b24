// Runs a test and prints the processor time that it and the processes it started took.
//
//   run_test [--limit SECONDS] PROGRAM [ARGUMENT]...
//
// Ends as the test ends: with its exit code, or by its signal.  A test that passes but takes more
// processor time than the limit fails.  Wall time says little on a busy machine; processor time
// doubles there too, so that the limit is for a quiet machine and grows with what fixed work takes.
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

// Starts the test; it is killed when ctest kills this process because of a timeout.
static pid_t start(char **command)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            execvp(command[0], command);
        (void)fprintf(stderr, "run_test: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

// Waits for the test and reaps what ends before it does: a script may wait for a pid to vanish.
static int wait_for(pid_t test)
{
    int status = 0;
    for (pid_t ended = 0; ended != test;) {
        ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno != EINTR)
            return 1;
    }
    while (waitpid(-1, &(int){0}, WNOHANG) > 0)
        ;
    return status;
}

// How many times as long as on a quiet machine fixed work takes now, at most 3: reads of a table
// that fills the second-level cache, each at a place that the one before tells.
static double slowdown(void)
{
    enum { ENTRIES = 1 << 18, READS = 10 * 1000 * 1000, ROUNDS = 5 };
    static const double quiet_s = 0.06;
    static uint32_t table[ENTRIES];
    uint32_t value = 1;
    for (size_t i = 0; i < ENTRIES; i++)
        table[i] = value = value * 1664525U + 1013904223U;
    struct rusage began, ended;
    getrusage(RUSAGE_SELF, &began);
    for (uint32_t i = 0; i < ROUNDS * READS; i++)
        value = table[(value ^ i) % ENTRIES];
    getrusage(RUSAGE_SELF, &ended);
    table[0] = value; // so that the reads happen
    const double took = seconds(ended.ru_utime) - seconds(began.ru_utime);
    const double times = took / ROUNDS / quiet_s;
    return times < 1 ? 1 : times > 3 ? 3 : times;
}

int main(int count, char **arguments)
{
    double limit = 0;
    char **command = arguments + 1;
    if (count > 2 && strcmp(command[0], "--limit") == 0) {
        limit = strtod(command[1], NULL);
        command += 2;
    }
    if (!command[0]) {
        (void)fprintf(stderr, "usage: run_test [--limit SECONDS] PROGRAM [ARGUMENT]...\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); // so that programs whose parent ended count too
    const pid_t test = start(command);
    if (test < 0) {
        perror("run_test: fork");
        return 1;
    }
    const int status = wait_for(test);
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    const double took = seconds(used.ru_utime) + seconds(used.ru_stime);
    (void)fflush(NULL);
    (void)printf("run_test: processor time %.2f s\n", took);
    if (WIFSIGNALED(status)) {
        (void)fflush(NULL);
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
        return 1;
    }
    if (limit > 0 && took > limit && WEXITSTATUS(status) == 0) {
        const double times = slowdown();
        (void)printf("run_test: more than the %g s that a unit test may take (this machine is %.2f "
                     "times as slow as a quiet one)\n",
                     limit, times);
        if (took > limit * times)
            return 1;
    }
    return WEXITSTATUS(status);
}
