// The slowest requests: found whatever rollups there are, by little reading, and
// blamed on what was planted.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/blame.h"
#include "common/store/cell.h"
#include "common/store/database.h"
#include "common/store/reader.h"
#include "common/store/rollup.h"
#include "common/store/slowest.h"
#include "common/store/store.h"
#include "tests/support/folder.h"
#include "tests/support/rows.h"
#include "tests/support/test.h"

#define START_NS INT64_C(1790000000000000000)
#define MS       INT64_C(1000000)
#define SECOND   (1000 * MS)
#define DAY      (86400 * SECOND)

static char folder[FOLDER_PATH_SIZE];
static char path[FOLDER_PATH_SIZE];
static sqlite3 *db;
static struct store *store;
static uint32_t models[3], devices[2];

static int set_up(void **state)
{
    (void)state;
    struct error err = {0};
    folder_make(folder);
    (void)folder_path(path, folder, "s.db");
    if (database_open_writer(&db, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    rows_exec(db, "PRAGMA synchronous = OFF");
    models[0] = rows_name(db, "small");
    models[1] = rows_name(db, "large");
    models[2] = rows_name(db, "it's; --");
    devices[0] = rows_name(db, "gpu");
    devices[1] = rows_name(db, "cpu");
    rows_run(db, 1, "alpha", START_NS, START_NS + 400 * DAY);
    rows_run(db, 2, "beta", START_NS, START_NS + 400 * DAY);
    if (store_open(&store, path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    store_close(store);
    database_close(db);
    folder_remove(folder);
    return 0;
}

// ---- Requests ----------------------------------------------------------------------

struct request {
    int64_t started_ns, queue_ns, prefill_ns, decode_ns;
    int64_t prompt, generated, concurrent;
    unsigned model, device;
};

static void add_request(int64_t run, const struct request *request)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, request->started_ns);
    record_set_name(&record, INFERENCE_MODEL, models[request->model]);
    record_set_name(&record, INFERENCE_DEVICE, devices[request->device]);
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, request->prompt);
    record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, request->generated);
    record_set_int(&record, INFERENCE_QUEUE_NS, request->queue_ns);
    record_set_int(&record, INFERENCE_PREFILL_NS, request->prefill_ns);
    record_set_int(&record, INFERENCE_TTFT_NS, request->queue_ns + request->prefill_ns);
    record_set_int(&record, INFERENCE_DECODE_NS, request->decode_ns);
    record_set_int(&record, INFERENCE_E2E_NS,
                   request->queue_ns + request->prefill_ns + request->decode_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    if (request->concurrent > 0)
        record_set_int(&record, INFERENCE_CONCURRENT, request->concurrent);
    (void)rows_add(db, run, &record);
}

// 10 ms of queue, 100 prompt tokens in 50 ms, 100 tokens in 990 ms; `wobble` is up to
// 2 % more.
static struct request usual(int64_t started_ns, uint64_t *random)
{
    const int64_t wobble = (int64_t)(test_random(random) % 20);
    return (struct request){.started_ns = started_ns,
                            .queue_ns = 10 * MS,
                            .prefill_ns = 50 * MS,
                            .decode_ns = 990 * MS + wobble * MS,
                            .prompt = 100,
                            .generated = 100,
                            .concurrent = 2};
}

static void add_usual(unsigned count)
{
    uint64_t random = 99;
    rows_exec(db, "BEGIN");
    for (unsigned i = 0; i < count; i++) {
        const struct request request = usual(START_NS + (int64_t)i * 20 * SECOND, &random);
        add_request(1 + i % 2, &request);
    }
    rows_exec(db, "COMMIT");
}

// ---- What goes on meanwhile ----------------------------------------------------------

static void add_load(int64_t run, int64_t started_ns, int64_t duration_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, started_ns);
    for (unsigned i = LOAD_DURATION_NS; i <= LOAD_HOST_MEMORY_AFTER; i++)
        if (i != LOAD_ERROR)
            record_set_int(&record, i, 0);
    record_set_name(&record, LOAD_MODEL, models[1]);
    record_set_name(&record, LOAD_DEVICE, devices[0]);
    record_set_int(&record, LOAD_DURATION_NS, duration_ns);
    (void)rows_add(db, run, &record);
}

static void add_pipeline(int64_t run, int64_t started_ns, int64_t duration_ns, int64_t copy_ns,
                         int64_t starved_ns, unsigned device)
{
    struct record record;
    record_init(&record, RECORD_KIND_PIPELINE, started_ns);
    for (unsigned i = PIPELINE_STATUS; i < PIPELINE_COLUMNS; i++)
        if (!record_kind_info(RECORD_KIND_PIPELINE)->columns[i].maybe)
            record_set_int(&record, i, 0);
    record_set_name(&record, PIPELINE_WORKLOAD, models[2]);
    record_set_name(&record, PIPELINE_DEVICE, devices[device]);
    record_set_int(&record, PIPELINE_DURATION_NS, duration_ns);
    record_set_int(&record, PIPELINE_COPY_BUSY_NS, copy_ns);
    record_set_int(&record, PIPELINE_COPY_STARVED_NS, starved_ns);
    (void)rows_add(db, run, &record);
}

static void add_sample(int64_t run, int64_t started_ns, int64_t reasons, unsigned device)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, devices[device]);
    record_set_int(&record, DEVICE_SAMPLE_THROTTLE, reasons);
    (void)rows_add(db, run, &record);
}

// ---- Asking ----------------------------------------------------------------------------

static struct result *ask(const struct query *query)
{
    struct error err = {0};
    struct result *result = NULL;
    if (store_query(store, query, &result, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return result;
}

static const char *text_of(const struct result *result, size_t row, const char *key, char text[64])
{
    const struct value value = result_cell(result, row, (unsigned)result_find(result, key));
    (void)snprintf(text, 64, "%.*s", value.type == VALUE_TEXT ? (int)value.text.size : 1,
                   value.type == VALUE_TEXT ? value.text.bytes : "-");
    return text;
}

static void expect_sum(const struct result *result, size_t row)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < BLAME_PART_COUNT; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "%s_excess_ns", blame_part_name((enum blame_part)i));
        assert_true(result_find(result, key) >= 0);
        sum += result_integer(result, row, key, 0);
    }
    assert_int_equal(sum, result_integer(result, row, "excess_ns", -1));
    assert_int_equal(sum, result_integer(result, row, "took_ns", -1) -
                              result_integer(result, row, "median_ns", -1));
}

// ---- Planted causes ----------------------------------------------------------------------

// When the slow one starts: a second after a usual one.
#define SLOW_NS (START_NS + 301 * SECOND)

static void plant_load(void)
{
    add_load(1, SLOW_NS - 30 * SECOND, 60 * SECOND);
}

static void plant_load_elsewhere(void)
{
    add_load(2, SLOW_NS - 30 * SECOND, 60 * SECOND);
}

static void plant_load_before(void)
{
    add_load(1, SLOW_NS - 30 * SECOND, 30 * SECOND);
}

static void plant_copy(void)
{
    add_pipeline(1, SLOW_NS - SECOND, 10 * SECOND, 9 * SECOND, 0, 0);
}

static void plant_copy_elsewhere(void)
{
    add_pipeline(1, SLOW_NS - SECOND, 10 * SECOND, 9 * SECOND, 0, 1); // on the other device
    add_pipeline(2, SLOW_NS - SECOND, 10 * SECOND, 9 * SECOND, 0, 0); // on the other host
}

static void plant_starvation(void)
{
    add_pipeline(1, SLOW_NS - SECOND, 10 * SECOND, SECOND, 9 * SECOND, 0);
}

static void plant_throttle(void)
{
    for (int i = -3; i < 6; i++)
        add_sample(1, SLOW_NS + i * SECOND, i >= 0 && i < 4 ? 0x24 : 1, 0);
}

static void plant_idle_clocks(void)
{
    for (int i = -3; i < 6; i++) {
        add_sample(1, SLOW_NS + i * SECOND, 0x3, 0);
        add_sample(1, SLOW_NS + i * SECOND, 0x24, 1); // the other device
        add_sample(2, SLOW_NS + i * SECOND, 0x24, 0); // the other host
    }
    add_sample(1, SLOW_NS - 20 * SECOND, 0x24, 0); // over before
    add_sample(1, SLOW_NS + 20 * SECOND, 0x24, 0);
}

static void test_planted_causes_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct request more; // than usual
        void (*plant)(void);
        const char *blame;
    } cases[] = {
        {"nothing", {.decode_ns = 30 * MS}, NULL, "-"},
        {"a queue", {.queue_ns = SECOND}, NULL, "queue"},
        {"a long prompt", {.prefill_ns = SECOND, .prompt = 2000}, NULL, "prompt"},
        {"a slow prompt", {.prefill_ns = SECOND}, NULL, "prefill"},
        {"many tokens", {.decode_ns = 2 * SECOND, .generated = 200}, NULL, "tokens"},
        {"slow tokens", {.decode_ns = 2 * SECOND}, NULL, "decode"},
        {"fewer, slower tokens", {.decode_ns = SECOND, .generated = -50}, NULL, "decode"},
        {"a load", {.decode_ns = 2 * SECOND}, plant_load, "load"},
        {"waiting for a load", {.queue_ns = 2 * SECOND}, plant_load, "load"},
        {"another host's load", {.decode_ns = 2 * SECOND}, plant_load_elsewhere, "decode"},
        {"a load before", {.decode_ns = 2 * SECOND}, plant_load_before, "decode"},
        {"copies", {.decode_ns = 2 * SECOND}, plant_copy, "copy"},
        {"copies while in the queue", {.queue_ns = 2 * SECOND}, plant_copy, "queue"},
        {"copies elsewhere", {.decode_ns = 2 * SECOND}, plant_copy_elsewhere, "decode"},
        {"starvation", {.decode_ns = 2 * SECOND}, plant_starvation, "starvation"},
        {"throttling", {.decode_ns = 2 * SECOND}, plant_throttle, "throttle"},
        {"a throttled prompt", {.prefill_ns = 2 * SECOND}, plant_throttle, "throttle"},
        {"clocks of others", {.decode_ns = 2 * SECOND}, plant_idle_clocks, "decode"},
        {"a crowd", {.decode_ns = 2 * SECOND, .concurrent = 14}, NULL, "concurrency"},
        {"a smaller crowd", {.decode_ns = 2 * SECOND, .concurrent = -1}, NULL, "decode"},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        if (i > 0) {
            (void)tear_down(state);
            (void)set_up(state);
        }
        add_usual(60);
        uint64_t random = 1;
        struct request slow = usual(SLOW_NS, &random);
        slow.queue_ns += cases[i].more.queue_ns;
        slow.prefill_ns += cases[i].more.prefill_ns;
        slow.decode_ns += cases[i].more.decode_ns;
        slow.prompt += cases[i].more.prompt;
        slow.generated += cases[i].more.generated;
        slow.concurrent += cases[i].more.concurrent;
        add_request(1, &slow);
        if (cases[i].plant)
            cases[i].plant();
        const struct query query = {.kind = QUERY_SLOWEST, .limit = 3};
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), 3);
        assert_int_equal(result_integer(result, 0, "started_ns", 0), SLOW_NS);
        assert_int_equal(result_integer(result, 0, "peers", 0), 61);
        char text[64];
        if (strcmp(text_of(result, 0, "blame", text), cases[i].blame) != 0)
            fail_msg("%s: %s is blamed instead of %s", cases[i].name, text, cases[i].blame);
        for (size_t row = 0; row < 3; row++)
            expect_sum(result, row);
        for (size_t row = 1; row < 3; row++)
            assert_string_equal(text_of(result, row, "blame", text), "-");
        const int64_t reasons = result_integer(result, 0, "throttle_reasons", 0);
        assert_int_equal(reasons, cases[i].plant == plant_throttle ? 0x24 : 0);
        result_free(result);
    }
}

// The slowest by another metric are blamed for what that metric is about.
static void test_other_metrics(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        struct request more;
        const char *blame;
        int64_t took_ns;
    } cases[] = {
        {"ttft_ns", {.queue_ns = SECOND, .decode_ns = 0}, "queue", 1060 * MS},
        {"inference.prefill_ns", {.prefill_ns = SECOND}, "prefill", 1050 * MS},
        {"queue_ns", {.queue_ns = SECOND}, "queue", 1010 * MS},
        {"decode_ns", {.decode_ns = SECOND}, "decode", 1998 * MS},
        {"tokens_per_second", {.decode_ns = SECOND}, "decode", 1998 * MS},
        {"prefill_tokens_per_second", {.prefill_ns = SECOND}, "prefill", 1050 * MS},
        // As long as usual, but for half of the tokens.
        {"tokens_per_second", {.generated = -50}, "decode", 998 * MS},
        {"tpot_ns", {.generated = -50}, "decode", 998 * MS},
        {"prefill_tokens_per_second", {.prompt = -50}, "prefill", 50 * MS},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        (void)tear_down(state);
        (void)set_up(state);
        add_usual(60);
        uint64_t random = 1;
        struct request slow = usual(SLOW_NS, &random);
        slow.queue_ns += cases[i].more.queue_ns;
        slow.prefill_ns += cases[i].more.prefill_ns;
        slow.decode_ns += cases[i].more.decode_ns;
        slow.prompt += cases[i].more.prompt;
        slow.generated += cases[i].more.generated;
        add_request(1, &slow);
        struct query query = {.kind = QUERY_SLOWEST, .limit = 1};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        struct result *result = ask(&query);
        char text[64];
        assert_int_equal(result_integer(result, 0, "started_ns", 0), SLOW_NS);
        assert_string_equal(text_of(result, 0, "blame", text), cases[i].blame);
        assert_in_range(result_integer(result, 0, "took_ns", 0), cases[i].took_ns - 20 * MS,
                        cases[i].took_ns + 20 * MS);
        expect_sum(result, 0);
        result_free(result);
    }
}

static void test_few_peers_blame_nothing(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 3; i++) {
        struct request request = usual(START_NS + i * SECOND, &random);
        request.decode_ns *= i + 1;
        add_request(1, &request);
    }
    const struct query query = {.kind = QUERY_SLOWEST};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    char text[64];
    assert_string_equal(text_of(result, 0, "blame", text), "-");
    assert_non_null(strstr(text_of(result, 0, "note", text), "too few"));
    expect_sum(result, 0);
    result_free(result);
}

// Which of the slowest are gone nobody knows, but that there were some is said.
static void test_what_expired_is_told(void **state)
{
    (void)state;
    add_usual(10);
    rows_exec(db, "INSERT INTO expiry VALUES(6, 1790000050000000000);"
                  "INSERT OR REPLACE INTO ledger(run, kind, stored, expired) VALUES(1, 6, 9, 4)");
    static const struct {
        int64_t since_ns, expired_ns;
    } cases[] = {
        {0, START_NS + 50 * SECOND},
        {START_NS + 49 * SECOND, START_NS + 50 * SECOND},
        {START_NS + 50 * SECOND, -1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct query query = {.kind = QUERY_SLOWEST, .filter.since_ns = cases[i].since_ns};
        struct result *result = ask(&query);
        assert_int_equal(result_integer(result, 0, "expired_ns", -1), cases[i].expired_ns);
        result_free(result);
    }
    // Of the other host's run nothing has.
    struct query query = {.kind = QUERY_SLOWEST};
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "beta");
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "expired_ns", -1), -1);
    result_free(result);
    // A window without any record: slowest and listing.
    query = (struct query){.kind = QUERY_SLOWEST, .filter.since_ns = START_NS + 1};
    query.filter.until_ns = START_NS + 2;
    for (unsigned i = 0; i < 2; i++) {
        struct error err = {0};
        assert_int_equal(store_query(store, &query, &result, &err), STATUS_NO_DATA);
        assert_string_equal(err.text, "records before 2026-09-21 14:14 UTC have expired");
        query.kind = QUERY_RECORDS;
        query.record_kind = RECORD_KIND_INFERENCE;
    }
    // Nothing is gone of a window where nothing was.
    query.filter.since_ns = START_NS + 300 * SECOND;
    query.filter.until_ns = 0;
    struct error err = {0};
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_OK);
    assert_int_equal(result_row_count(result), 0);
    result_free(result);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *metric, *stage;
        uint32_t limit;
        enum status status;
        const char *words;
    } cases[] = {
        {"", "", 10, STATUS_NO_DATA, "no inference.e2e_ns"},
        {"prompt_tokens", "", 10, STATUS_INVALID, "requests are not slow in that"},
        {"load.duration_ns", "", 10, STATUS_INVALID, "requests are not slow in that"},
        {"e2e_n", "", 10, STATUS_INVALID, "did you mean e2e_ns"},
        {"", "read", 10, STATUS_INVALID, "no stage"},
        {"", "", SLOWEST_MAX + 1, STATUS_INVALID, "1000 at most"},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        struct query query = {.kind = QUERY_SLOWEST, .limit = cases[i].limit};
        (void)snprintf(query.metric, sizeof query.metric, "%s", cases[i].metric);
        (void)snprintf(query.filter.by[QUERY_BY_STAGE], QUERY_TEXT_SIZE, "%s", cases[i].stage);
        struct error err = {0};
        struct result *result = NULL;
        assert_int_equal(store_query(store, &query, &result, &err), cases[i].status);
        if (!strstr(err.text, cases[i].words))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].words);
    }
}

// Rows that the wire would never let in do not lead outside of 64 bits.
static void test_absurd_rows(void **state)
{
    (void)state;
    add_usual(20);
    rows_exec(db, "UPDATE inference SET queue_ns = 9223372036854775807, prefill_excess_ns = '-5',"
                  " decode_excess_ns = '9223372036854775807', e2e_ns = 9223372036854775807,"
                  " generated_tokens = 9223372036854775807,"
                  " prompt_tokens = -9223372036854775807 WHERE id % 2 = 0;"
                  " UPDATE inference SET started_ns = 9223372036854775807 WHERE id = 4;"
                  " UPDATE inference SET started_ns = -9223372036854775807 WHERE id = 6");
    add_pipeline(1, START_NS, 0, 5, -1, 0);
    add_load(1, START_NS, INT64_MAX);
    const struct query query = {.kind = QUERY_SLOWEST, .limit = 20};
    struct result *result = ask(&query);
    for (size_t row = 0; row < result_row_count(result); row++)
        expect_sum(result, row);
    result_free(result);
}

// ---- The search ------------------------------------------------------------------------

static const struct query_metric *metric_of(const char *name)
{
    const struct query_metric *metric = NULL;
    struct error err;
    assert_int_equal(query_metric_find(&metric, name, &err), STATUS_OK);
    return metric;
}

// Gives the rollups of a metric, of which the extremes stand there, all that belongs to
// a row, as if there were no other values.
static void complete_rollups(const struct query_metric *metric)
{
    const struct cell_key of = {.metric = rollup_metric_number(metric)};
    sqlite3_stmt *from = NULL, *to = NULL;
    char *sql = sqlite3_mprintf("SELECT grouping, level, started_ns, series, min, max FROM rollup"
                                " WHERE metric = %d",
                                of.metric);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &from, NULL), SQLITE_OK);
    sqlite3_free(sql);
    rows_exec(db, "CREATE TEMP TABLE whole AS SELECT * FROM rollup WHERE 0");
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "INSERT INTO whole(metric, grouping, level, started_ns,"
                                        " series, " CELL_COLUMNS ") VALUES(?1, ?2, ?3, ?4, ?5, ?6,"
                                        " ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                                        -1, &to, NULL),
                     SQLITE_OK);
    while (sqlite3_step(from) == SQLITE_ROW) {
        struct cell_key key = of;
        key.grouping = (enum rollup_grouping)sqlite3_column_int(from, 0);
        key.level = (enum rollup_level)sqlite3_column_int(from, 1);
        key.started_ns = sqlite3_column_int64(from, 2);
        key.series = sqlite3_column_int64(from, 3);
        struct ratio cell = {0};
        assert_int_equal(aggregate_want_quantiles(&cell.values, NULL), STATUS_OK);
        for (int i = 4; i < 6; i++) {
            if (metric->derived)
                ratio_add(&cell, sqlite3_column_double(from, i), 1);
            else
                aggregate_add_int(&cell.values, sqlite3_column_int64(from, i));
        }
        (void)sqlite3_bind_int(to, 1, key.metric);
        (void)sqlite3_bind_int(to, 2, (int)key.grouping);
        (void)sqlite3_bind_int(to, 3, (int)key.level);
        (void)sqlite3_bind_int64(to, 4, key.started_ns);
        (void)sqlite3_bind_int64(to, 5, key.series);
        struct error err;
        assert_int_equal(cell_bind(to, 6, &key, &cell, metric->derived != NULL, &err), STATUS_OK);
        assert_int_equal(sqlite3_step(to), SQLITE_DONE);
        (void)sqlite3_reset(to);
        aggregate_deinit(&cell.values);
    }
    (void)sqlite3_finalize(from);
    (void)sqlite3_finalize(to);
    rows_exec(db, "INSERT OR REPLACE INTO rollup SELECT * FROM whole; DROP TABLE whole");
}

// Makes the extremes that the search reads of all records with ids up to the
// watermark, as the collector keeps them.
static void add_rollups(const struct query_metric *metric, int64_t watermark)
{
    static const char *const folds[ROLLUP_GROUPING_COUNT] = {
        [ROLLUP_FULL] = "i.model, r.host, i.device, 0",
        [ROLLUP_MODEL] = "i.model, 0, 0, 0",
        [ROLLUP_HOST] = "0, r.host, 0, 0",
        [ROLLUP_ALL] = "0, 0, 0, 0",
    };
    const int number = rollup_metric_number(metric);
    for (int grouping = 0; grouping < (int)ROLLUP_GROUPING_COUNT; grouping++) {
        char *sql =
            sqlite3_mprintf("INSERT OR IGNORE INTO series(grouping, model, host, device, operation)"
                            " SELECT DISTINCT %d, %s FROM inference i JOIN run r ON r.run = i.run",
                            grouping, folds[grouping]);
        rows_exec(db, sql);
        sqlite3_free(sql);
        for (int level = 0; level < (int)ROLLUP_LEVEL_COUNT; level++) {
            sql = sqlite3_mprintf(
                "INSERT INTO rollup(metric, grouping, level, started_ns, series, count, sum, carry,"
                " min, max) SELECT %d, %d, %d, bucket(%d, i.started_ns) AS b,"
                " (SELECT s.id FROM series s WHERE s.grouping = %d AND (s.model, s.host, s.device,"
                "  s.operation) = (%s)) AS k, count(\"%w\"), 0, 0, min(\"%w\"), max(\"%w\")"
                " FROM v i JOIN run r ON r.run = i.run"
                " WHERE i.id <= %lld AND \"%w\" IS NOT NULL GROUP BY b, k",
                number, grouping, level, level, grouping, folds[grouping], metric->name,
                metric->name, metric->name, (long long)watermark, metric->name);
            rows_exec(db, sql);
            sqlite3_free(sql);
        }
    }
    complete_rollups(metric);
    char *sql =
        sqlite3_mprintf("INSERT INTO rollup_state VALUES(%d, %lld)", number, (long long)watermark);
    rows_exec(db, sql);
    sqlite3_free(sql);
}

static void bucket_of(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    sqlite3_result_int64(context, rollup_bucket((enum rollup_level)sqlite3_value_int(values[0]),
                                                sqlite3_value_int64(values[1])));
}

// The rows with the derived columns that the tests rank by.
static void add_helpers(void)
{
    assert_int_equal(sqlite3_create_function(db, "bucket", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                             NULL, bucket_of, NULL, NULL),
                     SQLITE_OK);
    rows_exec(db, "CREATE TEMP VIEW v AS SELECT *, CASE WHEN generated_tokens >= 2 AND"
                  " decode_ns > 0 THEN (generated_tokens - 1) * 1e9 / decode_ns END"
                  " AS tokens_per_second FROM inference");
}

// A level of a grouping, and all finer ones, that are not kept for a while.
static void add_gap(enum rollup_grouping grouping, enum rollup_level level, int64_t since_ns,
                    int64_t until_ns)
{
    char *sql = sqlite3_mprintf(
        "DELETE FROM rollup WHERE grouping = %d AND level <= %d AND started_ns >= %lld"
        " AND started_ns < %lld; INSERT INTO rollup_gap(kind, grouping,"
        " level, since_ns, until_ns, why) VALUES(%d, %d, %d, %lld, %lld, 0)"
        " ON CONFLICT DO UPDATE SET until_ns = max(until_ns, excluded.until_ns)",
        (int)grouping, (int)level, (long long)since_ns, (long long)until_ns,
        (int)RECORD_KIND_INFERENCE, (int)grouping, (int)level, (long long)since_ns,
        (long long)until_ns);
    rows_exec(db, sql);
    sqlite3_free(sql);
}

static void add_random_requests(unsigned count, int64_t span_ns, uint64_t *random)
{
    rows_exec(db, "BEGIN");
    for (unsigned i = 0; i < count; i++) {
        const struct request request = {
            .started_ns = START_NS + (int64_t)(test_random(random) % (uint64_t)span_ns),
            .queue_ns = (int64_t)(test_random(random) % 1000),
            .prefill_ns = (int64_t)(test_random(random) % 100000),
            .decode_ns = (int64_t)(test_random(random) >> (24 + test_random(random) % 30)),
            .prompt = 10,
            .generated = (int64_t)(test_random(random) % 200),
            .model = (unsigned)(test_random(random) % 3),
            .device = (unsigned)(test_random(random) % 2),
        };
        add_request(1 + (int64_t)(test_random(random) % 2), &request);
    }
    rows_exec(db, "COMMIT");
}

// Compares with what plain SQL says.
static void expect_slowest(const struct query_metric *metric, const struct query_filter *filter,
                           bool lowest, size_t wanted)
{
    struct slowest slowest;
    struct error err;
    rows_exec(store->db, "BEGIN");
    if (slowest_find(&slowest, store, metric, filter, lowest, wanted, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    rows_exec(store->db, "COMMIT");
    sqlite3_str *text = sqlite3_str_new(db);
    sqlite3_str_appendf(text,
                        "SELECT id, \"%w\" AS value FROM v WHERE value IS NOT NULL"
                        " AND started_ns >= %lld AND started_ns < %lld",
                        metric->name, (long long)filter->since_ns,
                        (long long)(filter->until_ns ? filter->until_ns : INT64_MAX));
    static const char *const of[QUERY_DIMENSION_COUNT] = {
        [QUERY_BY_MODEL] = "model",
        [QUERY_BY_DEVICE] = "device",
        [QUERY_BY_HOST] = "(SELECT host FROM run r WHERE r.run = v.run)",
    };
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && of[i])
            sqlite3_str_appendf(text, " AND %s = (SELECT id FROM name WHERE text = %Q)", of[i],
                                filter->by[i]);
    if (filter->by[QUERY_BY_RUN][0])
        sqlite3_str_appendf(text, " AND run = %d", atoi(filter->by[QUERY_BY_RUN]));
    sqlite3_str_appendf(text, " ORDER BY value %s LIMIT %d", lowest ? "ASC" : "DESC", (int)wanted);
    char *sql = sqlite3_str_finish(text);
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    size_t row = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        assert_true(row < slowest.count);
        const double expected = sqlite3_column_double(stmt, 1);
        if (fabs(slowest.values[row].value - expected) > 1e-12 * fabs(expected))
            fail_msg("%s, place %zu: %.17g instead of %.17g", sql, row, slowest.values[row].value,
                     expected);
        row++;
    }
    assert_int_equal(row, slowest.count);
    (void)sqlite3_finalize(stmt);
    sqlite3_free(sql);
    slowest_deinit(&slowest);
}

static struct query_filter random_filter(int64_t span_ns, uint64_t *random)
{
    static const char *const names[QUERY_DIMENSION_COUNT][3] = {
        [QUERY_BY_MODEL] = {"small", "it's; --", "nobody's"},
        [QUERY_BY_HOST] = {"alpha", "beta", "alpha"},
        [QUERY_BY_DEVICE] = {"gpu", "cpu", "gpu"},
        [QUERY_BY_RUN] = {"00000001", "00000002", "00000001"},
    };
    struct query_filter filter = {0};
    for (unsigned i = 0; i <= QUERY_BY_RUN; i++)
        if (test_random(random) % 4 == 0)
            (void)snprintf(filter.by[i], QUERY_TEXT_SIZE, "%s", names[i][test_random(random) % 3]);
    const int64_t from = (int64_t)(test_random(random) % (uint64_t)span_ns);
    if (test_random(random) % 2)
        filter.since_ns = START_NS + from;
    if (test_random(random) % 2)
        filter.until_ns =
            START_NS + from + 1 +
            (int64_t)(test_random(random) >> (4 + test_random(random) % 40)) % span_ns;
    return filter;
}

static void test_search_finds_what_sql_finds(void **state)
{
    (void)state;
    uint64_t random = 2024;
    const int64_t span_ns = 100 * DAY;
    const struct query_metric *const metrics[] = {metric_of("e2e_ns"),
                                                  metric_of("tokens_per_second")};
    add_random_requests(1500, span_ns, &random);
    add_helpers();
    // Without rollups, then with them up to some record, then with holes in them.
    for (unsigned stage = 0; stage < 3; stage++) {
        rows_exec(db, "BEGIN");
        for (unsigned i = 0; i < COUNT_OF(metrics) && stage == 1; i++)
            add_rollups(metrics[i], 1450);
        for (unsigned i = 0; i < 60 && stage == 2; i++) {
            const enum rollup_level level =
                (enum rollup_level)(test_random(&random) % ROLLUP_LEVEL_COUNT);
            int64_t since = rollup_bucket(
                level, START_NS + (int64_t)(test_random(&random) % (uint64_t)span_ns));
            int64_t until = since;
            for (unsigned k = 0; k <= test_random(&random) % 3; k++)
                until = rollup_next(level, until);
            add_gap((enum rollup_grouping)(test_random(&random) % ROLLUP_GROUPING_COUNT), level,
                    since, until);
        }
        rows_exec(db, "COMMIT");
        for (unsigned round = 0; round < 80; round++) {
            const struct query_filter filter = random_filter(span_ns, &random);
            expect_slowest(metrics[round % 2], &filter, round % 3 == 0,
                           1 + test_random(&random) % 40);
        }
    }
}

// Ten of thousands take a few hundred reads, not all.
static void test_search_reads_little(void **state)
{
    (void)state;
    uint64_t random = 7;
    add_random_requests(6000, 3 * DAY, &random);
    add_helpers();
    const struct query_metric *metric = metric_of("e2e_ns");
    rows_exec(db, "BEGIN");
    add_rollups(metric, 6000);
    rows_exec(db, "COMMIT");
    static const struct query_filter filters[] = {
        {{""}, 0, 0},
        {.by = {[QUERY_BY_MODEL] = "small"}},
        {.by = {[QUERY_BY_HOST] = "beta", [QUERY_BY_DEVICE] = "cpu", [QUERY_BY_MODEL] = "large"}},
        {.since_ns = START_NS + DAY / 2, .until_ns = START_NS + 2 * DAY + 1},
    };
    for (unsigned i = 0; i < COUNT_OF(filters); i++) {
        struct slowest slowest;
        struct error err;
        assert_int_equal(slowest_find(&slowest, store, metric, &filters[i], false, 10, &err),
                         STATUS_OK);
        assert_int_equal(slowest.count, 10);
        // Some three records a minute; days, hours and minutes of ten of them.
        if (slowest.rows_read >= 10 * 3 * 4 || slowest.rollups_read >= 10 * (31 + 24 + 60))
            fail_msg("filter %u: %llu rows, %llu rollups", i, (unsigned long long)slowest.rows_read,
                     (unsigned long long)slowest.rollups_read);
        slowest_deinit(&slowest);
    }
}

// An extreme that is no longer what was written leads nobody astray.
static void test_damaged_rollups_are_reported(void **state)
{
    (void)state;
    uint64_t random = 8;
    add_random_requests(200, DAY, &random);
    add_helpers();
    const struct query_metric *metric = metric_of("e2e_ns");
    rows_exec(db, "BEGIN");
    add_rollups(metric, 200);
    rows_exec(db, "UPDATE rollup SET max = max - 1 WHERE level = 3 AND grouping = 3; COMMIT");
    const struct query query = {.kind = QUERY_SLOWEST};
    struct error err = {0};
    struct result *result = NULL;
    assert_int_equal(store_query(store, &query, &result, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "rollup"));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_planted_causes_are_named),
        TEST(test_other_metrics),
        TEST(test_few_peers_blame_nothing),
        TEST(test_what_expired_is_told),
        TEST(test_refusals),
        TEST(test_absurd_rows),
        TEST(test_search_finds_what_sql_finds),
        TEST(test_search_reads_little),
        TEST(test_damaged_rollups_are_reported),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
