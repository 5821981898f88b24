// What the benches share: figures of several rounds, and what a process takes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BENCH_ROUNDS_MAX = 99, BENCH_THREADS_MAX = 64 };

// One figure of each round.
struct figures {
    unsigned count;
    double values[BENCH_ROUNDS_MAX];
};

void figures_add(struct figures *figures, double value);
// 0 where there is none.
double figures_median(const struct figures *figures);
double figures_max(const struct figures *figures);

// The value that a share of all are not above; sorts them.
double bench_quantile(double *values, size_t count, double share);

// The median of values that a coarse clock gives in steps (10 ns, say): those that
// equal it stand for an even spread over its step.  Sorts them.
double bench_stepped_median(double *values, size_t count);

// Resident memory of a process in bytes: now, and the most it had since
// bench_forget_peak or its start; 0 where it cannot be read.
uint64_t bench_resident(pid_t pid);
uint64_t bench_resident_peak(pid_t pid);
void bench_forget_peak(pid_t pid);

// The numbers of a process's threads; at most `room` of them are written.
size_t bench_threads(pid_t process, pid_t *threads, size_t room);
// Processor time of a thread in seconds.
double bench_thread_seconds(pid_t process, pid_t thread);
// That of all threads of a process; `*busiest` gets that of the one with the most.
double bench_process_seconds(pid_t process, double *busiest);

// The first of `count` TCP ports in a row of loopback that nobody has now, away from
// those that the system gives outgoing connections.
uint16_t bench_free_ports(unsigned count);

// Ends the program with "PROGRAM: what: why"; bench_open sets its name, makes the
// folder that all files of the bench lie in, and removes it at the program's end.
_Noreturn void bench_die(const char *what, const char *why);
const char *bench_open(const char *program);

// The whole number behind the option at argv[*at], which moves there; ends the program where
// there is none, or one out of its range.
void bench_option_number(int64_t *out, char **argv, int argc, int *at, int64_t minimum,
                         int64_t maximum);

// A second folder, in memory where there is /dev/shm: for run files, which lie
// there in real life.  Removed like the first.
const char *bench_memory_folder(void);

// One pair of a JSON object; the first of the object opens it, bench_json_end ends
// it.  A number that is not finite is printed as null.
void bench_json_number(const char *key, double value, int digits);
void bench_json_text(const char *key, const char *text);
void bench_json_end(void);
