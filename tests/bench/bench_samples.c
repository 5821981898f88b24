// What samples of devices and hosts cost: a fleet of 1,000 hosts with 8 devices, each sampled every
// second, and 1,000 inferences a second, into one inferstatd (samples.h).
//
//   bench_samples [--json] [--quick] [--hosts N] [--devices N] [--seconds N]
//
// --quick is a small fleet for some seconds, to see that it works.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/samples.h"
#include "tests/support/store/health.h"

struct settings {
    int64_t hosts, devices, seconds;
    bool json;
};

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_samples [--json] [--quick] [--hosts N] [--devices N]"
                    " [--seconds N]\n");
    exit(2);
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {.hosts = 1000, .devices = 8, .seconds = 60};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings = (struct settings){30, 8, 5, settings.json};
        else if (strcmp(argv[i], "--hosts") == 0)
            bench_option_number(&settings.hosts, argv, argc, &i, 1, 1500);
        else if (strcmp(argv[i], "--devices") == 0)
            bench_option_number(&settings.devices, argv, argc, &i, 1, HEALTH_DEVICES_MAX);
        else if (strcmp(argv[i], "--seconds") == 0)
            bench_option_number(&settings.seconds, argv, argc, &i, 1, 3600);
        else
            usage();
    }
    return settings;
}

static void print(const struct settings *settings, const struct fleet_result *fleet)
{
    const struct {
        const char *key, *text, *unit, *goal;
        double value;
        int digits;
    } lines[] = {
        {"hosts", "hosts", "", "", (double)settings->hosts, 0},
        {"devices", "devices of each", "", "", (double)settings->devices, 0},
        {"seconds", "seconds", "", "", (double)settings->seconds, 0},
        {"acknowledged_p50_ms", "acknowledged, p50", "ms", "", fleet->acknowledged_p50_ms, 1},
        {"acknowledged_p99_ms", "acknowledged, p99", "ms", "<= 200", fleet->acknowledged_p99_ms, 1},
        {"acknowledged_max_ms", "acknowledged, slowest", "ms", "", fleet->acknowledged_max_ms, 1},
        {"collector_processors", "processors busy, collector", "", "", fleet->processors, 3},
        {"collector_busiest", "  its busiest thread", "", "", fleet->busiest, 3},
        {"bench_processors", "  this bench", "", "", fleet->own_processors, 3},
        {"peak_memory_bytes", "collector's memory", "bytes", "", (double)fleet->peak_bytes, 0},
        {"log_bytes", "store's log at the end", "bytes", "", (double)fleet->log_bytes, 0},
        {"samples_lacking_in_rollups", "samples rollups lack then", "", "", fleet->lacking, 0},
        {"device_sample_bytes", "a device sample", "bytes", "<= 160", fleet->sample_bytes, 1},
        {"host_sample_bytes", "a host sample", "bytes", "", fleet->host_sample_bytes, 1},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (settings->json)
            bench_json_number(lines[i].key, lines[i].value, lines[i].digits);
        else
            printf("%-28s %14.*f %-6s %s\n", lines[i].text, lines[i].digits, lines[i].value,
                   lines[i].unit, lines[i].goal);
    }
    if (settings->json)
        bench_json_end();
}

int main(int argc, char **argv)
{
    const struct settings settings = read_arguments(argc, argv);
    const struct fleet_plan plan = {bench_open("bench_samples"), (unsigned)settings.hosts,
                                    (unsigned)settings.devices, (unsigned)settings.seconds};
    struct fleet_result result = {0};
    fleet_run(&plan, &result);
    print(&settings, &result);
    return 0;
}
