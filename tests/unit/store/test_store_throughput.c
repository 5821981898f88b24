// Throughput from rollups, records and both, against a plain count over all rows: of random stores,
// windows, filters, groupings and steps, with requests of nanoseconds to a month.
#include <inttypes.h>
#include <math.h>

#include "common/core/stats/sketch.h"
#include "common/store/rollup/aggregate.h"
#include "common/store/schema/database_open.h"
#include "common/store/schema/schema_select.h"
#include "common/sys/clock.h"
#include "tests/support/store/rollup_builder.h"
#include "tests/support/test.h"
#include "tests/unit/store/random_store.h"

static const char *const metrics[] = {"request_rate", "prompt_token_rate", "output_token_rate",
                                      "error_ratio",  "cancelled_ratio",   "item_rate"};
enum { REQUEST_RATE, PROMPT_RATE, OUTPUT_RATE, ERRORS, CANCELLED, ITEM_RATE, METRICS };

#define SECOND_NS INT64_C(1000000000)

static char asked[2048]; // the query in words

// ---- The store ------------------------------------------------------------------------------

// Durations of all sizes, some requests without gaps between tokens.
static void make_requests(int64_t count)
{
    static const int64_t sizes[] = {1, 1000000000, MINUTE_NS, HOUR_NS, DAY_NS, 15 * DAY_NS};
    make_store(RECORD_KIND_INFERENCE, count);
    exec("BEGIN");
    for (int64_t id = 1; id <= count; id++)
        execf("UPDATE inference SET e2e_ns = %" PRId64 ", generated_tokens = %" PRId64
              ", prefill_ns = iif(id %% 3, 5, 0), finish = %" PRId64
              ", itl_max_ns = %s WHERE id = %" PRId64,
              pick(2 * sizes[pick((int64_t)COUNT_OF(sizes))]), pick(50), pick(4),
              pick(2) ? "NULL" : "7", id);
    // An inference has all of its tokens, or items and nothing of tokens.
    exec("UPDATE inference SET items = iif(id % 4, NULL, id % 7),"
         " prompt_tokens = coalesce(prompt_tokens, 2),"
         " cached_prompt_tokens = coalesce(cached_prompt_tokens, 0);"
         "UPDATE inference SET prompt_tokens = NULL, cached_prompt_tokens = NULL,"
         " generated_tokens = NULL, prefill_ns = NULL, ttft_ns = NULL, decode_ns = NULL,"
         " itl_max_ns = NULL, itl_p99_ns = NULL WHERE items IS NOT NULL;"
         "COMMIT");
}

static void add_gap_record(int64_t id, int64_t started_ns, int64_t duration_ns, int64_t gaps)
{
    struct sketch *sketch = NULL;
    unsigned char bytes[SKETCH_SIZE_MAX];
    const int64_t values[] = {id,          1 + pick(RUNS), 0,
                              id,          started_ns,     MARCH_NS + 40 * DAY_NS,
                              6 + pick(3), 4 + pick(2),    duration_ns};
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    sketch_add(sketch, 1e6, (uint64_t)gaps);
    const size_t size = sketch_encode_whole(sketch, bytes, sizeof bytes);
    sqlite3_str *text = sqlite3_str_new(db);
    schema_insert_sql(text, RECORD_KIND_ITL);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    sqlite3_free(sql);
    for (size_t i = 0; i < COUNT_OF(values); i++)
        (void)sqlite3_bind_int64(stmt, (int)i + 1, values[i]);
    (void)sqlite3_bind_blob(stmt, (int)COUNT_OF(values) + 1, bytes, (int)size, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
    sketch_free(sketch);
}

// Their number is also the duration in seconds, for the count below.
static void make_gaps(int64_t count)
{
    exec("BEGIN");
    for (int64_t id = 1; id <= count; id++) {
        const int64_t gaps = 1 + pick(30), started_ns = pick_time();
        add_gap_record(id, started_ns, gaps * SECOND_NS, gaps);
    }
    exec("COMMIT");
}

static void fill_rollups(int64_t requests, int64_t gaps)
{
    static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE, RECORD_KIND_ITL};
    exec("BEGIN");
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        const struct query_metric *all[ROLLUP_METRICS_MAX];
        const unsigned count = rollup_metrics(kinds[k], all);
        const int64_t last = k == 0 ? requests : gaps;
        const int64_t watermark = pick(3) ? pick(last + 1) : last;
        add_gaps(kinds[k]);
        for (unsigned m = 0; m < count; m++)
            if (all[m]->column != ITL_SKETCH || kinds[k] != RECORD_KIND_ITL)
                rollup_builder_fill(db, all[m], watermark, false);
    }
    exec("COMMIT");
}

// ---- The count --------------------------------------------------------------------------------

struct row {
    char names[QUERY_DIMENSION_COUNT][64];
    int64_t started_ns, first_ns, ended_ns;
    bool failed, cancelled;
    double requests, prompt, generated, streamed, gaps, items;
};

struct counted {
    char names[QUERY_DIMENSION_COUNT][64];
    int64_t step_ns;
    double requests, sums[METRICS], streamed, gaps;
};

static struct row rows[2 * ROWS_MAX];
static struct counted counted[GROUPS_MAX];
static size_t row_count, counted_count;

static const enum query_dimension dimensions[] = {QUERY_BY_MODEL, QUERY_BY_HOST, QUERY_BY_DEVICE,
                                                  QUERY_BY_RUN};

static void read_rows(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        struct row *row = &rows[row_count++];
        *row = (struct row){.started_ns = sqlite3_column_int64(stmt, 0),
                            .ended_ns = sqlite3_column_int64(stmt, 1)};
        row->requests = sqlite3_column_double(stmt, 2);
        row->failed = sqlite3_column_int(stmt, 3) == 3;
        row->cancelled = sqlite3_column_int(stmt, 3) == 2;
        row->prompt = sqlite3_column_double(stmt, 4);
        row->generated = sqlite3_column_double(stmt, 5);
        row->streamed = sqlite3_column_double(stmt, 6);
        row->gaps = sqlite3_column_double(stmt, 7);
        row->first_ns = sqlite3_column_int64(stmt, 8);
        row->items = sqlite3_column_double(stmt, 9);
        if (row->first_ns < row->started_ns)
            row->first_ns = row->started_ns;
        if (row->first_ns > row->ended_ns)
            row->first_ns = row->ended_ns;
        for (size_t i = 0; i < COUNT_OF(dimensions); i++)
            (void)snprintf(row->names[dimensions[i]], sizeof row->names[0], "%s",
                           (const char *)sqlite3_column_text(stmt, 10 + (int)i));
    }
    (void)sqlite3_finalize(stmt);
}

static void read_all_rows(void)
{
    row_count = 0;
#define NAMES                                                                                      \
    "(SELECT text FROM name WHERE id = t.model), (SELECT text FROM name WHERE id = r.host),"       \
    " (SELECT text FROM name WHERE id = t.device), r.run FROM"
    read_rows("SELECT t.started_ns, t.started_ns + t.e2e_ns, 1, finish,"
              " CASE WHEN prefill_ns > 0 THEN prompt_tokens ELSE cached_prompt_tokens END,"
              " generated_tokens, CASE WHEN itl_max_ns IS NULL OR generated_tokens < 2 THEN 0"
              " ELSE generated_tokens - 1 END, 0, t.started_ns + min(max(coalesce(ttft_ns, 0), 0),"
              " e2e_ns), t.items, " NAMES " inference t JOIN run r ON r.run = t.run");
    // Gaps of more than 10 seconds count in the first 10.
    read_rows("SELECT t.started_ns, t.started_ns + min(duration_ns, 10000000000), 0, 0, 0, 0, 0,"
              " duration_ns / 1000000000, t.started_ns, 0, " NAMES
              " itl t JOIN run r ON r.run = t.run");
}

static bool matches(const struct query *query, const struct row *row)
{
    for (size_t i = 0; i < COUNT_OF(dimensions); i++) {
        const char *wanted = query->filter.by[dimensions[i]];
        if (wanted[0] && strcmp(wanted, row->names[dimensions[i]]) != 0)
            return false;
    }
    return true;
}

static struct counted *find_counted(const struct query *query, const struct row *row,
                                    int64_t time_ns)
{
    struct counted wanted = {.step_ns = 0};
    for (unsigned i = 0; i < query->group_count; i++)
        memcpy(wanted.names[i], row->names[query->group_by[i]], sizeof wanted.names[i]);
    if (query->step_ns > 0)
        wanted.step_ns = rollup_step(query->step_ns, time_ns);
    for (size_t i = 0; i < counted_count; i++)
        if (counted[i].step_ns == wanted.step_ns &&
            memcmp(counted[i].names, wanted.names, sizeof wanted.names) == 0)
            return &counted[i];
    assert_true(counted_count < COUNT_OF(counted));
    counted[counted_count] = wanted;
    return &counted[counted_count++];
}

static bool is_inside(const struct query *query, int64_t time_ns)
{
    const struct query_filter *filter = &query->filter;
    return (!filter->since_ns || time_ns >= filter->since_ns) &&
           (!filter->until_ns || time_ns < filter->until_ns);
}

// A request's tokens or a record's gaps, step by step, or all at its end where it took no time.
static void count_tokens(const struct query *query, const struct row *row)
{
    const int64_t length_ns = row->ended_ns - row->first_ns;
    // Gaps move between short steps alone.
    const bool splits = query->step_ns && (row->gaps < 1 || query->step_ns % MINUTE_NS);
    int64_t at = row->first_ns;
    while (at < row->ended_ns || (length_ns == 0 && at == row->ended_ns)) {
        int64_t next = row->ended_ns;
        const int64_t step = rollup_step(query->step_ns ? query->step_ns : INT64_MAX / 4, at);
        const int64_t edges[] = {query->filter.since_ns, query->filter.until_ns,
                                 splits ? step + query->step_ns : 0};
        for (size_t i = 0; i < COUNT_OF(edges); i++)
            if (edges[i] > at && edges[i] < next)
                next = edges[i];
        const double share = length_ns ? (double)(next - at) / (double)length_ns : 1;
        if (is_inside(query, at)) {
            struct counted *group = find_counted(query, row, at);
            group->sums[OUTPUT_RATE] += share * row->generated;
            group->streamed += share * row->streamed;
            group->gaps += share * row->gaps;
        }
        at = next + (length_ns == 0);
    }
}

static void count_rows(const struct query *query, unsigned metric)
{
    counted_count = 0;
    for (size_t i = 0; i < row_count; i++) {
        const struct row *row = &rows[i];
        if (!matches(query, row) || (row->gaps > 0 && metric != OUTPUT_RATE))
            continue;
        if (metric == OUTPUT_RATE)
            count_tokens(query, row);
        if (!is_inside(query, row->ended_ns))
            continue;
        struct counted *group = find_counted(query, row, row->ended_ns);
        group->requests += row->requests;
        group->sums[REQUEST_RATE] += row->requests;
        group->sums[PROMPT_RATE] += row->prompt;
        group->sums[ITEM_RATE] += row->items;
        group->sums[ERRORS] += row->failed;
        group->sums[CANCELLED] += row->cancelled;
    }
    for (size_t i = 0; i < counted_count; i++) {
        double streamed = 0, gaps = 0; // of all steps of the group
        for (size_t k = 0; k < counted_count; k++)
            if (memcmp(counted[k].names, counted[i].names, sizeof counted[i].names) == 0) {
                streamed += counted[k].streamed;
                gaps += counted[k].gaps;
            }
        if (gaps >= streamed - 1e-6)
            counted[i].sums[OUTPUT_RATE] += counted[i].gaps - counted[i].streamed;
    }
}

// From the first start to the last end of the requests of the minute in which the last one began.
static void find_extent(const struct query *query, double *first_ns, double *last_ns)
{
    int64_t first = INT64_MAX, last = INT64_MIN, end = INT64_MIN;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < row_count; i++) {
            const struct row *row = &rows[i];
            const int64_t until_ns = query->filter.until_ns;
            if (!matches(query, row) || row->requests < 1 ||
                (until_ns && row->started_ns >= until_ns))
                continue;
            first = row->started_ns < first ? row->started_ns : first;
            last = row->started_ns > last ? row->started_ns : last;
            if (pass == 1 && row->started_ns >= rollup_bucket(ROLLUP_MINUTE, last))
                end = row->ended_ns > end ? row->ended_ns : end;
        }
    *first_ns = (double)first;
    *last_ns = (double)end;
}

static double seconds_of(const struct query *query, int64_t step_ns, double now_ns)
{
    const struct query_filter *filter = &query->filter;
    double first_ns = -INFINITY, last_ns = INFINITY;
    if (filter->since_ns)
        first_ns = (double)filter->since_ns;
    else if (query->step_ns == 0)
        find_extent(query, &first_ns, &last_ns);
    if (query->step_ns > 0) {
        first_ns = fmax(first_ns, (double)step_ns);
        last_ns = (double)step_ns + (double)query->step_ns;
    }
    if (filter->until_ns)
        last_ns = fmin(last_ns, (double)filter->until_ns);
    return (fmin(last_ns, now_ns) - first_ns) / 1e9;
}

// ---- Both compared ----------------------------------------------------------------------------

static bool is_group(const struct query *query, const struct result *result, size_t row,
                     const struct counted *group)
{
    if (query->step_ns > 0 && result_integer(result, row, "started_ns", -1) != group->step_ns)
        return false;
    for (unsigned i = 0; i < query->group_count; i++) {
        const struct value cell = result_get(result, row, query_dimension_name(query->group_by[i]));
        assert_int_equal(cell.type, VALUE_TEXT);
        if (cell.text.size != strlen(group->names[i]) ||
            memcmp(cell.text.bytes, group->names[i], cell.text.size) != 0)
            return false;
    }
    return true;
}

static void expect(double actual, double expected, const char *what)
{
    // The present is a part of some windows, and goes on.
    if (!(fabs(actual - expected) <= 1e-6 * fabs(expected) + 1e-12))
        fail_msg("%s: %s is %.17g, not %.17g", asked, what, actual, expected);
}

static void compare_group(const struct query *query, unsigned metric, const struct result *result,
                          const struct counted *group)
{
    size_t row = 0;
    const double now_ns = (double)clock_wall_ns();
    while (row < result_row_count(result) && !is_group(query, result, row, group))
        row++;
    if (row == result_row_count(result))
        fail_msg("%s: no row for %s at %" PRId64, asked, group->names[0], group->step_ns);
    const double seconds = seconds_of(query, group->step_ns, now_ns);
    expect((double)result_integer(result, row, "count", -1), group->requests, "count");
    if (fabs((double)result_integer(result, row, "sum", -1) - group->sums[metric]) > 0.5001)
        fail_msg("%s: sum is %" PRId64 ", not %.17g", asked, result_integer(result, row, "sum", -1),
                 group->sums[metric]);
    const double mean = result_number(result, row, "mean", NAN);
    if (metric == ERRORS || metric == CANCELLED)
        expect(mean, group->sums[metric] / group->requests, "mean");
    else if (seconds > 0)
        expect(mean, group->sums[metric] / seconds, "mean");
}

static void compare(struct store *opened, const struct query *query, unsigned metric)
{
    struct error err = {0};
    struct result *result = NULL;
    size_t expected = 0;
    count_rows(query, metric);
    const enum status status = store_query(opened, query, &result, &err);
    if (status != STATUS_OK && status != STATUS_NO_DATA)
        fail_msg("%s: %s", asked, err.text);
    for (size_t i = 0; i < counted_count; i++)
        if (counted[i].requests > 0 || counted[i].sums[metric] > 1e-6) {
            expected++;
            assert_int_equal(status, STATUS_OK);
            compare_group(query, metric, result, &counted[i]);
        }
    if ((status == STATUS_OK ? result_row_count(result) : 0) != expected)
        fail_msg("%s: %zu rows, not %zu", asked, result_row_count(result), expected);
    result_free(result);
}

static struct query pick_query(unsigned metric)
{
    static const int64_t steps[] = {7 * HOUR_NS, DAY_NS, 30 * DAY_NS, 13 * HOUR_NS + 1};
    static const int64_t first[] = {5, 0, 3};
    struct query query = {.kind = QUERY_AVERAGE};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metrics[metric]);
    for (size_t i = 0; i < 3; i++) {
        if (pick(4) == 0)
            query.group_by[query.group_count++] = dimensions[i];
        if (pick(5) == 0)
            (void)snprintf(query.filter.by[dimensions[i]], QUERY_TEXT_SIZE, "%s",
                           rig_names[first[i] + pick(2)]);
    }
    if (pick(3))
        query.filter.since_ns = pick_time();
    if (pick(3))
        query.filter.until_ns = pick_time();
    if (query.filter.until_ns && query.filter.until_ns <= query.filter.since_ns)
        query.filter.until_ns = query.filter.since_ns + 1 + pick(40 * DAY_NS);
    if (pick(3) == 0)
        query.step_ns = steps[pick((int64_t)COUNT_OF(steps))];
    (void)snprintf(asked, sizeof asked,
                   "seed %" PRIu64 ": %s by %u, model=%s host=%s device=%s, %" PRId64 "..%" PRId64
                   " step %" PRId64,
                   seed, query.metric, query.group_count, query.filter.by[QUERY_BY_MODEL],
                   query.filter.by[QUERY_BY_HOST], query.filter.by[QUERY_BY_DEVICE],
                   query.filter.since_ns, query.filter.until_ns, query.step_ns);
    return query;
}

TEST_CASE(test_any_store)
{
    for (unsigned round = 0; round < 8; round++) {
        seed = 7000 + round;
        const int64_t requests = 1 + pick(ROWS_MAX), gaps = 1 + pick(100);
        make_requests(requests);
        make_gaps(gaps);
        if (round % 4 != 3)
            fill_rollups(requests, gaps);
        read_all_rows();
        struct store *opened = open_store();
        for (unsigned i = 0; i < 60; i++) {
            const struct query query = pick_query(i % METRICS);
            compare(opened, &query, i % METRICS);
        }
        store_close(opened);
        drop_store();
    }
}

// A request that would end in the future counts where it began: one bad record must not add steps
// without end.
TEST_CASE(test_ends_in_the_future)
{
    seed = 1;
    make_store(RECORD_KIND_INFERENCE, 10);
    const int64_t now_ns = clock_wall_ns();
    execf("UPDATE inference SET started_ns = %" PRId64 ", received_ns = %" PRId64
          ", e2e_ns = id * %" PRId64 ", ttft_ns = 1, generated_tokens = 3, prompt_tokens = 2,"
          " cached_prompt_tokens = 0, prefill_ns = 1, itl_max_ns = NULL",
          now_ns - 100000000, now_ns, DAY_NS);
    struct store *opened = open_store();
    for (unsigned metric = REQUEST_RATE; metric <= OUTPUT_RATE; metric++) {
        struct query query = {.kind = QUERY_AVERAGE, .step_ns = 1000000000};
        struct error err = {0};
        struct result *result = NULL;
        (void)snprintf(query.metric, sizeof query.metric, "%s", metrics[metric]);
        if (store_query(opened, &query, &result, &err) != STATUS_OK)
            fail_msg("%s: %s", metrics[metric], err.text);
        assert_int_equal(result_row_count(result), 1);
        assert_int_equal(result_integer(result, 0, "sum", -1), 10 * (1 + (int64_t)metric));
        result_free(result);
    }
    store_close(opened);
    drop_store();
}

// An engine of 20 tokens a second, with a record of gaps every 1.05 s, puts out the same in each
// step of the window.
TEST_CASE(test_a_steady_engine)
{
    enum { RECORDS = 200, GAPS = 21 };
    static const struct {
        int64_t since_ms, until_ms, step_ms; // after the first record
    } cases[] = {{10000, 70000, 1000},  {10000, 70000, 5000}, {10300, 69700, 7000},
                 {10300, 10900, 100},   {0, 0, 1000},         {10000, 0, 2500},
                 {10000, 190000, 60000}};
    const int64_t start_ns = MARCH_NS + 20 * DAY_NS;
    seed = 4;
    make_store(RECORD_KIND_INFERENCE, 1);
    for (int64_t id = 1; id <= RECORDS; id++)
        add_gap_record(id, start_ns + (id - 1) * GAPS * SECOND_NS / 20, GAPS * SECOND_NS / 20,
                       GAPS);
    execf("UPDATE run SET heard_ns = %" PRId64, start_ns + DAY_NS);
    struct store *opened = open_store();
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        struct query query = {.kind = QUERY_AVERAGE, .metric = "output_token_rate"};
        double sums[2] = {0, 0};
        query.filter.since_ns = start_ns + cases[k].since_ms * 1000000;
        query.filter.until_ns = cases[k].until_ms ? start_ns + cases[k].until_ms * 1000000 : 0;
        for (unsigned pass = 0; pass < 2; pass++) {
            struct error err = {0};
            struct result *result = NULL;
            query.step_ns = pass ? cases[k].step_ms * 1000000 : 0;
            expect_ok(store_query(opened, &query, &result, &err), &err);
            for (size_t i = 0; i < result_row_count(result); i++) {
                const double rate = result_number(result, i, "mean", NAN);
                sums[pass] += rate * (double)result_integer(result, i, "window_ns", 0) / 1e9;
                const bool is_last = i + 1 == result_row_count(result) && !cases[k].until_ms;
                if (pass && !is_last && !(fabs(rate - 20) < (query.step_ns % MINUTE_NS ? 0.1 : 2)))
                    fail_msg("case %zu: step %zu has %g tok/s", k, i, rate);
            }
            result_free(result);
        }
        if (!(fabs(sums[0] - sums[1]) < 1e-3))
            fail_msg("case %zu: %g in all, %g in steps", k, sums[0], sums[1]);
    }
    // A record that would end in the future counts where it began.
    execf("DELETE FROM itl WHERE started_ns > %" PRId64 "; UPDATE run SET heard_ns = %" PRId64,
          start_ns + 60 * SECOND_NS, start_ns + 60 * SECOND_NS);
    const struct query query = {.kind = QUERY_AVERAGE,
                                .metric = "output_token_rate",
                                .filter.since_ns = start_ns,
                                .step_ns = SECOND_NS};
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(opened, &query, &result, &err), &err);
    assert_int_equal(result_row_count(result), 60);
    result_free(result);
    store_close(opened);
    drop_store();
}

// Totals beyond 64 bits are the largest number of them.
TEST_CASE(test_large_totals)
{
    seed = 3;
    make_store(RECORD_KIND_INFERENCE, 3);
    execf("UPDATE inference SET started_ns = %" PRId64 " + id, received_ns = %" PRId64
          ", e2e_ns = 100, ttft_ns = 1, finish = 0, prefill_ns = 1, prompt_tokens = %" PRId64,
          MARCH_NS, MARCH_NS + HOUR_NS, INT64_MAX / 2);
    struct store *opened = open_store();
    struct query query = {.kind = QUERY_AVERAGE, .metric = "prompt_token_rate"};
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(opened, &query, &result, &err), &err);
    assert_true(result_integer(result, 0, "sum", -1) == INT64_MAX);
    result_free(result);
    store_close(opened);
    drop_store();
}

// Steps that are short beside the bucket of a rollup: those before the first request take no time.
TEST_CASE(test_short_steps)
{
    enum { REQUESTS = 10 };
    seed = 2;
    make_store(RECORD_KIND_INFERENCE, REQUESTS);
    execf("UPDATE inference SET started_ns = %" PRId64 " + id * 2000, received_ns = %" PRId64
          ", e2e_ns = 100, ttft_ns = 1, generated_tokens = 3, prompt_tokens = 2",
          MARCH_NS + 20 * HOUR_NS, MARCH_NS + 21 * HOUR_NS);
    fill_rollups(REQUESTS, 0);
    struct store *opened = open_store();
    store_set_budget(opened, 5000000000);
    struct query query = {.kind = QUERY_AVERAGE, .metric = "request_rate", .step_ns = 1000};
    struct error err = {0};
    struct result *result = NULL;
    expect_ok(store_query(opened, &query, &result, &err), &err);
    assert_int_equal(result_row_count(result), REQUESTS);
    result_free(result);
    store_close(opened);
    drop_store();
}

TEST_MAIN_EACH(random_set_up, random_tear_down, test_any_store, test_ends_in_the_future,
               test_a_steady_engine, test_large_totals, test_short_steps)
