// What would make rollups slow or wrong for ever: records each of a time of its own, and
// rows that are damaged.
#include <fcntl.h>
#include <unistd.h>

#include "common/store/retention/clear.h"
#include "common/store/retention/expire.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/collector/rollup_rig.h"

// 2026-03-29 22:30 UTC: the hours after it are of two days.
#define BASE_NS INT64_C(1774823400000000000)

// Records of random times, each alone, leave a few gaps and not one each.
TEST_CASE(lonely_records_leave_few_gaps)
{
    static struct record records[2000];
    rollups_tell_time(rollup_rig.rollups, BASE_NS + INT64_C(86400000000000));
    for (unsigned i = 0; i < COUNT_OF(records); i++) {
        rollup_rig_record(&records[i], RECORD_KIND_STARTUP, BASE_NS);
        records[i].started_ns =
            BASE_NS - (int64_t)(test_random(&rollup_rig.random) % UINT64_C(300000000000000000));
    }
    // An hour among them that pays.
    for (unsigned i = 0; i < 1000; i++)
        records[i].started_ns = BASE_NS - INT64_C(86400000000000) + (int64_t)i;
    rollup_rig_exec("BEGIN IMMEDIATE");
    rollup_rig_insert(records, COUNT_OF(records), 1);
    rollup_rig_exec("COMMIT");
    rollup_rig_fold_all();
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
    static const char *const sure[] = {
        "SELECT count(*) > 0 FROM rollup_gap",
        "SELECT max(n) <= 64 FROM (SELECT count(*) AS n FROM rollup_gap GROUP BY grouping, level)",
        // All of the lonely ones are in gaps; what pays is not.
        "SELECT count(*) < 50 FROM rollup WHERE level = 1 AND grouping = 1 AND metric = 768",
        "SELECT count(*) > 0 FROM rollup WHERE level = 0 AND grouping = 1 AND metric = 768"
        " AND count >= 100",
    };
    for (size_t i = 0; i < COUNT_OF(sure); i++)
        if (rollup_rig_integer(sure[i]) != 1)
            fail_msg("%s", sure[i]);
}

static void clear_window(int64_t since_ns, int64_t until_ns)
{
    struct error err = {0};
    struct clearing clearing;
    const struct query_filter filter = {.since_ns = since_ns, .until_ns = until_ns};
    bool done = false;
    assert_int_equal(clear_begin(&clearing, rollup_rig.db, &filter, &err), STATUS_OK);
    while (!done)
        assert_int_equal(clear_slice(&clearing, rollup_rig.db, &done, &err), STATUS_OK);
    rollups_rows_removed(rollup_rig.rollups, RECORD_KIND_STARTUP);
}

static void insert_pair(int64_t started_ns)
{
    struct record record;
    rollup_rig_record(&record, RECORD_KIND_STARTUP, BASE_NS);
    record.started_ns = started_ns;
    rollup_rig_exec("BEGIN IMMEDIATE");
    rollup_rig_insert((const struct record[]){record, record}, 2, 1);
    rollup_rig_exec("COMMIT");
}

#define FLOOR_NS INT64_C(1577836800000000000) // 2020-01-01: no time before it is plausible

// The number of durations that an average counts.
static int64_t averaged(int64_t since_ns)
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    const struct query query = {
        .kind = QUERY_AVERAGE, .metric = "startup.duration_ns", .filter = {.since_ns = since_ns}};
    expect_ok(store_open(&store, rollup_rig.path, &err), &err);
    expect_ok(store_query(store, &query, &result, &err), &err);
    const int64_t count = result_integer(result, 0, "count", -1);
    const char *note = result_cell(result, 0, (unsigned)result_find(result, "note")).text.bytes;
    if (since_ns)
        assert_non_null(strstr(note ? note : "", "implausible"));
    else
        assert_null(note);
    result_free(result);
    store_close(store);
    return count;
}

static void check_averages(int64_t gone)
{
    static const char placed[] = "SELECT count(*) FROM v_startup WHERE NOT clock_suspect";
    rollup_rig_check(RECORD_KIND_STARTUP, 1);
    assert_int_equal(averaged(0), rollup_rig_integer("SELECT count(*) FROM startup") + gone);
    assert_int_equal(averaged(FLOOR_NS), rollup_rig_integer(placed));
}

// A record every ten days from 1700 to 2247.  Where records have expired, each day has a sum.
static void insert_centuries(bool has_expiry)
{
    static struct record records[2000];
    if (has_expiry)
        rollup_rig_exec("INSERT INTO expiry VALUES(3, 1590000000000000000)");
    rollup_rig_restart();
    rollups_tell_time(rollup_rig.rollups, BASE_NS);
    for (int64_t batch = 0; batch < 10; batch++) {
        for (int64_t i = 0; i < (int64_t)COUNT_OF(records); i++) {
            const int64_t since_1970_days = (batch * 2000 + i) * 10 - INT64_C(98615);
            record_init(&records[i], RECORD_KIND_STARTUP, since_1970_days * 86400000000000);
            record_set_int(&records[i], STARTUP_DURATION_NS, i);
            record_set_int(&records[i], STARTUP_MEMORY_START_BYTES, 1);
            record_set_int(&records[i], STARTUP_MEMORY_READY_BYTES, 2);
        }
        rollup_rig_exec("BEGIN IMMEDIATE");
        rollup_rig_insert(records, COUNT_OF(records), 1);
        rollup_rig_exec("COMMIT");
        rollup_rig_fold_all();
    }
}

TEST_CASE(implausible_times_are_one_cell)
{
    // Of the plausible times each day has a sum where records have expired, else at most the month
    // that is not over.
    enum { METRICS = 4, PLAUSIBLE_MOST = 260 };
    for (unsigned has_expiry = 0; has_expiry < 2; has_expiry++) {
        insert_centuries(has_expiry);
        const int64_t rows = rollup_rig_integer("SELECT count(*) FROM rollup");
        assert_in_range(rows, 1,
                        METRICS * ROLLUP_GROUPING_COUNT *
                            (ROLLUP_LEVEL_COUNT + (has_expiry ? PLAUSIBLE_MOST : 1)));
        assert_in_range(rollup_rig_integer("SELECT count(*) FROM rollup_gap"), 0, 64);
        check_averages(0);
        for (unsigned steps = 0; rollups_prune(rollup_rig.rollups, rollup_rig.now_ns); steps++)
            rollup_rig.now_ns += UINT64_C(3600000000000);
        check_averages(0);
        rollup_rig_exec("DELETE FROM startup; DELETE FROM rollup; DELETE FROM rollup_gap;"
                        "DELETE FROM rollup_state");
    }
}

// What is cleared of them is counted no longer; what expires still is.
TEST_CASE(implausible_times_are_cleared_and_expire)
{
    struct error err = {0};
    struct expire_rows rows = {.kind = RECORD_KIND_STARTUP,
                               .last_id = INT64_MAX,
                               .before_ns = FLOOR_NS + INT64_C(86400000000000) * 300,
                               .count = 20000};
    unsigned gone = 0, days = 0;
    bool changed = true;
    insert_centuries(false);
    clear_window(0, INT64_C(-4000000000000000000));
    check_averages(0);
    rollup_rig_rebuild();
    check_averages(0);
    for (; changed; days++) {
        int64_t before_ns = rows.before_ns;
        expect_ok(expire_want_sums(rollup_rig.db, rows.kind, &before_ns, &changed, &err), &err);
        rollups_gaps_changed(rollup_rig.rollups);
        rollup_rig_rebuild();
    }
    assert_in_range(days, 1, 10);
    expect_ok(expire_slice(rollup_rig.db, &rows, &gone, &err), &err);
    assert_in_range(rollup_rig_integer("SELECT until_ns FROM expiry"), FLOOR_NS, rows.before_ns);
    assert_int_equal(averaged(0), rollup_rig_integer("SELECT count(*) FROM startup") + gone);
    // A later one too, and clearing others of them takes nothing back.
    insert_pair(0);
    rollup_rig_fold_all();
    const int64_t all = averaged(0);
    clear_window(INT64_C(3000000000000000000), 0);
    rollup_rig_rebuild();
    assert_int_equal(averaged(0), all);
}

// Rows of a day that is rebuilt are not read.
TEST_CASE(damage_goes_with_the_day)
{
    static const char *const damage[] = {
        "UPDATE rollup SET count = count + 1 WHERE level = 1 AND started_ns < 1774828800000000000",
        "UPDATE rollup SET count = count + 1 WHERE level = 2 AND started_ns < 1774828800000000000",
        "UPDATE rollup SET count = count + 1 WHERE level > 0 AND started_ns < 1774828800000000000",
    };
    rollup_rig_insert_hours(BASE_NS);
    rollup_rig_fold_all();
    for (size_t i = 0; i < COUNT_OF(damage); i++) {
        rollup_rig_exec(damage[i]);
        const int64_t since_ns = BASE_NS + (int64_t)(i * 20) * INT64_C(60000000000);
        clear_window(since_ns, since_ns + INT64_C(600000000000));
        rollup_rig_rebuild();
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
        rollup_rig_check(RECORD_KIND_STARTUP, 1);
    }
}

// What has expired cannot be made again; records that come late are taken all the same,
// and nothing waits for it.
TEST_CASE(a_damaged_row_of_expired_records_is_given_up)
{
    const int64_t midnight = BASE_NS + INT64_C(5400000000000);
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT; level++) {
        rollup_rig_exec("DELETE FROM rollup; DELETE FROM rollup_gap; DELETE FROM expiry;"
                        " DELETE FROM startup; DELETE FROM rollup_state");
        rollup_rig_restart();
        rollup_rig_insert_hours(BASE_NS);
        rollup_rig_fold_all();
        rollup_rig_exec(
            format_text("DELETE FROM startup WHERE started_ns < %lld;"
                        "INSERT INTO expiry VALUES(3, %lld);"
                        "UPDATE rollup SET count = count + 1 WHERE grouping = 1 AND level = %u"
                        " AND started_ns < %lld",
                        (long long)midnight, (long long)midnight, level, (long long)midnight));
        // The clear needs another day; a late record needs the row itself.
        clear_window(midnight, midnight + INT64_C(600000000000));
        rollup_rig_rebuild();
        for (unsigned i = 0; i < 600; i++) {
            struct record late;
            if (i == 0) {
                rollup_rig_record(&late, RECORD_KIND_STARTUP, BASE_NS);
                late.started_ns = BASE_NS;
                rollup_rig_exec("BEGIN IMMEDIATE");
                rollup_rig_insert((const struct record[]){late, late}, 2, 1);
                rollup_rig_exec("COMMIT");
            }
            rollup_rig_fold_all();
            rollup_rig_rebuild();
            rollup_rig.now_ns += UINT64_C(61000000000);
            if (rollup_rig_integer("SELECT count(*) = 0 FROM rollup_gap WHERE why = 2") &&
                rollup_rig_integer("SELECT min(watermark) = (SELECT max(id) FROM startup) FROM"
                                   " rollup_state WHERE metric / 256 = 3"))
                break;
        }
        assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why = 2"), 0);
        assert_int_equal(
            rollup_rig_integer("SELECT min(watermark) = (SELECT max(id) FROM startup) FROM"
                               " rollup_state WHERE metric / 256 = 3"),
            1);
        // A month is read by its days, which are all there.
        assert_int_equal(rollup_rig_integer(format_text(
                             "SELECT (count(*) > 0) = (%u < 3) FROM rollup_gap WHERE grouping = 1"
                             " AND why = %d",
                             level, (int)ROLLUP_LOST)),
                         1);
    }
}

// What a grouping's rollups of a level count from a time on, by the metric all records have.
static int64_t counted(unsigned grouping, unsigned level, int64_t started_ns)
{
    return rollup_rig_integer(
        format_text("SELECT coalesce(sum(count), 0) FROM rollup WHERE grouping = %u AND level = %u"
                    " AND started_ns = %lld AND metric ="
                    " (SELECT min(metric) FROM rollup WHERE metric / 256 = 3)",
                    grouping, level, (long long)started_ns));
}

static int64_t records_of(int64_t since_ns, int64_t minutes)
{
    return rollup_rig_integer(
        format_text("SELECT count(*) FROM startup WHERE started_ns >= %lld AND started_ns < %lld",
                    (long long)since_ns, (long long)since_ns + minutes * INT64_C(60000000000)));
}

// Of three hours the first 110 minutes have expired, up to 20 past midnight; then ten
// minutes behind it are cleared.  The sums of the day that has begun to expire stay as they
// are, which the day before does, too.
TEST_CASE(sums_of_a_day_that_expires_are_not_rebuilt)
{
    const int64_t minute = INT64_C(60000000000);
    const int64_t midnight = BASE_NS + 90 * minute, edge = midnight + 20 * minute;
    rollup_rig_insert_hours(BASE_NS);
    rollup_rig_fold_all();
    const int64_t before = records_of(BASE_NS, 90), day = records_of(midnight, 90);
    rollup_rig_exec(format_text("DELETE FROM startup WHERE started_ns < %lld;"
                                "INSERT INTO expiry VALUES(3, %lld)",
                                (long long)edge, (long long)edge));
    clear_window(midnight + 30 * minute, midnight + 40 * minute);
    assert_true(records_of(midnight, 90) < day);
    rollup_rig_rebuild();
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup_gap WHERE why > 1"), 0);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        assert_int_equal(counted(g, ROLLUP_DAY, midnight), day);
        assert_int_equal(counted(g, ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, BASE_NS)), before);
    }
}

// The records of the later day cannot be read: the day before is rebuilt all the same, and only
// the later one waits.
TEST_CASE(a_day_of_unreadable_records_is_passed_over)
{
    const int64_t minute = INT64_C(60000000000), midnight = BASE_NS + 90 * minute;
    const struct gap_span both = {BASE_NS, BASE_NS + 180 * minute};
    struct error err;
    rollup_rig_insert_hours(BASE_NS);
    rollup_rig_fold_all();
    assert_int_equal(gap_request_rebuild(rollup_rig.db, RECORD_KIND_STARTUP, &both, 1, &err),
                     STATUS_OK);
    // The last page but one of the table holds records of the later day alone.
    rollup_rig_exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const int64_t page =
        rollup_rig_integer("SELECT pageno FROM dbstat WHERE name = 'startup' AND pagetype = 'leaf'"
                           " ORDER BY path DESC LIMIT 1 OFFSET 1");
    const int fd = open(rollup_rig.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, (page - 1) * 4096), 8);
    (void)close(fd);
    rollup_rig_restart();
    rollup_rig_rebuild();
    assert_int_equal(rollup_rig_integer("SELECT min(since_ns) FROM rollup_gap WHERE why = 2"),
                     midnight);
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        assert_int_equal(counted(g, ROLLUP_DAY, rollup_bucket(ROLLUP_DAY, BASE_NS)),
                         records_of(BASE_NS, 90));
}

static void prune_all(void)
{
    for (unsigned steps = 0; rollups_prune(rollup_rig.rollups, rollup_rig.now_ns); steps++) {
        rollup_rig.now_ns += UINT64_C(3600000000000);
        assert_true(steps < 10000);
    }
}

static int64_t values_of_days(unsigned grouping)
{
    return rollup_rig_integer(
        format_text("SELECT total(count) FROM rollup WHERE grouping = %u AND level = 2"
                    " AND metric = (SELECT min(metric) FROM rollup WHERE metric / 256 = 3)",
                    grouping));
}

// Of days with a few records no sums are kept, until these expire: of 40 days at a time.
TEST_CASE(days_that_expire_have_sums)
{
    enum { DAYS = 60, A_DAY = 5 };
    const int64_t day_ns = INT64_C(86400000000000), until_ns = BASE_NS + (DAYS - 2) * day_ns;
    struct error err = {0};
    rollups_tell_time(rollup_rig.rollups, BASE_NS + (DAYS + 60) * day_ns);
    for (int64_t i = 0; i < DAYS * A_DAY; i++)
        insert_pair(BASE_NS + i * (day_ns / A_DAY));
    rollup_rig_fold_all();
    prune_all();
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM rollup WHERE level = 2"), 0);
    // One of the days has none: what comes late is counted all the same.
    rollup_rig_exec("DELETE FROM startup WHERE started_ns / 86400000000000 = 20551");
    const int64_t all = rollup_rig_integer("SELECT count(*) FROM startup");
    const int64_t edge_ns = rollup_bucket(ROLLUP_DAY, until_ns);
    struct expire_rows rows = {
        .kind = RECORD_KIND_STARTUP, .last_id = INT64_MAX, .count = DAYS * A_DAY * 2};
    unsigned gone = 0;
    for (unsigned rounds = 0; rounds < 4; rounds++) {
        bool changed = false;
        rows.before_ns = edge_ns;
        expect_ok(expire_want_sums(rollup_rig.db, rows.kind, &rows.before_ns, &changed, &err),
                  &err);
        assert_int_equal(changed, rounds % 2 == 0);
        assert_int_equal(expire_slice(rollup_rig.db, &rows, &gone, &err), STATUS_OK);
        assert_int_equal(gone > 0, rounds % 2 == 1);
        rollups_gaps_changed(rollup_rig.rollups);
        rollup_rig_rebuild();
    }
    const int64_t left = rollup_rig_integer("SELECT count(*) FROM startup");
    assert_true(left < all);
    insert_pair(INT64_C(20551) * day_ns);
    rollup_rig_fold_all();
    const int64_t late = rollup_rig_integer("SELECT count(*) FROM startup") - left;
    assert_true(late > 0);
    // A value of each record of the days before, whether it is still there or not.
    const int64_t behind = rollup_rig_integer(
        format_text("SELECT count(*) FROM startup WHERE started_ns >= %lld", (long long)edge_ns));
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        assert_int_equal(values_of_days(g), all + late - behind);
}

// Records of March are summed and expire.  Where a metric's watermark is behind then, what can
// be rebuilt is; the sums of March stay.
TEST_CASE(uneven_watermarks_keep_months_that_expired)
{
    static const char march[] = "SELECT total(count) FROM rollup WHERE level = 3",
                      masked[] = "SELECT count(*) FROM rollup_gap WHERE level > 2"
                                 " AND since_ns < 1775001600000000000";
    const int64_t later_ns = BASE_NS + INT64_C(100) * 86400000000000;
    rollups_tell_time(rollup_rig.rollups, later_ns);
    rollup_rig_insert_hours(BASE_NS);
    rollup_rig_fold_all();
    prune_all();
    const int64_t values = rollup_rig_integer(march);
    assert_true(values > 0);
    rollup_rig_exec("DELETE FROM startup; INSERT INTO expiry VALUES(3, 1775001600000000000);"
                    "UPDATE rollup_state SET watermark = 1 WHERE metric = 768");
    insert_pair(INT64_C(1775001600000000000));
    rollup_rig_restart();
    rollups_tell_time(rollup_rig.rollups, later_ns);
    rollup_rig_rebuild();
    prune_all();
    assert_int_equal(rollup_rig_integer(march), values);
    assert_int_equal(rollup_rig_integer(masked), 0);
}

// Older versions had more groupings: nothing waits for their gaps, which nothing rebuilds.
TEST_CASE(gaps_of_old_groupings_hold_up_nothing)
{
    struct error err;
    unsigned gone = 0;
    const struct expire_rows rows = {
        .kind = RECORD_KIND_STARTUP, .before_ns = INT64_MAX, .last_id = INT64_MAX, .count = 1000};
    rollup_rig_insert_hours(BASE_NS);
    rollup_rig_fold_all();
    rollup_rig_exec("INSERT INTO rollup_gap VALUES(3, 2, 3, 0, 2, 1774915200000000000)");
    rollups_gaps_changed(rollup_rig.rollups);
    rollup_rig_rebuild();
    assert_int_equal(expire_slice(rollup_rig.db, &rows, &gone, &err), STATUS_OK);
    assert_int_equal(rollup_rig_integer("SELECT count(*) FROM startup"), 0);
}

TEST_MAIN_EACH(rollup_rig_set_up, rollup_rig_tear_down, implausible_times_are_one_cell,
               implausible_times_are_cleared_and_expire, lonely_records_leave_few_gaps,
               damage_goes_with_the_day, a_damaged_row_of_expired_records_is_given_up,
               days_that_expire_have_sums, a_day_of_unreadable_records_is_passed_over,
               sums_of_a_day_that_expires_are_not_rebuilt,
               uneven_watermarks_keep_months_that_expired, gaps_of_old_groupings_hold_up_nothing)
