#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/core/query/result.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "tests/bench/bench_store.h"
#include "tests/bench/samples/samples.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"
#include "tests/support/store/health.h"

enum { BATCH_SECONDS = 60, PATIENCE_S = 3600, QUERIES = 300, HOUR_S = 3600, DAY_S = 86400 };

#define SECOND_NS INT64_C(1000000000)

struct host {
    struct producer producer;
    struct health health, devices[HEALTH_DEVICES_MAX];
    uint64_t number;
};

struct history {
    const struct history_plan *plan;
    int64_t until_ns;
    char path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8], endpoint[FOLDER_PATH_SIZE + 16];
    struct daemon daemon;
    struct host *hosts;
};

// ---- Writing -------------------------------------------------------------------------------

static void open_host(struct history *history, struct host *host, unsigned place)
{
    struct producer *producer = &host->producer;
    producer_open(producer, history->endpoint, place + 1);
    producer->names_told = 1 + history->plan->devices;
    host->health.random = place;
    for (unsigned i = 0; i < history->plan->devices; i++)
        host->devices[i].random = place << 8 | i;
    producer_hello(producer, NULL, 0);
    if (!producer_await(producer, 30000))
        bench_die("hello", "no answer");
    producer->next[0] = 1;
}

// A minute of a host, once the one before it is stored.
static void send_minute(struct history *history, struct host *host, int64_t at_ns)
{
    static struct record records[BATCH_SECONDS * (HEALTH_DEVICES_MAX + 1)];
    size_t count = 0;
    if (!producer_await_next(&host->producer, 0, host->number + 1))
        bench_die("inferstatd", "does not acknowledge");
    for (unsigned second = 0; second < BATCH_SECONDS; second++, at_ns += SECOND_NS) {
        for (unsigned i = 0; i < history->plan->devices; i++)
            health_device_sample(&records[count++], &host->devices[i], 2 + i, at_ns, SECOND_NS);
        health_host_sample(&records[count++], &host->health, at_ns, SECOND_NS);
    }
    producer_batch(&host->producer, 0, host->number + 1, records, count);
    host->number += count;
}

static void send_all(struct history *history)
{
    const struct history_plan *plan = history->plan;
    const int64_t began_ns = history->until_ns - (int64_t)plan->hours * HOUR_S * SECOND_NS;
    for (int64_t at_ns = began_ns; at_ns < history->until_ns; at_ns += BATCH_SECONDS * SECOND_NS)
        for (unsigned i = 0; i < plan->hosts; i++)
            send_minute(history, &history->hosts[i], at_ns);
    for (unsigned i = 0; i < plan->hosts; i++) {
        struct host *host = &history->hosts[i];
        if (!producer_await_next(&host->producer, 0, host->number + 1))
            bench_die("inferstatd", "does not acknowledge");
        producer_close(&host->producer);
    }
}

// Until the rollups have all samples, and nothing is older than retention lets it become.
static void await_retention(const struct history *history)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + PATIENCE_S * (uint64_t)SECOND_NS;
    char old[160];
    (void)snprintf(old, sizeof old,
                   "SELECT count(*) FROM (SELECT 1 FROM device_sample WHERE"
                   " started_ns < %lld LIMIT 1)",
                   (long long)(history->until_ns - DAY_S * SECOND_NS - 60 * SECOND_NS));
    static const char lacking[] =
        "SELECT (SELECT max(id) FROM device_sample) > (SELECT min(watermark) FROM rollup_state "
        "WHERE"
        " metric / 256 = 10) OR (SELECT max(id) FROM host_sample) > (SELECT min(watermark) FROM"
        " rollup_state WHERE metric / 256 = 12)";
    while (bench_ask(history->path, lacking) > 0 || bench_ask(history->path, old) > 0) {
        if (clock_monotonic_ns() > deadline_ns)
            bench_die("inferstatd", "does not expire what it may");
        clock_sleep_until_ns(clock_monotonic_ns() + (uint64_t)SECOND_NS);
    }
}

static void write_history(struct history *history)
{
    const char *argv[] = {INFERSTATD, "--db", history->path, "--listen", history->address, NULL};
    if (!daemon_start(&history->daemon, argv))
        bench_die("inferstatd", history->daemon.output);
    for (unsigned i = 0; i < history->plan->hosts; i++)
        open_host(history, &history->hosts[i], i);
    send_all(history);
    await_retention(history);
    if (daemon_end(&history->daemon, SIGTERM) != 0)
        bench_die("inferstatd", history->daemon.output);
}

// ---- Asking --------------------------------------------------------------------------------

// Milliseconds that an average over a window of the last day takes.
static double ask(struct store *store, const char *metric, const char *host, int64_t since_ns,
                  int64_t until_ns)
{
    struct query query = {.kind = QUERY_AVERAGE, .filter = {.since_ns = since_ns}};
    struct result *result = NULL;
    struct error err = {0};
    query.filter.until_ns = until_ns;
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    if (host)
        (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", host);
    const uint64_t began_ns = clock_monotonic_ns();
    if (store_query(store, &query, &result, &err) != STATUS_OK)
        bench_die("average", err.text);
    const double took_ms = (double)(clock_monotonic_ns() - began_ns) / 1e6;
    result_free(result);
    return took_ms;
}

static void ask_all(const struct history *history, struct history_result *result)
{
    static const char *const metrics[] = {"gpu_util_ratio", "power_watts", "sm_clock_hz",
                                          "throttled_ratio", "host_sample.memory_available_bytes"};
    double times[3][QUERIES]; // of a host, of the fleet, of the fleet in short windows
    struct health random = {.random = 7};
    const double length_s = history->plan->hours < 24 ? history->plan->hours * HOUR_S : DAY_S;
    struct store *store = NULL;
    struct error err = {0};
    if (store_open(&store, history->path, &err) != STATUS_OK)
        bench_die("store", err.text);
    for (unsigned i = 0; i < QUERIES; i++) {
        const char *metric = metrics[i % (sizeof metrics / sizeof *metrics)];
        char host[32];
        (void)snprintf(host, sizeof host, "host-%u", 1 + i % history->plan->hosts);
        const double part = health_uniform(&random);
        const double lengths_s[] = {60 + part * (length_s - 120), 600 + part * (length_s - 660),
                                    60 + part * 539};
        const int64_t latest_ns = history->until_ns - (int64_t)(health_uniform(&random) * 1e9 * 60);
        for (unsigned k = 0; k < 3; k++)
            times[k][i] = ask(store, metric, k == 0 ? host : NULL,
                              latest_ns - (int64_t)(lengths_s[k] * 1e9), latest_ns);
    }
    store_close(store);
    result->host_p50_ms = bench_quantile(times[0], QUERIES, 0.5);
    result->host_p99_ms = bench_quantile(times[0], QUERIES, 0.99);
    result->fleet_p50_ms = bench_quantile(times[1], QUERIES, 0.5);
    result->fleet_p99_ms = bench_quantile(times[1], QUERIES, 0.99);
    result->short_p99_ms = bench_quantile(times[2], QUERIES, 0.99);
}

void history_run(const struct history_plan *plan, struct history_result *result)
{
    const int64_t minute_ns =
        BATCH_SECONDS * SECOND_NS; // a batch is one, as of hosts that are in step
    struct history history = {.plan = plan, .until_ns = clock_wall_ns() / minute_ns * minute_ns};
    const double seconds = (double)plan->hosts * plan->devices * plan->hours * HOUR_S;
    history.hosts = calloc(plan->hosts, sizeof *history.hosts);
    if (!history.hosts)
        bench_die("history", "out of memory");
    (void)folder_path(history.path, plan->folder, "history.db");
    (void)snprintf(history.address, sizeof history.address, "ipc://%s", plan->folder);
    (void)snprintf(history.endpoint, sizeof history.endpoint, "%s/ingest", history.address);
    write_history(&history);
    ask_all(&history, result);
    result->device_second_bytes =
        (double)bench_ask(history.path, "SELECT (page_count - freelist_count) * page_size FROM"
                                        " pragma_page_count, pragma_freelist_count,"
                                        " pragma_page_size") /
        seconds;
    result->raw_bytes =
        (double)bench_ask(history.path, "SELECT sum(pgsize) FROM dbstat WHERE name LIKE"
                                        " '%_sample%'") /
        seconds;
    result->rollup_bytes =
        (double)bench_ask(history.path, "SELECT sum(pgsize) FROM dbstat WHERE name = 'rollup'") /
        seconds;
    free(history.hosts);
}
