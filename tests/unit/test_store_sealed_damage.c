// Damage to sealed rows: it is said, it takes nothing else along, and there are ways out.
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/result.h"
#include "common/store/clear.h"
#include "common/store/database.h"
#include "common/store/store.h"
#include "tests/support/rollup_builder.h"
#include "tests/unit/sealed_rig.h"

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

// Writes the first segment with a byte flipped.
static void flip(const unsigned char *bytes, size_t size, size_t place)
{
    sqlite3_stmt *stmt = NULL;
    unsigned char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    copy[place] ^= (unsigned char)(1U << pick(8));
    assert_int_equal(
        sqlite3_prepare_v2(db, "UPDATE sealed SET data = ? WHERE id = 1", -1, &stmt, NULL),
        SQLITE_OK);
    (void)sqlite3_bind_blob64(stmt, 1, copy, size, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
    free(copy);
}

static void assert_said(const struct query *query)
{
    struct error err = {.text = ""};
    struct result *answer = NULL;
    struct store *store = open_store();
    assert_int_equal(store_query(store, query, &answer, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "damaged"));
    store_close(store);
}

// A flipped byte of a segment is said by whoever reads it.
static void test_damage_is_said(void **state)
{
    (void)state;
    const struct query average = {.kind = QUERY_AVERAGE,
                                  .metric = "inference.e2e_ns",
                                  .group_by = {QUERY_BY_RUN},
                                  .group_count = 1};
    const struct query audit = {.kind = QUERY_AUDIT};
    sqlite3_stmt *stmt = NULL;
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT data FROM sealed WHERE id = 1", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const size_t size = (size_t)sqlite3_column_bytes(stmt, 0);
    unsigned char *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, sqlite3_column_blob(stmt, 0), size);
    (void)sqlite3_finalize(stmt);
    for (unsigned i = 0; i < 12; i++) {
        flip(bytes, size, (size_t)pick((int64_t)size));
        assert_said(&average);
    }
    assert_said(&audit);
    free(bytes);
    drop_store();
}

// So are numbers beside the bytes.
static void test_wrong_numbers_are_said(void **state)
{
    (void)state;
    const struct query audit = {.kind = QUERY_AUDIT};
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    exec("UPDATE sealed SET last_started_ns = last_started_ns + 1 WHERE id = 1");
    assert_said(&audit);
    drop_store();
}

// ---- Ways out -----------------------------------------------------------------------------

// Whoever reads through the virtual table says which rows, and what helps.
static void test_damage_names_the_way_out(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    int64_t sum = 0;
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    damage(1);
    assert_int_equal(database_integer(db, "SELECT sum(e2e_ns) FROM sealed_inference", &sum, &err),
                     STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "sealed rows "));
    assert_non_null(strstr(err.text, "clear --since "));
    drop_store();
}

// All is as if the rows had been there: the ledgers too.
static void test_damage_is_cleared(void **state)
{
    (void)state;
    struct error err;
    char other[FOLDER_PATH_SIZE];
    sqlite3 *plain = NULL;
    const struct query_filter all = {.since_ns = 0};
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    execf("VACUUM INTO '%s'", folder_path(other, folder, "plain.db"));
    if (database_open_writer(&plain, other, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    damage(2);
    clear_both(&all, db);
    clear_both(&all, plain);
    assert_int_equal(segments(), 0);
    assert_same_text(dump_sql(db, LEDGER), dump_sql(plain, LEDGER));
    database_close(plain);
    drop_store();
}

// What only a part of is to go stays, and the rest goes all the same.
static void test_damage_is_left(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    struct query_filter filter = {.since_ns = 0};
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    damage(1);
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", rig_names[0]);
    const int64_t hot = ask(db, "SELECT count(*) FROM inference");
    const int64_t before = ask(db, "SELECT sum(rows) FROM sealed");
    assert_int_equal(clear_to_end(&filter, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "clear --since "));
    assert_true(ask(db, "SELECT count(*) FROM inference") < hot);
    assert_true(ask(db, "SELECT sum(rows) FROM sealed") < before);
    assert_int_equal(ask(db, "SELECT count(*) FROM sealed WHERE id = 1"), 1);
    drop_store();
}

// Expiry takes it when all of it is old enough, and goes on beside it until then.
static void test_damage_expires(void **state)
{
    (void)state;
    struct error err;
    char other[FOLDER_PATH_SIZE];
    sqlite3 *plain = NULL;
    make_random(ROWS_MAX);
    seal_all(SEGMENT_ROWS);
    exec("DELETE FROM rollup_gap"); // nothing waits for rows
    execf("VACUUM INTO '%s'", folder_path(other, folder, "plain.db"));
    if (database_open_writer(&plain, other, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    damage(1);
    damage(3);
    exec("UPDATE sealed SET runs = x'00' WHERE id = 2"); // its rows can be read
    const int64_t last_ns = ask(db, "SELECT last_started_ns FROM sealed WHERE id = 1");
    (void)expire_all(db, rollup_bucket(ROLLUP_MINUTE, last_ns), INT64_MAX);
    assert_int_equal(ask(db, "SELECT count(*) FROM sealed WHERE id = 1"), 1);
    const int64_t end_ns = rollup_bucket(ROLLUP_MINUTE, INT64_C(1900000000000000000));
    (void)expire_all(db, end_ns, INT64_MAX);
    (void)expire_all(plain, end_ns, INT64_MAX);
    assert_int_equal(segments(), 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM inference"), 0);
    assert_same_text(dump_sql(db, LEDGER), dump_sql(plain, LEDGER));
    database_close(plain);
    drop_store();
}

// ---- Clearing beside damage ---------------------------------------------------------------

// Records follow each other by seven minutes, all of them are in rollups and sealed, and
// a segment in the middle is damaged.
enum { DAMAGED = 4 };

static void make_beside(void)
{
    static const char *const names[] = {"inference.e2e_ns", "inference.ttft_ns"};
    make_random(ROWS_MAX);
    execf("UPDATE inference SET started_ns = %lld + 420000000000 * id, finish = 0,"
          " e2e_ns = 1000 + id, ttft_ns = id, model = 6 + id %% 3, received_after_ns = 1000",
          (long long)MARCH_NS);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        rollup_builder_fill(db, metric_of(names[i]), ROWS_MAX, false);
    seal_all(SEGMENT_ROWS);
    assert_true(segments() > DAMAGED + 1);
    damage(DAMAGED);
}

// The average of one model over all time, as its count, sum and note.
struct figures {
    int64_t count;
    double mean;
    bool has_note;
};

static enum status average_of(const char *model, int64_t since_ns, struct figures *out,
                              struct error *err)
{
    struct query query = {.kind = QUERY_AVERAGE, .metric = "inference.e2e_ns"};
    struct result *answer = NULL;
    struct store *store = open_store();
    query.filter.since_ns = since_ns;
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", model);
    enum status status = store_query(store, &query, &answer, err);
    if (status == STATUS_OK) {
        struct value note = {.type = VALUE_NULL};
        for (unsigned c = 0; c < result_column_count(answer); c++)
            if (strcmp(result_column(answer, c)->key, "note") == 0)
                note = result_cell(answer, 0, c);
        *out = (struct figures){result_integer(answer, 0, "count", -1),
                                result_number(answer, 0, "mean", -1), note.type == VALUE_TEXT};
        result_free(answer);
    }
    store_close(store);
    return status;
}

static void assert_average(const char *model, const struct figures *expected)
{
    struct error err = {.text = ""};
    struct figures found = {0, 0, false};
    if (average_of(model, 0, &found, &err) != STATUS_OK)
        fail_msg("%s: %s", model, err.text);
    assert_int_equal(found.count, expected->count);
    assert_true(found.mean == expected->mean);
}

// What shares an hour with damage stays, so that rollups go on to stand for that hour;
// all else goes, and nothing is taken from other models.
static void test_clear_beside_damage(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    struct query_filter filter = {.since_ns = 0};
    struct figures before[2] = {{0, 0, false}, {0, 0, false}};
    make_beside();
    for (int i = 0; i < 2; i++)
        assert_int_equal(average_of(rig_names[6 + i], 0, &before[i], &err), STATUS_OK);
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", rig_names[5]);
    assert_int_equal(clear_to_end(&filter, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "damaged"));
    for (int i = 0; i < 2; i++)
        assert_average(rig_names[6 + i], &before[i]);
    assert_int_equal(
        ask(db, "SELECT count(*) FROM rollup_gap g, sealed s WHERE s.id = 4 AND g.until_ns >"
                " s.first_started_ns AND g.since_ns <= s.last_started_ns"),
        0);
    exec("CREATE TEMP TABLE hour AS SELECT min(first_started_ns) / 3600000000000 AS first,"
         " max(last_started_ns) / 3600000000000 AS last FROM sealed WHERE id = 4");
    exec("CREATE TEMP TABLE whole AS SELECT id, model, started_ns FROM inference");
    exec("INSERT INTO whole SELECT i.id, model, started_ns FROM sealed s, sealed_inference i"
         " WHERE s.id <> 4 AND i.id BETWEEN s.first_id AND s.last_id");
    assert_int_equal(ask(db, "SELECT count(*) FROM whole, hour WHERE model = 6 AND"
                             " started_ns / 3600000000000 NOT BETWEEN first AND last"),
                     0);
    drop_store();
}

// So does what a window covers only in part; what the message says helps, and then the
// rest can go.
static void test_clear_after_damage(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    struct query_filter filter = {.since_ns = 0};
    make_beside();
    damage(DAMAGED + 1); // shares an hour with the one before
    filter.until_ns = ask(db, "SELECT (first_started_ns + last_started_ns) / 2 FROM sealed"
                              " WHERE id = 5");
    assert_int_equal(clear_to_end(&filter, &err), STATUS_CORRUPT);
    assert_int_equal(ask(db, "SELECT count(*) FROM sealed WHERE id IN (4, 5)"), 2);
    filter.since_ns = ask(db, "SELECT first_started_ns FROM sealed WHERE id = 4");
    filter.until_ns = ask(db, "SELECT last_started_ns + 1 FROM sealed WHERE id = 5");
    if (clear_to_end(&filter, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    filter = (struct query_filter){.since_ns = 0};
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", rig_names[5]);
    if (clear_to_end(&filter, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(ask(db, "SELECT (SELECT count(*) FROM inference WHERE model = 6) +"
                             " (SELECT count(*) FROM sealed_inference WHERE model = 6)"),
                     0);
    drop_store();
}

// Rollups that wait for rows nobody can read do not keep them for ever.
static void test_awaited_damage_expires(void **state)
{
    (void)state;
    const int64_t end_ns = rollup_bucket(ROLLUP_MINUTE, INT64_C(1900000000000000000));
    make_beside();
    exec("DELETE FROM rollup_gap");
    execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why) SELECT %d, 0,"
          " %d, min(first_started_ns), max(last_started_ns), %d FROM sealed WHERE id >= 3",
          (int)RECORD_KIND_INFERENCE, (int)ROLLUP_MONTH, (int)ROLLUP_CLEARED);
    const int64_t all = segments();
    (void)expire_all(db, end_ns, INT64_MAX);
    assert_int_equal(ask(db, "SELECT count(*) FROM sealed WHERE id IN (1, 2, 4)"), 0);
    assert_int_equal(segments(), all - 3);
    drop_store();
}

// ---- What is said of a segment --------------------------------------------------------------

// How many rows it says it has, beyond any limit and within.
static const int64_t wrong_rows[] = {INT64_MAX, INT64_MIN, -1, 0, 1, SEGMENT_ROWS - 1};

static void assert_backup(int64_t whole_rows, int64_t damaged)
{
    struct error err = {.text = ""};
    struct query query = {.kind = QUERY_COPY};
    struct result *answer = NULL;
    (void)folder_path(query.path, folder, "copy.db");
    struct store *store = open_store();
    if (store_query(store, &query, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    store_close(store);
    assert_int_equal(result_integer(answer, 0, "inference", -1), whole_rows);
    assert_int_equal(result_integer(answer, 0, "damaged", -1), damaged);
    result_free(answer);
    (void)remove(query.path);
}

static void test_wrong_counts(void **state)
{
    (void)state;
    const struct query_filter all = {.since_ns = 0};
    for (size_t i = 0; i < COUNT_OF(wrong_rows); i++) {
        struct error err = {.text = ""};
        struct clearing clearing;
        bool done = false;
        make_random(ROWS_MAX);
        seal_all(SEGMENT_ROWS);
        assert_backup(ROWS_MAX, 0);
        execf("UPDATE sealed SET rows = %lld WHERE id = 2", (long long)wrong_rows[i]);
        assert_backup(ROWS_MAX - SEGMENT_ROWS, 1);
        if (clear_begin(&clearing, db, &all, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        while (!done)
            if (clear_slice(&clearing, db, &done, &err) != STATUS_OK)
                fail_msg("%s", err.text);
        assert_int_equal(clearing.cleared, ROWS_MAX - SEGMENT_ROWS);
        assert_int_equal(segments(), 0);
        drop_store();
    }
}

static void test_wrong_counts_expire(void **state)
{
    (void)state;
    const int64_t end_ns = rollup_bucket(ROLLUP_MINUTE, INT64_C(1900000000000000000));
    for (size_t i = 0; i < COUNT_OF(wrong_rows); i++) {
        make_random(ROWS_MAX);
        exec("DELETE FROM rollup_gap");
        seal_all(SEGMENT_ROWS);
        execf("UPDATE sealed SET rows = %lld WHERE id = 2", (long long)wrong_rows[i]);
        assert_int_equal(expire_all(db, end_ns, INT64_MAX), ROWS_MAX - SEGMENT_ROWS + 1);
        assert_int_equal(segments(), 0);
        drop_store();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_damage_is_said),           TEST(test_wrong_numbers_are_said),
        TEST(test_damage_names_the_way_out), TEST(test_damage_is_cleared),
        TEST(test_damage_is_left),           TEST(test_damage_expires),
        TEST(test_clear_beside_damage),      TEST(test_clear_after_damage),
        TEST(test_awaited_damage_expires),   TEST(test_wrong_counts),
        TEST(test_wrong_counts_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
