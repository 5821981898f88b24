// Bundles of what has expired: their rollups say what the store's say, of any filter,
// window and grouping; and no more than the window.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/expire.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/bundle_rig.h"
#include "tests/unit/rollup_rig.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define MARCH_NS  INT64_C(1772323200000000000) // 2026-03-01 00:00

enum { DAYS = 50, RECORDS_A_DAY = 8 };

// Requests of fifty days from March on, all in rollups; the rig's absurd times among them.
static void make_history(void)
{
    rollup_rig_exec("BEGIN");
    for (int64_t day = 0; day < DAYS; day++) {
        struct record records[RECORDS_A_DAY];
        for (int i = 0; i < RECORDS_A_DAY; i++)
            rollup_rig_record(&records[i], RECORD_KIND_INFERENCE,
                              MARCH_NS + day * DAY_NS + i * 3 * HOUR_NS);
        rollup_rig_insert(records, RECORDS_A_DAY, 1 + day % ROLLUP_RIG_RUNS);
    }
    rollup_rig_exec("COMMIT");
    for (unsigned i = 0;
         rollup_rig_integer("SELECT (SELECT min(watermark) FROM rollup_state"
                            " WHERE metric / 256 = (SELECT min(metric) / 256 FROM"
                            " rollup_state)) IS NOT (SELECT max(id) FROM inference)");
         i++) {
        assert_true(i < 100);
        rollup_rig_fold_all();
    }
}

// By nothing, model, host, both, with steps and without: over all of the bundle, and, of
// what is `inner`, over that.
static void compare_all(const struct query_filter *filter, const struct query_filter *inner,
                        const char *what)
{
    static const char *const metrics[] = {"inference.ttft_ns", "inference.tokens_per_second"};
    for (unsigned pick = 0; pick < 16; pick++) {
        struct query query = {.kind = QUERY_AVERAGE, .filter = pick & 1 ? *inner : *filter};
        (void)snprintf(query.metric, sizeof query.metric, "%s",
                       metrics[(pick ^ pick >> 1 ^ pick >> 2) & 1]);
        if (pick & 2)
            query.group_by[query.group_count++] = QUERY_BY_MODEL;
        if (pick & 4)
            query.group_by[query.group_count++] = QUERY_BY_HOST;
        query.step_ns = pick & 8 && query.filter.since_ns && query.filter.until_ns ? DAY_NS : 0;
        struct query of_bundle = query;
        if (!(pick & 1) && !query.step_ns) // the bundle holds nothing else
            of_bundle.filter = (struct query_filter){0};
        char text[512];
        (void)snprintf(text, sizeof text, "%s, %s, choice %u", what, query.metric, pick);
        bundle_rig_compare(rollup_rig.path, &query, bundle_rig_path, &of_bundle, text);
    }
}

static struct query_filter filter_of(int64_t since_ns, int64_t until_ns, const char *model,
                                     const char *host)
{
    struct query_filter filter = {.since_ns = since_ns, .until_ns = until_ns};
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", model);
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", host);
    return filter;
}

// ---- Tests ------------------------------------------------------------------------------

static const struct {
    const char *name;
    int64_t since_ns, until_ns; // 0: open
    const char *model, *host;
} windows[] = {
    {"all", 0, 0, "", ""},
    {"from within a month", MARCH_NS + 10 * DAY_NS, 0, "", ""},
    {"expired only", MARCH_NS + 3 * DAY_NS + 7 * MINUTE_NS, MARCH_NS + 9 * DAY_NS, "", ""},
    {"over the end of March", MARCH_NS + 29 * DAY_NS + HOUR_NS, MARCH_NS + 33 * DAY_NS, "", ""},
    {"up to a time after", MARCH_NS + 5 * DAY_NS, MARCH_NS + 42 * DAY_NS + HOUR_NS, "", ""},
    {"a model", MARCH_NS + 5 * DAY_NS, 0, "a", ""},
    {"a host", 0, MARCH_NS + 20 * DAY_NS, "", "host-1"},
    {"a model on a host", MARCH_NS + 2 * HOUR_NS, 0, "b", "host-2"},
    {"records only", MARCH_NS + 45 * DAY_NS, 0, "", ""},
};

// The windows from `first` on, every so many.
static void compare_windows(int64_t align_ns, size_t first, size_t every, void (*then)(void))
{
    for (size_t i = first; i < COUNT_OF(windows); i += every) {
        const struct query_filter filter =
            filter_of(windows[i].since_ns / align_ns * align_ns,
                      windows[i].until_ns / align_ns * align_ns, windows[i].model, windows[i].host);
        struct query_filter inner = filter;
        inner.since_ns = MARCH_NS + 46 * DAY_NS;
        if (!filter.until_ns || filter.until_ns > MARCH_NS + 7 * DAY_NS) {
            inner.since_ns =
                filter.since_ns > MARCH_NS + 6 * DAY_NS ? filter.since_ns : MARCH_NS + 6 * DAY_NS;
            inner.until_ns = filter.until_ns && filter.until_ns < MARCH_NS + 43 * DAY_NS
                                 ? filter.until_ns
                                 : MARCH_NS + 47 * DAY_NS;
        }
        bundle_rig_make(&filter, windows[i].name);
        if (then)
            then();
        compare_all(&filter, &inner, windows[i].name);
    }
}

static void test_a_bundle_of_what_has_expired_answers_as_the_store_does(void **state)
{
    (void)state;
    make_history();
    bundle_rig_expire(MARCH_NS + 40 * DAY_NS + 5 * HOUR_NS + 17 * MINUTE_NS);
    compare_windows(MINUTE_NS, 0, 1, NULL);
}

// Minutes are gone, then hours too; of full series even days.
static void test_where_finer_rollups_are_gone_too(void **state)
{
    (void)state;
    make_history();
    bundle_rig_expire(MARCH_NS + 40 * DAY_NS);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        bundle_rig_expire_rollups((enum rollup_grouping)g, ROLLUP_MINUTE, MARCH_NS + 38 * DAY_NS);
        bundle_rig_expire_rollups((enum rollup_grouping)g, ROLLUP_HOUR, MARCH_NS + 31 * DAY_NS);
    }
    compare_windows(DAY_NS, 1, 2, NULL);
}

static void test_records_that_came_late(void **state)
{
    (void)state;
    make_history();
    bundle_rig_expire(MARCH_NS + 40 * DAY_NS);
    struct record records[20];
    for (size_t i = 0; i < COUNT_OF(records); i++)
        rollup_rig_record(&records[i], RECORD_KIND_INFERENCE, MARCH_NS + (int64_t)i * 2 * DAY_NS);
    rollup_rig_exec("BEGIN"); // of the past, in no rollup yet
    rollup_rig_insert(records, COUNT_OF(records), 2);
    rollup_rig_exec("COMMIT");
    compare_windows(MINUTE_NS, 0, 4, NULL);
}

// What a collector does that is started on a bundle.
static void collect_on_bundle(void)
{
    struct error err = {0};
    sqlite3 *db = NULL;
    struct rollups *rollups = NULL;
    if (database_open_writer(&db, bundle_rig_path, &err) != STATUS_OK ||
        rollups_new(&rollups, db, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (unsigned i = 0; rollups_are_behind(rollups, i); i++) {
        assert_true(i < 10000);
        rollups_catch_up(rollups, i, false);
    }
    for (unsigned i = 0; rollups_repair(rollups, 1); i++)
        assert_true(i < 100000);
    rollups_free(rollups);
    int64_t gaps = -1;
    assert_int_equal(
        database_integer(db, "SELECT count(*) FROM rollup_gap WHERE why = 2", &gaps, &err),
        STATUS_OK);
    assert_int_equal(gaps, 0);
    database_close(db);
}

static void test_a_collector_makes_the_rest(void **state)
{
    (void)state;
    make_history();
    bundle_rig_expire(MARCH_NS + 40 * DAY_NS + 5 * HOUR_NS + 17 * MINUTE_NS);
    compare_windows(MINUTE_NS, 1, 4, collect_on_bundle);
}

// ---- How it is made ---------------------------------------------------------------------

// Statements that read rollups, and how often they sorted.
static unsigned readings, sorts;

static int end_statement(unsigned event, void *context, void *stmt, void *took)
{
    (void)event;
    (void)context;
    (void)took;
    const char *sql = sqlite3_sql(stmt);
    if (!strstr(sql, "FROM main.rollup ") && !strstr(sql, "FROM bundle.rollup "))
        return 0;
    readings++;
    sorts += (unsigned)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, true);
    return 0;
}

static int watch(sqlite3 *db, char **error, const struct sqlite3_api_routines *routines)
{
    (void)error;
    (void)routines;
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, end_statement, NULL);
}

// However long the history is, none of its cells go through a sorter.
static void test_cells_come_by_the_index(void **state)
{
    (void)state;
    void (*const each)(void) = (void (*)(void))watch; // as SQLite would have it
    make_history();
    bundle_rig_expire(MARCH_NS + 40 * DAY_NS);
    assert_int_equal(sqlite3_auto_extension(each), SQLITE_OK);
    for (size_t i = 0; i < COUNT_OF(windows) - 1; i++) {
        const struct query_filter filter =
            filter_of(windows[i].since_ns, windows[i].until_ns, windows[i].model, windows[i].host);
        readings = sorts = 0;
        bundle_rig_make(&filter, windows[i].name);
        assert_true(readings > 0);
        if (sorts > 0)
            fail_msg("%s: %u sorts in %u readings", windows[i].name, sorts, readings);
    }
    assert_int_equal(sqlite3_cancel_auto_extension(each), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_bundle_of_what_has_expired_answers_as_the_store_does,
                                        bundle_rig_set_up, rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_where_finer_rollups_are_gone_too, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_records_that_came_late, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_a_collector_makes_the_rest, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_cells_come_by_the_index, bundle_rig_set_up,
                                        rollup_rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
