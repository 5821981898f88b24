// A store with sealed rows answers as the same store without: queries, audit, clearing,
// expiry.
#include "tests/support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/result.h"
#include "common/store/clear.h"
#include "common/store/database.h"
#include "common/store/expire.h"
#include "common/store/import.h"
#include "common/store/schema_tables.h"
#include "common/store/sealed.h"
#include "common/store/sealer.h"
#include "common/store/store.h"
#include "tests/unit/sealed_rig.h"

// Puts all rows back, as they are kept.
static void open_all(void)
{
    struct error err;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "INSERT INTO inference(");
    schema_append_kept(sql, RECORD_KIND_INFERENCE);
    sqlite3_str_appendall(sql, ") SELECT ");
    schema_append_kept(sql, RECORD_KIND_INFERENCE);
    sqlite3_str_appendall(sql, " FROM sealed_inference");
    if (database_exec_built(db, sql, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    exec("DELETE FROM sealed");
}

static void assert_same_rows(const char *before)
{
    char *after = dump_sql(db, ALL_ROWS);
    assert_string_equal(before, after);
    sqlite3_free(after);
}

// All values of an answer.
static void append_answer(sqlite3_str *out, struct store *store, const struct query *query)
{
    struct error err = {.text = ""};
    struct result *answer = NULL;
    const enum status status = store_query(store, query, &answer, &err);
    sqlite3_str_appendf(out, "[%d %s]", (int)status, status == STATUS_OK ? "" : err.text);
    for (size_t row = 0; answer && row < result_row_count(answer); row++)
        for (unsigned c = 0; c < result_column_count(answer); c++) {
            const char *key = result_column(answer, c)->key;
            if (strcmp(key, "store_bytes") == 0 || strncmp(key, "sealed_", 7) == 0)
                continue; // of the file
            // Of equal values any may be among the slowest.
            if (query->kind == QUERY_SLOWEST && strcmp(key, "value") != 0)
                continue;
            const struct value value = result_cell(answer, row, c);
            switch (value.type) {
            case VALUE_INT:
                sqlite3_str_appendf(out, "%lld|", (long long)value.i);
                break;
            case VALUE_REAL:
                sqlite3_str_appendf(out, "%.12g|", value.r);
                break;
            case VALUE_TEXT:
                sqlite3_str_appendf(out, "%.*s|", (int)value.text.size, value.text.bytes);
                break;
            case VALUE_NULL:
                sqlite3_str_appendall(out, "-|");
                break;
            }
        }
    if (answer)
        sqlite3_str_appendf(out, "next %llu", (unsigned long long)result_next_cursor(answer));
    result_free(answer);
}

static char *answer_of(const struct query *query)
{
    struct store *store = open_store();
    sqlite3_str *out = sqlite3_str_new(NULL);
    append_answer(out, store, query);
    store_close(store);
    return sqlite3_str_finish(out);
}

// Some filter, the same for the same seed.
static void pick_query(struct query *query)
{
    static const char *const metrics[] = {"inference.ttft_ns", "inference.e2e_ns",
                                          "inference.tokens_per_second", "inference.queue_ns"};
    static const enum query_kind kinds[] = {QUERY_AVERAGE, QUERY_RECORDS,  QUERY_RECORDS,
                                            QUERY_SUMMARY, QUERY_OVERVIEW, QUERY_AUDIT,
                                            QUERY_SLOWEST};
    *query =
        (struct query){.kind = kinds[pick(COUNT_OF(kinds))], .record_kind = RECORD_KIND_INFERENCE};
    const bool has_metric = query->kind == QUERY_AVERAGE || query->kind == QUERY_SLOWEST;
    if (has_metric)
        (void)snprintf(query->metric, sizeof query->metric, "%s", metrics[pick(4)]);
    if (query->kind == QUERY_RECORDS || query->kind == QUERY_SLOWEST)
        query->limit = (uint32_t)(1 + pick(40));
    if (query->kind == QUERY_RECORDS && pick(2))
        query->oldest_first = true;
    if (query->kind == QUERY_AVERAGE && pick(2))
        query->group_by[query->group_count++] = pick(2) ? QUERY_BY_MODEL : QUERY_BY_RUN;
    if (pick(2))
        query->filter.since_ns = pick_time();
    if (pick(2))
        query->filter.until_ns = pick_time();
    if (pick(3) == 0)
        (void)snprintf(query->filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s",
                       rig_names[5 + pick(3)]);
    if (pick(4) == 0)
        (void)snprintf(query->filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", rig_names[pick(3)]);
}

static int setup(void **state)
{
    (void)state;
    seed = 20261121; // each test is the same alone
    folder_make(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    database_close(db); // where the test has failed
    database_close(full);
    db = full = NULL;
    folder_remove(folder);
    return 0;
}

// ---- Tests ----------------------------------------------------------------------------

// What goes in comes out, and what cannot be sealed stays.
static void test_rows_come_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STORES; i++) {
        make_random(20 + pick(ROWS_MAX));
        char *before = dump_sql(db, ALL_ROWS);
        const int64_t newest = ask(db, "SELECT max(id) FROM inference");
        const int64_t failed = ask(db, "SELECT count(*) FROM inference WHERE finish = 3");
        seal_all(SEGMENT_ROWS);
        assert_int_equal(ask(db, "SELECT max(id) FROM inference"), newest);
        assert_int_equal(ask(db, "SELECT count(*) FROM inference WHERE finish = 3"), failed);
        open_all();
        assert_same_rows(before);
        sqlite3_free(before);
        drop_store();
    }
}

// The virtual table has every row, by each order and condition.
static void test_table(void **state)
{
    (void)state;
    static const char *const ends[] = {
        " ORDER BY t.id",
        " ORDER BY t.id DESC",
        " ORDER BY t.started_ns, t.id",
        " ORDER BY t.started_ns DESC, t.id DESC",
        " ORDER BY t.started_ns DESC, t.id DESC LIMIT 9",
        " ORDER BY t.e2e_ns, t.id",
    };
    static const char *const conditions[] = {
        " WHERE 1",
        " WHERE t.id > 40 AND t.id <= 90",
        " WHERE t.id = 33",
        " WHERE t.id BETWEEN 10.5 AND 30.5",
        " WHERE t.id < -1",
        " WHERE t.id > 9223372036854775807",
        " WHERE t.started_ns > (SELECT min(started_ns) FROM main.inference)",
        " WHERE t.started_ns BETWEEN 1772323200000000000 - 7200000000000 AND 1772323200000000000",
        " WHERE t.run IN (1, 3) AND t.ttft_ns IS NULL",
    };
    make_random(ROWS_MAX);
    exec("DELETE FROM inference WHERE id % 53 = 0"); // texts stay in the table
    exec("CREATE TABLE copy AS SELECT * FROM inference");
    seal_all(SEGMENT_ROWS);
    assert_true(ask(db, "SELECT count(*) FROM sealed") > 2);
    for (size_t c = 0; c < COUNT_OF(conditions); c++)
        for (size_t e = 0; e < COUNT_OF(ends); e++) {
            sqlite3_str *sql = sqlite3_str_new(NULL);
            sqlite3_str_appendall(sql, "SELECT t.* FROM ");
            sealed_append_from(sql, RECORD_KIND_INFERENCE, SEALED_TOO);
            sqlite3_str_appendf(sql, "%s%s", conditions[c], ends[e]);
            char *text = sqlite3_str_finish(sql);
            char *plain = sqlite3_mprintf("SELECT t.* FROM copy t%s%s", conditions[c], ends[e]);
            assert_same_text(dump_sql(db, text), dump_sql(db, plain));
            sqlite3_free(text);
            sqlite3_free(plain);
        }
    drop_store();
}

static void test_queries_answer_the_same(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STORES; i++) {
        make_random(60 + pick(ROWS_MAX - 60));
        struct query queries[16];
        char *before[COUNT_OF(queries)];
        for (size_t q = 0; q < COUNT_OF(queries); q++) {
            pick_query(&queries[q]);
            before[q] = answer_of(&queries[q]);
        }
        seal_all((uint32_t)(8 + pick(100)));
        for (size_t q = 0; q < COUNT_OF(queries); q++)
            assert_same_text(before[q], answer_of(&queries[q]));
        drop_store();
    }
}

// A summary tells what is sealed.
static void test_summary_tells_sealed_rows(void **state)
{
    (void)state;
    const struct query query = {.kind = QUERY_SUMMARY};
    make_random(ROWS_MAX);
    for (int is_sealed = 0; is_sealed < 2; is_sealed++) {
        struct error err;
        struct result *answer = NULL;
        struct store *store = open_store();
        if (is_sealed)
            seal_all(SEGMENT_ROWS);
        if (store_query(store, &query, &answer, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        const int64_t rows = ROWS_MAX - ask(db, "SELECT count(*) FROM inference");
        assert_true(is_sealed == (rows > 0));
        assert_int_equal(result_integer(answer, 0, "sealed_rows", -1), rows);
        assert_int_equal(result_integer(answer, 0, "sealed_bytes", -1),
                         ask(db, "SELECT total(length(data) + length(runs)) FROM sealed"));
        result_free(answer);
        store_close(store);
    }
    drop_store();
}

// Goes through a listing page by page.
static void test_listing_goes_on(void **state)
{
    (void)state;
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    for (int oldest_first = 0; oldest_first < 2; oldest_first++) {
        struct error err;
        struct store *store = open_store();
        struct query query = {.kind = QUERY_RECORDS,
                              .record_kind = RECORD_KIND_INFERENCE,
                              .limit = 37,
                              .oldest_first = oldest_first};
        int64_t rows = 0;
        do {
            struct result *page = NULL;
            if (store_query(store, &query, &page, &err) != STATUS_OK)
                fail_msg("%s", err.text);
            rows += (int64_t)result_row_count(page);
            query.cursor = result_next_cursor(page);
            result_free(page);
        } while (query.cursor != 0);
        assert_int_equal(rows, ROWS_MAX);
        store_close(store);
    }
    drop_store();
}

// Clearing leaves the same rows, ledgers and gaps, sealed or not.
static void test_clear(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STORES; i++) {
        struct error err;
        char other[FOLDER_PATH_SIZE];
        sqlite3 *plain = NULL;
        make_random(60 + pick(ROWS_MAX - 60));
        execf("VACUUM INTO '%s'", folder_path(other, folder, "plain.db"));
        if (database_open_writer(&plain, other, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        struct query query = {.kind = QUERY_AVERAGE};
        if (i > 0) // the first clears all
            pick_query(&query);
        seal_all((uint32_t)(8 + pick(60)));
        clear_both(&query.filter, db);
        clear_both(&query.filter, plain);
        static const char *const tables[] = {
            "SELECT run, kind, stored, expired, cleared, gone_sum FROM ledger ORDER BY 1, 2",
            "SELECT * FROM rollup_gap ORDER BY 1, 2, 3, 4, 5",
        };
        for (size_t t = 0; t < COUNT_OF(tables); t++)
            assert_same_text(dump_sql(db, tables[t]), dump_sql(plain, tables[t]));
        open_all();
        assert_same_text(dump_sql(db, ALL_ROWS), dump_sql(plain, ALL_ROWS));
        database_close(plain);
        drop_store();
    }
}

// So does expiry, whatever of it is sealed.
static void test_expire(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STORES; i++) {
        struct error err;
        char other[FOLDER_PATH_SIZE];
        sqlite3 *of[2] = {NULL, NULL};
        make_random(60 + pick(ROWS_MAX - 60));
        execf("VACUUM INTO '%s'", folder_path(other, folder, "plain.db"));
        if (database_open_writer(&of[1], other, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        of[0] = db;
        seal_all((uint32_t)(8 + pick(60)));
        struct expire_rows rows = {.kind = RECORD_KIND_INFERENCE,
                                   .before_ns = rollup_bucket(ROLLUP_HOUR, pick_time()),
                                   .last_id = INT64_MAX,
                                   .count = 25};
        for (unsigned k = 0; k < 2; k++) {
            unsigned gone = 1;
            while (gone > 0)
                if (expire_slice(of[k], &rows, &gone, &err) != STATUS_OK)
                    fail_msg("%s", err.text);
        }
        open_all();
        static const char ledger[] =
            "SELECT run, kind, stored, expired, cleared, gone_sum FROM ledger ORDER BY 1, 2";
        assert_same_text(dump_sql(db, ALL_ROWS), dump_sql(of[1], ALL_ROWS));
        assert_same_text(dump_sql(db, ledger), dump_sql(of[1], ledger));
        database_close(of[1]);
        drop_store();
    }
}

// What is left of a segment stays sealed: the table never grows.  It is not written anew for
// each minute that passes.
static void test_expiry_cuts(void **state)
{
    (void)state;
    make_random(ROWS_MAX);
    execf("UPDATE inference SET started_ns = %lld + %lld * id, finish = 0,"
          " received_after_ns = 1000",
          (long long)MARCH_NS, (long long)MINUTE_NS);
    seal_all(100);
    exec("DELETE FROM rollup_gap");
    const int64_t hot = ask(db, "SELECT count(*) FROM inference");
    const int64_t hot_gone = ask(db, "SELECT count(*) FROM inference WHERE id < 150");
    const int64_t all = segments();
    assert_int_equal(expire_all(db, MARCH_NS + 150 * MINUTE_NS, INT64_MAX), 149);
    assert_int_equal(ask(db, "SELECT count(*) FROM inference"), hot - hot_gone);
    assert_int_equal(ask(db, "SELECT count(*) FROM sealed_inference WHERE id < 150"), 0);
    assert_int_equal(ask(db, "SELECT count(*) + (SELECT count(*) FROM inference) FROM"
                             " sealed_inference"),
                     ROWS_MAX - 149);
    assert_int_equal(segments(), all - 1);
    for (int minute = 151; minute < 180; minute++)
        (void)expire_all(db, MARCH_NS + minute * MINUTE_NS, INT64_MAX);
    assert_int_equal(ask(db, "SELECT min(id) FROM sealed_inference"), 150);
    (void)expire_all(db, MARCH_NS + 180 * MINUTE_NS, INT64_MAX);
    assert_int_equal(ask(db, "SELECT min(id) FROM sealed_inference"), 180);
    drop_store();
}

// Rows that go while a segment is being made are not brought back.
static void test_rows_go_meanwhile(void **state)
{
    (void)state;
    struct error err;
    struct sealer *sealer = NULL;
    bool done = false;
    uint32_t sealed = 0;
    const struct sealer_limits limits = {
        .before_ns = INT64_MAX, .last_id = INT64_MAX, .rows = SEGMENT_ROWS};
    make_random(ROWS_MAX);
    assert_int_equal(sealer_new(&sealer, db, RECORD_KIND_INFERENCE, &err), STATUS_OK);
    for (unsigned step = 0; step < 6; step++) // it has read, and packs
        assert_int_equal(sealer_step(sealer, &limits, &done, &sealed, &err), STATUS_OK);
    exec("DELETE FROM inference WHERE id BETWEEN 5 AND 9");
    char *before = dump_sql(db, ALL_ROWS);
    while (!done)
        if (sealer_step(sealer, &limits, &done, &sealed, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    sealer_free(sealer);
    open_all();
    assert_same_rows(before);
    sqlite3_free(before);
    drop_store();
}

// ---- What others hung on the table ------------------------------------------------------

static void test_foreign_things_stay(void **state)
{
    (void)state;
    static const struct {
        const char *make, *drop, *name;
    } things[] = {
        {"ALTER TABLE inference ADD COLUMN note TEXT", "ALTER TABLE inference DROP COLUMN note",
         "\"note\""},
        {"CREATE TRIGGER said AFTER DELETE ON Inference BEGIN SELECT 1; END", "DROP TRIGGER said",
         "\"said\""},
        {"CREATE TABLE remark(of INTEGER REFERENCES INFERENCE(id) ON DELETE CASCADE, text TEXT)",
         "DROP TABLE remark", "\"remark\""},
    };
    make_random(ROWS_MAX);
    char *before = dump_sql(db, ALL_ROWS);
    for (size_t i = 0; i < COUNT_OF(things); i++) {
        struct error err = {.text = ""};
        struct sealer *sealer = NULL;
        const struct sealer_limits limits = {INT64_MAX, INT64_MAX, SEGMENT_ROWS};
        bool done = false;
        uint32_t sealed = 0;
        exec(things[i].make);
        assert_int_equal(sealer_new(&sealer, db, RECORD_KIND_INFERENCE, &err), STATUS_OK);
        assert_int_equal(sealer_step(sealer, &limits, &done, &sealed, &err), STATUS_UNSUPPORTED);
        assert_non_null(strstr(err.text, things[i].name));
        // It looks again once the thing has gone, and before the rows go.
        exec(things[i].drop);
        for (unsigned step = 0; step < 4; step++)
            assert_int_equal(sealer_step(sealer, &limits, &done, &sealed, &err), STATUS_OK);
        exec(things[i].make);
        enum status status = STATUS_OK;
        while (status == STATUS_OK && !done)
            status = sealer_step(sealer, &limits, &done, &sealed, &err);
        assert_int_equal(status, STATUS_UNSUPPORTED);
        sealer_free(sealer);
        exec(things[i].drop);
        assert_int_equal(ask(db, "SELECT count(*) FROM sealed"), 0);
        assert_same_rows(before);
    }
    sqlite3_free(before);
    drop_store();
}

// A table that would be read in place of the sealed rows is refused, by readers and writers.
static void test_hidden_rows_are_refused(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    struct store *store = NULL;
    sqlite3 *writer = NULL;
    make_random(20);
    exec("CREATE VIEW Sealed_Inference AS SELECT 1");
    assert_int_equal(store_open(&store, sqlite3_db_filename(db, "main"), &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "sealed_inference"));
    assert_int_equal(database_open_writer(&writer, sqlite3_db_filename(db, "main"), &err),
                     STATUS_UNSUPPORTED);
    drop_store();
}

// A clock that is hours behind would make a segment span them, and be read for all of them.
static void test_late_rows_stay(void **state)
{
    (void)state;
    make_random(ROWS_MAX);
    exec("UPDATE inference SET received_after_ns = 2 * 3600000000000 WHERE id % 5 = 0");
    seal_all(SEGMENT_ROWS);
    assert_true(segments() > 2);
    assert_int_equal(ask(db, "SELECT count(*) FROM sealed_inference WHERE id % 5 = 0"), 0);
    drop_store();
}

// Nothing is put back into the table that may not go.
static void test_unfolded_rows_stay_sealed(void **state)
{
    (void)state;
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    const int64_t before = segments();
    const int64_t end_ns = rollup_bucket(ROLLUP_MINUTE, INT64_C(1900000000000000000));
    assert_int_equal(expire_all(db, end_ns, 0), 0);
    assert_int_equal(segments(), before);
    drop_store();
}

// Records that a new store takes of this one.
static int64_t import_into(const char *name)
{
    char *into = sqlite3_mprintf("%s/%s", folder, name);
    struct error err;
    sqlite3 *made = NULL;
    struct result *answer = NULL;
    if (database_open_writer(&made, into, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    database_close(made);
    if (store_import(into, path, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    sqlite3_free(into);
    const int64_t records = result_integer(answer, 0, "records", -1);
    result_free(answer);
    return records;
}

static void test_import_takes_sealed_rows(void **state)
{
    (void)state;
    make_random(ROWS_MAX);
    exec("DELETE FROM inference WHERE id % 53 = 0"); // texts are refused
    exec("UPDATE inference SET number = n FROM (SELECT id AS of, row_number() OVER"
         " (PARTITION BY run ORDER BY id) AS n FROM inference) WHERE id = of");
    exec("INSERT INTO stream(run, stream, next, produced, unnumbered)"
         " SELECT run, 0, count(*) + 1, count(*), 0 FROM inference GROUP BY run");
    exec("INSERT INTO range(run, stream, first, last, state)"
         " SELECT run, 0, 1, count(*), 0 FROM inference GROUP BY run");
    exec("UPDATE run SET produced = n, stored = n FROM (SELECT run AS of, count(*) AS n"
         " FROM inference GROUP BY run) WHERE run = of");
    execf("INSERT OR REPLACE INTO ledger(run, kind, stored) SELECT run, %d, count(*)"
          " FROM inference GROUP BY run",
          (int)RECORD_KIND_INFERENCE);
    const int64_t records = import_into("of-table.db");
    assert_true(records > 0);
    seal_all(SEGMENT_ROWS);
    assert_true(segments() > 0);
    assert_int_equal(import_into("of-sealed.db"), records);
    drop_store();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rows_come_back),
        TEST(test_table),
        TEST(test_queries_answer_the_same),
        TEST(test_summary_tells_sealed_rows),
        TEST(test_listing_goes_on),
        TEST(test_clear),
        TEST(test_expire),
        TEST(test_expiry_cuts),
        TEST(test_rows_go_meanwhile),
        TEST(test_foreign_things_stay),
        TEST(test_unfolded_rows_stay_sealed),
        TEST(test_hidden_rows_are_refused),
        TEST(test_late_rows_stay),
        TEST(test_import_takes_sealed_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
