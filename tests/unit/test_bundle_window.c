// Bundles of a window alone: their rollups are those of their records, whatever the window
// cuts, answers by them are the store's and those of plain records, and a collector goes on
// with them.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/gap_table.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/bundle_rig.h"
#include "tests/unit/rollup_rig.h"

#define MINUTE_NS INT64_C(60000000000)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)
#define MARCH_NS  INT64_C(1772323200000000000) // 2026-03-01 00:00

static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE, RECORD_KIND_ITL, RECORD_KIND_LOAD,
                                         RECORD_KIND_DEVICE_SAMPLE};

static int64_t pick(int64_t below)
{
    return (int64_t)(test_random(&rollup_rig.random) % (uint64_t)below);
}

static void insert(enum record_kind kind, unsigned batches)
{
    rollup_rig_exec("BEGIN");
    for (unsigned b = 0; b < batches; b++) {
        struct record records[4];
        const int64_t base_ns = MARCH_NS + pick(45 * 24) * HOUR_NS;
        for (unsigned i = 0; i < COUNT_OF(records); i++) // crowds: some in one minute
            rollup_rig_record(&records[i], kind, base_ns);
        rollup_rig_insert(records, COUNT_OF(records), 1 + pick(ROLLUP_RIG_RUNS));
    }
    rollup_rig_exec("COMMIT");
}

// Some of the records are in no rollup yet.
static void make_history(unsigned batches)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        insert(kinds[k], batches);
    rollup_rig_fold_all();
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        insert(kinds[k], 3);
}

// When some record of the history began.
static int64_t pick_record(void)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT started_ns FROM inference WHERE started_ns BETWEEN %lld AND %lld"
                   " ORDER BY id LIMIT 1 OFFSET %lld",
                   (long long)MARCH_NS, (long long)(MARCH_NS + 46 * DAY_NS), (long long)pick(60));
    return rollup_rig_integer(sql);
}

// A time in the history, at times an edge of a bucket, at times within a record's minute.
static int64_t pick_time(void)
{
    const int64_t at_ns = MARCH_NS + pick(45 * DAY_NS / 1000) * 1000;
    switch (pick(6)) {
    case 0:
        return rollup_bucket(ROLLUP_HOUR, at_ns);
    case 1:
        return rollup_bucket(ROLLUP_DAY, at_ns);
    case 2:
        return rollup_bucket(ROLLUP_MONTH, at_ns);
    case 3:
        return rollup_bucket(ROLLUP_MINUTE, at_ns);
    default:
        return pick_record() + pick(3) - 1;
    }
}

static struct query_filter pick_times(void)
{
    struct query_filter filter = {0};
    const int64_t a = pick_time(), b = pick_time(), open = pick(5);
    filter.since_ns = open == 0 ? 0 : a < b ? a : b;
    filter.until_ns = open == 1 ? 0 : a < b ? b : a;
    if (filter.since_ns && filter.since_ns == filter.until_ns)
        filter.until_ns += 1 + pick(MINUTE_NS);
    return filter;
}

// A window with records in it.
static struct query_filter pick_window(void)
{
    for (;;) {
        const struct query_filter filter = pick_times();
        char sql[128];
        (void)snprintf(
            sql, sizeof sql,
            "SELECT count(*) FROM inference WHERE started_ns >= %lld AND started_ns < %lld",
            (long long)(filter.since_ns ? filter.since_ns : INT64_MIN + 1),
            (long long)(filter.until_ns ? filter.until_ns : INT64_MAX));
        if (rollup_rig_integer(sql) > 0)
            return filter;
    }
}

// Goes on with another file, as a collector of its own would.
static void turn_to(const char *path)
{
    (void)snprintf(rollup_rig.path, sizeof rollup_rig.path, "%s", path);
    rollup_rig_restart();
}

static void check_rollups(unsigned one_in)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        rollup_rig_check(kinds[k], one_in);
}

static void make_bundle(const struct query_filter *filter)
{
    char what[64];
    (void)snprintf(what, sizeof what, "%lld to %lld", (long long)filter->since_ns,
                   (long long)filter->until_ns);
    bundle_rig_make(filter, what);
}

// ---- What they hold -----------------------------------------------------------------------

static void test_rollups_are_those_of_the_records(void **state)
{
    (void)state;
    char store[FOLDER_PATH_SIZE];
    (void)snprintf(store, sizeof store, "%s", rollup_rig.path);
    make_history(30);
    for (unsigned i = 0; i < 12; i++) {
        const struct query_filter filter = i == 0 ? (struct query_filter){0} : pick_window();
        make_bundle(&filter);
        turn_to(bundle_rig_path);
        check_rollups(i == 0 ? 1 : 6);
        turn_to(store);
    }
}

// Gaps of all sorts, at random; their rows are there, and wrong.
static void add_gaps(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct error err = {0};
        const int64_t since_ns = pick_time();
        struct gap gap = {.kind = RECORD_KIND_INFERENCE,
                          .grouping = (enum rollup_grouping)pick(ROLLUP_GROUPING_COUNT),
                          .level = (enum rollup_level)pick(ROLLUP_MONTH),
                          .why = pick(2) ? ROLLUP_SPARSE : ROLLUP_OLD};
        gap.since_ns = rollup_bucket(gap.level, since_ns);
        gap.until_ns = rollup_next(gap.level, gap.since_ns + pick(3) * HOUR_NS);
        assert_int_equal(gap_add(rollup_rig.db, &gap, &err), STATUS_OK);
    }
}

static void clear_hours(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const int64_t hour = rollup_bucket(ROLLUP_HOUR, pick_time());
        for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
            struct error err = {0};
            const struct gap gap = {.kind = RECORD_KIND_INFERENCE,
                                    .grouping = (enum rollup_grouping)g,
                                    .level = ROLLUP_MONTH,
                                    .since_ns = hour,
                                    .until_ns = rollup_next(ROLLUP_HOUR, hour),
                                    .why = ROLLUP_CLEARED};
            assert_int_equal(gap_add(rollup_rig.db, &gap, &err), STATUS_OK);
        }
    }
}

static void test_gaps_stay_gaps(void **state)
{
    (void)state;
    char store[FOLDER_PATH_SIZE];
    (void)snprintf(store, sizeof store, "%s", rollup_rig.path);
    make_history(30);
    add_gaps(25);
    clear_hours(2);
    for (unsigned i = 0; i < 10; i++) {
        const struct query_filter filter = pick_window();
        make_bundle(&filter);
        turn_to(bundle_rig_path);
        rollup_rig_check(RECORD_KIND_INFERENCE, 4);
        rollup_rig_repair();
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
        rollup_rig_check(RECORD_KIND_INFERENCE, 4);
        turn_to(store);
    }
}

// ---- Answers ------------------------------------------------------------------------------

static void copy_without_rollups(const char *path)
{
    struct query query = {.kind = QUERY_COPY};
    struct error err = {0};
    struct result *answer = NULL;
    struct store *store = NULL;
    (void)remove(path);
    (void)snprintf(query.path, sizeof query.path, "%s", path);
    assert_int_equal(store_open(&store, bundle_rig_path, &err), STATUS_OK);
    if (store_query(store, &query, &answer, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    result_free(answer);
    store_close(store);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DELETE FROM rollup; DELETE FROM rollup_state;"
                                  "DELETE FROM rollup_gap; DELETE FROM series",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
}

static struct query pick_query(const struct query_filter *window)
{
    static const char *const metrics[] = {"inference.ttft_ns", "inference.tokens_per_second",
                                          "itl.itl_ns", "load.duration_ns",
                                          "device_sample.power_watts"};
    static const enum query_dimension by[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE};
    struct query query = {.kind = QUERY_AVERAGE, .filter = *window};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metrics[pick(COUNT_OF(metrics))]);
    const bool of_devices = strncmp(query.metric, "device", 6) == 0;
    for (size_t i = of_devices ? 1 : 0; i < COUNT_OF(by); i++)
        if (pick(3) == 0)
            query.group_by[query.group_count++] = by[i];
    if (pick(3) == 0) { // a part of it
        const struct query_filter part = pick_times();
        if (part.since_ns > query.filter.since_ns)
            query.filter.since_ns = part.since_ns;
        if (part.until_ns && (!query.filter.until_ns || part.until_ns < query.filter.until_ns))
            query.filter.until_ns = part.until_ns;
        if (query.filter.until_ns && query.filter.since_ns >= query.filter.until_ns)
            query.filter = *window;
    }
    if (query.filter.since_ns && query.filter.until_ns && pick(3) == 0)
        query.step_ns = DAY_NS;
    return query;
}

static void test_averages_are_the_store_s_and_the_records(void **state)
{
    (void)state;
    char plain[FOLDER_PATH_SIZE];
    (void)folder_path(plain, rollup_rig.folder, "plain.db");
    make_history(30);
    add_gaps(6);
    for (unsigned i = 0; i < 8; i++) {
        const struct query_filter window = i == 0 ? (struct query_filter){0} : pick_window();
        make_bundle(&window);
        copy_without_rollups(plain);
        for (unsigned q = 0; q < 14; q++) {
            const struct query query = pick_query(&window);
            struct query bare = query; // the bundle holds nothing else
            if (memcmp(&query.filter, &window, sizeof window) == 0 && query.step_ns == 0)
                bare.filter = (struct query_filter){0};
            char what[512];
            (void)snprintf(what, sizeof what, "window %u, question %u, %s from %lld to %lld", i, q,
                           query.metric, (long long)query.filter.since_ns,
                           (long long)query.filter.until_ns);
            bundle_rig_compare(rollup_rig.path, &query, bundle_rig_path, &bare, what);
            bundle_rig_compare(plain, &bare, bundle_rig_path, &query, what);
        }
    }
}

// ---- What is damaged ----------------------------------------------------------------------

static void damage(const char *which)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE rollup SET count = count + 1 WHERE (metric, grouping, level,"
                   " started_ns, series) IN (SELECT metric, grouping, level, started_ns, series"
                   " FROM rollup WHERE metric / 256 = %d AND %s LIMIT 3 OFFSET %lld)",
                   (int)RECORD_KIND_INFERENCE, which, (long long)pick(12));
    rollup_rig_exec(sql);
}

static void test_damaged_rows_become_gaps(void **state)
{
    (void)state;
    static const char *const rows[] = {"level = 0", "level = 1 AND grouping = 0", "level = 2",
                                       "level = 3 AND grouping = 3"};
    char store[FOLDER_PATH_SIZE], plain[FOLDER_PATH_SIZE];
    (void)snprintf(store, sizeof store, "%s", rollup_rig.path);
    (void)folder_path(plain, rollup_rig.folder, "plain.db");
    make_history(30);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        damage(rows[i]);
    for (unsigned i = 0; i < 4; i++) {
        const struct query_filter window = i == 0 ? (struct query_filter){0} : pick_window();
        make_bundle(&window);
        copy_without_rollups(plain);
        for (unsigned q = 0; q < 10; q++) {
            const struct query query = pick_query(&window);
            bundle_rig_compare(plain, &query, bundle_rig_path, &query, query.metric);
        }
        turn_to(bundle_rig_path);
        assert_true(i > 0 ||
                    rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2") > 0);
        rollup_rig_check(RECORD_KIND_INFERENCE, 4);
        rollup_rig_repair();
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap"), 0);
        rollup_rig_check(RECORD_KIND_INFERENCE, 4);
        turn_to(store);
    }
}

// Of expired records nobody makes a row again: what is left of it is a gap, and what lies
// beside it is there.
static void test_damaged_rows_of_what_has_expired(void **state)
{
    (void)state;
    make_history(30);
    insert(RECORD_KIND_INFERENCE, 40);
    rollup_rig_fold_all();
    bundle_rig_expire(MARCH_NS + 40 * DAY_NS);
    damage("level = 1 AND started_ns > 1772323200000000000 AND started_ns < 1774000000000000000");
    for (unsigned i = 0; i < 6; i++) {
        const struct query_filter window = i == 0 ? (struct query_filter){0} : pick_window();
        make_bundle(&window);
        const struct query_filter late = {.since_ns = MARCH_NS + 31 * DAY_NS};
        if (window.since_ns || window.until_ns)
            continue;
        const struct query query = {
            .kind = QUERY_AVERAGE, .metric = "inference.ttft_ns", .filter = late};
        bundle_rig_compare(rollup_rig.path, &query, bundle_rig_path, &query, "behind the damage");
    }
}

// ---- Afterwards ---------------------------------------------------------------------------

static void test_a_collector_goes_on(void **state)
{
    (void)state;
    char store[FOLDER_PATH_SIZE];
    (void)snprintf(store, sizeof store, "%s", rollup_rig.path);
    make_history(30);
    for (unsigned i = 0; i < 4; i++) {
        const struct query_filter filter = i == 0 ? (struct query_filter){0} : pick_window();
        make_bundle(&filter);
        turn_to(bundle_rig_path);
        for (unsigned round = 0; round < 3; round++) {
            insert(RECORD_KIND_INFERENCE, 4); // of all times, also outside of the window
            rollup_rig_fold_all();
        }
        assert_int_equal(rollup_rig_integer("SELECT min(watermark) = max(watermark) AND"
                                            " max(watermark) = (SELECT max(id) FROM inference)"
                                            " FROM rollup_state WHERE metric / 256 ="
                                            " (SELECT metric / 256 FROM rollup_state WHERE metric"
                                            " >= 256 * 6 LIMIT 1)"),
                         1);
        check_rollups(5);
        turn_to(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rollups_are_those_of_the_records, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_gaps_stay_gaps, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_averages_are_the_store_s_and_the_records,
                                        bundle_rig_set_up, rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_rows_become_gaps, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_rows_of_what_has_expired, bundle_rig_set_up,
                                        rollup_rig_tear_down),
        cmocka_unit_test_setup_teardown(test_a_collector_goes_on, bundle_rig_set_up,
                                        rollup_rig_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
