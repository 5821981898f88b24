// The built-in rules through the evaluator, on a store: 10 hosts with 3 models and 2 devices each,
// 15 minutes (INFERSTAT_TEST_VOLUME times that); then clocks of two hosts that jump by hours, a
// host that is lost, and a device that is hot.
#include <math.h>

#include <sqlite3.h>

#include "common/core/alert/alert_file.h"
#include "common/store/alert/alert_evaluate.h"
#include "common/store/read/session.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/compare_fixture.h"

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)

enum { HOSTS = 10, MODELS = 3, DEVICES = 2, STEP_S = 15 };

static uint64_t seed = 5;
static int64_t now_ns = START_NS;
static struct alert_evaluator *evaluator;
static int64_t offsets[HOSTS]; // of the hosts' clocks
static bool lost[HOSTS];
static bool hot; // device 1 of host 2

static double normal(void)
{
    const double a = ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
    const double b = ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
    return sqrt(-2 * log(a)) * cos(2 * acos(-1) * b);
}

static void add_request(int host, int model, int64_t started_ns)
{
    const int64_t ttft_ns = (int64_t)(0.4e9 * exp(0.5 * normal()));
    const int64_t decode_ns = (int64_t)(49 * 0.025e9 * exp(0.5 * normal()));
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, started_ns);
    record_set_name(&record, INFERENCE_MODEL, rows_name(db, format_text("m%d", model)));
    record_set_name(&record, INFERENCE_DEVICE, rows_name(db, "gpu0"));
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, RECORD_FINISH_STOP);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, 100);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, 50);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_PREFILL_NS, ttft_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    record_set_int(&record, INFERENCE_TTFT_NS, ttft_ns);
    record_set_int(&record, INFERENCE_DECODE_NS, decode_ns);
    record_set_int(&record, INFERENCE_E2E_NS, ttft_ns + decode_ns);
    (void)rows_add(db, host + 1, &record);
}

static void add_samples(int host, int64_t started_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_HOST_SAMPLE, started_ns);
    record_set_int(&record, HOST_SAMPLE_MEMORY_TOTAL, 1000000);
    record_set_int(&record, HOST_SAMPLE_MEMORY_AVAILABLE, 300000 + (int64_t)(15000 * normal()));
    (void)rows_add(db, host + 1, &record);
    for (int i = 0; i < DEVICES; i++) {
        record_init(&record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
        record_set_name(&record, DEVICE_SAMPLE_DEVICE, rows_name(db, format_text("gpu%d", i)));
        record_set_real(&record, DEVICE_SAMPLE_TEMPERATURE,
                        hot && host == 2 && i == 1 ? 89 : 70 + 2 * normal());
        record_set_int(&record, DEVICE_SAMPLE_MEMORY_TOTAL, 1000000);
        record_set_int(&record, DEVICE_SAMPLE_MEMORY_USED, 700000 + (int64_t)(15000 * normal()));
        record_set_int(&record, DEVICE_SAMPLE_THROTTLE, test_random(&seed) % 240 == 0 ? 4 : 0);
        (void)rows_add(db, host + 1, &record);
    }
}

// 15 s of the fleet, then an evaluation whose alerts are saved.
static void step(void)
{
    static const int rates[MODELS] = {4, 2, 1};
    struct alert_pass pass;
    struct error err = {0};
    exec("BEGIN");
    now_ns += STEP_S * SECOND;
    for (int host = 0; host < HOSTS; host++) {
        const int64_t at_ns = now_ns + offsets[host];
        if (lost[host])
            continue;
        for (int second = 0; second < STEP_S; second += 5)
            add_samples(host, at_ns - (second + 1) * SECOND);
        for (int model = 0; model < MODELS; model++)
            for (int i = 0; i < rates[model]; i++)
                add_request(host, model, at_ns - (i + 3) * SECOND);
        // The collector takes the time of a message, unless that is before its arrival.
        execf("UPDATE run SET heard_ns = max(heard_ns, %lld), clock_offset_ns = %lld,"
              " clock_error_ns = 1000000 WHERE run = %d",
              (long long)(at_ns > now_ns ? at_ns : now_ns), (long long)offsets[host], host + 1);
    }
    exec("COMMIT");
    expect_ok(alert_evaluate(evaluator, store, now_ns, &pass, &err), &err);
    exec("BEGIN");
    expect_ok(alert_table_save(db, &pass, &err), &err);
    exec("COMMIT");
    alert_pass_deinit(&pass);
}

static void run_for(int seconds)
{
    for (int i = 0; i < seconds / STEP_S; i++)
        step();
}

// The alerts that are open and fire, or have fired, as text.
static void expect_alerts(const char *expected)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT coalesce(group_concat(text, ', '), '') FROM"
                                        " (SELECT format('%s %s%s', rule, coalesce(host, ''),"
                                        " coalesce(' ' || device, '')) AS text FROM alert"
                                        " WHERE firing_ns IS NOT NULL AND resolved_ns IS NULL"
                                        " ORDER BY rule, host)",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), expected);
    (void)sqlite3_finalize(stmt);
}

TEST_CASE(a_fleet)
{
    struct alert_file file;
    struct error err = {0};
    expect_ok(alert_file_read(&file, "", 0, NULL, NULL, &err), &err);
    expect_ok(alert_evaluator_new(&evaluator, &file, START_NS, NULL, &err), &err);
    for (int host = 0; host < HOSTS; host++) {
        rows_run(db, host + 1, format_text("h%d", host), START_NS, START_NS);
        execf("UPDATE run SET owner = 1, \"end\" = 0 WHERE run = %d", host + 1);
        for (int i = 0; i < DEVICES; i++) {
            struct record record;
            record_init(&record, RECORD_KIND_DEVICE, START_NS);
            record_set_int(&record, DEVICE_ORDINAL, i);
            record_set_name(&record, DEVICE_NAME, rows_name(db, format_text("gpu%d", i)));
            record_set_int(&record, DEVICE_MEMORY_BYTES, 1000000);
            record_set_real(&record, DEVICE_SLOWDOWN, 90);
            (void)rows_add(db, host + 1, &record);
        }
    }
    run_for((int)test_volume(900));
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE firing_ns IS NOT NULL"), 0);

    offsets[3] = 3 * HOUR;
    offsets[4] = -5 * HOUR;
    run_for(90);
    expect_alerts("clock_off h3, clock_off h4");
    run_for(300);
    expect_alerts("clock_off h3, clock_off h4");
    offsets[3] = offsets[4] = 0;
    run_for(120);
    expect_alerts("");

    lost[7] = hot = true;
    run_for(105);
    expect_alerts("host_silent h7");
    run_for(45);
    expect_alerts("device_hot h2 gpu1, host_silent h7");
    lost[7] = hot = false;
    run_for(180);
    expect_alerts("");
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE firing_ns IS NOT NULL"), 4);
    alert_evaluator_free(evaluator);
    alert_file_deinit(&file);
}

TEST_MAIN_EACH(compare_set_up, store_tear_down, a_fleet)
