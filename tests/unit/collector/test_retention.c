// Retention over a store: what goes and what stays, step by step.
#include <sys/stat.h>

#include <sqlite3.h>

#include "common/store/audit/audit.h"
#include "common/store/sqlite/admin_log.h"
#include "common/store/sqlite/database.h"
#include "common/store/retention/expire.h"
#include "common/store/read/session.h"
#include "common/store/schema/database_open.h"
#include "server/collector/maintenance/retention.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define MINUTE INT64_C(60000000000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

static const int64_t now_ns = INT64_C(1790000000123456789);

static struct retention *retention;

TEST_FIXTURE(set_up)
{
    store_make(state);
    exec("INSERT INTO name(id, text) VALUES (1, 'alpha')");
    return 0;
}

TEST_FIXTURE(tear_down)
{
    retention_free(retention);
    retention = NULL;
    return store_tear_down(state);
}

// `count` rows of a kind in run 1, the oldest of them `age` old, `apart` between them.
static void add_rows(enum record_kind kind, int64_t count, int64_t age, int64_t apart)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i <"
                        " %lld) INSERT INTO \"%w\" SELECT NULL, 1, %d, i + coalesce((SELECT"
                        " max(number) FROM \"%w\"), 0), %lld + i * %lld, %lld + i * %lld",
                        (long long)count, info->name, (int)kind, info->name,
                        (long long)(now_ns - age - apart), (long long)apart,
                        (long long)(now_ns - age), (long long)apart);
    for (unsigned c = 0; c < info->column_count; c++)
        sqlite3_str_appendall(sql, ", 1");
    sqlite3_str_appendall(sql, " FROM n");
    char *text = sqlite3_str_finish(sql);
    exec(text);
    sqlite3_free(text);
}

// Closes the books: a stream a kind, all of them stored.
static void close_books(void)
{
    store_run(1, 1, RECORD_RUN_END_CLOSED, 0, 0);
    for (int kind = RECORD_KIND_RUN + 1; kind < (int)RECORD_KIND_COUNT; kind++) {
        const char *table = record_kind_info((enum record_kind)kind)->name;
        execf("INSERT INTO ledger(run, kind, stored) SELECT 1, %d, count(*) FROM \"%s\" HAVING"
              " count(*) > 0;"
              "INSERT INTO range(run, stream, first, last, state) SELECT 1, %d, 1, count(*), 0"
              " FROM \"%s\" HAVING count(*) > 0;"
              "INSERT INTO stream(run, stream, next, produced, unnumbered) SELECT 1, %d, count(*)"
              " + 1, count(*), 0 FROM \"%s\" HAVING count(*) > 0",
              kind, table, kind, table, kind, table);
    }
    exec(
        "UPDATE run SET stored = (SELECT sum(stored) FROM ledger), produced = (SELECT sum(produced)"
        " FROM stream)");
}

// Rows of the table rollup: all metrics of operations, all groupings and levels, two
// series, the buckets of so many days.
static void add_rollups(int64_t days)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(RECORD_KIND_OPERATION, metrics);
    static const int64_t lengths[] = {HOUR, HOUR, DAY, 31 * DAY}; // every sixtieth minute
    exec("BEGIN");
    for (unsigned i = 0; i < count * ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT; i++) {
        const enum rollup_level level = (enum rollup_level)(i % ROLLUP_LEVEL_COUNT);
        const int grouping = (int)(i / ROLLUP_LEVEL_COUNT % ROLLUP_GROUPING_COUNT);
        for (int64_t at = now_ns - days * DAY; at < now_ns; at += lengths[level])
            execf("INSERT OR IGNORE INTO rollup SELECT %d, %d, %d, %lld, column1, 1, 1, 0, 1, 1,"
                  " NULL, NULL, NULL FROM (VALUES(1), (2))",
                  rollup_metric_number(metrics[i / ROLLUP_LEVEL_COUNT / ROLLUP_GROUPING_COUNT]),
                  grouping, (int)level, (long long)rollup_bucket(level, at));
    }
    exec("INSERT OR IGNORE INTO rollup_state(metric, watermark)"
         " SELECT DISTINCT metric, 0 FROM rollup; COMMIT");
}

// What an audit recounts is what the ledger says.
static void expect_balance(void)
{
    struct error err = {0};
    struct store opened = {.db = db};
    const struct query_filter all = {0};
    struct audit audit;
    expect_ok(audit_page(&audit, &opened, &all, INT64_MIN, AUDIT_RUNS_MAX, &err), &err);
    assert_int_equal(audit.run_count, 1);
    assert_int_equal(audit.orphan_count, 0);
    if (audit.runs[0].findings > 0)
        fail_msg("%s", audit.runs[0].finding);
    audit_deinit(&audit);
    statement_cache_end(&opened.statements);
}

// ---- Passes -----------------------------------------------------------------------------

static void begin(const char *rules_text, bool has_rollups)
{
    struct error err = {0};
    struct retention_rules rules;
    retention_free(retention);
    if (retention_rules_parse(&rules, rules_text, &err) != STATUS_OK ||
        retention_new(&retention, db, &rules, has_rollups, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(retention_due_ns(retention), 0);
}

// Steps until the pass is over; all of them are short.  Returns how many changed something.
static unsigned pass(int64_t wall_ns)
{
    struct error err = {0};
    unsigned changes = 0;
    const uint64_t began_ns = retention_due_ns(retention);
    for (unsigned i = 0; i < 100000; i++) {
        bool changed = false;
        expect_ok(retention_step(retention, wall_ns, &changed, &err), &err);
        changes += changed;
        retention_record_time(retention, began_ns, began_ns + 10000000, false);
        if (retention_due_ns(retention) - began_ns > UINT64_C(1000000000))
            return changes;
    }
    fail_msg("no end");
    return 0;
}

TEST_CASE(test_records_over_their_age_go)
{
    static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE, RECORD_KIND_OPERATION,
                                             RECORD_KIND_PROCESS_SAMPLE, RECORD_KIND_DEVICE,
                                             RECORD_KIND_MODEL};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        add_rows(kinds[i], 3000, 30 * HOUR, 36 * 1000000000LL); // until now
    close_books();
    begin("raw=10h", false);
    assert_true(pass(now_ns) >= 12); // 2,000 of three kinds, in slices of 512
    const int64_t floor_ns = rollup_bucket(ROLLUP_MINUTE, now_ns - 10 * HOUR);
    for (size_t i = 0; i < 3; i++) {
        const char *table = record_kind_info(kinds[i])->name;
        assert_int_equal(integer(format_text("SELECT count(*) FROM \"%s\" WHERE started_ns < %lld",
                                             table, (long long)floor_ns)),
                         0);
        assert_in_range(integer(format_text("SELECT count(*) FROM \"%s\"", table)), 999, 1003);
        assert_int_equal(integer(format_text("SELECT until_ns = %lld FROM expiry WHERE kind = %d",
                                             (long long)floor_ns, (int)kinds[i])),
                         1);
    }
    // They say what the rest is of.
    assert_int_equal(integer("SELECT count(*) FROM device"), 3000);
    assert_int_equal(integer("SELECT count(*) FROM model"), 3000);
    assert_int_equal(integer("SELECT count(*) FROM expiry"), 3);
    assert_int_equal(integer("SELECT count(*) FROM run"), 1);
    expect_balance();
    assert_int_equal(pass(now_ns), 0);
    expect_balance();
}

// By default only samples go, after a day.
TEST_CASE(test_samples_over_their_age_go)
{
    static const enum record_kind kinds[] = {RECORD_KIND_DEVICE_SAMPLE,  RECORD_KIND_HOST_SAMPLE,
                                             RECORD_KIND_DEVICE_PROCESS, RECORD_KIND_PROCESS_SAMPLE,
                                             RECORD_KIND_EVENT,          RECORD_KIND_INFERENCE};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        add_rows(kinds[i], 1000, 50 * HOUR, 3 * MINUTE); // until now
    close_books();
    begin("bytes=1TB", false);
    assert_true(pass(now_ns) >= 3);
    const int64_t floor_ns = rollup_bucket(ROLLUP_MINUTE, now_ns - DAY);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *table = record_kind_info(kinds[i])->name;
        const int64_t old = integer(format_text(
            "SELECT count(*) FROM \"%s\" WHERE started_ns < %lld", table, (long long)floor_ns));
        assert_int_equal(old, i < 3 ? 0 : 520);
        assert_int_equal(integer(format_text("SELECT count(*) FROM \"%s\"", table)) - old, 480);
    }
    assert_int_equal(integer("SELECT count(*) FROM expiry"), 3);
    expect_balance();
    assert_int_equal(pass(now_ns), 0);
}

TEST_CASE(test_runs_without_records_go)
{
    static const struct {
        int64_t run, age_ns;
        enum record_run_end end;
        int stored;
    } runs[] = {{2, 30 * HOUR, RECORD_RUN_END_SILENT, 0}, {3, HOUR / 2, RECORD_RUN_END_CLOSED, 0},
                {4, 30 * HOUR, RECORD_RUN_END_CLOSED, 5}, {5, 30 * HOUR, RECORD_RUN_END_OPEN, 0},
                {6, 30 * HOUR, RECORD_RUN_END_KILLED, 5}, {7, 30 * HOUR, RECORD_RUN_END_CLOSED, 0}};
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        store_run(runs[i].run, 1, runs[i].end, now_ns - runs[i].age_ns, now_ns - runs[i].age_ns);
        execf("UPDATE run SET stored = %d WHERE run = %lld", runs[i].stored,
              (long long)runs[i].run);
    }
    exec("INSERT INTO ledger(run, kind, stored, expired) VALUES(4, 8, 5, 5), (6, 8, 5, 4)");
    begin("raw=forever", false);
    (void)pass(now_ns);
    assert_true(retention_removed_runs(retention));
    assert_false(retention_removed_runs(retention));
    assert_int_equal(integer("SELECT group_concat(run) = '3,4,5,6,7' FROM run"), 1);
    begin("raw=10h", false);
    (void)pass(now_ns);
    assert_int_equal(integer("SELECT group_concat(run) = '3,5,6,7' FROM run"), 1);
    begin("bytes=1MB", false);
    (void)pass(now_ns);
    assert_int_equal(integer("SELECT count(*) FROM run"), 4);
    add_rows(RECORD_KIND_OPERATION, 20000, HOUR, 1); // a store over its limit
    begin("bytes=1MB", true);                        // has no rollups: nothing of these can go
    (void)pass(now_ns);
    assert_int_equal(integer("SELECT group_concat(run) = '5,6,7' FROM run"), 1);
    assert_int_equal(integer("SELECT sum(runs) FROM forgotten WHERE why = 2"), 1);
}

// Records of which each has an hour of its own, in the past or far ahead, go as fast as others.
TEST_CASE(test_records_spread_over_centuries_make_room)
{
    static const struct {
        int64_t age, apart;
    } cases[] = {{200 * 365 * DAY, 2 * HOUR}, {-2 * 365 * DAY, 2 * HOUR}, {40000 * HOUR, 2 * HOUR}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin("bytes=1MB", false);
        add_rows(RECORD_KIND_OPERATION, 19000, cases[i].age, cases[i].apart);
        add_rows(RECORD_KIND_OPERATION, 500, HOUR, 1); // they stay
        close_books();
        if (pass(now_ns) > 19000 / 8)
            fail_msg("case %zu takes long", i);
        assert_true(integer("SELECT page_count FROM pragma_page_count") *
                        integer("PRAGMA page_size") <=
                    1 << 20);
        assert_int_equal(integer("SELECT count(*) > 500 FROM operation"), 1);
        assert_true(integer("SELECT until_ns FROM expiry") <= now_ns);
        exec("DELETE FROM operation; DELETE FROM run; DELETE FROM ledger; DELETE FROM range;"
             "DELETE FROM stream");
    }
}

TEST_CASE(test_how_far_a_store_exceeds_its_limit)
{
    uint64_t over = 0;
    begin("bytes=4MB", true);
    (void)pass(now_ns);
    const uint64_t due_ns = retention_due_ns(retention);
    for (unsigned i = 0; i < 200 && over < 1 << 18; i++) {
        assert_int_equal(retention_excess(retention, &over, NULL), STATUS_OK);
        const int64_t used = integer("SELECT (SELECT page_count FROM pragma_page_count)"
                                     " - (SELECT freelist_count FROM pragma_freelist_count)") *
                             integer("PRAGMA page_size");
        assert_int_equal(over, used > 4 << 20 ? used - (4 << 20) : 0);
        assert_int_equal(retention_due_ns(retention), over > 0 ? 0 : due_ns);
        add_rows(RECORD_KIND_OPERATION, 400, HOUR, 1);
    }
    assert_true(over >= 1 << 18);
    begin("raw=forever", true); // without a limit
    assert_int_equal(retention_excess(retention, &over, NULL), STATUS_OK);
    assert_int_equal(over, 0);
}

TEST_CASE(test_late_records_are_counted_and_go_with_the_next_pass)
{
    add_rows(RECORD_KIND_OPERATION, 100, 50 * HOUR, HOUR / 2);
    add_rows(RECORD_KIND_OPERATION, 5, 40 * HOUR, HOUR);
    close_books();
    begin("raw=10h", false);
    (void)pass(now_ns);
    const int64_t left = integer("SELECT count(*) FROM operation");
    add_rows(RECORD_KIND_OPERATION, 3, 70 * HOUR, HOUR);
    // As the writer stores them; numbers go on from the highest that is there.
    exec("UPDATE operation SET number = (SELECT last FROM range WHERE stream = 8) + id -"
         " (SELECT max(id) - 3 FROM operation) WHERE started_ns < (SELECT until_ns FROM expiry);"
         "UPDATE range SET last = last + 3 WHERE stream = 8;"
         "UPDATE stream SET next = next + 3, produced = produced + 3 WHERE stream = 8;"
         "UPDATE ledger SET stored = stored + 3 WHERE kind = 8;"
         "UPDATE run SET stored = stored + 3, produced = produced + 3");
    assert_int_equal(integer("SELECT count(*) FROM operation"), left + 3);
    expect_balance();
    const int64_t until_ns = integer("SELECT until_ns FROM expiry");
    assert_int_equal(pass(now_ns), 1);
    assert_int_equal(integer("SELECT count(*) FROM operation"), left);
    assert_int_equal(integer("SELECT until_ns FROM expiry"), until_ns);
    expect_balance();
}

TEST_CASE(test_nothing_goes_for_ever)
{
    add_rows(RECORD_KIND_OPERATION, 1000, 5000 * DAY, DAY);
    close_books();
    begin("raw=forever", true);
    assert_int_equal(pass(now_ns), 0);
    begin("raw=10d", false);
    assert_int_equal(pass(INT64_MIN + DAY), 0); // a clock that is nowhere
    assert_int_equal(pass(0), 0);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 1000);
    assert_int_equal(integer("SELECT count(*) FROM expiry"), 0);
    // Rules that nobody set let nothing go.
    add_rollups(60);
    const int64_t rollups = integer("SELECT count(*) FROM rollup");
    const struct retention_rules none = {0};
    retention_free(retention);
    assert_int_equal(retention_new(&retention, db, &none, false, NULL), STATUS_OK);
    assert_int_equal(pass(now_ns), 0);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 1000);
    assert_int_equal(integer("SELECT count(*) FROM rollup"), rollups);
    assert_int_equal(integer("SELECT count(*) FROM rollup_gap"), 0);
}

// The oldest go first, and what is said to have expired covers all that has: at each
// step the rows before are gone but for those of the last minute.
TEST_CASE(test_the_oldest_go_first)
{
    add_rows(RECORD_KIND_OPERATION, 2000, 10 * HOUR, 10000000000LL);
    add_rows(RECORD_KIND_OPERATION, 2000, 11 * HOUR, 10000000000LL); // by time among them
    close_books();
    const struct expire_rows rows = {.kind = RECORD_KIND_OPERATION,
                                     .before_ns = rollup_bucket(ROLLUP_MINUTE, now_ns - 6 * HOUR),
                                     .last_id = INT64_MAX,
                                     .count = 300};
    int64_t before = 0;
    for (unsigned gone = 300; gone == 300;) {
        assert_int_equal(expire_slice(db, &rows, &gone, NULL), STATUS_OK);
        const int64_t until_ns = integer("SELECT until_ns FROM expiry");
        assert_true(until_ns >= before && until_ns <= rows.before_ns);
        assert_int_equal(until_ns % MINUTE, 0);
        before = until_ns;
        if (gone == 300)
            assert_int_equal(
                integer(format_text(
                    "SELECT %lld - min(started_ns) <= %lld FROM operation WHERE started_ns <"
                    " %lld HAVING count(*) > 0",
                    (long long)until_ns, (long long)MINUTE, (long long)until_ns)),
                integer("SELECT 1"));
        expect_balance();
    }
    assert_int_equal(before, rows.before_ns);
}

// ---- Rollups ----------------------------------------------------------------------------

static void add_watermarks(enum record_kind kind)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(kind, metrics);
    for (unsigned i = 0; i < count; i++)
        execf("INSERT OR REPLACE INTO rollup_state(metric, watermark) VALUES(%d, 1000000)",
              rollup_metric_number(metrics[i]));
}

static void add_gap(enum rollup_level level, int64_t since_ns, int why)
{
    execf("INSERT INTO rollup_gap(kind, grouping, level, since_ns, until_ns, why)"
          " VALUES(%d, 0, %d, %lld, %lld, %d)",
          (int)RECORD_KIND_OPERATION, (int)level, (long long)since_ns, (long long)now_ns, why);
}

// All operations are in rollups, but of the last 40 days no sums of days are kept.
static void lack_sums(void)
{
    add_watermarks(RECORD_KIND_OPERATION);
    add_gap(ROLLUP_DAY, now_ns - 40 * DAY, ROLLUP_SPARSE);
}

// Where sums of days are not kept, records wait until these are built, and no longer.
TEST_CASE(test_records_go_once_their_sums_are_built)
{
    add_rows(RECORD_KIND_OPERATION, 100, 20 * DAY, HOUR);
    close_books();
    lack_sums();
    begin("raw=10d", true);
    retention_sums_built(retention);
    assert_true(pass(now_ns) > 0);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 100);
    assert_int_equal(integer("SELECT count(*) > 0 FROM rollup_gap WHERE why = 3"), 1);
    retention_sums_built(retention);
    assert_int_equal(retention_due_ns(retention), 0);
    // None could be built: the next pass is not due before its minute.
    (void)pass(now_ns);
    const uint64_t due_ns = retention_due_ns(retention);
    retention_sums_built(retention);
    assert_int_equal(retention_due_ns(retention), due_ns);
    // One that is due in its minute asks again.
    (void)pass(now_ns);
    exec("DELETE FROM rollup_gap");
    retention_sums_built(retention);
    assert_int_equal(retention_due_ns(retention), 0);
    (void)pass(now_ns);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 0);
    expect_balance();
}

TEST_CASE(test_records_wait_for_their_rollups)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(RECORD_KIND_OPERATION, metrics);
    add_rows(RECORD_KIND_OPERATION, 1000, 2000 * DAY, DAY);
    close_books();
    begin("raw=1d", true);
    assert_int_equal(pass(now_ns), 0); // no watermark
    for (unsigned i = 0; i < count; i++) {
        execf("INSERT OR REPLACE INTO rollup_state(metric, watermark) VALUES(%d, %d)",
              rollup_metric_number(metrics[i]), i == 1 ? 300 : 400);
        if (i + 1 < count)
            assert_int_equal(pass(now_ns), 0); // not of all metrics
    }
    assert_true(pass(now_ns) > 0);
    assert_int_equal(integer("SELECT min(id) FROM operation"), 301);
    expect_balance();
    // Rollups that are to be made again need their rows.
    exec("UPDATE rollup_state SET watermark = 1000");
    add_gap(ROLLUP_MONTH, integer("SELECT started_ns FROM operation WHERE id = 501"),
            ROLLUP_CLEARED);
    assert_true(pass(now_ns) > 0);
    assert_int_equal(integer("SELECT min(id) FROM operation"), 501);
    // Both passes are one row in the list of acts, and a day later there is another.
    static const char gone[] = "SELECT sum(rows) * 10 + count(*) FROM admin"
                               " WHERE action = 'retention' AND detail = 'records'";
    assert_int_equal(integer(gone), 500 * 10 + 1);
    exec("UPDATE admin SET at_ns = at_ns - 86400000000000");
    admin_log_retention(db, "records", 7);
    assert_int_equal(integer(gone), 507 * 10 + 2);
    // The oldest acts go.
    exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
         " INSERT INTO admin(at_ns, actor, action, detail, outcome, rows)"
         " SELECT i, '', '', '', '', 0 FROM n");
    struct admin_act act = {.action = "clear"};
    admin_act_set_user(act.actor, 0, "");
    assert_string_equal(act.actor, "user root");
    admin_act_set_user(act.actor, 4000000000, ", file");
    assert_string_equal(act.actor, "user 4000000000, file");
    admin_log_add(db, &act);
    assert_int_equal(integer("SELECT count(*) FROM admin"), ADMIN_LOG_ROWS);
    assert_int_equal(integer("SELECT action = 'clear' FROM admin ORDER BY id DESC LIMIT 1"), 1);
    exec("DELETE FROM rollup_gap");
    assert_true(pass(now_ns) > 0);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 0);
    expect_balance();
}

static int64_t oldest(enum rollup_level level, bool finest)
{
    return integer(format_text("SELECT min(started_ns) FROM rollup WHERE level = %d AND"
                               " (grouping = 0) = %d",
                               (int)level, finest));
}

static int64_t gap(enum rollup_level level, bool finest)
{
    return integer(
        format_text("SELECT CASE WHEN count(*) = 1 AND min(until_ns) = max(until_ns) AND"
                    " max(since_ns) = -9223372036854775808 THEN max(until_ns) END FROM rollup_gap"
                    " WHERE kind = %d AND why = %d AND level = %d AND (grouping = 0) = %d",
                    (int)RECORD_KIND_OPERATION, (int)ROLLUP_OLD, (int)level, finest));
}

TEST_CASE(test_rollups_over_their_age_go_level_by_level)
{
    add_rollups(60);
    const int64_t months = integer("SELECT count(*) FROM rollup WHERE level = 3");
    begin("minute=2d,hour=5d,day=15d,finest-minute=1d,finest-hour=2d,finest-day=3d", true);
    assert_true(pass(now_ns) > 10);
    static const struct {
        enum rollup_level level, coarser;
        int64_t age, finest_age;
    } cases[] = {{ROLLUP_MINUTE, ROLLUP_HOUR, 2 * DAY, DAY},
                 {ROLLUP_HOUR, ROLLUP_DAY, 5 * DAY, 2 * DAY},
                 {ROLLUP_DAY, ROLLUP_MONTH, 15 * DAY, 3 * DAY}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int64_t until = rollup_bucket(cases[i].coarser, now_ns - cases[i].age);
        const int64_t finest_until = rollup_bucket(cases[i].coarser, now_ns - cases[i].finest_age);
        assert_true(oldest(cases[i].level, false) >= until);
        assert_true(oldest(cases[i].level, false) <= until + DAY);
        assert_true(oldest(cases[i].level, true) >= finest_until);
        assert_int_equal(gap(cases[i].level, false), until);
        assert_int_equal(gap(cases[i].level, true), finest_until);
    }
    assert_int_equal(integer("SELECT count(*) FROM rollup WHERE level = 3"), months);
    assert_int_equal(pass(now_ns), 0);
    (void)pass(now_ns + DAY); // the gaps grow, and are no more
    assert_int_equal(gap(ROLLUP_MINUTE, false), rollup_bucket(ROLLUP_HOUR, now_ns - DAY));
}

// What a clock that is ahead takes is gone, but not what comes when it is right again.
TEST_CASE(test_a_clock_ahead_gives_up_no_time_to_come)
{
    add_rows(RECORD_KIND_OPERATION, 100, 50 * HOUR, HOUR / 2);
    add_rollups(4);
    close_books();
    const int64_t newest_ns = integer("SELECT max(started_ns) FROM operation");
    begin("raw=10h,minute=1d,finest-minute=1d", false);
    assert_true(pass(now_ns + 36500 * DAY) > 0);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 0);
    assert_in_range(integer("SELECT until_ns FROM expiry"), newest_ns, newest_ns + MINUTE);
    assert_true(integer("SELECT count(*) FROM rollup_gap") > 0);
    assert_in_range(integer("SELECT max(until_ns) FROM rollup_gap"), 1, now_ns + 32 * DAY);
}

// A reader never sees a bucket missing that no gap speaks of.
TEST_CASE(test_the_gap_comes_before_the_rows_go)
{
    add_rollups(4);
    const struct expire_level rollups = {.grouping = ROLLUP_MODEL,
                                         .level = ROLLUP_HOUR,
                                         .before_ns = rollup_bucket(ROLLUP_DAY, now_ns - DAY),
                                         .count = 11};
    const int64_t before = integer("SELECT count(*) FROM rollup");
    unsigned gone = 0;
    assert_int_equal(expire_level_slice(db, &rollups, &gone, NULL), STATUS_OK);
    assert_int_equal(gone, 11);
    assert_int_equal(integer("SELECT count(*) FROM rollup"), before - gone);
    assert_int_equal(integer("SELECT count(*) FROM rollup_gap"), 1);
    assert_int_equal(integer("SELECT until_ns FROM rollup_gap"), rollups.before_ns);
    while (gone > 0)
        assert_int_equal(expire_level_slice(db, &rollups, &gone, NULL), STATUS_OK);
    assert_int_equal(integer("SELECT count(*) FROM rollup_gap"), 1);
}

static int64_t used_bytes(void)
{
    struct expire_room room;
    assert_int_equal(expire_room(db, &room, NULL), STATUS_OK);
    return room.bytes - room.free;
}

TEST_CASE(test_the_size_is_kept_and_the_file_shrinks)
{
    add_rows(RECORD_KIND_INFERENCE, 40000, 30 * DAY, 50000000000LL);
    add_rows(RECORD_KIND_OPERATION, 40000, 30 * DAY, 50000000000LL);
    close_books();
    const int64_t before = used_bytes();
    assert_true(before > 3 << 20);
    begin("bytes=2MB", false);
    (void)pass(now_ns);
    assert_true(used_bytes() <= 2 << 20);
    assert_true(used_bytes() > (2 << 20) * 9 / 10); // and no more than needed
    assert_true(integer("PRAGMA page_count") * integer("PRAGMA page_size") <= 2 << 20);
    // The oldest of both kinds are gone, up to a slice of one of them: 512 rows of 50 s.
    assert_true(integer("SELECT abs((SELECT min(started_ns) FROM inference) -"
                        " (SELECT min(started_ns) FROM operation))") <= 512 * 50000000000LL);
    expect_balance();
    exec("PRAGMA wal_checkpoint(TRUNCATE)");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= 2 << 20);
    assert_int_equal(pass(now_ns), 0);
}

// For five passes nothing newer is deleted in place of records that wait for their sums.
TEST_CASE(test_the_size_waits_for_sums)
{
    add_rows(RECORD_KIND_OPERATION, 8000, 30 * DAY, 10000000000LL);
    add_rows(RECORD_KIND_INFERENCE, 8000, 5 * DAY, 10000000000LL);
    close_books();
    add_rollups(1);
    lack_sums();
    add_watermarks(RECORD_KIND_INFERENCE);
    const int64_t rollups = integer("SELECT count(*) FROM rollup");
    for (unsigned i = 0; i < 3; i++) {
        if (i < 2) // from the second time on as after a restart
            begin("bytes=1MB,minute=forever,hour=forever,finest-minute=forever,finest-hour=forever",
                  true);
        (void)pass(now_ns);
        if (i == 1) // rebuilding ended early
            retention_sums_built(retention);
        assert_int_equal(integer("SELECT count(*) FROM operation"), 8000);
        assert_int_equal(integer("SELECT count(*) FROM inference"), 8000);
        assert_int_equal(integer("SELECT count(*) FROM rollup"), rollups);
        assert_int_equal(integer("SELECT count(*) > 0 FROM rollup_gap WHERE why = 3"), 1);
    }
    // Those of the first of two days are built.
    exec("UPDATE rollup_gap SET since_ns = (SELECT max(until_ns) FROM rollup_gap WHERE why = 3)"
         " WHERE why = 0; DELETE FROM rollup_gap WHERE why = 3");
    retention_sums_built(retention);
    (void)pass(now_ns);
    assert_in_range(integer("SELECT count(*) FROM operation"), 1, 7999);
    for (unsigned i = 0; i <= 5; i++) {
        assert_int_equal(integer("SELECT count(*) FROM inference"), 8000);
        (void)pass(now_ns);
    }
    assert_in_range(integer("SELECT count(*) FROM inference"), 1, 7999);
    expect_balance();
}

// Where records alone are not enough, the finest rollups follow; what nobody may
// take away is left, and the pass ends all the same.
TEST_CASE(test_rollups_go_for_size_when_records_have)
{
    add_rows(RECORD_KIND_OPERATION, 2000, 30 * DAY, 100000000000LL);
    close_books();
    add_rollups(60);
    const int64_t months = integer("SELECT count(*) FROM rollup WHERE level = 3");
    const int64_t days = integer("SELECT count(*) FROM rollup WHERE level = 2");
    assert_true(used_bytes() > 2 << 20);
    begin("bytes=1.5MB,minute=forever,hour=forever,finest-minute=forever,finest-hour=forever",
          false);
    assert_true(pass(now_ns) > 0);
    assert_true(used_bytes() <= 3 << 19);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 0);
    assert_int_equal(integer("SELECT count(*) FROM rollup WHERE level = 3"), months);
    assert_int_equal(integer("SELECT count(*) FROM rollup WHERE level = 2"), days);
    assert_true(integer("SELECT count(*) FROM rollup_gap WHERE why = 1 AND level = 0") > 0);
    expect_balance();
    add_rows(RECORD_KIND_DEVICE, 20000, 30 * DAY, 1000000000LL); // stays
    begin("bytes=1MB", false);
    (void)pass(now_ns);
    assert_int_equal(integer("SELECT count(*) FROM device"), 20000);
    assert_int_equal(pass(now_ns), 0);
}

// Pages that the next records fill are left in the file; more are given back, a few
// at a time.
TEST_CASE(test_free_pages_are_given_back_in_slices)
{
    add_rows(RECORD_KIND_OPERATION, 100000, 30 * DAY, 10000000000LL);
    close_books();
    const int64_t pages = integer("PRAGMA page_count");
    exec("DELETE FROM operation WHERE id <= 1000");
    begin("raw=forever", false);
    assert_int_equal(pass(now_ns), 0);
    assert_int_equal(integer("PRAGMA page_count"), pages);
    exec("DELETE FROM operation WHERE id <= 80000");
    const int64_t freed = integer("PRAGMA freelist_count");
    assert_true(freed > pages / 2);
    bool changed = false;
    int64_t last = pages;
    unsigned slices = 0;
    do {
        assert_int_equal(retention_step(retention, now_ns, &changed, NULL), STATUS_OK);
        retention_record_time(retention, 0, 10000000, false);
        const int64_t left = integer("PRAGMA page_count");
        assert_true(last - left <= 64 + 8); // and the pages that point to others
        slices += left < last;
        last = left;
    } while (retention_due_ns(retention) < UINT64_C(1000000000));
    assert_true(slices > 3);
    assert_true(integer("PRAGMA freelist_count") <= integer("PRAGMA page_count") / 32);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 20000);
    assert_int_equal(integer("SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1);
}

static unsigned rows_of_a_slice(void)
{
    bool changed = false;
    const int64_t before = integer("SELECT count(*) FROM operation");
    assert_int_equal(retention_step(retention, now_ns, &changed, NULL), STATUS_OK);
    return (unsigned)(before - integer("SELECT count(*) FROM operation"));
}

TEST_CASE(test_slices_follow_what_they_take)
{
    const uint64_t ms = 1000000;
    add_rows(RECORD_KIND_OPERATION, 60000, 30 * DAY, 10000000LL);
    close_books();
    begin("raw=1d", false);
    assert_int_equal(rows_of_a_slice(), 512);
    retention_record_time(retention, 100 * ms, 130 * ms, true);
    assert_int_equal(retention_due_ns(retention), (130 + 3 * 30) * ms);
    assert_int_equal(rows_of_a_slice(), 256);
    retention_record_time(retention, 100 * ms, 108 * ms, false);
    assert_int_equal(retention_due_ns(retention), 108 * ms);
    assert_int_equal(rows_of_a_slice(), 256);
    for (int i = 0; i < 5; i++) {
        retention_record_time(retention, 0, 1, false);
        assert_int_equal(rows_of_a_slice(), 512 << i);
    }
    retention_record_time(retention, 0, 1, false);
    assert_int_equal(rows_of_a_slice(), 8192); // at most
    for (int i = 0; i < 9; i++) {
        retention_record_time(retention, 0, UINT64_MAX / 8, false);
        (void)rows_of_a_slice();
    }
    retention_record_time(retention, 0, UINT64_MAX / 8, false);
    assert_int_equal(rows_of_a_slice(), 256); // at least
}

// How long a few rows take, or none, says nothing of many.
TEST_CASE(test_slices_that_end_early_say_nothing)
{
    add_rows(RECORD_KIND_OPERATION, 100, 30 * DAY, 1000000);
    close_books();
    begin("raw=1d", false);
    for (int i = 0; i < 20; i++) {
        (void)rows_of_a_slice();
        retention_record_time(retention, 0, 1, false);
    }
    add_rows(RECORD_KIND_OPERATION, 20000, 30 * DAY, 1000000);
    unsigned rows = 0;
    for (int i = 0; i < 20 && rows == 0; i++) {
        rows = rows_of_a_slice();
        if (rows == 0)
            retention_record_time(retention, 0, 1, false);
    }
    assert_int_equal(rows, 512);
}

// What cannot be written is left as it is, and tried again with the next pass.
TEST_CASE(test_a_failure_changes_nothing)
{
    add_rows(RECORD_KIND_OPERATION, 1000, 30 * DAY, 1000000000LL);
    close_books();
    begin("raw=1d", false);
    exec("CREATE TEMP TRIGGER no BEFORE DELETE ON main.operation WHEN old.id = 400 BEGIN"
         " SELECT raise(ABORT, 'not this one'); END");
    struct error err = {0};
    bool changed = true;
    assert_int_not_equal(retention_step(retention, now_ns, &changed, &err), STATUS_OK);
    assert_non_null(strstr(err.text, "not this one"));
    assert_false(changed);
    assert_true(sqlite3_get_autocommit(db));
    assert_int_equal(integer("SELECT count(*) FROM operation"), 1000);
    assert_int_equal(integer("SELECT count(*) FROM expiry"), 0);
    expect_balance();
    retention_record_time(retention, 0, 1, false);
    assert_true(retention_due_ns(retention) >= 60 * UINT64_C(1000000000));
    exec("DROP TRIGGER no");
    assert_true(pass(now_ns) > 0);
    assert_int_equal(integer("SELECT count(*) FROM operation"), 0);
    expect_balance();
}

TEST_MAIN_EACH(set_up, tear_down, test_records_over_their_age_go, test_samples_over_their_age_go,
               test_runs_without_records_go, test_records_spread_over_centuries_make_room,
               test_how_far_a_store_exceeds_its_limit,
               test_late_records_are_counted_and_go_with_the_next_pass, test_nothing_goes_for_ever,
               test_the_oldest_go_first, test_records_go_once_their_sums_are_built,
               test_records_wait_for_their_rollups, test_rollups_over_their_age_go_level_by_level,
               test_a_clock_ahead_gives_up_no_time_to_come, test_the_gap_comes_before_the_rows_go,
               test_the_size_is_kept_and_the_file_shrinks, test_the_size_waits_for_sums,
               test_rollups_go_for_size_when_records_have, test_free_pages_are_given_back_in_slices,
               test_slices_follow_what_they_take, test_slices_that_end_early_say_nothing,
               test_a_failure_changes_nothing)
