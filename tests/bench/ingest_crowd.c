// Producers in lanes: a lane is a thread with a ZeroMQ context of its own and some
// of the producers, whose sockets it serves in turn.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/sys/clock.h"
#include "common/wire/keys.h"
#include "tests/bench/bench.h"
#include "tests/bench/bench_store.h"
#include "tests/bench/ingest.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"

enum {
    BATCH_MAX = 1024, // records: what the library sends at most
    LANES_MAX = 20,
    LANE_PRODUCERS_MAX = 25,
    REST_S = 2,
    PATIENCE_S = 120,
    LOOK_NS = 20000000,
};

struct frame {
    unsigned char *bytes;
    size_t size;
    uint64_t last; // number of its last record
};

struct sender {
    struct producer producer;
    struct frame *frames;
    size_t frame_count, sent;
    uint64_t records;
};

struct lane {
    pthread_t thread;
    struct wire_context *context;
    unsigned count;
    struct sender senders[LANE_PRODUCERS_MAX];
};

struct crowd_run {
    const struct load *load;
    unsigned lane_count;
    uint64_t records; // of all producers
    struct wire_pass pass;
    bool sealed, no_rollups; // by it
    char path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8], endpoint[FOLDER_PATH_SIZE + 16];
    struct daemon daemon;
    struct lane lanes[LANES_MAX];
};

// Batches as large as the library would make them: what credit allows, at most.
static void prepare_frames(struct sender *sender, const struct load *load, unsigned place,
                           uint64_t records)
{
    const uint64_t credit = sender->producer.credit ? sender->producer.credit : 1;
    const uint64_t batch = credit < BATCH_MAX ? credit : BATCH_MAX;
    const uint64_t offset = load->count > records ? place * records % (load->count - records) : 0;
    sender->records = records;
    sender->frames = calloc((size_t)(records / batch + 1), sizeof *sender->frames);
    if (!sender->frames)
        bench_die("frames", "out of memory");
    for (uint64_t first = 1; first <= records; first += batch) {
        struct frame *frame = &sender->frames[sender->frame_count++];
        const uint64_t size = records - first + 1 < batch ? records - first + 1 : batch;
        frame->last = first + size - 1;
        frame->bytes =
            producer_encode(&sender->producer, 0, first, &load->records[offset + first - 1],
                            (size_t)size, &frame->size);
    }
}

static void greet(struct producer *producer)
{
    producer_hello(producer, NULL, 0);
    if (!producer_await(producer, 10000))
        bench_die("hello", "no answer");
    producer->next[0] = 1;
}

static void open_lane(struct crowd_run *run, struct lane *lane, unsigned count, unsigned place)
{
    struct error err = {0};
    if (wire_context_new(&lane->context, &err) != STATUS_OK)
        bench_die("context", err.text);
    lane->count = count;
    for (unsigned i = 0; i < count; i++) {
        struct producer *producer = &lane->senders[i].producer;
        producer_open_in(producer, lane->context, run->endpoint, run->sealed ? &run->pass : NULL,
                         place + i + 1);
        greet(producer);
    }
}

// The credit of each is known when all have come.
static void prepare_lane(struct crowd_run *run, struct lane *lane, unsigned place, uint64_t share)
{
    for (unsigned i = 0; i < lane->count; i++) {
        greet(&lane->senders[i].producer);
        prepare_frames(&lane->senders[i], run->load, place + i, share);
    }
}

static void open_lanes(struct crowd_run *run, unsigned producers)
{
    const unsigned lanes = producers < LANES_MAX ? producers : LANES_MAX;
    const uint64_t fair = run->load->count / producers;
    const uint64_t share = fair < 2 * BATCH_MAX ? 2 * BATCH_MAX : fair;
    for (unsigned i = 0, place = 0; i < lanes; place += run->lanes[i++].count)
        open_lane(run, &run->lanes[i], producers / lanes + (i < producers % lanes), place);
    for (unsigned i = 0, place = 0; i < lanes; place += run->lanes[i++].count)
        prepare_lane(run, &run->lanes[i], place, share);
    run->lane_count = lanes;
    run->records = share * producers;
}

static bool is_done(const struct sender *sender)
{
    return sender->producer.next[0] > sender->records;
}

// Whether credit allows the next frame; one may always be under way.
static bool may_send(const struct sender *sender)
{
    if (sender->sent == sender->frame_count)
        return false;
    const uint64_t stored = sender->producer.next[0] - 1;
    const uint64_t flying = sender->sent ? sender->frames[sender->sent - 1].last - stored : 0;
    return flying == 0 || sender->frames[sender->sent].last - stored <= sender->producer.credit;
}

// Takes the acknowledgements that are there and sends as far as credit goes.
// False where the socket takes no more for now.
static bool serve(struct sender *sender)
{
    while (producer_await(&sender->producer, 0)) {
        // The next one.
    }
    while (may_send(sender)) {
        const struct frame *frame = &sender->frames[sender->sent];
        if (wire_send(sender->producer.socket, frame->bytes, frame->size) != STATUS_OK)
            return false;
        sender->sent++;
    }
    return true;
}

static void *run_lane(void *context)
{
    struct lane *lane = context;
    for (;;) {
        struct wire_socket *waiting[LANE_PRODUCERS_MAX];
        size_t count = 0;
        int64_t patience_ns = 1000000000;
        for (unsigned i = 0; i < lane->count; i++) {
            if (!is_done(&lane->senders[i]) && !serve(&lane->senders[i]))
                patience_ns = 1000000;
            if (is_done(&lane->senders[i]))
                continue;
            waiting[count++] = lane->senders[i].producer.socket;
        }
        if (count == 0)
            return NULL;
        uint32_t ready;
        wire_wait(waiting, count, -1, patience_ns, &ready);
    }
}

// Keys for both sides, and the list that lets the producers in: one key for all.
static void make_keys(struct crowd_run *run, const char *key, const char *list)
{
    struct error err = {0};
    struct wire_keypair server;
    char text[WIRE_KEY_TEXT_SIZE];
    FILE *file = fopen(list, "w");
    if (!file || keys_create(&server, key, "bench", &err) != STATUS_OK ||
        wire_keypair_new(&run->pass.own, &err) != STATUS_OK)
        bench_die("keys", err.text);
    memcpy(run->pass.server_key, server.public_key, sizeof run->pass.server_key);
    fprintf(file, "%s producer bench\n", wire_key_text(text, run->pass.own.public_key));
    if (fchmod(fileno(file), 0600) != 0 || fclose(file) != 0)
        bench_die("keys", "not written");
}

static void start_daemon(struct crowd_run *run, const struct load *load)
{
    char key[FOLDER_PATH_SIZE], list[FOLDER_PATH_SIZE];
    const char *argv[] = {INFERSTATD,
                          "--db",
                          run->path,
                          "--listen",
                          run->address,
                          "--rollups",
                          run->no_rollups ? "off" : "on",
                          "--key",
                          key,
                          "--authorized-keys",
                          list,
                          NULL};
    (void)folder_path(run->path, load->folder, "collector.db");
    (void)folder_path(key, load->folder, "server.key");
    (void)folder_path(list, load->folder, "keys");
    if (run->sealed) {
        make_keys(run, key, list);
        (void)snprintf(run->address, sizeof run->address, "tcp://127.0.0.1:%u",
                       bench_free_ports(4));
        (void)snprintf(run->endpoint, sizeof run->endpoint, "%s", run->address);
    } else {
        (void)snprintf(run->address, sizeof run->address, "ipc://%s", load->folder);
        (void)snprintf(run->endpoint, sizeof run->endpoint, "%s/ingest", run->address);
        argv[7] = NULL;
    }
    if (!daemon_start(&run->daemon, argv))
        bench_die("inferstatd", run->daemon.output);
}

// Every record is there once, and each run's ledger says so too.
static void check_stored(const struct crowd_run *run)
{
    static const char wrong[] =
        "SELECT count(*) FROM (SELECT run, count(*) AS rows FROM inference GROUP BY run) c"
        " JOIN run r USING(run) JOIN range g USING(run) WHERE g.first <> 1 OR g.last <> c.rows"
        " OR r.stored <> c.rows OR (SELECT sum(l.stored) FROM ledger l WHERE l.run = r.run) <> "
        "c.rows";
    if ((uint64_t)bench_ask(run->path, "SELECT count(*) FROM inference") != run->records)
        bench_die("store", "not every record is in it");
    if (bench_ask(run->path, wrong) != 0)
        bench_die("store", "its ledger does not balance");
}

static void await_rollups(const struct crowd_run *run)
{
    const uint64_t deadline_ns = clock_monotonic_ns() + PATIENCE_S * UINT64_C(1000000000);
    while (bench_ask(run->path, INGEST_LACKING) > 0) {
        if (clock_monotonic_ns() > deadline_ns)
            bench_die("inferstatd", "its rollups do not get all records");
        clock_sleep_until_ns(clock_monotonic_ns() + LOOK_NS);
    }
}

static void send_all(struct crowd_run *run)
{
    for (unsigned i = 0; i < run->lane_count; i++)
        if (pthread_create(&run->lanes[i].thread, NULL, run_lane, &run->lanes[i]) != 0)
            bench_die("producers", "no thread");
    for (unsigned i = 0; i < run->lane_count; i++)
        (void)pthread_join(run->lanes[i].thread, NULL);
}

static void close_lanes(struct crowd_run *run)
{
    for (unsigned i = 0; i < run->lane_count; i++) {
        struct lane *lane = &run->lanes[i];
        for (unsigned k = 0; k < lane->count; k++) {
            for (size_t f = 0; f < lane->senders[k].frame_count; f++)
                free(lane->senders[k].frames[f].bytes);
            free(lane->senders[k].frames);
            producer_close(&lane->senders[k].producer);
        }
        wire_context_free(lane->context);
    }
}

static void rest(unsigned seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds};
    (void)nanosleep(&time, NULL);
}

static void remove_files(const struct load *load)
{
    static const char *const names[] = {"collector.db", "collector.db-wal", "collector.db-shm",
                                        "server.key",   "server.key.pub",   "keys"};
    char path[FOLDER_PATH_SIZE];
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        (void)remove(folder_path(path, load->folder, names[i]));
}

void crowd_rate(const struct load *load, const struct crowd *crowd, struct crowd_result *result)
{
    struct crowd_run *run = calloc(1, sizeof *run);
    if (!run)
        bench_die("producers", "out of memory");
    run->load = load;
    run->sealed = crowd->sealed;
    run->no_rollups = crowd->no_rollups;
    start_daemon(run, load);
    result->idle_bytes = bench_resident(run->daemon.pid);
    open_lanes(run, crowd->producers);
    bench_forget_peak(run->daemon.pid);
    double busiest_before, busiest;
    const double before = bench_process_seconds(run->daemon.pid, &busiest_before);
    const uint64_t began = clock_monotonic_ns();
    send_all(run);
    const uint64_t ended = clock_monotonic_ns();
    const bool waits = crowd->producers == INGEST_PRODUCERS && !crowd->no_rollups;
    result->lacking = waits ? (double)bench_ask(run->path, INGEST_LACKING) : 0;
    if (waits)
        await_rollups(run);
    const double all = bench_process_seconds(run->daemon.pid, &busiest);
    result->processor_ns = (all - before) * 1e9 / (double)run->records;
    result->busiest_ns = (busiest - busiest_before) * 1e9 / (double)run->records;
    result->rate = (double)run->records * 1e9 / (double)(ended - began);
    result->peak_bytes = bench_resident_peak(run->daemon.pid);
    close_lanes(run);
    if (crowd->producers == INGEST_CROWD)
        rest(REST_S); // whether it gives memory back
    result->after_bytes = bench_resident(run->daemon.pid);
    if (daemon_end(&run->daemon, SIGTERM) != 0)
        bench_die("inferstatd", run->daemon.output);
    check_stored(run);
    remove_files(load);
    free(run);
}
