// The state of each model on each host, from the runs and the records of a store.
#include <math.h>

#include <sqlite3.h>

#include "common/store/read/session.h"
#include "common/store/store.h"
#include "common/sys/clock.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)
#define AS_OF  (START_NS / HOUR * HOUR + HOUR / 2) // the last message, half past an hour

enum { OPEN, CLOSED, KILLED, SILENT }; // as enum record_run_end

static uint32_t model;
static int64_t last_run, sampled_ns;

TEST_FIXTURE(set_up)
{
    store_make(state);
    model = rows_name(db, "m");
    last_run = 0;
    sampled_ns = AS_OF;
    return store_read();
}

// Times are seconds before AS_OF; `ended` 0: unknown.
struct process {
    int end;
    double began, heard, ended;
    bool has_model;
    const char *doing;
};

static int64_t before(double seconds)
{
    return AS_OF - (int64_t)(seconds * 1e9);
}

static int64_t add_process(const char *host, const struct process *process)
{
    const int64_t run = ++last_run;
    rows_run(db, run, host, before(process->began), before(process->heard));
    char *sql = sqlite3_mprintf(
        "UPDATE run SET \"end\" = %d, ended_ns = nullif(%lld, %lld), last_activity = %Q, owner = 1"
        " WHERE run = %lld",
        process->end, (long long)before(process->ended), (long long)AS_OF, process->doing,
        (long long)run);
    exec(sql);
    sqlite3_free(sql);
    if (process->has_model)
        execf("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
              " VALUES(%lld, 0, 1, %lld, %lld, %u, 'gguf')",
              (long long)run, (long long)before(process->began), (long long)before(process->began),
              model);
    return run;
}

static struct record new_request(int64_t at_ns, unsigned number, int64_t e2e_ns, bool fails)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, at_ns);
    record_set_name(&record, INFERENCE_MODEL, model);
    record_set_name(&record, INFERENCE_DEVICE, model);
    record_set_int(&record, INFERENCE_REQUEST, number);
    record_set_int(&record, INFERENCE_FINISH, fails ? RECORD_FINISH_ERROR : RECORD_FINISH_LENGTH);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_E2E_NS, e2e_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    return record;
}

// Requests of 100 tokens, one each 100 ms.
static void add_requests(int64_t run, int64_t since_ns, unsigned count, unsigned failed,
                         int64_t decode_ns)
{
    for (unsigned i = 0; i < count; i++) {
        struct record record =
            new_request(since_ns + i * (SECOND / 10), i, SECOND / 100 + decode_ns, i < failed);
        record_set_int(&record, INFERENCE_PROMPT_TOKENS, 10);
        record_set_int(&record, INFERENCE_CACHED_PROMPT_TOKENS, 0);
        record_set_int(&record, INFERENCE_GENERATED_TOKENS, 101);
        record_set_int(&record, INFERENCE_PREFILL_NS, SECOND / 100);
        record_set_int(&record, INFERENCE_TTFT_NS, SECOND / 100);
        record_set_int(&record, INFERENCE_DECODE_NS, decode_ns);
        if (i < failed)
            (void)record_set_text(&record, INFERENCE_ERROR, format_text("no room %u", i), 9);
        (void)rows_add(db, run, &record);
    }
}

// Of a model, or with `of` 0 of the process.
static void add_sample_of(int64_t run, uint32_t of, int64_t running, int64_t waiting)
{
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE, sampled_ns);
    record_set_real(&record, PROCESS_SAMPLE_CPU, 1);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY, 1);
    record_set_int(&record, PROCESS_SAMPLE_RUNNING, running);
    record_set_int(&record, PROCESS_SAMPLE_WAITING, waiting);
    if (of)
        record_set_name(&record, PROCESS_SAMPLE_MODEL, of);
    (void)rows_add(db, run, &record);
}

static void add_sample(int64_t run, int64_t running, int64_t waiting)
{
    add_sample_of(run, 0, running, waiting);
}

static size_t row_of(const struct result *result, const char *host)
{
    size_t row = 0;
    while (row < result_row_count(result) && !result_is(result, row, "host", host))
        row++;
    return row;
}

// "": it has none.
static bool is_reason(const struct result *result, size_t row, const char *reason)
{
    return *reason ? result_is(result, row, "reason", reason)
                   : result_get(result, row, "reason").type == VALUE_NULL;
}

#define NO_REQUEST "no request in the last 5m 00s"

static const struct {
    struct process processes[2];
    const char *state; // NULL: not listed
    double since;
    const char *reason;
} cases[] = {
    {{{OPEN, 900, 0, 0, true, NULL}}, "ok", 900, ""},
    {{{OPEN, 900, 0, 0, true, NULL}}, "errors", 60, "3 of 5 requests failed: no room 2"},
    {{{OPEN, 900, 0, 0, false, "load read_header"}}, "loading", 0, "load read_header"},
    {{{OPEN, 900, 0, 0, true, "decode m request 3"}}, "ok", 900, "in progress: decode m request 3"},
    {{{OPEN, 900, 0, 0, true, "decode mm request 3"}}, "idle", 900, NO_REQUEST},
    {{{OPEN, 90000, 0, 0, true, "idle"}}, "idle", 0, NO_REQUEST}, // 25 h: perhaps it had some
    {{{OPEN, 900, 0, 0, true, "decode"}}, "idle", 900, NO_REQUEST},
    {{{CLOSED, 900, 100, 100, true, NULL}}, "ended", 100, "its process closed"},
    {{{CLOSED, 900, 100, 100, false, NULL}}, NULL, 0, NULL},
    {{{KILLED, 900, 101, 100, true, "idle"}},
     "down",
     100,
     "its process ended without closing; last activity: idle"},
    {{{SILENT, 900, 101, 100, true, NULL}}, "down", 100, "its process ended without closing"},
    {{{SILENT, 900, 100, 0, true, NULL}},
     "silent",
     100,
     "nothing heard of it: stopped, or no power or network"},
    {{{KILLED, 100000, 90001, 90000, true, NULL}}, NULL, 0, NULL}, // 25 h ago
    // Replaced: by a process that began after the end was found, or before that, or that took the
    // place of one without a model.
    {{{KILLED, 900, 101, 100, true, NULL}, {OPEN, 90, 0, 0, true, NULL}}, "idle", 90, NO_REQUEST},
    {{{SILENT, 900, 100.5, 100.2, true, NULL}, {CLOSED, 100.3, 50, 50, true, NULL}},
     "ended",
     50,
     "its process closed"},
    {{{SILENT, 900, 100, 0, true, NULL}, {OPEN, 90, 0, 0, true, NULL}}, "idle", 90, NO_REQUEST},
    {{{KILLED, 900, 101, 100, false, NULL}, {OPEN, 90, 0, 0, true, NULL}}, "idle", 90, NO_REQUEST},
    // The other one of two processes does not replace it.
    {{{SILENT, 900, 101, 100, true, NULL}, {OPEN, 800, 0, 0, true, NULL}},
     "down",
     100,
     "1 of 2 processes ended without closing"},
};

TEST_CASE(test_processes)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *host = format_text("host-%zu", i);
        (void)add_process(host, &cases[i].processes[0]);
        if (cases[i].processes[1].began > 0)
            (void)add_process(host, &cases[i].processes[1]);
    }
    static const unsigned failed[] = {1, 3, 0};
    for (int i = 0; i < 3; i++) // of the first two processes, and of one that is down
        add_requests(i < 2 ? i + 1 : 11, before(60), 5, failed[i], SECOND);
    struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    size_t listed = 0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const size_t row = row_of(result, format_text("host-%zu", i));
        if (!cases[i].state && row < result_row_count(result))
            fail_msg("case %zu is listed", i);
        listed += cases[i].state != NULL;
        if (cases[i].state &&
            (!result_is(result, row, "state", cases[i].state) ||
             !is_reason(result, row, cases[i].reason) ||
             result_integer(result, row, "since_ns", AS_OF) != before(cases[i].since)))
            fail_msg("case %zu: %s since %lld: %s", i, result_get(result, row, "state").text.bytes,
                     (long long)(AS_OF - result_integer(result, row, "since_ns", AS_OF)),
                     result_get(result, row, "reason").text.bytes);
    }
    assert_int_equal(result_row_count(result), listed);
    assert_true(result_is(result, 0, "state", "down")); // what needs attention comes first
    assert_int_equal(result_integer(result, 0, "as_of_ns", 0), AS_OF);
    assert_int_equal(result_get(result, 0, "requests").type, VALUE_NULL); // no old average
    const size_t ok = row_of(result, "host-0");
    assert_int_equal(result_integer(result, ok, "requests", 0), 5);
    assert_true(result_number(result, ok, "error_ratio", 0) == 0.2);
    assert_true(result_number(result, ok, "request_rate", 0) == 5 / 300.);
    assert_true(result_number(result, ok, "output_token_rate", 0) == 505 / 300.);
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_HOST], QUERY_TEXT_SIZE, "host-2"); // without a model
    result = ask(&query);
    assert_int_equal(result_row_count(result), 1);
    result_free(result);
    (void)snprintf(query.filter.by[QUERY_BY_MODEL], QUERY_TEXT_SIZE, "m");
    expect_error(&query, STATUS_NO_DATA, "no process reported");
}

// Twelve requests at half of the speed that the same hour of `days` former days had.
static void add_host(const char *host, unsigned days, int64_t decode_ns)
{
    const struct process process = {OPEN, 1000, 0, 0, true, NULL};
    const int64_t run = add_process(host, &process);
    for (unsigned day = 1; day <= days; day++)
        add_requests(run, AS_OF - day * 24 * HOUR - 1500 * SECOND, 12, 0, SECOND);
    add_requests(run, AS_OF - 25 * HOUR, 12, 0, 4 * SECOND); // another hour
    add_requests(run, before(200), 12, 0, decode_ns);
}

TEST_CASE(test_usual)
{
    add_host("slow", 4, 2 * SECOND);
    add_host("unknown", 2, 2 * SECOND);
    add_host("usual", 14, SECOND);
    add_host("early", 15, SECOND * 14 / 10);
    struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    const size_t slow = row_of(result, "slow");
    assert_true(result_is(result, slow, "state", "slow"));
    assert_int_equal(result_integer(result, slow, "since_ns", 0), before(300));
    assert_non_null(strstr(result_get(result, slow, "reason").text.bytes, "(4 days)"));
    assert_true(is_reason(result, row_of(result, "unknown"), ""));
    assert_true(result_is(result, row_of(result, "usual"), "reason", "as usual"));
    assert_true(result_is(result, row_of(result, "early"), "reason", "as usual"));
    result_free(result);
}

static void expect_state(const char *state)
{
    const struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    assert_true(result_is(result, 0, "state", state));
    result_free(result);
}

// Former days are read once; again after what an administrator does.
TEST_CASE(test_usual_is_kept)
{
    add_host("slow", 4, 2 * SECOND);
    expect_state("slow");
    const struct query past = {.kind = QUERY_NOW,
                               .filter.until_ns = AS_OF - 25 * HOUR + 9 * SECOND};
    expect_error(&past, STATUS_NO_DATA, "no process reported"); // whose usual is another
    execf("DELETE FROM inference WHERE started_ns < %lld", (long long)before(HOUR / 1e9));
    expect_state("slow");
    exec("INSERT INTO admin(at_ns, actor, action, detail, outcome, rows)"
         " VALUES(1, '', '', '', '', 0)");
    expect_state("ok");
}

// Requests of 8 items, one each 10 ms.
static void add_items(int64_t run, int64_t since_ns, unsigned count, int64_t e2e_ns)
{
    for (unsigned i = 0; i < count; i++) {
        struct record record = new_request(since_ns + i * (SECOND / 100), i, e2e_ns, false);
        record_set_int(&record, INFERENCE_ITEMS, 8);
        (void)rows_add(db, run, &record);
    }
}

// A model that makes no tokens has figures of its items, and is slow by the time of its requests.
TEST_CASE(test_items)
{
    static const char *const of_tokens[] = {"output_token_rate", "prompt_token_rate", "ttft_p50_ns",
                                            "ttft_p95_ns", "tokens_per_second_p50"};
    static const char *const of_items[] = {"item_rate", "e2e_p50_ns", "e2e_p95_ns"};
    const struct process process = {OPEN, 1000, 0, 0, true, NULL};
    const int64_t slow = add_process("slow", &process), usual = add_process("usual", &process);
    for (unsigned day = 1; day <= 3; day++) {
        add_items(slow, AS_OF - day * 24 * HOUR - 1500 * SECOND, 12, 1000000);
        add_items(usual, AS_OF - day * 24 * HOUR - 1500 * SECOND, 12, 1000000);
    }
    add_items(slow, before(200), 19, 1600000);
    add_items(slow, before(100), 1, 5000000);
    add_items(usual, before(200), 12, 1400000);
    add_requests(add_process("tokens", &process), before(100), 12, 0, SECOND);
    struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    size_t row = row_of(result, "slow");
    assert_true(result_is(result, row, "state", "slow"));
    assert_true(result_is(result, row, "reason",
                          "time of a request 1.6ms, usually 1.0ms at this hour (3 days)"));
    assert_true(result_number(result, row, "item_rate", 0) == 160 / 300.);
    assert_true(fabs(result_number(result, row, "e2e_p50_ns", 0) / 1600000 - 1) < 0.01);
    assert_true(result_number(result, row, "e2e_p95_ns", 0) < 5000000);
    assert_true(result_number(result, row, "e2e_p95_ns", 0) >= 1580000);
    assert_true(result_is(result, row_of(result, "usual"), "reason", "as usual"));
    for (size_t i = 0; i < COUNT_OF(of_tokens); i++)
        assert_int_equal(result_get(result, row, of_tokens[i]).type, VALUE_NULL);
    row = row_of(result, "tokens");
    for (size_t i = 0; i < COUNT_OF(of_items); i++)
        assert_int_equal(result_get(result, row, of_items[i]).type, VALUE_NULL);
    assert_int_equal(result_get(result, row, "ttft_p50_ns").type, VALUE_REAL);
    result_free(result);
}

// The window; a store that a collector writes is judged by the clock.
TEST_CASE(test_window)
{
    const struct process process = {OPEN, 1000, 0, 0, true, NULL};
    const int64_t run = add_process("a", &process);
    add_requests(run, before(2000), 7, 0, SECOND);
    add_sample(run, 9, 9);
    add_sample(run, 3, 1);
    add_sample(add_process("a", &process), 4, 0);
    struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    assert_int_equal(result_integer(result, 0, "running_requests", 0), 7);
    assert_int_equal(result_integer(result, 0, "waiting_requests", 0), 1);
    assert_true(result_is(result, 0, "state", "idle"));
    assert_int_equal(result_integer(result, 0, "since_ns", 0), before(2000 - 1.61));
    result_free(result);
    query.filter.since_ns = clock_wall_ns() - HOUR;
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "window_ns", 0), 1000 * SECOND); // since it began
    assert_int_equal(result_integer(result, 0, "requests", 0), 7);
    assert_int_equal(result_get(result, 0, "note").type, VALUE_TEXT);
    result_free(result);
    query.filter.since_ns = clock_wall_ns() - 24 * HOUR - SECOND; // by a clock that is behind
    result_free(ask(&query));
    store_set_live(store);
    query.filter.since_ns = 0;
    result = ask(&query);
    assert_true(result_integer(result, 0, "as_of_ns", 0) > AS_OF + HOUR);
    assert_int_equal(result_get(result, 0, "note").type, VALUE_NULL);
    result_free(result);
}

// The requests of a model are those of its rows in each process' last sample, before or after that
// of the process; of a process whose samples have no models, all.
TEST_CASE(test_requests_by_model)
{
    const struct process process = {OPEN, 1000, 0, 0, true, NULL};
    const int64_t first = add_process("a", &process), second = add_process("a", &process);
    const uint32_t other = rows_name(db, "n");
    const int64_t third = add_process("b", &process), fourth = add_process("c", &process);
    execf("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
          " SELECT run, stream, number + 1, started_ns, received_ns, %u, format FROM model"
          " WHERE run IN (%lld, %lld, %lld)",
          other, (long long)first, (long long)second, (long long)third);
    for (int64_t run = first; run <= second; run++) {
        if (run == first)
            add_sample(run, 8 * run, 3 * run);
        add_sample_of(run, model, 3 * run, run);
        add_sample_of(run, other, 5 * run, 2 * run);
        if (run == second)
            add_sample(run, 8 * run, 3 * run);
    }
    add_sample_of(third, other, 4, 2);
    add_sample(third, 4, 2);
    add_sample(fourth, 6, 5);
    static const struct {
        const char *model, *host;
        int64_t running, waiting;
    } wanted[] = {
        {"m", "a", 9, 3}, {"n", "a", 15, 6}, {"m", "b", 0, 0}, {"n", "b", 4, 2}, {"m", "c", 6, 5},
    };
    const struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), COUNT_OF(wanted));
    size_t found = 0;
    for (size_t row = 0; row < COUNT_OF(wanted); row++)
        for (size_t i = 0; i < COUNT_OF(wanted); i++)
            if (result_is(result, row, "model", wanted[i].model) &&
                result_is(result, row, "host", wanted[i].host)) {
                assert_int_equal(result_integer(result, row, "running_requests", -1),
                                 wanted[i].running);
                assert_int_equal(result_integer(result, row, "waiting_requests", -1),
                                 wanted[i].waiting);
                found++;
            }
    assert_int_equal(found, COUNT_OF(wanted));
    result_free(result);
}

// What was in progress in a process that was killed, by its last sample.
TEST_CASE(test_lost_requests)
{
    const struct process process = {KILLED, 900, 101, 100, true, "idle"};
    const struct query query = {.kind = QUERY_NOW};
    add_sample(add_process("a", &process), 8, 0);
    struct result *result = ask(&query);
    assert_true(result_is(result, 0, "reason",
                          "its process ended without closing; 8 requests were in progress"));
    assert_int_equal(result_integer(result, 0, "running_requests", -1), -1);
    result_free(result);
}

// However many rows a process has of one time, only its newest are read.
TEST_CASE(test_many_samples)
{
    const struct process process = {OPEN, 1000, 0, 0, true, NULL};
    const int64_t first = add_process("a", &process), second = add_process("b", &process);
    const uint32_t other = rows_name(db, "n");
    add_sample_of(first, model, 7, 0); // before the newest
    add_sample(second, 7, 0);
    for (unsigned i = 0; i < 200; i++) {
        add_sample_of(first, other, 1, 0);
        add_sample_of(second, other, 1, 0);
    }
    add_sample(first, 3, 2);
    add_sample_of(first, other, 3, 2);
    const struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    const size_t a = row_of(result, "a");
    assert_int_equal(result_integer(result, a, "running_requests", -1), 0);
    assert_int_equal(result_integer(result, a, "waiting_requests", -1), 0);
    assert_int_equal(result_get(result, row_of(result, "b"), "running_requests").type, VALUE_NULL);
    result_free(result);
}

static void add_failed_load(int64_t run)
{
    execf(
        "INSERT INTO load(run, stream, number, started_ns, received_ns, model, device, duration_ns,"
        " status, error, model_bytes, host_memory_before_bytes, host_memory_after_bytes)"
        " VALUES(%lld, 0, 2, %lld, %lld, %u, %u, 1, 1, 'no device', 0, 0, 0)",
        (long long)run, (long long)before(10), (long long)before(10), model, model);
}

// A failed load counts for the process that failed to load.
TEST_CASE(test_failed_loads)
{
    const struct process serving = {OPEN, 1000, 0, 0, true, NULL};
    const struct process failed = {CLOSED, 11, 9, 9, false, NULL};
    const struct process waiting = {OPEN, 11, 0, 0, false, NULL};
    const struct process down = {SILENT, 8, 5, 5, true, NULL};
    static const struct {
        const char *host, *state, *reason;
    } expected[] = {
        {"serves", "idle", "no request in the last 5m 00s"},
        {"failed", "errors", "its load failed: no device"},
        {"waits", "errors", "its load failed: no device"},
        {"down", "down", "its process ended without closing"},
    };
    (void)add_process("serves", &serving);
    add_failed_load(add_process("serves", &failed));
    add_failed_load(add_process("failed", &failed));
    add_failed_load(add_process("waits", &waiting));
    add_failed_load(add_process("down", &failed));
    (void)add_process("down", &down);
    struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        char is[64], reason[256];
        const size_t row = row_of(result, expected[i].host);
        if (!result_is(result, row, "state", expected[i].state) ||
            !result_is(result, row, "reason", expected[i].reason))
            fail_msg("%s: %s: %s", expected[i].host,
                     result_text(is, sizeof is, result, row, "state"),
                     result_text(reason, sizeof reason, result, row, "reason"));
    }
    result_free(result);
}

// A run that was imported fell silent nowhere.
TEST_CASE(test_imported)
{
    for (int end = CLOSED; end <= SILENT; end++) {
        const struct process process = {end, 1000, 1, end == KILLED, true, NULL};
        (void)add_process(format_text("h%d", end), &process);
    }
    exec("UPDATE run SET owner = 0");
    const struct query query = {.kind = QUERY_NOW};
    for (int is_live = 0; is_live <= 1; is_live++) {
        struct result *result = ask(&query);
        for (int end = CLOSED; end <= SILENT; end++) {
            const size_t row = row_of(result, format_text("h%d", end));
            const bool is_killed = end == KILLED && !is_live; // what a file says
            assert_true(result_is(result, row, "state", is_killed ? "down" : "ended"));
            assert_true(is_reason(result, row,
                                  end == CLOSED ? "its process closed"
                                  : is_killed   ? "its process ended without closing"
                                                : "imported"));
        }
        result_free(result);
        store_set_live(store);
        execf("UPDATE run SET heard_ns = %lld", (long long)clock_wall_ns());
    }
}

// A process that only samples a host with models is no row, but where it is the host's only one or
// has ended in a way that matters.
TEST_CASE(test_samplers)
{
    const struct process engine = {OPEN, 1000, 0, 0, true, NULL};
    const struct process sampler = {OPEN, 1000, 0, 0, false, NULL};
    (void)add_process("a", &engine);
    const int64_t beside = add_process("a", &sampler), alone = add_process("b", &sampler);
    execf("INSERT INTO ledger(run, kind, stored) VALUES(%lld, %d, 5), (%lld, %d, 5)",
          (long long)beside, (int)RECORD_KIND_HOST_SAMPLE, (long long)alone,
          (int)RECORD_KIND_HOST_SAMPLE);
    const struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    assert_int_equal(result_row_count(result), 2);
    assert_true(result_is(result, 0, "host", "b"));
    assert_true(result_is(result, 1, "host", "a") && result_is(result, 1, "model", "m"));
    result_free(result);
    execf("UPDATE run SET \"end\" = 3, ended_ns = heard_ns WHERE run = %lld", (long long)beside);
    result = ask(&query);
    assert_int_equal(result_row_count(result), 3);
    assert_true(result_is(result, 0, "state", "down"));
    result_free(result);
}

// A model of several hosts stands before them, with all their requests; an ended host does not
// count.
TEST_CASE(test_groups)
{
    const struct process open = {OPEN, 900, 0, 0, true, NULL};
    const struct process killed = {KILLED, 900, 101, 100, true, NULL};
    const struct process closed = {CLOSED, 900, 100, 100, true, NULL};
    add_requests(add_process("a", &open), before(60), 20, 2, SECOND);
    add_requests(add_process("b", &open), before(60), 20, 0, 3 * SECOND);
    add_requests(add_process("c", &killed), before(200), 10, 0, SECOND);
    (void)add_process("d", &closed);
    struct query query = {.kind = QUERY_NOW, .group_by = {QUERY_BY_MODEL}, .group_count = 1};
    struct result *result = ask(&query);
    result_free(result_take_all(result));
    assert_int_equal(result_row_count(result), 5);
    assert_int_equal(result_get(result, 0, "host").type, VALUE_NULL);
    assert_true(result_is(result, 0, "model", "m"));
    assert_true(result_is(result, 0, "state", "down"));
    assert_true(result_is(result, 0, "reason", "c: its process ended without closing"));
    assert_int_equal(result_integer(result, 0, "group_size", 0), 3);
    assert_int_equal(result_integer(result, 0, "group_live", 0), 2);
    assert_int_equal(result_integer(result, 0, "requests", 0), 50); // also of what is down
    assert_true(result_number(result, 0, "error_ratio", 0) == 0.04);
    const size_t a = row_of(result, "a"), b = row_of(result, "b");
    assert_int_equal(row_of(result, "c"), 1); // the worst first
    assert_true(fabs(result_number(result, 0, "output_token_rate", 0) -
                     result_number(result, a, "output_token_rate", 0) -
                     result_number(result, b, "output_token_rate", 0) - 1010 / 300.) < 0.01);
    assert_true(fabs(result_number(result, 0, "tpot_p95_ns", 0) / (SECOND * 3 / 100.) - 1) < 0.02);
    assert_true(fabs(result_number(result, a, "tpot_p95_ns", 0) / (SECOND / 100.) - 1) < 0.02);
    assert_int_equal(result_get(result, a, "group_size").type, VALUE_NULL);
    result_free(result);
    query.group_by[0] = QUERY_BY_HOST; // each host has one model
    result = ask(&query);
    assert_int_equal(result_row_count(result), 5); // and the row of all
    result_free(result);
    query.group_by[0] = QUERY_BY_DEVICE;
    expect_error(&query, STATUS_INVALID, "by model or by host");
}

// A model names the host whose device is in trouble, and how many more are.
TEST_CASE(test_group_in_trouble)
{
    const struct process open = {OPEN, 900, 0, 0, true, NULL};
    const char *const hosts[] = {"a", "b", "c"};
    for (size_t i = 0; i < COUNT_OF(hosts); i++) {
        const int64_t run = add_process(hosts[i], &open);
        add_requests(run, before(60), 20, 0, SECOND);
        struct record record;
        record_init(&record, RECORD_KIND_EVENT, before(60));
        record_set_name(&record, EVENT_EVENT, rows_name(db, "throttling"));
        record_set_name(&record, EVENT_DEVICE, rows_name(db, "cuda:3"));
        if (i > 0)
            (void)rows_add(db, run, &record);
    }
    struct query query = {.kind = QUERY_NOW, .group_by = {QUERY_BY_MODEL}, .group_count = 1};
    struct result *result = ask(&query);
    result_free(result_take_all(result));
    assert_true(result_is(result, 0, "reason", "b: throttling (cuda:3); 1 more in trouble"));
    for (size_t row = 0; row < result_row_count(result); row++)
        assert_int_equal(result_integer(result, row, "has_trouble", 0),
                         result_get(result, row, "reason").type != VALUE_NULL);
    assert_true(result_is(result, 1, "host", "b"));
    assert_true(result_is(result, 1, "reason", "throttling (cuda:3)"));
    result_free(result);
    exec("UPDATE run SET host = (SELECT host FROM run ORDER BY run DESC LIMIT 1);"
         "UPDATE inference SET model = (SELECT id FROM name WHERE text = 'b') WHERE run % 2 = 1");
    query.group_by[0] = QUERY_BY_HOST;
    result = ask(&query);
    result_free(result_take_all(result));
    assert_true(result_is(result, 0, "reason", "throttling (cuda:3)"));
    result_free(result);
}

// Before groups stands a row of all requests of the window, those of what is down or began in it
// included: no sum of what its rows have.
TEST_CASE(test_all)
{
    const struct process open = {OPEN, 900, 0, 0, true, NULL};
    const struct process killed = {KILLED, 900, 101, 100, true, NULL};
    const struct process young = {OPEN, 50, 0, 0, true, NULL};
    const int64_t a = add_process("a", &open);
    add_requests(a, before(60), 20, 2, SECOND);
    add_sample(a, 3, 1);
    add_requests(add_process("b", &killed), before(200), 10, 0, SECOND);
    add_requests(add_process("c", &young), before(40), 20, 0, 3 * SECOND);
    struct query query = {.kind = QUERY_NOW, .group_by = {QUERY_BY_HOST}, .group_count = 1};
    struct result *result = ask(&query), *all = result_take_all(result);
    assert_non_null(all);
    assert_int_equal(result_row_count(all), 1);
    assert_int_equal(result_row_count(result), 3); // each host has one model
    assert_null(result_take_all(result));
    static const char *const none[] = {"model", "host", "state", "since_ns", "reason"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(result_get(all, 0, none[i]).type, VALUE_NULL);
    assert_true(result_is(all, 0, "group_by", "host"));
    assert_int_equal(result_integer(all, 0, "group_size", 0), 3);
    assert_int_equal(result_integer(all, 0, "group_live", 0), 2);
    assert_int_equal(result_integer(all, 0, "window_ns", 0), 300 * SECOND);
    assert_int_equal(result_integer(all, 0, "requests", 0), 50);
    assert_true(result_number(all, 0, "error_ratio", 0) == 0.04);
    assert_true(result_number(all, 0, "request_rate", 0) == 50 / 300.);
    assert_true(fabs(result_number(all, 0, "output_token_rate", 0) - 5050 / 300.) < 1e-6);
    assert_true(fabs(result_number(all, 0, "tpot_p95_ns", 0) / (SECOND * 3 / 100.) - 1) < 0.02);
    assert_true(fabs(result_number(all, 0, "ttft_p50_ns", 0) / (SECOND / 100.) - 1) < 0.02);
    assert_int_equal(result_integer(all, 0, "running_requests", 0), 3);
    assert_int_equal(result_integer(all, 0, "waiting_requests", 0), 1);
    const size_t c = row_of(result, "c");
    assert_true(fabs(result_number(result, c, "request_rate", 0) - 20 / 50.) < 1e-6);
    result_free(all);
    result_free(result);
    query.group_count = 0;
    result = ask(&query);
    assert_null(result_take_all(result));
    result_free(result);
}

// The eleven parts of 25 s that are over: nothing before the process began, then what it put out in
// each.
TEST_CASE(test_trend)
{
    const struct process process = {OPEN, 120, 0, 0, true, NULL};
    add_requests(add_process("a", &process), before(60), 10, 0, SECOND);
    const struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    const char *trend = result_get(result, 0, "trend").text.bytes;
    double tokens = 0;
    unsigned parts = 1;
    for (const char *at = trend; *at; at++)
        parts += *at == ',';
    assert_int_equal(parts, 11);
    assert_int_equal(strspn(trend, ","), 6);
    for (const char *at = trend + 6; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        tokens += strtod(at, NULL) * 25;
    assert_true(fabs(tokens - 1010) < 1);
    result_free(result);
    // One that is down has no other figures.
    const struct process killed = {KILLED, 200, 101, 100, true, NULL};
    add_requests(add_process("b", &killed), before(150), 10, 0, SECOND);
    result = ask(&query);
    const size_t down = row_of(result, "b");
    assert_int_equal(result_get(result, down, "output_token_rate").type, VALUE_NULL);
    assert_true(strstr(result_get(result, down, "trend").text.bytes, ",0,0,0,"));
    assert_true(strtod(result_get(result, down, "trend").text.bytes + strlen(",,,0,0,"), NULL) > 1);
    result_free(result);
}

static void add_device_sample(int64_t run, uint32_t device, int64_t at_ns, double util,
                              double joules)
{
    struct record record;
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, at_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, device);
    record_set_int(&record, DEVICE_SAMPLE_DURATION_NS, 10 * SECOND);
    record_set_real(&record, DEVICE_SAMPLE_GPU_UTIL, util);
    record_set_int(&record, DEVICE_SAMPLE_MEMORY_USED, 50);
    record_set_int(&record, DEVICE_SAMPLE_MEMORY_TOTAL, 80);
    record_set_real(&record, DEVICE_SAMPLE_ENERGY, joules);
    (void)rows_add(db, run, &record);
}

// A sample of a device in each period of 10 s before AS_OF.
static void add_device(int64_t run, const char *name, const char *uuid, double util)
{
    const uint32_t id = rows_name(db, name);
    rows_device(db, run, before(900), id, uuid);
    execf("INSERT OR IGNORE INTO ledger(run, kind, stored) VALUES(%lld, %d, 5)", (long long)run,
          (int)RECORD_KIND_DEVICE_SAMPLE);
    // Its first one was at the moment of its start, and the next one is of that time.
    add_device_sample(run, id, before(300), 0, 6000);
    exec("UPDATE device_sample SET duration_ns = NULL WHERE id = (SELECT max(id) FROM "
         "device_sample)");
    for (int i = 30; i >= 0; i--) // the newest counts
        add_device_sample(run, id, before(10 * i), i > 0 ? 0 : util, 10000 - 1000 * i); // 100 W
}

// The devices that an engine uses are sampled by another process, under other names.
TEST_CASE(test_devices)
{
    const struct process process = {OPEN, 900, 0, 0, true, NULL};
    const struct process sampler = {OPEN, 900, 0, 0, false, NULL};
    const int64_t run = add_process("a", &process), watch = add_process("a", &sampler);
    const int64_t other = add_process("b", &process), elsewhere = add_process("c", &sampler);
    add_requests(run, before(60), 10, 0, SECOND); // on a device "m"
    add_requests(other, before(60), 10, 0, SECOND);
    rows_device(db, run, before(900), rows_name(db, "m"), "GPU-1");
    add_device(watch, "gpu0", "GPU-1", 0.75);
    add_device(watch, "m", "GPU-2", 0.25); // the same name, another UUID
    add_device(elsewhere, "m", NULL, 0.5);
    const struct query query = {.kind = QUERY_NOW};
    struct result *result = ask(&query);
    const size_t a = row_of(result, "a"), b = row_of(result, "b");
    assert_true(result_number(result, a, "gpu_util_ratio", 0) == 0.75);
    assert_true(result_number(result, a, "device_memory_ratio", 0) == 0.625);
    const double joules = 100 / (1010 / 300.);
    assert_true(fabs(result_number(result, a, "joules_per_token", 0) / joules - 1) < 0.001);
    assert_int_equal(result_get(result, b, "gpu_util_ratio").type, VALUE_NULL);
    assert_int_equal(result_get(result, b, "joules_per_token").type, VALUE_NULL);
    result_free(result);
    // Nothing tells what each of two models uses of a device.
    const uint32_t first = model;
    model = rows_name(db, "second");
    const int64_t beside = add_process("a", &process);
    rows_device(db, beside, before(900), rows_name(db, "second"), "GPU-1");
    add_requests(beside, before(60), 10, 0, SECOND);
    model = first;
    result = ask(&query);
    assert_true(result_number(result, row_of(result, "a"), "gpu_util_ratio", 0) == 0.75);
    assert_int_equal(result_get(result, row_of(result, "a"), "joules_per_token").type, VALUE_NULL);
    result_free(result);
}

// What processes did later tells nothing of how they were at AS_OF.
static const struct {
    struct process process;
    const char *state; // NULL: not listed
    double since;
} past[] = {
    {{OPEN, 900, -1000, 0, true, "decode m request 3"}, "idle", 0}, // later
    {{OPEN, -5, -1000, 0, true, NULL}, NULL, 0},
    {{KILLED, 900, -50, -60, true, NULL}, "idle", 0},
    {{KILLED, 900, 101, 100, true, NULL}, "down", 100},
    {{CLOSED, 299, -60, -60, true, NULL}, "idle", 299},
    {{SILENT, 900, 9, 0, true, NULL}, "idle", 600}, // after its request
    {{SILENT, 900, 11, 0, true, NULL}, "silent", 11},
    {{OPEN, 900, -1000, 0, true, NULL}, "loading", 0},
    {{OPEN, 900, -1000, 0, true, NULL}, "ok", 900}, // a request is in progress
};

TEST_CASE(test_past)
{
    struct query query = {.kind = QUERY_NOW, .filter.until_ns = AS_OF};
    for (size_t i = 0; i < COUNT_OF(past); i++) // with run i + 1
        (void)add_process(format_text("host-%zu", i), &past[i].process);
    add_requests(1, before(-30), 1, 1, SECOND);
    execf("UPDATE model SET started_ns = %lld WHERE run = 5", (long long)before(-5));
    add_requests(6, before(601.01), 1, 0, SECOND);
    add_failed_load(8);
    execf("UPDATE load SET status = 0, duration_ns = %lld", (long long)(20 * SECOND));
    add_items(9, before(0.5), 1, SECOND);
    execf("UPDATE run SET received_ns = %lld WHERE run = 9", (long long)before(-5)); // from a spool
    struct result *result = ask(&query);
    for (size_t i = 0; i < COUNT_OF(past); i++) {
        const size_t row = row_of(result, format_text("host-%zu", i));
        const int64_t since_ns = result_integer(result, row, "since_ns", AS_OF);
        if (past[i].state ? !result_is(result, row, "state", past[i].state) ||
                                since_ns != before(past[i].since)
                          : row < result_row_count(result))
            fail_msg("case %zu since %lld", i, (long long)(AS_OF - since_ns));
        assert_int_equal(result_get(result, row, "model").type,
                         i == 1 || i == 4 ? VALUE_NULL : VALUE_TEXT);
    }
    assert_int_equal(result_integer(result, 0, "as_of_ns", 0), AS_OF);
    assert_int_equal(result_get(result, 0, "note").type, VALUE_NULL);
    result_free(result);
    query.filter.since_ns = before(25 * 3600);
    expect_error(&query, STATUS_INVALID, "at most 24 hours");
    query.filter = (struct query_filter){.until_ns = INT64_MAX}; // has not ended
    result = ask(&query);
    assert_int_equal(result_integer(result, 0, "as_of_ns", 0), before(-1000));
    result_free(result);
}

enum { STEPS = 24, STEP_S = 20, HOSTS = 6 };

// What happens until a time: processes begin and end, requests end, devices are throttled.
static void pass_until(double now, uint64_t *random)
{
    const struct process begun = {OPEN, 1 - now, 0, 0, true, "idle"};
    const char *host = format_text("host-%d", (int)(test_random(random) % HOSTS));
    const int64_t run = add_process(host, &begun), now_ns = before(-now);
    const long long some = 1 + (long long)(test_random(random) % (uint64_t)run);
    const long long other = 1 + (long long)(test_random(random) % (uint64_t)run);
    sampled_ns = now_ns - SECOND;
    rows_device(db, run, sampled_ns, model, host);
    execf("INSERT INTO ledger(run, kind, stored) VALUES(%lld, %d, 5)", (long long)run,
          (int)RECORD_KIND_DEVICE_SAMPLE);
    execf("UPDATE run SET \"end\" = 1 + run %% 2, ended_ns = %lld WHERE \"end\" = 0 AND run = %lld",
          (long long)sampled_ns, some);
    execf("UPDATE run SET \"end\" = 3 WHERE \"end\" = 0 AND run = %lld AND run < %lld", other,
          (long long)run);
    execf("UPDATE run SET heard_ns = %lld WHERE \"end\" = 0", (long long)now_ns);
    execf("UPDATE event SET duration_ns = %lld - started_ns WHERE duration_ns IS NULL AND id %% 3",
          (long long)sampled_ns);
    execf("INSERT INTO event(run, stream, number, started_ns, received_ns, event) SELECT run, 1, "
          "%lld,"
          " %lld, 0, %u FROM run WHERE \"end\" = 0 AND run %% 4 = %lld",
          (long long)run, (long long)sampled_ns, rows_name(db, "throttling"), (long long)run % 4);
    for (int64_t i = 1; i <= run; i++)
        if (integer(format_text("SELECT \"end\" FROM run WHERE run = %lld", (long long)i)) == 0) {
            add_requests(i, now_ns - 15 * SECOND, (unsigned)(test_random(random) % 9),
                         (unsigned)i % 3, SECOND * 3 / 4);
            add_sample(i, (int64_t)(test_random(random) % 4), 0);
            add_device_sample(i, model, sampled_ns, (double)((i + run) % 10) / 10,
                              (double)run * 50);
        }
}

// However a store went on, the answer for a time is that of then.
TEST_CASE(test_past_is_as_it_was)
{
    uint64_t random = 11;
    struct result *then[STEPS];
    struct query query = {.kind = QUERY_NOW, .group_by = {QUERY_BY_MODEL}, .group_count = 1};
    const struct process former = {CLOSED, 500000, 400000, 400000, true, NULL};
    for (int i = 0; i < HOSTS; i++) { // faster, as fast or slower on former days
        const int64_t run = add_process(format_text("host-%d", i), &former);
        for (int64_t day = 1; day <= 4; day++)
            add_requests(run, AS_OF - day * 24 * HOUR, 12, 0, SECOND / (1 + i % 3));
    }
    for (int i = 0; i < STEPS; i++) {
        pass_until(i * STEP_S, &random);
        then[i] = ask(&query);
    }
    for (int i = 0; i < STEPS; i++) {
        query.filter.until_ns = before(-i * STEP_S);
        struct result *result = ask(&query);
        assert_int_equal(result_row_count(result), result_row_count(then[i]));
        for (size_t row = 0; row < result_row_count(result); row++)
            for (unsigned k = 0; k < result_column_count(result); k++)
                if (strcmp(result_column(result, k)->key, "note") != 0)
                    expect_same_cell(
                        result_cell(then[i], row, k), result_cell(result, row, k),
                        format_text("step %d, row %zu: %s", i, row, result_column(result, k)->key));
        result_free(result);
        result_free(then[i]);
    }
}

TEST_CASE(test_refusals)
{
    struct query query = {.kind = QUERY_NOW};
    expect_error(&query, STATUS_NO_DATA, "no process reported in the last 24 hours");
    query.filter.since_ns = clock_wall_ns() + HOUR;
    expect_error(&query, STATUS_INVALID, "at most 24 hours");
    query.filter.since_ns = clock_wall_ns() - 25 * HOUR;
    expect_error(&query, STATUS_INVALID, "at most 24 hours");
    query.filter.since_ns = 0;
    (void)snprintf(query.filter.by[QUERY_BY_DEVICE], QUERY_TEXT_SIZE, "gpu");
    expect_error(&query, STATUS_INVALID, "filters are model and host, not device");
}

TEST_MAIN_EACH(set_up, store_tear_down, test_processes, test_usual, test_usual_is_kept, test_items,
               test_window, test_requests_by_model, test_many_samples, test_failed_loads,
               test_imported, test_samplers, test_lost_requests, test_groups, test_group_in_trouble,
               test_all, test_trend, test_devices, test_past, test_past_is_as_it_was, test_refusals)
