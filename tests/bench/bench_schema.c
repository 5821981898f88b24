// What a row of the store's largest table takes, in bytes, in time to insert and in
// time to find by a window of time: as the store has it (rowid and an index on time), the
// same in a table of its own, clustered by time (WITHOUT ROWID), and as the least that SQLite
// needs for the same fields.
//
//   bench_schema [--json] [--quick] [--records N] [--longer NS]
//
// The store's side is a store, made by its own statements, with all of its indexes, and
// given what the collector gives it; the others are one table.  A row's bytes are those that the
// file grew by, so that a store's other tables are not counted.
//
// Records are as trackers give them (common/monitor/trackers/tracker_inference.c): ttft_ns is
// queue_ns + prefill_ns and e2e_ns is ttft_ns + decode_ns, from the same stamps.  One is
// stored 50 ms after its request has ended.  --longer makes each request's decode longer.
//
// Records arrive as from 50 hosts: batches by turns, whose times overlap by seconds.
// Every side is a file of its own with the store's settings, and has the same rows;
// the sides take turns inserting.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_select.h"
#include "common/sys/clock.h"
#include "common/store/schema/schema_migrate.h"
#include "tests/bench/bench.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"

#define DAY_NS INT64_C(86400000000000)

enum {
    HOSTS = 50,
    BATCH = 128,
    TRANSACTION_ROWS = 16384, // as large as groups of the writer under load
    DAYS = 30,
    WINDOWS = 60,
};

enum key { KEY_STORE, KEY_ROWID, KEY_TIME };

static const struct side {
    const char *name, *text;
    enum key key;
    bool has_identity; // run, stream, number and received_ns
    const char *index; // NULL: none
} sides[] = {
    {"store", "the store's", KEY_STORE, true, "started_ns"},
    {"rowid_index", "rowid and index on time, one table", KEY_ROWID, true, "started_ns"},
    {"clustered", "clustered on time, run, stream, number", KEY_TIME, true, NULL},
    {"minute_index", "rowid and index on the minute", KEY_ROWID, true, "started_ns / 60000000000"},
    {"minimal", "the same fields, no index", KEY_ROWID, true, NULL},
    {"bare_index", "time and measurements alone, index on time", KEY_ROWID, false, "started_ns"},
    {"bare", "time and measurements alone, no index", KEY_ROWID, false, NULL},
};

enum {
    SIDE_COUNT = sizeof sides / sizeof *sides,
    SIDE_STORE = 0,
    SIDE_PLAIN = 1,
    SIDE_CLUSTERED = 2,
    SIDE_MINIMAL = 4,
};

// A side at work.
struct table {
    const struct side *side;
    char path[FOLDER_PATH_SIZE];
    sqlite3 *db;
    sqlite3_stmt *insert;
    double seconds;      // inserting
    double bytes;        // a row
    int64_t empty_bytes; // of the file without rows
    double hour_ms, day_ms;
};

struct settings {
    uint64_t records;
    int64_t longer_ns;
    bool json;
};

static const char pragmas[] = "PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;"
                              "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000;"
                              "PRAGMA cache_size=-16384;";

static void run(struct table *table, const char *sql)
{
    struct error err = {0};
    if (database_exec(table->db, sql, &err) != STATUS_OK)
        bench_die(table->side->name, err.text);
}

static void append_columns(sqlite3_str *sql, bool with_types)
{
    const struct record_kind_info *info = record_kind_info(RECORD_KIND_INFERENCE);
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\"%s%s", info->columns[i].name,
                            with_types ? " INTEGER" : "",
                            with_types && !info->columns[i].maybe ? " NOT NULL" : "");
}

static void create(struct table *table)
{
    sqlite3_str *sql = sqlite3_str_new(table->db);
    sqlite3_str_appendall(sql, "CREATE TABLE inference(");
    if (table->side->key == KEY_ROWID)
        sqlite3_str_appendall(sql, "id INTEGER PRIMARY KEY, ");
    sqlite3_str_appendall(sql, "started_ns INTEGER NOT NULL");
    if (table->side->has_identity)
        sqlite3_str_appendall(sql, ", run INTEGER NOT NULL, stream INTEGER NOT NULL, number INTEGER"
                                   " NOT NULL, received_ns INTEGER NOT NULL");
    append_columns(sql, true);
    sqlite3_str_appendall(sql,
                          table->side->key == KEY_TIME
                              ? ", PRIMARY KEY(started_ns, run, stream, number)) WITHOUT ROWID;"
                              : ");");
    if (table->side->index)
        sqlite3_str_appendf(sql, "CREATE INDEX inference_started ON inference(%s);",
                            table->side->index);
    char *text = sqlite3_str_finish(sql);
    if (!text)
        bench_die(table->side->name, "out of memory");
    run(table, text);
    sqlite3_free(text);
}

// With the parameters of schema_insert_sql.
static void append_insert(sqlite3_str *sql, const struct side *side)
{
    sqlite3_str_appendall(sql, "INSERT INTO inference(started_ns");
    if (side->key == KEY_ROWID)
        sqlite3_str_appendall(sql, ", id");
    if (side->has_identity)
        sqlite3_str_appendall(sql, ", run, stream, number, received_ns");
    append_columns(sql, false);
    sqlite3_str_appendall(sql, ") VALUES(?5");
    if (side->key == KEY_ROWID)
        sqlite3_str_appendall(sql, ", ?1");
    if (side->has_identity)
        sqlite3_str_appendall(sql, ", ?2, ?3, ?4, ?6");
    for (unsigned i = 0; i < INFERENCE_COLUMNS; i++)
        sqlite3_str_appendf(sql, ", ?%u", SCHEMA_FIRST_COLUMN + i);
    sqlite3_str_appendall(sql, ")");
}

static void prepare_insert(struct table *table)
{
    struct error err = {0};
    sqlite3_str *sql = sqlite3_str_new(table->db);
    if (table->side->key == KEY_STORE)
        schema_insert_sql(sql, RECORD_KIND_INFERENCE);
    else
        append_insert(sql, table->side);
    char *text = sqlite3_str_finish(sql);
    if (!text || database_prepare(table->db, &table->insert, text, true, &err) != STATUS_OK)
        bench_die(table->side->name, err.text);
    sqlite3_free(text);
}

static int64_t file_bytes(struct table *table)
{
    struct error err = {0};
    int64_t bytes = 0;
    run(table, "PRAGMA wal_checkpoint(TRUNCATE)");
    if (database_integer(table->db,
                         "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
                         &bytes, &err) != STATUS_OK)
        bench_die(table->side->name, err.text);
    return bytes;
}

static void table_open(struct table *table, const struct side *side, const char *folder)
{
    struct error err = {0};
    *table = (struct table){.side = side};
    (void)folder_path(table->path, folder, side->name);
    if (sqlite3_open(table->path, &table->db) != SQLITE_OK)
        bench_die(side->name, "cannot be opened");
    run(table, pragmas);
    if (side->key != KEY_STORE)
        create(table);
    else if (schema_migrate(table->db, table->path, &err) != STATUS_OK)
        bench_die(side->name, err.text);
    prepare_insert(table);
    table->empty_bytes = file_bytes(table);
}

static void table_close(struct table *table)
{
    (void)sqlite3_finalize(table->insert);
    database_close(table->db);
}

// The i-th record to arrive: a batch of a host covers what all have done since its last.
static void make_record(struct record *record, uint64_t i, const struct settings *settings,
                        int64_t *number)
{
    const double span_ns = (double)DAYS * (double)DAY_NS;
    const uint64_t batch = i / BATCH, host = batch % HOSTS, place = i % BATCH;
    const uint64_t turn = batch / HOSTS;
    // Times within a turn, over all hosts alike.
    const uint64_t when = turn * BATCH * HOSTS + place * HOSTS + host;
    producer_inference(record, i);
    record->started_ns = INT64_C(1790000000000000000) +
                         (int64_t)((double)when / (double)settings->records * span_ns);
    record->values[INFERENCE_DECODE_NS].i += settings->longer_ns;
    record->values[INFERENCE_E2E_NS].i += settings->longer_ns;
    *number = (int64_t)(turn * BATCH + place + 1);
}

static void bind(struct table *table, const struct record *record, uint64_t i, int64_t number)
{
    const int64_t ended_ns = record->started_ns + record->values[INFERENCE_E2E_NS].i;
    const int64_t common[] = {
        (int64_t)i + 1,     (int64_t)(i / BATCH % HOSTS) + 1, 0, number, record->started_ns,
        ended_ns + 50000000};
    for (int p = 0; p < SCHEMA_FIRST_COLUMN - 1; p++)
        (void)sqlite3_bind_int64(table->insert, p + 1, common[p]);
    for (int c = 0; c < INFERENCE_COLUMNS; c++) {
        if (record_has(record, (unsigned)c))
            (void)sqlite3_bind_int64(table->insert, SCHEMA_FIRST_COLUMN + c, record->values[c].i);
        else
            (void)sqlite3_bind_null(table->insert, SCHEMA_FIRST_COLUMN + c);
    }
}

static void insert_some(struct table *table, uint64_t first, uint64_t end,
                        const struct settings *settings)
{
    const uint64_t began_ns = clock_monotonic_ns();
    run(table, "BEGIN");
    for (uint64_t i = first; i < end; i++) {
        struct record record;
        int64_t number;
        make_record(&record, i, settings, &number);
        bind(table, &record, i, number);
        if (sqlite3_step(table->insert) != SQLITE_DONE || sqlite3_reset(table->insert) != SQLITE_OK)
            bench_die(table->side->name, sqlite3_errmsg(table->db));
    }
    run(table, "COMMIT");
    table->seconds += (double)(clock_monotonic_ns() - began_ns) / 1e9;
}

static void insert_all(struct table tables[SIDE_COUNT], const struct settings *settings)
{
    const uint64_t count = settings->records;
    for (uint64_t first = 0; first < count; first += TRANSACTION_ROWS)
        for (unsigned i = 0; i < SIDE_COUNT; i++)
            insert_some(&tables[i], first,
                        first + TRANSACTION_ROWS < count ? first + TRANSACTION_ROWS : count,
                        settings);
}

static void measure_bytes(struct table *table, uint64_t count)
{
    table->bytes = (double)(file_bytes(table) - table->empty_bytes) / (double)count;
}

// The median time of a count and a mean over windows of that length.
static double window_ms(struct table *table, int64_t length_ns)
{
    struct error err = {0};
    struct figures figures = {0};
    for (int i = 0; i < WINDOWS; i++) {
        const int64_t since_ns = INT64_C(1790000000000000000) + (DAYS - 2) * DAY_NS / WINDOWS * i;
        char sql[320];
        int64_t sum = 0;
        const bool by_minute = table->side->index && strchr(table->side->index, '/');
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) + sum(e2e_ns) + sum(generated_tokens) FROM inference WHERE"
                       " started_ns >= %lld AND started_ns < %lld",
                       (long long)since_ns, (long long)(since_ns + length_ns));
        const size_t used = strlen(sql);
        if (by_minute)
            (void)snprintf(sql + used, sizeof sql - used,
                           " AND started_ns / 60000000000 BETWEEN %lld AND %lld",
                           (long long)(since_ns / 60000000000),
                           (long long)((since_ns + length_ns) / 60000000000));
        const uint64_t began_ns = clock_monotonic_ns();
        if (database_integer(table->db, sql, &sum, &err) != STATUS_OK || sum == 0)
            bench_die(table->side->name, sum == 0 ? "an empty window" : err.text);
        figures_add(&figures, (double)(clock_monotonic_ns() - began_ns) / 1e6);
    }
    return figures_median(&figures);
}

static struct settings read_arguments(int argc, char **argv)
{
    struct settings settings = {.records = 1000000};
    bool wrong = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            settings.json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            settings.records = 50000;
        else if (strcmp(argv[i], "--records") == 0 && i + 1 < argc)
            settings.records = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--longer") == 0 && i + 1 < argc)
            settings.longer_ns = strtoll(argv[++i], NULL, 10);
        else
            wrong = true;
    }
    if (!wrong && settings.records >= 50000 && settings.longer_ns >= 0)
        return settings;
    fprintf(stderr, "usage: bench_schema [--json] [--quick] [--records N] [--longer NS]"
                    "   (at least 50000 records)\n");
    exit(2);
}

static void print(const struct table tables[SIDE_COUNT], const struct settings *settings)
{
    if (!settings->json)
        printf("%llu rows                                      bytes/row   rows/s   hour ms    day "
               "ms\n",
               (unsigned long long)settings->records);
    for (unsigned i = 0; i < SIDE_COUNT; i++) {
        const struct table *table = &tables[i];
        const double rate = (double)settings->records / table->seconds;
        char key[64];
        if (!settings->json) {
            printf("%-46s %9.1f %8.0f %9.2f %9.2f\n", table->side->text, table->bytes, rate,
                   table->hour_ms, table->day_ms);
            continue;
        }
        (void)snprintf(key, sizeof key, "%s_bytes", table->side->name);
        bench_json_number(key, table->bytes, 1);
        (void)snprintf(key, sizeof key, "%s_rows_per_second", table->side->name);
        bench_json_number(key, rate, 0);
        (void)snprintf(key, sizeof key, "%s_hour_ms", table->side->name);
        bench_json_number(key, table->hour_ms, 3);
        (void)snprintf(key, sizeof key, "%s_day_ms", table->side->name);
        bench_json_number(key, table->day_ms, 3);
    }
    const double to_minimal = tables[SIDE_STORE].bytes / tables[SIDE_MINIMAL].bytes;
    const double to_plain = tables[SIDE_STORE].bytes / tables[SIDE_PLAIN].bytes;
    const double to_clustered = tables[SIDE_STORE].bytes / tables[SIDE_CLUSTERED].bytes;
    const double speed = tables[SIDE_PLAIN].seconds / tables[SIDE_STORE].seconds;
    if (settings->json) {
        bench_json_number("ratio_to_minimal_row", to_minimal, 3);
        bench_json_number("ratio_to_clustered", to_clustered, 3);
        bench_json_number("ratio_to_columns_as_read", to_plain, 3);
        bench_json_number("insert_ratio_to_columns_as_read", speed, 3);
        bench_json_end();
        return;
    }
    printf("the store's row to the same fields without an index   %.3f   <= 1.25\n", to_minimal);
    printf("the store's row to the clustered one                  %.3f\n", to_clustered);
    printf("the store's row to columns as read                    %.3f\n", to_plain);
    printf("the store's rows a second to columns as read          %.3f\n", speed);
}

int main(int argc, char **argv)
{
    static struct table tables[SIDE_COUNT];
    const struct settings settings = read_arguments(argc, argv);
    const char *folder = bench_open("bench_schema");
    for (unsigned i = 0; i < SIDE_COUNT; i++)
        table_open(&tables[i], &sides[i], folder);
    insert_all(tables, &settings);
    for (unsigned i = 0; i < SIDE_COUNT; i++) {
        measure_bytes(&tables[i], settings.records);
        if (sides[i].index || sides[i].key == KEY_TIME) {
            tables[i].hour_ms = window_ms(&tables[i], 3600 * INT64_C(1000000000));
            tables[i].day_ms = window_ms(&tables[i], DAY_NS);
        }
        table_close(&tables[i]);
    }
    print(tables, &settings);
    return 0;
}
