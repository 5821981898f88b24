#include "tests/unit/transfer/copy_fixture.h"

#include <sqlite3.h>

#include "common/core/stats/sketch.h"
#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import.h"
#include "common/store/transfer/store_builder.h"
#include "common/store/store.h"
#include "tests/support/test.h"

char copy_folder[FOLDER_PATH_SIZE];

int copy_set_up(__attribute__((unused)) void **state)
{
    folder_make(copy_folder);
    return 0;
}

int copy_tear_down(__attribute__((unused)) void **state)
{
    folder_remove(copy_folder);
    return 0;
}

const char *copy_path(const char *name)
{
    static char paths[16][FOLDER_PATH_SIZE];
    static unsigned at;
    return folder_path(paths[at++ % COUNT_OF(paths)], copy_folder, name);
}

static struct store_builder *builder;

static uint32_t name_of(const char *format, unsigned number)
{
    uint32_t id = 0;
    struct error err;
    expect_ok(store_builder_name(builder, format_text("%s%u", format, number), &id, &err), &err);
    return id;
}

static void put(const struct record *record)
{
    struct error err;
    expect_ok(store_builder_put(builder, record, &err), &err);
}

static void put_device(int64_t at_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE, at_ns);
    record_set_int(&record, DEVICE_ORDINAL, 0);
    record_set_name(&record, DEVICE_NAME, name_of("device-", 0));
    record_set_int(&record, DEVICE_MEMORY_BYTES, 1 << 30);
    record_set_real(&record, DEVICE_H2D, 1.5e10);
    put(&record);
}

static void put_load(int64_t at_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, at_ns);
    record_set_name(&record, LOAD_MODEL, name_of("m-", 0));
    record_set_name(&record, LOAD_DEVICE, name_of("device-", 0));
    record_set_int(&record, LOAD_DURATION_NS, 5000);
    record_set_int(&record, LOAD_STATUS, RECORD_STATUS_ERROR);
    (void)record_set_text(&record, LOAD_ERROR, "no \xe2\x82\xac", 6);
    record_set_int(&record, LOAD_MODEL_BYTES, 77);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 1);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 2);
    put(&record);
    for (unsigned i = 0; i < 2; i++) {
        record_init(&record, RECORD_KIND_LOAD_STAGE, at_ns + i);
        record_set_int(&record, LOAD_STAGE_PARENT, 2);
        record_set_int(&record, LOAD_STAGE_ORDINAL, i);
        record_set_name(&record, LOAD_STAGE_STAGE, name_of("stage-", i));
        record_set_int(&record, LOAD_STAGE_DURATION_NS, 2000);
        put(&record);
    }
}

static void put_inference(int64_t at_ns, unsigned i)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, at_ns);
    record_set_name(&record, INFERENCE_MODEL, name_of("m-", i % 3));
    record_set_name(&record, INFERENCE_DEVICE, name_of("device-", 0));
    record_set_int(&record, INFERENCE_REQUEST, i);
    record_set_int(&record, INFERENCE_FINISH, i % 4);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, 10 + i);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, 20);
    record_set_int(&record, INFERENCE_QUEUE_NS, i);
    record_set_int(&record, INFERENCE_PREFILL_NS, 1000 + i);
    if (i % 5 != 0)
        record_set_int(&record, INFERENCE_TTFT_NS, 1000 + 2 * i);
    record_set_int(&record, INFERENCE_DECODE_NS, 40000);
    record_set_int(&record, INFERENCE_E2E_NS, 41000 + 2 * i);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 4096);
    put(&record);
}

static void put_samples(int64_t at_ns)
{
    unsigned char bytes[128];
    struct sketch *sketch = NULL;
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    sketch_add(sketch, 12345, 7);
    const size_t size = sketch_encode_whole(sketch, bytes, sizeof bytes);
    sketch_free(sketch);
    struct record record;
    record_init(&record, RECORD_KIND_ITL, at_ns);
    record_set_name(&record, ITL_MODEL, name_of("m-", 1));
    record_set_name(&record, ITL_DEVICE, name_of("device-", 0));
    record_set_int(&record, ITL_DURATION_NS, COPY_SECOND);
    assert_int_equal(record_set_blob(&record, ITL_SKETCH, bytes, size), size);
    put(&record);
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, at_ns);
    record_set_real(&record, PROCESS_SAMPLE_CPU, 0.25);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, 5000);
    put(&record);
}

void copy_make_store(const char *path, unsigned runs, unsigned inferences)
{
    struct error err;
    expect_ok(store_builder_new(&builder, path, &err), &err);
    for (unsigned r = 0; r < runs; r++) {
        const int64_t at_ns = COPY_BASE_NS + INT64_C(1000) * r * COPY_SECOND;
        char host[32];
        (void)snprintf(host, sizeof host, "host-%u", r % 2);
        const struct store_builder_run run = {.uuid = {1, 2, 3, (unsigned char)r, 5},
                                              .host = host,
                                              .worker_version = "9",
                                              .os = "os",
                                              .kernel = "k",
                                              .cpu = "cpu",
                                              .cpu_count = 2,
                                              .device_count = 1,
                                              .started_ns = at_ns,
                                              .ended_ns = at_ns + inferences * COPY_SECOND};
        expect_ok(store_builder_run(builder, &run, &err), &err);
        put_device(at_ns);
        put_load(at_ns);
        for (unsigned i = 0; i < inferences; i++)
            put_inference(at_ns + i * COPY_SECOND, i);
        put_samples(at_ns);
    }
    expect_ok(store_builder_end(builder, STATUS_OK, &err), &err);
    copy_exec(path, "INSERT INTO unnumbered(run, told_ns, lost, since_ns, until_ns)"
                    " SELECT run, 600000000000, 3 * run, started_ns, started_ns + run FROM run");
}

static sqlite3 *open_file(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        fail_msg("%s: %s", path, sqlite3_errmsg(db));
    return db;
}

void copy_exec(const char *path, const char *sql)
{
    sqlite3 *db = open_file(path);
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    (void)sqlite3_close(db);
}

int64_t copy_integer(const char *path, const char *sql)
{
    sqlite3 *db = open_file(path);
    struct error err;
    int64_t out = 0;
    expect_ok(database_integer(db, sql, &out, &err), &err);
    (void)sqlite3_close(db);
    return out;
}

static uint64_t mix(uint64_t digest, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return digest;
}

// Of all rows that a statement gives, and their order.
static uint64_t digest_rows(sqlite3 *db, uint64_t digest, const char *sql)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(row) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const int type = sqlite3_column_type(row, i);
            digest = mix(digest, &type, sizeof type);
            const void *bytes = sqlite3_column_blob(row, i); // numbers as text
            digest = mix(digest, bytes, (size_t)sqlite3_column_bytes(row, i));
        }
    }
    (void)sqlite3_finalize(row);
    return digest;
}

uint64_t copy_digest(const char *path)
{
    sqlite3 *db = open_file(path);
    uint64_t digest = 1;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        digest = digest_rows(db, digest,
                             format_text("SELECT * FROM \"v_%s\" ORDER BY run, stream, number",
                                         record_kind_info((enum record_kind)kind)->name));
    }
    digest = digest_rows(db, digest, "SELECT * FROM v_run ORDER BY uuid");
    digest = digest_rows(db, digest, "SELECT * FROM v_stream ORDER BY run, stream");
    digest = digest_rows(db, digest, "SELECT * FROM v_range ORDER BY run, stream, first");
    digest = digest_rows(db, digest,
                         "SELECT r.uuid, u.told_ns, u.lost, u.since_ns, u.until_ns"
                         " FROM unnumbered u JOIN run r USING (run) ORDER BY 1, 2");
    digest = digest_rows(db, digest,
                         "SELECT r.uuid, l.kind, l.stored, l.expired, l.cleared, l.gone_sum"
                         " FROM ledger l JOIN run r USING (run) ORDER BY 1, 2");
    (void)sqlite3_close(db);
    return digest;
}

uint64_t copy_table_digest(const char *path)
{
    sqlite3 *db = open_file(path);
    uint64_t digest = 1;
    sqlite3_stmt *table = NULL;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT name FROM sqlite_schema WHERE type = 'table'"
                                        " AND name NOT LIKE 'sqlite%' AND name <> 'meta'"
                                        " ORDER BY name",
                                        -1, &table, NULL),
                     SQLITE_OK);
    while (sqlite3_step(table) == SQLITE_ROW) {
        char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", sqlite3_column_text(table, 0));
        digest = digest_rows(db, digest, sql);
        sqlite3_free(sql);
    }
    (void)sqlite3_finalize(table);
    (void)sqlite3_close(db);
    return digest;
}

enum status copy_ask(const char *path, const struct query *query, struct result **out,
                     struct error *err)
{
    struct store *store = NULL;
    enum status status = store_open(&store, path, err);
    if (status == STATUS_OK)
        status = store_query(store, query, out, err);
    store_close(store);
    return status;
}

enum status copy_to(const char *path, const char *to, const struct query_filter *filter,
                    struct result **out, struct error *err)
{
    struct query query = {.kind = QUERY_COPY, .file.bundle = filter != NULL};
    if (filter)
        query.filter = *filter;
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", to);
    return copy_ask(path, &query, out, err);
}

static void copy_note(char note[512], const struct result *answer, const char *column)
{
    const struct value said = result_cell(answer, 0, (unsigned)result_find(answer, column));
    if (said.type == VALUE_TEXT)
        (void)snprintf(note, 512, "%.*s", (int)said.text.size, said.text.bytes);
}

enum status copy_import(const char *into, const char *path, struct copy_import *counts,
                        struct error *err)
{
    struct result *answer = NULL;
    struct query query = {.kind = QUERY_IMPORT};
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", path);
    *counts = (struct copy_import){0};
    const enum status status = store_import(into, &query, &answer, err);
    if (status != STATUS_OK)
        return status;
    *counts = (struct copy_import){
        .runs = result_integer(answer, 0, "runs", -1),
        .completed = result_integer(answer, 0, "runs_completed", -1),
        .there = result_integer(answer, 0, "runs_there", -1),
        .refused = result_integer(answer, 0, "refused", -1),
        .records = result_integer(answer, 0, "records", -1),
        .baselines = result_integer(answer, 0, "baselines", -1),
        .baselines_there = result_integer(answer, 0, "baselines_there", -1),
        .baselines_refused = result_integer(answer, 0, "baselines_refused", -1),
    };
    copy_note(counts->note, answer, "note");
    copy_note(counts->baseline_note, answer, "baseline_note");
    result_free(answer);
    return STATUS_OK;
}

void copy_save_baseline(const char *path, const char *name, const struct query_filter *filter)
{
    struct query query = {.kind = QUERY_BASELINE_SAVE, .filter = *filter};
    struct result *answer = NULL;
    struct error err;
    (void)snprintf(query.baseline.name, sizeof query.baseline.name, "%s", name);
    expect_ok(baseline_write_file(path, &query, &answer, &err), &err);
    result_free(answer);
}

bool copy_balances(const char *path)
{
    const struct query query = {.kind = QUERY_AUDIT};
    struct result *audit = NULL;
    struct error err;
    expect_ok(copy_ask(path, &query, &audit, &err), &err);
    bool balances = true;
    const unsigned finding = (unsigned)result_find(audit, "finding");
    for (size_t i = 0; i < result_row_count(audit); i++) {
        const struct value found = result_cell(audit, i, finding);
        if (found.type == VALUE_TEXT)
            print_message("%s: %.*s\n", path, (int)found.text.size, found.text.bytes);
        balances = balances && found.type == VALUE_NULL;
    }
    result_free(audit);
    return balances;
}
