// What was lost, by reason; and that no query is without an end.
#include <math.h>

#include <sqlite3.h>

#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "common/store/schema/database_open.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

// Two closed runs on two hosts; the second has lost 10 of 30 and 5 without numbers.
TEST_FIXTURE(set_up)
{
    store_make(state);
    exec("INSERT INTO name(id, text) VALUES (1, 'alpha'), (2, 'beta'), (3, 'cpu'), (5, 'tiny')");
    for (int run = 1; run <= 2; run++)
        store_run(run, run, RECORD_RUN_END_CLOSED, run, run);
    exec("UPDATE run SET produced = 30, stored = 20,"
         " uuid = '1234000' || run || '-0000-4000-8000-000000000000'");
    exec("INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(1, 0, 21, 20, 0),"
         " (2, 0, 31, 30, 5)");
    exec("INSERT INTO range(run, stream, first, last, state, reason) VALUES(1, 0, 1, 20, 0, NULL),"
         " (2, 0, 1, 20, 0, NULL), (2, 0, 21, 30, 1, 1)");
    exec("INSERT INTO ledger(run, kind, stored) VALUES(1, 6, 20), (2, 6, 20)");
    return store_read();
}

static void add_inferences(int count)
{
    char sql[512];
    (void)snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO inference(run, stream, number, started_ns, received_ns, model, device,"
        " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
        " prefill_ns, ttft_ns, decode_ns, e2e_ns, host_memory_bytes)"
        " SELECT 1, 0, i, i, i, 5, 3, i, 0, 1, 0, 2, 1, 1, 2, 1, 3, 1 FROM n",
        count);
    exec(sql);
}

static void expect_timeout(const struct query *query)
{
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, query, &result, &err), STATUS_TIMEOUT);
    assert_non_null(strstr(err.text, "too long"));
}

static void expect_text(const struct result *result, const char *key, const char *expected)
{
    const struct value value = result_cell(result, 0, (unsigned)result_find(result, key));
    if (value.type != VALUE_TEXT || value.text.size != strlen(expected) ||
        memcmp(value.text.bytes, expected, value.text.size) != 0)
        fail_msg("%s is not \"%s\"", key, expected);
}

// Nobody can ask what never ends, or an answer without end.
TEST_CASE(test_every_kind_has_a_budget)
{
    add_inferences(20000);
    struct query nobody = {.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_INFERENCE};
    (void)snprintf(nobody.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "nobody");
    const struct query queries[] = {
        {.kind = QUERY_SUMMARY},
        {.kind = QUERY_AVERAGE, .metric = "ttft_ns"},
        {.kind = QUERY_OVERVIEW},
        {.kind = QUERY_AUDIT},
        nobody,
    };
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        store_set_budget(store, 1);
        expect_timeout(&queries[i]);
        store_set_budget(store, 0);
        if (queries[i].filter.by[QUERY_BY_HOST][0] == '\0') // and the store is as it was
            result_free(ask(&queries[i]));
    }
    const struct query all = {
        .kind = QUERY_RECORDS, .records.kind = RECORD_KIND_INFERENCE, .limit = UINT32_MAX};
    struct result *result = ask(&all);
    assert_int_equal(result_row_count(result), QUERY_ROWS_MAX);
    assert_true(result_next_cursor(result) != 0);
    result_free(result);
}

// What was lost, by reason: of all runs, of one, and of each in the listing.
TEST_CASE(test_losses_by_reason)
{
    exec("INSERT INTO range(run, stream, first, last, state, reason) VALUES(1, 1, 1, 7, 1, 2),"
         " (1, 2, 1, 30, 1, 5), (1, 2, 31, 70, 1, 3), (2, 3, 1, 2, 1, 4), (2, 4, 1, 3, 1, 6),"
         " (2, 5, 1, 4, 1, 0)");
    exec("UPDATE stream SET no_room = 2 WHERE run = 2 AND unnumbered > 2");
    exec("INSERT INTO refusal VALUES('names', 3, 9), ('message_size', 40, 9), ('denied', 3, 9)");
    static const struct {
        const char *key;
        int64_t all, first, second;
    } keys[] = {
        {"dropped_unspecified", 4, 0, 4},
        {"dropped_spool_full", 10, 0, 10},
        {"dropped_refused", 7, 7, 0},
        {"dropped_acknowledged_elsewhere", 40, 40, 0},
        {"dropped_ring_full", 5, 0, 5},
        {"dropped_no_room", 2, 0, 2},
        {"dropped_spool_damaged", 30, 30, 0},
        {"dropped_host_lost", 3, 0, 3},
        {"lost", 101, 77, 24},
    };
    struct query query = {.kind = QUERY_SUMMARY};
    struct result *all = ask(&query);
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    struct result *second = ask(&query);
    query = (struct query){
        .kind = QUERY_RECORDS, .records.kind = RECORD_KIND_RUN, .records.oldest_first = true};
    struct result *runs = ask(&query);
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        assert_int_equal(result_integer(all, 0, keys[i].key, -1), keys[i].all);
        assert_int_equal(result_integer(second, 0, keys[i].key, -1), keys[i].second);
        assert_int_equal(result_integer(runs, 0, keys[i].key, -1), keys[i].first);
        assert_int_equal(result_integer(runs, 1, keys[i].key, -1), keys[i].second);
    }
    expect_close(result_number(runs, 1, "coverage_ratio", NAN), 20.0 / 44, "it");
    expect_close(result_number(second, 0, "coverage_ratio", NAN), 20.0 / 44, "it");
    assert_int_equal(result_integer(second, 0, "refused_messages", -1), 46);
    expect_text(second, "refusals", "message_size 40, denied 3, names 3");
    result_free(all);
    result_free(second);
    result_free(runs);
}

// Beside an average stands what the filter's runs have lost, and not what others between
// them have.
TEST_CASE(test_losses_beside_an_average)
{
    static const struct {
        const char *host;
        int64_t lost;
        double coverage;
    } cases[] = {{"", 22, 60.0 / 82}, {"alpha", 7, 40.0 / 47}, {"beta", 15, 20.0 / 35}};
    exec("CREATE TEMP TABLE third AS SELECT * FROM run WHERE run = 2;"
         "UPDATE third SET run = 3, host = 1, uuid = '12340003-0000-4000-8000-000000000000';"
         "INSERT INTO run SELECT * FROM third; DROP TABLE third;"
         "INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(3, 0, 26, 25, 2);"
         "INSERT INTO range(run, stream, first, last, state, reason) VALUES(3, 0, 1, 20, 0, NULL),"
         " (3, 0, 21, 23, 1, 1), (3, 0, 24, 25, 1, 2);"
         "INSERT INTO ledger(run, kind, stored) VALUES(3, 6, 20)");
    add_inferences(10);
    exec("UPDATE inference SET run = 2 WHERE id > 5");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_AVERAGE, .metric = "ttft_ns"};
        (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", cases[i].host);
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "lost", -1), cases[i].lost);
        expect_close(result_number(result, 0, "coverage_ratio", NAN), cases[i].coverage, "it");
        result_free(result);
    }
}

TEST_MAIN_EACH(set_up, store_tear_down, test_every_kind_has_a_budget, test_losses_by_reason,
               test_losses_beside_an_average)
