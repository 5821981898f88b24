// Backups and bundles: whole or not there, equal to what they are copied from, and
// honest about what they leave out.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/store/transfer/copy.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/atomic_file.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"
#include "tests/unit/transfer/copy_fixture.h"

static struct error err;
static struct result *answer;

static bool is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static char *partial_of(const char *path)
{
    static char partial[FOLDER_PATH_SIZE + 32];
    (void)snprintf(partial, sizeof partial, "%s.inferstat-partial", path);
    return partial;
}

TEST_CASE(test_a_backup_is_the_store)
{
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    struct stat about;
    copy_make_store(from, 3, 50);
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_OK);
    assert_int_equal(result_integer(answer, 0, "runs", 0), 3);
    assert_int_equal(result_integer(answer, 0, "inference", 0), 150);
    assert_int_equal(result_integer(answer, 0, "records", 0), 3 * 56);
    assert_int_equal(result_integer(answer, 0, "left_out", -1), 0);
    result_free(answer);
    assert_int_equal(copy_table_digest(from), copy_table_digest(to));
    assert_int_equal(stat(to, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_true(copy_balances(to));
    assert_false(is_there(partial_of(to)));
}

// Of a store that is open, with its last commits in the log.
TEST_CASE(test_a_backup_of_a_live_store)
{
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    sqlite3 *db = NULL;
    copy_make_store(from, 1, 10);
    assert_int_equal(database_open_writer(&db, from, &err), STATUS_OK);
    assert_int_equal(database_exec(db,
                                   "INSERT INTO meta VALUES('open', 1);"
                                   "INSERT INTO name(text) VALUES('in the log')",
                                   &err),
                     STATUS_OK);
    assert_int_equal(database_exec(db, "BEGIN;INSERT INTO name(text) VALUES('never')", &err),
                     STATUS_OK);
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_OK);
    result_free(answer);
    database_close(db);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM name WHERE text = 'in the log'"), 1);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM name WHERE text = 'never'"), 0);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM meta WHERE key = 'open'"), 0);
    // The one file is all there is, and goes anywhere.
    assert_false(is_there(format_text("%s-wal", to)));
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM pragma_journal_mode"
                                      " WHERE journal_mode = 'delete'"),
                     1);
}

TEST_CASE(test_nothing_is_replaced)
{
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    copy_make_store(from, 1, 1);
    write_text(to, "precious");
    answer = NULL;
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "already exists"));
    assert_int_equal(unlink(to), 0);
    assert_int_equal(symlink("/nowhere/at/all", to), 0);
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_BUSY);
    assert_int_equal(copy_to(from, copy_path("no/such/folder.db"), NULL, &answer, &err),
                     STATUS_NOT_FOUND);
    assert_int_equal(copy_to(from, from, NULL, &answer, &err), STATUS_BUSY);
    assert_null(answer);
}

// A log outlives its file where somebody removes that alone, and would be read into the
// next file of the name: neither a copy nor a store begins there.
TEST_CASE(test_a_log_of_a_file_that_was)
{
    static const char *const ends[] = {"-wal", "-journal"};
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    copy_make_store(from, 1, 1);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char log[FOLDER_PATH_SIZE + 16];
        sqlite3 *db = NULL;
        (void)snprintf(log, sizeof log, "%s%s", to, ends[i]);
        write_text(log, "of another");
        assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_BUSY);
        assert_non_null(strstr(err.text, log));
        assert_int_equal(database_open_writer(&db, to, &err), STATUS_BUSY);
        assert_non_null(strstr(err.text, log));
        assert_false(is_there(to));
        assert_false(is_there(partial_of(to)));
        assert_true(is_there(log));
        assert_int_equal(unlink(log), 0);
    }
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_OK);
    result_free(answer);
}

// What a process leaves when it is killed is taken over by the next; what another has
// in hand, or what is no plain file of ours, is not.
TEST_CASE(test_what_is_left_of_another)
{
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    copy_make_store(from, 1, 1);
    char log[FOLDER_PATH_SIZE + 48];
    (void)snprintf(log, sizeof log, "%s-wal", partial_of(to));
    write_text(partial_of(to), "half of a copy");
    write_text(log, "and its log");
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_false(is_there(log));
    assert_int_equal(copy_table_digest(from), copy_table_digest(to));
    assert_int_equal(unlink(to), 0);

    const int fd = open(partial_of(to), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_BUSY);
    (void)close(fd);
    assert_int_equal(unlink(partial_of(to)), 0);

    const char *other = copy_path("other");
    write_text(other, "precious");
    assert_int_equal(symlink(other, partial_of(to)), 0);
    assert_int_not_equal(copy_to(from, to, NULL, &answer, &err), STATUS_OK);
    assert_int_equal(unlink(partial_of(to)), 0);
    assert_int_equal(link(other, partial_of(to)), 0);
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_BUSY);
    struct stat about;
    assert_int_equal(stat(other, &about), 0);
    assert_int_equal(about.st_size, 8);
    assert_false(is_there(to));
}

// A damaged store makes no backup that says it is one.
TEST_CASE(test_a_damaged_store)
{
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    copy_make_store(from, 2, 500);
    const int64_t page =
        copy_integer(from, "SELECT rootpage FROM sqlite_schema WHERE name = 'inference_started'");
    const int fd = open(from, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, (page - 1) * 4096), 8);
    (void)close(fd);
    assert_int_equal(copy_to(from, to, NULL, &answer, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "damaged"));
    assert_false(is_there(to));
    assert_false(is_there(partial_of(to)));
}

TEST_CASE(test_a_copy_can_be_cancelled)
{
    const char *from = copy_path("s.db"), *to = copy_path("copy.db");
    struct store *store = NULL;
    copy_make_store(from, 2, 5000);
    for (unsigned bundle = 0; bundle < 2; bundle++) {
        struct query query = {.kind = QUERY_COPY, .file.bundle = bundle != 0};
        (void)snprintf(query.file.path, sizeof query.file.path, "%s", to);
        assert_int_equal(store_open(&store, from, &err), STATUS_OK);
        store_cancel(store);
        assert_int_equal(store_query(store, &query, &answer, &err), STATUS_CANCELLED);
        store_close(store);
        assert_false(is_there(to));
        assert_false(is_there(partial_of(to)));
    }
}

// ---- Bundles
// -------------------------------------------------------------------------------------

// Seconds of the run from which its bundle is.
static struct query_filter window(int64_t since, int64_t until)
{
    return (struct query_filter){.since_ns = COPY_BASE_NS + since * COPY_SECOND,
                                 .until_ns = COPY_BASE_NS + until * COPY_SECOND};
}

// Expects the windows of rates and of now to be so many seconds until the present.
static void expect_windows(const char *path, int64_t seconds)
{
    struct query query = {.filter.since_ns = COPY_BASE_NS - COPY_SECOND};
    struct store *store;
    expect_ok(store_open(&store, path, &err), &err);
    static const enum query_kind kinds[] = {QUERY_SUMMARY, QUERY_NOW};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        query.kind = kinds[i];
        expect_ok(store_query(store, &query, &answer, &err), &err);
        assert_int_equal(result_integer(answer, 0, "window_ns", 0) / COPY_SECOND, seconds);
        result_free(answer);
    }
    store_close(store);
}

TEST_CASE(test_a_bundle_of_a_window)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    copy_make_store(from, 3, 100);
    const struct query_filter filter = window(10, 40);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
    // The first run alone lives in the window; its device goes along.
    assert_int_equal(result_integer(answer, 0, "runs", 0), 1);
    assert_int_equal(result_integer(answer, 0, "inference", 0), 30);
    assert_int_equal(result_integer(answer, 0, "device", 0), 1);
    assert_int_equal(result_integer(answer, 0, "records", 0), 31);
    assert_int_equal(result_integer(answer, 0, "left_out", 0), 106 - 31);
    result_free(answer);
    assert_true(copy_balances(to));
    assert_int_equal(copy_integer(to, "SELECT sum(cleared) FROM ledger"), 75);
    assert_int_equal(copy_integer(to, "SELECT stored FROM run"), 106);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM name WHERE text LIKE 'stage%'"), 0);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM meta WHERE key = 'bundle' AND"
                                      " json_extract(value, '$.since_ns') > 0"),
                     1);
    assert_int_equal(copy_integer(to, "SELECT count(*) FROM meta WHERE key = 'fingerprint' AND"
                                      " json_extract(value, '$.runs') = 1"),
                     1);
    copy_exec(to, "UPDATE run SET received_ns = started_ns");
    expect_windows(to, 30);
    // A bundle of it has no more, whatever its window.
    const struct query_filter wider = window(5, 90), none = {.since_ns = 0},
                              narrower = window(12, 40);
    const struct query_filter *const seconds[] = {&wider, &none, &narrower};
    for (size_t i = 0; i < COUNT_OF(seconds); i++) {
        const char *again = copy_path("again.db");
        assert_int_equal(copy_to(to, again, seconds[i], &answer, &err), STATUS_OK);
        result_free(answer);
        expect_windows(again, seconds[i] == &narrower ? 28 : 30);
        assert_int_equal(unlink(again), 0);
    }
    copy_exec(to, "UPDATE meta SET value = json_remove(value, '$.since_ns') WHERE key = 'bundle'");
    expect_windows(to, 40);
    copy_exec(to, "UPDATE meta SET value = json_remove(value, '$.until_ns') WHERE key = 'bundle'");
    expect_windows(to, 100);
}

// A pattern over a bundle of one name does not make it a bundle of more.
TEST_CASE(test_a_bundle_keeps_its_name)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db"), *again = copy_path("again.db");
    struct query_filter filter = {.by[QUERY_BY_HOST] = "host-0"};
    copy_make_store(from, 3, 100);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "*");
    assert_int_equal(copy_to(to, again, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_int_equal(copy_integer(again, "SELECT value ->> 'host' = 'host-0' FROM meta"
                                         " WHERE key = 'bundle'"),
                     1);
}

// Of events, each with a record when it begins and another when it ends, a window has those that
// last in it.
TEST_CASE(test_a_bundle_has_events_that_last)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    copy_make_store(from, 2, 50);
    copy_exec(from, "INSERT INTO event(run, stream, number, started_ns, received_ns, event, code,"
                    " duration_ns) SELECT 1, 9, row_number() OVER (), r.started_ns + column2 *"
                    " 1000000000, 0, 1, column1, column3 * 1000000000 FROM run r, (VALUES"
                    " (0, 5, NULL), (1, 6, NULL), (1, 6, 3), (2, 7, NULL), (2, 7, 4),"
                    " (3, 20, NULL), (4, 21, NULL), (4, 21, 3), (5, 40, NULL)) WHERE r.run = 1");
    const struct query_filter filter = window(10, 40);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    // The records of event 0 are counted by the last digit, those of event 1 by the one before.
    assert_int_equal(copy_integer(to, "SELECT sum(1 || substr('00000', 1, code)) FROM event"),
                     21201);
}

TEST_CASE(test_bundles_of_names)
{
    static const struct {
        enum query_dimension by;
        const char *name;
        int64_t runs, inferences, loads, samples;
    } cases[] = {
        {QUERY_BY_MODEL, "m-1", 3, 99, 0, 0},        {QUERY_BY_MODEL, "m-0", 3, 102, 3, 0},
        {QUERY_BY_HOST, "host-0", 2, 200, 2, 2},     {QUERY_BY_RUN, "01020301", 1, 100, 1, 1},
        {QUERY_BY_DEVICE, "device-0", 3, 300, 3, 0},
    };
    const char *from = copy_path("s.db");
    copy_make_store(from, 3, 100);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query_filter filter = {0};
        char name[32];
        (void)snprintf(name, sizeof name, "b%zu.db", i);
        (void)snprintf(filter.by[cases[i].by], QUERY_TEXT_SIZE, "%s", cases[i].name);
        const char *to = copy_path(name);
        assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
        assert_int_equal(result_integer(answer, 0, "runs", 0), cases[i].runs);
        assert_int_equal(result_integer(answer, 0, "inference", 0), cases[i].inferences);
        assert_int_equal(result_integer(answer, 0, "load", 0), cases[i].loads);
        assert_int_equal(result_integer(answer, 0, "process_sample", 0), cases[i].samples);
        result_free(answer);
        assert_true(copy_balances(to));
    }
}

// A store whose second run, on host-1, is alone with what is called special.
static void make_special(const char *path)
{
    copy_make_store(path, 3, 20);
    copy_exec(path,
              "INSERT INTO name(text) VALUES('special');"
              "UPDATE inference SET model = (SELECT id FROM name WHERE text = 'special'), device ="
              " (SELECT id FROM name WHERE text = 'special') WHERE run = 2 AND request = 5;"
              "INSERT INTO device(id, run, stream, number, started_ns, received_ns, ordinal,"
              " name, memory_bytes) SELECT 1000, run, stream, 1000, started_ns,"
              " received_ns, 1, (SELECT id FROM name WHERE text = 'special'), memory_bytes"
              " FROM device WHERE run = 2;"
              "INSERT INTO model(id, run, stream, number, started_ns, received_ns, name,"
              " format) SELECT 1000 + n.id, d.run, d.stream, 2000 + n.id, d.started_ns,"
              " d.received_ns, n.id, 'gguf'"
              " FROM device d JOIN name n ON n.text IN ('m-2', 'special') WHERE d.id = 1000;"
              "UPDATE ledger SET stored = stored + 1 WHERE run = 2 AND kind = 1;"
              "INSERT INTO baseline VALUES(1, 'all of it', 1, '', 1, 2, 1.0, '{}');"
              "INSERT INTO baseline_sample VALUES(1, 'ttft_ns', 1, 2, 1, x'00')");
}

static void assert_rows(const char *path, const char *table, int64_t count)
{
    const int64_t found = copy_integer(path, format_text("SELECT count(*) FROM %s", table));
    if (found != count)
        fail_msg("%s: %lld, not %lld", table, (long long)found, (long long)count);
}

// Of other runs, hosts, models and devices a bundle says nothing.
TEST_CASE(test_bundles_hold_what_was_asked_for)
{
    static const struct {
        enum query_dimension by;
        int64_t devices, models;
    } cases[] = {{QUERY_BY_MODEL, 2, 1}, {QUERY_BY_DEVICE, 1, 2}};
    const char *from = copy_path("s.db");
    make_special(from);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query_filter filter = {0};
        char name[32];
        (void)snprintf(name, sizeof name, "b%zu.db", i);
        (void)snprintf(filter.by[cases[i].by], QUERY_TEXT_SIZE, "special");
        const char *to = copy_path(name);
        assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
        assert_int_equal(result_integer(answer, 0, "runs", 0), 1);
        result_free(answer);
        assert_rows(to, "run WHERE run = 2", 1);
        assert_rows(to, "inference", 1);
        assert_rows(to, "load", 0);
        assert_rows(to, "device", cases[i].devices);
        assert_rows(to, "model", cases[i].models);
        assert_rows(to, "stream WHERE run <> 2", 0);
        assert_rows(to, "range WHERE run <> 2", 0);
        assert_rows(to, "ledger WHERE run <> 2", 0);
        assert_rows(to, "baseline", 0);
        assert_rows(to, "baseline_sample", 0);
        assert_rows(to, "name WHERE text IN ('special', 'host-1')", 2);
        assert_rows(to, "name WHERE text IN ('host-0', 'm-0', 'm-1')", 0);
    }
}

TEST_CASE(test_a_bundle_of_all_has_the_baselines)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    const struct query_filter all = {0};
    make_special(from);
    assert_int_equal(copy_to(from, to, &all, &answer, &err), STATUS_OK);
    assert_int_equal(result_integer(answer, 0, "runs", 0), 3);
    result_free(answer);
    assert_rows(to, "baseline", 1);
    assert_rows(to, "baseline_sample", 1);
}

// A run that lives in a window, and has no record in it, is there for what it lost then.
TEST_CASE(test_a_bundle_of_losses)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    copy_make_store(from, 1, 10);
    copy_exec(from, "UPDATE run SET heard_ns = heard_ns + 5000 * 1000000000");
    struct query_filter filter = window(500, 600);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_NO_DATA);
    assert_false(is_there(to));
    copy_exec(from, format_text("INSERT INTO range VALUES(1, 9, 1, 4, 1, 0, NULL, %lld, %lld)",
                                (long long)(COPY_BASE_NS + 550 * COPY_SECOND),
                                (long long)(COPY_BASE_NS + 560 * COPY_SECOND)));
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
    assert_int_equal(result_integer(answer, 0, "runs", 0), 1);
    assert_int_equal(result_integer(answer, 0, "records", -1), 1); // the device
    result_free(answer);
    assert_int_equal(unlink(to), 0);
    // Not another time's, and nobody knows of which model it was.
    filter = window(600, 700);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_NO_DATA);
    filter = window(500, 600);
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "m-0");
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_NO_DATA);
    assert_false(is_there(to));
}

// A window that begins after a crash has the run that ended so, for a day.
TEST_CASE(test_a_bundle_after_a_crash)
{
    static const struct {
        enum record_run_end end;
        int64_t since, runs;
    } cases[] = {{RECORD_RUN_END_KILLED, 86000, 1}, {RECORD_RUN_END_SILENT, 86000, 1},
                 {RECORD_RUN_END_KILLED, 87000, 0}, {RECORD_RUN_END_OPEN, 500, 0},
                 {RECORD_RUN_END_CLOSED, 500, 0},   {RECORD_RUN_END_KILLED, -500, 0}};
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    struct query_filter filter;
    copy_make_store(from, 1, 10);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        filter = window(cases[i].since, cases[i].since + 100);
        copy_exec(from, format_text("UPDATE run SET \"end\" = %d", (int)cases[i].end));
        assert_int_equal(copy_to(from, to, &filter, &answer, &err),
                         cases[i].runs ? STATUS_OK : STATUS_NO_DATA);
        if (cases[i].runs) {
            assert_int_equal(result_integer(answer, 0, "runs", 0), cases[i].runs);
            result_free(answer);
            assert_true(copy_balances(to));
            assert_int_equal(unlink(to), 0);
        }
    }
    // One that crashed after the window went on in it.
    filter = window(500, 600);
    copy_exec(from, "UPDATE run SET \"end\" = 2, heard_ns = heard_ns + 1000000000000");
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_NO_DATA);
}

TEST_CASE(test_two_bundles_are_equal)
{
    const char *from = copy_path("s.db"), *one = copy_path("1.db"), *two = copy_path("2.db"),
               *third = copy_path("3.db");
    copy_make_store(from, 2, 100);
    struct query_filter filter = window(10, 1040);
    assert_int_equal(copy_to(from, one, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_int_equal(copy_to(from, two, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_int_equal(copy_table_digest(one), copy_table_digest(two));
    // A bundle of the bundle, too; and another window's is another.
    assert_int_equal(copy_to(two, third, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_int_equal(copy_table_digest(one), copy_table_digest(third));
    assert_int_equal(unlink(third), 0);
    filter = window(10, 1041);
    assert_int_equal(copy_to(from, third, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_int_not_equal(copy_table_digest(one), copy_table_digest(third));
}

// What is wrong with a store is wrong with its bundle: left out is not made good.
TEST_CASE(test_a_bundle_hides_nothing)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    copy_make_store(from, 1, 100);
    copy_exec(from, "DELETE FROM inference WHERE request = 77");
    const struct query_filter filter = window(10, 40);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_OK);
    result_free(answer);
    assert_false(copy_balances(from));
    assert_false(copy_balances(to));
}

TEST_CASE(test_a_bundle_of_nothing)
{
    const char *from = copy_path("s.db"), *to = copy_path("b.db");
    copy_make_store(from, 1, 10);
    const struct query_filter filter = window(100000, 100001);
    assert_int_equal(copy_to(from, to, &filter, &answer, &err), STATUS_NO_DATA);
    assert_false(is_there(to));
    static const enum query_dimension by[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE,
                                              QUERY_BY_RUN, QUERY_BY_OPERATION};
    for (size_t i = 0; i < COUNT_OF(by); i++) {
        struct query_filter nothing = {0};
        (void)snprintf(nothing.by[by[i]], QUERY_TEXT_SIZE, "ffff");
        assert_int_equal(copy_to(from, to, &nothing, &answer, &err), STATUS_NO_DATA);
        assert_false(is_there(to));
    }
}

TEST_MAIN_EACH(copy_set_up, copy_tear_down, test_a_backup_is_the_store,
               test_a_backup_of_a_live_store, test_nothing_is_replaced,
               test_a_log_of_a_file_that_was, test_what_is_left_of_another, test_a_damaged_store,
               test_a_copy_can_be_cancelled, test_a_bundle_of_a_window,
               test_a_bundle_keeps_its_name, test_a_bundle_has_events_that_last,
               test_bundles_of_names, test_bundles_hold_what_was_asked_for,
               test_a_bundle_of_all_has_the_baselines, test_a_bundle_of_losses,
               test_a_bundle_after_a_crash, test_two_bundles_are_equal, test_a_bundle_hides_nothing,
               test_a_bundle_of_nothing)
