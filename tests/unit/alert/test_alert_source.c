// Values of the sources of alerts.
#include "common/store/alert/alert_source.h"

#include <sqlite3.h>

#include "common/core/alert/alert_file.h"
#include "common/store/read/session.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/compare/compare_fixture.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static struct alert_rule rule;
static struct alert_source_state *kept;
static struct alert_times times;
static char found[1024]; // "model|host|device=value " for each group, in the order of the callbacks

TEST_FIXTURE(set_up)
{
    times = (struct alert_times){START_NS + HOUR, START_NS};
    kept = NULL;
    return compare_set_up(state);
}

TEST_FIXTURE(tear_down)
{
    alert_source_state_free(kept);
    return store_tear_down(state);
}

static void about_rule(const char *text)
{
    struct alert_file file;
    struct error err = {0};
    const char *line = format_text("alert a: avg %s", text);
    expect_ok(alert_file_read(&file, line, strlen(line), &err), &err);
    rule = file.rules[file.rule_count - 1];
    alert_file_deinit(&file);
    alert_source_state_free(kept);
    kept = NULL;
}

static enum status on_value(void *context, const int64_t *keys, double value, struct error *err)
{
    (void)context;
    (void)err;
    size_t used = strlen(found);
    for (unsigned i = 0; i < rule.query.group_count; i++) {
        char name[64] = "-";
        sqlite3_stmt *stmt = NULL;
        assert_int_equal(
            sqlite3_prepare_v2(db, "SELECT text FROM name WHERE id = ?", -1, &stmt, NULL),
            SQLITE_OK);
        (void)sqlite3_bind_int64(stmt, 1, keys[i]);
        if (sqlite3_step(stmt) == SQLITE_ROW)
            (void)snprintf(name, sizeof name, "%s", sqlite3_column_text(stmt, 0));
        (void)sqlite3_finalize(stmt);
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%s", i ? "|" : "", name);
    }
    (void)snprintf(found + used, sizeof found - used, "=%.4g ", value);
    return STATUS_OK;
}

// What the rule's source tells `after_ns` after START_NS.
static const char *tells(int64_t after_ns)
{
    struct error err = {0};
    found[0] = '\0';
    times.now_ns = START_NS + after_ns;
    expect_ok(alert_source_read(&kept, store, &rule, &times, on_value, NULL, &err), &err);
    return found;
}

static void run(int64_t number, const char *host, int end, int64_t heard_ns)
{
    rows_run(db, number, host, START_NS, START_NS + heard_ns);
    execf("UPDATE run SET \"end\" = %d, owner = 1, ended_ns = iif(%d IN (1, 2), heard_ns, NULL)"
          " WHERE run = %lld",
          end, end, (long long)number);
}

static void model(int64_t number, const char *name)
{
    struct record record;
    record_init(&record, RECORD_KIND_MODEL, START_NS);
    record_set_name(&record, MODEL_NAME, rows_name(db, name));
    (void)record_set_text(&record, MODEL_FORMAT, "gguf", 4);
    (void)rows_add(db, number, &record);
}

TEST_CASE(silent_hosts)
{
    about_rule("host_silent_ns over 1d when max > 30s");
    run(1, "open", 0, HOUR);
    run(2, "lost", 3, HOUR - MINUTE);
    run(3, "closed", 1, HOUR - MINUTE);
    run(4, "killed", 2, HOUR - MINUTE);
    run(5, "rebooted", 3, HOUR - 10 * MINUTE); // and its new process closed
    run(6, "rebooted", 1, HOUR - 5 * MINUTE);
    run(7, "busy", 0, HOUR - MINUTE); // a process of it closed since, but within 30 s
    run(8, "busy", 1, HOUR - MINUTE + 10 * SECOND);
    run(9, "imported", 3, HOUR);
    exec("UPDATE run SET owner = 0 WHERE run = 9");
    assert_string_equal(tells(HOUR), "open=0 lost=6e+10 closed=0 killed=0 rebooted=0 busy=5e+10 ");
    // The collector itself has not listened for longer.
    times.listening_ns = START_NS + HOUR - 20 * SECOND;
    assert_string_equal(tells(HOUR), "open=0 lost=2e+10 closed=0 killed=0 rebooted=0 busy=2e+10 ");
    // The clock of a host is three hours ahead: so are its messages.
    times.listening_ns = START_NS;
    exec("DELETE FROM run WHERE run <> 1");
    execf("UPDATE run SET heard_ns = heard_ns + %lld, clock_offset_ns = %lld",
          (long long)(3 * HOUR), (long long)(3 * HOUR));
    assert_string_equal(tells(HOUR + MINUTE), "open=6e+10 ");
    assert_string_equal(tells(27 * HOUR), "open=9.36e+13 ");
    assert_string_equal(tells(29 * HOUR), "");
}

TEST_CASE(killed_runs)
{
    about_rule("runs_killed over 10m when max > 0");
    run(1, "a", 2, HOUR - MINUTE);
    run(2, "a", 3, HOUR - MINUTE); // its connection closed
    exec("UPDATE run SET ended_ns = heard_ns WHERE run = 2");
    run(3, "b", 3, HOUR - MINUTE); // its host lost power
    run(4, "c", 2, HOUR - 25 * HOUR);
    run(5, "d", 1, HOUR - MINUTE);
    run(6, "e", 2, HOUR - MINUTE);
    for (int i = 1; i <= 5; i++)
        model(i, "llama");
    model(1, "llama"); // loaded twice
    model(2, "qwen");
    assert_string_equal(tells(HOUR), "-|e=1 llama|a=2 qwen|a=1 ");
    about_rule("runs_killed where model=qwen and host=a over 10m when max > 0");
    assert_string_equal(tells(HOUR), "qwen|a=1 ");
    about_rule("runs_killed where model=nothing over 10m when max > 0");
    assert_string_equal(tells(HOUR), "");
    about_rule("runs_killed over 10m when max > 0");
    // Later: what has no model is told of no longer; the others are until another process has it.
    assert_string_equal(tells(HOUR + 10 * MINUTE), "llama|a=1 qwen|a=1 ");
    run(7, "b", 0, HOUR + 9 * MINUTE); // of another host
    model(7, "qwen");
    run(8, "a", 0, HOUR + 9 * MINUTE);
    assert_string_equal(tells(HOUR + 10 * MINUTE), "llama|a=1 qwen|a=1 ");
    model(8, "qwen");
    assert_string_equal(tells(HOUR + 10 * MINUTE), "llama|a=1 ");
    exec("UPDATE run SET \"end\" = 2 WHERE run = 8");
    assert_string_equal(tells(2 * HOUR), "llama|a=1 qwen|a=1 ");
    exec("UPDATE run SET \"end\" = 1 WHERE run = 8"); // it closed
    assert_string_equal(tells(2 * HOUR), "llama|a=1 ");
    assert_string_equal(tells(25 * HOUR - MINUTE), "llama|a=1 ");
    assert_string_equal(tells(25 * HOUR), "");
    about_rule("runs_killed over 3d when max > 0");
    assert_string_equal(tells(25 * HOUR), "-|e=1 llama|a=2 llama|c=1 qwen|a=1 ");
}

static void request(int64_t number, const char *name, int64_t after_ns, bool fails)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, START_NS + after_ns);
    record_set_name(&record, INFERENCE_MODEL, rows_name(db, name));
    record_set_name(&record, INFERENCE_DEVICE, rows_name(db, "cpu"));
    record_set_int(&record, INFERENCE_REQUEST, 1);
    record_set_int(&record, INFERENCE_FINISH, fails ? RECORD_FINISH_ERROR : RECORD_FINISH_STOP);
    record_set_int(&record, INFERENCE_QUEUE_NS, 0);
    record_set_int(&record, INFERENCE_E2E_NS, SECOND);
    record_set_int(&record, INFERENCE_HOST_MEMORY, 1);
    (void)rows_add(db, number, &record);
}

TEST_CASE(failed_requests)
{
    about_rule("failed_ratio over 5m when max > 5%");
    for (int i = 1; i <= 3; i++)
        run(i, format_text("%c", 'a' - 1 + i), 0, HOUR);
    exec("UPDATE run SET owner = 0 WHERE run = 3"); // imported
    for (int i = 0; i < 12; i++) {
        request(1, "llama", HOUR - MINUTE, i < 2);
        request(2, "llama", HOUR - 6 * MINUTE, true); // before the window
        request(2, "qwen", HOUR - MINUTE, false);
    }
    assert_string_equal(tells(HOUR), ""); // of two it is not told
    for (int i = 0; i < 3; i++)
        request(1, "llama", 10000 * HOUR, true); // by a clock that is far ahead
    execf("UPDATE inference SET received_ns = %lld WHERE received_ns > %lld",
          (long long)(START_NS + HOUR), (long long)(START_NS + HOUR));
    assert_string_equal(tells(HOUR), "");
    request(2, "llama", HOUR - MINUTE, true);
    assert_string_equal(tells(HOUR), "");
    for (int i = 0; i < 4; i++) {
        request(2, "qwen", HOUR - MINUTE, true);
        request(3, "qwen", HOUR - MINUTE, true);
    }
    assert_string_equal(tells(HOUR), "qwen|b=0.25 ");
    about_rule("failed_ratio where model=llama over 5m when max > 5%");
    assert_string_equal(tells(HOUR), "");
    request(1, "llama", HOUR - MINUTE, true);
    assert_string_equal(tells(HOUR), "llama|a=0.2308 ");
    assert_string_equal(tells(HOUR + 10 * MINUTE), "");
}

static void fail_after(int64_t ns)
{
    execf("UPDATE inference SET e2e_ns = %lld WHERE finish = 3", (long long)ns);
}

// What hangs counts when it fails, unless it began more than an hour before the window.
TEST_CASE(requests_that_hang)
{
    about_rule("failed_ratio over 5m when max > 5%");
    run(1, "a", 0, 3 * HOUR);
    for (int i = 0; i < 12; i++) {
        request(1, "llama", HOUR, false);
        if (i < 4)
            request(1, "llama", HOUR - 10 * MINUTE, true);
    }
    assert_string_equal(tells(HOUR + MINUTE), "");
    fail_after(6 * MINUTE);
    assert_string_equal(tells(HOUR + MINUTE), "llama|a=0.25 ");
    assert_string_equal(tells(HOUR + 2 * MINUTE), "");
    fail_after(65 * MINUTE);
    assert_string_equal(tells(HOUR + 55 * MINUTE), "llama|a=1 ");
    fail_after(66 * MINUTE);
    assert_string_equal(tells(HOUR + 56 * MINUTE), "");
    // Where all take longer than the window, those that went well count, too.
    fail_after(6 * MINUTE);
    execf("UPDATE inference SET started_ns = started_ns - %lld, e2e_ns = %lld WHERE finish <> 3",
          (long long)(9 * MINUTE), (long long)(7 * MINUTE));
    assert_string_equal(tells(HOUR + MINUTE), "llama|a=0.25 ");
}

TEST_CASE(lost_records)
{
    about_rule("records_dropped over 10m when max > 0");
    run(1, "a", 0, HOUR);
    run(2, "b", 0, HOUR);
    run(3, "c", 0, HOUR);
    execf("INSERT INTO unnumbered VALUES(1, %lld, 5, 0, 1), (2, %lld, 7, 0, 1)",
          (long long)(START_NS + HOUR - 15 * MINUTE), (long long)(START_NS + HOUR - 40 * MINUTE));
    // Ranges: lost now, stored, lost long ago, in another store; and one of a host whose clock is
    // an hour behind.
    const long long late = START_NS + HOUR - MINUTE, early = START_NS - MINUTE;
    execf("INSERT INTO range(run, stream, first, last, state, reason, since_ns, until_ns) VALUES"
          " (1, 0, 11, 20, 1, 1, %lld, %lld), (1, 0, 21, 30, 0, NULL, NULL, NULL),"
          " (2, 0, 1, 10, 1, 1, %lld, %lld), (2, 0, 11, 20, 1, 3, %lld, %lld),"
          " (3, 0, 1, 4, 1, 6, %lld, %lld)",
          early, late, early, early, early, late, early, early);
    execf("UPDATE run SET clock_offset_ns = %lld WHERE run = 3", (long long)-HOUR);
    assert_string_equal(tells(HOUR), "a=15 c=4 ");
    assert_string_equal(tells(HOUR + 10 * MINUTE), "");
}

TEST_CASE(clocks)
{
    about_rule("clock_offset_ns over 10m when max > 1s");
    run(1, "a", 0, HOUR);
    run(2, "a", 0, HOUR);
    run(3, "b", 0, HOUR);
    run(4, "c", 1, HOUR);
    run(5, "d", 0, HOUR);
    run(6, "e", 0, HOUR - 11 * MINUTE);
    exec("UPDATE run SET clock_offset_ns = -1e9 * run, clock_error_ns = iif(run = 3, 4e9, 1e6)"
         " WHERE run <> 5");
    assert_string_equal(tells(HOUR), "a=1.999e+09 b=0 ");
}

static void event(int64_t number, const char *name, const char *device, int64_t started_ns,
                  int64_t duration_ns, int64_t code)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, START_NS + started_ns);

    record_set_name(&record, EVENT_EVENT, rows_name(db, name));
    if (device)
        record_set_name(&record, EVENT_DEVICE, rows_name(db, device));
    if (duration_ns >= 0)
        record_set_int(&record, EVENT_DURATION_NS, duration_ns);
    record_set_int(&record, EVENT_CODE, code);
    (void)rows_add(db, number, &record);
}

TEST_CASE(errors_of_devices)
{
    run(1, "a", 0, HOUR);
    run(2, "b", 0, HOUR);
    event(1, "xid", "gpu0", HOUR - 11 * MINUTE, 0, 79);
    event(2, "xid", "gpu1", HOUR - 9 * MINUTE, 0, 63);
    event(1, "xid", "gpu0", HOUR - MINUTE, 0, 48);
    event(1, "xid", "gpu0", HOUR - MINUTE, 0, 63);
    event(1, "ecc_uncorrected", "gpu0", HOUR - 2 * MINUTE, -1, 3);
    event(1, "ecc_uncorrected", "gpu0", HOUR - 2 * MINUTE, 10 * SECOND, 4); // its end
    event(1, "throttling", "gpu0", HOUR - MINUTE, 0, 1);
    about_rule("xid_count over 10m when max > 0");
    assert_string_equal(tells(HOUR), "a|gpu0=2 b|gpu1=1 ");
    assert_string_equal(tells(2 * HOUR), "");
    about_rule("xid_count where device=gpu1 over 10m when max > 0");
    assert_string_equal(tells(HOUR), "b|gpu1=1 ");
    about_rule("ecc_uncorrected_count over 1h when max > 0");
    assert_string_equal(tells(HOUR), "a|gpu0=4 ");
    // An import brings old events with new ids: they hide none that came before.
    event(2, "xid", "gpu1", HOUR - 9 * MINUTE, 0, 63);
    execf("UPDATE event SET received_ns = %lld WHERE id = (SELECT max(id) FROM event)",
          (long long)(START_NS - HOUR));
    about_rule("xid_count over 10m when max > 0");
    assert_string_equal(tells(HOUR), "a|gpu0=2 b|gpu1=1 ");
}

TEST_CASE(narrow_pcie)
{
    about_rule("pcie_narrow_ratio over 10m when mean > 50%");
    run(1, "lasts", 0, HOUR);
    run(2, "ended", 0, HOUR);
    run(3, "killed", 2, HOUR - 5 * MINUTE);
    run(4, "before", 0, HOUR);
    run(5, "off", 0, HOUR);  // its clock is an hour ahead
    run(6, "new", 0, HOUR);  // since two minutes
    run(7, "over", 0, HOUR); // likewise, and what it tells of was before
    execf("UPDATE run SET received_ns = %lld WHERE run >= 6",
          (long long)(START_NS + HOUR - 2 * MINUTE));
    event(1, "pcie_downgrade", "gpu0", HOUR - 30 * MINUTE, -1, 8);
    event(2, "pcie_downgrade", "gpu0", HOUR - 12 * MINUTE, -1, 8);
    event(2, "pcie_downgrade", "gpu0", HOUR - 12 * MINUTE, 4 * MINUTE, 8);
    event(2, "pcie_downgrade", "gpu0", HOUR - MINUTE, -1, 8);
    event(3, "pcie_downgrade", "gpu0", HOUR - 30 * MINUTE, -1, 8);
    event(4, "pcie_downgrade", "gpu0", HOUR - 30 * MINUTE, 5 * MINUTE, 8);
    event(5, "pcie_downgrade", "gpu0", 2 * HOUR - 6 * MINUTE, -1, 8);
    event(6, "pcie_downgrade", "gpu0", HOUR - 90 * SECOND, -1, 8);
    event(7, "pcie_downgrade", "gpu0", HOUR - 9 * MINUTE, 6 * MINUTE, 8);
    execf("UPDATE run SET clock_offset_ns = %lld WHERE run = 5", (long long)HOUR);
    assert_string_equal(tells(HOUR), "lasts|gpu0=1 ended|gpu0=0.3 killed|gpu0=0.5 before|gpu0=0 "
                                     "off|gpu0=0.6 new|gpu0=0.75 over|gpu0=0 ");
}

TEST_CASE(hot_devices)
{
    about_rule("slowdown_margin_celsius over 1m when min < 3C");
    run(1, "a", 0, HOUR);
    run(2, "b", 0, HOUR);
    for (int i = 0; i < 4; i++)
        for (int second = 0; second < 120; second += 10) {
            struct record record;
            record_init(&record, RECORD_KIND_DEVICE_SAMPLE, START_NS + HOUR - second * SECOND - 1);
            record_set_name(&record, DEVICE_SAMPLE_DEVICE,
                            rows_name(db, format_text("gpu%d", i % 2)));
            record_set_real(&record, DEVICE_SAMPLE_TEMPERATURE, second < 60 ? 80 + i : 20);
            (void)rows_add(db, 1 + i / 2, &record);
        }
    for (int i = 0; i < 3; i++) { // the last has no slowdown
        struct record record;
        record_init(&record, RECORD_KIND_DEVICE, START_NS);
        record_set_int(&record, DEVICE_ORDINAL, i % 2);
        record_set_name(&record, DEVICE_NAME, rows_name(db, format_text("gpu%d", i % 2)));
        record_set_int(&record, DEVICE_MEMORY_BYTES, 1);
        record_set_real(&record, DEVICE_SLOWDOWN, 90);
        (void)rows_add(db, 1 + i / 2, &record);
    }
    assert_string_equal(tells(HOUR), "a|gpu0=10 a|gpu1=9 b|gpu0=8 ");
    assert_string_equal(tells(HOUR + 2 * MINUTE), "");
}

// The disk of the test: only whether there is a value, and which way it goes.
TEST_CASE(full_disk)
{
    about_rule("disk_full_in_ns over 6h when min < 1d");
    assert_string_equal(tells(HOUR), "");
    execf("INSERT INTO disk_sample VALUES(%lld, 9000000000000000000)", (long long)START_NS);
    assert_string_equal(tells(57 * MINUTE), "");
    (void)tells(58 * MINUTE);
    assert_true(found[0] == '=' && atof(found + 1) > 0 && atof(found + 1) < HOUR);
    about_rule("disk_full_in_ns over 6h when min < 1d"); // another process
    (void)tells(70 * MINUTE);
    assert_true(found[0] == '=' && atof(found + 1) > 0 && atof(found + 1) < HOUR);
    exec("UPDATE disk_sample SET free_bytes = 1");
    assert_string_equal(tells(70 * MINUTE), "=3.154e+17 ");
    assert_string_equal(tells(60 * HOUR), ""); // none of the samples is in the window
    assert_string_equal(tells(-MINUTE), "");   // the clock was set back
}

// Host b is slower by a half in both windows, c in the last one alone; of d only the work differs.
TEST_CASE(slower_than_the_baseline)
{
    about_rule("baseline_slower_ratio over 10m when mean > 25%");
    assert_string_equal(tells(0), "");
    add((struct measured){.run = 1, .host = "base", .requests = 400});
    saved("base");
    static const struct {
        const char *host;
        double first, second;
        int tokens;
    } hosts[] = {{"a", 1, 1, 0}, {"b", 1.5, 1.5, 0}, {"c", 1, 1.5, 0}, {"d", 1, 1, 500}};
    for (int i = 0; i < (int)COUNT_OF(hosts); i++)
        for (int k = 0; k < 2; k++)
            add((struct measured){.run = 2 + 2 * i + k,
                                  .host = hosts[i].host,
                                  .requests = hosts[i].tokens ? 200 : 400,
                                  .slowness = k ? hosts[i].second : hosts[i].first,
                                  .prompt_tokens = hosts[i].tokens,
                                  .started_ns =
                                      (START_NS / (10 * MINUTE) + 4 + k) * 10 * MINUTE + SECOND});
    const int64_t ended_ns = (START_NS / (10 * MINUTE) + 6) * 10 * MINUTE + MINUTE - START_NS;
    for (int i = 0; i < 2; i++) {
        double slower = 0;
        (void)tells(ended_ns + i * 8 * MINUTE);
        if (sscanf(found, "tiny|a=0 tiny|b=%lf", &slower) != 1 || slower < 0.4 || slower > 0.5 ||
            !strstr(found, " tiny|c=0 tiny|d=0 "))
            fail_msg("%s", found);
    }
    // The next window has no requests, and the one after it none either.
    assert_string_equal(tells(ended_ns + 10 * MINUTE), "");
    about_rule("baseline_slower_ratio where host=b over 10m when mean > 25%");
    (void)tells(ended_ns);
    if (strncmp(found, "tiny|b=0.4", 10) != 0)
        fail_msg("%s", found);
}

TEST_MAIN_EACH(set_up, tear_down, silent_hosts, killed_runs, failed_requests, requests_that_hang,
               lost_records, clocks, errors_of_devices, narrow_pcie, hot_devices, full_disk,
               slower_than_the_baseline)
