// Hosts in lanes: a lane is a thread with a ZeroMQ context of its own and some of the hosts.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/core/stats/sketch.h"
#include "common/sys/clock.h"
#include "tests/bench/bench_store.h"
#include "tests/bench/samples/samples.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"
#include "tests/support/store/health.h"

enum {
    LANE_HOSTS_MAX = 25,
    LANES_MAX = 60,
    FLIGHTS_MAX = 64, // unacknowledged batches of a host: half a minute
    PATIENCE_S = 60,
    MODELS = 20,
    GAPS = 40, // of a record
    FIRST_DEVICE = MODELS + 1,
};

#define SECOND_NS UINT64_C(1000000000)
#define HALF_NS   (SECOND_NS / 2)

struct flight {
    uint64_t last, due_ns; // number of its last record
};

struct host {
    struct producer producer;
    struct health health, *devices;
    unsigned model; // name
    uint64_t due_ns, number, inferences;
    bool is_inference; // what it sends next
    struct flight flights[FLIGHTS_MAX];
    unsigned first_flight, flight_count;
};

struct lane {
    pthread_t thread;
    const struct fleet_plan *plan;
    struct wire_context *context;
    uint64_t until_ns;
    unsigned count;
    struct host hosts[LANE_HOSTS_MAX];
    double *waits_ms;
    size_t wait_count, wait_room;
};

struct fleet {
    char path[FOLDER_PATH_SIZE], log[FOLDER_PATH_SIZE + 8];
    char address[FOLDER_PATH_SIZE + 8], endpoint[FOLDER_PATH_SIZE + 16];
    struct daemon daemon;
    unsigned lane_count;
    struct lane lanes[LANES_MAX];
};

// ---- A host --------------------------------------------------------------------------------

static void greet(struct producer *producer)
{
    producer_hello(producer, NULL, 0);
    if (!producer_await(producer, 30000))
        bench_die("hello", "no answer");
    producer->next[0] = 1;
}

// Names: up to MODELS the models, of which a host has one, then the devices.
static void open_host(struct lane *lane, struct host *host, const char *endpoint, unsigned place)
{
    const unsigned devices = lane->plan->devices;
    producer_open_in(&host->producer, lane->context, endpoint, NULL, place + 1);
    host->producer.names_told = MODELS + devices;
    host->model = 1 + place % MODELS;
    host->devices = calloc(devices, sizeof *host->devices);
    if (!host->devices)
        bench_die("hosts", "out of memory");
    host->health.random = place;
    for (unsigned i = 0; i < devices; i++)
        host->devices[i].random = UINT64_C(1) << 32 | place << 8 | i;
    greet(&host->producer);
}

static void put_device(struct record *record, const struct host *host, unsigned i, int64_t at_ns)
{
    char uuid[32];
    (void)snprintf(uuid, sizeof uuid, "GPU-%016llx", (unsigned long long)host->devices[i].random);
    record_init(record, RECORD_KIND_DEVICE, at_ns);
    record_set_int(record, DEVICE_ORDINAL, i);
    record_set_name(record, DEVICE_NAME, FIRST_DEVICE + i);
    record_set_text(record, DEVICE_UUID, uuid, strlen(uuid));
    record_set_int(record, DEVICE_MEMORY_BYTES, INT64_C(1) << 36);
}

static void put_process(struct record *record, int64_t at_ns)
{
    record_init(record, RECORD_KIND_PROCESS_SAMPLE, at_ns);
    record_set_real(record, PROCESS_SAMPLE_CPU, 0.37);
    record_set_int(record, PROCESS_SAMPLE_HOST_MEMORY, INT64_C(4294967296));
    record_set_int(record, PROCESS_SAMPLE_RUNNING, 3);
    record_set_int(record, PROCESS_SAMPLE_WAITING, 0);
}

static void put_gaps(struct record *record, const struct host *host, int64_t at_ns)
{
    char bytes[512];
    struct sketch *sketch = NULL;
    if (sketch_new(&sketch) != STATUS_OK)
        bench_die("gaps", "out of memory");
    for (unsigned i = 0; i < GAPS; i++)
        sketch_add(sketch, 2e7 + (double)((host->inferences + i) % 16) * 1e6, 1);
    record_init(record, RECORD_KIND_ITL, at_ns);
    record_set_name(record, ITL_MODEL, host->model);
    record_set_name(record, ITL_DEVICE, FIRST_DEVICE);
    record_set_int(record, ITL_DURATION_NS, (int64_t)SECOND_NS);
    record_set_blob(record, ITL_SKETCH, bytes, sketch_encode_whole(sketch, bytes, sizeof bytes));
    sketch_free(sketch);
}

static size_t make_records(struct lane *lane, struct host *host, struct record *records)
{
    const int64_t now_ns = clock_wall_ns(), began_ns = now_ns - (int64_t)SECOND_NS;
    size_t count = 0;
    if (host->is_inference) {
        producer_inference(&records[0], ++host->inferences);
        record_set_name(&records[0], INFERENCE_MODEL, host->model);
        record_set_name(&records[0], INFERENCE_DEVICE, FIRST_DEVICE);
        records[0].started_ns = began_ns;
        if (lane->plan->has_gaps)
            put_gaps(&records[1], host, began_ns);
        return lane->plan->has_gaps ? 2 : 1;
    }
    for (unsigned i = 0; i < lane->plan->devices && host->number == 0; i++)
        put_device(&records[count++], host, i, began_ns);
    for (unsigned i = 0; i < lane->plan->devices; i++)
        health_device_sample(&records[count++], &host->devices[i], FIRST_DEVICE + i, began_ns,
                             SECOND_NS);
    health_host_sample(&records[count++], &host->health, began_ns, SECOND_NS);
    put_process(&records[count++], now_ns);
    return count;
}

static void send_due(struct lane *lane, struct host *host)
{
    struct record records[2 * HEALTH_DEVICES_MAX + 2];
    const size_t count = make_records(lane, host, records);
    if (host->flight_count == FLIGHTS_MAX)
        bench_die("inferstatd", "half a minute behind");
    producer_batch(&host->producer, 0, host->number + 1, records, count);
    host->number += count;
    host->flights[(host->first_flight + host->flight_count++) % FLIGHTS_MAX] =
        (struct flight){host->number, host->due_ns};
    host->is_inference = !host->is_inference;
    host->due_ns += HALF_NS;
}

static void take_acknowledgements(struct lane *lane, struct host *host)
{
    while (producer_await(&host->producer, 0)) {
        // The next one.
    }
    const uint64_t now_ns = clock_monotonic_ns();
    while (host->flight_count > 0 &&
           host->flights[host->first_flight].last < host->producer.next[0]) {
        if (lane->wait_count < lane->wait_room)
            lane->waits_ms[lane->wait_count++] =
                (double)(now_ns - host->flights[host->first_flight].due_ns) / 1e6;
        host->first_flight = (host->first_flight + 1) % FLIGHTS_MAX;
        host->flight_count--;
    }
}

// ---- Lanes ---------------------------------------------------------------------------------

static void *run_lane(void *context)
{
    struct lane *lane = context;
    for (;;) {
        struct wire_socket *sockets[LANE_HOSTS_MAX];
        uint64_t next_ns = clock_monotonic_ns() + SECOND_NS;
        size_t busy = 0;
        for (unsigned i = 0; i < lane->count; i++) {
            struct host *host = &lane->hosts[i];
            take_acknowledgements(lane, host);
            if (host->due_ns < lane->until_ns && clock_monotonic_ns() >= host->due_ns)
                send_due(lane, host);
            const bool goes_on = host->due_ns < lane->until_ns;
            if (goes_on && host->due_ns < next_ns)
                next_ns = host->due_ns;
            if (goes_on || host->flight_count > 0)
                sockets[busy++] = host->producer.socket;
        }
        const uint64_t now_ns = clock_monotonic_ns();
        if (busy == 0)
            return NULL;
        if (now_ns > lane->until_ns + PATIENCE_S * SECOND_NS)
            bench_die("inferstatd", "does not acknowledge");
        uint32_t ready = 0;
        wire_wait(sockets, busy, -1, next_ns > now_ns ? (int64_t)(next_ns - now_ns) : 0, &ready);
    }
}

static void open_lanes(struct fleet *fleet, const struct fleet_plan *plan)
{
    struct error err = {0};
    for (unsigned place = 0; place < plan->hosts; place++) {
        struct lane *lane = &fleet->lanes[place / LANE_HOSTS_MAX];
        if (place % LANE_HOSTS_MAX == 0) {
            fleet->lane_count++;
            lane->plan = plan;
            lane->wait_room = (size_t)LANE_HOSTS_MAX * plan->seconds * 2;
            lane->waits_ms = malloc(lane->wait_room * sizeof *lane->waits_ms);
            if (!lane->waits_ms || wire_context_new(&lane->context, &err) != STATUS_OK)
                bench_die("lanes", "not opened");
        }
        open_host(lane, &lane->hosts[lane->count++], fleet->endpoint, place);
    }
}

// The hosts' seconds begin at all times of a second.
static void send_all(struct fleet *fleet, const struct fleet_plan *plan)
{
    const uint64_t start_ns = clock_monotonic_ns() + SECOND_NS / 10;
    unsigned place = 0;
    for (unsigned i = 0; i < fleet->lane_count; i++) {
        struct lane *lane = &fleet->lanes[i];
        lane->until_ns = start_ns + plan->seconds * SECOND_NS;
        for (unsigned k = 0; k < lane->count; k++)
            lane->hosts[k].due_ns = start_ns + place++ * SECOND_NS / plan->hosts;
        if (pthread_create(&lane->thread, NULL, run_lane, lane) != 0)
            bench_die("lanes", "no thread");
    }
    for (unsigned i = 0; i < fleet->lane_count; i++)
        (void)pthread_join(fleet->lanes[i].thread, NULL);
}

// Returns how many records were sent.
static uint64_t close_lanes(struct fleet *fleet)
{
    uint64_t sent = 0;
    for (unsigned i = 0; i < fleet->lane_count; i++) {
        struct lane *lane = &fleet->lanes[i];
        for (unsigned k = 0; k < lane->count; k++) {
            sent += lane->hosts[k].number;
            producer_close(&lane->hosts[k].producer);
            free(lane->hosts[k].devices);
        }
        free(lane->waits_ms);
        wire_context_free(lane->context);
    }
    return sent;
}

static void set_waits(const struct fleet *fleet, struct fleet_result *result)
{
    size_t count = 0, room = 0;
    for (unsigned i = 0; i < fleet->lane_count; i++)
        room += fleet->lanes[i].wait_count;
    double *all = malloc((room + 1) * sizeof *all);
    if (!all || room == 0)
        bench_die("hosts", "nothing was acknowledged");
    for (unsigned i = 0; i < fleet->lane_count; i++) {
        memcpy(all + count, fleet->lanes[i].waits_ms, fleet->lanes[i].wait_count * sizeof *all);
        count += fleet->lanes[i].wait_count;
    }
    result->acknowledged_p50_ms = bench_quantile(all, count, 0.5);
    result->acknowledged_p99_ms = bench_quantile(all, count, 0.99);
    result->acknowledged_max_ms = bench_quantile(all, count, 1);
    free(all);
}

// ---- All together --------------------------------------------------------------------------

static void start_daemon(struct fleet *fleet, const struct fleet_plan *plan)
{
    const char *argv[] = {INFERSTATD, "--db", fleet->path, "--listen", fleet->address, NULL};
    (void)folder_path(fleet->path, plan->folder, "fleet.db");
    (void)snprintf(fleet->log, sizeof fleet->log, "%s-wal", fleet->path);
    (void)snprintf(fleet->address, sizeof fleet->address, "ipc://%s", plan->folder);
    (void)snprintf(fleet->endpoint, sizeof fleet->endpoint, "%s/ingest", fleet->address);
    if (!daemon_start(&fleet->daemon, argv))
        bench_die("inferstatd", fleet->daemon.output);
}

static double bytes_of(const char *path, const char *kind)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (SELECT sum(pgsize) FROM dbstat WHERE name LIKE '%s%%')"
                   " * 1000 / (SELECT count(*) FROM \"%s\")",
                   kind, kind);
    return (double)bench_ask(path, sql) / 1000;
}

static void check_stored(const struct fleet *fleet, uint64_t sent)
{
    if ((uint64_t)bench_ask(fleet->path, "SELECT sum(stored) FROM ledger") != sent)
        bench_die("store", "not every record is in it");
    if (bench_ask(fleet->path, "SELECT (SELECT count(*) FROM device_sample) - (SELECT sum(stored)"
                               " FROM ledger WHERE kind = 10)") != 0)
        bench_die("store", "its ledger does not balance");
}

static double own_seconds(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void fleet_run(const struct fleet_plan *plan, struct fleet_result *result)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (!fleet)
        bench_die("fleet", "out of memory");
    start_daemon(fleet, plan);
    open_lanes(fleet, plan);
    bench_forget_peak(fleet->daemon.pid);
    double busiest_before, busiest;
    const double own = own_seconds();
    const double before = bench_process_seconds(fleet->daemon.pid, &busiest_before);
    const uint64_t began_ns = clock_monotonic_ns();
    send_all(fleet, plan);
    const double seconds = (double)(clock_monotonic_ns() - began_ns) / 1e9;
    result->processors = (bench_process_seconds(fleet->daemon.pid, &busiest) - before) / seconds;
    result->busiest = (busiest - busiest_before) / seconds;
    result->own_processors = (own_seconds() - own) / seconds;
    result->peak_bytes = bench_resident_peak(fleet->daemon.pid);
    result->lacking = (double)bench_ask(
        fleet->path, "SELECT coalesce(max(id), 0) - (SELECT coalesce(min(watermark), 0)"
                     " FROM rollup_state WHERE metric / 256 = 10) FROM device_sample");
    struct stat log;
    result->log_bytes = stat(fleet->log, &log) == 0 ? (uint64_t)log.st_size : 0;
    set_waits(fleet, result);
    const uint64_t sent = close_lanes(fleet);
    if (daemon_end(&fleet->daemon, SIGTERM) != 0)
        bench_die("inferstatd", fleet->daemon.output);
    check_stored(fleet, sent);
    result->sample_bytes = bytes_of(fleet->path, "device_sample");
    result->host_sample_bytes = bytes_of(fleet->path, "host_sample");
    free(fleet);
}
