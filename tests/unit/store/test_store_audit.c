// The audit against stores whose books are right, and against the same with one
// thing changed.

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/audit/audit.h"
#include "common/store/retention/clear.h"
#include "common/store/sqlite/database.h"
#include "common/store/retention/expire.h"
#include "common/store/read/session.h"
#include "common/store/schema/schema.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

TEST_FIXTURE(set_up)
{
    store_make(state);
    exec("INSERT INTO name(id, text) VALUES (1, 'alpha'), (2, 'beta')");
    return 0;
}

// ---- Stores whose books are right ---------------------------------------------------

static void add_run(int64_t run, enum record_run_end end)
{
    store_run(run, (int)(1 + run % 2), end, run * 1000, run * 1000 + 500);
}

// A row of the kind, whatever its columns are.
static void add_row(enum record_kind kind, int64_t run, int64_t stream, int64_t row_number)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES(NULL, %lld, %lld, %lld, %lld, 0",
                        info->name, (long long)run, (long long)stream, (long long)row_number,
                        (long long)run * 1000 + (long long)row_number);
    for (unsigned c = 0; c < info->column_count; c++)
        sqlite3_str_appendall(sql, ", 0");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    exec(text);
    sqlite3_free(text);
}

// Closes the books of a run: run.stored, run.produced and the ledger from the rows
// and streams there are.
static void close_books(int64_t run)
{
    for (int kind = RECORD_KIND_RUN + 1; kind < (int)RECORD_KIND_COUNT; kind++)
        execf("INSERT INTO ledger(run, kind, stored) SELECT %lld, %d, count(*) FROM \"%s\""
              " WHERE run = %lld HAVING count(*) > 0",
              (long long)run, kind, record_kind_info((enum record_kind)kind)->name, (long long)run);
    execf("UPDATE run SET stored = coalesce((SELECT sum(stored) FROM ledger l WHERE l.run ="
          " run.run), 0), produced = coalesce((SELECT sum(produced) FROM stream s WHERE s.run ="
          " run.run), 0) WHERE run = %lld",
          (long long)run);
}

static void add_stream(int64_t run, int64_t stream, int64_t next, int64_t produced)
{
    execf("INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(%lld, %lld, %lld,"
          " %lld, 3)",
          (long long)run, (long long)stream, (long long)next, (long long)produced);
}

static void add_range(int64_t run, int64_t stream, int64_t first, int64_t last, int reason)
{
    execf("INSERT INTO range(run, stream, first, last, state, reason) VALUES(%lld, %lld, %lld,"
          " %lld, %d, nullif(%d, -1))",
          (long long)run, (long long)stream, (long long)first, (long long)last, reason >= 0,
          reason);
}

enum { STORED = -1 };

// Numbers 1 to 100 of run 1, stream 0: 41 to 50 dropped, the rest operations, with
// each tenth an inference.  Run 2 is open with 5 on their way, run 3 is silent.
static void add_small_store(void)
{
    exec("BEGIN");
    for (int run = 1; run <= 3; run++) {
        add_run(run, run == 1   ? RECORD_RUN_END_CLOSED
                     : run == 2 ? RECORD_RUN_END_OPEN
                                : RECORD_RUN_END_SILENT);
        for (int i = 1; i <= 100; i++)
            if (i <= 40 || i > 50)
                add_row(i % 10 ? RECORD_KIND_OPERATION : RECORD_KIND_INFERENCE, run, 0, i);
        add_range(run, 0, 1, 40, STORED);
        add_range(run, 0, 41, 50, DELIVERY_SPOOL_FULL);
        add_range(run, 0, 51, 100, STORED);
        add_stream(run, 0, 101, run == 2 ? 105 : 100);
        close_books(run);
    }
    exec("COMMIT");
}

// ---- Asking -------------------------------------------------------------------------

static struct result *audit_of(const struct query *query)
{
    struct error err = {0};
    struct store *opened = NULL;
    struct result *result = NULL;
    if (store_open(&opened, path, &err) != STATUS_OK ||
        store_query(opened, query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    store_close(opened);
    return result;
}

static const char *text_of(const struct result *result, size_t row, const char *key)
{
    static char texts[4][AUDIT_FINDING_SIZE];
    static unsigned next;
    char *text = texts[next++ % COUNT_OF(texts)];
    const struct value value = result_cell(result, row, (unsigned)result_find(result, key));
    const int size = value.type == VALUE_TEXT ? (int)value.text.size : 0;
    (void)snprintf(text, AUDIT_FINDING_SIZE, "%.*s", size, size ? value.text.bytes : "");
    return text;
}

static void expect_finding(const char *words)
{
    const struct query query = {.kind = QUERY_AUDIT};
    struct result *result = audit_of(&query);
    bool found = false;
    for (size_t row = 0; row < result_row_count(result); row++) {
        const char *finding = text_of(result, row, "finding");
        const bool unbalanced = strcmp(text_of(result, row, "verdict"), "unbalanced") == 0;
        assert_true(unbalanced == (finding[0] != '\0'));
        found |= strstr(finding, words) != NULL;
    }
    if (!found) {
        for (size_t row = 0; row < result_row_count(result); row++)
            print_message("%s\n", text_of(result, row, "finding"));
        fail_msg("no finding says \"%s\"", words);
    }
    result_free(result);
}

TEST_CASE(test_a_sound_store)
{
    add_small_store();
    const struct query query = {.kind = QUERY_AUDIT};
    struct result *result = audit_of(&query);
    assert_int_equal(result_row_count(result), 3);
    static const char *const verdicts[] = {"balanced", "open", "unknown"};
    for (size_t row = 0; row < 3; row++) {
        assert_string_equal(text_of(result, row, "finding"), "");
        assert_string_equal(text_of(result, row, "verdict"), verdicts[row]);
        assert_int_equal(result_integer(result, row, "stored", -1), 90);
        assert_int_equal(result_integer(result, row, "rows", -1), 90);
        assert_int_equal(result_integer(result, row, "dropped_spool_full", -1), 10);
        assert_int_equal(result_integer(result, row, "dropped_ring_full", -1), 3);
        assert_int_equal(result_integer(result, row, "dropped_refused", -1), 0);
        assert_int_equal(result_integer(result, row, "in_flight", -1), row == 1 ? 5 : 0);
        assert_int_equal(result_integer(result, row, "produced", -1), row == 1 ? 108 : 103);
    }
    assert_string_equal(text_of(result, 0, "run"), "00000001-0000-4000-8000-000000000000");
    assert_string_equal(text_of(result, 0, "host"), "beta");
    assert_string_equal(text_of(result, 2, "end"), "silent");
    result_free(result);
}

// Each on the small store; the words that have to be among the findings.
static const struct {
    const char *change;
    const char *words;
} changes[] = {
    {"UPDATE ledger SET stored = stored - 1 WHERE run = 1 AND kind = 8",
     "the ledger has 89 stored, the ranges 90; operation has 81 rows, the ledger 80"},
    {"UPDATE ledger SET expired = 2 WHERE run = 1 AND kind = 6",
     "inference has 9 rows, the ledger 7"},
    {"UPDATE ledger SET cleared = -2 WHERE run = 1 AND kind = 6", "makes no sense"},
    {"UPDATE ledger SET kind = 77 WHERE run = 1 AND kind = 6", "unknown kind 77"},
    {"UPDATE ledger SET run = 99 WHERE run = 1 AND kind = 6", "run number 99"},
    {"UPDATE ledger SET gone_sum = 5 WHERE run = 1 AND kind = 6", "makes no sense"},
    {"UPDATE ledger SET gone_sum = NULL WHERE run = 1 AND kind = 6",
     "the ledger of inference has no set hash"},
    {"UPDATE ledger SET expired = 1 WHERE run = 1 AND kind = 6",
     "the ledger of inference has 1 expired, and nothing of it expired"},
    {"INSERT INTO expiry VALUES(6, 1001); UPDATE ledger SET expired = 1 WHERE run = 1 AND kind = 6",
     "inference has 9 rows, the ledger 8"},
    // A row is taken away by hand, and said to have expired.
    {"INSERT INTO expiry VALUES(6, 5000); DELETE FROM inference WHERE run = 1 AND number = 10;"
     "UPDATE ledger SET expired = 1, gone_sum = 4711 WHERE run = 1 AND kind = 6",
     "rows and what expired or was cleared are not the numbers stored"},
    {"INSERT INTO expiry VALUES(8, 5000); DELETE FROM inference WHERE run = 1 AND number = 10;"
     "UPDATE ledger SET expired = 1, gone_sum = (SELECT set_hash(0, 10)) WHERE run = 1 AND kind "
     "= 6",
     "the ledger of inference has 1 expired, and nothing of it expired"},
    {"UPDATE run SET ended_ns = 7 WHERE run = 2",
     "the run is open, and has a time at which it ended"},
    {"DELETE FROM ledger WHERE run = 1 AND kind = 6", "inference has 9 rows, the ledger 0"},
    {"UPDATE range SET last = 39 WHERE run = 1 AND first = 1",
     "stream 0: numbers 40 to 40 are neither stored nor dropped"},
    {"UPDATE range SET last = 45 WHERE run = 1 AND first = 1",
     "stream 0: numbers 41 to 45 are in two ranges"},
    {"UPDATE range SET last = 99 WHERE run = 1 AND first = 51",
     "the number wanted next is 101, and its ranges end at 99"},
    {"UPDATE range SET last = 4611686018427387904 WHERE run = 1 AND first = 51",
     "far more numbers stored"},
    {"UPDATE range SET last = 9223372036854775807 WHERE run = 1 AND first = 51",
     "far more numbers stored"},
    {"UPDATE range SET state = 0, reason = NULL WHERE run = 1 AND first = 41",
     "stream 0: 90 rows of 100 numbers stored; stream 0: number 41 is missing"},
    {"UPDATE range SET state = 7 WHERE run = 1 AND first = 41", "makes no sense"},
    {"UPDATE range SET reason = 99 WHERE run = 1 AND first = 41", "makes no sense"},
    {"UPDATE range SET run = 99 WHERE run = 1 AND first = 41",
     "the table range speaks of run number 99"},
    {"UPDATE range SET stream = 4 WHERE run = 1 AND first = 41",
     "stream 4 has a range, and is not in the table stream"},
    {"DELETE FROM range WHERE run = 1 AND first = 41",
     "numbers 41 to 50 are neither stored nor dropped"},
    {"UPDATE stream SET next = 90 WHERE run = 1", "the number wanted next is 90"},
    {"UPDATE stream SET produced = 99 WHERE run = 1", "99 were produced"},
    {"UPDATE stream SET produced = 103 WHERE run = 1", "numbers 101 to 103 never came"},
    {"UPDATE stream SET produced = 103, stream = 3 WHERE run = 1",
     "90 rows are of streams that are not there"},
    {"UPDATE stream SET produced = -9223372036854775807 WHERE run = 1", "impossible counts"},
    {"UPDATE stream SET no_room = unnumbered + 1 WHERE run = 1", "impossible counts"},
    {"UPDATE stream SET run = 99 WHERE run = 1", "the table stream speaks of run number 99"},
    {"DELETE FROM stream WHERE run = 1", "is not in the table stream"},
    {"DELETE FROM operation WHERE run = 1 AND number = 17",
     "stream 0: 89 rows of 90 numbers stored; stream 0: number 17 is missing"},
    {"DELETE FROM operation WHERE run = 1 AND number >= 60",
     "operation has 45 rows, the ledger 81"},
    {"INSERT INTO operation SELECT NULL, run, stream, number, started_ns, received_ns, "
     "operation,"
     " device, duration_ns, host_memory_bytes, items, bytes, extra, error FROM operation"
     " WHERE run = 1 AND number = 17",
     "stream 0: 91 rows of 90 numbers stored; stream 0: number 17 is there more than once"},
    {"INSERT INTO operation SELECT NULL, run, stream, 101, started_ns, received_ns, "
     "operation,"
     " device, duration_ns, host_memory_bytes, items, bytes, extra, error FROM operation"
     " WHERE run = 1 AND number = 17",
     "stream 0: number 101 was never stored, and is there"},
    {"INSERT INTO operation SELECT NULL, run, stream, 45, started_ns, received_ns, operation,"
     " device, duration_ns, host_memory_bytes, items, bytes, extra, error FROM operation"
     " WHERE run = 1 AND number = 17",
     "stream 0: number 45 was dropped, and is there"},
    {"INSERT INTO operation SELECT NULL, 99, stream, 45, started_ns, received_ns, operation,"
     " device, duration_ns, host_memory_bytes, items, bytes, extra, error FROM operation WHERE run "
     "= 1",
     "operation has 81 rows of run number 99, which is not in the table run"},
    // One goes, another comes: as many rows as before.
    {"UPDATE operation SET number = 20 WHERE run = 1 AND number = 19",
     "stream 0: 90 rows of 90 numbers stored, but not theirs; stream 0: number 19 is missing"},
    {"UPDATE operation SET number = 10 WHERE run = 1 AND number = 11",
     "stream 0: 90 rows of 90 numbers stored, but not theirs; stream 0: number 10 is there more "
     "than once"},
    {"UPDATE operation SET stream = 1 WHERE run = 1 AND number = 11",
     "1 rows are of streams that are not there"},
    {"UPDATE operation SET run = 2 WHERE run = 1 AND number = 11", "80 rows, the ledger 81"},
    {"UPDATE operation SET number = 'x' WHERE run = 1 AND number = 11",
     "number 0 was never stored, and is there"},
    {"UPDATE run SET stored = 91 WHERE run = 1", "the run has 91 stored, its ranges 90"},
    {"UPDATE run SET produced = 91 WHERE run = 1", "the run has produced 91, its streams 100"},
    {"UPDATE run SET \"end\" = 9 WHERE run = 1", "unknown end 9"},
    {"UPDATE run SET \"end\" = 1 WHERE run = 2", "numbers 101 to 105 never came"},
    {"UPDATE run SET \"end\" = 2 WHERE run = 2", "numbers 101 to 105 never came"},
    {"DELETE FROM run WHERE run = 3", "which is not in the table run"},
};

TEST_CASE(test_every_change_is_found)
{
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        (void)store_tear_down(NULL);
        (void)set_up(NULL);
        add_small_store();
        exec(changes[i].change);
        assert_true(sqlite3_changes(db) > 0);
        expect_finding(changes[i].words);
    }
}

// Findings in the store as it stands in the open transaction.
static uint64_t count_findings(void)
{
    struct store opened = {.db = db};
    const struct query_filter all = {0};
    struct audit audit;
    struct error err;
    expect_ok(audit_page(&audit, &opened, &all, INT64_MIN, AUDIT_RUNS_MAX, &err), &err);
    uint64_t findings = 0;
    for (size_t i = 0; i < audit.run_count; i++)
        findings += audit.runs[i].findings;
    for (size_t i = 0; i < audit.orphan_count; i++)
        findings += audit.orphans[i].findings;
    audit_deinit(&audit);
    statement_cache_end(&opened.statements);
    return findings;
}

// Clears number 11 of the runs, as a collector that knows set hashes does, or not.
static void take_away_number_11(const char *sum)
{
    execf("DELETE FROM operation WHERE number = 11;"
          "UPDATE ledger SET cleared = 1, gone_sum = %s WHERE kind = 8",
          sum);
}

// Only what came from a store without set hashes may lack one, and only where rows
// were gone by then.
TEST_CASE(test_a_missing_set_hash_is_excused_by_age_alone)
{
    add_small_store();
    take_away_number_11("(SELECT set_hash(0, 11))");
    assert_int_equal(count_findings(), 0);
    exec("UPDATE ledger SET gone_sum = NULL WHERE run <= 2 AND kind = 8");
    assert_int_equal(count_findings(), 2);
    exec("INSERT INTO meta VALUES('" SCHEMA_NO_SET_HASHES "', 1)");
    assert_int_equal(count_findings(), 1);
    exec("UPDATE meta SET value = 2 WHERE key = '" SCHEMA_NO_SET_HASHES "'");
    assert_int_equal(count_findings(), 0);
    exec("UPDATE ledger SET gone_sum = NULL WHERE run = 1 AND kind = 6"); // nothing is gone
    assert_int_equal(count_findings(), 1);
}

// All that is gone was cleared, or can have expired.
TEST_CASE(test_cleared_is_not_expired)
{
    add_small_store();
    take_away_number_11("(SELECT set_hash(0, 11))");
    assert_int_equal(count_findings(), 0);
    exec("UPDATE ledger SET expired = 1, cleared = 0 WHERE run = 1 AND kind = 8");
    expect_finding("the ledger of operation has 1 expired");
    exec("INSERT INTO expiry VALUES(8, 1000)"); // no one can tell any longer
    assert_int_equal(count_findings(), 0);
}

// What expires as the collector lets it balances at every step.
TEST_CASE(test_what_expires_balances)
{
    add_small_store();
    const struct expire_rows rows = {
        .kind = RECORD_KIND_OPERATION, .before_ns = INT64_MAX, .last_id = INT64_MAX, .count = 7};
    struct error err;
    unsigned gone = 7;
    for (int64_t all = 0; gone == 7;) {
        expect_ok(expire_slice(db, &rows, &gone, &err), &err);
        all += gone;
        assert_int_equal(count_findings(), 0);
        assert_int_equal(integer("SELECT sum(expired) FROM ledger"), all);
    }
    assert_int_equal(integer("SELECT count(*) FROM operation"), 0);
    exec("UPDATE ledger SET expired = expired - 1, stored = stored - 1 WHERE run = 2 AND kind = 8");
    expect_finding("the ledger has 89 stored, the ranges 90");
}

// ---- Random stores --------------------------------------------------------------------

enum { RUNS = 4, STREAMS = 3 };

struct book {
    int64_t next;
    int64_t first; // of the range at work, 0: none
    int reason;    // or STORED
};

static void end_range(int64_t run, int64_t stream, const struct book *book)
{
    if (book->first)
        add_range(run, stream, book->first, book->next - 1, book->reason);
}

// What a collector would do: batches of any kinds and dropped ranges, in turn.
static void add_random_store(uint64_t *random)
{
    static const enum record_kind kinds[] = {RECORD_KIND_OPERATION, RECORD_KIND_INFERENCE,
                                             RECORD_KIND_PROCESS_SAMPLE};
    struct book books[RUNS][STREAMS];
    for (int run = 0; run < RUNS; run++) {
        add_run(run + 1, (enum record_run_end)(test_random(random) % 4));
        for (int stream = 0; stream < STREAMS; stream++)
            books[run][stream] = (struct book){.next = 1, .reason = STORED};
    }
    for (int batch = 0; batch < 60; batch++) {
        const uint64_t place = batch < RUNS * STREAMS ? (uint64_t)batch : test_random(random);
        const int run = (int)(place % RUNS);
        const int stream = (int)(place / RUNS % STREAMS);
        struct book *book = &books[run][stream];
        const int reason = test_random(random) % 4 ? STORED : (int)(test_random(random) % 4);
        if (reason != book->reason || !book->first) {
            end_range(run + 1, stream, book);
            book->first = book->next;
            book->reason = reason;
        }
        const int64_t end = book->next + 1 + (int64_t)(test_random(random) % 8);
        for (; book->next < end; book->next++)
            if (reason == STORED)
                add_row(kinds[test_random(random) % COUNT_OF(kinds)], run + 1, stream, book->next);
    }
    for (int run = 0; run < RUNS; run++) {
        for (int stream = 0; stream < STREAMS; stream++) {
            const struct book *book = &books[run][stream];
            end_range(run + 1, stream, book);
            add_stream(run + 1, stream, book->next, book->next - 1);
        }
        close_books(run + 1);
    }
}

// Clears some rows as a collector does.
static void clear_some(uint64_t *random)
{
    struct query_filter filter = {.since_ns = 1, .until_ns = 0};
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s",
                   test_random(random) % 2 ? "alpha" : "beta");
    filter.until_ns = (int64_t)(1000 * (1 + test_random(random) % RUNS) + 20);
    struct clearing clearing;
    struct error err;
    bool done = false;
    assert_int_equal(clear_begin(&clearing, db, &filter, &err), STATUS_OK);
    while (!done)
        assert_int_equal(clear_slice(&clearing, db, &done, &err), STATUS_OK);
}

// Columns in which every change has to be seen.  Not among them, since nothing
// repeats what they say: stream.unnumbered and .activity, range.reason of a dropped
// range, .detail and times, whatever was measured, streams without records,
// and the kind of records that are all gone.
static const struct {
    const char *table, *key; // and what tells its rows apart
    const char *which;       // of its rows
    const char *columns[6];
} books_kept[] = {
    {"range",
     "run * 1000000 + stream * 10000 + first",
     "1",
     {"run", "stream", "first", "last", "state"}},
    {"stream", "run * 1000000 + stream", "1", {"run", "stream", "next", "produced"}},
    {"ledger",
     "run * 100 + kind",
     "stored > expired + cleared",
     {"run", "kind", "stored", "expired", "cleared", "gone_sum"}},
    {"operation", "id", "1", {"run", "stream", "number"}},
    {"inference", "id", "1", {"run", "stream", "number"}},
    {"process_sample", "id", "1", {"run", "stream", "number"}},
};

static const char *copy_columns(const char *table)
{
    static char list[2048];
    list[0] = '\0';
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT group_concat('\"' || name || '\"') FROM"
                                        " pragma_table_info(?) WHERE name <> 'id'",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    (void)snprintf(list, sizeof list, "%s", (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return list;
}

// Changes one row somewhere and says how; false where that is no change at all, or
// what SQLite itself refuses.
static bool change_something(uint64_t *random, char *what, size_t size)
{
    const size_t table = test_random(random) % COUNT_OF(books_kept);
    const char *name = books_kept[table].table;
    char row[512];
    (void)snprintf(row, sizeof row,
                   "%s = (SELECT %s FROM \"%s\" WHERE %s ORDER BY 1 LIMIT 1 OFFSET abs(%lld)"
                   " %% (SELECT count(*) + 1 FROM \"%s\"))",
                   books_kept[table].key, books_kept[table].key, name, books_kept[table].which,
                   (long long)(test_random(random) >> 2), name);
    unsigned count = 1;
    while (count < COUNT_OF(books_kept[table].columns) && books_kept[table].columns[count])
        count++;
    const char *column = books_kept[table].columns[test_random(random) % count];
    const int by = 1 + (int)(test_random(random) % 7);
    const unsigned way = (unsigned)(test_random(random) % 4);
    if (way == 0)
        (void)snprintf(what, size, "DELETE FROM \"%s\" WHERE %s", name, row);
    else if (way == 1)
        (void)snprintf(what, size, "INSERT INTO \"%s\"(%s) SELECT %s FROM \"%s\" WHERE %s", name,
                       copy_columns(name), copy_columns(name), name, row);
    else
        (void)snprintf(what, size, "UPDATE \"%s\" SET \"%s\" = \"%s\" %c %d WHERE %s", name, column,
                       column, way == 2 ? '+' : '-', by, row);
    return sqlite3_exec(db, what, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) > 0;
}

TEST_CASE(test_random_stores_balance_and_random_changes_do_not)
{
    enum { SEEDS = 12, CHANGES = 150 };
    unsigned found = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
        (void)store_tear_down(NULL);
        (void)set_up(NULL);
        exec("BEGIN");
        add_random_store(&random);
        exec("COMMIT");
        if (seed % 2 == 0)
            clear_some(&random);
        assert_int_equal(count_findings(), 0);
        for (int i = 0; i < CHANGES; i++) {
            char what[4096];
            exec("BEGIN");
            if (change_something(&random, what, sizeof what)) {
                found++;
                if (count_findings() == 0)
                    fail_msg("seed %d, change %d: nobody sees %s", (int)seed, i, what);
            }
            exec("ROLLBACK");
        }
        assert_int_equal(count_findings(), 0);
    }
    assert_true(found > SEEDS * CHANGES / 2);
}

TEST_CASE(test_pages_go_on_behind_their_cursor)
{
    exec("BEGIN");
    for (int run = 1; run <= 25; run++) {
        add_run(run * 3, RECORD_RUN_END_CLOSED);
        add_stream(run * 3, 0, 1, 0);
    }
    exec("INSERT INTO ledger(run, kind, stored) VALUES(2, 6, 1), (40, 6, 1), (99, 6, 1)");
    exec("COMMIT");
    struct query query = {.kind = QUERY_AUDIT, .limit = 7};
    size_t rows = 0, strange = 0, pages = 0;
    do {
        struct result *result = audit_of(&query);
        rows += result_row_count(result);
        for (size_t row = 0; row < result_row_count(result); row++)
            strange += text_of(result, row, "run")[0] == '\0';
        query.cursor = result_next_cursor(result);
        result_free(result);
        pages++;
    } while (query.cursor);
    assert_int_equal(pages, 4);
    assert_int_equal(rows, 28);
    assert_int_equal(strange, 3);
}

TEST_CASE(test_filters_choose_runs)
{
    add_small_store();
    exec("DELETE FROM run WHERE run = 3"); // orphan rows belong to no filter
    struct query query = {.kind = QUERY_AUDIT};
    (void)snprintf(query.filter.by[QUERY_BY_RUN], QUERY_TEXT_SIZE, "00000002");
    struct result *result = audit_of(&query);
    assert_int_equal(result_row_count(result), 1);
    assert_string_equal(text_of(result, 0, "verdict"), "open");
    result_free(result);
    query.filter = (struct query_filter){.since_ns = 2400};
    result = audit_of(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    query.filter = (struct query_filter){0};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "nobody");
    result = audit_of(&query);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    struct error err = {0};
    struct store *opened = NULL;
    assert_int_equal(store_open(&opened, path, &err), STATUS_OK);
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "not of a model"));
    store_close(opened);
}

TEST_CASE(test_findings_without_end_are_bounded)
{
    exec("BEGIN");
    add_run(1, RECORD_RUN_END_CLOSED);
    for (int i = 1; i <= 3000; i++)
        add_row(RECORD_KIND_OPERATION, 1, 0, i);
    for (int i = 0; i < 40; i++)
        add_row(RECORD_KIND_OPERATION, 100 + i, 0, 1);
    add_stream(1, 0, 1, 0);
    close_books(1);
    exec("COMMIT");
    expect_finding("and 2");
    expect_finding("and 24 rows of still other runs");
}

TEST_CASE(test_an_audit_over_its_budget_is_ended)
{
    exec("BEGIN");
    add_run(1, RECORD_RUN_END_CLOSED);
    for (int i = 1; i <= 20000; i++)
        add_row(RECORD_KIND_OPERATION, 1, 0, i);
    exec("COMMIT");
    struct error err = {0};
    struct store *opened = NULL;
    struct result *result = NULL;
    assert_int_equal(store_open(&opened, path, &err), STATUS_OK);
    store_set_budget(opened, 1);
    const struct query query = {.kind = QUERY_AUDIT};
    assert_int_equal(store_query(opened, &query, &result, &err), STATUS_TIMEOUT);
    assert_non_null(strstr(err.text, "too long"));
    store_close(opened);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_a_sound_store, test_every_change_is_found,
               test_a_missing_set_hash_is_excused_by_age_alone, test_cleared_is_not_expired,
               test_what_expires_balances, test_random_stores_balance_and_random_changes_do_not,
               test_pages_go_on_behind_their_cursor, test_filters_choose_runs,
               test_findings_without_end_are_bounded, test_an_audit_over_its_budget_is_ended)
