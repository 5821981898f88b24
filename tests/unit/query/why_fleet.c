#include "tests/unit/query/why_fleet.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define AS_OF  (START_NS / HOUR * HOUR + HOUR / 2)
#define WINDOW (AS_OF - WHY_WINDOW_NS)
#define PI     3.14159265358979

enum { DAYS = 3, IN_PROGRESS_MAX = 4096, CLIENTS = 3, MORE_CLIENTS = 9 };

uint64_t why_fleet_seed;
static sqlite3_stmt *insert;
static int64_t last_id;

int64_t why_fleet_as_of(void)
{
    return AS_OF;
}

double why_fleet_uniform(void)
{
    return (double)(test_random(&why_fleet_seed) >> 11) / 0x1p53;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - why_fleet_uniform())) *
           cos(2 * 3.14159265358979 * why_fleet_uniform());
}

static double lognormal(double median, double spread)
{
    return median * exp(spread * normal());
}

int why_fleet_set_up(void **state)
{
    (void)store_make(state);
    why_fleet_seed = 1;
    assert_int_equal(
        sqlite3_prepare_v2(
            db,
            "INSERT INTO inference(id, run, stream, number, started_ns, received_ns, model, device,"
            " request, finish, prompt_tokens, cached_prompt_tokens, generated_tokens, queue_ns,"
            " prefill_ns, ttft_ns, decode_ns, e2e_ns, host_memory_bytes, concurrent_requests,"
            " items) SELECT ?1, ?2, 0, ?1, ?3, ?3, (SELECT id FROM name WHERE text = 'llama'),"
            " (SELECT id FROM name WHERE text = 'cuda:0'), ?1, 0, iif(?10, NULL, ?4),"
            " iif(?10, NULL, 0), iif(?10, NULL, ?5), ?6, iif(?10, NULL, ?7),"
            " iif(?10, NULL, ?6 + ?7), iif(?10, NULL, ?8), ?6 + ?7 + ?8, 1, ?9, ?10",
            -1, &insert, NULL),
        SQLITE_OK);
    return store_read();
}

int why_fleet_tear_down(void **state)
{
    (void)sqlite3_finalize(insert);
    return store_tear_down(state);
}

// A request; with items it has no tokens, and `decode_ns` is 0.
static void add_request(int64_t run, int64_t started_ns, double prompt, double tokens,
                        double queue_ns, double prefill_ns, double decode_ns, size_t concurrent,
                        double items)
{
    const int64_t values[] = {++last_id,           run,
                              started_ns,          (int64_t)prompt,
                              (int64_t)tokens,     (int64_t)queue_ns,
                              (int64_t)prefill_ns, (int64_t)decode_ns,
                              (int64_t)concurrent, (int64_t)items};
    for (int i = 0; i < (int)COUNT_OF(values); i++)
        (void)sqlite3_bind_int64(insert, i + 1, values[i]);
    if (!(items > 0))
        (void)sqlite3_bind_null(insert, COUNT_OF(values));
    assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
    (void)sqlite3_reset(insert);
}

// An engine that computes the requests in progress together, each a little slower for the others.
struct engine {
    int64_t run;
    const struct why_planted *planted; // NULL: none, as outside of the window and on other hosts
    enum why_noise noise;
    int64_t ends_ns[IN_PROGRESS_MAX]; // of requests in progress
    size_t count;
};

// What makes an engine slow, and is no more work.
static const struct {
    enum why_cause_kind kind;
    double factor;
} slowers[] = {
    {WHY_THROTTLING, 1.8},
    {WHY_FOREIGN_PROCESS, 1.7},
    {WHY_MEMORY_PRESSURE, 1.8},
    {WHY_PCIE_DOWNGRADE, 1.6},
    {WHY_XID, 1.7},
    {WHY_ECC_CORRECTED, 1.6},
    {WHY_ECC_UNCORRECTED, 1.8},
    {WHY_CGROUP_THROTTLED, 1.7},
    {WHY_DRIVER_HANG, 1.8},
    {WHY_DEVICE_LOST, 1.8},
    {WHY_LOAD, 1.7},
    {WHY_COPY, 1.7},
    {WHY_COPY_STARVED, 1.7},
    {WHY_SETTING, 1.6},
    {WHY_HOST, 1.7},
    {WHY_UNEXPLAINED, 1.7},
};

static double factor_of(const struct engine *engine, enum why_cause_kind kind, double usual)
{
    const struct why_planted *planted = engine->planted;
    return !planted || !planted->is[kind] ? 1 : planted->factor > 0 ? planted->factor : usual;
}

// Requests of two kinds: short questions, and documents of which little is told.
static bool is_document(enum why_noise noise)
{
    return noise == WHY_MIXTURE && why_fleet_uniform() < 0.3;
}

// Computes a request from `at_ns` on; its end.
static int64_t answer(struct engine *engine, int64_t at_ns)
{
    size_t left = 0;
    double slow = 1;
    for (size_t i = 0; i < engine->count; i++)
        if (engine->ends_ns[i] > at_ns)
            engine->ends_ns[left++] = engine->ends_ns[i];
    engine->count = left;
    for (size_t i = 0; i < COUNT_OF(slowers); i++)
        slow *= factor_of(engine, slowers[i].kind, slowers[i].factor);
    if (engine->noise == WHY_HEAVY_TAILS && why_fleet_uniform() < 0.05)
        slow *= fmin(pow(1 - why_fleet_uniform(), -1 / 1.2), 100); // Pareto
    const double crowd = 1 + 0.15 * (double)left;
    const bool document = is_document(engine->noise), has_items = engine->noise == WHY_OF_ITEMS;
    const double prompt =
        1 + round(lognormal(document ? 6000 : 800, 0.4) * factor_of(engine, WHY_PROMPT, 3));
    const double tokens =
        2 + round(lognormal(document ? 40 : 120, 0.4) * factor_of(engine, WHY_TOKENS, 2.2));
    const double items =
        has_items ? 1 + round(lognormal(16, 0.4) * factor_of(engine, WHY_ITEMS, 2)) : 0;
    const double queue_ns = lognormal(20e6, 0.5) * crowd * slow;
    const double work_ns = has_items ? items * 40e6 : prompt * 1e6;
    const double prefill_ns = work_ns * crowd * slow * lognormal(1, 0.05);
    const double decode_ns = has_items ? 0 : tokens * 12e6 * crowd * slow * lognormal(1, 0.05);
    add_request(engine->run, at_ns, prompt, tokens, queue_ns, prefill_ns, decode_ns, left + 1,
                items);
    const int64_t end_ns = at_ns + (int64_t)(queue_ns + prefill_ns + decode_ns);
    engine->ends_ns[engine->count++] = end_ns;
    assert_true(engine->count < IN_PROGRESS_MAX);
    return end_ns;
}

// Requests a second.
static double rate_at(const struct engine *engine, double at_ns)
{
    double rate = 0.5 * factor_of(engine, WHY_CONCURRENCY, 2.6);
    if (engine->noise == WHY_DAILY)
        rate *= 1 + 0.6 * sin(2 * PI * at_ns / (double)DAY);
    if (engine->noise == WHY_BURSTS) // of 20 s in every 100 s, out of step with the window
        rate *= fmod(at_ns / 1e9, 97) < 20 ? 3 : 0.5;
    return rate;
}

// Clients that wait for their answers and think for a moment.
static void run_closed_loop(struct engine *engine, int64_t since_ns, int64_t until_ns)
{
    const bool has_more = engine->planted && engine->planted->is[WHY_CONCURRENCY];
    const unsigned clients = has_more ? MORE_CLIENTS : CLIENTS;
    int64_t next_ns[MORE_CLIENTS] = {0};
    for (unsigned i = 0; i < clients; i++)
        next_ns[i] = since_ns + (int64_t)(why_fleet_uniform() * 1e9);
    for (;;) {
        unsigned first = 0;
        for (unsigned i = 1; i < clients; i++)
            first = next_ns[i] < next_ns[first] ? i : first;
        if (next_ns[first] >= until_ns)
            return;
        next_ns[first] = answer(engine, next_ns[first]) + (int64_t)lognormal(5e6, 0.3);
    }
}

static void run_engine(int64_t run, int64_t since_ns, int64_t until_ns, enum why_noise noise,
                       const struct why_planted *planted)
{
    struct engine engine = {.run = run, .planted = planted, .noise = noise};
    if (noise == WHY_CLOSED_LOOP) {
        run_closed_loop(&engine, since_ns, until_ns);
        return;
    }
    for (double at = (double)since_ns; at < (double)until_ns;) {
        (void)answer(&engine, (int64_t)at);
        at += -log(1 - why_fleet_uniform()) / rate_at(&engine, at) * 1e9;
    }
}

int64_t why_fleet_add_run(int host, int which, int64_t since_ns, int64_t until_ns)
{
    const int64_t run = host * WHY_FLEET_RUNS + which + 1;
    rows_run(db, run, format_text("gpu%02d", host), since_ns, until_ns);
    execf("UPDATE run SET owner = 1, driver = '550', \"end\" = %d WHERE run = %lld",
          until_ns == AS_OF ? 0 : 1, (long long)run);
    execf("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
          " VALUES(%lld, 0, 1, %lld, %lld, (SELECT id FROM name WHERE text = 'llama'), 'gguf')",
          (long long)run, (long long)since_ns, (long long)since_ns);
    return run;
}

// ---- Planting ---------------------------------------------------------------------------------

// Errors are of a moment, other events last; some are of the whole host.
static void add_event(int64_t run, enum why_cause_kind kind, int64_t since_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, since_ns);
    record_set_name(&record, EVENT_EVENT, rows_name(db, why_cause_name(kind)));
    if (kind != WHY_MEMORY_PRESSURE && kind != WHY_CGROUP_THROTTLED)
        record_set_name(&record, EVENT_DEVICE, rows_name(db, "cuda:0"));
    if (kind == WHY_XID || kind == WHY_ECC_CORRECTED || kind == WHY_ECC_UNCORRECTED)
        record_set_int(&record, EVENT_DURATION_NS, 0);
    (void)rows_add(db, run, &record);
}

static void plant_on(const struct why_planted *planted, int64_t run)
{
    for (unsigned kind = WHY_LASTING; kind < WHY_LOAD; kind++)
        if (planted->is[kind])
            add_event(run, (enum why_cause_kind)kind, planted->since_ns);
    if (planted->is[WHY_LOAD])
        execf(
            "INSERT INTO load(run, stream, number, started_ns, received_ns, model, device,"
            " duration_ns, status, model_bytes, host_memory_before_bytes,"
            " host_memory_after_bytes) SELECT %lld, 0, 1, %lld, %lld, m.id, d.id, %lld, 0, 1, 1, 1"
            " FROM name m, name d WHERE m.text = 'other' AND d.text = 'cuda:0'",
            (long long)run, (long long)planted->since_ns, (long long)planted->since_ns,
            (long long)(AS_OF - planted->since_ns));
    if (planted->is[WHY_COPY] || planted->is[WHY_COPY_STARVED]) {
        struct record record;
        const int64_t lasted_ns = AS_OF - planted->since_ns;
        record_init(&record, RECORD_KIND_PIPELINE, planted->since_ns);
        record_set_name(&record, PIPELINE_WORKLOAD, rows_name(db, "encode"));
        record_set_name(&record, PIPELINE_DEVICE, rows_name(db, "cuda:0"));
        record_set_int(&record, PIPELINE_DURATION_NS, lasted_ns);
        if (planted->is[WHY_COPY])
            record_set_int(&record, PIPELINE_COPY_BUSY_NS, lasted_ns / 10 * 9);
        if (planted->is[WHY_COPY_STARVED])
            record_set_int(&record, PIPELINE_COPY_STARVED_NS, lasted_ns / 10 * 9);
        for (unsigned i = 0; i < record_kind_info(RECORD_KIND_PIPELINE)->column_count; i++)
            if (!record_has(&record, i) &&
                record_kind_info(RECORD_KIND_PIPELINE)->columns[i].type != COLUMN_NAME)
                record_set_int(&record, i, 0);
        (void)rows_add(db, run, &record);
    }
    if (planted->is[WHY_SETTING])
        execf("UPDATE run SET %s WHERE run = %lld",
              why_fleet_uniform() < 0.5 ? "driver = '560'" : "worker_version = '2.0'",
              (long long)run);
    if (planted->is[WHY_LOSSES])
        execf("INSERT INTO stream(run, stream, next, produced, unnumbered)"
              " VALUES(%lld, 0, 101, 100, 0);"
              "INSERT INTO range(run, stream, first, last, state, reason)"
              " VALUES(%lld, 0, 1, 50, 0, NULL), (%lld, 0, 51, 100, 1, 1);"
              "INSERT INTO ledger(run, kind, stored) VALUES(%lld, 6, 50)",
              (long long)run, (long long)run, (long long)run, (long long)run);
    if (planted->is[WHY_DOWN] || planted->is[WHY_SILENT])
        execf("UPDATE run SET \"end\" = 3, heard_ns = %lld, ended_ns = nullif(%d, 0) * %lld"
              " WHERE run = %lld",
              (long long)(AS_OF - MINUTE), planted->is[WHY_DOWN], (long long)(AS_OF - MINUTE),
              (long long)run);
}

// Half of the stores have former days, in the same hour; a day's noise differs from the next one's.
void why_fleet_make(const struct why_planted *planted)
{
    exec("DELETE FROM inference; DELETE FROM run; DELETE FROM event; DELETE FROM load;"
         "DELETE FROM pipeline; DELETE FROM model; DELETE FROM stream; DELETE FROM range;"
         "DELETE FROM ledger; BEGIN");
    (void)rows_name(db, "llama");
    (void)rows_name(db, "other");
    (void)rows_name(db, "cuda:0");
    const bool has_days = why_fleet_uniform() < 0.5;
    for (int host = 0; host < WHY_FLEET_HOSTS; host++) {
        for (int day = DAYS; has_days && day > 0; day--) {
            const int64_t since_ns = AS_OF - day * DAY - HOUR / 2;
            run_engine(why_fleet_add_run(host, day, since_ns, since_ns + HOUR), since_ns,
                       since_ns + HOUR, planted->noise, NULL);
        }
        int64_t run = why_fleet_add_run(host, 0, WINDOW - HOUR, AS_OF);
        run_engine(run, WINDOW - HOUR, WINDOW, planted->noise, NULL);
        if (planted->is[WHY_SETTING]) {
            execf("UPDATE run SET heard_ns = %lld, \"end\" = 1 WHERE run = %lld", (long long)WINDOW,
                  (long long)run);
            run = why_fleet_add_run(host, WHY_FLEET_RUNS - 1, WINDOW, AS_OF);
        }
        const int64_t since_ns = planted->on[host] ? planted->since_ns : WINDOW;
        run_engine(run, WINDOW, since_ns, planted->noise, NULL);
        run_engine(run, since_ns, AS_OF, planted->noise, planted->on[host] ? planted : NULL);
        if (planted->on[host])
            plant_on(planted, run);
    }
    exec("COMMIT");
}
