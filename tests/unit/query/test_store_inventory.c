// The fleet as a whole: hosts, models, requests in progress, and counts of records that never go
// back.
#include <sqlite3.h>

#include "common/core/delivery/delivery.h"
#include "common/store/query/inventory.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)
#define NOW_NS (START_NS + 1000 * SECOND)

static struct inventory inventory;
static struct result *tables[INVENTORY_TABLES];

TEST_FIXTURE(set_up)
{
    store_make(state);
    rows_run(db, 1, "alpha", START_NS, NOW_NS);
    rows_run(db, 2, "alpha", START_NS + SECOND, NOW_NS);
    rows_run(db, 3, "beta", START_NS, NOW_NS);
    rows_run(db, 4, "old", START_NS - 200000 * SECOND, START_NS - 100000 * SECOND);
    exec("UPDATE run SET \"end\" = 0 WHERE run < 4;"
         "UPDATE run SET owner = run < 4, stored = 10 * run, kernel = 'k' || run, clock_offset_ns "
         "= run");
    inventory = (struct inventory){.hosts = NULL};
    memset(tables, 0, sizeof tables);
    (void)store_read();
    struct error err;
    expect_ok(inventory_begin(&inventory, store, &err), &err);
    return 0;
}

static void forget_tables(void)
{
    for (unsigned i = 0; i < INVENTORY_TABLES; i++)
        result_free(tables[i]);
}

TEST_FIXTURE(tear_down)
{
    forget_tables();
    inventory_deinit(&inventory);
    return store_tear_down(state);
}

static void read_again(void)
{
    struct error err;
    forget_tables();
    expect_ok(inventory_read(&inventory, store, NOW_NS, tables, &err), &err);
}

// The row with these texts in the columns `host` and `key` (NULL: null); -1: there is none.
static int64_t row_of(const struct result *table, const char *host, const char *key,
                      const char *text)
{
    for (size_t i = 0; i < result_row_count(table); i++)
        if (result_is(table, i, "host", host) &&
            (text ? result_is(table, i, key, text) : result_get(table, i, key).type == VALUE_NULL))
            return (int64_t)i;
    return -1;
}

static double number_of(const char *host, const char *reason, const char *key)
{
    const struct result *records = tables[INVENTORY_RECORDS];
    const int64_t row = row_of(records, host, "reason", reason);
    return row < 0 ? -1 : result_number(records, (size_t)row, key, -2);
}

static int64_t stored(const char *host)
{
    return (int64_t)number_of(host, NULL, "stored");
}

static int64_t lost(const char *host, const char *reason)
{
    return (int64_t)number_of(host, reason, "lost");
}

TEST_CASE(test_hosts)
{
    read_again();
    const struct result *hosts = tables[INVENTORY_HOSTS];
    assert_int_equal(result_row_count(hosts), 2); // not the old one
    assert_true(result_is(hosts, 0, "host", "alpha"));
    assert_true(result_is(hosts, 0, "kernel", "k2")); // of its newest run
    assert_int_equal(result_integer(hosts, 0, "clock_offset_ns", 0), 2);
    assert_int_equal(result_integer(hosts, 0, "runs_open", 0), 2);
    assert_true(result_is(hosts, 1, "host", "beta"));
    exec("UPDATE run SET \"end\" = 1, ended_ns = heard_ns WHERE run = 1");
    read_again();
    assert_int_equal(result_integer(tables[INVENTORY_HOSTS], 0, "runs_open", 0), 1);
}

static const char losses[] =
    "INSERT INTO range(run, stream, first, last, state, reason) VALUES"
    " (1, 0, 1, 5, 0, NULL), (1, 0, 6, 8, 1, 1), (2, 0, 1, 2, 1, 1), (2, 0, 3, 3, 1, 2),"
    " (3, 0, 1, 4, 1, NULL), (4, 0, 1, 4, 1, 1);"
    "INSERT INTO stream(run, stream, next, produced, unnumbered, no_room)"
    " VALUES (1, 0, 9, 8, 7, 2), (3, 0, 5, 4, 0, 0)";

TEST_CASE(test_records_by_host_and_reason)
{
    exec(losses);
    exec("UPDATE run SET stored = stored + 5");
    read_again();
    assert_int_equal(stored("alpha"), 10);
    assert_int_equal(stored("beta"), 5);
    assert_int_equal(lost("alpha", "spool_full"), 5);
    assert_int_equal(lost("alpha", "refused"), 1);
    assert_int_equal(lost("alpha", "ring_full"), 5);
    assert_int_equal(lost("alpha", "no_room"), 2);
    assert_int_equal(lost("beta", "unspecified"), 4);
    assert_int_equal(lost("beta", "ring_full"), 0); // begins at zero, before the first loss
    assert_int_equal(stored("old"), -1);            // imported
    assert_int_equal(lost("old", "spool_full"), -1);
    expect_close(number_of("alpha", NULL, "coverage"), 40.0 / 53, "coverage");
}

// All that was there before counts only for the coverage.
TEST_CASE(test_begins_at_zero)
{
    struct error err;
    exec(losses);
    inventory_deinit(&inventory);
    expect_ok(inventory_begin(&inventory, store, &err), &err);
    read_again();
    assert_int_equal(stored("alpha"), 0);
    assert_int_equal(lost("alpha", "spool_full"), 0);
    expect_close(number_of("alpha", NULL, "coverage"), 30.0 / 43, "coverage");
    exec("UPDATE range SET last = 9 WHERE run = 1 AND state = 1");
    read_again();
    assert_int_equal(lost("alpha", "spool_full"), 1);
}

TEST_CASE(test_forgetting_lowers_nothing)
{
    exec("INSERT INTO range(run, stream, first, last, state, reason) VALUES (1, 0, 1, 10, 1, 1),"
         " (2, 0, 1, 2, 1, 1)");
    exec("UPDATE run SET stored = stored + 15");
    read_again();
    assert_int_equal(lost("alpha", "spool_full"), 12);
    assert_int_equal(stored("alpha"), 30);
    exec("DELETE FROM range WHERE run = 1; DELETE FROM run WHERE run = 1");
    read_again();
    assert_int_equal(lost("alpha", "spool_full"), 12);
    assert_int_equal(stored("alpha"), 30);
    exec("UPDATE range SET last = 5 WHERE run = 2; UPDATE run SET stored = 36 WHERE run = 2");
    read_again(); // what is new counts at once
    assert_int_equal(lost("alpha", "spool_full"), 15);
    assert_int_equal(stored("alpha"), 31);
    exec("DELETE FROM range");
    read_again();
    exec("INSERT INTO range(run, stream, first, last, state, reason) VALUES (2, 0, 1, 2, 1, 1)");
    read_again(); // fewer than there were before
    assert_int_equal(lost("alpha", "spool_full"), 17);
}

// A read that fails changes nothing: the next one counts what was added, and no more.
TEST_CASE(test_failed_read)
{
    struct error err;
    exec(losses);
    read_again();
    exec("ALTER TABLE stream RENAME TO hidden; UPDATE run SET stored = stored + 4");
    forget_tables();
    assert_int_not_equal(inventory_read(&inventory, store, NOW_NS, tables, &err), STATUS_OK);
    exec("ALTER TABLE hidden RENAME TO stream; UPDATE run SET stored = stored + 1");
    read_again();
    assert_int_equal(stored("alpha"), 10);
    assert_int_equal(lost("alpha", "spool_full"), 5);
}

// A host of which all was forgotten comes back with another id of its name.
TEST_CASE(test_host_comes_back)
{
    exec("UPDATE run SET stored = stored + 7 WHERE run = 3");
    read_again();
    exec("DELETE FROM run WHERE run = 3; DELETE FROM name WHERE text = 'beta'");
    read_again();
    assert_int_equal(stored("beta"), 7);
    exec("INSERT INTO name(id, text) VALUES (1000, 'beta')");
    rows_run(db, 5, "beta", START_NS, NOW_NS);
    exec("UPDATE run SET owner = 1, stored = 5 WHERE run = 5");
    read_again();
    assert_int_equal(stored("beta"), 12);
    size_t rows = 0;
    for (size_t i = 0; i < result_row_count(tables[INVENTORY_RECORDS]); i++)
        rows += result_is(tables[INVENTORY_RECORDS], i, "host", "beta");
    assert_int_equal(rows, DELIVERY_REASON_COUNT + 1); // each once
}

static void add_sample(int64_t run, int64_t at_s, const char *model, int64_t running)
{
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, START_NS + at_s * SECOND);
    record_set_real(&record, PROCESS_SAMPLE_CPU, 1);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, 1);
    record_set_int(&record, PROCESS_SAMPLE_RUNNING, running);
    record_set_int(&record, PROCESS_SAMPLE_WAITING, running / 2);
    if (model)
        record_set_name(&record, PROCESS_SAMPLE_MODEL, rows_name(db, model));
    (void)rows_add(db, run, &record);
}

TEST_CASE(test_requests_in_progress)
{
    add_sample(1, 1, NULL, 50); // older
    add_sample(1, 2, NULL, 5);
    add_sample(1, 2, "small", 2);
    add_sample(1, 2, "large", 3);
    add_sample(2, 9, NULL, 4);
    add_sample(2, 9, "small", 4);
    add_sample(3, 2, NULL, 7); // says of no model
    add_sample(4, 2, NULL, 9); // has ended
    read_again();
    const struct result *requests = tables[INVENTORY_REQUESTS];
    assert_int_equal(result_row_count(requests), 3);
    const int64_t small = row_of(requests, "alpha", "model", "small");
    const int64_t large = row_of(requests, "alpha", "model", "large");
    const int64_t unknown = row_of(requests, "beta", "model", NULL);
    assert_int_equal(result_integer(requests, (size_t)small, "running_requests", -1), 6);
    assert_int_equal(result_integer(requests, (size_t)small, "waiting_requests", -1), 3);
    assert_int_equal(result_integer(requests, (size_t)large, "running_requests", -1), 3);
    assert_int_equal(result_integer(requests, (size_t)unknown, "running_requests", -1), 7);
}

static void add_model(int64_t run, const char *name, const char *quantisation)
{
    struct record record;
    record_init(&record, RECORD_KIND_MODEL, START_NS);
    record_set_name(&record, MODEL_NAME, rows_name(db, name));
    (void)record_set_text(&record, MODEL_FORMAT, "gguf", 4);
    (void)record_set_text(&record, MODEL_QUANTISATION, quantisation, strlen(quantisation));
    record_set_int(&record, MODEL_PARAMETERS, 7);
    (void)rows_add(db, run, &record);
}

TEST_CASE(test_models)
{
    add_model(1, "small", "f16");
    add_model(3, "small", "q8_0");
    add_model(4, "gone", "f16"); // of the old run
    read_again();
    const struct result *found = tables[INVENTORY_MODELS];
    assert_int_equal(result_row_count(found), 1);
    assert_true(result_is(found, 0, "model", "small"));
    assert_true(result_is(found, 0, "quantisation", "q8_0"));
}

TEST_MAIN_EACH(set_up, tear_down, test_hosts, test_records_by_host_and_reason, test_begins_at_zero,
               test_forgetting_lowers_nothing, test_failed_read, test_host_comes_back,
               test_requests_in_progress, test_models)
