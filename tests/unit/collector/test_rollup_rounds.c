// A step of folding is short, and what is cleared in the midst
// of a round leaves nothing half done.

#include <sqlite3.h>

#include "common/store/retention/clear.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "server/collector/rollup/rollup_metrics.h"
#include "server/collector/threads/queue.h"
#include "tests/support/test.h"
#include "tests/unit/collector/rollup_rig.h"

// 2026-03-29 22:30 UTC.
#define BASE_NS INT64_C(1774823400000000000)

#define HOUR_NS INT64_C(3600000000000)

enum { BATCH = 12 };

static void insert_batch(enum record_kind kind, int64_t run)
{
    struct record records[BATCH];
    for (unsigned r = 0; r < BATCH; r++)
        rollup_rig_record(&records[r], kind, BASE_NS);
    rollup_rig_exec("BEGIN IMMEDIATE");
    rollup_rig_insert(records, BATCH, run);
    rollup_rig_exec("COMMIT");
}

static void clear_all(const struct query_filter *filter)
{
    struct error err = {0};
    struct clearing clearing;
    bool done = false;
    assert_int_equal(clear_begin(&clearing, rollup_rig.db, filter, &err), STATUS_OK);
    while (!done) {
        const int at = clearing.kind;
        expect_ok(clear_slice(&clearing, rollup_rig.db, &done, &err), &err);
        if (at != RECORD_KIND_RUN)
            rollups_rows_removed(rollup_rig.rollups, (enum record_kind)at);
    }
}

enum { MINUTES = 400, MINUTE_RECORDS = 800 };

// Records of the kind startup, most of which have a minute for themselves.
static void insert_minutes(void)
{
    static struct record records[MINUTE_RECORDS];
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (unsigned i = 0; i < MINUTE_RECORDS; i++) {
        rollup_rig_record(&records[i], RECORD_KIND_STARTUP, BASE_NS);
        records[i].started_ns = BASE_NS + (int64_t)(i % MINUTES) * 60000000000;
    }
    rollup_rig_insert(records, MINUTE_RECORDS, 1);
    rollup_rig_exec("COMMIT");
}

// Folds a step as it is done while others wait; says how many rows it wrote.
static int64_t fold_step(void)
{
    struct error err = {0};
    bool left = false;
    const int64_t before = sqlite3_total_changes64(rollup_rig.db);
    rollup_rig_exec("BEGIN IMMEDIATE");
    if (rollups_flush(rollup_rig.rollups, ROLLUPS_ONE, clock_monotonic_ns(), &left, &err) !=
        STATUS_OK)
        fail_msg("%s", err.text);
    rollup_rig_exec("COMMIT");
    return sqlite3_total_changes64(rollup_rig.db) - before;
}

// Whether the tables have all of them, in all metrics.
static bool all_is_in(void)
{
    return rollup_rig_integer("SELECT count(*) FROM rollup_state WHERE metric / 256 = 3"
                              " AND watermark = (SELECT max(id) FROM startup)") ==
           rollup_metrics_of(RECORD_KIND_STARTUP)->count;
}

// However many rows a sheet makes, a step writes a few of them, and what is in the table
// then is what the watermark says.
TEST_CASE(a_step_writes_few_rows)
{
    // Of each metric four levels of two groupings for each of 128 minutes; their series, the
    // watermarks and a few gaps.
    enum { GROUPS = 128, STEPS_LEAST = MINUTES / GROUPS };
    const unsigned rows_most =
        rollup_metrics_of(RECORD_KIND_STARTUP)->count * (8 * GROUPS + 1) + 32;
    struct queue *inbox = NULL;
    insert_minutes();
    assert_int_equal(queue_new(&inbox, 1, 1, NULL), STATUS_OK);
    assert_true(queue_push(inbox, &inbox, 1));
    rollups_watch(rollup_rig.rollups, inbox);
    unsigned steps = 0;
    for (; !all_is_in(); steps++) {
        assert_true(steps < 1000);
        assert_in_range(fold_step(), 0, rows_most);
        if (steps == 1)
            rollup_rig_check(RECORD_KIND_STARTUP, 1);
    }
    assert_true(steps >= STEPS_LEAST);
    rollups_watch(rollup_rig.rollups, NULL);
    (void)queue_pop(inbox);
    queue_free(inbox, NULL);
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
}

// Reading that finds all there is says so where it wrote that down: nothing else of it
// tells the checkpoint that there is a commit.
TEST_CASE(reading_says_what_it_committed)
{
    insert_batch(RECORD_KIND_OPERATION, 1);
    rollup_rig_fold_all();
    insert_batch(RECORD_KIND_OPERATION, 1);
    rollup_rig_exec("DELETE FROM operation WHERE id > (SELECT max(watermark) FROM rollup_state)");
    rollups_rows_removed(rollup_rig.rollups, RECORD_KIND_OPERATION);
    unsigned commits = 0;
    for (unsigned i = 0; rollups_are_behind(rollup_rig.rollups, rollup_rig.now_ns); i++) {
        assert_true(i < 100);
        commits += rollups_catch_up(rollup_rig.rollups, rollup_rig.now_ns, false);
    }
    assert_int_equal(commits, 1);
    assert_false(rollups_catch_up(rollup_rig.rollups, rollup_rig.now_ns, false));
    assert_int_equal(rollup_rig_integer("SELECT count(DISTINCT watermark) FROM rollup_state"
                                        " WHERE metric / 256 = (SELECT max(metric) / 256"
                                        " FROM rollup_state)"),
                     1);
}

// What is cleared while a sheet is being written is counted nowhere, without any new record.
TEST_CASE(a_clear_in_mid_sheet_is_counted_nowhere)
{
    static const char *const hosts[] = {"", "host-1"};
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        struct query_filter filter = {0};
        (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", hosts[i]);
        insert_batch(RECORD_KIND_OPERATION, 1);
        rollup_rig_fold_all();
        insert_batch(RECORD_KIND_OPERATION, 1);
        insert_batch(RECORD_KIND_OPERATION, 2); // of host-1
        rollup_rig_fold(ROLLUPS_ONE);
        clear_all(&filter);
        rollup_rig_fold_all();
        rollup_rig_rebuild();
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
        rollup_rig_check(RECORD_KIND_OPERATION, 1);
    }
}

enum { OLDER_RECORDS = 200000, OLDER_BATCH = 2000 };
#define OLDER_STEP_NS (INT64_C(365) * 86400000000000 / OLDER_RECORDS)

// Records of a year, a few minutes apart, that no rollups know of.
static void insert_year(void)
{
    static struct record records[OLDER_BATCH];
    inserter_set_rollups(rollup_rig.inserter, NULL);
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (int64_t at = 0; at < OLDER_RECORDS; at += OLDER_BATCH) {
        for (int64_t i = 0; i < OLDER_BATCH; i++) {
            const uint64_t chance = test_random(&rollup_rig.random);
            struct record *record = &records[i];
            record_init(record, RECORD_KIND_OPERATION,
                        BASE_NS - (OLDER_RECORDS - at - i) * OLDER_STEP_NS);
            record_set_name(record, OPERATION_OPERATION, 1 + (uint32_t)(chance % ROLLUP_RIG_NAMES));
            record_set_int(record, OPERATION_DURATION_NS, (int64_t)(chance >> 30));
            if (chance % 3 > 0)
                record_set_int(record, OPERATION_ITEMS, (int64_t)(chance >> 50));
        }
        rollup_rig_insert(records, OLDER_BATCH, 1 + at / OLDER_BATCH % ROLLUP_RIG_RUNS);
    }
    rollup_rig_exec("COMMIT");
}

// All that is of a month is in its rows, whatever else is kept.
static void check_months(void)
{
    static const char wrong[] =
        "WITH months AS (SELECT strftime('%%s', t.started_ns / 1000000000, 'unixepoch', 'start of"
        " month') * 1000000000 AS month, r.host AS host, t.operation AS operation,"
        " count(%s) AS count, sum(%s) AS sum FROM operation t JOIN run r USING(run)"
        " GROUP BY 1, 2, 3), kept AS (SELECT x.started_ns AS month, s.host AS host,"
        " s.operation AS operation, x.count AS count, x.sum AS sum FROM rollup x"
        " JOIN series s ON s.id = x.series WHERE x.metric = %d AND x.grouping = 0 AND x.level = 3)"
        " SELECT (SELECT count(*) FROM (SELECT * FROM months EXCEPT SELECT * FROM kept))"
        " + (SELECT count(*) FROM (SELECT * FROM kept EXCEPT SELECT * FROM months))";
    static const struct {
        const char *column;
        int place;
    } columns[] = {{"duration_ns", OPERATION_DURATION_NS}, {"items", OPERATION_ITEMS}};
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        assert_int_equal(
            rollup_rig_integer(format_text(wrong, columns[i].column, columns[i].column,
                                           256 * RECORD_KIND_OPERATION + columns[i].place)),
            0);
    }
}

// Each level has the records of all hours that are in none of its gaps.
static void check_levels(void)
{
    rollup_rig_exec("CREATE TEMP TABLE hours AS SELECT started_ns / 3600000000000 * 3600000000000"
                    " AS hour, count(*) AS count FROM operation GROUP BY 1");
    for (int place = 0; place < ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT; place++) {
        const int grouping = place / ROLLUP_LEVEL_COUNT, level = place % ROLLUP_LEVEL_COUNT;
        if (rollup_rig_integer(format_text(
                "SELECT (SELECT total(count) FROM rollup WHERE metric = %d AND grouping ="
                " %d AND level = %d) = (SELECT total(count) FROM hours WHERE NOT EXISTS"
                " (SELECT 1 FROM rollup_gap WHERE kind = %d AND grouping = %d AND"
                " level >= %d AND since_ns <= hour AND until_ns > hour))",
                256 * RECORD_KIND_OPERATION + OPERATION_DURATION_NS, grouping, level,
                RECORD_KIND_OPERATION, grouping, level)) != 1)
            fail_msg("grouping %d, level %d", grouping, level);
    }
}

// What does not pay is not even made, however the records lie in sheets.
TEST_CASE(a_large_older_store_is_caught_up_with)
{
    insert_year();
    rollup_rig_restart();
    rollups_tell_time(rollup_rig.rollups, BASE_NS + INT64_C(86400000000000));
    for (unsigned rounds = 0;
         rollup_rig_integer("SELECT coalesce(min(watermark), 0) < (SELECT max(id) FROM operation)"
                            " FROM rollup_state");
         rounds++) {
        assert_true(rounds < 100);
        rollup_rig_fold_all();
    }
    check_months();
    check_levels();
    assert_in_range(rollup_rig_integer("SELECT count(*) FROM rollup_gap"), 4, 200);
    assert_in_range(rollup_rig_integer("SELECT count(*) FROM rollup"), 1, OLDER_RECORDS / 2);
}

// How many records an average of all time reads.
static int64_t rows_read(void)
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    const struct query query = {.kind = QUERY_AVERAGE, .metric = "operation.duration_ns"};
    expect_ok(store_open(&store, rollup_rig.path, &err), &err);
    expect_ok(store_query(store, &query, &result, &err), &err);
    const int64_t rows = result_integer(result, 0, "rows", -1);
    assert_int_equal(result_integer(result, 0, "count", -1),
                     rollup_rig_integer("SELECT count(*) FROM operation"));
    result_free(result);
    store_close(store);
    return rows;
}

// Records of both hosts around the start of a window, enough of them for rollups of minutes.
static void insert_dense(enum record_kind kind)
{
    static struct record records[200];
    const struct record_kind_info *info = record_kind_info(kind);
    rollup_rig_exec("BEGIN IMMEDIATE");
    for (int64_t run = 1; run <= 2; run++) {
        for (unsigned i = 0; i < COUNT_OF(records); i++) {
            rollup_rig_record(&records[i], kind, BASE_NS);
            records[i].started_ns = BASE_NS + HOUR_NS - 120000000000 + (int64_t)i * 1200000000;
            for (unsigned c = 0; c < info->column_count; c++)
                if (info->columns[c].type == COLUMN_NAME)
                    record_set_name(&records[i], c, 1);
        }
        rollup_rig_insert(records, COUNT_OF(records), run);
    }
    rollup_rig_exec("COMMIT");
}

// What a query says, by host.
struct answer {
    int64_t rows;
    double values[2][3];
};

static struct answer ask(const char *metric, const char *const columns[3])
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    struct answer answer = {0};
    struct query query = {.kind = QUERY_AVERAGE, .group_by = {QUERY_BY_HOST}, .group_count = 1};
    query.filter.since_ns = BASE_NS + HOUR_NS;
    query.filter.until_ns = BASE_NS + 2 * HOUR_NS;
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    expect_ok(store_open(&store, rollup_rig.path, &err), &err);
    expect_ok(store_query(store, &query, &result, &err), &err);
    answer.rows = (int64_t)result_row_count(result);
    assert_in_range(answer.rows, 1, 2);
    for (size_t row = 0; row < result_row_count(result); row++)
        for (unsigned i = 0; i < 3; i++)
            answer.values[row][i] = result_number(result, row, columns[i], -1);
    result_free(result);
    store_close(store);
    return answer;
}

// While some hosts of a metric have more records in rollups than others, each record counts once.
TEST_CASE(queries_are_exact_in_the_midst_of_a_pass)
{
    static const struct {
        enum record_kind kind;
        const char *metric, *columns[3];
    } cases[] = {
        {RECORD_KIND_DEVICE_SAMPLE, "power_watts", {"count", "min", "max"}},
        {RECORD_KIND_INFERENCE, "inference.e2e_ns", {"count", "min", "max"}},
        {RECORD_KIND_INFERENCE, "request_rate", {"count", "count", "mean"}},
    };
    rollup_rig_by_metrics();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const unsigned parts = 2 * rollup_metrics_of(cases[i].kind)->count;
        insert_dense(cases[i].kind);
        rollup_rig_fold_all();
        assert_true(rollup_rig_integer(format_text("SELECT count(*) FROM rollup WHERE grouping = 0"
                                                   " AND level = 0 AND metric / 256 = %d",
                                                   (int)cases[i].kind)) > 0);
        insert_dense(cases[i].kind);
        const struct answer before = ask(cases[i].metric, cases[i].columns);
        for (unsigned part = 0; part < parts; part++) {
            rollup_rig_fold(ROLLUPS_ONE);
            assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_state"
                                                " WHERE ahead_host > 0"),
                             (part + 1) % 2);
            const struct answer now = ask(cases[i].metric, cases[i].columns);
            assert_memory_equal(&now, &before, sizeof now);
        }
    }
}

// The note of an average of one host.
static const char *note_of(const char *host)
{
    static char note[256];
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    struct query query = {.kind = QUERY_AVERAGE, .metric = "inference.e2e_ns"};
    query.filter.since_ns = BASE_NS + HOUR_NS;
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", host);
    expect_ok(store_open(&store, rollup_rig.path, &err), &err);
    expect_ok(store_query(store, &query, &result, &err), &err);
    const struct value value = result_cell(result, 0, (unsigned)result_find(result, "note"));
    (void)snprintf(note, sizeof note, "%s", value.type == VALUE_NULL ? "" : value.text.bytes);
    result_free(result);
    store_close(store);
    return note;
}

// Of the host that they are of.
TEST_CASE(implausible_times_are_told)
{
    struct record record;
    insert_dense(RECORD_KIND_INFERENCE);
    rollup_rig_record(&record, RECORD_KIND_INFERENCE, BASE_NS);
    record_set_int(&record, INFERENCE_E2E_NS, 5);
    record.started_ns = 0;
    const struct record records[] = {record, record};
    rollup_rig_exec("BEGIN IMMEDIATE");
    rollup_rig_insert(records, COUNT_OF(records), 2);
    rollup_rig_exec("COMMIT");
    rollup_rig_fold_all();
    assert_non_null(strstr(note_of("host-1"), "implausible times"));
    assert_string_equal(note_of("host-2"), "");
}

// Records of any time of a year come a few at once: no day has enough of them for a row of its own.
// An average of all time reads the months, however many such records there are in the end.
TEST_CASE(records_of_a_year_leave_few_to_read)
{
    enum { ROUNDS = 10, COUNT = 600 };
    static struct record records[COUNT];
    rollups_tell_time(rollup_rig.rollups, BASE_NS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            const int64_t minutes = (int64_t)(test_random(&rollup_rig.random) % (365 * 1440));
            record_init(&records[i], RECORD_KIND_OPERATION, BASE_NS - minutes * 60000000000);
            record_set_name(&records[i], OPERATION_OPERATION, 1);
            record_set_int(&records[i], OPERATION_DURATION_NS, i);
        }
        rollup_rig_exec("BEGIN IMMEDIATE");
        rollup_rig_insert(records, COUNT, 1);
        rollup_rig_exec("COMMIT");
        rollup_rig_fold_all();
    }
    assert_in_range(rows_read(), 0, COUNT);
}

TEST_MAIN_EACH(rollup_rig_set_up, rollup_rig_tear_down, a_step_writes_few_rows,
               reading_says_what_it_committed, a_large_older_store_is_caught_up_with,
               a_clear_in_mid_sheet_is_counted_nowhere, records_of_a_year_leave_few_to_read,
               queries_are_exact_in_the_midst_of_a_pass, implausible_times_are_told)
