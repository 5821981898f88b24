#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/bench/query.h"
#include "tests/bench/victoria.h"

enum { BODY_SIZE = 1 << 20, LINE_SIZE_MAX = 256, WARM_UPS = 3, TIMES_MAX = 1000 };

// A line a sample, as in the Influx protocol.
static void import_all(const struct victoria *victoria, const struct subject *subject)
{
    static const char sql[] =
        "SELECT m.text, h.text, i.ttft_ns, i.started_ns FROM inference i"
        " JOIN run r USING(run) JOIN name m ON m.id = i.model JOIN name h ON h.id = r.host";
    struct error err = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char *body = malloc(BODY_SIZE);
    const int fd = victoria_connect(victoria);
    size_t used = 0;
    int rc = SQLITE_ROW;
    if (!body || fd < 0 || database_open_reader(&db, subject->path, &err) != STATUS_OK ||
        database_prepare(db, &stmt, sql, false, &err) != STATUS_OK)
        bench_die("import", err.text);
    while (rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            used += (size_t)snprintf(body + used, LINE_SIZE_MAX,
                                     "inference,model=%s,host=%s ttft_ns=%lld %lld\n",
                                     sqlite3_column_text(stmt, 0), sqlite3_column_text(stmt, 1),
                                     sqlite3_column_int64(stmt, 2), sqlite3_column_int64(stmt, 3));
        if (used > 0 && (rc != SQLITE_ROW || used > BODY_SIZE - LINE_SIZE_MAX)) {
            victoria_post(fd, body, used);
            used = 0;
        }
    }
    if (rc != SQLITE_DONE)
        bench_die("import", sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    database_close(db);
    (void)close(fd);
    free(body);
}

// What was stored can be asked for from now on.
static void make_searchable(const struct victoria *victoria)
{
    char *answer = victoria_get(victoria, "/internal/force_flush");
    if (!answer || !strstr(answer, " 200 "))
        bench_die("victoria-metrics", "it does not flush");
    free(answer);
}

static double ask_once(const struct victoria *victoria, const struct subject *subject,
                       enum query_window window)
{
    char path[512];
    (void)snprintf(path, sizeof path,
                   "/api/v1/query?nocache=1&time=%.3f&query=avg%%20by%%20(model)("
                   "avg_over_time(inference_ttft_ns%%5B%llds%%5D))",
                   (double)subject->until_ns / 1e9, (long long)(window_ns(window) / 1000000000));
    const uint64_t began = clock_monotonic_ns();
    char *answer = victoria_get(victoria, path);
    const uint64_t ended = clock_monotonic_ns();
    if (!answer || !strstr(answer, "\"status\":\"success\"") || !strstr(answer, "model-00"))
        bench_die("victoria-metrics", answer ? answer : "no answer");
    free(answer);
    return (double)(ended - began);
}

void victoria_ask(const struct subject *subject, const char *folder, unsigned times,
                  double medians[WINDOW_COUNT])
{
    static double ns[TIMES_MAX];
    struct victoria victoria = {0};
    if (times > TIMES_MAX)
        times = TIMES_MAX;
    victoria_start(&victoria, folder);
    import_all(&victoria, subject);
    make_searchable(&victoria);
    for (unsigned window = 0; window < WINDOW_COUNT; window++) {
        for (unsigned i = 0; i < WARM_UPS; i++)
            (void)ask_once(&victoria, subject, (enum query_window)window);
        for (unsigned i = 0; i < times; i++)
            ns[i] = ask_once(&victoria, subject, (enum query_window)window);
        medians[window] = bench_quantile(ns, times, 0.5);
    }
    victoria_stop(&victoria);
}
