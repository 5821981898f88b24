// What a session keeps of recent requests and gaps between tokens (recent.h): whatever happens to
// the store between two queries, it answers as a new session does, and as the records that are read
// for a filter by name.
#include <string.h>

#include <sqlite3.h>

#include "common/core/stats/sketch.h"
#include "common/store/read/recent.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)

enum { MODELS = 3, RUNS = 4 };

static uint64_t random_state;
static uint32_t models[MODELS];
static int64_t as_of_ns;

static uint64_t below(uint64_t bound)
{
    return test_random(&random_state) % bound;
}

TEST_FIXTURE(set_up)
{
    store_make(state);
    random_state = 7;
    as_of_ns = START_NS + 3600 * SECOND;
    for (unsigned i = 0; i < MODELS; i++)
        models[i] = rows_name(db, format_text("m%u", i));
    for (int64_t run = 1; run <= RUNS; run++)
        rows_run(db, run, format_text("host-%lld", (long long)(run / 2)), START_NS, as_of_ns);
    execf("UPDATE run SET \"end\" = 0");
    return store_read();
}

// A column is missing now and then.
static void set(struct record *record, unsigned column, int64_t value)
{
    if (below(8) > 0)
        record_set_int(record, column, value);
}

// Most requests began within the last minutes; some before the window, after the present or at an
// implausible time.
static void make_request(struct record *record)
{
    const int64_t back_ns = (int64_t)below(400) * SECOND, e2e_ns = (int64_t)below(20 * SECOND);
    const int64_t tokens = (int64_t)below(100);
    const unsigned odd = (unsigned)below(40);
    record_init(record, RECORD_KIND_INFERENCE,
                odd == 0   ? as_of_ns + 5 * SECOND
                : odd == 1 ? SECOND
                           : as_of_ns - back_ns);
    record_set_name(record, INFERENCE_MODEL, models[below(MODELS)]);
    record_set_name(record, INFERENCE_DEVICE, models[0]);
    record_set_int(record, INFERENCE_REQUEST, 1);
    record_set_int(record, INFERENCE_FINISH, (int64_t)below(4));
    record_set_int(record, INFERENCE_QUEUE_NS, 0);
    record_set_int(record, INFERENCE_E2E_NS, e2e_ns);
    record_set_int(record, INFERENCE_HOST_MEMORY, 1);
    set(record, INFERENCE_PROMPT_TOKENS, tokens * 2);
    set(record, INFERENCE_CACHED_PROMPT_TOKENS, tokens);
    set(record, INFERENCE_GENERATED_TOKENS, tokens);
    set(record, INFERENCE_PREFILL_NS, e2e_ns / 8);
    set(record, INFERENCE_TTFT_NS, e2e_ns / 4);
    set(record, INFERENCE_DECODE_NS, e2e_ns / 2);
    set(record, INFERENCE_ITL_MAX_NS, e2e_ns / 16);
    set(record, INFERENCE_ITEMS, (int64_t)below(3));
}

static void add_request(int64_t run)
{
    struct record record;
    make_request(&record);
    (void)rows_add(db, run, &record);
}

// A record of gaps between tokens, some of which last longer than they count.
static void make_gaps(struct record *record)
{
    char bytes[256];
    struct sketch *sketch = NULL;
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    for (uint64_t left = 1 + below(400); left > 0; left--)
        sketch_add(sketch, (double)(1000000 << below(3)), 1);
    record_init(record, RECORD_KIND_ITL,
                as_of_ns - (int64_t)below(400) * SECOND - (int64_t)below(SECOND));
    record_set_name(record, ITL_MODEL, models[below(MODELS)]);
    record_set_name(record, ITL_DEVICE, models[0]);
    record_set_int(record, ITL_DURATION_NS,
                   (int64_t)below(below(8) == 0 ? 12 * SECOND : 2 * SECOND));
    record_set_blob(record, ITL_SKETCH, bytes, sketch_encode_whole(sketch, bytes, sizeof bytes));
    sketch_free(sketch);
}

static void add_gaps(int64_t run)
{
    struct record record;
    make_gaps(&record);
    (void)rows_add(db, run, &record);
}

// NULL: there is nothing, or no time.
static struct result *ask_of(struct store *from, const struct query *query)
{
    struct result *result = NULL;
    struct error err;
    const enum status status = store_query(from, query, &result, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA && status != STATUS_TIMEOUT)
        fail_msg("%s", err.text);
    return result;
}

static void happen(void)
{
    static const char act[] = "INSERT INTO admin(at_ns, actor, action, detail, outcome, rows)"
                              " VALUES(1, '', '', '', '', 0)";
    for (uint64_t left = below(30); left > 0; left--)
        add_request(1 + (int64_t)below(RUNS));
    for (uint64_t left = below(30); left > 0; left--)
        add_gaps(1 + (int64_t)below(RUNS));
    const enum record_kind kind = below(2) ? RECORD_KIND_INFERENCE : RECORD_KIND_ITL;
    const char *table = record_kind_info(kind)->name;
    switch (below(8)) {
    case 0: // clear some
        execf("DELETE FROM %s WHERE model = %u", table, models[below(MODELS)]);
        exec(act);
        break;
    case 1: // the newest are gone, and the last id is another record's
        execf("DELETE FROM %s WHERE id > (SELECT max(id) FROM %s) - %d", table, table,
              (int)below(5));
        break;
    case 2: // some have expired
        as_of_ns += SECOND;
        execf("DELETE FROM %s WHERE started_ns < %lld", table, (long long)(as_of_ns - 60 * SECOND));
        execf("INSERT OR REPLACE INTO expiry VALUES(%d, %lld)", kind,
              (long long)(as_of_ns - 60 * SECOND));
        break;
    case 3: // a query that fails half way
        store_set_budget(store, 1);
        result_free(ask_of(store, &(struct query){.kind = QUERY_NOW}));
        store_set_budget(store, 0);
        break;
    case 4:
        as_of_ns += (int64_t)below(200) * SECOND;
        break;
    default:
        as_of_ns += (int64_t)below(10) * SECOND;
    }
    execf("UPDATE run SET heard_ns = %lld", (long long)as_of_ns);
}

// Each row of `part` is in `all`, with these columns, or all of them.
static void expect_rows(const struct result *all, const struct result *part,
                        const char *const *columns, unsigned count)
{
    for (size_t row = 0; row < result_row_count(part); row++) {
        size_t other = 0;
        while (other < result_row_count(all) &&
               !(value_is_same(result_get(all, other, "model"), result_get(part, row, "model")) &&
                 value_is_same(result_get(all, other, "host"), result_get(part, row, "host"))))
            other++;
        assert_true(other < result_row_count(all));
        for (unsigned i = 0; i < count; i++)
            expect_same_cell(result_get(all, other, columns[i]), result_get(part, row, columns[i]),
                             columns[i]);
    }
}

// Asks the session of the test, and a new one.
static void expect_as_new(const struct query *query)
{
    struct store *new_store = NULL;
    struct error err;
    assert_int_equal(store_open(&new_store, path, &err), STATUS_OK);
    struct result *kept = ask_of(store, query), *new = ask_of(new_store, query);
    assert_int_equal(kept == NULL, new == NULL);
    for (size_t row = 0; kept && row < result_row_count(kept); row++)
        for (unsigned i = 0; i < result_column_count(kept); i++)
            expect_same_cell(result_cell(kept, row, i), result_cell(new, row, i),
                             result_column(kept, i)->key);
    result_free(kept);
    result_free(new);
    store_close(new_store);
}

// Requests of a model alone are read from the store, and not kept.
static void expect_as_read(const struct query *query)
{
    static const char *const figures[] = {
        "requests",          "failed",     "error_ratio", "request_rate", "output_token_rate",
        "prompt_token_rate", "item_rate",  "ttft_p50_ns", "ttft_p95_ns",  "tokens_per_second_p50",
        "tpot_p95_ns",       "e2e_p95_ns", "trend",       "state"};
    struct result *all = ask(query);
    for (unsigned i = 0; i < MODELS; i++) {
        struct query one = *query;
        (void)snprintf(one.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "m%u", i);
        struct result *part = ask_of(store, &one);
        if (part)
            expect_rows(all, part, figures, COUNT_OF(figures));
        result_free(part);
    }
    result_free(all);
}

static size_t kept_count(enum recent_kind kind, const struct query *query)
{
    const struct recent *recent = NULL;
    struct error err;
    assert_int_equal(recent_find(&recent, store, kind, query, &err), STATUS_OK);
    return recent ? recent->count : 0;
}

TEST_CASE(test_kept)
{
    size_t found = 0;
    for (unsigned left = test_volume(60); left > 0; left--) {
        const struct query now = {.kind = QUERY_NOW};
        struct query other = now;
        const struct query chart = {.kind = QUERY_AVERAGE,
                                    .metric = "output_token_rate",
                                    .step_ns = (left % 2 ? 10 : 60) * SECOND,
                                    .filter.since_ns = as_of_ns - 100 * SECOND,
                                    .group_by = {QUERY_BY_HOST},
                                    .group_count = 1};
        happen();
        other.filter.since_ns = as_of_ns - (60 + (int64_t)below(500)) * SECOND;
        expect_as_new(&now);
        expect_as_new(&other);
        expect_as_new(&chart);
        expect_as_read(&now);
        found += kept_count(RECENT_GAPS, &chart);
    }
    assert_true(found > 0);
}

static void add_many(int64_t run, unsigned count)
{
    struct record record;
    struct sqlite3_stmt *stmt = rows_prepare(db, RECORD_KIND_INFERENCE);
    int64_t id = integer("SELECT coalesce(max(id), 0) FROM inference");
    exec("BEGIN");
    for (; count > 0; count--) {
        make_request(&record);
        rows_insert(stmt, ++id, run, &record);
    }
    exec("COMMIT");
    (void)sqlite3_finalize(stmt);
}

// What a run answers with is known from the newest 20,000 requests that are there.
TEST_CASE(test_answers)
{
    const struct query now = {.kind = QUERY_NOW};
    add_many(1, 20000);
    add_request(RUNS);
    expect_as_new(&now);
    for (unsigned left = 5; left > 0; left--) {
        add_request(1);
        expect_as_new(&now);
    }
    add_many(2, 40001); // more than are read one after another
    expect_as_new(&now);
    exec("DELETE FROM inference WHERE run = 2");
    exec("INSERT INTO admin(at_ns, actor, action, detail, outcome, rows)"
         " VALUES(1, '', '', '', '', 0)");
    add_request(3);
    expect_as_new(&now);
    struct result *result = ask(&now);
    assert_true(result_row_count(result) >= MODELS); // that of the run that had been displaced, too
    result_free(result);
}

// A session knows since when a run has not answered, though many requests of others came since.
TEST_CASE(test_idle)
{
    const struct query now = {.kind = QUERY_NOW};
    const int64_t last_ns = as_of_ns - 1000 * SECOND;
    execf("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
          " VALUES(%d, 0, 1, %lld, %lld, %u, 'gguf')",
          RUNS, (long long)START_NS, (long long)START_NS, models[0]);
    add_request(RUNS);
    execf("UPDATE inference SET model = %u, e2e_ns = 0, started_ns = %lld", models[0],
          (long long)last_ns);
    result_free(ask(&now));
    add_many(1, 20001);
    struct result *result = ask(&now);
    size_t row = 0;
    while (row < result_row_count(result) && !result_is(result, row, "host", "host-2"))
        row++;
    assert_true(result_is(result, row, "state", "idle"));
    assert_int_equal(result_integer(result, row, "since_ns", 0), last_ns);
    result_free(result);
}

// Of a window that has ended, the newest requests before its end may all be of others.
TEST_CASE(test_past)
{
    const struct query now = {.kind = QUERY_NOW, .filter.until_ns = as_of_ns - SECOND};
    add_request(RUNS);
    execf("UPDATE inference SET model = %u, e2e_ns = 0, started_ns = %lld", models[0],
          (long long)(as_of_ns - 200 * SECOND));
    execf("INSERT INTO run_name(run, number, name) VALUES(%d, 1, %u), (%d, 2, %u)", RUNS, models[0],
          RUNS, models[1]);
    execf("INSERT INTO series(grouping, model, host, device, operation)"
          " SELECT 0, %u, host, 0, 0 FROM run WHERE run = %d",
          models[0], RUNS);
    add_many(1, 25000);
    execf("UPDATE inference SET started_ns = %lld WHERE run = 1",
          (long long)(as_of_ns - 100 * SECOND));
    struct result *result = ask(&now);
    unsigned rows = 0;
    for (size_t row = 0; row < result_row_count(result); row++)
        if (result_is(result, row, "host", "host-2")) {
            rows++;
            assert_true(result_is(result, row, "model", "m0"));
            assert_int_equal(result_integer(result, row, "requests", 0), 1);
        }
    assert_int_equal(rows, 1);
    result_free(result);
}

// More gaps than are kept are read from the store.
TEST_CASE(test_full_of_gaps)
{
    struct query now = {.kind = QUERY_NOW}, window = {.kind = QUERY_AVERAGE};
    window.filter.since_ns = as_of_ns - 60 * SECOND;
    add_request(1);
    add_gaps(1);
    expect_as_new(&now);
    assert_int_equal(kept_count(RECENT_GAPS, &window), 1);
    execf("INSERT INTO itl(run, stream, number, started_ns, received_ns, model, device,"
          " duration_ns, sketch)"
          " WITH RECURSIVE n(i) AS (VALUES(2) UNION ALL SELECT i + 1 FROM n WHERE i <= %d)"
          " SELECT 1, 1, i, %lld - i * 1000000, %lld, %u, %u, 1000000, sketch FROM n, itl",
          RECENT_MAX, (long long)as_of_ns, (long long)as_of_ns, models[1], models[0]);
    expect_as_new(&now);
    assert_int_equal(kept_count(RECENT_GAPS, &window), 0);
    assert_true(kept_count(RECENT_REQUESTS, &window) > 0);
    expect_as_read(&now);
}

// More requests than are kept are read from the store, until the window has fewer.
TEST_CASE(test_full)
{
    struct query now = {.kind = QUERY_NOW}, window = {.kind = QUERY_AVERAGE};
    add_many(1, 10);
    expect_as_new(&now);
    window.filter.since_ns = as_of_ns - 60 * SECOND;
    assert_true(kept_count(RECENT_REQUESTS, &window) > 0);
    execf("INSERT INTO inference(run, stream, number, model, device, request, started_ns,"
          " received_ns, finish, queue_ns, e2e_ns, host_memory_bytes)"
          " WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i <= %d)"
          " SELECT 1, 1, i, %u, %u, i, %lld - i * 1000000, %lld, 0, 0, 1000000, 1 FROM n",
          RECENT_MAX, models[1], models[0], (long long)as_of_ns, (long long)as_of_ns);
    expect_as_new(&now);
    assert_int_equal(kept_count(RECENT_REQUESTS, &window), 0);
    struct result *result = ask(&now);
    int64_t requests = 0;
    for (size_t row = 0; row < result_row_count(result); row++)
        requests += result_integer(result, row, "requests", 0);
    assert_true(requests > RECENT_MAX);
    result_free(result);
    as_of_ns += 250 * SECOND;
    execf("UPDATE run SET heard_ns = %lld", (long long)as_of_ns);
    add_many(2, 10);
    expect_as_new(&now);
    window.filter.since_ns = as_of_ns - 60 * SECOND;
    assert_true(kept_count(RECENT_REQUESTS, &window) > 0);
    expect_as_read(&now);
}

TEST_MAIN_EACH(set_up, store_tear_down, test_kept, test_answers, test_idle, test_past, test_full,
               test_full_of_gaps)
