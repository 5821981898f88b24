// Clearing: rows go, in slices, and the ledger knows.

#include <sqlite3.h>

#include "tests/support/store/clear_records.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

TEST_CASE(test_clear_moves_rows_to_the_ledger)
{
    store_add_inferences(120);
    exec("UPDATE ledger SET stored = (SELECT count(*) FROM inference i WHERE i.run = ledger.run)");
    const double of_first = store_number("SELECT count(*) FROM inference WHERE run = 1");
    database_close(db);
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    uint64_t cleared = 0;
    struct error err = {0};
    expect_ok(clear_records(path, &filter, &cleared, &err), &err);
    assert_int_equal(database_open_writer(&db, path, &err), STATUS_OK);
    assert_int_equal(cleared, (uint64_t)of_first);
    assert_true(store_number("SELECT count(*) FROM inference WHERE run = 1") == 0);
    assert_true(store_number("SELECT cleared FROM ledger WHERE run = 1 AND kind = 6") == of_first);
    assert_true(store_number("SELECT cleared FROM ledger WHERE run = 2 AND kind = 6") == 0);
    assert_true(store_number("SELECT sum(stored - cleared) FROM ledger") ==
                store_number("SELECT count(*) FROM inference"));
    assert_true(store_number("SELECT count(*) FROM run") == 2);
}

TEST_CASE(test_clear_goes_in_slices)
{
    const unsigned count = 2 * CLEAR_SLICE + 100;
    store_add_inferences(count);
    exec("UPDATE inference SET id = id + 1000000;" // as after an earlier clearing
         "UPDATE ledger SET stored = (SELECT count(*) FROM inference i WHERE i.run = ledger.run)");
    const double of_second = store_number("SELECT count(*) FROM inference WHERE run = 2");
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    struct clearing clearing;
    struct error err = {0};
    bool done = false;
    unsigned slices = 0;
    assert_int_equal(clear_begin(&clearing, db, &filter, &err), STATUS_OK);
    clearing.slice.now = CLEAR_SLICE;
    while (!done) {
        if (slices == 2) // arrives meanwhile, and stays
            exec("INSERT INTO inference SELECT 9000000, 2, stream, number, started_ns,"
                 " received_ns, model, device, request, finish, prompt_tokens,"
                 " cached_prompt_tokens, generated_tokens, queue_ns, prefill_ns, ttft_ns,"
                 " decode_ns, e2e_ns, itl_max_ns, itl_p99_ns, host_memory_bytes,"
                 " device_memory_bytes, concurrent_requests, error, items FROM inference"
                 " WHERE run = 1 LIMIT 1;"
                 "UPDATE ledger SET stored = stored + 1 WHERE run = 2");
        const uint64_t before = clearing.cleared;
        expect_ok(clear_slice(&clearing, db, &done, &err), &err);
        assert_true(clearing.cleared - before <= CLEAR_SLICE);
        slices += clearing.cleared > before;
        assert_true(store_number("SELECT sum(stored - cleared) FROM ledger") ==
                    store_number("SELECT count(*) FROM inference"));
    }
    assert_int_equal(slices, 3);
    assert_true((double)clearing.cleared == of_second);
    assert_true(store_number("SELECT count(*) FROM inference WHERE run = 2") == 1);
    assert_true(store_number("PRAGMA freelist_count") == 0);
}

static void next_slice(struct clearing *clearing, uint64_t took_ns)
{
    struct error err = {0};
    bool done = false;
    expect_ok(clear_slice(clearing, db, &done, &err), &err);
    assert_false(done);
    clear_took(clearing, took_ns);
}

// Slices that take long become smaller, and whole ones that do not become larger: rows,
// then room.  How fast empty tables are says nothing.
TEST_CASE(test_slices_follow_what_they_take)
{
    const uint64_t long_ns = 2 * (uint64_t)CLEAR_SLICE_NS;
    struct clearing clearing;
    struct error err = {0};
    const struct query_filter all = {0};
    store_add_one_of_each();
    exec("DELETE FROM inference");
    store_add_inferences(2000);
    assert_int_equal(clear_begin(&clearing, db, &all, &err), STATUS_OK);
    const unsigned rows = clearing.slice.now, pages = clearing.pages.now;
    assert_true(rows + 2 * rows < 2000 && 2000 < 4 * rows); // two whole ones, and not a third
    while (clearing.kind != RECORD_KIND_INFERENCE)
        next_slice(&clearing, 0);
    assert_true(clearing.cleared > 0);
    assert_int_equal(clearing.slice.now, rows);
    next_slice(&clearing, 0);
    assert_int_equal(clearing.slice.now, 2 * rows);
    next_slice(&clearing, long_ns);
    assert_int_equal(clearing.slice.now, rows);
    next_slice(&clearing, 0);
    assert_int_equal(clearing.slice.now, rows);
    clear_took(&clearing, long_ns);
    assert_int_equal(clearing.slice.now, rows / 2);
    assert_int_equal(clearing.pages.now, pages);
    clearing.is_whole = true;
    for (int i = 0; i < 30; i++)
        clear_took(&clearing, 0);
    assert_int_equal(clearing.slice.now, CLEAR_SLICE_BUSY);
    while (clearing.kind != RECORD_KIND_RUN) // only room is left
        next_slice(&clearing, 0);
    assert_int_equal(clearing.pages.now, pages);
    clear_took(&clearing, long_ns);
    assert_int_equal(clearing.pages.now, pages / 2);
}

TEST_CASE(test_clear_needs_the_lock)
{
    struct lock lock;
    struct error err = {0};
    assert_int_equal(lock_acquire_store(&lock, path, &err), STATUS_OK);
    const struct query_filter filter = {0};
    uint64_t cleared = 0;
    assert_int_equal(clear_records(path, &filter, &cleared, &err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "in use by process"));
    lock_release(&lock);
    assert_int_equal(clear_records("/no/such/file.db", &filter, &cleared, &err), STATUS_NOT_FOUND);
}

TEST_CASE(test_clear_by_model_takes_the_stages_along)
{
    store_add_one_of_each();
    exec("WITH v(kind) AS (VALUES (1), (2), (3), (4), (5), (7), (8), (9), (10), (11))"
         " INSERT INTO ledger(run, kind, stored) SELECT 1, kind, 1 FROM v");
    struct query_filter filter = {0};
    (void)snprintf(filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    uint64_t cleared = 0;
    assert_int_equal(clear_records(path, &filter, &cleared, NULL), STATUS_OK);
    // model, load, load_stage, inference, itl, pipeline, process_sample: what has a model.
    assert_int_equal(cleared, 7);
    assert_true(store_number("SELECT count(*) FROM load_stage") == 0);
    assert_true(store_number("SELECT count(*) FROM operation") == 1);
    assert_true(store_number("SELECT cleared FROM ledger WHERE run = 1 AND kind = 5") == 1);
}

TEST_MAIN_EACH(store_set_up, store_tear_down, test_clear_moves_rows_to_the_ledger,
               test_clear_goes_in_slices, test_slices_follow_what_they_take,
               test_clear_needs_the_lock, test_clear_by_model_takes_the_stages_along)
