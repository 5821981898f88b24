// What it costs those who send records that others are let go of: a month of a history
// expires and another is cleared, while 8 producers send at half the
// speed that the collector takes; and how far the store's log grows while somebody reads for long.
//
//   bench_keep [--json] [--quick] [--inferences N] [--seconds N]
//
// An acknowledgement's latency is from the sending of a batch of 256 records to the Ack
// that covers it.  The yardstick, in the same run and on the same store, are the
// latencies at the same speed while nothing is let go of: figures named
// ratio_to_undisturbed are by those.  Beside each phase stands the slowest of the waits
// for the disk that a thread of the bench itself had then: where that is slow, so is any
// acknowledgement.  --quick is a small history for a moment, to see that it works.
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/store/sqlite/database.h"
#include "common/store/rollup/rollup.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/bench/bench.h"
#include "tests/bench/bench_store.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/store/history.h"
#include "tests/support/producer.h"

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS    INT64_C(86400000000000)

enum {
    PRODUCERS = 8,
    BATCH = 256,
    LATENCIES_MAX = 1 << 20,
    HISTORY_DAYS = 90,
    LOG_LOOK_NS = 20000000,
    PATIENCE_S = 300,
    PROBE_BYTES = 65536,
    PROBE_FILE_BYTES = 1 << 22,
    PROBE_NS = 20000000,
};

struct settings {
    uint64_t inferences;
    unsigned seconds; // of each phase
    bool json, quick;
};

// A producer with batches under way.
struct byte_source {
    struct producer producer;
    uint64_t next;    // number of its next record
    uint64_t sent_ns; // when the batch under way was sent
    bool is_waiting;  // for its Ack
};

// Writes and waits for the disk now and then, as the collector does: a thread.
struct probe {
    const char *folder;
    atomic_bool stop;
    pthread_t thread;
    double slowest; // seconds
};

// What the 8 of them are doing: a thread.
struct feed {
    char endpoint[FOLDER_PATH_SIZE + 16];
    double rate; // records a second; 0: as many as are taken
    atomic_bool stop;
    pthread_t thread;
    struct wire_context *context;
    struct byte_source sources[PRODUCERS];
    double *latencies; // seconds
    size_t count;
    uint64_t records, began_ns, ended_ns;
    struct probe probe;
};

struct bench {
    struct settings settings;
    const char *folder;
    char path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8];
    struct daemon daemon;
    double full_rate;
    unsigned feeds; // so far: each is of new runs
};

static void *run_probe(void *context)
{
    static const char bytes[PROBE_BYTES];
    struct probe *probe = context;
    char path[FOLDER_PATH_SIZE];
    (void)folder_path(path, probe->folder, "probe");
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        bench_die(path, "cannot be made");
    for (off_t at = 0; !atomic_load(&probe->stop); at = (at + PROBE_BYTES) % PROBE_FILE_BYTES) {
        const uint64_t began_ns = clock_monotonic_ns();
        if (pwrite(fd, bytes, sizeof bytes, at) != PROBE_BYTES || fdatasync(fd) != 0)
            bench_die(path, "cannot be written");
        probe->slowest = fmax(probe->slowest, (double)(clock_monotonic_ns() - began_ns) / 1e9);
        clock_sleep_until_ns(clock_monotonic_ns() + PROBE_NS);
    }
    (void)close(fd);
    return NULL;
}

// ---- Sending --------------------------------------------------------------------------

static void send_batch(struct byte_source *source)
{
    static struct record records[BATCH];
    const int64_t now_ns = clock_wall_ns();
    for (unsigned i = 0; i < BATCH; i++) {
        producer_inference(&records[i], source->next + i);
        records[i].started_ns = now_ns;
    }
    size_t size;
    unsigned char *bytes =
        producer_encode(&source->producer, 0, source->next, records, BATCH, &size);
    source->sent_ns = clock_monotonic_ns();
    producer_send(&source->producer, bytes, size);
    free(bytes);
    source->next += BATCH;
    source->is_waiting = true;
}

static void take_acks(struct feed *feed, struct byte_source *source)
{
    while (producer_await(&source->producer, 0)) {
        if (!source->is_waiting || source->producer.next[0] < source->next)
            continue;
        source->is_waiting = false;
        feed->records += BATCH;
        if (feed->count < LATENCIES_MAX)
            feed->latencies[feed->count++] = (double)(clock_monotonic_ns() - source->sent_ns) / 1e9;
    }
}

// Waits for an Ack, or until the next batch is due.
static void wait_a_moment(struct feed *feed, int64_t until_due_ns)
{
    struct wire_socket *sockets[PRODUCERS];
    uint32_t ready;
    for (unsigned i = 0; i < PRODUCERS; i++)
        sockets[i] = feed->sources[i].producer.socket;
    if (until_due_ns > 0)
        wire_wait(sockets, PRODUCERS, -1, until_due_ns < 5000000 ? until_due_ns : 5000000, &ready);
}

// Batches are due at even distances; what a late Ack keeps back is sent when it can be.
static void *run_feed(void *context)
{
    struct feed *feed = context;
    const double apart_ns = feed->rate > 0 ? BATCH * 1e9 / feed->rate : 0;
    uint64_t due = 0; // batches so far
    feed->began_ns = clock_monotonic_ns();
    while (!atomic_load(&feed->stop)) {
        bool is_sent = false;
        for (unsigned i = 0; i < PRODUCERS; i++) {
            struct byte_source *source = &feed->sources[i];
            take_acks(feed, source);
            const double due_ns = (double)feed->began_ns + (double)due * apart_ns;
            if (source->is_waiting || (double)clock_monotonic_ns() < due_ns)
                continue;
            send_batch(source);
            due++;
            is_sent = true;
        }
        const double next_ns = (double)feed->began_ns + (double)due * apart_ns;
        if (!is_sent)
            wait_a_moment(feed, apart_ns > 0 ? (int64_t)(next_ns - (double)clock_monotonic_ns()) + 1
                                             : 5000000);
    }
    feed->ended_ns = clock_monotonic_ns();
    return NULL;
}

static void feed_start(struct bench *bench, struct feed *feed, double rate)
{
    struct error err = {0};
    *feed = (struct feed){.rate = rate, .probe = {.folder = bench->folder}};
    (void)snprintf(feed->endpoint, sizeof feed->endpoint, "%s/ingest", bench->address);
    feed->latencies = calloc(LATENCIES_MAX, sizeof *feed->latencies);
    if (!feed->latencies || wire_context_new(&feed->context, &err) != STATUS_OK)
        bench_die("producers", err.text);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        struct byte_source *source = &feed->sources[i];
        producer_open_in(&source->producer, feed->context, feed->endpoint, NULL,
                         1000000 + bench->feeds * PRODUCERS + i);
        producer_hello(&source->producer, NULL, 0);
        if (!producer_await(&source->producer, 10000))
            bench_die("hello", "no answer");
        source->next = 1;
    }
    bench->feeds++;
    if (pthread_create(&feed->thread, NULL, run_feed, feed) != 0 ||
        pthread_create(&feed->probe.thread, NULL, run_probe, &feed->probe) != 0)
        bench_die("producers", "no thread");
}

// What became of it: figures of the latencies, in milliseconds.
struct latency {
    double rate, p50, p99, most;
    double disk_most; // the slowest wait for the disk alone
};

static struct latency feed_end(struct feed *feed)
{
    atomic_store(&feed->stop, true);
    (void)pthread_join(feed->thread, NULL);
    atomic_store(&feed->probe.stop, true);
    (void)pthread_join(feed->probe.thread, NULL);
    struct latency latency = {
        .rate = (double)feed->records * 1e9 / (double)(feed->ended_ns - feed->began_ns),
        .p50 = bench_quantile(feed->latencies, feed->count, 0.5) * 1e3,
        .p99 = bench_quantile(feed->latencies, feed->count, 0.99) * 1e3,
        .most = bench_quantile(feed->latencies, feed->count, 1) * 1e3,
        .disk_most = feed->probe.slowest * 1e3,
    };
    for (unsigned i = 0; i < PRODUCERS; i++)
        producer_close(&feed->sources[i].producer);
    wire_context_free(feed->context);
    free(feed->latencies);
    return latency;
}

static void start(struct bench *bench, const char *retention)
{
    const char *argv[] = {INFERSTATD,     "--db",        bench->path, "--listen",
                          bench->address, "--retention", retention,   NULL};
    if (!daemon_start(&bench->daemon, argv))
        bench_die("inferstatd", bench->daemon.output);
}

static void stop(struct bench *bench)
{
    if (daemon_end(&bench->daemon, SIGTERM) != 0)
        bench_die("inferstatd", bench->daemon.output);
}

static double log_bytes(const struct bench *bench)
{
    char path[FOLDER_PATH_SIZE + 8];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s-wal", bench->path);
    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static void sleep_seconds(double seconds)
{
    clock_sleep_until_ns(clock_monotonic_ns() + (uint64_t)(seconds * 1e9));
}

// The most that the log becomes within so long.
static double watch_log(const struct bench *bench, double seconds)
{
    double most = 0;
    const uint64_t end_ns = clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
    while (clock_monotonic_ns() < end_ns) {
        most = fmax(most, log_bytes(bench));
        clock_sleep_until_ns(clock_monotonic_ns() + LOG_LOOK_NS);
    }
    return most;
}

struct going {
    struct latency latency;
    double rows, seconds, log_bytes;
    double again_seconds; // until the rollups of what was cleared are made again
};

static int64_t count_before(const struct bench *bench, int64_t before_ns)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM inference WHERE started_ns < %lld",
                   (long long)before_ns);
    return bench_ask(bench->path, sql);
}

// A month of records is over its age from the start on.
static void run_expiry(struct bench *bench, struct going *going)
{
    struct feed feed;
    char rule[32];
    const int64_t age_days = HISTORY_DAYS - 30;
    const int64_t floor_ns = clock_wall_ns() - age_days * DAY_NS;
    const uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * SECOND_NS;
    (void)snprintf(rule, sizeof rule, "raw=%lldd", (long long)age_days);
    going->rows = (double)count_before(bench, floor_ns);
    start(bench, rule);
    const uint64_t began_ns = clock_monotonic_ns();
    feed_start(bench, &feed, bench->full_rate / 2);
    while (count_before(bench, floor_ns) > 0) {
        if (clock_monotonic_ns() > end_ns)
            bench_die("expiry", "does not end");
        sleep_seconds(0.2);
    }
    going->seconds = (double)(clock_monotonic_ns() - began_ns) / 1e9;
    going->log_bytes = watch_log(bench, 1);
    going->latency = feed_end(&feed);
    stop(bench);
}

// Records go on coming while rollups are made again of what is left.
static double await_rollups(const struct bench *bench)
{
    const uint64_t began_ns = clock_monotonic_ns();
    const uint64_t end_ns = began_ns + PATIENCE_S * SECOND_NS;
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM rollup_gap WHERE why = %d",
                   (int)ROLLUP_CLEARED);
    while (bench_ask(bench->path, sql) > 0) {
        if (clock_monotonic_ns() > end_ns)
            bench_die("rollups", "are not made again");
        sleep_seconds(0.2);
    }
    return (double)(clock_monotonic_ns() - began_ns) / 1e9;
}

// Another month is cleared.
static void run_clear(struct bench *bench, struct going *going)
{
    struct feed feed;
    char program[] = INFERSTAT, command[] = "clear", collector[] = "--collector",
         until[] = "--until", yes[] = "--yes", age[16];
    char *argv[] = {program, command, collector, bench->address, until, age, yes, NULL};
    pid_t pid;
    int status;
    (void)snprintf(age, sizeof age, "%dd", HISTORY_DAYS - 60);
    going->rows = (double)count_before(bench, clock_wall_ns() - (HISTORY_DAYS - 60) * DAY_NS);
    start(bench, "raw=forever");
    feed_start(bench, &feed, bench->full_rate / 2);
    sleep_seconds(0.5);
    const uint64_t began_ns = clock_monotonic_ns();
    if (posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_die("inferstat clear", "failed");
    going->seconds = (double)(clock_monotonic_ns() - began_ns) / 1e9;
    going->log_bytes = log_bytes(bench);
    going->again_seconds = await_rollups(bench);
    going->latency = feed_end(&feed);
    stop(bench);
}

// A reader that holds snapshots for so long, one after the other without a pause.
struct reader {
    const struct bench *bench;
    double seconds, delay;
    atomic_bool stop;
    pthread_t thread;
};

static void *run_reader(void *context)
{
    struct reader *reader = context;
    struct error err = {0};
    struct sqlite3 *db = NULL;
    int64_t runs = 0;
    sleep_seconds(reader->delay);
    if (database_open_reader(&db, reader->bench->path, &err) != STATUS_OK)
        bench_die("reader", err.text);
    while (!atomic_load(&reader->stop)) {
        if (database_exec(db, "BEGIN", &err) != STATUS_OK ||
            database_integer(db, "SELECT count(*) FROM run", &runs, &err) != STATUS_OK)
            bench_die("reader", err.text);
        const uint64_t end_ns = clock_monotonic_ns() + (uint64_t)(reader->seconds * 1e9);
        while (!atomic_load(&reader->stop) && clock_monotonic_ns() < end_ns)
            clock_sleep_until_ns(clock_monotonic_ns() + LOG_LOOK_NS);
        database_rollback(db);
    }
    database_close(db);
    return NULL;
}

struct reading {
    double most, after;
    struct latency latency;
};

// Two readers whose snapshots overlap, or one; then three seconds without.
static void run_readers(struct bench *bench, unsigned count, double hold, double seconds,
                        struct reading *reading)
{
    struct feed feed;
    struct reader readers[2];
    feed_start(bench, &feed, bench->full_rate / 2);
    sleep_seconds(0.5);
    for (unsigned i = 0; i < count; i++) {
        readers[i] = (struct reader){.bench = bench, .seconds = hold, .delay = i * hold / 2};
        if (pthread_create(&readers[i].thread, NULL, run_reader, &readers[i]) != 0)
            bench_die("reader", "no thread");
    }
    reading->most = watch_log(bench, seconds);
    for (unsigned i = 0; i < count; i++) {
        atomic_store(&readers[i].stop, true);
        (void)pthread_join(readers[i].thread, NULL);
    }
    sleep_seconds(3);
    reading->after = log_bytes(bench);
    reading->latency = feed_end(&feed);
}

// ---- All of it ------------------------------------------------------------------------

static void write_history(struct bench *bench)
{
    struct error err = {0};
    double seconds;
    const struct history history = {.path = bench->path,
                                    .inferences = bench->settings.inferences,
                                    .models = bench->settings.quick ? 4 : 20,
                                    .hosts = bench->settings.quick ? 5 : 50,
                                    .days = HISTORY_DAYS,
                                    .until_ns = clock_wall_ns(),
                                    .seed = 1};
    (void)folder_path(bench->path, bench->folder, "s.db");
    (void)snprintf(bench->address, sizeof bench->address, "ipc://%s", bench->folder);
    if (history_write(&history, &seconds, &err) != STATUS_OK)
        bench_die("history", err.text);
}

static struct latency run_alone(struct bench *bench, double rate)
{
    struct feed feed;
    feed_start(bench, &feed, rate);
    sleep_seconds(bench->settings.seconds);
    return feed_end(&feed);
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {.inferences = 3000000, .seconds = 10};
    bool wrong = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings = (struct settings){20000, 1, settings.json, true};
        else if (strcmp(argv[i], "--inferences") == 0 && i + 1 < argc)
            settings.inferences = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            settings.seconds = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            wrong = true;
    }
    if (!wrong && settings.seconds >= 1 && settings.inferences >= 10000)
        return settings;
    (void)fprintf(stderr, "usage: bench_keep [--json] [--quick] [--inferences N] [--seconds N]\n"
                          "       (at least 10000 and 1)\n");
    exit(2);
}

struct line {
    const char *key, *text, *unit, *goal;
    double value;
    int digits;
};

static void print(const struct line *lines, size_t count, bool json)
{
    for (size_t i = 0; i < count; i++) {
        const struct line *line = &lines[i];
        if (json)
            bench_json_number(line->key, line->value, line->digits);
        else
            printf("%-46s %12.*f %-10s %s\n", line->text, line->digits, line->value, line->unit,
                   line->goal);
    }
    if (json)
        bench_json_end();
}

int main(int argc, char **argv)
{
    struct bench bench = {.settings = read_arguments(argc, argv)};
    const bool quick = bench.settings.quick;
    struct going expiry, clearing;
    struct reading one, two;
    bench.folder = bench_open("bench_keep");
    write_history(&bench);
    const double bytes = (double)bench_ask(bench.path, "SELECT page_count * page_size FROM"
                                                       " pragma_page_count, pragma_page_size");
    start(&bench, "raw=forever");
    bench.full_rate = run_alone(&bench, 0).rate;
    const struct latency alone = run_alone(&bench, bench.full_rate / 2);
    run_readers(&bench, 1, quick ? 1 : 5, quick ? 1 : 5, &one);
    run_readers(&bench, 2, 1, quick ? 2 : 20, &two);
    stop(&bench);
    run_expiry(&bench, &expiry);
    run_clear(&bench, &clearing);
    const double mb = bench.settings.json ? 1 : 1e6;
    const struct line lines[] = {
        {"store_bytes", "store before", "MB", "", bytes / mb, 0},
        {"records_per_second_full", "records at full speed", "1/s", "", bench.full_rate, 0},
        {"records_per_second_half", "records at half speed", "1/s", "", alone.rate, 0},
        {"ack_p50_ms", "acknowledgement, nothing goes: p50", "ms", "", alone.p50, 1},
        {"ack_p99_ms", "  p99", "ms", "", alone.p99, 1},
        {"ack_max_ms", "  slowest", "ms", "", alone.most, 1},
        {"disk_max_ms", "  slowest wait for the disk", "ms", "", alone.disk_most, 1},
        {"expiry_rows", "a month expires: records", "", "", expiry.rows, 0},
        {"expiry_seconds", "  in", "s", "", expiry.seconds, 1},
        {"expiry_records_per_second", "  records taken meanwhile", "1/s", "", expiry.latency.rate,
         0},
        {"expiry_ack_p99_ms", "  acknowledgement: p99", "ms", "", expiry.latency.p99, 1},
        {"expiry_ack_max_ms", "  slowest", "ms", "<= 200", expiry.latency.most, 1},
        {"expiry_ack_p99_ratio_to_undisturbed", "  p99, by that of undisturbed ones", "x", "",
         expiry.latency.p99 / alone.p99, 2},
        {"expiry_ack_max_ratio_to_undisturbed", "  slowest, by that of undisturbed ones", "x", "",
         expiry.latency.most / alone.most, 2},
        {"expiry_disk_max_ms", "  slowest wait for the disk", "ms", "", expiry.latency.disk_most,
         1},
        {"expiry_rows_per_second", "  records that went", "1/s", "", expiry.rows / expiry.seconds,
         0},
        {"expiry_log_bytes", "  log", "MB", "", expiry.log_bytes / mb, 1},
        {"clear_rows", "a month is cleared: records", "", "", clearing.rows, 0},
        {"clear_seconds", "  in", "s", "", clearing.seconds, 1},
        {"clear_rollups_seconds", "  rollups made again in", "s", "", clearing.again_seconds, 1},
        {"clear_records_per_second", "  records taken meanwhile", "1/s", "", clearing.latency.rate,
         0},
        {"clear_ack_p99_ms", "  acknowledgement: p99", "ms", "", clearing.latency.p99, 1},
        {"clear_ack_max_ms", "  slowest", "ms", "<= 200", clearing.latency.most, 1},
        {"clear_ack_p99_ratio_to_undisturbed", "  p99, by that of undisturbed ones", "x", "",
         clearing.latency.p99 / alone.p99, 2},
        {"clear_ack_max_ratio_to_undisturbed", "  slowest, by that of undisturbed ones", "x", "",
         clearing.latency.most / alone.most, 2},
        {"clear_disk_max_ms", "  slowest wait for the disk", "ms", "", clearing.latency.disk_most,
         1},
        {"clear_rows_per_second", "  records that went", "1/s", "",
         clearing.rows / clearing.seconds, 0},
        {"clear_log_bytes", "  log", "MB", "", clearing.log_bytes / mb, 1},
        {"reader_log_bytes", "one reads for 5 s: log at most", "MB", "", one.most / mb, 1},
        {"reader_log_bytes_after", "  3 s later", "MB", "<= 17", one.after / mb, 1},
        {"reader_ack_max_ms", "  slowest acknowledgement", "ms", "", one.latency.most, 1},
        {"readers_log_bytes", "two read for 1 s by turns, 20 s: log at most", "MB", "",
         two.most / mb, 1},
        {"readers_log_bytes_after", "  3 s later", "MB", "<= 17", two.after / mb, 1},
        {"readers_ack_max_ms", "  slowest acknowledgement", "ms", "", two.latency.most, 1},
    };
    print(lines, sizeof lines / sizeof *lines, bench.settings.json);
    return 0;
}
