// How late a record is: from the return of inferstat_inference_end() until a reader
// of the store sees it committed, and until a reader of the live feed has it.  The
// real library records, a real inferstatd stores, at a given rate; meanwhile the
// processor time of the library's threads (its own and libzmq's) is counted.
//
//   bench_latency [--json] [--quick] [--rate N] [--seconds N]
//
// Whoever looks at the store does so every half a millisecond: the latency to the
// commit is too long by as much at most.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/monitor/inferstat.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/bench/bench.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"

enum {
    WARM_UP = 200, // records before those that count
    LOOK_NS = 500000,
    PATIENCE_NS = 1000000000,
    TOKENS = 8, // of a request
    FEED_CREDIT = 90000,
};

struct run {
    uint64_t count, rate;
    char store[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8];
    struct daemon daemon;
    uint64_t *ended_ns, *committed_ns, *fed_ns; // by request; 0: not yet
    atomic_bool feed_is_up, stop;
    _Atomic uint64_t committed, fed;
};

static void *watch_store(void *context)
{
    struct run *run = context;
    struct error err = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    if (database_open_reader(&db, run->store, &err) != STATUS_OK ||
        database_prepare(db, &stmt, "SELECT request FROM inference ORDER BY id DESC LIMIT 1", true,
                         &err) != STATUS_OK)
        bench_die("store", err.text);
    uint64_t seen = 0;
    while (!atomic_load(&run->stop) && seen < run->count) {
        uint64_t last = 0;
        if (sqlite3_step(stmt) == SQLITE_ROW)
            last = (uint64_t)sqlite3_column_int64(stmt, 0);
        (void)sqlite3_reset(stmt);
        const uint64_t now = clock_monotonic_ns();
        while (last <= run->count && seen < last) // numbers above are those before the first
            run->committed_ns[seen++] = now;
        atomic_store(&run->committed, seen);
        clock_sleep_until_ns(now + LOOK_NS);
    }
    (void)sqlite3_finalize(stmt);
    database_close(db);
    return NULL;
}

static void take_fed(struct run *run, const struct wire_bytes *frame)
{
    struct message message;
    struct error err = {0};
    const uint64_t now = clock_monotonic_ns();
    if (codec_decode(&message, frame->bytes, frame->size, &err) != STATUS_OK)
        bench_die("live feed", err.text);
    if (message.kind == MESSAGE_LIVE_RECORDS && message.live_records.missed)
        bench_die("live feed", "it left out records");
    for (size_t row = 0; message.kind == MESSAGE_LIVE_RECORDS &&
                         row < result_row_count(message.live_records.result);
         row++) {
        const int64_t request = result_integer(message.live_records.result, row, "request", 0);
        atomic_store(&run->feed_is_up, true);
        if (request < 1 || (uint64_t)request > run->count)
            continue;
        run->fed_ns[request - 1] = now;
        atomic_fetch_add(&run->fed, 1);
    }
    message_free(&message);
}

static void *watch_feed(void *context)
{
    struct run *run = context;
    char endpoint[FOLDER_PATH_SIZE + 16];
    struct producer reader;
    const struct message credit = {.kind = MESSAGE_LIVE_CREDIT,
                                   .live_credit = {.protocol = MESSAGE_PROTOCOL,
                                                   .messages = FEED_CREDIT,
                                                   .kinds = 1U << RECORD_KIND_INFERENCE}};
    (void)snprintf(endpoint, sizeof endpoint, "%s/live", run->address);
    producer_open(&reader, endpoint, 1);
    producer_message(&reader, &credit);
    while (!atomic_load(&run->stop)) {
        struct wire_bytes frame;
        uint32_t ready;
        wire_wait(&reader.socket, 1, -1, 100000000, &ready);
        while (wire_receive(reader.socket, &frame) == STATUS_OK) {
            take_fed(run, &frame);
        }
    }
    producer_close(&reader);
    return NULL;
}

struct engine {
    struct inferstat_monitor *monitor;
    struct inferstat_inference *inference;
    uint32_t model, device;
    size_t thread_count; // of the library
    pid_t threads[BENCH_THREADS_MAX];
};

static bool is_among(pid_t thread, const pid_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (threads[i] == thread)
            return true;
    return false;
}

// Opens the monitor; the threads that are there afterwards and were not before are
// the library's.
static void open_engine(struct engine *engine, const struct run *run)
{
    struct inferstat_options options;
    struct inferstat_error err;
    pid_t before[BENCH_THREADS_MAX];
    const size_t before_count = bench_threads(getpid(), before, BENCH_THREADS_MAX);
    inferstat_options_init(&options);
    options.collector = run->address;
    options.run_folder = bench_memory_folder();
    if (inferstat_open(&engine->monitor, &options, &err) != INFERSTAT_OK)
        bench_die("library", err.text);
    engine->model = inferstat_name(engine->monitor, "model");
    engine->device = inferstat_name(engine->monitor, "cpu");
    engine->inference = inferstat_inference_new(engine->monitor);
    pid_t after[BENCH_THREADS_MAX];
    const size_t after_count = bench_threads(getpid(), after, BENCH_THREADS_MAX);
    for (size_t i = 0; i < after_count; i++)
        if (!is_among(after[i], before, before_count))
            engine->threads[engine->thread_count++] = after[i];
}

static void answer_request(struct engine *engine, uint64_t request)
{
    inferstat_inference_begin(engine->inference,
                              &(struct inferstat_request){.model = engine->model,
                                                          .device = engine->device,
                                                          .request = request,
                                                          .prompt_tokens = 32});
    inferstat_inference_start_prefill(engine->inference);
    for (unsigned i = 0; i < TOKENS; i++)
        inferstat_inference_token(engine->inference);
    inferstat_inference_end(engine->inference, INFERSTAT_FINISH_LENGTH);
}

static double library_seconds(const struct engine *engine)
{
    double seconds = 0;
    for (size_t i = 0; i < engine->thread_count; i++)
        seconds += bench_thread_seconds(getpid(), engine->threads[i]);
    return seconds;
}

// Requests beyond the count, until the feed shows that it stands.
static void wait_for_feed(struct engine *engine, const struct run *run)
{
    for (uint64_t i = 1; !atomic_load(&run->feed_is_up); i++) {
        answer_request(engine, run->count + i);
        clock_sleep_until_ns(clock_monotonic_ns() + 10000000);
        if (i > 1000)
            bench_die("live feed", "nothing comes");
    }
}

static void record_all(struct engine *engine, struct run *run)
{
    const uint64_t step_ns = 1000000000 / run->rate;
    const uint64_t began = clock_monotonic_ns();
    for (uint64_t i = 0; i < run->count; i++) {
        clock_sleep_until_ns(began + i * step_ns);
        answer_request(engine, i + 1);
        run->ended_ns[i] = clock_monotonic_ns();
    }
}

static void wait_for_all(const struct run *run)
{
    const uint64_t deadline = clock_monotonic_ns() + 10 * UINT64_C(1000000000);
    while (atomic_load(&run->committed) < run->count || atomic_load(&run->fed) < run->count) {
        if (clock_monotonic_ns() > deadline)
            bench_die("records", "some did not come within ten seconds");
        clock_sleep_until_ns(clock_monotonic_ns() + LOOK_NS);
    }
}

struct outcome {
    double commit_p50_ms, commit_p99_ms, commit_max_ms;
    double feed_p50_ms, feed_p99_ms, feed_max_ms;
    double library_share; // of one processor
    size_t threads;
};

static void measure(struct run *run, struct outcome *outcome)
{
    struct engine engine = {0};
    pthread_t store, feed;
    open_engine(&engine, run);
    if (pthread_create(&feed, NULL, watch_feed, run) != 0)
        bench_die("live feed", "no thread");
    wait_for_feed(&engine, run);
    clock_sleep_until_ns(clock_monotonic_ns() + PATIENCE_NS / 2);
    if (pthread_create(&store, NULL, watch_store, run) != 0)
        bench_die("store", "no thread");
    const uint64_t began = clock_monotonic_ns();
    const double seconds = library_seconds(&engine);
    record_all(&engine, run);
    outcome->library_share =
        (library_seconds(&engine) - seconds) * 1e9 / (double)(clock_monotonic_ns() - began);
    outcome->threads = engine.thread_count;
    wait_for_all(run);
    atomic_store(&run->stop, true);
    (void)pthread_join(store, NULL);
    (void)pthread_join(feed, NULL);
    inferstat_inference_free(engine.inference);
    (void)inferstat_close(engine.monitor, PATIENCE_NS, NULL);
}

static void quantiles(const struct run *run, const uint64_t *came_ns, double *p50, double *p99,
                      double *most)
{
    const size_t warm = run->count > 2 * (uint64_t)WARM_UP ? WARM_UP : 0;
    const size_t count = (size_t)run->count - warm;
    double *late_ms = calloc(count, sizeof *late_ms);
    if (!late_ms)
        bench_die("figures", "out of memory");
    for (size_t i = 0; i < count; i++)
        late_ms[i] = came_ns[warm + i] > run->ended_ns[warm + i]
                         ? (double)(came_ns[warm + i] - run->ended_ns[warm + i]) / 1e6
                         : 0;
    *p50 = bench_quantile(late_ms, count, 0.5);
    *p99 = bench_quantile(late_ms, count, 0.99);
    *most = bench_quantile(late_ms, count, 1);
    free(late_ms);
}

static void print(const struct run *run, const struct outcome *outcome, bool json)
{
    if (json) {
        bench_json_number("records", (double)run->count, 0);
        bench_json_number("records_per_second", (double)run->rate, 0);
        bench_json_number("commit_p50_ms", outcome->commit_p50_ms, 2);
        bench_json_number("commit_p99_ms", outcome->commit_p99_ms, 2);
        bench_json_number("commit_max_ms", outcome->commit_max_ms, 2);
        bench_json_number("live_p50_ms", outcome->feed_p50_ms, 2);
        bench_json_number("live_p99_ms", outcome->feed_p99_ms, 2);
        bench_json_number("live_max_ms", outcome->feed_max_ms, 2);
        bench_json_number("library_threads", (double)outcome->threads, 0);
        bench_json_number("library_cpu_ratio", outcome->library_share, 4);
        bench_json_end();
        return;
    }
    printf("%llu records, %llu a second\n"
           "end() to committed      p50 %7.2f ms   p99 %7.2f ms (goal <= 100)   max %7.2f ms\n"
           "end() to the live feed  p50 %7.2f ms   p99 %7.2f ms (goal <= 50)    max %7.2f ms\n"
           "the library's %zu threads  %.2f %% of one processor (goal <= 1)\n",
           (unsigned long long)run->count, (unsigned long long)run->rate, outcome->commit_p50_ms,
           outcome->commit_p99_ms, outcome->commit_max_ms, outcome->feed_p50_ms,
           outcome->feed_p99_ms, outcome->feed_max_ms, outcome->threads,
           outcome->library_share * 100);
}

static bool read_arguments(int argc, char **argv, struct run *run, bool *json)
{
    uint64_t seconds = 20;
    run->rate = 1000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            *json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            seconds = 1;
        else if (strcmp(argv[i], "--rate") == 0 && i + 1 < argc)
            run->rate = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = strtoull(argv[++i], NULL, 10);
        else
            return false;
    }
    run->count = run->rate * seconds;
    return run->rate >= 1 && run->rate <= 100000 && run->count >= 1 && run->count <= 10000000;
}

int main(int argc, char **argv)
{
    static struct run run;
    struct outcome outcome;
    bool json = false;
    if (!read_arguments(argc, argv, &run, &json)) {
        fprintf(stderr, "usage: bench_latency [--json] [--quick] [--rate N] [--seconds N]\n");
        return 2;
    }
    const char *folder = bench_open("bench_latency");
    (void)folder_path(run.store, folder, "store.db");
    (void)snprintf(run.address, sizeof run.address, "ipc://%s", folder);
    (void)setenv("INFERSTAT_SPOOL", folder, 1); // nobody else's is looked at
    const char *const argv_daemon[] = {INFERSTATD, "--db",      run.store,
                                       "--listen", run.address, NULL};
    run.ended_ns = calloc(run.count, sizeof *run.ended_ns);
    run.committed_ns = calloc(run.count, sizeof *run.committed_ns);
    run.fed_ns = calloc(run.count, sizeof *run.fed_ns);
    if (!run.ended_ns || !run.committed_ns || !run.fed_ns)
        bench_die("figures", "out of memory");
    if (!daemon_start(&run.daemon, argv_daemon))
        bench_die("inferstatd", run.daemon.output);
    measure(&run, &outcome);
    if (daemon_end(&run.daemon, SIGTERM) != 0)
        bench_die("inferstatd", run.daemon.output);
    quantiles(&run, run.committed_ns, &outcome.commit_p50_ms, &outcome.commit_p99_ms,
              &outcome.commit_max_ms);
    quantiles(&run, run.fed_ns, &outcome.feed_p50_ms, &outcome.feed_p99_ms, &outcome.feed_max_ms);
    print(&run, &outcome, json);
    free(run.ended_ns);
    free(run.committed_ns);
    free(run.fed_ns);
    return 0;
}
