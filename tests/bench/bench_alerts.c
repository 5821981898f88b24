// What an evaluation of alert rules costs: 500 rules over 1,000 series (50 models on each of 20
// hosts, a request every 5 s each), of 10 metrics and two windows, at the collector's interval.
//
//   bench_alerts [--json] [--quick] [--rules N]
//
// The store has the collector's rollups up to a minute before the evaluations.  A hundredth of the
// groups is past every tenth rule: those alerts fire, and their rows are saved each time.
// core_ratio is processor time, of the evaluation and of saving its rows, by the interval.  The
// goal is 5 %; the exit code is 1 when it is missed, but not with --quick.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/alert/alert_evaluate.h"
#include "common/store/schema/database_open.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/support/folder.h"
#include "tests/support/store/history_rollups.h"
#include "tests/support/store/rows.h"

#define SECOND INT64_C(1000000000)
#define NOW_NS (INT64_C(1790000040) * SECOND + 30 * SECOND) // within a minute
#define EVERY  15                                           // seconds

enum { MODELS = 50, HOSTS = 20, MINUTES = 15, PERIOD = 5, PASSES = 9 };

// Metrics, and a threshold between usual and slow requests.
static const struct {
    const char *name, *unit;
    double slow;
} metrics[] = {
    {"ttft_ns", "ms", 500},         {"e2e_ns", "ms", 5000}, {"decode_ns", "ms", 5000},
    {"prefill_ns", "ms", 500},      {"queue_ns", "ms", 5},  {"itl_max_ns", "ms", 100},
    {"tokens_per_second", "", 1e5}, {"tpot_ns", "ms", 100}, {"prompt_tokens", "", 5000},
    {"generated_tokens", "", 500},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

static void die_of(enum status status, const struct error *err)
{
    if (status != STATUS_OK)
        bench_die("store", err->text);
}

static void add_names(sqlite3 *db)
{
    char name[32];
    for (int i = 0; i < MODELS; i++) {
        (void)snprintf(name, sizeof name, "model-%02d", i);
        (void)rows_name(db, name);
    }
    for (int i = 0; i < HOSTS; i++) {
        (void)snprintf(name, sizeof name, "host-%02d", i);
        rows_run(db, i + 1, name, NOW_NS - 3600 * SECOND, NOW_NS);
    }
}

// Requests of some seconds up to some seconds before the evaluation.  Of each 100th series they
// take a hundred times as long.
static void add_requests(sqlite3 *db, int first_second, int last_second)
{
    struct error err;
    die_of(
        database_execf(
            db, &err,
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d),"
            " r AS (SELECT i, i %% %d AS s, %lld + i / %d * %lld AS at,"
            " iif(i %% 100 = 0, 100, 1) * (90 + i * 7919 %% 21) AS f FROM n)"
            " INSERT INTO inference(run, stream, number, started_ns, received_ns, model,"
            " device, request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens,"
            " queue_ns, prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_max_ns, host_memory_bytes)"
            " SELECT s %% %d + 1, 0, i + 1, at, at, s / %d + 1, 1, i, 0, f * 10, 0, f, f * 10000,"
            " f * 1000000, f * 1010000, f * 10000000, f * 11010000, f * 200000, 1 FROM r",
            MODELS * HOSTS * (first_second - last_second) / PERIOD - 1, MODELS * HOSTS,
            (long long)(NOW_NS - first_second * SECOND), MODELS * HOSTS,
            (long long)(PERIOD * SECOND), HOSTS, HOSTS),
        &err);
}

// What a collector has: rollups up to a minute ago.
static void fill(sqlite3 **db, const char *path)
{
    struct error err;
    die_of(database_open_writer(db, path, &err), &err);
    add_names(*db);
    add_requests(*db, MINUTES * 60, 60);
    database_close(*db);
    die_of(history_roll_up(path, NOW_NS - 60 * SECOND, &err), &err);
    die_of(database_open_writer(db, path, &err), &err);
    add_requests(*db, 60, 0);
}

static void make_rules(struct alert_file *file, int count)
{
    struct error err;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        bench_die("rules", "out of memory");
    for (int i = 0; i < count; i++)
        (void)fprintf(
            out, "alert rule%d: avg %s by model,host over %s when %s > %g%s for 1m least 3\n", i,
            metrics[i % METRICS].name, i / METRICS % 2 ? "10m" : "5m", i % 3 ? "p95" : "mean",
            metrics[i % METRICS].slow * (i / METRICS / 2 % 10 ? 100 : 1),
            metrics[i % METRICS].unit);
    (void)fclose(out);
    die_of(alert_file_read(file, text, size, &err), &err);
    free(text);
}

// Processor seconds of an evaluation and of saving it.
static double pass(struct alert_evaluator *evaluator, struct store *store, sqlite3 *db,
                   int64_t now_ns, size_t *rows)
{
    struct error err;
    struct alert_pass result;
    const uint64_t began_ns = clock_thread_ns();
    die_of(alert_evaluate(evaluator, store, now_ns, &result, &err), &err);
    die_of(database_exec(db, "BEGIN IMMEDIATE", &err), &err);
    die_of(alert_table_save(db, &result, &err), &err);
    die_of(database_exec(db, "COMMIT", &err), &err);
    const double seconds = (double)(clock_thread_ns() - began_ns) / 1e9;
    *rows = result.count;
    alert_pass_deinit(&result);
    return seconds;
}

#define GOAL_CORE 0.05

int main(int argc, char **argv)
{
    int64_t rules = 500;
    bool json = false, is_quick = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            is_quick = true;
        else if (strcmp(argv[i], "--rules") == 0)
            bench_option_number(&rules, argv, argc, &i, 1, ALERT_RULES_MAX - 100);
        else
            bench_die("usage", "bench_alerts [--json] [--quick] [--rules N]");
    }
    rules = is_quick ? 20 : rules;
    char path[FOLDER_PATH_SIZE];
    struct error err;
    sqlite3 *db = NULL;
    struct store *store = NULL;
    struct alert_file file;
    struct alert_evaluator *evaluator = NULL;
    struct figures seconds = {0};
    size_t rows = 0;
    (void)snprintf(path, sizeof path, "%s/store.db", bench_open("bench_alerts"));
    fill(&db, path);
    die_of(store_open(&store, path, &err), &err);
    make_rules(&file, (int)rules);
    die_of(alert_evaluator_new(&evaluator, &file, NOW_NS, NULL, &err), &err);
    for (int i = 0; i < PASSES; i++)
        figures_add(&seconds,
                    pass(evaluator, store, db, NOW_NS + (i - PASSES + 1) * SECOND, &rows));
    const double median = figures_median(&seconds);
    if (json) {
        bench_json_number("rules", (double)rules, 0);
        bench_json_number("series", MODELS * HOSTS, 0);
        bench_json_number("open_alerts", (double)rows, 0);
        bench_json_number("evaluation_ms", median * 1e3, 1);
        bench_json_number("core_ratio", median / EVERY, 4);
        bench_json_end();
    } else {
        printf("%lld rules, %d series, %zu open alerts: %.1f ms an evaluation, %.2f %% of a core\n",
               (long long)rules, MODELS * HOSTS, rows, median * 1e3, median / EVERY * 100);
    }
    alert_evaluator_free(evaluator);
    alert_file_deinit(&file);
    store_close(store);
    database_close(db);
    return !is_quick && median / EVERY > GOAL_CORE;
}
