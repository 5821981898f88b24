// The built-in rules, all of them, through the evaluator, on a store: 10 hosts with 3 models and 2
// devices each, 10 hours with an injected clock (INFERSTAT_TEST_VOLUME times that); then clocks of
// two hosts that jump by hours, a host that is lost, and a device that is hot; and faults of each
// kind that test_alert_simulation.c has not.
//
// Noise of the healthy fleet:
//   requests    6, 1.5 and 0.5 in 15 s by model, by load: 0.4 to 1.6 of that, each host at its own
//               hour.  TTFT 0.4 s and 40 t/s in the median, each by a log-normal factor (sigma
//               0.5), all of a host by one correlated over 12 minutes (sigma 0.1), 10 % slower at
//               the highest load; one in 500 takes ten times as long
//   devices     68 to 74 C by load, sigma 2 K, 90 C slow them down; memory 60 to 85 %, sigma 1.5 %;
//               clocks are held back for 15 s in 20 minutes; PCIe at a lower rate for 20 s about
//               once in half an hour
//   hosts       memory 50 to 75 %, sigma 1.5 %; a message 15 s late about once an hour; clocks
//               off by 5 ms (sigma); every two hours a process ends and another begins, which loads
//               its models in 6 s (log-normal, sigma 0.3)
// From the first half hour on there is a baseline, of one host.
#include <math.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/alert/alert_file.h"
#include "common/store/alert/alert_evaluate.h"
#include "common/store/read/session.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

#define SECOND INT64_C(1000000000)
#define HOUR   (3600 * SECOND)

enum { HOSTS = 10, MODELS = 3, DEVICES = 2, STEP_S = 15 };
static const double steps_an_hour = 3600.0 / STEP_S;

static uint64_t seed;
static int64_t now_ns;
static struct alert_file file;
static struct alert_evaluator *evaluator;
static int64_t offsets[HOSTS]; // of the hosts' clocks
static bool lost[HOSTS];
static bool hot;                      // device 1 of host 2
static double slowness[HOSTS];        // a fault: by how much its requests are slower
static bool is_failing[HOSTS];        // a fault: its requests of model 0 fail
static bool is_faulty[HOSTS];         // its process does not end by itself
static int64_t runs[HOSTS], last_run; // the open one of each host
static double slow[HOSTS];            // its correlated noise
static sqlite3_stmt *inserts[RECORD_KIND_COUNT];
static int64_t ids[RECORD_KIND_COUNT];
static uint32_t models[MODELS], devices[DEVICES], pcie, xid, ecc; // names

static double normal(void)
{
    const double a = ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
    const double b = ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
    return sqrt(-2 * log(a)) * cos(2 * acos(-1) * b);
}

static double uniform(void)
{
    return ((double)(test_random(&seed) >> 11) + 0.5) * 0x1p-53;
}

static void put(int host, const struct record *record)
{
    rows_insert(inserts[record->kind], ++ids[record->kind], runs[host], record);
}

static double load_of(int host)
{
    const double hour = (double)(now_ns - START_NS) / (double)HOUR + 2.4 * host;
    return 1 + 0.6 * sin(hour * acos(-1) / 12);
}

static void add_request(int host, int model, int64_t started_ns)
{
    const double outlier = uniform() < 0.002 ? 10 : 1;
    const double factor = outlier * exp(0.1 * slow[host]) * (1 + slowness[host]) *
                          (1 + 0.1 * (load_of(host) - 1) / 0.6);
    const int64_t ttft_ns = (int64_t)(0.4e9 * factor * exp(0.5 * normal()));
    const int64_t decode_ns = (int64_t)(49 * 0.025e9 * factor * exp(0.5 * normal()));
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, started_ns);
    record_set_name(&record, INFERENCE_MODEL, models[model]);
    record_set_name(&record, INFERENCE_DEVICE, devices[0]);
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH,
                   is_failing[host] && model == 0 ? RECORD_FINISH_ERROR : RECORD_FINISH_STOP);
    record_set_int(&record, INFERENCE_PROMPT_TOKENS, 100);
    record_set_int(&record, INFERENCE_GENERATED_TOKENS, 50);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_PREFILL_NS, ttft_ns);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    record_set_int(&record, INFERENCE_TTFT_NS, ttft_ns);
    record_set_int(&record, INFERENCE_DECODE_NS, decode_ns);
    record_set_int(&record, INFERENCE_E2E_NS, ttft_ns + decode_ns);
    put(host, &record);
}

static void add_samples(int host, int64_t started_ns)
{
    struct record record;
    const double share = (load_of(host) - 0.4) / 1.2;
    record_init(&record, RECORD_KIND_HOST_SAMPLE, started_ns);
    record_set_int(&record, HOST_SAMPLE_MEMORY_TOTAL, 1000000);
    record_set_int(&record, HOST_SAMPLE_MEMORY_AVAILABLE,
                   (int64_t)(1e6 * (0.5 - 0.25 * share + 0.015 * normal())));
    put(host, &record);
    for (int i = 0; i < DEVICES; i++) {
        const int64_t held = (now_ns / SECOND / STEP_S + 7 * host + 31 * i) % 80;
        record_init(&record, RECORD_KIND_DEVICE_SAMPLE, started_ns);
        record_set_name(&record, DEVICE_SAMPLE_DEVICE, devices[i]);
        record_set_real(&record, DEVICE_SAMPLE_TEMPERATURE,
                        hot && host == 2 && i == 1 ? 89 : 68 + 6 * share + 2 * normal());
        record_set_int(&record, DEVICE_SAMPLE_MEMORY_TOTAL, 1000000);
        record_set_int(&record, DEVICE_SAMPLE_MEMORY_USED,
                       (int64_t)(1e6 * (0.6 + 0.25 * share + 0.015 * normal())));
        record_set_int(&record, DEVICE_SAMPLE_THROTTLE, held == 0 ? 4 : 0);
        put(host, &record);
    }
}

static void add_event(int host, uint32_t event, int device, int64_t started_ns, int64_t duration_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, started_ns);
    record_set_name(&record, EVENT_EVENT, event);
    record_set_name(&record, EVENT_DEVICE, devices[device]);
    record_set_int(&record, EVENT_CODE, 8);
    if (duration_ns >= 0) // else it lasts
        record_set_int(&record, EVENT_DURATION_NS, duration_ns);
    put(host, &record);
}

static void add_load(int host, int model, int64_t started_ns, double seconds)
{
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, started_ns);
    record_set_name(&record, LOAD_MODEL, models[model]);
    record_set_name(&record, LOAD_DEVICE, devices[0]);
    record_set_int(&record, LOAD_DURATION_NS, (int64_t)(seconds * 1e9));
    record_set_int(&record, LOAD_STATUS, RECORD_STATUS_OK);
    record_set_int(&record, LOAD_MODEL_BYTES, 1000000);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, 0);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, 0);
    put(host, &record);
}

// A process of the host begins, with its devices, and loads its models.
static void begin_run(int host, int64_t at_ns)
{
    struct record record;
    if (runs[host])
        execf("UPDATE run SET \"end\" = 1, ended_ns = heard_ns WHERE run = %lld",
              (long long)runs[host]);
    runs[host] = ++last_run;
    rows_run(db, last_run, format_text("h%d", host), at_ns, at_ns);
    execf("UPDATE run SET owner = 1, \"end\" = 0, received_ns = %lld WHERE run = %lld",
          (long long)now_ns, (long long)last_run);
    for (int i = 0; i < DEVICES; i++) {
        record_init(&record, RECORD_KIND_DEVICE, at_ns);
        record_set_int(&record, DEVICE_ORDINAL, i);
        record_set_name(&record, DEVICE_NAME, devices[i]);
        record_set_int(&record, DEVICE_MEMORY_BYTES, 1000000);
        record_set_real(&record, DEVICE_SLOWDOWN, 90);
        put(host, &record);
    }
    for (int i = 0; i < MODELS; i++)
        add_load(host, i, at_ns, 6 * exp(0.3 * normal()));
}

// 15 s of a host.
static void step_host(int host)
{
    static const double rates[MODELS] = {6, 1.5, 0.5};
    const int64_t at_ns = now_ns + offsets[host];
    const double keep = exp(-STEP_S / 720.0);
    slow[host] = keep * slow[host] + sqrt(1 - keep * keep) * normal();
    if (uniform() < 0.5 / steps_an_hour && !is_faulty[host])
        begin_run(host, at_ns - STEP_S * SECOND);
    if (uniform() < 2 / steps_an_hour)
        add_event(host, pcie, 0, at_ns - 30 * SECOND, 20 * SECOND);
    add_samples(host, at_ns - SECOND);
    for (int model = 0; model < MODELS; model++)
        for (double left = rates[model] * load_of(host); left > uniform(); left--)
            add_request(host, model, at_ns - (int64_t)((1 + STEP_S * uniform()) * (double)SECOND));
    // The collector takes the time of a message, unless that is before its arrival.
    const int64_t late_ns = uniform() < 1 / steps_an_hour ? STEP_S * SECOND : 0;
    execf("UPDATE run SET heard_ns = max(heard_ns, %lld), clock_offset_ns = %lld,"
          " clock_error_ns = 1000000 WHERE run = %lld",
          (long long)((at_ns > now_ns ? at_ns : now_ns) - late_ns),
          (long long)(offsets[host] + (int64_t)(0.005e9 * normal())), (long long)runs[host]);
}

// 15 s of the fleet, then an evaluation whose alerts are saved.
static void step(void)
{
    struct alert_pass pass;
    struct error err = {0};
    exec("BEGIN");
    now_ns += STEP_S * SECOND;
    for (int host = 0; host < HOSTS; host++)
        if (!lost[host])
            step_host(host);
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

static const char still_open[] = "resolved_ns IS NULL";

// The alerts that fired and match the SQL condition, as text.
static void expect_alerts(const char *condition, const char *expected)
{
    sqlite3_stmt *stmt = NULL;
    const char *sql = format_text("SELECT coalesce(group_concat(text, ', '), '') FROM"
                                  " (SELECT format('%%s %%s%%s', rule, coalesce(host, ''),"
                                  " coalesce(' ' || device, '')) AS text FROM alert"
                                  " WHERE firing_ns IS NOT NULL AND %s ORDER BY rule, host)",
                                  condition);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), expected);
    (void)sqlite3_finalize(stmt);
}

static void make_fleet(void)
{
    static const enum record_kind kinds[] = {RECORD_KIND_INFERENCE,     RECORD_KIND_HOST_SAMPLE,
                                             RECORD_KIND_DEVICE_SAMPLE, RECORD_KIND_EVENT,
                                             RECORD_KIND_DEVICE,        RECORD_KIND_LOAD};
    exec("PRAGMA synchronous = OFF");
    memset(runs, 0, sizeof runs);
    memset(ids, 0, sizeof ids);
    last_run = 0;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        inserts[kinds[i]] = rows_prepare(db, kinds[i]);
    for (int i = 0; i < MODELS; i++)
        models[i] = rows_name(db, format_text("m%d", i));
    for (int i = 0; i < DEVICES; i++)
        devices[i] = rows_name(db, format_text("gpu%d", i));
    pcie = rows_name(db, "pcie_downgrade");
    xid = rows_name(db, "xid");
    ecc = rows_name(db, "ecc_uncorrected");
    for (int host = 0; host < HOSTS; host++)
        begin_run(host, now_ns);
}

static enum status count_group(void *context, const char *const group[ALERT_GROUP_NAMES],
                               const struct alert_reading *reading, struct error *err)
{
    (void)group;
    (void)err;
    *(unsigned *)context += reading->has_data;
    return STATUS_OK;
}

// Every rule but those of errors, of which there are none, has been about something.
static void expect_data(void)
{
    static const char *const none[] = {"device_xid", "ecc_uncorrected", "records_dropped",
                                       "run_killed", "requests_failed"};
    struct error err = {0};
    for (size_t i = 0; i < file.rule_count; i++) {
        struct alert_source_state *state = NULL;
        unsigned groups = 0, expected = 1;
        for (size_t k = 0; k < COUNT_OF(none); k++)
            expected &= strcmp(none[k], file.rules[i].name) != 0;
        // Nothing was loaded, or narrow, for some minutes.
        for (int64_t past = 0; past < 2 * HOUR && groups == 0; past += 300 * SECOND) {
            const struct alert_times then = {now_ns - past, START_NS};
            expect_ok(
                alert_read_rule(&state, store, &file.rules[i], &then, count_group, &groups, &err),
                &err);
        }
        if ((groups > 0) != expected)
            fail_msg("%s: %u groups", file.rules[i].name, groups);
        alert_source_state_free(state);
    }
}

// The first half hour, from an hour of the day on.
static void begin(uint64_t random, int hour)
{
    struct error err = {0};
    seed = random;
    now_ns = START_NS + hour * HOUR;
    make_fleet();
    expect_ok(alert_file_read(&file, "", 0, &err), &err);
    expect_ok(alert_evaluator_new(&evaluator, &file, now_ns, NULL, &err), &err);
    run_for(1800);
    saved("h0");
}

// A third of the 10 hours: no alert fires.
static void watch_healthy_fleet(uint64_t random, int hour)
{
    begin(random, hour);
    run_for((int)test_volume(12000) - 1800);
    expect_alerts("true", "");
    expect_data();
}

TEST_CASE(a_morning)
{
    watch_healthy_fleet(1, 0);
}

TEST_CASE(an_afternoon)
{
    watch_healthy_fleet(2, 8);
}

TEST_CASE(an_evening_with_faults)
{
    watch_healthy_fleet(100012, 16); // a host that is 25 % slower than the baseline for 20 minutes
    offsets[3] = 3 * HOUR;
    offsets[4] = -5 * HOUR;
    run_for(90);
    expect_alerts(still_open, "clock_off h3, clock_off h4");
    run_for(300);
    expect_alerts(still_open, "clock_off h3, clock_off h4");
    offsets[3] = offsets[4] = 0;
    run_for(120);
    expect_alerts(still_open, "");

    lost[7] = hot = true;
    run_for(105);
    expect_alerts(still_open, "host_silent h7");
    run_for(45);
    expect_alerts(still_open, "device_hot h2 gpu1, host_silent h7");
    lost[7] = hot = false;
    run_for(180);
    expect_alerts(still_open, "");
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE firing_ns IS NOT NULL"), 4);
}

// ---- Faults of every kind that test_alert_simulation.c has not
// -----------------------------------

enum { LOADED, XID, NARROW, ECC, DROPPED, KILLED, DISK, SLOWER, FAILING, FAULTS };
static const struct {
    const char *rule;
    int within_s; // found, from its beginning on
} faults[FAULTS] = {
    [LOADED] = {"slow_load", 30}, // from the end of the load
    [XID] = {"device_xid", 30},
    [NARROW] = {"pcie_below_maximum", 300}, // half of 5 minutes, for 2
    [ECC] = {"ecc_uncorrected", 30},
    [DROPPED] = {"records_dropped", 30},
    [KILLED] = {"run_killed", 30},
    [DISK] = {"disk_full", 330},
    [SLOWER] = {"slower_than_baseline", 1860}, // two whole windows, and 45 s
    [FAILING] = {"requests_failed", 60},       // 6 in 15 s of 120 in 5 minutes
};

static void inject(int fault, int host, int64_t at_ns)
{
    const int device = uniform() < 0.5;
    const double size = uniform();
    const int64_t run = runs[host];
    switch (fault) {
    case LOADED:
        add_load(host, device, at_ns - (int64_t)((32 + 90 * size) * 1e9), 32 + 90 * size);
        break;
    case XID:
        add_event(host, xid, device, at_ns, 0);
        break;
    case NARROW:
        add_event(host, pcie, device, at_ns, -1);
        break;
    case ECC:
        add_event(host, ecc, device, at_ns, 0);
        break;
    case DROPPED: // with numbers or without
        execf(device ? "INSERT INTO range(run, stream, first, last, state, reason, since_ns,"
                       " until_ns) VALUES(%lld, 0, 1, 9, 1, 1, %lld, %lld)"
                     : "INSERT INTO unnumbered VALUES(%lld, %lld, 1 + 0 * %lld, 0, 1)",
              (long long)run, (long long)at_ns, (long long)at_ns);
        break;
    case KILLED:
        begin_run(host, at_ns);
        execf("UPDATE run SET \"end\" = 2 WHERE run = %lld", (long long)run);
        break;
    case FAILING:
        is_failing[host] = true;
        break;
    case DISK: // so many times was free an hour ago
        execf("DELETE FROM disk_sample WHERE at_ns < %lld; INSERT INTO disk_sample"
              " SELECT %lld, min(free_bytes) * %f FROM disk_sample",
              (long long)(at_ns - HOUR), (long long)(at_ns - HOUR), 2 + 8 * size);
        break;
    default:
        slowness[host] = 2 + 2 * size;
    }
}

TEST_CASE(other_faults_are_found)
{
    const int rounds = (int)test_volume(1);
    int64_t all = 0;
    begin(3, 4);
    exec("CREATE TEMP TABLE injected(rule, host, at_ns, within_ns)");
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < FAULTS; i++) {
            // Each at another one; slow requests are found where there are enough of them.
            int host = ((i == FAILING ? LOADED : i) + 3 * round) % HOSTS;
            for (int k = DISK; i == SLOWER && k < HOSTS; k++)
                if (load_of((k + 3 * round) % HOSTS) > load_of(host))
                    host = (k + 3 * round) % HOSTS;
            const int64_t at_ns = now_ns + (int64_t)(STEP_S * uniform() * (double)SECOND);
            is_faulty[host] = true;
            inject(i, host, at_ns);
            execf("INSERT INTO injected VALUES('%s', iif(%d, NULL, 'h%d'), %lld, %lld)",
                  faults[i].rule, i == DISK, host, (long long)at_ns,
                  (long long)(faults[i].within_s * SECOND));
        }
        run_for(faults[DISK].within_s + STEP_S);
        memset(is_failing, 0, sizeof is_failing);
        exec("UPDATE disk_sample SET free_bytes = (SELECT min(free_bytes) FROM disk_sample)");
        run_for(faults[SLOWER].within_s - faults[DISK].within_s);
        for (int host = 0; host < HOSTS; host++) { // the others end, with their processes
            begin_run(host, now_ns);
            is_faulty[host] = false;
            slowness[host] = 0;
        }
    }
    for (int i = 0; i < FAULTS; i++) {
        const int64_t found = integer(format_text(
            "SELECT count(*) FROM injected i WHERE rule = '%s' AND EXISTS (SELECT 1 FROM alert a"
            " WHERE a.rule = i.rule AND a.host IS i.host"
            " AND a.firing_ns BETWEEN i.at_ns AND i.at_ns + i.within_ns)",
            faults[i].rule));
        print_message("%s: %d of %d within %d s\n", faults[i].rule, (int)found, rounds,
                      faults[i].within_s);
        all += found;
    }
    assert_true(all * 100 >= rounds * FAULTS * 99);
    // No other alert, but of the disk, which others may fill, and others of slow requests.
    expect_alerts(
        "rule <> 'disk_full' AND NOT EXISTS (SELECT 1 FROM injected i WHERE alert.host = i.host"
        " AND (alert.rule = i.rule OR (alert.rule LIKE 'slow%token%' AND i.rule LIKE 'slower%'))"
        " AND firing_ns BETWEEN at_ns AND at_ns + 3600000000000)",
        "");
}

TEST_FIXTURE(tear_down)
{
    for (size_t i = 0; i < COUNT_OF(inserts); i++)
        (void)sqlite3_finalize(inserts[i]);
    alert_evaluator_free(evaluator);
    alert_file_deinit(&file);
    return store_tear_down(state);
}

TEST_MAIN_EACH(compare_set_up, tear_down, a_morning, an_afternoon, an_evening_with_faults,
               other_faults_are_found)
