// inferstatd as a child process of a test or benchmark.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct daemon {
    pid_t pid;
    int errors; // what it writes to standard error
    char output[4096];
    size_t output_size;
};

// Starts the program with its arguments (the last is NULL; argv[0] is the
// program) and waits until it says it is ready.  False when it ended instead:
// then `output` has its words and daemon_end returns its exit status.
bool daemon_start(struct daemon *daemon, const char *const *argv);

// Sends a signal, if it is not 0, waits for the end, and returns the exit status,
// or minus the signal that ended it.
int daemon_end(struct daemon *daemon, int signal);
