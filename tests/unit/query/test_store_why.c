// WHY: planted causes, alone and two at once, come first, and where nothing changed it says so.
// INFERSTAT_TEST_VOLUME=4 takes 120 stores of each.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/query/why.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define AS_OF  (START_NS / HOUR * HOUR + HOUR / 2)
#define WINDOW (AS_OF - WHY_WINDOW_NS)

enum { HOSTS = 3, RUNS_OF_A_HOST = 32, DAYS = 3, IN_PROGRESS_MAX = 4096 };

static uint64_t seed;
static sqlite3_stmt *insert;
static int64_t last_id;

// ---- A fleet ----------------------------------------------------------------------------------

// What is planted in the window, on the hosts of `on`.
struct planted {
    bool is[WHY_CAUSE_COUNT];
    bool on[HOSTS];
    int64_t since_ns;
};

static double uniform(void)
{
    return (double)(test_random(&seed) >> 11) / 0x1p53;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * 3.14159265358979 * uniform());
}

static double lognormal(double median, double spread)
{
    return median * exp(spread * normal());
}

TEST_FIXTURE(set_up)
{
    (void)store_make(state);
    seed = 1;
    assert_int_equal(
        sqlite3_prepare_v2(
            db,
            "INSERT INTO inference(id, run, stream, number, started_ns, received_ns, model, device,"
            " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
            " prefill_ns, ttft_ns, decode_ns, e2e_ns, host_memory_bytes, concurrent_requests)"
            " VALUES(?1, ?2, 0, ?1, ?3, ?3, (SELECT id FROM name WHERE text = 'llama'),"
            " (SELECT id FROM name WHERE text = 'cuda:0'), ?1, 0, ?4, 0, ?5, ?6, ?7, ?6 + ?7, ?8,"
            " ?6 + ?7 + ?8, 1, ?9)",
            -1, &insert, NULL),
        SQLITE_OK);
    return store_read();
}

TEST_FIXTURE(tear_down)
{
    (void)sqlite3_finalize(insert);
    return store_tear_down(state);
}

static void add_request(int64_t run, int64_t started_ns, double prompt, double tokens,
                        double queue_ns, double prefill_ns, double decode_ns, int64_t concurrent)
{
    const int64_t values[] = {++last_id,           run,
                              started_ns,          (int64_t)prompt,
                              (int64_t)tokens,     (int64_t)queue_ns,
                              (int64_t)prefill_ns, (int64_t)decode_ns,
                              concurrent};
    for (int i = 0; i < (int)COUNT_OF(values); i++)
        (void)sqlite3_bind_int64(insert, i + 1, values[i]);
    assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
    (void)sqlite3_reset(insert);
}

// An engine that computes the requests in progress together, each a little slower for the others.
// `slow` is a factor of its time per token.
struct engine {
    int64_t run;
    int64_t ends_ns[IN_PROGRESS_MAX]; // of requests in progress
    size_t count;
};

static void answer(struct engine *engine, int64_t at_ns, double slow, double longer_prompt,
                   double longer_answer)
{
    size_t left = 0;
    for (size_t i = 0; i < engine->count; i++)
        if (engine->ends_ns[i] > at_ns)
            engine->ends_ns[left++] = engine->ends_ns[i];
    engine->count = left;
    const double crowd = 1 + 0.15 * (double)left;
    const double prompt = 1 + round(lognormal(800, 0.4) * longer_prompt);
    const double tokens = 2 + round(lognormal(120, 0.4) * longer_answer);
    const double queue_ns = lognormal(20e6, 0.5) * crowd * slow;
    const double prefill_ns = prompt * 1e6 * crowd * slow * lognormal(1, 0.05);
    const double decode_ns = tokens * 12e6 * crowd * slow * lognormal(1, 0.05);
    add_request(engine->run, at_ns, prompt, tokens, queue_ns, prefill_ns, decode_ns,
                (int64_t)left + 1);
    engine->ends_ns[engine->count++] = at_ns + (int64_t)(queue_ns + prefill_ns + decode_ns);
    assert_true(engine->count < IN_PROGRESS_MAX);
}

// What makes an engine slow, and is no more work.
static const struct {
    enum why_cause_kind kind;
    double factor;
} slowers[] = {
    {WHY_THROTTLING, 1.8},
    {WHY_FOREIGN_PROCESS, 1.7},
    {WHY_MEMORY_PRESSURE, 1.8},
    {WHY_PCIE_DOWNGRADE, 1.6},
    {WHY_LOAD, 1.7},
    {WHY_COPY, 1.7},
    {WHY_SETTING, 1.6},
    {WHY_HOST, 1.7},
    {WHY_UNEXPLAINED, 1.7},
};

static void run_engine(int host, int64_t run, int64_t since_ns, int64_t until_ns,
                       const struct planted *planted)
{
    struct engine engine = {.run = run};
    for (double at = (double)since_ns; at < (double)until_ns;) {
        const bool is_on = planted && planted->on[host] && at >= (double)planted->since_ns;
        double rate = 0.5, slow = 1;
        for (size_t i = 0; i < COUNT_OF(slowers) && is_on; i++)
            slow *= planted->is[slowers[i].kind] ? slowers[i].factor : 1;
        if (is_on && planted->is[WHY_CONCURRENCY])
            rate *= 2.6;
        answer(&engine, (int64_t)at, slow, is_on && planted->is[WHY_PROMPT] ? 3 : 1,
               is_on && planted->is[WHY_TOKENS] ? 2.2 : 1);
        at += -log(1 - uniform()) / rate * 1e9;
    }
}

static int64_t add_run(int host, int which, int64_t since_ns, int64_t until_ns)
{
    const int64_t run = host * RUNS_OF_A_HOST + which + 1;
    rows_run(db, run, format_text("gpu%02d", host), since_ns, until_ns);
    execf("UPDATE run SET owner = 1, driver = '550', \"end\" = %d WHERE run = %lld",
          until_ns == AS_OF ? 0 : 1, (long long)run);
    execf("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
          " VALUES(%lld, 0, 1, %lld, %lld, (SELECT id FROM name WHERE text = 'llama'), 'gguf')",
          (long long)run, (long long)since_ns, (long long)since_ns);
    return run;
}

// ---- Planting ---------------------------------------------------------------------------------

static void add_event(int64_t run, const char *name, bool of_device, int64_t since_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, since_ns);
    record_set_name(&record, EVENT_EVENT, rows_name(db, name));
    if (of_device)
        record_set_name(&record, EVENT_DEVICE, rows_name(db, "cuda:0"));
    (void)rows_add(db, run, &record);
}

static void plant_on(const struct planted *planted, int host, int64_t run)
{
    for (unsigned kind = WHY_LASTING; kind < WHY_LOAD; kind++)
        if (planted->is[kind])
            add_event(run, why_cause_name((enum why_cause_kind)kind), kind != WHY_MEMORY_PRESSURE,
                      planted->since_ns);
    if (planted->is[WHY_LOAD])
        execf(
            "INSERT INTO load(run, stream, number, started_ns, received_ns, model, device,"
            " duration_ns, status, model_bytes, host_memory_before_bytes,"
            " host_memory_after_bytes) SELECT %lld, 0, 1, %lld, %lld, m.id, d.id, %lld, 0, 1, 1, 1"
            " FROM name m, name d WHERE m.text = 'other' AND d.text = 'cuda:0'",
            (long long)run, (long long)planted->since_ns, (long long)planted->since_ns,
            (long long)(AS_OF - planted->since_ns));
    if (planted->is[WHY_COPY]) {
        struct record record;
        const int64_t lasted_ns = AS_OF - planted->since_ns;
        record_init(&record, RECORD_KIND_PIPELINE, planted->since_ns);
        record_set_name(&record, PIPELINE_WORKLOAD, rows_name(db, "encode"));
        record_set_name(&record, PIPELINE_DEVICE, rows_name(db, "cuda:0"));
        record_set_int(&record, PIPELINE_DURATION_NS, lasted_ns);
        record_set_int(&record, PIPELINE_COPY_BUSY_NS, lasted_ns / 10 * 9);
        for (unsigned i = 0; i < record_kind_info(RECORD_KIND_PIPELINE)->column_count; i++)
            if (!record_has(&record, i) &&
                record_kind_info(RECORD_KIND_PIPELINE)->columns[i].type != COLUMN_NAME)
                record_set_int(&record, i, 0);
        (void)rows_add(db, run, &record);
    }
    if (planted->is[WHY_SETTING])
        execf("UPDATE run SET driver = '560' WHERE run = %lld", (long long)run);
    if (planted->is[WHY_DOWN] || planted->is[WHY_SILENT])
        execf("UPDATE run SET \"end\" = 3, heard_ns = %lld, ended_ns = nullif(%d, 0) * %lld"
              " WHERE run = %lld",
              (long long)(AS_OF - MINUTE), planted->is[WHY_DOWN], (long long)(AS_OF - MINUTE),
              (long long)run);
    (void)host;
}

// Half of the stores have former days, in the same hour; a day's noise differs from the next one's.
static void make_fleet(const struct planted *planted)
{
    exec("DELETE FROM inference; DELETE FROM run; DELETE FROM event; DELETE FROM load;"
         "DELETE FROM pipeline; DELETE FROM model; BEGIN");
    (void)rows_name(db, "llama");
    (void)rows_name(db, "other");
    (void)rows_name(db, "cuda:0");
    const bool has_days = uniform() < 0.5;
    for (int host = 0; host < HOSTS; host++) {
        for (int day = DAYS; has_days && day > 0; day--) {
            const int64_t since_ns = AS_OF - day * DAY - HOUR / 2;
            run_engine(host, add_run(host, day, since_ns, since_ns + HOUR), since_ns,
                       since_ns + HOUR, NULL);
        }
        int64_t run = add_run(host, 0, WINDOW - HOUR, AS_OF);
        run_engine(host, run, WINDOW - HOUR, WINDOW, NULL);
        if (planted->is[WHY_SETTING]) {
            execf("UPDATE run SET heard_ns = %lld, \"end\" = 1 WHERE run = %lld", (long long)WINDOW,
                  (long long)run);
            run = add_run(host, RUNS_OF_A_HOST - 1, WINDOW, AS_OF);
        }
        run_engine(host, run, WINDOW, AS_OF, planted);
        if (planted->on[host])
            plant_on(planted, host, run);
    }
    exec("COMMIT");
}

// ---- Judging ----------------------------------------------------------------------------------

static bool is_cause(const struct result *result, size_t row, unsigned kind)
{
    return row < result_row_count(result) &&
           result_is(result, row, "cause", why_cause_name((enum why_cause_kind)kind));
}

static void show(const struct result *result, const char *title)
{
    print_message("%s\n", title);
    for (size_t i = 0; i < result_row_count(result); i++)
        print_message("    %s %s %.2f %s\n", result_get(result, i, "cause").text.bytes,
                      result_is(result, i, "host", "gpu00") ? "gpu00" : "-",
                      result_number(result, i, "share_ratio", NAN),
                      result_get(result, i, "text").text.bytes);
}

// Plants the causes on random hosts and tells whether they come first, in any order.
static bool are_found(const unsigned *kinds, unsigned count)
{
    struct planted planted = {.since_ns = WINDOW + (int64_t)(uniform() * 2 * (double)MINUTE)};
    bool is_alone = uniform() < 0.5;
    char title[64] = "";
    for (unsigned i = 0; i < count; i++) {
        planted.is[kinds[i]] = true;
        is_alone = is_alone || kinds[i] == WHY_HOST || kinds[i] <= WHY_SILENT;
        is_alone = is_alone && kinds[i] != WHY_UNEXPLAINED;
        strcat(strcat(title, why_cause_name((enum why_cause_kind)kinds[i])), " ");
    }
    const uint64_t only = test_random(&seed) % HOSTS;
    for (unsigned i = 0; i < HOSTS; i++)
        planted.on[i] = !is_alone || i == only;
    make_fleet(&planted);
    const struct query query = {.kind = QUERY_WHY};
    struct result *result = ask(&query);
    bool found = true;
    for (unsigned i = 0; i < count; i++) {
        bool is_first = false;
        for (unsigned k = 0; k < count; k++)
            is_first = is_first || is_cause(result, k, kinds[i]);
        found = found && is_first;
    }
    if (!found)
        show(result, title);
    result_free(result);
    return found;
}

static const unsigned plants[] = {
    WHY_PROMPT,
    WHY_TOKENS,
    WHY_CONCURRENCY,
    WHY_THROTTLING,
    WHY_FOREIGN_PROCESS,
    WHY_MEMORY_PRESSURE,
    WHY_PCIE_DOWNGRADE,
    WHY_LOAD,
    WHY_COPY,
    WHY_SETTING,
    WHY_HOST,
    WHY_DOWN,
    WHY_SILENT,
    WHY_UNEXPLAINED,
};

TEST_CASE(test_planted_causes_come_first)
{
    unsigned found = 0;
    const unsigned rounds = test_volume(30);
    for (unsigned i = 0; i < rounds; i++) {
        unsigned pair[2] = {plants[i / 2 % COUNT_OF(plants)], 0};
        // `host` and `unexplained` get only what is left: beside others only longer answers leave
        // it.
        pair[1] = pair[0] == WHY_HOST || pair[0] == WHY_UNEXPLAINED
                      ? WHY_TOKENS
                      : plants[test_random(&seed) % (COUNT_OF(plants) - 4)];
        const bool is_pair = i % 2 == 1 && pair[0] != pair[1];
        found += are_found(pair, is_pair ? 2 : 1);
    }
    print_message("%u of %u found\n", found, rounds);
    assert_true(found * 100 >= rounds * 95);
}

TEST_CASE(test_no_change_is_as_usual)
{
    unsigned usual = 0;
    const unsigned rounds = test_volume(10);
    const struct query query = {.kind = QUERY_WHY};
    for (unsigned i = 0; i < rounds; i++) {
        make_fleet(&(struct planted){.since_ns = 0});
        struct result *result = ask(&query);
        if (is_cause(result, 0, WHY_AS_USUAL) && result_row_count(result) == 1)
            usual++;
        else
            show(result, "nothing planted");
        result_free(result);
    }
    assert_true(usual * 100 >= rounds * 99);
}

TEST_CASE(test_replaced_process_and_losses)
{
    const struct query query = {.kind = QUERY_WHY};
    make_fleet(&(struct planted){.since_ns = 0});
    const int64_t run = add_run(0, RUNS_OF_A_HOST - 2, WINDOW - HOUR, AS_OF - 3 * MINUTE);
    (void)add_run(0, RUNS_OF_A_HOST - 1, AS_OF - 2 * MINUTE, AS_OF);
    execf("UPDATE run SET \"end\" = 2, ended_ns = heard_ns WHERE run = %lld", (long long)run);
    execf(
        "INSERT INTO stream(run, stream, next, produced, unnumbered) VALUES(%lld, 0, 101, 100, 0);"
        "INSERT INTO range(run, stream, first, last, state, reason) VALUES(%lld, 0, 1, 50, 0, "
        "NULL),"
        " (%lld, 0, 51, 100, 1, 1); INSERT INTO ledger(run, kind, stored) VALUES(%lld, 6, 50)",
        (long long)run, (long long)run, (long long)run, (long long)run);
    struct result *result = ask(&query);
    assert_true(is_cause(result, 0, WHY_KILLED));
    assert_true(is_cause(result, result_row_count(result) - 1, WHY_AS_USUAL));
    assert_true(is_cause(result, 1, WHY_LOSSES));
    result_free(result);
}

TEST_CASE(test_refusals_and_absurd_rows)
{
    struct query query = {.kind = QUERY_WHY};
    expect_error(&query, STATUS_NO_DATA, "no requests");
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "nobody");
    expect_error(&query, STATUS_NO_DATA, "no host nobody");
    query = (struct query){.kind = QUERY_WHY};
    (void)snprintf(query.filter.by[QUERY_BY_DEVICE], QUERY_TEXT_SIZE, "cuda:0");
    expect_error(&query, STATUS_INVALID, "filters are model and host, not device");
    query = (struct query){.kind = QUERY_WHY};
    make_fleet(&(struct planted){.is[WHY_THROTTLING] = true, .on[0] = true, .since_ns = WINDOW});
    exec("UPDATE inference SET e2e_ns = 9223372036854775807, ttft_ns = -9223372036854775807"
         " WHERE id % 3 = 0; UPDATE inference SET generated_tokens = 9223372036854775807"
         " WHERE id % 3 = 1; UPDATE inference SET queue_ns = -9223372036854775807,"
         " decode_ns = 9223372036854775807, concurrent_requests = -1 WHERE id % 5 = 2;"
         "UPDATE event SET duration_ns = 9223372036854775807");
    struct result *result = ask(&query);
    assert_true(result_row_count(result) >= 1);
    result_free(result);
}

TEST_MAIN_EACH(set_up, tear_down, test_planted_causes_come_first, test_no_change_is_as_usual,
               test_replaced_process_and_losses, test_refusals_and_absurd_rows)
