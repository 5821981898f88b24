// Processor time of the sampler at 1 Hz: of the host, and of each device.  The devices are those of
// tests/support/nvml/, whose calls sleep for 20 to 300 us.
//
//   bench_sampler [--json] [--quick] [--devices N] [--seconds N]
//
// The same monitor runs without a sampler, with one that finds no devices, and with one that finds
// them; the differences are what the host and the devices take.  The library's threads count, its
// background thread, which also sends the records, and the one that calls the driver.  The exit
// code is 1 when the goal of a device is missed, but not with --quick.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/monitor/inferstat.h"
#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/support/fake_collector.h"
#include "tests/support/folder.h"

enum { WARM_UP_S = 2 };

static int64_t devices = 8, seconds = 20;

// Processor time of the library's threads so far.
static double library_seconds(void)
{
    pid_t threads[BENCH_THREADS_MAX];
    const size_t count = bench_threads(getpid(), threads, BENCH_THREADS_MAX);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        char name[32] = "", path[64];
        (void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)threads[i]);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strncmp(name, "inferstat", 9) == 0)
            sum += bench_thread_seconds(getpid(), threads[i]);
        if (file)
            (void)fclose(file);
    }
    return sum;
}

// Processor time of the library a second, with a monitor that samples every `device_ms`.
static double measure(const char *folder, const char *script, uint32_t device_ms)
{
    struct inferstat_options options;
    struct inferstat_monitor *monitor;
    struct inferstat_error err;
    char path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8];
    (void)write_text(folder_path(path, folder, "script"), script);
    (void)snprintf(address, sizeof address, "ipc://%s", folder);
    if (setenv("INFERSTAT_TEST_NVML", BENCH_NVML, 1) != 0 ||
        setenv("INFERSTAT_TEST_NVML_SCRIPT", path, 1) != 0)
        bench_die("environment", "no memory");
    inferstat_options_init(&options);
    options.collector = address;
    options.run_folder = bench_memory_folder();
    options.spool_folder = "";
    options.device_ms = device_ms;
    if (inferstat_open(&monitor, &options, &err) != INFERSTAT_OK)
        bench_die("monitor", err.text);
    (void)sleep(WARM_UP_S);
    const uint64_t begun = clock_monotonic_ns();
    const double before = library_seconds();
    (void)sleep((unsigned)seconds);
    const double used = (library_seconds() - before) * 1e9 / (double)(clock_monotonic_ns() - begun);
    if (inferstat_close(monitor, 10000000000, NULL) != INFERSTAT_OK)
        bench_die("monitor", "its records were not all acknowledged");
    return used;
}

#define GOAL_DEVICE 1e-3 // of a processor

int main(int argc, char **argv)
{
    bool json = false, is_quick = false;
    char script[64];
    const char *folder = bench_open("bench_sampler");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            is_quick = true;
        else if (strcmp(argv[i], "--devices") == 0)
            bench_option_number(&devices, argv, argc, &i, 1, 16);
        else if (strcmp(argv[i], "--seconds") == 0)
            bench_option_number(&seconds, argv, argc, &i, 1, 3600);
        else
            bench_die(argv[i], "unknown option");
    }
    seconds = is_quick ? 2 : seconds;
    struct fake_collector *collector = fake_collector_open(folder);
    fake_collector_set_forgetful(collector, true);
    (void)snprintf(script, sizeof script, "gpus %d\ndelay 20 300\n", (int)devices);
    const double off = measure(folder, "broken\n", 0);
    const double host = measure(folder, "broken\n", 1000);
    const double all = measure(folder, script, 1000);
    fake_collector_close(collector);
    const double of_device = (all - host) / (double)devices;
    if (json) {
        bench_json_number("devices", (double)devices, 0);
        bench_json_number("seconds", (double)seconds, 0);
        bench_json_number("processor_ratio_without", off, 7);
        bench_json_number("processor_ratio_host", host - off, 7);
        bench_json_number("processor_ratio_device", of_device, 7);
        bench_json_end();
    } else {
        (void)printf(
            "a second of a processor: %.0f us without a sampler, %.0f us more of the host, "
            "%.0f us of a device (%d, goal %.0f us)\n",
            off * 1e6, (host - off) * 1e6, of_device * 1e6, (int)devices, GOAL_DEVICE * 1e6);
    }
    return !is_quick && of_device > GOAL_DEVICE; // a goal that is missed
}
