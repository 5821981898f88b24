// What a sealed inference takes: bytes, time to seal it and time to read it, beside the
// same rows before.
//
//   bench_sealed [--json] [--quick] [--records N] [--days N] [--rows N]
//
// The rows are a history (tests/support/history.h) as dense as 100 million inferences a
// year; --days makes it thinner, --rows a segment smaller.  Bytes are those of the pages in use,
// indexes and all, over the rows.  VictoriaMetrics takes 26 bytes for seven values of an inference,
// where this has all columns.
//
// A history leaves so much to chance that no packing gets much below: tokens, queue and
// decoding have 73 bits, finish and concurrency 3, and a start 34 where its host has a
// hundred an hour, 41 where it has two, and 42, with its host and model 3 more, where it has
// less than one: 13.9, 14.7 and 15.2 bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/sealed.h"
#include "common/store/sealer.h"
#include "common/sys/clock.h"
#include "tests/bench/bench.h"
#include "tests/support/folder.h"
#include "tests/support/history.h"

#define VICTORIA_BYTES 26.0
#define YEARLY         100000000.0

struct settings {
    bool json;
    uint64_t records;
    unsigned days; // 0: as dense as said above
    uint32_t rows; // of a segment
};

struct found {
    double hot_bytes, sealed_bytes, hot_read_ns, sealed_read_ns, seal_ns, longest_ms, rows;
};

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {.records = 1000000, .rows = SEAL_ROWS_MAX};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings.records = 40000;
        else if (strcmp(argv[i], "--records") == 0 && i + 1 < argc)
            settings.records = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--days") == 0 && i + 1 < argc)
            settings.days = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rows") == 0 && i + 1 < argc)
            settings.rows = (uint32_t)strtoul(argv[++i], NULL, 10);
        else
            bench_die(argv[i], "usage: bench_sealed [--json] [--quick] [--records N] [--days N]"
                               " [--rows N]");
    }
    if (settings.rows == 0 || settings.rows > SEAL_ROWS_MAX)
        bench_die("--rows", "1 to 16384");
    if (settings.days == 0)
        settings.days = 1 + (unsigned)((double)settings.records * 365 / YEARLY);
    return settings;
}

static double ask(sqlite3 *db, const char *sql)
{
    struct error err;
    int64_t value = 0;
    if (database_integer(db, sql, &value, &err) != STATUS_OK)
        bench_die(sql, err.text);
    return (double)value;
}

// The sum of three columns, over all rows that a source has; in ns a row.
static double read_ns(sqlite3 *db, unsigned source, double rows)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "SELECT sum(t.model + t.generated_tokens + t.e2e_ns % 1000) FROM ");
    sealed_append_from(sql, RECORD_KIND_INFERENCE, source);
    char *text = sqlite3_str_finish(sql);
    const uint64_t began_ns = clock_monotonic_ns();
    (void)ask(db, text);
    const double took_ns = (double)(clock_monotonic_ns() - began_ns);
    sqlite3_free(text);
    return took_ns / rows;
}

static void seal_all(sqlite3 *db, uint32_t rows, struct found *found)
{
    struct error err = {.text = ""};
    struct sealer *sealer = NULL;
    const struct sealer_limits limits = {
        .before_ns = INT64_MAX, .last_id = INT64_MAX, .rows = rows};
    bool done = false;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = sealer_new(&sealer, db, RECORD_KIND_INFERENCE, &err);
    while (status == STATUS_OK && !done) {
        uint32_t sealed = 0;
        const uint64_t step_ns = clock_monotonic_ns();
        status = sealer_step(sealer, &limits, &done, &sealed, &err);
        const double took_ms = (double)(clock_monotonic_ns() - step_ns) / 1e6;
        found->rows += sealed;
        if (took_ms > found->longest_ms)
            found->longest_ms = took_ms;
    }
    if (status != STATUS_OK)
        bench_die("sealing", err.text);
    found->seal_ns = (double)(clock_monotonic_ns() - began_ns) / found->rows;
    sealer_free(sealer);
}

static void measure(const char *path, const struct settings *settings, struct found *found)
{
    struct error err;
    sqlite3 *db = NULL;
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        bench_die(path, err.text);
    found->hot_read_ns = read_ns(db, SEALED_NOT, (double)settings->records);
    found->hot_bytes = ask(db, "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'inference%'") /
                       (double)settings->records;
    seal_all(db, settings->rows, found);
    found->sealed_read_ns = read_ns(db, SEALED_TOO, (double)settings->records);
    found->sealed_bytes =
        ask(db, "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'sealed%'") / found->rows;
    database_close(db);
}

static void print(const struct found *found, bool json)
{
    const struct {
        const char *key, *text;
        double value;
    } lines[] = {
        {"hot_bytes", "bytes of an inference in its table, with indexes", found->hot_bytes},
        {"sealed_bytes", "bytes of one that is sealed, with indexes (<= 15)", found->sealed_bytes},
        {"ratio_to_hot", "the second to the first", found->sealed_bytes / found->hot_bytes},
        {"ratio_to_victoria_metrics", "to VictoriaMetrics' seven values",
         found->sealed_bytes / VICTORIA_BYTES},
        {"seal_ns", "ns to seal one", found->seal_ns},
        {"longest_step_ms", "ms of the longest step of it", found->longest_ms},
        {"hot_read_ns", "ns to read three columns of one in the table", found->hot_read_ns},
        {"sealed_read_ns", "ns to read them sealed", found->sealed_read_ns},
        {"read_ratio_to_hot", "the second to the first",
         found->sealed_read_ns / found->hot_read_ns},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (json)
            bench_json_number(lines[i].key, lines[i].value, 3);
        else
            printf("%-52s %10.2f\n", lines[i].text, lines[i].value);
    }
    if (json)
        bench_json_end();
}

int main(int argc, char **argv)
{
    const struct settings settings = read_arguments(argc, argv);
    struct found found = {0};
    struct error err = {.text = ""};
    char path[FOLDER_PATH_SIZE];
    double seconds = 0;
    (void)folder_path(path, bench_open("bench_sealed"), "history.db");
    const struct history history = {.path = path,
                                    .inferences = settings.records,
                                    .models = 20,
                                    .hosts = 50,
                                    .days = settings.days,
                                    .until_ns = clock_wall_ns(),
                                    .seed = 1};
    if (history_write(&history, &seconds, &err) != STATUS_OK)
        bench_die("history", err.text);
    measure(path, &settings, &found);
    print(&found, settings.json);
    return 0;
}
