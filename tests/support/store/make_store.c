// make_store FILE: writes a small store whose every number is fixed, so that
// what the command line prints of it can be compared with texts on file.
//
// Three runs on two hosts: one closed, one killed with losses, one open.  Names
// hold what listings have to cope with.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_tables.h"

#define MS INT64_C(1000000)
#define MB INT64_C(1048576)

// 2026-03-29 00:30:00 UTC, half an hour before the clocks of the tests go forward.
static const int64_t base_ns = INT64_C(1774744200000000000);

enum name {
    NAME_NONE,
    HOST_A,
    HOST_B,
    SMALL,
    ODD,
    CPU,
    GPU,
    STAGE_DEVICE,
    STAGE_OPEN,
    STAGE_HEADER,
    STAGE_TOKENIZER,
    STAGE_BUILD,
    OP_TOKENIZE,
    ENCODE,
    ENCODER,
    NAME_COUNT
};

static const char *const names[NAME_COUNT] = {
    [HOST_A] = "gpu-host-1",
    [HOST_B] = "b\xc3\xbcro",
    [SMALL] = "stories-15M",
    [ODD] = "\xe6\x97\xa5\xe6\x9c\xac, \"quoted\"",
    [CPU] = "cpu",
    [GPU] = "NVIDIA H200",
    [STAGE_DEVICE] = "device_selection",
    [STAGE_OPEN] = "file_opening",
    [STAGE_HEADER] = "read_header",
    [STAGE_TOKENIZER] = "tokenizer_init",
    [STAGE_BUILD] = "model_building",
    [OP_TOKENIZE] = "tokenize",
    [ENCODE] = "encode",
    [ENCODER] = "iqp 16 qubits f64",
};

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "make_store: %s\n", what);
    exit(1);
}

static void execute(struct sqlite3 *db, const char *sql)
{
    struct error err;
    if (database_exec(db, sql, &err) != STATUS_OK)
        fail(err.text);
}

// Where the next record goes.
struct place {
    struct sqlite3 *db;
    int64_t run;
    int64_t number; // of the record put last
};

static void bind(sqlite3_stmt *stmt, int parameter, const struct record *record, unsigned i,
                 enum column_type type)
{
    if (!record_has(record, i))
        return; // stays NULL
    size_t size;
    switch (type) {
    case COLUMN_REAL:
        (void)sqlite3_bind_double(stmt, parameter, record->values[i].r);
        return;
    case COLUMN_NAME:
        (void)sqlite3_bind_int64(stmt, parameter, record->values[i].name);
        return;
    case COLUMN_TEXT: {
        const char *text = record_get_text(record, i, &size);
        (void)sqlite3_bind_text(stmt, parameter, text, (int)size, SQLITE_TRANSIENT);
        return;
    }
    case COLUMN_BLOB: {
        const char *bytes = record_get_text(record, i, &size);
        (void)sqlite3_bind_blob(stmt, parameter, bytes, (int)size, SQLITE_TRANSIENT);
        return;
    }
    case COLUMN_INT:
    case COLUMN_STATUS:
    case COLUMN_FINISH:
    case COLUMN_RUN_END:
    case COLUMN_SYNC:
        break;
    }
    (void)sqlite3_bind_int64(stmt, parameter, record->values[i].i);
}

// Puts a record into the store under the next number.
static void put(struct place *place, const struct record *record)
{
    enum record_kind kind = (enum record_kind)record->kind;
    sqlite3_str *sql = sqlite3_str_new(place->db);
    schema_insert_sql(sql, kind);
    char *text = sqlite3_str_finish(sql);
    sqlite3_stmt *stmt;
    struct error err;
    if (database_prepare(place->db, &stmt, text, false, &err) != STATUS_OK)
        fail(err.text);
    sqlite3_free(text);
    (void)sqlite3_bind_int64(stmt, 2, place->run);
    (void)sqlite3_bind_int64(stmt, 3, 0);
    (void)sqlite3_bind_int64(stmt, 4, ++place->number);
    (void)sqlite3_bind_int64(stmt, 5, record->started_ns);
    (void)sqlite3_bind_int64(stmt, 6, record->started_ns + 2000 * MS);
    const struct record_kind_info *info = record_kind_info(kind);
    for (unsigned i = 0; i < info->column_count; i++)
        bind(stmt, (int)(SCHEMA_FIRST_COLUMN + i), record, i, info->columns[i].type);
    if (database_run(place->db, stmt, &err) != STATUS_OK)
        fail(err.text);
    (void)sqlite3_finalize(stmt);
}

static void set_text(struct record *record, unsigned column, const char *text)
{
    if (record_set_text(record, column, text, strlen(text)) != strlen(text))
        fail("a text does not fit its record");
}

static void put_load(struct place *place, int64_t at_ns, enum name model, enum name device,
                     const int64_t *stage_ns, int64_t other_ns)
{
    int64_t total = other_ns;
    for (int i = 0; i < 5; i++)
        total += stage_ns[i];
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, at_ns);
    record_set_name(&record, LOAD_MODEL, model);
    record_set_name(&record, LOAD_DEVICE, device);
    record_set_int(&record, LOAD_DURATION_NS, total);
    record_set_int(&record, LOAD_STATUS, RECORD_STATUS_OK);
    record_set_int(&record, LOAD_MODEL_BYTES, 58 * MB);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 12 * MB);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 71 * MB);
    record_set_real(&record, LOAD_PAGE_CACHE_RATIO, 0.25);
    put(place, &record);

    int64_t load = place->number;
    for (int i = 0; i < 5; i++) {
        record_init(&record, RECORD_KIND_LOAD_STAGE, at_ns);
        record_set_int(&record, LOAD_STAGE_PARENT, load);
        record_set_int(&record, LOAD_STAGE_ORDINAL, i);
        record_set_name(&record, LOAD_STAGE_STAGE, (uint32_t)(STAGE_DEVICE + i));
        record_set_int(&record, LOAD_STAGE_DURATION_NS, stage_ns[i]);
        put(place, &record);
        at_ns += stage_ns[i];
    }
}

static void put_failed_load(struct place *place, int64_t at_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, at_ns);
    record_set_name(&record, LOAD_MODEL, ODD);
    record_set_name(&record, LOAD_DEVICE, CPU);
    record_set_int(&record, LOAD_DURATION_NS, 3 * MS);
    record_set_int(&record, LOAD_STATUS, RECORD_STATUS_ERROR);
    set_text(&record, LOAD_ERROR, "not GGUF: magic is \"\x1b[31mELF\x01\"\n");
    record_set_int(&record, LOAD_MODEL_BYTES, 0);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 12 * MB);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 11 * MB); // less than before
    put(place, &record);
}

static void put_inference(struct place *place, int64_t at_ns, enum name model, enum name device,
                          int64_t request, int64_t generated)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, at_ns);
    record_set_name(&record, INFERENCE_MODEL, model);
    record_set_name(&record, INFERENCE_DEVICE, device);
    record_set_int(&record, INFERENCE_REQUEST, request);
    record_set_int(&record, INFERENCE_FINISH,
                   generated ? (int64_t)RECORD_FINISH_LENGTH : (int64_t)RECORD_FINISH_ERROR);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, 8 + request);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, generated);
    record_set_int(&record, INFERENCE_QUEUE_NS, request * MS);
    record_set_int(&record, INFERENCE_PREFILL_NS, 20 * MS);
    int64_t decode = generated > 1 ? (generated - 1) * (20 * MS + request * 100000) : 0;
    if (generated > 0)
        record_set_int(&record, INFERENCE_TTFT_NS, (20 + request) * MS);
    if (generated > 1) {
        record_set_int(&record, INFERENCE_DECODE_NS, decode);
        record_set_int(&record, INFERENCE_ITL_MAX_NS, 31 * MS);
        record_set_int(&record, INFERENCE_ITL_P99_NS, 30 * MS);
    }
    record_set_int(&record, INFERENCE_E2E_NS, (20 + request) * MS + decode);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 80 * MB);
    if (device == GPU)
        record_set_int(&record, INFERENCE_DEVICE_MEMORY, 900 * MB);
    put(place, &record);
}

static void put_operation(struct place *place, int64_t at_ns, int64_t items, const char *extra)
{
    struct record record;
    record_init(&record, RECORD_KIND_OPERATION, at_ns);
    record_set_name(&record, OPERATION_OPERATION, OP_TOKENIZE);
    record_set_int(&record, OPERATION_DURATION_NS, 250000);
    if (items > 0)
        record_set_int(&record, OPERATION_ITEMS, items);
    if (extra)
        set_text(&record, OPERATION_EXTRA, extra);
    put(place, &record);
}

// With what instruments say, or, where they were off, without.
static void put_pipeline(struct place *place, int64_t at_ns, bool measured)
{
    static const int64_t ints[PIPELINE_COLUMNS] = {
        [PIPELINE_ITEMS] = 12800,
        [PIPELINE_DURATION_NS] = 2000 * MS,
        [PIPELINE_CHUNK_BYTES] = 8 * MB,
        [PIPELINE_POOL_SIZE] = 4,
        [PIPELINE_PREFETCH] = 8,
        [PIPELINE_SYNC] = RECORD_SYNC_EVENTS,
        [PIPELINE_BYTES_H2D] = 800 * MB,
        [PIPELINE_COPY_BUSY_NS] = 1500 * MS,
        [PIPELINE_COMPUTE_BUSY_NS] = 1200 * MS,
        [PIPELINE_BOTH_BUSY_NS] = 1080 * MS,
        [PIPELINE_EXPOSED_COPY_NS] = 420 * MS,
        [PIPELINE_COPY_STARVED_NS] = 10 * MS,
        [PIPELINE_POOL_ACQUIRES] = 200,
        [PIPELINE_POOL_WAITS] = 3,
        [PIPELINE_POOL_WAIT_NS] = 6 * MS,
        [PIPELINE_WAITS_4096US] = 2,
        [PIPELINE_IDLE_NS] = 30 * MS,
        [PIPELINE_POOL_AVAILABLE_MAX] = 4,
        [PIPELINE_ITEM_P50_NS] = 9 * MS,
        [PIPELINE_ITEM_P95_NS] = 11 * MS,
        [PIPELINE_ITEM_P99_NS] = 14 * MS,
        [PIPELINE_BATCH_ITEMS] = 64,
    };
    struct record record;
    record_init(&record, RECORD_KIND_PIPELINE, at_ns);
    for (unsigned i = PIPELINE_STATUS; i < PIPELINE_COLUMNS; i++) {
        if (measured || !record_kind_info(RECORD_KIND_PIPELINE)->columns[i].maybe)
            record_set_int(&record, i, ints[i]);
    }
    record_set_name(&record, PIPELINE_WORKLOAD, ENCODE);
    record_set_name(&record, PIPELINE_DEVICE, GPU);
    record_set_name(&record, PIPELINE_MODEL, ENCODER);
    put(place, &record);
}

static void put_about_run(struct place *place, int64_t at_ns, enum name model, enum name device)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, at_ns);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, device);
    record_set_int(&record, DEVICE_MEMORY_BYTES, device == GPU ? 144384 * MB : 16384 * MB);
    if (device == GPU) {
        set_text(&record, DEVICE_COMPUTE_CAPABILITY, "9.0");
        record_set_int(&record, DEVICE_PCIE_GENERATION, 5);
        record_set_int(&record, DEVICE_PCIE_WIDTH, 16);
        record_set_real(&record, DEVICE_MEMORY_BANDWIDTH, 4.8e12);
        record_set_real(&record, DEVICE_POWER_CAP, 700);
        record_set_int(&record, DEVICE_SM_CLOCK_MAX, 1980000000);
        record_set_int(&record, DEVICE_MEMORY_CLOCK_MAX, 3201000000);
    }
    put(place, &record);

    record_init(&record, RECORD_KIND_MODEL, at_ns);
    record_set_name(&record, MODEL_NAME, model);
    set_text(&record, MODEL_FORMAT, "gguf");
    set_text(&record, MODEL_ARCHITECTURE, "llama");
    record_set_int(&record, MODEL_PARAMETERS, 15191712);
    put(place, &record);

    record_init(&record, RECORD_KIND_STARTUP, at_ns);
    record_set_int(&record, STARTUP_DURATION_NS, 45 * MS);
    record_set_int(&record, STARTUP_MEMORY_START_BYTES, 4 * MB);
    record_set_int(&record, STARTUP_MEMORY_READY_BYTES, 12 * MB);
    put(place, &record);
}

static void put_samples(struct place *place, int64_t at_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, at_ns);
    record_set_real(&record, PROCESS_SAMPLE_CPU, 1.0 / 3.0);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, 85 * MB);
    put(place, &record);

    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, at_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, GPU);
    record_set_real(&record, DEVICE_SAMPLE_GPU_UTIL, 0.87);
    record_set_real(&record, DEVICE_SAMPLE_TEMPERATURE, 61);
    put(place, &record);

    record_init(&record, RECORD_KIND_ITL, at_ns);
    record_set_name(&record, ITL_MODEL, SMALL);
    record_set_name(&record, ITL_DEVICE, GPU);
    record_set_int(&record, ITL_DURATION_NS, 1000 * MS);
    if (record_set_blob(&record, ITL_SKETCH, "\x00\x01\xfe\xff", 4) != 4)
        fail("the sketch does not fit");
    put(place, &record);
}

static void put_run(struct sqlite3 *db, int run, const char *uuid, enum name host,
                    enum record_run_end end, const char *activity)
{
    int64_t started = base_ns + run * 60000 * MS;
    char *sql = sqlite3_mprintf(
        "INSERT INTO run(run, started_ns, received_ns, heard_ns, uuid, host, pid, \"end\","
        " ended_ns, last_activity, worker_version, protocol, os, kernel, cpu, cpu_count,"
        " host_memory_bytes, device_count, produced, stored, duplicates)"
        " VALUES(%d, %lld, %lld, %lld, %Q, %d, %d, %d, CASE WHEN %d THEN %lld END, %Q, '0.1.0', 1,"
        " 'Debian GNU/Linux 12', '6.1.0', 'EPYC', 16, %lld, 1, 0, 0, %d)",
        run, started, started + MS, started + 30000 * MS, uuid, (int)host, 4000 + run, (int)end,
        end != RECORD_RUN_END_OPEN, started + 30000 * MS, activity, 65536 * MB, run - 1);
    execute(db, sql);
    sqlite3_free(sql);
}

// Closes a run's books: `lost` numbers dropped behind what was stored, then
// `waiting` produced but not arrived.
static void put_ledger(const struct place *place, int64_t lost, int64_t waiting, int64_t unnumbered)
{
    int64_t stored = place->number;
    char *sql = sqlite3_mprintf(
        "INSERT INTO stream(run, stream, next, produced, unnumbered)"
        " VALUES(%lld, 0, %lld, %lld, %lld);"
        "INSERT INTO range VALUES(%lld, 0, 1, %lld, 0, NULL, NULL, NULL, NULL);",
        place->run, stored + lost + 1, stored + lost + waiting, unnumbered, place->run, stored);
    execute(place->db, sql);
    sqlite3_free(sql);
    if (lost > 0) {
        sql = sqlite3_mprintf("INSERT INTO range VALUES(%lld, 0, %lld, %lld, 1, 1, 'spool full',"
                              " %lld, %lld)",
                              place->run, stored + 1, stored + lost, base_ns, base_ns + MS);
        execute(place->db, sql);
        sqlite3_free(sql);
    }
    for (int kind = RECORD_KIND_RUN + 1; kind < (int)RECORD_KIND_COUNT; kind++) {
        sql = sqlite3_mprintf("INSERT INTO ledger(run, kind, stored) SELECT %lld, %d, count(*)"
                              " FROM \"%w\" WHERE run = %lld HAVING count(*) > 0",
                              place->run, kind, record_kind_info((enum record_kind)kind)->name,
                              place->run);
        execute(place->db, sql);
        sqlite3_free(sql);
    }
    sql = sqlite3_mprintf("UPDATE run SET stored = %lld, produced = %lld WHERE run = %lld", stored,
                          stored + lost + waiting, place->run);
    execute(place->db, sql);
    sqlite3_free(sql);
}

static void put_all(struct sqlite3 *db)
{
    static const int64_t quick[5] = {1200000, 300000, 20 * MS, 100 * MS, 1370 * MS};
    static const int64_t slow[5] = {2 * MS, 1 * MS, 40 * MS, 200 * MS, 61000 * MS};

    for (int i = 1; i < (int)NAME_COUNT; i++) {
        char *sql = sqlite3_mprintf("INSERT INTO name(id, text) VALUES(%d, %Q)", i, names[i]);
        execute(db, sql);
        sqlite3_free(sql);
    }

    put_run(db, 1, "11111111-2222-4333-8444-555555555555", HOST_A, RECORD_RUN_END_CLOSED, NULL);
    struct place one = {.db = db, .run = 1};
    put_about_run(&one, base_ns + 60000 * MS, SMALL, GPU);
    put_load(&one, base_ns + 60100 * MS, SMALL, GPU, quick, 8500000);
    for (int i = 0; i < 4; i++)
        put_inference(&one, base_ns + (62000 + i * 1000) * MS, SMALL, GPU, i + 1, 64);
    put_operation(&one, base_ns + 70000 * MS, 500, NULL);
    put_pipeline(&one, base_ns + 71000 * MS, true);
    put_pipeline(&one, base_ns + 75000 * MS, false);
    put_ledger(&one, 0, 0, 0);

    put_run(db, 2, "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", HOST_B, RECORD_RUN_END_KILLED,
            "decoding request 2");
    struct place two = {.db = db, .run = 2};
    put_about_run(&two, base_ns + 120000 * MS, ODD, CPU);
    put_failed_load(&two, base_ns + 120100 * MS);
    put_load(&two, base_ns + 120200 * MS, ODD, CPU, slow, 0);
    put_inference(&two, base_ns + 185000 * MS, ODD, CPU, 1, 1);
    put_inference(&two, base_ns + 186000 * MS, ODD, CPU, 2, 0);
    put_operation(&two, base_ns + 187000 * MS, 0, "{\"why\": \"warm-up\"}");
    put_ledger(&two, 5, 0, 2);

    // Two hours later, in the new summer time.
    put_run(db, 3, "33333333-0000-4000-8000-000000000003", HOST_A, RECORD_RUN_END_OPEN, "idle");
    struct place three = {.db = db, .run = 3};
    put_inference(&three, base_ns + 7200000 * MS, SMALL, GPU, 7, 32);
    put_samples(&three, base_ns + 7201000 * MS);
    put_ledger(&three, 0, 4, 0);

    execute(db, "UPDATE run SET clock_offset_ns = 1200000, clock_error_ns = 300000 WHERE run = 2;"
                "UPDATE run SET clock_offset_ns = -52000, clock_error_ns = 90000 WHERE run = 3;"
                "INSERT INTO refusal VALUES('names', 3, 1), ('message_size', 12, 1)");
    execute(db, "UPDATE meta SET value = '01234567-89ab-4cde-8f01-23456789abcd'"
                " WHERE key = 'store'");
}

// What each run has named: all that its records have.
static void name_all(struct sqlite3 *db)
{
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        for (unsigned i = 0; i < info->column_count; i++) {
            char sql[256];
            const char *column = info->columns[i].name;
            if (info->columns[i].type != COLUMN_NAME)
                continue;
            (void)snprintf(sql, sizeof sql,
                           "INSERT OR IGNORE INTO run_name SELECT DISTINCT run, \"%s\", \"%s\""
                           " FROM \"%s\" WHERE \"%s\" IS NOT NULL",
                           column, column, info->name, column);
            execute(db, sql);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 || access(argv[1], F_OK) == 0)
        fail("give the path of a file that is not there yet");
    struct sqlite3 *db;
    struct error err;
    if (database_open_writer(&db, argv[1], &err) != STATUS_OK)
        fail(err.text);
    execute(db, "BEGIN");
    put_all(db);
    name_all(db);
    execute(db, "COMMIT");
    database_close(db);
    return 0;
}
