// mbu_ratio: what requests read, token by token, against what their device could have read.
#include <inttypes.h>
#include <math.h>

#include "common/core/record/record.h"
#include "common/store/rollup/rollup_plan.h"
#include "common/store/store.h"
#include "tests/support/test.h"
#include "tests/unit/store/random_store.h"

#define STEP_NS (6 * HOUR_NS)

enum { REQUESTS = 300, GROUPS_MAX = REQUESTS, FIRST_DEVICE = 4, FIRST_MODEL = 6, MODELS = 3 };

static struct query bandwidth(void)
{
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s", QUERY_METRIC_MBU);
    return query;
}

static enum status try_ask(const struct query *query, struct result **result)
{
    struct error err = {0};
    *result = NULL;
    const enum status status = store_query(store, query, result, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA)
        fail_msg("%s", err.text);
    return status;
}

static void expect_near(const char *what, double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%s is %.17g, not %.17g", what, actual, expected);
}

// The note, or "".
static const char *note_of(const struct result *result)
{
    static char text[1024];
    const struct value note = result_cell(result, 0, (unsigned)result_find(result, "note"));
    (void)snprintf(text, sizeof text, "%.*s", note.type == VALUE_TEXT ? (int)note.text.size : 0,
                   note.type == VALUE_TEXT ? note.text.bytes : "");
    return text;
}

// What an answer with values over 1 says.
static const char over[] = "over 1 is more than the device's measured memory bandwidth: a cache"
                           " held the weights, or the device was busy when it was measured";

static void add_device(int run, int name, const char *bytes_per_second)
{
    execf("INSERT INTO device(run, stream, number, started_ns, received_ns, ordinal, name,"
          " memory_bytes, memory_bandwidth_bytes_per_second)"
          " VALUES(%d, 0, 1, 1, 1, 0, %d, 1, %s)",
          run, name, bytes_per_second);
}

static void add_load(int run, int model, int status, int64_t bytes)
{
    execf("INSERT INTO load(run, stream, number, started_ns, received_ns, model, device,"
          " duration_ns, status, model_bytes, host_memory_before_bytes, host_memory_after_bytes)"
          " VALUES(%d, 0, 1, 1, 1, %d, 4, 1, %d, %" PRId64 ", 1, 1)",
          run, model, status, bytes);
}

static void add_model(int run, int model, const char *file_bytes, const char *kv_bytes,
                      const char *weight_bytes)
{
    execf("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format,"
          " file_bytes, kv_bytes_per_token, weight_bytes_per_token)"
          " VALUES(%d, 0, 1, 1, 1, %d, 'gguf', %s, %s, %s)",
          run, model, file_bytes, kv_bytes, weight_bytes);
}

static void set_request(int id, int prompt, int generated, int64_t ttft_ns, int64_t e2e_ns)
{
    execf("UPDATE inference SET run = 1, model = 6, device = 4, prompt_tokens = %d,"
          " generated_tokens = %d, ttft_ns = %" PRId64 ", e2e_ns = %" PRId64 " WHERE id = %d",
          prompt, generated, ttft_ns, e2e_ns, id);
}

TEST_CASE(test_a_token_reads_weights_and_cache)
{
    seed = 1;
    make_store(RECORD_KIND_INFERENCE, 2);
    set_request(1, 7, 4, 100, 1000000100); // reads 8, 9 and 10 positions
    set_request(2, 5, 1, 100, 100);        // nothing is decoded
    store = open_store();
    const struct query query = bandwidth();
    struct result *result = NULL;
    assert_int_equal(try_ask(&query, &result), STATUS_NO_DATA);
    add_device(1, 4, "1e11");
    add_load(1, 6, 0, 1000000000);
    add_load(1, 6, 1, 1); // one that failed
    add_load(2, 6, 0, 5); // of another run

    assert_int_equal(try_ask(&query, &result), STATUS_OK);
    assert_int_equal(result_integer(result, 0, "count", -1), 1);
    expect_near("mean", result_number(result, 0, "mean", NAN), 3e9 / 1e11);
    assert_string_equal(note_of(result), "of the weights alone in 1 of 1 requests, whose models do"
                                         " not say what their KV cache takes");
    result_free(result);

    add_model(1, 6, "2000000000", "1000000", "NULL");
    assert_int_equal(try_ask(&query, &result), STATUS_OK);
    expect_near("mean", result_number(result, 0, "mean", NAN), (3e9 + 27e6) / 1e11);
    expect_near("total", result_number(result, 0, "total_over_total", NAN), (3e9 + 27e6) / 1e11);
    assert_string_equal(note_of(result), "");
    result_free(result);

    // One whose tokens do not read its embedding table.
    add_model(1, 6, "2000000000", "1000000", "800000000");
    assert_int_equal(try_ask(&query, &result), STATUS_OK);
    expect_near("mean", result_number(result, 0, "mean", NAN), (2.4e9 + 27e6) / 1e11);
    result_free(result);

    // One that keeps none, said last; a load that is no longer known.
    add_model(1, 6, "2000000000", "0", "NULL");
    exec("DELETE FROM load WHERE run = 1 AND status = 0");
    assert_int_equal(try_ask(&query, &result), STATUS_OK);
    expect_near("mean", result_number(result, 0, "mean", NAN), 6e9 / 1e11);
    assert_string_equal(note_of(result), "");
    result_free(result);
}

// The largest numbers that the wire takes.
TEST_CASE(test_the_largest_numbers)
{
    seed = 2;
    make_store(RECORD_KIND_INFERENCE, 1);
    exec("UPDATE inference SET run = 1, model = 6, device = 4, prompt_tokens = 1 << 53,"
         " generated_tokens = 1 << 53, ttft_ns = 0, e2e_ns = 1 << 53");
    add_device(1, 4, "1e11");
    add_load(1, 6, 0, INT64_C(1) << 53);
    add_model(1, 6, "NULL", "1 << 53", "1 << 53");
    store = open_store();
    const struct query query = bandwidth();
    struct result *result = NULL;
    assert_int_equal(try_ask(&query, &result), STATUS_OK);
    const double most = ldexp(1, 53);
    expect_near("mean", result_number(result, 0, "mean", NAN),
                (most + most * 1.5 * most) * (most - 1) * 1e9 / (most * 1e11));
    result_free(result);
}

// Two operations for each parameter and token computed, in the time without the queue.
TEST_CASE(test_arithmetic)
{
    static const struct {
        const char *change; // of the store
        double ratio;       // NaN: the request has none
    } cases[] = {
        {"UPDATE inference SET id = id", 2.0 * 1e9 * (7 + 4 - 1) / (2 * 1e12)},
        {"UPDATE inference SET queue_ns = 1000000000", 2.0 * 1e9 * (7 + 4 - 1) / 1e12},
        {"UPDATE inference SET cached_prompt_tokens = 5", 2.0 * 1e9 * (2 + 4 - 1) / 1e12},
        {"UPDATE inference SET generated_tokens = 1", 2.0 * 1e9 * 2 / 1e12},
        {"UPDATE inference SET generated_tokens = NULL", (double)NAN},
        {"UPDATE inference SET generated_tokens = 1, queue_ns = e2e_ns", (double)NAN},
        {"UPDATE inference SET queue_ns = 0; UPDATE device SET flops_per_second = NULL",
         (double)NAN},
        {"UPDATE device SET flops_per_second = 1e12; UPDATE model SET parameters = NULL",
         (double)NAN},
    };
    seed = 3;
    make_store(RECORD_KIND_INFERENCE, 1);
    set_request(1, 7, 4, 100, 2000000000);
    exec("UPDATE inference SET queue_ns = 0, cached_prompt_tokens = NULL");
    add_device(1, 4, "NULL");
    exec("UPDATE device SET flops_per_second = 1e12");
    add_model(1, 6, "1", "1", "1");
    exec("UPDATE model SET parameters = 1000000000");
    store = open_store();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct query query = bandwidth();
        struct result *result = NULL;
        (void)snprintf(query.metric, sizeof query.metric, "%s", QUERY_METRIC_MFU);
        exec(cases[i].change);
        assert_int_equal(try_ask(&query, &result),
                         isnan(cases[i].ratio) ? STATUS_NO_DATA : STATUS_OK);
        if (!isnan(cases[i].ratio))
            expect_near("mean", result_number(result, 0, "mean", NAN), cases[i].ratio);
        result_free(result);
    }
}

// What plain SQL knows of a request that has a value.
struct request {
    int64_t started_ns, prompt, generated, ns, weights, kv_bytes;
    bool knows_cache;
    double peak;
    char names[QUERY_DIMENSION_COUNT][64]; // model, host, device, run, as far as there are any
    double read, could_read;
};

static struct request requests[REQUESTS];
static size_t request_count;

#define LAST_OF(table, columns, by)                                                                \
    "(SELECT " columns " FROM (SELECT *, row_number() OVER (PARTITION BY run, " by                 \
    " ORDER BY id DESC) AS place FROM " table ") WHERE place = 1)"

static const char plain[] =
    "SELECT i.started_ns, i.prompt_tokens, i.generated_tokens, i.e2e_ns - i.ttft_ns,"
    " coalesce(m.weight_bytes_per_token, l.model_bytes, m.file_bytes), m.kv_bytes_per_token,"
    " d.memory_bandwidth_bytes_per_second, x.text, h.text, y.text, r.uuid FROM inference i"
    " JOIN run r ON r.run = i.run JOIN name h ON h.id = r.host"
    " JOIN name x ON x.id = i.model JOIN name y ON y.id = i.device"
    " LEFT JOIN " LAST_OF(
        "(SELECT * FROM load WHERE status = 0)", "run, model, model_bytes",
        "model") " l ON l.run = i.run AND l.model = i.model"
                 " LEFT JOIN " LAST_OF(
                     "model", "run, name, file_bytes, kv_bytes_per_token, weight_bytes_per_token",
                     "name") " m ON m.run = i.run AND m.name = i.model"
                             " JOIN " LAST_OF(
                                 "device", "run, name, memory_bandwidth_bytes_per_second",
                                 "name") " d ON d.run = i.run AND d.name = i.device"
                                         " WHERE i.generated_tokens >= 2 AND i.e2e_ns > i.ttft_ns"
                                         " AND d.memory_bandwidth_bytes_per_second > 0"
                                         " AND coalesce(m.weight_bytes_per_token, l.model_bytes, "
                                         "m.file_bytes) IS NOT NULL";

// Token by token.
static void count_bytes(struct request *request)
{
    long double bytes = 0;
    for (int64_t token = 2; token <= request->generated; token++)
        bytes += (long double)request->weights +
                 (long double)request->kv_bytes * (long double)(request->prompt + token - 1);
    request->read = (double)bytes;
    request->could_read = (double)request->ns / 1e9 * request->peak;
}

static void read_plain(void)
{
    static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_HOST,
                                                      QUERY_BY_DEVICE, QUERY_BY_RUN};
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, plain, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    request_count = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        assert_true(request_count < REQUESTS);
        struct request *request = &requests[request_count++];
        *request = (struct request){.started_ns = sqlite3_column_int64(stmt, 0),
                                    .prompt = sqlite3_column_int64(stmt, 1),
                                    .generated = sqlite3_column_int64(stmt, 2),
                                    .ns = sqlite3_column_int64(stmt, 3),
                                    .weights = sqlite3_column_int64(stmt, 4),
                                    .kv_bytes = sqlite3_column_int64(stmt, 5),
                                    .knows_cache = sqlite3_column_type(stmt, 5) != SQLITE_NULL,
                                    .peak = sqlite3_column_double(stmt, 6)};
        for (size_t i = 0; i < COUNT_OF(dimensions); i++)
            (void)snprintf(request->names[dimensions[i]], sizeof request->names[0], "%s",
                           (const char *)sqlite3_column_text(stmt, 7 + (int)i));
        count_bytes(request);
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

static bool is_asked_for(const struct query *query, const struct request *request)
{
    const struct query_filter *filter = &query->filter;
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && strcmp(filter->by[i], request->names[i]) != 0)
            return false;
    return (!filter->since_ns || request->started_ns >= filter->since_ns) &&
           (!filter->until_ns || request->started_ns < filter->until_ns);
}

static bool is_of_row(const struct query *query, const struct result *result, size_t row,
                      const struct request *request)
{
    for (unsigned i = 0; i < query->group_count; i++) {
        const char *name = request->names[query->group_by[i]];
        const struct value cell = result_cell(result, row, i);
        if (cell.type != VALUE_TEXT || cell.text.size != strlen(name) ||
            memcmp(cell.text.bytes, name, cell.text.size) != 0)
            return false;
    }
    return query->step_ns == 0 || result_integer(result, row, "started_ns", -1) ==
                                      rollup_step(query->step_ns, request->started_ns);
}

// The requests of a row, which are as many as it says; how many, and of how many the cache
// is not known.
static void compare_row(const struct query *query, const struct result *result, size_t row,
                        size_t *all, size_t *of_weights, bool *is_over)
{
    size_t count = 0;
    long double sum = 0, read = 0, could_read = 0;
    double min = INFINITY, max = -INFINITY;
    for (size_t i = 0; i < request_count; i++) {
        const struct request *request = &requests[i];
        if (!is_asked_for(query, request) || !is_of_row(query, result, row, request))
            continue;
        const double value = request->read / request->could_read;
        count++;
        *of_weights += !request->knows_cache;
        sum += (long double)value;
        read += (long double)request->read;
        could_read += (long double)request->could_read;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    assert_int_equal(result_integer(result, row, "count", -1), count);
    expect_near("mean", result_number(result, row, "mean", NAN),
                (double)(sum / (long double)count));
    expect_near("total", result_number(result, row, "total_over_total", NAN),
                (double)(read / could_read));
    expect_near("min", result_number(result, row, "min", NAN), min);
    expect_near("max", result_number(result, row, "max", NAN), max);
    *all += count;
    *is_over = *is_over || max > 1;
}

static void compare(const struct query *query)
{
    struct result *result = NULL;
    size_t wanted = 0, all = 0, of_weights = 0;
    char note[320] = "";
    bool is_over = false;
    for (size_t i = 0; i < request_count; i++)
        wanted += is_asked_for(query, &requests[i]);
    const enum status status = try_ask(query, &result);
    assert_int_equal(status, wanted ? STATUS_OK : STATUS_NO_DATA);
    if (status != STATUS_OK)
        return;
    for (size_t row = 0; row < result_row_count(result); row++)
        compare_row(query, result, row, &all, &of_weights, &is_over);
    assert_int_equal(all, wanted);
    if (is_over)
        (void)snprintf(note, sizeof note, "%s", over);
    const size_t used = strlen(note);
    if (of_weights > 0)
        (void)snprintf(note + used, sizeof note - used,
                       "%sof the weights alone in %zu of %zu requests, whose models do not say what"
                       " their KV cache takes",
                       is_over ? "; " : "", of_weights, all);
    assert_string_equal(note_of(result), note);
    result_free(result);
}

static const char *number_or_null(char text[32], int64_t room)
{
    if (pick(4))
        (void)snprintf(text, 32, "%" PRId64, pick(room));
    else
        (void)snprintf(text, 32, "NULL");
    return text;
}

// Runs whose models are loaded, described and measured often, once, or not at all.
static void describe_runs(void)
{
    char first[32], second[32], third[32];
    for (int run = 1; run <= RUNS; run++) {
        for (int64_t i = pick(4); i > 0; i--)
            add_device(run, FIRST_DEVICE + (int)pick(2), number_or_null(first, INT64_C(1) << 38));
        for (int model = FIRST_MODEL; model < FIRST_MODEL + MODELS; model++) {
            for (int64_t i = pick(3); i > 0; i--)
                add_load(run, model, (int)pick(3), pick(INT64_C(1) << 36));
            for (int64_t i = pick(3); i > 0; i--)
                add_model(run, model, number_or_null(first, INT64_C(1) << 36),
                          number_or_null(second, 1 << 20), number_or_null(third, INT64_C(1) << 36));
        }
    }
}

static void make_requests(void)
{
    make_random(REQUESTS);
    exec("BEGIN");
    for (int id = 1; id <= REQUESTS; id++)
        execf("UPDATE inference SET prompt_tokens = %" PRId64 ", generated_tokens = %" PRId64
              ", e2e_ns = %" PRId64 ", ttft_ns = CASE WHEN ttft_ns IS NULL THEN NULL ELSE"
              " %" PRId64 " END WHERE id = %d",
              pick(2000), pick(60), pick(INT64_C(4000000000)), pick(INT64_C(1000000000)), id);
    describe_runs();
    exec("COMMIT");
    read_plain();
}

static struct query random_query(void)
{
    static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_HOST,
                                                      QUERY_BY_DEVICE, QUERY_BY_RUN};
    struct query query = bandwidth();
    for (size_t i = 0; i < COUNT_OF(dimensions); i++) {
        if (pick(3) == 0)
            query.group_by[query.group_count++] = dimensions[i];
        if (pick(5) == 0 && request_count > 0)
            (void)snprintf(query.filter.by[dimensions[i]], sizeof query.filter.by[0], "%s",
                           requests[pick((int64_t)request_count)].names[dimensions[i]]);
    }
    if (pick(2))
        query.step_ns = STEP_NS;
    if (pick(2))
        query.filter.since_ns = pick_time();
    const int64_t until_ns = pick_time();
    if (pick(2) && until_ns > query.filter.since_ns)
        query.filter.until_ns = until_ns;
    return query;
}

// A bundle that has the loads, too, answers like the store, of which it takes the place.
static void bundle(const struct query_filter *filter)
{
    struct error err = {0};
    struct result *answer = NULL;
    struct query query = {.kind = QUERY_COPY, .file.bundle = true, .filter = *filter};
    (void)folder_path(query.file.path, folder, "bundle.db");
    expect_ok(store_query(store, &query, &answer, &err), &err);
    result_free(answer);
    store_close(store);
    store = NULL;
    expect_ok(store_open(&store, query.file.path, &err), &err);
}

// Also in a bundle.
TEST_CASE(test_it_is_what_plain_sql_says)
{
    size_t compared = 0;
    for (seed = 1; seed <= 6; seed++) {
        const uint64_t first = seed;
        make_requests();
        store = open_store();
        for (int i = 0; i < 60; i++) {
            const struct query query = random_query();
            compare(&query);
        }
        struct query query = random_query();
        query.filter.since_ns = query.filter.until_ns = 0; // loads are not of these times
        query.filter.by[QUERY_BY_DEVICE][0] = '\0';        // nor of each device
        bundle(&query.filter);
        compare(&query);
        query.group_count = 0;
        compare(&query);
        compared += request_count;
        store_close(store);
        store = NULL;
        drop_store();
        seed = first;
    }
    assert_true(compared > REQUESTS / 4);
}

TEST_MAIN_EACH(random_set_up, random_tear_down, test_a_token_reads_weights_and_cache,
               test_arithmetic, test_the_largest_numbers, test_it_is_what_plain_sql_says)
