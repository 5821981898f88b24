// The store at a glance: summaries and overviews, against plain SQL.
#include <math.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "common/store/store.h"
#include "common/store/rollup/rollup.h"
#include "tests/support/folder.h"
#include "tests/support/store/rollup_builder.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SAMPLE "(id, run, stream, number, started_ns, received_ns, cpu_ratio, host_memory_bytes)"

TEST_CASE(test_summary_equals_plain_sql)
{
    store_add_inferences(2000);
    exec("INSERT INTO process_sample" SAMPLE " VALUES(1, 2, 0, 1, 5, 5, 0.5, 700),"
         " (2, 2, 0, 2, 6, 6, 0.5, 900)");
    const struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = ask(&query);
    static const struct {
        const char *key, *sql;
    } cases[] = {
        {"runs", "SELECT count(*) FROM run"},
        {"runs_open", "SELECT 1"},
        {"hosts", "SELECT 2"},
        {"models", "SELECT 2"},
        {"inferences", "SELECT count(*) FROM inference"},
        {"inferences_failed", "SELECT count(*) FROM v_inference WHERE finish = 'error'"},
        {"prompt_tokens", "SELECT sum(prompt_tokens) FROM inference"},
        {"generated_tokens", "SELECT sum(generated_tokens) FROM inference"},
        {"mean_tokens_per_second", "SELECT avg(tokens_per_second) FROM v_inference"},
        {"ttft_mean_ns", "SELECT avg(ttft_ns) FROM inference"},
        {"e2e_mean_ns", "SELECT CAST(sum(e2e_ns) AS REAL) / count(*) FROM inference"},
        {"host_memory_bytes", "SELECT 900"},
        {"first_started_ns", "SELECT min(started_ns) FROM run"},
        {"produced", "SELECT 137"}, // 5 without a number
        {"stored", "SELECT 120"},
        {"dropped", "SELECT 10"},
        {"unnumbered", "SELECT 5"},
        {"duplicates", "SELECT 6"},
        {"in_flight", "SELECT 2"},
        {"coverage_ratio", "SELECT 120.0 / 135"},
        {"loads", "SELECT 0"},
        {"last_inference_started_ns", "SELECT max(started_ns) FROM inference"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_close(result_number(result, 0, cases[i].key, NAN), store_number(cases[i].sql),
                     cases[i].key);
    result_free(result);
}

// Runs, hosts and what was lost are those of the runs that know what is asked for.
TEST_CASE(test_a_summary_counts_the_runs_of_its_model)
{
    store_add_inferences(100);
    exec("UPDATE inference SET model = 5 WHERE run = 1;" // the second has the other only
         "UPDATE inference SET model = 6 WHERE run = 2;"
         "DELETE FROM run_name WHERE run = 1 AND name = 6;"
         "DELETE FROM run_name WHERE run = 2 AND name = 5");
    static const struct {
        const char *model, *host;
        int64_t runs, hosts, stored, dropped;
    } cases[] = {{"", "", 2, 2, 120, 10},
                 {"tiny", "", 1, 1, 100, 0},
                 {"big'; DROP TABLE inference; --", "", 1, 1, 20, 10},
                 {"tiny", "alpha", 1, 1, 100, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SUMMARY};
        (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "%s", cases[i].model);
        (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "%s", cases[i].host);
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "runs", -1), cases[i].runs);
        assert_int_equal(result_integer(result, 0, "hosts", -1), cases[i].hosts);
        assert_int_equal(result_integer(result, 0, "stored", -1), cases[i].stored);
        assert_int_equal(result_integer(result, 0, "dropped", -1), cases[i].dropped);
        result_free(result);
    }
    // One whose names are not kept is known by what describes it.
    exec("DELETE FROM run_name WHERE run = 1");
    exec("INSERT INTO model(id, run, stream, number, started_ns, received_ns, name, format)"
         " VALUES(1, 1, 0, 999, 1, 2, 5, 'gguf')");
    struct query query = {.kind = QUERY_SUMMARY};
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "tiny");
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "runs", -1), 1);
    result_free(result);
}

// Numbers that no producer can have made, in a file from elsewhere: sums stop at
// the largest integer, and the rest of the answer is there.
TEST_CASE(test_sums_do_not_overflow)
{
    store_add_inferences(100);
    exec("UPDATE stream SET produced = 9223372036854775806;"
         "INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(1, 1, 1, "
         "9223372036854775806, 9223372036854775806),"
         " (2, 1, 1, 9223372036854775806, 9223372036854775806);"
         "INSERT INTO range(run, stream, first, last, state, reason) VALUES"
         " (1, 1, 1, 9223372036854775806, 1, 2), (2, 1, 1, 9223372036854775806, 1, 2);"
         "UPDATE run SET stored = 9223372036854775806, refused = 9223372036854775806,"
         " duplicates = 9223372036854775806, \"end\" = 0;"
         "UPDATE inference SET prompt_tokens = 9223372036854775806, e2e_ns = 9223372036854775806;"
         "INSERT INTO process_sample" SAMPLE " VALUES(1, 1, 0, 1, 5, 5, 0.5, 9223372036854775806),"
         " (2, 2, 0, 2, 6, 6, 0.5, 9223372036854775806)");
    static const char *const keys[] = {"produced",   "stored",        "dropped",
                                       "unnumbered", "duplicates",    "refused",
                                       "in_flight",  "prompt_tokens", "host_memory_bytes"};
    struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = ask(&query);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (result_integer(result, 0, keys[i], 0) != INT64_MAX)
            fail_msg("%s is not the largest integer", keys[i]);
    assert_int_equal(result_integer(result, 0, "inferences", -1), 100);
    expect_close(result_number(result, 0, "e2e_mean_ns", NAN), 9223372036854775806.0, "e2e");
    result_free(result);
    query.kind = QUERY_OVERVIEW;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 8);
    assert_int_equal(result_integer(result, 0, "prompt_tokens", -1), INT64_MAX);
    assert_int_equal(result_integer(result, 0, "lost", -1), INT64_MAX);
    result_free(result);
    query = (struct query){.kind = QUERY_RECORDS, .records.kind = RECORD_KIND_RUN};
    result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    result_free(result);
    query = store_average_of("e2e_ns");
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "lost", -1), INT64_MAX);
    result_free(result);
}

TEST_CASE(test_an_empty_store_has_a_summary)
{
    exec("DELETE FROM run; DELETE FROM stream; DELETE FROM range; DELETE FROM ledger");
    struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "inferences", -1), 0);
    assert_int_equal(result_integer(result, 0, "produced", -1), 0);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "ttft_mean_ns")).type,
                     VALUE_NULL);
    assert_int_equal(result_cell(result, 0, (unsigned)result_find(result, "coverage_ratio")).type,
                     VALUE_NULL);
    result_free(result);
    query.kind = QUERY_OVERVIEW;
    result = ask(&query);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
    query.kind = QUERY_PING;
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "runs_open", -1), 0);
    assert_true(result_integer(result, 0, "store_bytes", 0) > 4096);
    result_free(result);
}

// Rates of a window that begins before the first process count from that on; of a file they count
// until its last message.
TEST_CASE(test_the_time_of_a_window)
{
    static const struct {
        int64_t heard, until, seconds; // after the start
    } cases[] = {{500, 100, 100}, {500, 0, 500}, {500, 900, 500}};
    static const enum query_kind kinds[] = {QUERY_SUMMARY, QUERY_AVERAGE};
    const int64_t second_ns = INT64_C(1000000000);
    store_add_inferences(100);
    for (size_t i = 0; i < COUNT_OF(cases) * COUNT_OF(kinds); i++) {
        const size_t k = i / COUNT_OF(kinds);
        struct query query = store_average_of(QUERY_METRIC_OUTPUT_RATE);
        query.kind = kinds[i % COUNT_OF(kinds)];
        query.filter.since_ns = START_NS - 300 * second_ns;
        query.filter.until_ns = cases[k].until ? START_NS + cases[k].until * second_ns : 0;
        execf("UPDATE run SET heard_ns = %lld", (long long)(START_NS + cases[k].heard * second_ns));
        struct result *result = ask(&query);
        if (result_integer(result, 0, "window_ns", 0) != cases[k].seconds * second_ns)
            fail_msg("case %zu of kind %d: %lld", k, (int)query.kind,
                     (long long)result_integer(result, 0, "window_ns", 0));
        result_free(result);
    }
}

TEST_CASE(test_the_log_is_part_of_the_size)
{
    char log[FOLDER_PATH_SIZE];
    struct stat of_file, of_log;
    store_add_inferences(500);
    (void)folder_path(log, folder, "s.db-wal");
    assert_int_equal(stat(path, &of_file), 0);
    assert_int_equal(stat(log, &of_log), 0);
    assert_true(of_log.st_size > 0);
    static const enum query_kind kinds[] = {QUERY_PING, QUERY_SUMMARY};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct query query = {.kind = kinds[i]};
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "store_bytes", -1),
                         of_file.st_size + of_log.st_size);
        result_free(result);
    }
}

// What happened last has expired: the rest of the answer is there.
TEST_CASE(test_a_summary_of_what_has_expired)
{
    store_add_inferences(10);
    exec("INSERT INTO ledger(run, kind, stored) SELECT 1, 4, 10 WHERE NOT EXISTS"
         " (SELECT 1 FROM ledger WHERE run = 1 AND kind = 4);"
         "INSERT INTO expiry SELECT DISTINCT kind, 9000000000000000000 FROM ledger;"
         "DELETE FROM inference;"
         "UPDATE ledger SET expired = stored");
    static const enum query_kind kinds[] = {QUERY_SUMMARY, QUERY_OVERVIEW};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct query query = {.kind = kinds[i]};
        struct error err = {0};
        struct result *result = NULL;
        const enum status status = store_query(store, &query, &result, &err);
        if (status != STATUS_OK)
            fail_msg("query %d: %s", (int)kinds[i], err.text);
        if (kinds[i] == QUERY_SUMMARY)
            assert_int_equal(result_integer(result, 0, "runs", -1), 2);
        result_free(result);
    }
}

TEST_CASE(test_a_summary_of_nothing)
{
    store_add_inferences(100);
    static const struct {
        enum query_dimension by;
        const char *text;
        int64_t since_ns;
        enum status status;
    } cases[] = {
        {QUERY_BY_MODEL, "tiny", 0, STATUS_OK},
        {QUERY_BY_MODEL, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_DEVICE, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_OPERATION, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_HOST, "alpha", 0, STATUS_OK},
        {QUERY_BY_HOST, "no such", 0, STATUS_NO_DATA},
        {QUERY_BY_RUN, "ffff", 0, STATUS_NO_DATA},
        {QUERY_BY_MODEL, "", INT64_MAX - 1, STATUS_NO_DATA},
        {QUERY_BY_MODEL, "tiny", INT64_MAX - 1, STATUS_NO_DATA},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SUMMARY, .filter.since_ns = cases[i].since_ns};
        struct error err = {0};
        struct result *result = NULL;
        (void)snprintf(query.filter.by[cases[i].by], QUERY_TEXT_SIZE, "%s", cases[i].text);
        const enum status status = store_query(store, &query, &result, &err);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].text, status_text(status));
        if (status == STATUS_NO_DATA)
            assert_string_equal(err.text, "summary: no data: the filters match nothing");
        result_free(result);
    }
    // A run that has made nothing yet is there all the same.
    exec("DELETE FROM inference");
    struct query query = {.kind = QUERY_SUMMARY};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "alpha");
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "runs", -1), 1);
    result_free(result);
}

TEST_CASE(test_overview_equals_plain_sql)
{
    store_add_inferences(2000);
    const struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 8);
    for (size_t row = 0; row < 8; row++) {
        struct value cells[3];
        char *where = NULL;
        for (unsigned i = 0; i < 3; i++)
            cells[i] = result_cell(result, row, i);
        where = sqlite3_mprintf(
            "SELECT avg(ttft_ns) FROM v_inference WHERE host = '%.*q' AND device = '%.*q'"
            " AND model = '%.*q'",
            (int)cells[0].text.size, cells[0].text.bytes, (int)cells[1].text.size,
            cells[1].text.bytes, (int)cells[2].text.size, cells[2].text.bytes);
        expect_close(result_number(result, row, "ttft_mean_ns", NAN), store_number(where), where);
        sqlite3_free(where);
        const bool alpha = cells[0].text.bytes[0] == 'a';
        assert_int_equal(result_integer(result, row, "runs_open", -1), alpha ? 0 : 1);
        assert_int_equal(result_integer(result, row, "lost", -1), alpha ? 0 : 15);
    }
    result_free(result);
}

// A slip of the hand in a model's name makes no model, and an open run that only failed to
// load is idle.
TEST_CASE(test_what_failed_to_load_is_no_model)
{
    static const struct {
        int status;
        int64_t models, rows;
    } cases[] = {{0, 1, 2}, {1, 0, 1}, {2, 0, 1}};
    exec("INSERT INTO load(id, run, stream, number, started_ns, received_ns, model,"
         " device, duration_ns, status, model_bytes, host_memory_before_bytes,"
         " host_memory_after_bytes) VALUES(1, 1, 0, 1, 1790000000000000000, "
         "1790000000000000001, 5, 3, 1000,"
         " 0, 9, 1, 2)");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        exec(format_text("UPDATE load SET status = %d", cases[i].status));
        struct query query = {.kind = QUERY_SUMMARY};
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "models", -1), cases[i].models);
        assert_int_equal(result_integer(result, 0, "loads", -1), 1);
        result_free(result);
        query.kind = QUERY_OVERVIEW;
        result = ask(&query);
        assert_int_equal(result_row_count(result), cases[i].rows);
        result_free(result);
    }
}

// Each restart of a worker is a run: there are many more of them than groups.
TEST_CASE(test_an_encoder_is_no_model)
{
    exec("INSERT INTO load(id, run, stream, number, started_ns, received_ns, model,"
         " device, duration_ns, status, model_bytes, host_memory_before_bytes,"
         " host_memory_after_bytes) VALUES(1, 1, 0, 1, 1790000000000000000, "
         "1790000000000000001, 5, 3, 1000, 0, 9, 1, 2), (2, 1, 0, 2, 1790000000000000000, "
         "1790000000000000001, 6, 3, 1000, 0, 9, 1, 2);"
         "INSERT INTO model(id, run, stream, number, started_ns, received_ns, name, format)"
         " VALUES(1, 1, 0, 3, 1790000000000000000, 2, 5, 'encoder'),"
         " (2, 1, 0, 4, 1790000000000000000, 2, 6, 'gguf')");
    const struct query query = {.kind = QUERY_SUMMARY};
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "models", -1), 1);
    assert_int_equal(result_integer(result, 0, "loads", -1), 2);
    result_free(result);
}

static int64_t last_use(const char *model)
{
    const struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = ask(&query);
    int64_t last_ns = -1;
    for (size_t row = 0; row < result_row_count(result); row++)
        if (result_is(result, row, "model", model))
            last_ns = result_integer(result, row, "last_ns", -1);
    result_free(result);
    return last_ns;
}

static void roll_up(int64_t watermark)
{
    const struct query_metric *metrics[ROLLUP_METRICS_MAX];
    const unsigned count = rollup_metrics(RECORD_KIND_INFERENCE, metrics);
    exec("DELETE FROM rollup; DELETE FROM series; DELETE FROM rollup_state; BEGIN");
    for (unsigned i = 0; i < count; i++)
        rollup_builder_fill(db, metrics[i], watermark, false);
    exec("COMMIT");
}

// A model that the newest records do not have is in rollups of months: the day of its last use is
// known from rollups of days, and its time from records where there are none.
TEST_CASE(test_when_a_model_was_last_used)
{
    enum { FIRST = 20, LATER = 10000 }; // the first ones are not among the newest by their ids
    const int64_t day_ns = INT64_C(86400000000000), used_ns = START_NS - 40 * day_ns + 12345;
    store_add_inferences(60);
    execf("UPDATE inference SET model = iif(id <= %d, 5, 6), id = iif(id <= %d, id, id + %d)",
          FIRST, FIRST, LATER);
    execf("UPDATE inference SET run = 1, device = 3, started_ns = %lld - id * 1000 WHERE id <= %d",
          (long long)used_ns, FIRST);
    execf("UPDATE inference SET started_ns = %lld WHERE id = 5", (long long)used_ns);
    assert_int_equal(last_use("tiny"), used_ns);
    roll_up(2 * LATER);
    assert_int_equal(last_use("tiny"), rollup_bucket(ROLLUP_DAY, used_ns));
    execf("INSERT INTO rollup_gap VALUES(6, 0, 2, %lld, 0, %lld)",
          (long long)rollup_bucket(ROLLUP_MONTH, used_ns), (long long)START_NS);
    roll_up(2 * LATER);
    assert_int_equal(last_use("tiny"), used_ns);
    // Where the records have expired, there may be no rollups of days.
    exec("DELETE FROM rollup_gap");
    roll_up(2 * LATER);
    execf("DELETE FROM inference WHERE id <= %d;"
          "INSERT INTO expiry VALUES(6, 1789000000000000000)",
          FIRST);
    assert_int_equal(last_use("tiny"), rollup_bucket(ROLLUP_DAY, used_ns));
    exec("DELETE FROM rollup WHERE level = 2");
    assert_int_equal(last_use("tiny"), rollup_bucket(ROLLUP_MONTH, used_ns));
}

TEST_CASE(test_more_runs_than_groups)
{
    store_add_inferences(1);
    exec(
        "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 11002)"
        " INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\","
        " worker_version, protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count,"
        " produced, stored, duplicates, heard_ns) SELECT i, 1, 1, printf('%08d-n', i), 1, 1,"
        " i % 10 > 0, 'v', 1, 'o', 'k', 'c', 1, 1, 1, 0, 1, 0, 1 FROM n;"
        "CREATE TEMP TABLE one(id, run, stream, number, started_ns, received_ns, model, "
        "device,"
        " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
        " prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_max_ns, itl_p99_ns,"
        " host_memory_bytes, device_memory_bytes, concurrent_requests, error, items);"
        "INSERT INTO one SELECT id, run, stream, number, started_ns, received_ns, 5, 3,"
        " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
        " prefill_ns, ttft_ns, decode_ns, e2e_ns, itl_max_ns, itl_p99_ns,"
        " host_memory_bytes, device_memory_bytes, concurrent_requests, error, items FROM inference;"
        "DELETE FROM inference;"
        "CREATE TEMP TABLE two AS SELECT i.*, r.run AS r FROM one i, run r WHERE r.run > 2"
        " AND r.run <= 10902;" // the rest are idle
        "UPDATE two SET id = r, run = r; ALTER TABLE two DROP COLUMN r;"
        "INSERT INTO inference SELECT * FROM two;"
        "UPDATE two SET id = id + 20000; INSERT INTO inference SELECT * FROM two");
    struct query query = {.kind = QUERY_OVERVIEW};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3); // alpha's, alpha's idle runs, beta's idle run
    assert_int_equal(result_integer(result, 0, "inferences", -1), 21800);
    // Who is at work is read from the newest 4000 records.
    assert_int_equal(result_integer(result, 0, "runs_open", -1), 400);
    int64_t idle = 0;
    for (size_t row = 1; row < 3; row++)
        idle += result_integer(result, row, "runs_open", -1);
    assert_int_equal(idle, 1101 - 400);
    result_free(result);
    query = store_average_of("e2e_ns");
    query.group_count = 1;
    query.group_by[0] = QUERY_BY_RUN;
    expect_error(&query, STATUS_FULL, "more than 10000 groups");
    query.group_by[0] = QUERY_BY_MODEL;
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "count", -1), 21800);
    result_free(result);
}

// ---- What a ping costs ------------------------------------------------------------------

static int64_t steps; // of SQLite's virtual machine, of all statements

static int count_steps(unsigned event, void *context, void *stmt, void *ns)
{
    (void)event, (void)context, (void)ns;
    steps += sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    return 0;
}

static int watch_statements(sqlite3 *opened, char **error, const struct sqlite3_api_routines *api)
{
    (void)error, (void)api;
    return sqlite3_trace_v2(opened, SQLITE_TRACE_PROFILE, count_steps, NULL);
}

static int64_t steps_of_a_ping(void)
{
    const struct query query = {.kind = QUERY_PING};
    struct store *watched = NULL;
    struct result *result = NULL;
    struct error err = {0};
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch_statements), SQLITE_OK);
    expect_ok(store_open(&watched, path, &err), &err);
    assert_int_equal(sqlite3_cancel_auto_extension((void (*)(void))watch_statements), 1);
    steps = 0;
    expect_ok(store_query(watched, &query, &result, &err), &err);
    assert_int_equal(result_integer(result, 0, "runs_open", -1), 1);
    result_free(result);
    store_close(watched);
    return steps;
}

TEST_CASE(test_a_ping_costs_the_same_with_many_runs)
{
    const int64_t few = steps_of_a_ping();
    assert_true(few > 10);
    exec("WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
         " INSERT INTO run(run, started_ns, received_ns, uuid, host, pid, \"end\", worker_version,"
         " protocol, os, kernel, cpu, cpu_count, host_memory_bytes, device_count, produced, stored,"
         " duplicates, heard_ns) SELECT i, 1, 1, 'run-' || i, 1, 1, 1 + i % 3, 'v', 1, 'o', 'k',"
         " 'c', 1, 1, 0, 0, 0, 0, 1 FROM n");
    assert_int_equal(steps_of_a_ping(), few);
}

TEST_MAIN_EACH(store_set_up, store_tear_down, test_summary_equals_plain_sql,
               test_a_summary_counts_the_runs_of_its_model, test_sums_do_not_overflow,
               test_an_empty_store_has_a_summary, test_the_time_of_a_window,
               test_the_log_is_part_of_the_size, test_a_summary_of_what_has_expired,
               test_a_summary_of_nothing, test_overview_equals_plain_sql,
               test_what_failed_to_load_is_no_model, test_an_encoder_is_no_model,
               test_when_a_model_was_last_used, test_more_runs_than_groups,
               test_a_ping_costs_the_same_with_many_runs)
