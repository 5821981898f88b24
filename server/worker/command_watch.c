#include <poll.h>
#include <stddef.h>

#include "common/sys/clock.h"
#include "common/sys/stop.h"
#include "server/worker/worker.h"

static struct {
    int64_t duration_ns;
} options;

#define OPTION_TARGET __typeof__(options)

static const struct option rows[] = {
    {"duration", "DURATION", "end after so long, such as 10m (default: when it is stopped)",
     PERIOD_AT(duration_ns)},
};

static void wait_for_end(void)
{
    const uint64_t end_ns = clock_monotonic_ns() + (uint64_t)options.duration_ns;
    while (!stop_requested()) {
        const uint64_t now = clock_monotonic_ns();
        if (options.duration_ns > 0 && now >= end_ns)
            return;
        struct pollfd stop = {.fd = stop_fd(), .events = POLLIN};
        const uint64_t left_ms = options.duration_ns > 0 ? (end_ns - now) / 1000000 + 1 : 60000;
        (void)poll(&stop, 1, left_ms < 60000 ? (int)left_ms : 60000);
    }
}

static int run_watch(const struct worker_options *worker, char *const *words, int count)
{
    struct error err = {0};
    struct inferstat_monitor *monitor = NULL;
    struct inferstat_totals totals;
    if (count > 0)
        (void)error_set(&err, STATUS_INVALID, "watch: unexpected '%.60s' (see --help)", words[0]);
    else if (worker->device_interval_ns == 0)
        (void)error_set(&err, STATUS_INVALID, "watch: --device-interval 0 leaves nothing to do");
    else if (worker->no_report)
        (void)error_set(&err, STATUS_INVALID, "watch: --no-report leaves nothing to do");
    if (err.status != STATUS_OK)
        return worker_fail(&err);
    if (worker->log_level < 0) // says what it samples
        log_open("inferstat-worker", LOG_LEVEL_INFO);
    if (worker_open_monitor(&monitor, worker, &err) != STATUS_OK)
        return worker_fail(&err);
    wait_for_end();
    worker_close_monitor(monitor, &totals);
    return WORKER_DONE;
}

const struct worker_command command_watch = {
    .name = "watch",
    .summary = "sample this host and its GPUs, for hosts that run other engines",
    .words = "",
    .options = {.options = rows, .count = sizeof rows / sizeof *rows, .target = &options},
    .run = run_watch,
};
