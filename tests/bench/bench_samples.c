// What samples of devices and hosts cost: a fleet of 1,000 hosts with 8 devices, each sampled every
// second, and 1,000 inferences a second, into one inferstatd (samples.h).
//
//   bench_samples [--json] [--quick] [--hosts N] [--devices N] [--seconds N]
//   bench_samples --days N [--json] [--hosts N] [--devices N]
//   bench_samples --hours N [--json] [--hosts N] [--devices N]
//
// --quick is a small fleet for some seconds, to see that it works.  --days and --hours write a
// history instead, of one host with 8 devices unless others are given, let it expire, and say how
// large it is and how long averages take: hours are enough of a large fleet.  It exits with 1 if a
// goal is missed; without these if the slowest hundredth of the batches waits for more than a
// second: five times the goal, so that no slow machine fails.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/samples/samples.h"
#include "tests/support/store/health.h"

struct settings {
    int64_t hosts, devices, seconds, days, hours;
    bool json;
};

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_samples [--json] [--quick] [--hosts N] [--devices N]"
                    " [--seconds N | --days N | --hours N]\n");
    exit(2);
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {.devices = 8, .seconds = 60};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings = (struct settings){30, 8, 5, 0, 0, settings.json};
        else if (strcmp(argv[i], "--hosts") == 0)
            bench_option_number(&settings.hosts, argv, argc, &i, 1, 1500);
        else if (strcmp(argv[i], "--devices") == 0)
            bench_option_number(&settings.devices, argv, argc, &i, 1, HEALTH_DEVICES_MAX);
        else if (strcmp(argv[i], "--seconds") == 0)
            bench_option_number(&settings.seconds, argv, argc, &i, 1, 3600);
        else if (strcmp(argv[i], "--days") == 0)
            bench_option_number(&settings.days, argv, argc, &i, 1, 30);
        else if (strcmp(argv[i], "--hours") == 0)
            bench_option_number(&settings.hours, argv, argc, &i, 1, 23);
        else
            usage();
    }
    settings.hours += 24 * settings.days;
    if (settings.hosts == 0)
        settings.hosts = settings.hours ? 1 : 1000;
    return settings;
}

struct line {
    const char *key, *text, *unit, *goal;
    double value;
    int digits;
};

static void print(const struct settings *settings, const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (settings->json)
            bench_json_number(lines[i].key, lines[i].value, lines[i].digits);
        else
            printf("%-28s %14.*f %-6s %s\n", lines[i].text, lines[i].digits, lines[i].value,
                   lines[i].unit, lines[i].goal);
    }
    if (settings->json)
        bench_json_end();
}

static void print_history(const struct settings *settings, const struct history_result *history)
{
    const struct line lines[] = {
        {"hosts", "hosts", "", "", (double)settings->hosts, 0},
        {"devices", "devices of each", "", "", (double)settings->devices, 0},
        {"hours", "hours", "", "", (double)settings->hours, 0},
        {"device_second_bytes", "a device and second", "bytes", "<= 40 (30 days)",
         history->device_second_bytes, 2},
        {"raw_bytes", "  samples", "bytes", "", history->raw_bytes, 2},
        {"rollup_bytes", "  rollups", "bytes", "", history->rollup_bytes, 2},
        {"host_average_p50_ms", "average of a host, p50", "ms", "", history->host_p50_ms, 2},
        {"host_average_p99_ms", "average of a host, p99", "ms", "<= 10", history->host_p99_ms, 2},
        {"fleet_average_p50_ms", "average of the fleet, p50", "ms", "", history->fleet_p50_ms, 2},
        {"fleet_average_p99_ms", "average of the fleet, p99", "ms", "<= 10", history->fleet_p99_ms,
         2},
        {"fleet_short_p99_ms", "  of less than 10 min, p99", "ms", "", history->short_p99_ms, 2},
    };
    print(settings, lines, sizeof lines / sizeof *lines);
}

static void print_fleet(const struct settings *settings, const struct fleet_result *fleet)
{
    const struct line lines[] = {
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
    print(settings, lines, sizeof lines / sizeof *lines);
}

// Returns false if averages take too long, or 30 days too much room.
static bool run_history(const struct settings *settings, const char *folder)
{
    const struct history_plan plan = {folder, (unsigned)settings->hosts,
                                      (unsigned)settings->devices, (unsigned)settings->hours};
    struct history_result result = {0};
    history_run(&plan, &result);
    print_history(settings, &result);
    return result.host_p99_ms <= 10 && result.fleet_p99_ms <= 10 &&
           (settings->hours < 30 * 24 || result.device_second_bytes <= 40);
}

// Returns false if batches wait too long.
static bool run_fleet(const struct settings *settings, const char *folder)
{
    const struct fleet_plan plan = {folder, (unsigned)settings->hosts, (unsigned)settings->devices,
                                    (unsigned)settings->seconds, false};
    struct fleet_result result = {0};
    fleet_run(&plan, &result);
    print_fleet(settings, &result);
    return result.acknowledged_p99_ms <= 1000;
}

int main(int argc, char **argv)
{
    const struct settings settings = read_arguments(argc, argv);
    const char *folder = bench_open("bench_samples");
    return (settings.hours == 0 ? run_fleet : run_history)(&settings, folder) ? 0 : 1;
}
