#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "client/remote/remote.h"
#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/why/why_cause.h"
#include "common/store/schema/database_open.h"
#include "common/store/store.h"
#include "tests/bench/query.h"
#include "tests/support/store/rows.h"

#define SECOND    INT64_C(1000000000)
#define SPREAD_NS (3600 * SECOND)

static const struct {
    const char *name;
    int64_t ns;
} windows[WINDOW_COUNT] = {
#define QUERY_WINDOW_ROW(name, text, ns) [WINDOW_##name] = {text, ns},
    QUERY_WINDOWS(QUERY_WINDOW_ROW)
#undef QUERY_WINDOW_ROW
};

const char *window_name(enum query_window window)
{
    return windows[window].name;
}

int64_t window_ns(enum query_window window)
{
    return windows[window].ns;
}

uint64_t subject_start(struct subject *subject, const char *folder)
{
    const char *const argv[] = {INFERSTATD, "--db",           subject->path,
                                "--listen", subject->address, NULL};
    (void)snprintf(subject->address, sizeof subject->address, "ipc://%s", folder);
    const uint64_t began = clock_monotonic_ns();
    if (!daemon_start(&subject->daemon, argv))
        bench_die("inferstatd", subject->daemon.output);
    return clock_monotonic_ns() - began;
}

void subject_stop(struct subject *subject)
{
    if (daemon_end(&subject->daemon, SIGTERM) != 0)
        bench_die("inferstatd", subject->daemon.output);
}

static struct result *ask(struct remote *remote, enum query_window window, int64_t until_ns)
{
    struct error err = {0};
    struct result *result = NULL;
    struct query query = {.kind = QUERY_AVERAGE, .group_by = {QUERY_BY_MODEL}, .group_count = 1};
    (void)snprintf(query.metric, sizeof query.metric, "ttft_ns");
    query.filter.since_ns = until_ns - windows[window].ns;
    query.filter.until_ns = until_ns;
    if (remote_query(remote, &query, &result, &err) != STATUS_OK)
        bench_die("query", err.text);
    return result;
}

void subject_ask(struct subject *subject, struct remote *remote, enum query_window window,
                 unsigned times, double *ns)
{
    for (unsigned i = 0; i < times; i++) {
        // Any nanosecond, in an order that repeats: a share of the hour by the golden ratio.
        const double share = fmod(i * 0.6180339887498949, 1);
        const int64_t until_ns = subject->until_ns - (int64_t)(share * (double)SPREAD_NS);
        const uint64_t began = clock_monotonic_ns();
        struct result *result = ask(remote, window, until_ns);
        ns[i] = (double)(clock_monotonic_ns() - began);
        result_free(result);
    }
}

void subject_answer(struct subject *subject, struct remote *remote, enum query_window window,
                    struct window_answer *answer, int64_t *sketches, int64_t *rows)
{
    struct result *result = ask(remote, window, subject->until_ns);
    const int model = result_find(result, "model");
    answer->count = 0;
    *sketches = result_integer(result, 0, "sketches", 0);
    *rows = result_integer(result, 0, "rows", 0);
    for (size_t i = 0; i < result_row_count(result) && i < QUERY_MODELS; i++) {
        struct model_answer *one = &answer->models[answer->count++];
        const struct value name = result_cell(result, i, (unsigned)model);
        (void)snprintf(one->model, sizeof one->model, "%.*s", (int)name.text.size, name.text.bytes);
        one->count = result_integer(result, i, "count", -1);
        one->mean = result_number(result, i, "mean", (double)NAN);
        one->min = result_integer(result, i, "min", -1);
        one->max = result_integer(result, i, "max", -1);
        one->p95 = result_number(result, i, "p95", (double)NAN);
    }
    result_free(result);
}

// p95 by the nearest rank, as sketches count it: place ceil(0.95 * count).
static const char plain_sql[] =
    "SELECT (SELECT text FROM name WHERE id = model), max(c), sum(ttft_ns), min(ttft_ns),"
    " max(ttft_ns), max(CASE WHEN k = (c * 95 + 99) / 100 THEN ttft_ns END) FROM"
    " (SELECT model, ttft_ns, row_number() OVER (PARTITION BY model ORDER BY ttft_ns) AS k,"
    "  count(*) OVER (PARTITION BY model) AS c FROM inference"
    "  WHERE started_ns >= ? AND started_ns < ? AND ttft_ns IS NOT NULL) GROUP BY model";

static void read_row(sqlite3_stmt *stmt, struct window_answer *answer)
{
    if (answer->count == QUERY_MODELS)
        bench_die("plain SQL", "too many models");
    struct model_answer *one = &answer->models[answer->count++];
    (void)snprintf(one->model, sizeof one->model, "%s", sqlite3_column_text(stmt, 0));
    one->count = sqlite3_column_int64(stmt, 1);
    one->mean = (double)((long double)sqlite3_column_int64(stmt, 2) / (long double)one->count);
    one->min = sqlite3_column_int64(stmt, 3);
    one->max = sqlite3_column_int64(stmt, 4);
    one->p95 = sqlite3_column_double(stmt, 5);
}

double plain_answer(const struct subject *subject, enum query_window window,
                    struct window_answer *answer)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    if (database_open_reader(&db, subject->path, &err) != STATUS_OK ||
        database_exec(db, "PRAGMA cache_size=-65536", &err) != STATUS_OK ||
        database_prepare(db, &stmt, plain_sql, false, &err) != STATUS_OK)
        bench_die("plain SQL", err.text);
    answer->count = 0;
    (void)sqlite3_bind_int64(stmt, 1, subject->until_ns - windows[window].ns);
    (void)sqlite3_bind_int64(stmt, 2, subject->until_ns);
    const uint64_t began = clock_monotonic_ns();
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        read_row(stmt, answer);
    const uint64_t ended = clock_monotonic_ns();
    if (rc != SQLITE_DONE)
        bench_die("plain SQL", sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    database_close(db);
    return (double)(ended - began);
}

static const struct model_answer *find(const struct window_answer *answer, const char *model)
{
    for (unsigned i = 0; i < answer->count; i++)
        if (strcmp(answer->models[i].model, model) == 0)
            return &answer->models[i];
    return NULL;
}

static bool are_equal(const struct model_answer *ours, const struct model_answer *plain)
{
    return ours->count == plain->count && ours->min == plain->min && ours->max == plain->max &&
           fabs(ours->mean - plain->mean) <= 1e-12 * plain->mean &&
           fabs(ours->p95 - plain->p95) <= 0.01 * plain->p95;
}

void answers_compare(const struct window_answer *ours, const struct window_answer *plain,
                     enum query_window window)
{
    char text[512];
    if (ours->count != plain->count)
        bench_die(windows[window].name, "not as many models as plain SQL finds");
    for (unsigned i = 0; i < ours->count; i++) {
        const struct model_answer *a = &ours->models[i], *b = find(plain, a->model);
        if (b && are_equal(a, b))
            continue;
        (void)snprintf(text, sizeof text,
                       "%s: count %lld, mean %.17g, %lld to %lld, p95 %.17g; plain SQL: count "
                       "%lld, mean %.17g, %lld to %lld, p95 %.17g",
                       a->model, (long long)a->count, a->mean, (long long)a->min, (long long)a->max,
                       a->p95, b ? (long long)b->count : 0, b ? b->mean : 0,
                       b ? (long long)b->min : 0, b ? (long long)b->max : 0, b ? b->p95 : 0);
        bench_die(windows[window].name, text);
    }
}

// ---- WHY: asked of the file by this process, whose processor time is exact ----------------------

static const struct {
    const char *name;
    int64_t seconds;
} why_windows[WHY_WINDOWS] = {{"10m", 600}, {"1h", 3600}, {"24h", 86400}, {"7d", 604800}};

enum { EVENTS = 4000 };

const char *why_window_name(unsigned window)
{
    return why_windows[window].name;
}

// Doubles the time per token of all requests from `since_ns` on, and of no others, while the clocks
// of all devices are reduced again and again.
static void slow_down(const struct subject *subject, int64_t since_ns)
{
    struct error err = {0};
    char sql[512];
    sqlite3 *db = NULL;
    if (database_open_writer(&db, subject->path, &err) != STATUS_OK)
        bench_die("store", err.text);
    rows_exec(db, "BEGIN");
    rows_exec(db, "UPDATE inference SET decode_ns = decode_ns / 2, e2e_ns = e2e_ns - decode_ns / 2"
                  " WHERE started_ns >= (SELECT min(started_ns) FROM event WHERE code = 77)"
                  " AND decode_ns > itl_max_ns / 2.0 * (generated_tokens - 1)");
    (void)snprintf(sql, sizeof sql,
                   "UPDATE inference SET decode_ns = 2 * decode_ns, e2e_ns = e2e_ns + decode_ns"
                   " WHERE started_ns >= %lld",
                   (long long)since_ns);
    rows_exec(db, sql);
    rows_exec(db, "DELETE FROM event WHERE code = 77");
    // Of a store that is kept, as earlier rounds restarted its collector.
    (void)snprintf(sql, sizeof sql, "UPDATE run SET heard_ns = %lld WHERE heard_ns > %lld",
                   (long long)subject->until_ns, (long long)subject->until_ns);
    rows_exec(db, sql);
    int64_t runs = 0;
    if (database_integer(db, "SELECT max(run) FROM run WHERE worker_version = 'history'", &runs,
                         &err) != STATUS_OK)
        bench_die("store", err.text);
    for (int64_t i = 0; i < EVENTS; i++) {
        struct record record;
        record_init(&record, RECORD_KIND_EVENT,
                    since_ns + (subject->until_ns - since_ns) / EVENTS * i);
        record_set_name(&record, EVENT_EVENT, rows_name(db, why_cause_name(WHY_THROTTLING)));
        record_set_name(&record, EVENT_DEVICE, rows_name(db, "gpu"));
        record_set_int(&record, EVENT_DURATION_NS, (subject->until_ns - since_ns) / EVENTS / 2);
        record_set_int(&record, EVENT_CODE, 77);
        (void)rows_add(db, runs - i % QUERY_HOSTS, &record);
    }
    rows_exec(db, "COMMIT");
    database_close(db);
}

static void ask_why(struct store *store, int64_t since_ns, unsigned times, struct why_times *out)
{
    static double wall[WHY_QUERIES_MAX], processor[WHY_QUERIES_MAX];
    struct error err = {0};
    for (unsigned i = 0; i < times; i++) {
        struct result *result = NULL;
        struct query query = {.kind = QUERY_WHY};
        query.filter.since_ns = since_ns;
        const uint64_t began = clock_monotonic_ns(), worked = clock_thread_ns();
        if (store_query(store, &query, &result, &err) != STATUS_OK)
            bench_die("why", err.text);
        wall[i] = (double)(clock_monotonic_ns() - began);
        processor[i] = (double)(clock_thread_ns() - worked);
        result_free(result);
    }
    out->p50 = bench_quantile(wall, times, 0.5);
    out->most = bench_quantile(wall, times, 1);
    out->processor = bench_quantile(processor, times, 0.5);
}

void why_ask(const struct subject *subject, unsigned times, struct why_times out[WHY_WINDOWS])
{
    struct error err = {0};
    if (times > WHY_QUERIES_MAX)
        times = WHY_QUERIES_MAX;
    for (unsigned window = 0; window < WHY_WINDOWS; window++) {
        struct store *store = NULL;
        const int64_t since_ns = subject->until_ns - why_windows[window].seconds * SECOND;
        slow_down(subject, since_ns);
        if (store_open(&store, subject->path, &err) != STATUS_OK)
            bench_die("store", err.text);
        ask_why(store, since_ns, times, &out[window]);
        store_close(store);
    }
}
