// How long an average takes at the client, of histories over a year with 20 models
// and 50 hosts: mean and quantiles by model of the last hour, day, month and year,
// asked of a real inferstatd over ipc; against the same answer by plain SQL on the
// table, which it has to equal, and, for the smallest history, against
// victoria-metrics where it is installed (query.h says what each does).
//
//   bench_query [--json] [--quick] [--inferences N[,N]...] [--queries N] [--keep FOLDER]
//               [--no-victoria] [--days N]
//
// Questions begin when a collector that has just started is at rest.
//
// Histories are written by the collector's own writer (tests/support/store/history.h), of
// 1,000,000 and 10,000,000 inferences where nothing else is asked for; 100,000,000
// take some twenty gigabytes.  With --keep they stay in that folder for the next
// run, and are taken from there.  processor_ns is the collector's own time for an answer.
//
// A window ends anywhere in the history's last hour, each time elsewhere.  The year's begins
// in the hour before the history does, so that there are no records at its far edge: where
// there are, those of up to an hour are read one by one, since minutes are kept for 35 days.
//
// A restart is one after a SIGKILL with 20,000 records behind the rollups.  "cold" is
// `inferstat summary --db` as a new process.  Ratios are of times, ours to theirs.  The goal of
// `why` is a median of 300 ms; the exit code is 1 when it is missed.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "client/remote/remote.h"
#include "common/store/sqlite/database.h"
#include "common/store/rollup/rollup.h"
#include "common/sys/clock.h"
#include "common/sys/process.h"
#include "common/store/schema/database_open.h"
#include "tests/bench/bench_store.h"
#include "tests/bench/query.h"
#include "tests/bench/victoria.h"
#include "tests/support/store/history.h"
#include "tests/support/producer.h"

enum {
    SIZES_MAX = 4,
    QUERIES_MAX = 5000,
    PLAIN_ROWS_MAX = 20000000, // more than these take plain SQL minutes, and its sorting disk
    VICTORIA_ROWS_MAX = 2000000,
    COLD_STARTS = 21,
    WARM_UPS = 5,
    TAIL_RECORDS = 20000,
    TAIL_BATCH = 1000,
    QUICK_INFERENCES = 20000,
    QUICK_DAYS = 40,
    QUICK_QUERIES = 20,
    MOMENTS_AT_REST = 5,
};

#define RESTING          0.01 // seconds of processor time in a moment
#define REST_PATIENCE_NS UINT64_C(30000000000)

struct settings {
    uint64_t sizes[SIZES_MAX];
    unsigned size_count, queries, days;
    const char *keep;
    bool json, no_victoria;
};

// What was found of one history.
struct figures_of {
    uint64_t inferences;
    double rows_per_second; // writing; NaN where the store was there
    double p50[WINDOW_COUNT], p99[WINDOW_COUNT], processor[WINDOW_COUNT];
    double plain[WINDOW_COUNT], victoria[WINDOW_COUNT];
    int64_t sketches[WINDOW_COUNT], rows[WINDOW_COUNT];
    double caught_up_per_second; // records that were not in the rollups; NaN: all were
    double ready_ns, restart_ns, cold_ns;
    struct why_times why[WHY_WINDOWS];
    double bytes, rollup_bytes; // of the file; NaN: not counted
};

static void make_store(struct subject *subject, const struct settings *settings,
                       struct figures_of *found)
{
    struct error err = {0};
    double seconds = 0;
    const struct history history = {.path = subject->path,
                                    .inferences = subject->inferences,
                                    .models = QUERY_MODELS,
                                    .hosts = QUERY_HOSTS,
                                    .days = settings->days,
                                    .until_ns = rollup_bucket(ROLLUP_HOUR, clock_wall_ns()),
                                    .seed = 1};
    found->rows_per_second = (double)NAN;
    if (!settings->keep || access(subject->path, F_OK) != 0) {
        if (history_write(&history, &seconds, &err) != STATUS_OK)
            bench_die("history", err.text);
        found->rows_per_second = (double)subject->inferences / seconds;
    }
    const double stored = (double)bench_ask(subject->path, "SELECT max(id) FROM inference");
    if (stored < (double)subject->inferences)
        bench_die("history", "not every inference is in the store");
    // What time_restart adds lies behind it.
    subject->until_ns =
        bench_ask(subject->path, "SELECT max(ended_ns) FROM run WHERE worker_version = 'history'");
}

// A history is written faster than rollups can be made of it: the collector makes the rest
// as it does of any store that comes without.
static void wait_for_rollups(const struct subject *subject, struct figures_of *found)
{
    static const char sql[] = "SELECT (SELECT max(id) FROM inference) - min(watermark)"
                              " FROM rollup_state WHERE metric / 256 = 6";
    const struct timespec moment = {.tv_nsec = 200000000};
    const double missing = (double)bench_ask(subject->path, sql);
    const uint64_t began = clock_monotonic_ns();
    while (bench_ask(subject->path, sql) > 0)
        (void)nanosleep(&moment, NULL);
    found->caught_up_per_second =
        missing > 0 ? missing * 1e9 / (double)(clock_monotonic_ns() - began) : (double)NAN;
}

// Nor is the writer's other work of a start (sparse levels, expiry, the log) what is measured
// here: the questions begin when the collector has been at rest for a moment.
static void wait_for_rest(const struct subject *subject)
{
    const struct timespec moment = {.tv_nsec = 200000000};
    const uint64_t began = clock_monotonic_ns();
    double busiest, spent = bench_process_seconds(subject->daemon.pid, &busiest), before;
    unsigned at_rest = 0;
    do {
        (void)nanosleep(&moment, NULL);
        before = spent;
        spent = bench_process_seconds(subject->daemon.pid, &busiest);
        at_rest = spent - before < RESTING ? at_rest + 1 : 0;
    } while (at_rest < MOMENTS_AT_REST && clock_monotonic_ns() - began < REST_PATIENCE_NS);
}

static void weigh_store(const struct subject *subject, struct figures_of *found)
{
    struct stat about;
    found->bytes = stat(subject->path, &about) == 0 ? (double)about.st_size : (double)NAN;
    found->rollup_bytes = (double)NAN;
    if (subject->inferences <= PLAIN_ROWS_MAX)
        found->rollup_bytes = (double)bench_ask(subject->path, "SELECT sum(pgsize) FROM dbstat"
                                                               " WHERE name = 'rollup'");
}

static void time_window(struct subject *subject, struct remote *remote, enum query_window window,
                        const struct settings *settings, struct figures_of *found)
{
    static double ns[QUERIES_MAX];
    double busiest;
    subject_ask(subject, remote, window, WARM_UPS, ns);
    const double before = bench_process_seconds(subject->daemon.pid, &busiest);
    subject_ask(subject, remote, window, settings->queries, ns);
    const double after = bench_process_seconds(subject->daemon.pid, &busiest);
    found->processor[window] = (after - before) * 1e9 / settings->queries;
    found->p50[window] = bench_quantile(ns, settings->queries, 0.50);
    found->p99[window] = bench_quantile(ns, settings->queries, 0.99);
}

static void compare_window(struct subject *subject, struct remote *remote, enum query_window window,
                           struct figures_of *found)
{
    struct window_answer ours, plain;
    subject_answer(subject, remote, window, &ours, &found->sketches[window], &found->rows[window]);
    found->plain[window] = (double)NAN;
    if (window == WINDOW_YEAR && subject->inferences > PLAIN_ROWS_MAX)
        return;
    found->plain[window] = plain_answer(subject, window, &plain);
    answers_compare(&ours, &plain, window);
}

static void ask_all(struct subject *subject, const struct settings *settings,
                    struct figures_of *found)
{
    struct error err = {0};
    struct remote *remote = NULL;
    const struct remote_target target = {.collector = subject->address,
                                         .timeout_ns = UINT64_C(60000000000)};
    if (remote_open(&remote, &target, &err) != STATUS_OK)
        bench_die("client", err.text);
    for (unsigned window = 0; window < WINDOW_COUNT; window++)
        time_window(subject, remote, (enum query_window)window, settings, found);
    for (unsigned window = 0; window < WINDOW_COUNT; window++)
        compare_window(subject, remote, (enum query_window)window, found);
    remote_close(remote);
}

// Sends records that the rollups do not have when the collector is killed.
static void add_tail(const struct subject *subject)
{
    static struct record records[TAIL_BATCH];
    struct error err = {0};
    struct producer producer;
    char endpoint[FOLDER_PATH_SIZE + 16];
    (void)snprintf(endpoint, sizeof endpoint, "%s/ingest", subject->address);
    producer_open(&producer, endpoint, 0);
    // A store that is kept has the runs of those before.
    if (process_random(producer.run, sizeof producer.run, &err) != STATUS_OK)
        bench_die("tail", err.text);
    producer_hello(&producer, NULL, 0);
    if (!producer_await(&producer, 10000))
        bench_die("tail", "no answer to a Hello");
    producer.names_told = 8;
    for (uint64_t first = 1; first < TAIL_RECORDS; first += TAIL_BATCH) {
        for (uint64_t i = 0; i < TAIL_BATCH; i++) {
            producer_inference(&records[i], first + i);
            records[i].started_ns = subject->until_ns;
        }
        producer_batch(&producer, 0, first, records, TAIL_BATCH);
        if (!producer_await_next(&producer, 0, first + TAIL_BATCH))
            bench_die("tail", "not acknowledged");
    }
    producer_close(&producer);
}

// Until a killed collector is ready again, and has answered.
static double time_restart(struct subject *subject, const char *folder)
{
    struct error err = {0};
    struct remote *remote = NULL;
    struct window_answer answer;
    int64_t ignored;
    add_tail(subject);
    if (daemon_end(&subject->daemon, SIGKILL) != -SIGKILL)
        bench_die("inferstatd", "it does not die");
    const uint64_t began = clock_monotonic_ns();
    (void)subject_start(subject, folder);
    const struct remote_target target = {.collector = subject->address};
    if (remote_open(&remote, &target, &err) != STATUS_OK)
        bench_die("client", err.text);
    subject_answer(subject, remote, WINDOW_DAY, &answer, &ignored, &ignored);
    remote_close(remote);
    return (double)(clock_monotonic_ns() - began);
}

static double time_summary(const struct subject *subject)
{
    double ns[COLD_STARTS];
    for (unsigned i = 0; i < COLD_STARTS; i++) {
        int status = 0;
        const uint64_t began = clock_monotonic_ns();
        const pid_t pid = fork();
        if (pid == 0) {
            if (!freopen("/dev/null", "w", stdout))
                _exit(127);
            (void)execl(INFERSTAT, INFERSTAT, "--db", subject->path, "summary", (char *)NULL);
            _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            bench_die("inferstat summary", "it failed");
        ns[i] = (double)(clock_monotonic_ns() - began);
    }
    return bench_quantile(ns, COLD_STARTS, 0.5);
}

static void remove_store(const struct subject *subject)
{
    static const char *const endings[] = {"", "-wal", "-shm", ".lock"};
    char path[FOLDER_PATH_SIZE + 8];
    for (unsigned i = 0; i < sizeof endings / sizeof *endings; i++) {
        (void)snprintf(path, sizeof path, "%s%s", subject->path, endings[i]);
        (void)remove(path);
    }
}

static void measure(uint64_t inferences, const struct settings *settings, const char *folder,
                    struct figures_of *found)
{
    struct subject subject = {.inferences = inferences};
    char name[64];
    (void)snprintf(name, sizeof name, "history-%llu.db", (unsigned long long)inferences);
    (void)folder_path(subject.path, settings->keep ? settings->keep : folder, name);
    *found = (struct figures_of){.inferences = inferences};
    make_store(&subject, settings, found);
    for (unsigned window = 0; window < WINDOW_COUNT; window++)
        found->victoria[window] = (double)NAN;
    if (!settings->no_victoria && inferences <= VICTORIA_ROWS_MAX && victoria_exists())
        victoria_ask(&subject, folder, settings->queries / 10 + 1, found->victoria);
    why_ask(&subject, settings->queries / 20 + 1, found->why);
    found->ready_ns = (double)subject_start(&subject, folder);
    wait_for_rollups(&subject, found);
    wait_for_rest(&subject);
    ask_all(&subject, settings, found);
    found->restart_ns = time_restart(&subject, folder);
    subject_stop(&subject);
    found->cold_ns = time_summary(&subject);
    weigh_store(&subject, found);
    if (!settings->keep)
        remove_store(&subject);
}

static void say(const struct settings *settings, uint64_t inferences, const char *what,
                const char *window, double value, int digits)
{
    char key[128];
    (void)snprintf(key, sizeof key, "%s%s%s_%llu", what, *window ? "_" : "", window,
                   (unsigned long long)inferences);
    if (settings->json)
        bench_json_number(key, value, digits);
    else if (isfinite(value))
        printf("%-48s %16.*f\n", key, digits, value);
}

static void print_history(const struct settings *settings, const struct figures_of *found)
{
    const uint64_t n = found->inferences;
    say(settings, n, "written_rows_per_second", "", found->rows_per_second, 0);
    say(settings, n, "caught_up_rows_per_second", "", found->caught_up_per_second, 0);
    say(settings, n, "store_bytes", "", found->bytes, 0);
    say(settings, n, "rollup_bytes", "", found->rollup_bytes, 0);
    for (unsigned i = 0; i < WINDOW_COUNT; i++) {
        const char *window = window_name((enum query_window)i);
        say(settings, n, "p50_ns", window, found->p50[i], 0);
        say(settings, n, "p99_ns", window, found->p99[i], 0);
        say(settings, n, "processor_ns", window, found->processor[i], 0);
        say(settings, n, "sketches", window, (double)found->sketches[i], 0);
        say(settings, n, "rows", window, (double)found->rows[i], 0);
        say(settings, n, "plain_sql_ns", window, found->plain[i], 0);
        say(settings, n, "ratio_to_plain_sql", window, found->p50[i] / found->plain[i], 6);
        say(settings, n, "victoria_metrics_ns", window, found->victoria[i], 0);
        say(settings, n, "ratio_to_victoria_metrics", window, found->p50[i] / found->victoria[i],
            3);
    }
    for (unsigned i = 0; i < WHY_WINDOWS; i++) {
        say(settings, n, "why_p50_ns", why_window_name(i), found->why[i].p50, 0);
        say(settings, n, "why_max_ns", why_window_name(i), found->why[i].most, 0);
        say(settings, n, "why_processor_ns", why_window_name(i), found->why[i].processor, 0);
    }
    say(settings, n, "ready_ns", "", found->ready_ns, 0);
    say(settings, n, "restart_after_kill_ns", "", found->restart_ns, 0);
    say(settings, n, "cold_summary_ns", "", found->cold_ns, 0);
}

static double highest(const double *values)
{
    double most = 0;
    for (unsigned i = 0; i < WINDOW_COUNT; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static void print_all(const struct settings *settings, const struct figures_of *found)
{
    const struct figures_of *first = &found[0], *last = &found[settings->size_count - 1];
    for (unsigned i = 0; i < settings->size_count; i++)
        print_history(settings, &found[i]);
    if (settings->size_count > 1)
        for (unsigned i = 0; i < WINDOW_COUNT; i++)
            say(settings, last->inferences, "ratio_to_smallest", window_name((enum query_window)i),
                last->p50[i] / first->p50[i], 3);
    if (settings->json) {
        bench_json_number("p99_ns", highest(last->p99), 0);
        bench_json_number("goal_p99_ns", 5e6, 0);
        bench_json_number("ratio_to_victoria_metrics",
                          first->p50[WINDOW_YEAR] / first->victoria[WINDOW_YEAR], 3);
        bench_json_number("ratio_to_plain_sql", first->p50[WINDOW_YEAR] / first->plain[WINDOW_YEAR],
                          6);
        bench_json_number("queries", settings->queries, 0);
        bench_json_end();
    } else {
        printf("%-48s %16.0f   <= 5000000\n", "p99_ns of any window, largest history",
               highest(last->p99));
    }
}

// ---- Arguments
// --------------------------------------------------------------------------------------

static _Noreturn void usage(void)
{
    fprintf(stderr,
            "usage: bench_query [--json] [--quick] [--inferences N[,N]...] [--queries N]"
            " [--keep FOLDER] [--no-victoria] [--days N]\n"
            "       (up to %d histories of at least 1000; up to %d queries)\n",
            SIZES_MAX, QUERIES_MAX);
    exit(2);
}

static void read_sizes(struct settings *settings, const char *text)
{
    settings->size_count = 0;
    for (char *end = NULL; settings->size_count < SIZES_MAX; text = end + 1) {
        const uint64_t size = strtoull(text, &end, 10);
        if (size < 1000 || (*end != ',' && *end != '\0'))
            usage();
        settings->sizes[settings->size_count++] = size;
        if (*end == '\0')
            return;
    }
    usage();
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {
        .sizes = {1000000, 10000000}, .size_count = 2, .queries = 400, .days = QUERY_DAYS};
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings = (struct settings){.sizes = {QUICK_INFERENCES},
                                         .size_count = 1,
                                         .queries = QUICK_QUERIES,
                                         .days = QUICK_DAYS,
                                         .json = settings.json,
                                         .no_victoria = true};
        else if (strcmp(argv[i], "--no-victoria") == 0)
            settings.no_victoria = true;
        else if (strcmp(argv[i], "--inferences") == 0 && has_value)
            read_sizes(&settings, argv[++i]);
        else if (strcmp(argv[i], "--queries") == 0 && has_value)
            settings.queries = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--keep") == 0 && has_value)
            settings.keep = argv[++i];
        else if (strcmp(argv[i], "--days") == 0 && has_value)
            settings.days = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            usage();
    }
    if (settings.queries < 1 || settings.queries > QUERIES_MAX || settings.days < 1 ||
        settings.days > QUERY_DAYS)
        usage();
    return settings;
}

#define GOAL_WHY_NS 300e6

int main(int argc, char **argv)
{
    static struct figures_of found[SIZES_MAX];
    const struct settings settings = read_arguments(argc, argv);
    const char *folder = bench_open("bench_query");
    for (unsigned i = 0; i < settings.size_count; i++)
        measure(settings.sizes[i], &settings, folder, &found[i]);
    print_all(&settings, found);
    for (unsigned i = 0; i < settings.size_count; i++)
        for (unsigned window = 0; window < WHY_WINDOWS; window++)
            if (found[i].why[window].p50 > GOAL_WHY_NS)
                return 1;
    return 0;
}
