// Bundles of what has expired: their rollups say what the store's say, of any filter,
// window and grouping; and no more than the window.
#include <math.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/retention/expire.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"
#include "tests/unit/transfer/copy_fixture.h"
#include "tests/unit/collector/rollup_rig.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define MARCH_NS  INT64_C(1772323200000000000) // 2026-03-01 00:00

static char bundle_path[FOLDER_PATH_SIZE];

static int set_up(void **state)
{
    const int failed = rollup_rig_set_up(state);
    (void)folder_path(bundle_path, rollup_rig.folder, "bundle.db");
    return failed;
}

static void expire(int64_t before_ns)
{
    struct error err = {0};
    unsigned gone = 1;
    struct expire_rows rows = {.kind = RECORD_KIND_INFERENCE, .before_ns = before_ns, .count = 500};
    assert_int_equal(expire_last_id(rollup_rig.db, rows.kind, &rows.last_id, &err), STATUS_OK);
    while (gone > 0)
        expect_ok(expire_slice(rollup_rig.db, &rows, &gone, &err), &err);
}

static void expire_rollups(enum rollup_grouping grouping, enum rollup_level level,
                           int64_t before_ns)
{
    struct error err = {0};
    unsigned gone = 1;
    const struct expire_level rollups = {grouping, level, before_ns, 500};
    while (gone > 0)
        expect_ok(expire_level_slice(rollup_rig.db, &rollups, &gone, &err), &err);
}

static enum status ask_for_bundle(const struct query_filter *filter, struct result **out,
                                  struct error *err)
{
    struct query query = {.kind = QUERY_COPY, .file.bundle = true, .filter = *filter};
    (void)remove(format_text("%s-wal", bundle_path)); // of a collector that worked on the last one
    (void)remove(bundle_path);
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", bundle_path);
    return copy_ask(rollup_rig.path, &query, out, err);
}

static void make_bundle(const struct query_filter *filter, const char *what)
{
    struct error err = {0};
    struct result *answer = NULL;
    if (ask_for_bundle(filter, &answer, &err) != STATUS_OK)
        fail_msg("%s: %s", what, err.text);
    result_free(answer);
}

static bool is_near(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

static size_t find_row(const struct result *in, const struct result *of, size_t row,
                       unsigned dimensions)
{
    for (size_t r = 0; r < result_row_count(in); r++) {
        bool is = true;
        for (unsigned c = 0; c < dimensions && is; c++) {
            const struct value a = result_cell(in, r, c), b = result_cell(of, row, c);
            is = a.type == b.type && a.type == VALUE_TEXT
                     ? a.text.size == b.text.size &&
                           memcmp(a.text.bytes, b.text.bytes, a.text.size) == 0
                     : a.type == b.type && (a.type == VALUE_NULL || a.i == b.i);
        }
        if (is)
            return r;
    }
    return SIZE_MAX;
}

static void compare(const char *right, const struct query *asked, const char *path,
                    const struct query *asked_there, const char *what)
{
    static const char *const figures[] = {"count", "mean", "min", "max", "p50", "p95", "p99"};
    struct error err = {0};
    struct result *expected = NULL, *found = NULL;
    const enum status status = copy_ask(right, asked, &expected, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA)
        fail_msg("%s: what is right: %s", what, err.text);
    const enum status mine = copy_ask(path, asked_there, &found, &err);
    if (mine != status)
        fail_msg("%s: what is not: %s", what, err.text);
    const size_t rows = status == STATUS_OK ? result_row_count(expected) : 0;
    if (rows > 0 && result_row_count(found) != rows)
        fail_msg("%s: %zu rows, not %zu", what, result_row_count(found), rows);
    const unsigned dimensions = asked->group_count + (asked->step_ns > 0);
    for (size_t row = 0; row < rows; row++) {
        const size_t at = find_row(found, expected, row, dimensions);
        if (at == SIZE_MAX)
            fail_msg("%s: a row is missing", what);
        for (size_t i = 0; i < COUNT_OF(figures); i++) {
            const double a = result_number(expected, row, figures[i], NAN);
            const double b = result_number(found, at, figures[i], NAN);
            if (!is_near(a, b))
                fail_msg("%s: %s is %.17g, not %.17g", what, figures[i], b, a);
        }
    }
    result_free(expected);
    result_free(found);
}

enum { DAYS = 50, RECORDS_A_DAY = 8 };

// A random record.  Windows hold a time in the far future, but averages count it before 2020: a
// bundle of the window has it, and its average over all time counts it.
static void make_record(struct record *record, int64_t base_ns)
{
    do
        rollup_rig_record(record, RECORD_KIND_INFERENCE, base_ns);
    while (record->started_ns > base_ns + DAY_NS);
}

// Requests of fifty days from March on, all in rollups; the rig's absurd times among them.
static void make_history(void)
{
    rollup_rig_exec("BEGIN");
    for (int64_t day = 0; day < DAYS; day++) {
        struct record records[RECORDS_A_DAY];
        for (int i = 0; i < RECORDS_A_DAY; i++)
            make_record(&records[i], MARCH_NS + day * DAY_NS + i * 3 * HOUR_NS);
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
        compare(rollup_rig.path, &query, bundle_path, &of_bundle,
                format_text("%s, %s, choice %u", what, query.metric, pick));
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
        make_bundle(&filter, windows[i].name);
        if (then)
            then();
        compare_all(&filter, &inner, windows[i].name);
    }
}

TEST_CASE(test_a_bundle_of_what_has_expired_answers_as_the_store_does)
{
    make_history();
    expire(MARCH_NS + 40 * DAY_NS + 5 * HOUR_NS + 17 * MINUTE_NS);
    compare_windows(MINUTE_NS, 0, 1, NULL);
}

// Minutes are gone, then hours too; of full series even days.
TEST_CASE(test_where_finer_rollups_are_gone_too)
{
    make_history();
    expire(MARCH_NS + 40 * DAY_NS);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        expire_rollups((enum rollup_grouping)g, ROLLUP_MINUTE, MARCH_NS + 38 * DAY_NS);
        expire_rollups((enum rollup_grouping)g, ROLLUP_HOUR, MARCH_NS + 31 * DAY_NS);
    }
    compare_windows(DAY_NS, 1, 2, NULL);
}

TEST_CASE(test_records_that_came_late)
{
    make_history();
    expire(MARCH_NS + 40 * DAY_NS);
    struct record records[20];
    for (size_t i = 0; i < COUNT_OF(records); i++)
        make_record(&records[i], MARCH_NS + (int64_t)i * 2 * DAY_NS);
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
    if (database_open_writer(&db, bundle_path, &err) != STATUS_OK ||
        rollups_new(&rollups, db, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    for (unsigned i = 0; rollups_are_behind(rollups, i); i++) {
        assert_true(i < 10000);
        rollups_catch_up(rollups, i, false);
    }
    for (unsigned i = 0; rollups_rebuild(rollups, 1); i++)
        assert_true(i < 100000);
    rollups_free(rollups);
    int64_t gaps = -1;
    assert_int_equal(
        database_integer(db, "SELECT count(*) FROM rollup_gap WHERE why = 2", &gaps, &err),
        STATUS_OK);
    assert_int_equal(gaps, 0);
    database_close(db);
}

TEST_CASE(test_a_collector_makes_the_rest)
{
    make_history();
    expire(MARCH_NS + 40 * DAY_NS + 5 * HOUR_NS + 17 * MINUTE_NS);
    compare_windows(MINUTE_NS, 1, 4, collect_on_bundle);
}

// Nobody can build a sum of expired records again: a damaged one becomes a gap, and those
// beside it are copied.
TEST_CASE(test_damaged_sums_become_gaps)
{
    make_history();
    expire(MARCH_NS + 40 * DAY_NS);
    rollup_rig_exec("UPDATE rollup SET count = count + 1 WHERE level = 3 AND grouping = 1"
                    " AND started_ns = 1772323200000000000");
    const struct query_filter all = {0};
    const struct query_filter beside = {.since_ns = MARCH_NS + 31 * DAY_NS};
    make_bundle(&all, "damaged");
    struct query query = {.kind = QUERY_AVERAGE, .metric = "inference.ttft_ns", .filter = beside};
    compare(rollup_rig.path, &query, bundle_path, &query, "beside the damage");
    query.filter = all;
    struct result *answer = NULL;
    struct error err = {0};
    assert_int_equal(copy_ask(rollup_rig.path, &query, &answer, &err), STATUS_CORRUPT);
    expect_ok(copy_ask(bundle_path, &query, &answer, &err), &err);
    result_free(answer);
}

TEST_MAIN_EACH(set_up, rollup_rig_tear_down,
               test_a_bundle_of_what_has_expired_answers_as_the_store_does,
               test_where_finer_rollups_are_gone_too, test_records_that_came_late,
               test_a_collector_makes_the_rest, test_damaged_sums_become_gaps)
