// inferstatd lets old records go while others come in, and its log comes back once a
// long reader has gone.
#include <signal.h>
#include <sys/stat.h>

#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "tests/integration/collector/collector_fixture.h"

#define DAY_NS INT64_C(86400000000000)

enum { BATCH = 1000, PATIENCE_S = 90 };

static char log_path[FOLDER_PATH_SIZE];

static void stop(void)
{
    if (daemon_end(&collector, SIGTERM) != 0)
        fail_msg("%s", collector.output);
}

static void greet(unsigned run)
{
    producer_open(&producer, endpoint("ingest"), run);
    producer_hello(&producer, NULL, 0);
    assert_true(producer_await(&producer, 10000));
    assert_string_equal(producer.error, "");
}

TEST_FIXTURE(set_up)
{
    collector_set_up(state);
    (void)folder_path(log_path, folder, "s.db-wal");
    return 0;
}

// Sends `count` inferences from number `first` on, the first of them `age` ago and
// the others `apart` from each other, and awaits them.
static void store_records(uint64_t first, uint64_t count, int64_t age_ns, int64_t apart_ns)
{
    static struct record batch[BATCH];
    const int64_t began_ns = clock_wall_ns() - age_ns;
    for (uint64_t i = 0; i < count; i += BATCH) {
        const uint64_t size = count - i < BATCH ? count - i : BATCH;
        for (uint64_t k = 0; k < size; k++) {
            producer_inference(&batch[k], first + i + k);
            batch[k].started_ns = began_ns + (int64_t)(i + k) * apart_ns;
        }
        producer_batch(&producer, 0, first + i, batch, size);
        assert_true(producer_await_next(&producer, 0, first + i + size));
    }
}

static void pause_ms(unsigned ms)
{
    clock_sleep_until_ns(clock_monotonic_ns() + ms * UINT64_C(1000000));
}

// Asks a store that nobody writes to.
static struct result *ask(const struct query *query)
{
    struct error err = {0};
    struct store *store = NULL;
    struct result *result = NULL;
    if (store_open(&store, path, &err) != STATUS_OK ||
        store_query(store, query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    store_close(store);
    return result;
}

static void expect_sound(void)
{
    struct result *result = ask(&(struct query){.kind = QUERY_AUDIT});
    const unsigned column = (unsigned)result_find(result, "finding");
    for (size_t row = 0; row < result_row_count(result); row++) {
        const struct value finding = result_cell(result, row, column);
        if (finding.type != VALUE_NULL)
            fail_msg("%.*s", (int)finding.text.size, finding.text.bytes);
    }
    result_free(result);
}

// What was known of the expired is known still: in rollups, not as zeros.
static void expect_average_of(int64_t since_ns, int64_t until_ns, int64_t count)
{
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = {.since_ns = since_ns, .until_ns = until_ns}};
    (void)snprintf(query.metric, sizeof query.metric, "e2e_ns");
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    const struct value note = result_cell(result, 0, (unsigned)result_find(result, "note"));
    if (result_integer(result, 0, "count", -1) != count)
        fail_msg("%lld of %lld: %.*s", (long long)result_integer(result, 0, "count", -1),
                 (long long)count, note.type == VALUE_TEXT ? (int)note.text.size : 0,
                 note.type == VALUE_TEXT ? note.text.bytes : "");
    result_free(result);
}

TEST_CASE(test_old_records_expire_while_others_come)
{
    enum { OLD = 20000, YOUNG = 1000 };
    const int64_t hour_ns = DAY_NS / 24;
    collector_start("--retention", "raw=forever");
    greet(1);
    store_records(1, OLD, 40 * DAY_NS, 3 * hour_ns / OLD); // for three hours
    store_records(OLD + 1, YOUNG, DAY_NS, 1000000);
    producer_close(&producer);
    stop();
    const int64_t pages = integer("PRAGMA page_count");
    const int64_t day_ns = integer("SELECT min(started_ns) FROM inference") / DAY_NS * DAY_NS;

    collector_start("--retention", "raw=30d");
    greet(2);
    uint64_t sent = 0;
    const uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * UINT64_C(1000000000);
    while (integer("SELECT count(*) FROM inference WHERE run = 1") > YOUNG ||
           integer("SELECT page_count > 20 * freelist_count FROM pragma_page_count,"
                   " pragma_freelist_count") == 0) {
        assert_true(clock_monotonic_ns() < end_ns);
        store_records(sent + 1, 100, 0, 1000); // nobody waits for it
        sent += 100;
    }
    // Nothing of a producer's is late for it, however old.
    store_records(sent + 1, 50, 45 * DAY_NS, 1000);
    sent += 50;
    producer_close(&producer);
    stop();
    assert_int_equal(integer("SELECT expired FROM ledger WHERE run = 1 AND kind = 6"), OLD);
    assert_int_equal(integer("SELECT stored FROM ledger WHERE run = 2 AND kind = 6"),
                     (int64_t)sent);
    assert_int_equal(integer("SELECT until_ns BETWEEN 1 AND (SELECT max(started_ns) FROM inference)"
                             " FROM expiry WHERE kind = 6"),
                     1);
    assert_true(integer("PRAGMA page_count") < pages);
    expect_sound();
    expect_average_of(day_ns, day_ns + 2 * DAY_NS, OLD);
}

static int64_t log_size(void)
{
    struct stat st;
    return stat(log_path, &st) == 0 ? st.st_size : 0;
}

// A reader that stays keeps all of the log that came since; when it goes, the log is
// used again from its beginning, and is as small as ever.
TEST_CASE(test_the_log_comes_back_after_a_long_reader)
{
    enum { MORE = 20000, USUAL = 17 << 20 };
    struct error err = {0};
    struct sqlite3 *db = NULL;
    int64_t rows = 0;
    collector_start("--retention", "raw=forever");
    greet(1);
    store_records(1, 100, 0, 1000);
    assert_int_equal(database_open_reader(&db, path, &err), STATUS_OK);
    assert_int_equal(database_exec(db, "BEGIN", &err), STATUS_OK);
    assert_int_equal(database_integer(db, "SELECT count(*) FROM inference", &rows, &err),
                     STATUS_OK);
    uint64_t sent = 100;
    while (log_size() < 3 * (int64_t)USUAL / 2) {
        store_records(sent + 1, MORE, 0, 1000);
        sent += MORE;
    }
    int64_t same = 0;
    assert_int_equal(database_integer(db, "SELECT count(*) FROM inference", &same, &err),
                     STATUS_OK);
    assert_int_equal(same, rows); // it sees what it saw
    database_close(db);
    const uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * UINT64_C(1000000000);
    while (log_size() > USUAL) {
        assert_true(clock_monotonic_ns() < end_ns);
        store_records(sent + 1, 10, 0, 1000);
        sent += 10;
        pause_ms(50);
    }
    producer_close(&producer);
    stop();
    assert_int_equal(integer("SELECT count(*) FROM inference"), (int64_t)sent);
}

TEST_MAIN_EACH(set_up, collector_tear_down, test_old_records_expire_while_others_come,
               test_the_log_comes_back_after_a_long_reader)
