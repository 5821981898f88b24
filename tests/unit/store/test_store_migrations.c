// How files of older versions become files of this one, or stay as they are.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/base/unit.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import.h"
#include "common/store/schema/schema.h"
#include "common/store/store.h"
#include "common/store/schema/schema_rebuild.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_migrate.h"
#include "common/sys/log.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/store/schema_fixture.h"

// Makes the store from a dump of one.
static void make_store(const char *dump)
{
    char *sql = read_file(dump, NULL);
    change_store(sql);
    free(sql);
}

struct expectation {
    const char *sql;
    int64_t expected;
};

static void expect_all(sqlite3 *db, const struct expectation *list, size_t count)
{
    for (size_t i = 0; i < count && list[i].sql; i++)
        if (integer(db, list[i].sql) != list[i].expected)
            fail_msg("%s: not %lld", list[i].sql, (long long)list[i].expected);
}

// What every older file had, and has still.
static const struct expectation kept[] = {
    {"PRAGMA user_version", SCHEMA_VERSION},
    {"PRAGMA auto_vacuum", 2},
    {"SELECT value = '00000000-1111-4222-8333-444444444444' FROM meta WHERE key = 'store'", 1},
    {"SELECT count(*) FROM meta WHERE key = 'undecodable'", 0},
    {"SELECT count FROM refusal WHERE reason = 'undecodable'", 4},
    {"SELECT count(*) FROM run", 2},
    {"SELECT count(*) FROM v_operation WHERE host = 'host-a' AND operation = 'tokenise'", 3},
    {"SELECT last FROM v_range WHERE state = 'dropped' AND reason = 'refused'", 5},
    {"SELECT unnumbered FROM v_stream WHERE host = 'host-a' AND produced = 5", 7},
    {"SELECT count(*) FROM v_ledger WHERE balanced", 1},
    {"SELECT count(*) FROM run INDEXED BY run_owner WHERE \"end\" IN (0, 3)", 1},
    {"SELECT count(*) FROM run INDEXED BY run_open WHERE \"end\" = 0", 0},
    {"SELECT sum(cleared) FROM ledger WHERE run = 1", 1},
    {"SELECT count(*) FROM series", 0},
    {"SELECT count(*) FROM rollup", 0},
    {"SELECT coalesce(max(watermark), 0) FROM rollup_state", 0}, // all are still to be counted
    {"SELECT count(*) FROM rollup_gap", 0},
    {"SELECT count(*) FROM expiry", 0},
    {"SELECT count(*) FROM baseline", 0},
    {"SELECT count(*) FROM baseline_sample", 0},
};

// What came with version 3, where the file is older.
#define BEFORE_OWNERS                                                                              \
    {"SELECT count(*) FROM refusal WHERE last_ns = 0", 1}, {"SELECT count(*) FROM refusal", 1},    \
        {"SELECT count(key) FROM run", 0},                                                         \
        {"SELECT count(activity) + count(activity_since_ns) FROM stream", 0},                      \
        {"SELECT count(*) FROM ledger WHERE gone_sum IS NULL AND run = 1", 1},                     \
        {"SELECT count(*) FROM ledger WHERE gone_sum IS NULL", 1},                                 \
    {                                                                                              \
        "SELECT value FROM meta WHERE key = '" SCHEMA_NO_SET_HASHES "'", 2                         \
    }

// Of inferences, as the program that wrote the dump read them.
#define ALL_VALUES                                                                                 \
    "SELECT sum((id % 1009 + 1) * (run + 2 * stream + 3 * number + started_ns % 1000000007"        \
    " + received_ns % 1000000009 + 5 * model + 7 * device + 11 * request + 13 * finish"            \
    " + 17 * prompt_tokens + 19 * cached_prompt_tokens + 23 * generated_tokens + queue_ns"         \
    " + 29 * prefill_ns + 31 * coalesce(ttft_ns, -1) + 37 * coalesce(decode_ns, -1)"               \
    " + 41 * e2e_ns + 43 * coalesce(itl_max_ns, -1) + 47 * coalesce(itl_p99_ns, -1)"               \
    " + host_memory_bytes % 1000003 + 53 * coalesce(device_memory_bytes % 1000003, -1)"            \
    " + 59 * coalesce(concurrent_requests, -1))) FROM inference WHERE "

enum { EXPECTATIONS_MAX = 12 };
static const struct {
    const char *dump, *version;
    struct expectation own[EXPECTATIONS_MAX];
} older[] = {
    {STORE_VERSION "1.sql", "version 1,", {BEFORE_OWNERS}},
    {STORE_VERSION "2.sql", "version 2,", {BEFORE_OWNERS}},
    {STORE_VERSION "3.sql",
     "version 3,",
     {{"SELECT count FROM refusal WHERE reason = 'names'", 2},
      {"SELECT pid FROM v_run WHERE key = 'K'", 42},
      {"SELECT activity = 'decode' FROM v_stream WHERE activity_since_ns > 0", 1},
      {"SELECT gone_sum = set_hash(0, 3) FROM ledger WHERE run = 1", 1},
      {"SELECT count(*) FROM ledger WHERE gone_sum IS NULL", 0},
      {"SELECT count(*) FROM meta WHERE key = '" SCHEMA_NO_SET_HASHES "'", 0}}},
    {STORE_VERSION "4.sql",
     "version 4,",
     {{"SELECT count(*) FROM inference WHERE typeof(prefill_ns) = 'integer' AND"
       " typeof(received_ns) = 'integer'",
       11},
      {"SELECT sum(decode_ns) FROM inference WHERE id < 6", 1200000000},
      {"SELECT prefill_ns FROM inference WHERE id = 3 AND ttft_ns IS NULL AND decode_ns IS NULL",
       29000000},
      {"SELECT decode_ns FROM inference WHERE id = 11 AND ttft_ns IS NULL", 7},
      {"SELECT prefill_ns FROM inference WHERE id = 6 AND decode_ns = prefill_ns", INT64_MAX},
      {"SELECT prefill_ns FROM inference WHERE id = 7 AND decode_ns = prefill_ns", INT64_MIN},
      {"SELECT received_ns FROM inference WHERE id = 8", INT64_MAX},
      {"SELECT received_ns FROM inference WHERE id = 9 AND decode_ns = -1", INT64_MIN},
      {"SELECT prefill_ns FROM inference WHERE id = 10", INT64_C(9007199254740993)},
      {"SELECT received_ns - started_ns FROM inference WHERE id = 5", -1},
      {"SELECT received_ns = 1790000000900000000 FROM load", 1}}},
    {STORE_VERSION "5.sql",
     "version 5,",
     {{"SELECT sum(decode_ns) FROM inference WHERE id < 6", 1200000000},
      {"SELECT received_ns FROM inference WHERE id = 8", INT64_MAX},
      {"SELECT received_ns - started_ns FROM inference WHERE id = 5", -1},
      {"SELECT count(*) FROM v_pipeline WHERE workload = 'encode' AND device = 'cpu'", 2},
      {"SELECT copy_busy_ns + both_busy_ns + unmeasured_chunks FROM pipeline WHERE id = 3", 1601},
      {"SELECT received_ns - started_ns FROM pipeline WHERE id = 3", 1000},
      {"SELECT duration_ns FROM pipeline WHERE copy_busy_ns = 0", INT64_C(9007199254740993)},
      {"SELECT overlap_ratio * 1000 FROM v_pipeline WHERE overlap_ratio IS NOT NULL", 875},
      {"SELECT count(model) + count(batch_items) FROM v_pipeline", 0},
      {"SELECT pcie_generation FROM v_device WHERE uuid = 'GPU-1'", 5},
      {"SELECT count(power_cap_watts) + count(sm_clock_max_hz) + count(memory_clock_max_hz)"
       " FROM v_device",
       0}}},
    {STORE_VERSION "6.sql",
     "version 6,",
     {{"SELECT sum(decode_ns) FROM inference WHERE id < 6", 1200000000},
      {"SELECT count(*) FROM v_pipeline WHERE workload = 'encode' AND device = 'cpu'", 2},
      {"SELECT copy_busy_ns + both_busy_ns + unmeasured_chunks FROM pipeline WHERE id = 3", 1601}}},
    {STORE_VERSION "7.sql",
     "version 7,",
     {{"SELECT count(*) FROM inference", 11},
      {ALL_VALUES "id IN (1, 2, 5, 10)", INT64_C(6539227114424413977)},
      {"SELECT context FROM v_model WHERE name = 'tiny'", 256},
      {"SELECT count(kv_bytes_per_token) FROM v_model", 0},
      {"SELECT count(*) FROM model INDEXED BY model_run WHERE run = 2", 1}}},
    {STORE_VERSION "8.sql",
     "version 8,",
     {{"SELECT count(*) FROM inference", 251},
      {ALL_VALUES "id IN (1, 2, 5, 10)", INT64_C(6539227114424413977)},
      {ALL_VALUES "id > 99", INT64_C(2713031107872986)},
      {"SELECT count(*) FROM inference WHERE finish = 3", 6},
      {"SELECT count(*) FROM v_inference WHERE model = 'large'", 120},
      {"SELECT stored FROM ledger WHERE run = 2 AND kind = 6", 131}}},
    {STORE_VERSION "9.sql",
     "version 9,",
     {{"SELECT count(*) FROM inference", 11},
      {"SELECT count(*) FROM owner WHERE who = 'key:K' AND horizon_ns = 0", 1},
      {"SELECT count(*) FROM run JOIN owner USING(owner) WHERE who = 'key:' || key", 1},
      {"SELECT count(*) FROM run WHERE owner = 0 AND key IS NULL", 1},
      {"SELECT count(*) FROM run INDEXED BY run_owner WHERE owner = 1 AND \"end\" IN (0, 3)", 1},
      {"SELECT total(owner) FROM name", 0},
      {"SELECT total(no_room) FROM stream", 0}}},
    {STORE_VERSION "10.sql",
     "version 10,",
     {{"SELECT count(*) FROM inference", 11},
      {"SELECT count(error) FROM v_inference", 0},
      {"SELECT count(error) FROM operation INDEXED BY operation_failed WHERE error IS NOT NULL", 0},
      {"SELECT count(*) FROM v_pipeline WHERE source IS NULL", 2},
      {"SELECT count(running_requests) + count(waiting_requests) FROM v_process_sample", 0}}},
    {STORE_VERSION "11.sql",
     "version 11,",
     {{"SELECT count(*) FROM inference", 11}, {"SELECT count(model) FROM v_process_sample", 0}}},
    {STORE_VERSION "12.sql",
     "version 12,",
     {{ALL_VALUES "id IN (1, 2, 5, 10)", INT64_C(6539227114424413977)},
      {"SELECT count(items) + count(items_per_second) FROM v_inference", 0},
      {"SELECT count(huge_pages) + count(allocator) + count(build_flags) FROM v_run", 0}}},
    {STORE_VERSION "13.sql",
     "version 13,",
     {{ALL_VALUES "id IN (1, 2, 5, 10)", INT64_C(6539227114424413977)},
      {"SELECT count(slowdown_celsius) + count(parent_uuid) FROM v_device", 0},
      {"SELECT count(*) FROM v_host_sample", 0},
      {"SELECT count(*) FROM v_device_process", 0},
      {"SELECT count(*) FROM event INDEXED BY event_started WHERE started_ns > 0", 0}}},
    {STORE_VERSION "14.sql",
     "version 14,",
     {{ALL_VALUES "id IN (1, 2, 5, 10)", INT64_C(6539227114424413977)},
      {"SELECT count(*) FROM pragma_table_info('rollup_state') WHERE name LIKE 'ahead%'", 2}}},
    {STORE_VERSION "15.sql",
     "version 15,",
     {{ALL_VALUES "id IN (1, 2, 5, 10)", INT64_C(6539227114424413977)},
      {"SELECT is_told FROM alert", 1},
      {"SELECT sum(id) FROM alert_delivery WHERE queued_ns = 8", 5},
      {"SELECT count(*) FROM alert_delivery", 2}}},
    {STORE_VERSION "16.sql",
     "version 16,",
     {{"SELECT was_lost FROM alert", 1},
      {"SELECT queued_ns FROM alert_delivery", 5},
      {"SELECT count(*) FROM v_device WHERE memory_bytes IS NULL", 1}}},
};

// Every table, view and index with its columns, and which of them may be NULL.
static char *shape(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    static const char sql[] =
        "SELECT group_concat(line, char(10)) FROM (SELECT m.type || ' ' || m.name || ' ' ||"
        " coalesce((SELECT group_concat(c, ', ') FROM (SELECT p.name || ' ' || p.type ||"
        " iif(p.\"notnull\", ' NOT NULL', '') AS c FROM"
        " pragma_table_xinfo(m.name) p ORDER BY c)), '') AS line FROM sqlite_schema m"
        " ORDER BY m.type, m.name)";
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    char *text = strdup((const char *)sqlite3_column_text(stmt, 0));
    assert_non_null(text);
    (void)sqlite3_finalize(stmt);
    return text;
}

// The audit finds nothing wrong.
static void expect_sound(void)
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    const struct query query = {.kind = QUERY_AUDIT};
    if (store_open(&store, path, &err) != STATUS_OK ||
        store_query(store, &query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(result_row_count(result), 2);
    for (size_t row = 0; row < 2; row++)
        assert_int_equal(result_cell(result, row, (unsigned)result_find(result, "finding")).type,
                         VALUE_NULL);
    result_free(result);
    store_close(store);
}

static void migrate_older(const char *dump, const char *version, const struct expectation *own,
                          const char *expected_shape)
{
    make_store(dump);
    if (strcmp(dump, STORE_VERSION "8.sql") == 0) // of groupings that are no more
        change_store("INSERT INTO rollup_gap VALUES(6, 2, 3, 0, 2, 9), (6, 3, 3, 0, 2, 9)");
    expect_refused(STATUS_UNSUPPORTED, version);
    sqlite3 *db = new_store();
    expect_all(db, kept, COUNT_OF(kept));
    expect_all(db, own, EXPECTATIONS_MAX);
    char *text = shape(db);
    assert_string_equal(text, expected_shape);
    free(text);
    database_close(db);
    expect_sound();
    db = new_store(); // once: it is a store of today
    expect_all(db, own, EXPECTATIONS_MAX);
    assert_int_equal(database_exec(db,
                                   "UPDATE run SET key = 'L' WHERE run = 2;"
                                   "UPDATE stream SET activity = 'idle', activity_since_ns = 9",
                                   NULL),
                     STATUS_OK);
    assert_int_equal(integer(db, "SELECT pid FROM v_run WHERE key = 'L'"), 42);
    database_close(db);
    assert_int_equal(unlink(path), 0);
}

// Files that collectors of all older versions made keep all they had, and have what
// came since: they are like one made today.
TEST_CASE(test_stores_of_all_older_versions)
{
    assert_int_equal(COUNT_OF(older), SCHEMA_VERSION - 1);
    sqlite3 *db = new_store();
    char *today = shape(db);
    database_close(db);
    assert_int_equal(unlink(path), 0);
    for (size_t i = 0; i < COUNT_OF(older); i++)
        migrate_older(older[i].dump, older[i].version, older[i].own, today);
    free(today);
}

// The log says what is rewritten, how much of a large table, and when all is done.
TEST_CASE(test_a_migration_is_told)
{
    static char text[4096];
    make_store(STORE_VERSION "8.sql");
    change_store("WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more"
                 " WHERE n < 30000) INSERT INTO process_sample SELECT NULL, 1, 0,"
                 " 1000 + n, n, 0, 1, 1, NULL FROM more");
    FILE *log = tmpfile();
    const int saved = dup(STDERR_FILENO);
    assert_true(log && dup2(fileno(log), STDERR_FILENO) == STDERR_FILENO);
    log_open("test", LOG_LEVEL_INFO);
    database_close(new_store());
    log_open("test", LOG_LEVEL_WARNING);
    assert_true(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
    assert_int_equal(close(saved), 0);
    assert_true(pread(fileno(log), text, sizeof text - 1, 0) > 0);
    (void)fclose(log);
    assert_non_null(strstr(text, "the records of kind inference are rewritten\n"));
    assert_non_null(strstr(text, "store: 20,000 of 30,0"));
    assert_non_null(strstr(text, " left\n"));
    assert_non_null(strstr(text, ": is of version "));
}

// One that finds no room leaves the store as it was, and can be done again.
TEST_CASE(test_a_migration_without_room)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    make_store(STORE_VERSION "5.sql");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    const int64_t pages = integer(db, "PRAGMA page_count");
    for (int64_t more = 0; more < 4; more++) {
        assert_int_equal(
            integer(db, format_text("PRAGMA max_page_count = %lld", (long long)(pages + more))),
            pages + more);
        assert_int_equal(schema_migrate(db, path, &err), STATUS_FULL);
        assert_int_equal(integer(db, "PRAGMA user_version"), 5);
        assert_int_equal(integer(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE "
                                     "'%rebuilt%'"),
                         0);
        assert_int_equal(integer(db, "SELECT sum(decode_ns) FROM inference WHERE id < 6"),
                         1200000000);
    }
    database_close(db);
    db = new_store();
    assert_int_equal(integer(db, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(integer(db, "SELECT sum(decode_ns) FROM inference WHERE id < 6"), 1200000000);
    database_close(db);
}

// What somebody added to a table: any number of indexes goes with it; a column, which would
// be lost, is a reason to leave the store as it is, and is named.
TEST_CASE(test_a_migration_keeps_what_was_added)
{
    enum { INDEXES = 100 };
    struct error err = {0};
    sqlite3 *db = NULL;
    make_store(STORE_VERSION "5.sql");
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int i = 0; i < INDEXES; i++) {
        assert_int_equal(
            sqlite3_exec(db, format_text("CREATE INDEX mine_%d ON inference(e2e_ns, %d)", i, i),
                         NULL, NULL, NULL),
            SQLITE_OK);
    }
    assert_int_equal(sqlite3_exec(db,
                                  "ALTER TABLE inference ADD COLUMN \"my \"\"note\" TEXT;"
                                  "CREATE INDEX mine ON inference(\"my \"\"note\")",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(schema_migrate(db, path, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "my \"note"));
    assert_non_null(strstr(err.text, "inference"));
    assert_int_equal(integer(db, "PRAGMA user_version"), 5);
    assert_int_equal(integer(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'mine%'"),
                     INDEXES + 1);
    assert_int_equal(sqlite3_exec(db,
                                  "DROP INDEX mine;"
                                  "ALTER TABLE inference DROP COLUMN \"my \"\"note\"",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    expect_ok(schema_migrate(db, path, &err), &err);
    assert_int_equal(integer(db, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(integer(db, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'mine%'"),
                     INDEXES);
    database_close(db);
}

// ---- Sealed rows ----------------------------------------------------------------------

// A store of version 8 with three sealed segments: two of 2 rows, one of 120.
static void make_sealed_store(void)
{
    make_store(STORE_VERSION "8.sql");
}

static int64_t stored_of(sqlite3 *db)
{
    return integer(db, "SELECT (SELECT count(*) FROM inference) + coalesce(sum(rows), 0)"
                       " FROM sealed");
}

static void die(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)context;
    (void)count;
    (void)values;
    (void)raise(SIGKILL);
}

// A process that unseals is killed after so many rows; what it leaves is whole.
static void kill_after(int rows)
{
    const pid_t pid = fork();
    if (pid == 0) {
        sqlite3 *db = NULL;
        if (sqlite3_open(path, &db) == SQLITE_OK &&
            sqlite3_create_function_v2(db, "die", 0, SQLITE_UTF8, NULL, die, NULL, NULL, NULL) ==
                SQLITE_OK &&
            sqlite3_exec(
                db,
                format_text("CREATE TEMP TRIGGER stop AFTER INSERT ON main.inference WHEN"
                            " (SELECT count(*) FROM main.inference) = %d BEGIN SELECT die(); END",
                            127 + rows),
                NULL, NULL, NULL) == SQLITE_OK)
            _exit(unseal(db, NULL) == STATUS_OK ? 0 : 1);
        _exit(2);
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

TEST_CASE(test_unsealing_goes_on_where_it_was_killed)
{
    static const struct {
        int rows;
        int64_t segments;
    } kills[] = {{1, 3}, {2, 3}, {3, 2}, {5, 1}, {60, 1}, {124, 1}};
    make_sealed_store();
    for (size_t i = 0; i < COUNT_OF(kills); i++) {
        sqlite3 *db = NULL;
        kill_after(kills[i].rows);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(integer(db, "SELECT count(*) FROM sealed"), kills[i].segments);
        assert_int_equal(stored_of(db), 251);
        assert_int_equal(integer(db, "PRAGMA user_version"), 8);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
    sqlite3 *db = new_store();
    assert_int_equal(integer(db, "SELECT count(*) FROM inference"), 251);
    assert_int_equal(integer(db, ALL_VALUES "id > 99"), INT64_C(2713031107872986));
    database_close(db);
    expect_sound();
}

// 124 rows of sealed segments, in the file and in the log, beside all of the file in the log.
TEST_CASE(test_a_migration_without_disk_space)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    int64_t needed = 0, again = 0;
    char text[UNIT_TEXT_SIZE];
    make_sealed_store();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(schema_check_space(db, 10000, &needed, &err), STATUS_FULL);
    assert_int_equal(needed, integer(db, "PRAGMA page_count") * 4096 + 124 * 2 * 160);
    if (!strstr(err.text, format_text("needs %s of free disk space, there are 9.8 KB",
                                      unit_format_int(text, UNIT_BYTES, needed))))
        fail_msg("%s", err.text);
    assert_int_equal(schema_check_space(db, needed - 1, &again, &err), STATUS_FULL);
    assert_int_equal(schema_check_space(db, needed, &again, &err), STATUS_OK);
    assert_int_equal(schema_migrate(db, path, &err), STATUS_OK);
    assert_int_equal(schema_check_space(db, 0, &needed, &err), STATUS_OK);
    assert_int_equal(needed, 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

// Whether the audit finds that a run misses records.
static void expect_findings(void)
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    const struct query query = {.kind = QUERY_AUDIT};
    assert_int_equal(store_open(&store, path, &err), STATUS_OK);
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_OK);
    for (size_t row = 0; row < result_row_count(result); row++)
        assert_int_equal(result_get(result, row, "finding").type, VALUE_TEXT);
    result_free(result);
    store_close(store);
}

// Damaged segments are lost; the audit says that records are missing.
TEST_CASE(test_damaged_segments)
{
    static const char *const damages[] = {
        "UPDATE sealed SET data = zeroblob(length(data)) WHERE id = 3",
        "UPDATE sealed SET checksum = checksum + 1 WHERE id = 3",
        "UPDATE inference SET id = 150 WHERE id = 300", // one of the segment's
    };
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        make_sealed_store();
        change_store(damages[i]);
        sqlite3 *db = new_store();
        assert_int_equal(integer(db, "SELECT count(*) FROM inference"), 131);
        assert_int_equal(integer(db, ALL_VALUES "id IN (1, 2, 5, 10)"),
                         INT64_C(6539227114424413977));
        database_close(db);
        expect_findings();
        assert_int_equal(unlink(path), 0);
    }
}

// A format that is not known is no damage.
TEST_CASE(test_segments_of_an_unknown_format)
{
    make_sealed_store();
    // 0x09, with its checksum
    change_store("UPDATE sealed SET data = x'09', checksum = 2230883321 WHERE id = 3");
    expect_writer_refused(STATUS_UNSUPPORTED, "unknown format");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(integer(db, "SELECT count(*) FROM sealed"), 1);
    assert_int_equal(integer(db, "PRAGMA user_version"), 8);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

// A file of an older version is imported once it has become one of this: until then it is
// named.  What older programs did not know of models is absent.
TEST_CASE(test_an_import_of_version_7)
{
    char from[FOLDER_PATH_SIZE];
    struct error err = {0};
    struct result *answer = NULL;
    struct query query = {.kind = QUERY_IMPORT};
    make_store(STORE_VERSION "7.sql");
    (void)folder_path(from, folder, "from.db");
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", from);
    assert_int_equal(rename(path, from), 0);
    database_close(new_store());
    assert_int_not_equal(store_import(path, &query, &answer, &err), STATUS_OK);
    assert_non_null(strstr(err.text, "version 7"));
    sqlite3 *db = NULL;
    expect_ok(database_open_writer(&db, from, &err), &err);
    database_close(db);
    expect_ok(store_import(path, &query, &answer, &err), &err);
    assert_int_equal(result_integer(answer, 0, "runs", -1), 2);
    result_free(answer);
    db = new_store();
    // Others are beyond what the wire lets in.
    assert_int_equal(integer(db, "SELECT count(*) FROM inference"), 6);
    assert_int_equal(integer(db, "SELECT count(*) FROM v_model WHERE name = 'tiny' AND"
                                 " file_bytes = 30000000 AND kv_bytes_per_token IS NULL"),
                     1);
    database_close(db);
    expect_sound();
}

// A file of version 1 gets the views of today.
TEST_CASE(test_an_older_store_gets_todays_views)
{
    sqlite3 *db = new_store();
    assert_int_equal(database_exec(db,
                                   "DROP VIEW v_ledger; CREATE VIEW v_ledger AS SELECT 1;"
                                   "PRAGMA user_version = 1",
                                   NULL),
                     STATUS_OK);
    database_close(db);
    expect_refused(STATUS_UNSUPPORTED, "migrate");
    db = new_store();
    assert_int_equal(integer(db, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(integer(db, "SELECT count(balanced) FROM v_ledger"), 0);
    database_close(db);
}

TEST_CASE(test_missing_columns_are_added)
{
    sqlite3 *db = new_store();
    assert_int_equal(database_exec(db,
                                   "DROP VIEW v_operation; DROP TABLE operation;"
                                   "CREATE TABLE operation(id INTEGER PRIMARY KEY, run, stream,"
                                   " number, started_ns, received_ns, operation INTEGER);"
                                   "PRAGMA user_version = 1",
                                   NULL),
                     STATUS_OK);
    database_close(db);
    db = new_store();
    assert_int_equal(integer(db, "SELECT count(items_per_second) FROM v_operation"), 0);
    database_close(db);
}

// Samples of devices are stored in fewer bytes since version 15; their values stay the same.
TEST_CASE(test_samples_keep_their_values)
{
    static const struct {
        const char *ratio, *watts, *hertz, *bytes;
        int is_scaled; // how many of them take a whole number of the larger unit
    } cases[] = {
        {"0.57", "300.125", "1980000000", "85899345920", 4},
        {"0.0", "-0.001", "0", "-1024", 3}, // no power is below 0
        {"1.0", "700.0", "-1000000", "1024", 4},
        {"0.123456789", "1e300", "1234567891", "1023", 0},
        {"-0.00005", "1e-12", "9223372036854775807", "-9223372036854775807", 0},
        {"1e11", "99999999999.5", "1", "-9223372036854775807 - 1", 3},
        {"922337203685477.5807", "1e18", "-1", "9223372036854775807", 1},
        {"NULL", "NULL", "NULL", "NULL", 0},
    };
    make_store(STORE_VERSION "14.sql");
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        change_store(
            format_text("INSERT INTO device_sample(id, run, stream, number, started_ns,"
                        " received_ns, device, gpu_util_ratio, power_watts, sm_clock_hz,"
                        " memory_used_bytes) VALUES(%zu, 1, 9, 1, 1, 1, 1, %s, %s, %s, %s)",
                        i, cases[i].ratio, cases[i].watts, cases[i].hertz, cases[i].bytes));
    sqlite3 *db = new_store();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static const char same[] =
            "SELECT gpu_util_ratio IS %s AND power_watts IS %s AND sm_clock_hz IS %s"
            " AND memory_used_bytes IS %s AND typeof(gpu_util_ratio) IN ('real',"
            " 'null') AND typeof(sm_clock_hz) IN ('integer', 'null')"
            " FROM device_sample WHERE id = %zu";
        static const char scaled[] = "SELECT (typeof(gpu_util_ratio_stored) = 'integer')"
                                     " + (typeof(power_watts_stored) = 'integer')"
                                     " + (typeof(sm_clock_hz_stored) = 'integer')"
                                     " + (typeof(memory_used_bytes_stored) = 'integer')"
                                     " FROM device_sample WHERE id = %zu";
        assert_int_equal(integer(db, format_text(same, cases[i].ratio, cases[i].watts,
                                                 cases[i].hertz, cases[i].bytes, i)),
                         1);
        assert_int_equal(integer(db, format_text(scaled, i)), cases[i].is_scaled);
    }
    database_close(db);
}

TEST_MAIN_EACH(set_up, tear_down, test_stores_of_all_older_versions, test_a_migration_is_told,
               test_a_migration_without_room, test_a_migration_keeps_what_was_added,
               test_unsealing_goes_on_where_it_was_killed, test_a_migration_without_disk_space,
               test_damaged_segments, test_segments_of_an_unknown_format,
               test_an_import_of_version_7, test_an_older_store_gets_todays_views,
               test_missing_columns_are_added, test_samples_keep_their_values)
