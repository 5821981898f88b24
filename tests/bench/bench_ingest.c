// How many records a second the collector takes: acknowledged after the commit,
// over real sockets, by a real inferstatd, from 1 and from 8 producers; against a
// bare SQLite loop that inserts the same rows, one after the other, with the same
// settings, into the same table without its index, in large transactions.
//
//   bench_ingest [--json] [--records N] [--rounds N]
//
// Rounds alternate the three; every figure is the median of the rounds, a ratio
// the median of the rounds' own ratios.  Batches are encoded before the clock
// starts.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/schema.h"
#include "common/sys/clock.h"
#include "tests/support/daemon.h"
#include "tests/support/folder.h"
#include "tests/support/producer.h"

enum {
    BATCH = 2048,             // records
    LOOP_TRANSACTION = 65536, // rows of a transaction of the bare loop
    PRODUCERS_MAX = 8,
    ROUNDS_MAX = 99,
};

static char folder[FOLDER_PATH_SIZE];

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_ingest: %s: %s\n", what, why);
    folder_remove(folder);
    exit(1);
}

// ---- The bare loop --------------------------------------------------------------------

static void bind_record(sqlite3_stmt *stmt, uint64_t i, const struct record *record)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)i);
    (void)sqlite3_bind_int64(stmt, 2, 1);
    (void)sqlite3_bind_int64(stmt, 3, 0);
    (void)sqlite3_bind_int64(stmt, 4, (int64_t)i);
    (void)sqlite3_bind_int64(stmt, 5, record->started_ns);
    (void)sqlite3_bind_int64(stmt, 6, record->started_ns);
    for (unsigned c = 0; c < INFERENCE_COLUMNS; c++) {
        if (record_has(record, c))
            (void)sqlite3_bind_int64(stmt, SCHEMA_FIRST_COLUMN + (int)c, record->values[c].i);
        else
            (void)sqlite3_bind_null(stmt, SCHEMA_FIRST_COLUMN + (int)c);
    }
}

static void insert_all(sqlite3 *db, sqlite3_stmt *stmt, const struct record *records,
                       uint64_t count)
{
    struct error err = {0};
    for (uint64_t i = 0; i < count; i++) {
        if (i % LOOP_TRANSACTION == 0 && database_exec(db, "BEGIN", &err) != STATUS_OK)
            die("bare loop", err.text);
        bind_record(stmt, i + 1, &records[i]);
        if (sqlite3_step(stmt) != SQLITE_DONE || sqlite3_reset(stmt) != SQLITE_OK)
            die("bare loop", sqlite3_errmsg(db));
        if ((i + 1 == count || (i + 1) % LOOP_TRANSACTION == 0) &&
            database_exec(db, "COMMIT", &err) != STATUS_OK)
            die("bare loop", err.text);
    }
}

static double bare_loop(const struct record *records, uint64_t count)
{
    char path[FOLDER_PATH_SIZE];
    struct error err = {0};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    (void)folder_path(path, folder, "loop.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK ||
        database_exec(db, "DROP INDEX inference_started", &err) != STATUS_OK)
        die("bare loop", err.text);
    sqlite3_str *sql = sqlite3_str_new(db);
    schema_insert_sql(sql, RECORD_KIND_INFERENCE);
    char *text = sqlite3_str_finish(sql);
    if (!text || database_prepare(db, &stmt, text, true, &err) != STATUS_OK)
        die("bare loop", err.text);
    sqlite3_free(text);
    const uint64_t began = clock_monotonic_ns();
    insert_all(db, stmt, records, count);
    const uint64_t ended = clock_monotonic_ns();
    (void)sqlite3_finalize(stmt);
    database_close(db);
    (void)remove(path);
    return (double)count * 1e9 / (double)(ended - began);
}

// ---- The collector --------------------------------------------------------------------

struct frame {
    unsigned char *bytes;
    size_t size;
    uint64_t last; // number of its last record
};

struct sender {
    struct producer producer;
    struct frame *frames;
    size_t frame_count;
    uint64_t records;
    pthread_t thread;
};

static void prepare_sender(struct sender *sender, const char *endpoint, unsigned run,
                           const struct record *records, uint64_t count)
{
    producer_open(&sender->producer, endpoint, run);
    producer_hello(&sender->producer, NULL, 0);
    if (!producer_await(&sender->producer, 10000))
        die("hello", "no answer");
    sender->records = count;
    sender->frames = calloc((size_t)(count / BATCH + 1), sizeof *sender->frames);
    if (!sender->frames)
        die("frames", "out of memory");
    for (uint64_t first = 1; first <= count; first += BATCH) {
        struct frame *frame = &sender->frames[sender->frame_count++];
        const uint64_t size = count - first + 1 < BATCH ? count - first + 1 : BATCH;
        frame->last = first + size - 1;
        frame->bytes = producer_encode(&sender->producer, 0, first, &records[first - 1],
                                       (size_t)size, &frame->size);
    }
}

// Sends as far as credit goes, waits for acknowledgements, until all is stored.
static void *send_all(void *context)
{
    struct sender *sender = context;
    struct producer *producer = &sender->producer;
    size_t sent = 0;
    producer->next[0] = 1;
    while (producer->next[0] <= sender->records) {
        while (sent < sender->frame_count &&
               sender->frames[sent].last - (producer->next[0] - 1) <= producer->credit) {
            if (wire_send(producer->socket, NULL, sender->frames[sent].bytes,
                          sender->frames[sent].size) != STATUS_OK)
                break;
            sent++;
        }
        (void)producer_await(producer, sent < sender->frame_count ? 1 : 1000);
    }
    return NULL;
}

static void free_sender(struct sender *sender)
{
    for (size_t i = 0; i < sender->frame_count; i++)
        free(sender->frames[i].bytes);
    free(sender->frames);
    producer_close(&sender->producer);
}

static void check_stored(const char *path, uint64_t count)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    int64_t stored = 0;
    if (database_open_reader(&db, path, &err) != STATUS_OK ||
        database_integer(db, "SELECT count(*) FROM inference", &stored, &err) != STATUS_OK)
        die("store", err.text);
    if ((uint64_t)stored != count)
        die("store", "not every record is in it");
    database_close(db);
}

static double collector(const struct record *records, uint64_t count, unsigned producers)
{
    char path[FOLDER_PATH_SIZE], address[FOLDER_PATH_SIZE + 8], endpoint[FOLDER_PATH_SIZE + 16];
    static struct sender senders[PRODUCERS_MAX];
    struct daemon daemon;
    (void)folder_path(path, folder, "collector.db");
    (void)snprintf(address, sizeof address, "ipc://%s", folder);
    (void)snprintf(endpoint, sizeof endpoint, "%s/ingest", address);
    const char *const argv[] = {INFERSTATD, "--db", path, "--listen", address, NULL};
    if (!daemon_start(&daemon, argv))
        die("inferstatd", daemon.output);
    const uint64_t share = count / producers;
    memset(senders, 0, sizeof senders);
    for (unsigned i = 0; i < producers; i++)
        prepare_sender(&senders[i], endpoint, i + 1, records + i * share, share);
    const uint64_t began = clock_monotonic_ns();
    for (unsigned i = 0; i < producers; i++)
        if (pthread_create(&senders[i].thread, NULL, send_all, &senders[i]) != 0)
            die("producer", "no thread");
    for (unsigned i = 0; i < producers; i++)
        (void)pthread_join(senders[i].thread, NULL);
    const uint64_t ended = clock_monotonic_ns();
    for (unsigned i = 0; i < producers; i++)
        free_sender(&senders[i]);
    if (daemon_end(&daemon, SIGTERM) != 0)
        die("inferstatd", daemon.output);
    check_stored(path, share * producers);
    (void)remove(path);
    return (double)(share * producers) * 1e9 / (double)(ended - began);
}

// ---- Figures ----------------------------------------------------------------------------

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(const double *values, unsigned count)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

int main(int argc, char **argv)
{
    static double bare[ROUNDS_MAX], one[ROUNDS_MAX], eight[ROUNDS_MAX], ratio_one[ROUNDS_MAX],
        ratio_eight[ROUNDS_MAX];
    uint64_t count = 400000;
    unsigned rounds = 5;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--records") == 0 && i + 1 < argc)
            count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            die(argv[i], "usage: bench_ingest [--json] [--records N] [--rounds N]");
    }
    if (rounds < 1 || rounds > ROUNDS_MAX || count < PRODUCERS_MAX * BATCH)
        die("arguments", "1 to 99 rounds of at least 16384 records");
    struct record *records = malloc(count * sizeof *records);
    if (!records)
        die("records", "out of memory");
    for (uint64_t i = 0; i < count; i++)
        producer_inference(&records[i], i + 1);
    folder_make(folder);
    for (unsigned i = 0; i < rounds; i++) {
        bare[i] = bare_loop(records, count);
        one[i] = collector(records, count, 1);
        eight[i] = collector(records, count, PRODUCERS_MAX);
        ratio_one[i] = one[i] / bare[i];
        ratio_eight[i] = eight[i] / bare[i];
    }
    folder_remove(folder);
    free(records);
    const char *format =
        json ? "{\"records\": %llu, \"rounds\": %u, \"bare_loop_records_per_second\": %.0f, "
               "\"records_per_second_1\": %.0f, \"records_per_second_8\": %.0f, "
               "\"ratio_to_bare_loop_1\": %.3f, \"ratio_to_bare_loop_8\": %.3f}\n"
             : "records a round        %llu (%u rounds)\nbare loop              %.0f records/s\n"
               "1 producer             %.0f records/s\n8 producers            %.0f records/s\n"
               "ratio to bare loop, 1  %.3f\nratio to bare loop, 8  %.3f\n";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    printf(format, (unsigned long long)count, rounds, median(bare, rounds), median(one, rounds),
           median(eight, rounds), median(ratio_one, rounds), median(ratio_eight, rounds));
#pragma GCC diagnostic pop
    return 0;
}
