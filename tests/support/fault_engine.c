// An inference engine that is made to be killed: threads that do nothing but record,
// each of them counting in a file, before and after each end(), what it has begun
// and what has returned.  The file is mapped and shared, so that the counts survive
// the process: what is stored of a dead engine lies between them, or a loss with a
// reason explains the difference.
//
//     fault_engine --shared FILE [--threads N] [--rate R] [--count N] [--program NAME]
//                  [--mix both|operations|inferences] [--ring RECORDS] [--close-ms MS]
//
// Even threads time operations "fault-T" (`items` is the thread's own count, from 1),
// odd ones answer requests of the model "fault-T" (`request` is that count).  R is
// what each thread ends a second; 0 rests, and a number above 1000000 is as fast as
// it can.  The test may write another into the file while the engine runs.  SIGTERM, or --count
// records by each thread, ends it: exit code 0, also where the collector had not acknowledged all
// in MS milliseconds, which the file says.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/monitor/inferstat.h"

enum { THREADS_MAX = 64, NAME_SIZE = 32, FLAT_OUT = 1000000 };

#define MAGIC UINT64_C(0x31454c5541464e49) // "INFAULE1"

enum state { STATE_STARTING, STATE_RUNNING, STATE_CLOSED, STATE_UNFINISHED, STATE_BLIND };

// The file: this, then a struct counts for each thread.  Read by tests/support/faults.py.
struct shared {
    uint64_t magic;
    uint64_t threads;
    _Atomic uint64_t rate;                    // records a second and thread; the test's to change
    _Atomic uint64_t state;                   // enum state
    uint64_t produced, acknowledged, dropped; // the library's totals at the end
    uint64_t reserved[9];
};

struct counts {
    _Atomic uint64_t begun; // calls of end() that may have happened
    _Atomic uint64_t ended; // calls of end() that have returned
    uint64_t is_inference;
    uint64_t reserved[5];
};

_Static_assert(sizeof(struct shared) == 128, "the layout that the tests read");
_Static_assert(sizeof(struct counts) == 64, "the layout that the tests read");

struct settings {
    const char *shared, *program, *mix;
    uint64_t threads, rate, count, ring, close_ms;
};

struct engine {
    struct inferstat_monitor *monitor;
    struct shared *shared;
    struct settings settings;
};

struct worker {
    struct engine *engine;
    struct counts *counts;
    pthread_t thread;
    uint32_t name, device;
};

static atomic_bool stopping;

static void stop(int number)
{
    (void)number;
    atomic_store(&stopping, true);
}

static void say(void *context, enum inferstat_log_level level, const char *text)
{
    (void)context;
    if (level != INFERSTAT_LOG_INFO)
        (void)fprintf(stderr, "fault_engine: %s\n", text);
}

static void record_operation(struct worker *worker, uint64_t number)
{
    struct inferstat_timer timer;
    inferstat_timer_begin(&timer, worker->engine->monitor, worker->name);
    timer.items = (int64_t)number;
    atomic_store(&worker->counts->begun, number);
    (void)inferstat_timer_end(&timer, NULL);
    atomic_store(&worker->counts->ended, number);
}

static void record_inference(struct worker *worker, struct inferstat_inference *inference,
                             uint64_t number)
{
    inferstat_inference_begin(inference, &(struct inferstat_request){.model = worker->name,
                                                                     .device = worker->device,
                                                                     .request = number,
                                                                     .prompt_tokens = 4});
    inferstat_inference_start_prefill(inference);
    inferstat_inference_token(inference);
    inferstat_inference_token(inference);
    atomic_store(&worker->counts->begun, number);
    inferstat_inference_end(inference, INFERSTAT_FINISH_STOP);
    atomic_store(&worker->counts->ended, number);
}

// Sleeps until the rate allows another record.  It catches up with what it overslept,
// by no more than a tenth of a second.
static void keep_rate(const struct engine *engine, uint64_t *due_ns)
{
    const uint64_t rate = atomic_load(&engine->shared->rate);
    if (rate > FLAT_OUT)
        return;
    const uint64_t now_ns = inferstat_clock_ns();
    if (*due_ns + 100000000 < now_ns)
        *due_ns = now_ns;
    *due_ns += rate ? 1000000000 / rate : 0;
    if (*due_ns <= now_ns && rate)
        return;
    const uint64_t wait_ns = rate ? *due_ns - now_ns : 2000000;
    const struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                                  .tv_nsec = (long)(wait_ns % 1000000000)};
    (void)nanosleep(&wait, NULL);
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct engine *engine = worker->engine;
    struct inferstat_inference *inference =
        worker->counts->is_inference ? inferstat_inference_new(engine->monitor) : NULL;
    const uint64_t count = engine->settings.count;
    uint64_t due_ns = inferstat_clock_ns();
    for (uint64_t number = 1; !atomic_load(&stopping) && (count == 0 || number <= count);) {
        keep_rate(engine, &due_ns);
        if (atomic_load(&stopping) || atomic_load(&engine->shared->rate) == 0)
            continue;
        if (worker->counts->is_inference)
            record_inference(worker, inference, number);
        else
            record_operation(worker, number);
        number++;
    }
    inferstat_inference_free(inference);
    return NULL;
}

static int fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "fault_engine: %s: %s\n", what, why);
    return 2;
}

// Makes the file whole under another name: whoever sees it can read it.
static struct shared *map_shared(const char *path, uint64_t threads)
{
    char fresh[4096];
    const size_t size = sizeof(struct shared) + (size_t)threads * sizeof(struct counts);
    const int length = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof fresh)
        return NULL;
    const int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *memory = MAP_FAILED;
    if (posix_fallocate(fd, 0, (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (memory == MAP_FAILED)
        return NULL;
    struct shared *shared = memory;
    shared->magic = MAGIC;
    shared->threads = threads;
    return rename(fresh, path) == 0 ? shared : NULL;
}

static struct counts *counts_of(struct shared *shared, uint64_t thread)
{
    return (struct counts *)(shared + 1) + thread;
}

static bool wants_inferences(const struct settings *settings, uint64_t thread)
{
    return strcmp(settings->mix, "inferences") == 0 ||
           (strcmp(settings->mix, "both") == 0 && thread % 2 == 1);
}

static int run(struct engine *engine)
{
    static struct worker workers[THREADS_MAX];
    const uint32_t device = inferstat_name(engine->monitor, "fault-device");
    const uint64_t threads = engine->settings.threads;
    uint64_t started = 0;
    for (; started < threads; started++) {
        struct worker *worker = &workers[started];
        char name[NAME_SIZE];
        (void)snprintf(name, sizeof name, "fault-%" PRIu64, started);
        *worker = (struct worker){.engine = engine,
                                  .counts = counts_of(engine->shared, started),
                                  .name = inferstat_name(engine->monitor, name),
                                  .device = device};
        worker->counts->is_inference = wants_inferences(&engine->settings, started);
        if (pthread_create(&worker->thread, NULL, work, worker) != 0)
            break;
    }
    if (started < threads)
        atomic_store(&stopping, true);
    else if (atomic_load(&engine->shared->state) == STATE_STARTING)
        atomic_store(&engine->shared->state, STATE_RUNNING);
    for (uint64_t i = 0; i < started; i++)
        (void)pthread_join(workers[i].thread, NULL);
    return started < threads ? fail("threads", "cannot start them") : 0;
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static bool read_settings(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){
        .program = "fault-engine", .mix = "both", .threads = 2, .rate = 100, .close_ms = 5000};
    const struct {
        const char *name;
        const char **text;
        uint64_t *number;
    } options[] = {
        {"--shared", &settings->shared, NULL}, {"--program", &settings->program, NULL},
        {"--mix", &settings->mix, NULL},       {"--threads", NULL, &settings->threads},
        {"--rate", NULL, &settings->rate},     {"--count", NULL, &settings->count},
        {"--ring", NULL, &settings->ring},     {"--close-ms", NULL, &settings->close_ms},
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t option = 0;
        while (option < sizeof options / sizeof *options &&
               strcmp(options[option].name, argv[i]) != 0)
            option++;
        if (option == sizeof options / sizeof *options)
            return false;
        if (options[option].text)
            *options[option].text = argv[i + 1];
        else if (!read_number(argv[i + 1], options[option].number))
            return false;
    }
    return argc % 2 == 1 && settings->shared && settings->threads >= 1 &&
           settings->threads <= THREADS_MAX && settings->ring <= 1 << 20;
}

int main(int argc, char **argv)
{
    struct engine engine = {0};
    if (!read_settings(&engine.settings, argc, argv))
        return fail("usage", "--shared FILE is needed, the rest is in the source");
    const struct sigaction action = {.sa_handler = stop};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    engine.shared = map_shared(engine.settings.shared, engine.settings.threads);
    if (!engine.shared)
        return fail(engine.settings.shared, strerror(errno));
    atomic_store(&engine.shared->rate, engine.settings.rate);

    struct inferstat_options options;
    struct inferstat_error err;
    inferstat_options_init(&options);
    options.program = engine.settings.program;
    options.log = say;
    if (engine.settings.ring)
        options.ring_records = (uint32_t)engine.settings.ring;
    if (inferstat_open(&engine.monitor, &options, &err) != INFERSTAT_OK) {
        // A real engine works on without it; so does this one, and its file says so.
        say(NULL, INFERSTAT_LOG_ERROR, err.text);
        atomic_store(&engine.shared->state, STATE_BLIND);
    }
    const int code = run(&engine);
    struct inferstat_totals totals = {0};
    const enum inferstat_status status =
        inferstat_close(engine.monitor, engine.settings.close_ms * 1000000, &totals);
    engine.shared->produced = totals.produced;
    engine.shared->acknowledged = totals.acknowledged;
    engine.shared->dropped = totals.dropped;
    if (engine.monitor)
        atomic_store(&engine.shared->state,
                     status == INFERSTAT_OK ? STATE_CLOSED : STATE_UNFINISHED);
    return code;
}
