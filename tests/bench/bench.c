#include "tests/bench/bench.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/core/base/parse.h"
#include "common/sys/clock.h"
#include "tests/support/folder.h"

static const char *program_name = "bench";
static char folder[FOLDER_PATH_SIZE], memory_folder[FOLDER_PATH_SIZE];
static bool json_open;

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void figures_add(struct figures *figures, double value)
{
    if (figures->count < BENCH_ROUNDS_MAX)
        figures->values[figures->count++] = value;
}

double figures_median(const struct figures *figures)
{
    double sorted[BENCH_ROUNDS_MAX];
    const unsigned count = figures->count;
    if (count == 0)
        return 0;
    memcpy(sorted, figures->values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double figures_max(const struct figures *figures)
{
    double most = 0;
    for (unsigned i = 0; i < figures->count; i++)
        if (figures->values[i] > most)
            most = figures->values[i];
    return most;
}

double bench_quantile(double *values, size_t count, double share)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    const double place = ceil(share * (double)count) - 1;
    return values[place < 0 ? 0 : (size_t)place];
}

// The least difference between two of the sorted values that is not 0; 0 where all
// are equal.
static double least_step(const double *values, size_t count)
{
    double step = 0;
    for (size_t i = 1; i < count; i++) {
        const double difference = values[i] - values[i - 1];
        if (difference > 0 && (step <= 0 || difference < step))
            step = difference;
    }
    return step;
}

double bench_stepped_median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    const double median = values[count / 2];
    size_t below = 0, equal = 0;
    while (values[below] < median)
        below++;
    while (below + equal < count && values[below + equal] <= median)
        equal++;
    return median +
           least_step(values, count) * (((double)count / 2 - (double)below) / (double)equal - 0.5);
}

// A line "NAME: N kB" of the process's status, in bytes.
static uint64_t status_line(pid_t pid, const char *name)
{
    char path[64], line[256];
    uint64_t kilobytes = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            (void)sscanf(line + strlen(name), ": %" SCNu64, &kilobytes);
    if (file)
        (void)fclose(file);
    return kilobytes * 1024;
}

uint64_t bench_resident(pid_t pid)
{
    return status_line(pid, "VmRSS");
}

uint64_t bench_resident_peak(pid_t pid)
{
    return status_line(pid, "VmHWM");
}

void bench_forget_peak(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/clear_refs", (int)pid);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    (void)fputs("5", file);
    (void)fclose(file);
}

size_t bench_threads(pid_t process, pid_t *threads, size_t room)
{
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *tasks = opendir(path);
    const struct dirent *task;
    while (tasks && count < room && (task = readdir(tasks)) != NULL)
        if (task->d_name[0] != '.')
            threads[count++] = (pid_t)strtol(task->d_name, NULL, 10);
    if (tasks)
        (void)closedir(tasks);
    return count;
}

double bench_thread_seconds(pid_t process, pid_t thread)
{
    char path[64];
    uint64_t ran_ns = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)process, (int)thread);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &ran_ns) != 1)
        ran_ns = 0;
    (void)fclose(file);
    return (double)ran_ns / 1e9;
}

double bench_process_seconds(pid_t process, double *busiest)
{
    pid_t threads[BENCH_THREADS_MAX];
    const size_t count = bench_threads(process, threads, BENCH_THREADS_MAX);
    double all = 0;
    *busiest = 0;
    for (size_t i = 0; i < count; i++) {
        const double seconds = bench_thread_seconds(process, threads[i]);
        all += seconds;
        *busiest = seconds > *busiest ? seconds : *busiest;
    }
    return all;
}

static bool is_free(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        bench_die("loopback", "no socket");
    const bool free = bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)close(fd);
    return free;
}

uint16_t bench_free_ports(unsigned count)
{
    enum { FIRST = 10000, RANGE = 22000, TRIES = 1000 };
    // Two benches that start at once look at different places.
    uint64_t place = (uint64_t)getpid() * 7919 + clock_monotonic_ns() / 1000;
    for (unsigned i = 0; i < TRIES; i++, place += 7919) {
        const unsigned first = FIRST + (unsigned)(place % RANGE);
        unsigned free = 0;
        while (free < count && is_free((uint16_t)(first + free)))
            free++;
        if (free == count)
            return (uint16_t)first;
    }
    bench_die("loopback", "no free ports");
}

static void remove_folders(void)
{
    folder_remove(folder);
    if (*memory_folder)
        folder_remove(memory_folder);
}

const char *bench_open(const char *program)
{
    program_name = program;
    folder_make(folder);
    (void)atexit(remove_folders);
    return folder;
}

void bench_option_number(int64_t *out, char **argv, int argc, int *at, int64_t minimum,
                         int64_t maximum)
{
    struct error err = {.status = STATUS_OK};
    const char *name = argv[*at];
    if (*at + 1 == argc)
        bench_die(name, "a number is missing");
    *at += 1;
    if (parse_int(out, argv[*at], minimum, maximum, name, &err) != STATUS_OK)
        bench_die("usage", err.text);
}

const char *bench_memory_folder(void)
{
    static const char place[] = "/dev/shm/inferstat-test-XXXXXX";
    if (*memory_folder)
        return memory_folder;
    memcpy(memory_folder, place, sizeof place);
    if (!mkdtemp(memory_folder))
        folder_make(memory_folder);
    return memory_folder;
}

void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_name, what, why);
    exit(1);
}

static void begin_pair(const char *key)
{
    printf("%s\"%s\": ", json_open ? ", " : "{", key);
    json_open = true;
}

void bench_json_number(const char *key, double value, int digits)
{
    begin_pair(key);
    if (isfinite(value))
        printf("%.*f", digits, value);
    else
        printf("null");
}

void bench_json_text(const char *key, const char *text)
{
    begin_pair(key);
    printf("\"%s\"", text);
}

void bench_json_end(void)
{
    printf("}\n");
    json_open = false;
}
