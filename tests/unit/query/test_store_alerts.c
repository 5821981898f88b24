// Alerts from rules to rows: evaluation by pass, silences, deliveries, edits, and their queries.
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/alert/alert_config.h"
#include "common/store/alert/alert_evaluate.h"
#include "common/store/alert/alert_queue.h"
#include "common/store/sqlite/database.h"
#include "common/store/store.h"
#include "tests/support/store/rows.h"
#include "tests/support/test.h"
#include "tests/unit/store/store_fixture.h"

#define SECOND  INT64_C(1000000000)
#define HOSTILE "a'\"\\\n\x1b[31m%s"

static struct alert_file file;
static struct alert_evaluator *evaluator;
static int64_t now_ns;
static unsigned turns_begun, turns_ended;

static const char rules[] = "alert slow: avg ttft_ns by model,host over 1m when max > 3s for 30s"
                            " critical 6s clear 2s\n"
                            "alert slower: avg ttft_ns by model,host over 1m when max > 4s\n"
                            "hook pager: command /bin/true\n"
                            "hook chat: webhook http://127.0.0.1:1/x\n";

static void begin_turn(void *context)
{
    (void)context;
    assert_int_equal(turns_begun++, turns_ended);
}

static void end_turn(void *context)
{
    (void)context;
    turns_ended++;
}

static void read_rules(const char *text)
{
    static const struct alert_turns turns = {begin_turn, end_turn, NULL};
    struct error err;
    alert_evaluator_free(evaluator);
    alert_file_deinit(&file);
    expect_ok(alert_file_read(&file, text, strlen(text), &err), &err);
    expect_ok(alert_evaluator_new(&evaluator, &file, START_NS, &turns, &err), &err);
    exec("BEGIN");
    expect_ok(alert_config_save(db, &file, &err), &err);
    exec("COMMIT");
}

TEST_FIXTURE(set_up)
{
    store_make(state);
    rows_run(db, 1, "host-a", START_NS, START_NS);
    rows_run(db, 2, HOSTILE, START_NS, START_NS);
    exec("UPDATE run SET owner = 1");
    now_ns = START_NS;
    evaluator = NULL;
    file = (struct alert_file){0};
    turns_begun = turns_ended = 0;
    return store_read();
}

TEST_FIXTURE(tear_down)
{
    alert_evaluator_free(evaluator);
    alert_file_deinit(&file);
    return store_tear_down(state);
}

static void request(int64_t run, int64_t ttft_ns)
{
    struct record record;
    record_init(&record, RECORD_KIND_INFERENCE, now_ns);
    record_set_name(&record, INFERENCE_MODEL, rows_name(db, "m"));
    record_set_name(&record, INFERENCE_DEVICE, rows_name(db, "d"));
    record_set_int(&record, INFERENCE_TTFT_NS, ttft_ns);
    for (unsigned i = 0; i < record_kind_info(RECORD_KIND_INFERENCE)->column_count; i++) {
        const struct record_column *column = &record_kind_info(RECORD_KIND_INFERENCE)->columns[i];
        if (!column->maybe && column->type != COLUMN_NAME)
            record_set_int(&record, i, column->type == COLUMN_INT ? ttft_ns : 0);
    }
    rows_add(db, run, &record);
}

// Another evaluation, `seconds` later, as a collector does it.
static void pass_unless(int seconds, bool is_lost)
{
    struct error err;
    struct alert_pass pass;
    now_ns += seconds * SECOND;
    turns_begun = turns_ended = 0;
    const enum status status = alert_evaluate(evaluator, store, now_ns, &pass, &err);
    if (status != STATUS_OK)
        fail_msg("%s", err.text);
    exec("BEGIN");
    assert_int_equal(alert_table_save(db, &pass, &err), STATUS_OK);
    exec(is_lost ? "ROLLBACK" : "COMMIT");
    alert_pass_deinit(&pass);
}

static void pass_after(int seconds)
{
    pass_unless(seconds, false);
}

static int64_t open_in(const char *rule, enum alert_state alert_state)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM alert WHERE rule = '%s' AND state = %d"
                   " AND resolved_ns IS NULL",
                   rule, (int)alert_state);
    return integer(sql);
}

// Pending, firing, escalated, resolved; each is told to both hooks once, whatever process
// evaluates: nothing but the table is kept.
TEST_CASE(test_life)
{
    read_rules(rules);
    request(1, 5 * SECOND);
    pass_after(0);
    assert_int_equal(open_in("slow", ALERT_PENDING), 1);
    assert_int_equal(open_in("slower", ALERT_FIRING), 1);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 2);
    for (int i = 0; i < 3; i++) {
        read_rules(rules);
        pass_after(10);
    }
    assert_int_equal(open_in("slow", ALERT_FIRING), 1);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 4);
    assert_int_equal(integer("SELECT severity FROM alert WHERE rule = 'slow'"), ALERT_WARNING);
    for (int i = 0; i < 4; i++) {
        request(1, 7 * SECOND);
        pass_after(10);
    }
    assert_int_equal(integer("SELECT severity FROM alert WHERE rule = 'slow'"), ALERT_CRITICAL);
    assert_int_equal(integer("SELECT threshold = 6e9 FROM alert WHERE rule = 'slow'"), 1);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery WHERE event = 'escalated'"), 2);
    for (int i = 0; i < 15; i++) {
        request(1, SECOND);
        pass_after(10);
    }
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE rule LIKE 'slow%'"
                             " AND resolved_ns IS NOT NULL"),
                     2);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery WHERE event = 'resolved'"), 4);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 4); // the newest event counts
    struct result *history = ask(&(struct query){.kind = QUERY_ALERTS,
                                                 .alert.list = QUERY_ALERTS_HISTORY,
                                                 .alert.rule = "slow",
                                                 .filter.by[QUERY_BY_HOST] = "host-a"});
    assert_int_equal(result_row_count(history), 1);
    assert_string_equal(result_get(history, 0, "state").text.bytes, "resolved");
    assert_string_equal(result_get(history, 0, "severity").text.bytes, "critical");
    assert_string_equal(result_get(history, 0, "unit").text.bytes, "ns");
    result_free(history);
    // A window has what fired in it: also what began before, or was resolved after.
    const int64_t fired_ns = integer("SELECT firing_ns FROM alert WHERE rule = 'slow'");
    const int64_t resolved_ns = integer("SELECT resolved_ns FROM alert WHERE rule = 'slow'");
    const struct {
        int64_t since_ns, until_ns;
        size_t count;
    } windows[] = {{fired_ns - 2, fired_ns, 0},
                   {fired_ns, fired_ns + 1, 1},
                   {fired_ns + 1, resolved_ns, 1},
                   {resolved_ns, 0, 1},
                   {resolved_ns + 1, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        history = ask(&(struct query){.kind = QUERY_ALERTS,
                                      .alert.list = QUERY_ALERTS_HISTORY,
                                      .alert.rule = "slow",
                                      .filter.since_ns = windows[i].since_ns,
                                      .filter.until_ns = windows[i].until_ns});
        assert_int_equal(result_row_count(history), windows[i].count);
        result_free(history);
    }
}

// A rule that is gone ends its alerts; a pending one leaves nothing.  The rule of an alert stands
// beside it as it is in the file.
TEST_CASE(test_rule_gone)
{
    struct query query = {.kind = QUERY_ALERTS, .alert.rule = "slower"};
    read_rules(rules);
    request(1, 5 * SECOND);
    pass_after(0);
    struct result *open = ask(&query);
    assert_true(result_is(open, 0, "rule_text", "avg ttft_ns by model,host over 1m when max > 4s"));
    result_free(open);
    read_rules("hook pager: command /bin/true\n");
    pass_after(10);
    query.alert.list = QUERY_ALERTS_HISTORY;
    struct result *over = ask(&query);
    assert_int_equal(result_get(over, 0, "rule_text").type, VALUE_NULL);
    result_free(over);
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE rule = 'slow'"), 0);
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE rule = 'slower'"
                             " AND resolved_ns IS NOT NULL"),
                     1);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery WHERE event = 'resolved'"), 1);
}

static struct result *edit(struct query query)
{
    struct error err;
    struct result *answer = NULL;
    query.kind = QUERY_ALERT_EDIT;
    assert_int_equal(query_check(&query, &err), STATUS_OK);
    const enum status status = alert_table_edit(db, &query, "user 1", &answer, &err);
    return status == STATUS_OK ? answer : NULL;
}

// What is silenced is not told, until the silence ends while it still fires.
TEST_CASE(test_silence)
{
    read_rules(rules);
    struct result *answer = edit((struct query){
        .filter.by[QUERY_BY_HOST] = HOSTILE,
        .alert = {.edit = QUERY_ALERT_SILENCE, .for_ns = INT64_MAX, .text = "we know"}});
    assert_non_null(answer);
    const int64_t id = result_integer(answer, 0, "id", 0);
    result_free(answer);
    execf("UPDATE alert_silence SET since_ns = %lld", (long long)START_NS);
    request(1, 5 * SECOND);
    request(2, 5 * SECOND);
    pass_after(0);
    assert_int_equal(open_in("slower", ALERT_FIRING), 2);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 2);
    struct result *open = ask(&(struct query){
        .kind = QUERY_ALERTS, .alert.rule = "slower", .filter.by[QUERY_BY_HOST] = HOSTILE});
    assert_int_equal(result_row_count(open), 1);
    assert_string_equal(result_get(open, 0, "host").text.bytes, HOSTILE);
    result_free(open);
    assert_null(edit((struct query){.alert = {.edit = QUERY_ALERT_UNSILENCE, .id = id + 1}}));
    result_free(edit((struct query){.alert = {.edit = QUERY_ALERT_UNSILENCE, .id = id}}));
    execf("UPDATE alert_silence SET until_ns = %lld", (long long)now_ns + 1);
    pass_after(10);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 4);
}

// What becomes critical during a silence is told when the silence ends.
TEST_CASE(test_escalation_in_a_silence)
{
    read_rules(rules);
    request(1, 5 * SECOND);
    pass_after(0);
    pass_after(30);
    exec("DELETE FROM alert_delivery"); // the warning was told
    assert_int_equal(integer("SELECT is_told FROM alert WHERE rule = 'slow'"), 1);
    execf("INSERT INTO alert_silence VALUES(1, 'slow', NULL, NULL, NULL, 0, %lld, 'u', '')",
          (long long)now_ns + 45 * SECOND);
    for (int i = 0; i < 4; i++) {
        request(1, 7 * SECOND);
        pass_after(10);
    }
    assert_int_equal(integer("SELECT severity FROM alert WHERE rule = 'slow'"), ALERT_CRITICAL);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 0);
    pass_after(10);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery WHERE event = 'escalated'"), 2);
    assert_int_equal(integer("SELECT is_told FROM alert WHERE rule = 'slow'"), 2);
    exec("DELETE FROM alert_delivery");
    pass_after(10);
    assert_int_equal(integer("SELECT count(*) FROM alert_delivery"), 0); // once
}

// A typing error would silence nothing.
TEST_CASE(test_silence_of_an_unknown_rule)
{
    struct error err;
    struct result *answer = NULL;
    struct query query = {.kind = QUERY_ALERT_EDIT,
                          .alert = {.edit = QUERY_ALERT_SILENCE, .for_ns = 1, .rule = "slowerr"}};
    read_rules(rules);
    assert_int_equal(alert_table_edit(db, &query, "user 1", &answer, &err), STATUS_NO_DATA);
    assert_string_equal(err.text, "no rule is called \"slowerr\" (did you mean slower?)");
    (void)snprintf(query.alert.rule, sizeof query.alert.rule, "slower");
    result_free(edit(query));
    assert_int_equal(integer("SELECT count(*) FROM alert_silence"), 1);
}

static void expect_trouble(size_t rows, const char *kind, const char *name, const char *words)
{
    struct result *trouble =
        ask(&(struct query){.kind = QUERY_ALERTS, .alert.list = QUERY_ALERTS_TROUBLE});
    assert_int_equal(result_row_count(trouble), rows);
    for (size_t i = 0; i < rows; i++) {
        if (strcmp(result_get(trouble, i, "kind").text.bytes, kind) != 0)
            continue;
        if (name)
            assert_string_equal(result_get(trouble, i, "name").text.bytes, name);
        assert_non_null(strstr(result_get(trouble, i, "text").text.bytes, words));
    }
    result_free(trouble);
}

// Each read is a turn.  The alerts of a rule that cannot be read stay for a minute, then they have
// no data, until it can be read again.
TEST_CASE(test_unreadable_rule)
{
    static const char hide[] =
        "PRAGMA legacy_alter_table = ON; ALTER TABLE inference RENAME TO hidden";
    read_rules(rules);
    request(1, 5 * SECOND);
    pass_after(0);
    assert_int_equal(turns_begun, 21); // the alerts, 18 reads of 20 rules, hosts, a cause
    assert_int_equal(turns_ended, turns_begun);
    expect_trouble(0, "", NULL, "");
    exec(hide);
    pass_after(30);
    assert_int_equal(open_in("slower", ALERT_FIRING), 1);
    assert_int_equal(open_in("slow", ALERT_PENDING), 1);
    exec("ALTER TABLE hidden RENAME TO inference");
    request(1, 5 * SECOND);
    pass_after(30);
    expect_trouble(0, "", NULL, "");
    exec(hide);
    pass_unless(10, true); // what is not saved is saved by the next pass
    pass_after(59);
    expect_trouble(6, "rule", NULL, "no such table");
    assert_int_equal(open_in("slower", ALERT_FIRING), 1);
    pass_after(1);
    assert_int_equal(open_in("slower", ALERT_NO_DATA), 1);
    assert_int_equal(open_in("slow", ALERT_NO_DATA), 1);
    expect_trouble(6, "rule", NULL, "no such table");
    exec("ALTER TABLE hidden RENAME TO inference");
    request(1, 5 * SECOND);
    pass_unless(1, true);
    pass_after(1);
    assert_int_equal(open_in("slower", ALERT_FIRING), 1);
    expect_trouble(0, "", NULL, "");
}

// Rules that differ in their conditions alone are read once; any other difference is another read.
TEST_CASE(test_shared_reads)
{
    static const struct {
        const char *rule;
        unsigned reads; // beside those of the built-in rules
    } cases[] = {
        {"avg ttft_ns by model,host over 1m when max > 9s", 1},
        {"avg ttft_ns by model,host over 1m when p50 > 9s for 1m critical 12s clear 2s", 1},
        {"avg ttft_ns by model,host over 1m when count > 9 least 5", 1},
        {"avg ttft_ns by model,host over 2m when max > 9s", 2},
        {"avg ttft_ns by model over 1m when max > 9s", 3},
        {"avg ttft_ns by model,host where model=m over 1m when max > 9s", 4},
        {"avg e2e_ns by model,host over 1m when max > 9s", 5},
    };
    char text[2048] = "";
    size_t used = 0;
    request(1, 5 * SECOND);
    read_rules(text);
    pass_after(1);
    const unsigned others = turns_begun;
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "alert a%u: %s\n", i, cases[i].rule);
        read_rules(text);
        pass_after(1);
        assert_int_equal(turns_begun - others, cases[i].reads);
    }
}

TEST_CASE(test_trouble)
{
    struct error err;
    read_rules(rules);
    expect_ok(alert_config_note_file(db, "f: line 3: column 7: it's wrong", &err), &err);
    expect_trouble(1, "file", NULL, "line 3: column 7: it's wrong");
    execf("UPDATE run SET heard_ns = %lld", (long long)now_ns);
    exec("INSERT INTO alert_delivery VALUES(1, 1, 'pager', 'firing', 0, 2, 'no answer', 5)");
    expect_trouble(2, "hook", "pager", "no answer");
    execf("UPDATE alert_config SET dropped = 3, error = 'gone', since_ns = %lld"
          " WHERE name = 'chat'",
          (long long)now_ns - 3600 * SECOND);
    expect_trouble(3, "file", NULL, "wrong");
    execf("UPDATE alert_config SET since_ns = %lld WHERE name = 'chat'",
          (long long)now_ns - 25 * 3600 * SECOND);
    exec("DELETE FROM alert_delivery");
    expect_trouble(1, "file", NULL, "wrong");
    read_rules(rules);
    expect_trouble(0, "", NULL, "");
    assert_int_equal(integer("SELECT dropped FROM alert_config WHERE name = 'chat'"), 3);
}

// The space of the disk is sampled once a minute, in the store: nothing is lost at a restart.
TEST_CASE(test_disk_samples)
{
    read_rules(rules);
    for (int i = 0; i < 13; i++)
        pass_after(15);
    assert_int_equal(integer("SELECT count(*) FROM disk_sample WHERE free_bytes > 0"), 4);
    now_ns -= 3600 * SECOND; // a clock that was set back
    pass_after(0);
    assert_int_equal(integer("SELECT count(*) FROM disk_sample"), 1);
    pass_after(33 * 86400);
    assert_int_equal(integer("SELECT count(*) FROM disk_sample"), 1);
}

// An alert that fires carries the first cause that WHY finds of its model or host.
TEST_CASE(test_cause)
{
    read_rules("alert slow: avg ttft_ns by model,host over 1m when max > 3s for 30s\n"
               "alert slower: avg ttft_ns by model,host over 1m when max > 4s\n"
               "alert here: avg ttft_ns where host=host-a over 1m when max > 4s\n"
               "alert any_host: avg ttft_ns by model over 1m when max > 4s\n"
               "alert anywhere: avg ttft_ns over 1m when max > 4s\n");
    request(1, 5 * SECOND);
    exec("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
         " SELECT 1, 0, 1, started_ns, received_ns, model, 'gguf' FROM inference");
    execf("UPDATE run SET owner = 1, \"end\" = iif(run = 1, 2, 0), heard_ns = %lld,"
          " ended_ns = iif(run = 1, %lld, NULL)",
          (long long)now_ns + 20 * SECOND, (long long)now_ns);
    pass_after(0);
    assert_int_equal(integer("SELECT count(why) FROM alert WHERE rule = 'slow'"), 0); // pending
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE rule = 'anywhere'"), 1);
    assert_int_equal(integer("SELECT count(why) FROM alert WHERE rule = 'anywhere'"), 0);
    assert_int_equal(integer("SELECT count(DISTINCT why) FROM alert"), 2);
    assert_int_equal(integer("SELECT why LIKE 'host-a: %' FROM alert WHERE rule = 'any_host'"), 1);
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE why IS NOT NULL"
                             " AND rule IN ('slower', 'here')"),
                     2);
    // That a process was killed is no cause of itself.
    assert_int_equal(integer("SELECT count(*) - count(why) FROM alert WHERE rule = 'run_killed'"),
                     1);
    struct result *open = ask(&(struct query){.kind = QUERY_ALERTS, .alert.rule = "slower"});
    struct result *causes = ask(&(struct query){.kind = QUERY_WHY});
    assert_int_equal(result_row_count(open), 1);
    // The text of an alert stays, and has no times that go on.
    assert_string_equal(result_get(open, 0, "why").text.bytes, "a process ended without closing");
    assert_string_equal(result_get(causes, 0, "text").text.bytes,
                        "a process ended without closing 20.0s ago");
    result_free(causes);
    result_free(open);
}

static void device_event(const char *name, int64_t code, const char *detail)
{
    struct record record;
    record_init(&record, RECORD_KIND_EVENT, now_ns);
    record_set_name(&record, EVENT_EVENT, rows_name(db, name));
    record_set_name(&record, EVENT_DEVICE, rows_name(db, "cuda:6"));
    record_set_int(&record, EVENT_DURATION_NS, 0);
    record_set_int(&record, EVENT_CODE, code);
    if (detail)
        record_set_text(&record, EVENT_DETAIL, detail, strlen(detail));
    (void)rows_add(db, 1, &record);
}

// Of two troubles of a device each may be the cause of the other's alert, but not of its own.
TEST_CASE(test_own_condition_is_no_cause)
{
    struct record record;
    read_rules("alert full: avg device_sample.memory_used_ratio by host,device over 1m"
               " when mean > 95%\n");
    execf("UPDATE run SET owner = 1, \"end\" = 0, heard_ns = %lld", (long long)now_ns);
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, now_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, rows_name(db, "cuda:6"));
    record_set_int(&record, DEVICE_SAMPLE_MEMORY_USED, 99);
    record_set_int(&record, DEVICE_SAMPLE_MEMORY_TOTAL, 100);
    (void)rows_add(db, 1, &record);
    device_event("xid", 48, NULL);
    pass_after(0);
    assert_int_equal(integer("SELECT why LIKE '%(XID)%' FROM alert WHERE rule = 'full'"), 1);
    assert_int_equal(integer("SELECT why LIKE '%memory was full%' FROM alert"
                             " WHERE rule = 'device_xid'"),
                     1);
}

// An uncorrected memory error is the cause of the XID that reports it, and not the other way round.
TEST_CASE(test_causes_go_one_way)
{
    read_rules("disable run_killed\n");
    execf("UPDATE run SET owner = 1, \"end\" = 0, heard_ns = %lld", (long long)now_ns);
    device_event("xid", 48, NULL);
    device_event("ecc_uncorrected", 2, NULL);
    execf("UPDATE event SET duration_ns = NULL WHERE code = 2");
    pass_after(0);
    assert_int_equal(integer("SELECT why LIKE '%uncorrected memory error%' FROM alert"
                             " WHERE rule = 'device_xid'"),
                     1);
    assert_int_equal(integer("SELECT why IS NULL FROM alert WHERE rule = 'ecc_uncorrected'"), 1);
}

// What happened after an alert fired, or a moment some time before, is no cause of it.
TEST_CASE(test_causes_are_of_the_time)
{
    static const struct {
        bool is_error;        // an XID; else a process ended
        int at_s, until_s;    // when, and when a cause is looked for: after the alert fired
        const char *why;      // NULL: none
        const char *replaced; // the rule's window, where run 2 replaced the process; else 1h
    } cases[] = {{true, -30, 0, "%(XID)%", NULL},     {true, -240, 0, NULL, NULL},
                 {true, 30, 60, NULL, NULL},          {false, -240, 0, "%ended%", NULL},
                 {false, 60, 120, NULL, NULL},        {false, -240, 900, NULL, NULL},
                 {false, -90, 0, "%replaced%", "2m"}, {false, -240, 0, NULL, "2m"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        exec("DELETE FROM alert; DELETE FROM event; DELETE FROM inference; DELETE FROM model");
        now_ns += 7200 * SECOND;
        const int64_t fired_ns = now_ns, at_ns = fired_ns + cases[i].at_s * SECOND;
        request(1, 5 * SECOND);
        exec("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
             " SELECT 1, 0, 1, started_ns, received_ns, model, 'gguf' FROM inference");
        for (int is_after = 0; is_after < 2; is_after++) { // with another collector
            read_rules(
                format_text("disable run_killed\ndisable device_xid\n"
                            "alert slower: avg ttft_ns by model,host over %s when max > 4s\n",
                            cases[i].replaced ? cases[i].replaced : "1h"));
            now_ns = at_ns;
            if (cases[i].is_error && is_after == (cases[i].at_s > 0))
                device_event("xid", 48, NULL);
            now_ns = fired_ns + is_after * cases[i].until_s * SECOND;
            execf("UPDATE run SET owner = 1, heard_ns = %lld, ended_ns = nullif(%lld, 0),"
                  " \"end\" = iif(%d, 2, 0)",
                  (long long)now_ns, cases[i].is_error ? 0 : (long long)at_ns,
                  !cases[i].is_error && at_ns <= now_ns);
            if (cases[i].replaced) {
                execf("UPDATE run SET host = (SELECT host FROM run WHERE run = 1), \"end\" = 0,"
                      " started_ns = %lld WHERE run = 2",
                      (long long)at_ns + SECOND);
                exec("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
                     " SELECT 2, 0, 1, started_ns, received_ns, name, format FROM model"
                     " WHERE NOT EXISTS (SELECT 1 FROM model WHERE run = 2)");
            }
            exec("UPDATE alert SET why = NULL");
            pass_after(0);
        }
        const char *sql =
            format_text("SELECT count(*) FROM alert WHERE rule = 'slower' AND %s",
                        cases[i].why ? format_text("why LIKE '%s'", cases[i].why) : "why IS NULL");
        if (integer(sql) != 1)
            fail_msg("case %zu: no alert has %s", i, cases[i].why ? cases[i].why : "no cause");
    }
}

// An alert of a device says what its newest event tells: which XID, why clocks are reduced, lanes.
TEST_CASE(test_reason)
{
    struct record record;
    read_rules("disable run_killed\n"
               "alert slow: avg device_sample.throttled_ratio by host,device over 1m"
               " when mean > 10%\n"
               "alert narrow: avg pcie_narrow_ratio over 1m when mean > 10%\n");
    execf("UPDATE run SET owner = 1, \"end\" = 0, heard_ns = %lld, received_ns = %lld",
          (long long)now_ns, (long long)now_ns - 60 * SECOND);
    record_init(&record, RECORD_KIND_DEVICE_SAMPLE, now_ns);
    record_set_name(&record, DEVICE_SAMPLE_DEVICE, rows_name(db, "cuda:6"));
    record_set_int(&record, DEVICE_SAMPLE_THROTTLE, 0x20);
    (void)rows_add(db, 1, &record);
    now_ns -= 30 * SECOND;
    device_event("throttling", 0x04, "power cap");
    device_event("pcie_downgrade", 8, "8 of 16 lanes");
    exec("UPDATE event SET duration_ns = NULL WHERE code = 8");
    now_ns += 30 * SECOND;
    device_event("throttling", 0x20, "software thermal");
    device_event("xid", 79, NULL);
    pass_after(0);
    static const char *const whys[][2] = {{"slow", "throttling: software thermal; %"},
                                          {"narrow", "PCIe downgrade: 8 of 16 lanes; %"},
                                          {"device_xid", "XID: 79; %best%"}};
    for (size_t i = 0; i < COUNT_OF(whys); i++)
        if (integer(format_text("SELECT count(*) FROM alert WHERE rule = '%s' AND why LIKE '%s'",
                                whys[i][0], whys[i][1])) != 1)
            fail_msg("%s: no alert says %s", whys[i][0], whys[i][1]);
}

// What was imported of a host is not of the present, until the host itself is heard of.
TEST_CASE(test_imported)
{
    read_rules("disable run_killed\n"
               "alert slow: avg ttft_ns by model,host over 1m when max > 3s\n"
               "alert narrow: avg pcie_narrow_ratio over 1m when mean > 10%\n"
               "alert errors: avg xid_count over 1m when max > 0\n");
    for (int is_own = 0; is_own < 2; is_own++) {
        execf("UPDATE run SET owner = %d, \"end\" = 3, heard_ns = %lld WHERE run = 1", is_own,
              (long long)now_ns + 5 * SECOND);
        // Imported, too, of a collector whose clock is fast.
        rows_run(db, 90 + is_own, "host-a", START_NS, START_NS);
        execf("UPDATE run SET owner = 0, \"end\" = 3, heard_ns = %lld WHERE run >= 90",
              (long long)now_ns + 60 * SECOND);
        request(1, 5 * SECOND);
        device_event("xid", 79, NULL);
        device_event("pcie_downgrade", 8, "8 of 16 lanes");
        exec("UPDATE event SET duration_ns = NULL WHERE code = 8");
        pass_after(5);
        assert_int_equal(open_in("slow", ALERT_FIRING), is_own);
        assert_int_equal(open_in("narrow", ALERT_FIRING), is_own);
        assert_int_equal(open_in("errors", ALERT_FIRING), is_own);
    }
}

// More alerts than a pass finds causes of: each has its cause soon, those that fired first before.
TEST_CASE(test_causes_of_many)
{
    read_rules("disable run_killed\n"
               "alert slow: avg ttft_ns by model,host over 1m when max > 3s\n");
    request(1, SECOND);
    exec("INSERT INTO model(run, stream, number, started_ns, received_ns, name, format)"
         " SELECT 1, 0, 1, started_ns, received_ns, model, 'gguf' FROM inference");
    for (int i = 0; i < 30; i++) {
        rows_run(db, 10 + i, format_text("h%02d", i), START_NS, START_NS);
        // Of every third host there is no cause.
        execf("UPDATE run SET owner = 1, \"end\" = iif(%d, 2, 0), ended_ns = %lld WHERE run = %d",
              i % 3, (long long)now_ns, 10 + i);
        if (i > 0)
            request(10 + i, 5 * SECOND);
    }
    for (int i = 0; i < 5; i++) {
        execf("UPDATE run SET heard_ns = %lld", (long long)now_ns + SECOND);
        pass_after(1);
        if (i == 0) // the last one to fire
            request(10, 5 * SECOND);
        if (i == 1)
            assert_true(integer("SELECT max(iif(why IS NULL, 0, id)) - min(id) FROM alert") < 16);
    }
    assert_int_equal(integer("SELECT count(*) FROM alert WHERE rule = 'slow' AND state = 2"), 30);
    assert_int_equal(integer("SELECT count(why) FROM alert WHERE rule = 'slow'"), 20);
    pass_after(1);
    assert_int_equal(turns_begun, 18); // the alerts and 17 reads: nothing is looked for again
    for (int i = 0; i < 3; i++)
        pass_after(i ? 1 : -60);
    assert_int_equal(turns_begun, 18); // nor again and again after the clock was set back
}

TEST_CASE(test_acknowledge)
{
    read_rules(rules);
    request(1, 5 * SECOND);
    pass_after(0);
    const int64_t id = integer("SELECT id FROM alert WHERE rule = 'slower'");
    result_free(edit((struct query){.alert = {.id = id, .text = "it's \"me\""}}));
    pass_after(10); // does not lose it
    struct result *open = ask(&(struct query){.kind = QUERY_ALERTS, .alert.rule = "slower"});
    assert_string_equal(result_get(open, 0, "acknowledged_text").text.bytes, "it's \"me\"");
    assert_string_equal(result_get(open, 0, "acknowledged_by").text.bytes, "user 1");
    result_free(open);
    result_free(edit((struct query){.alert = {.edit = QUERY_ALERT_UNACK, .id = id}}));
    assert_int_equal(integer("SELECT count(acknowledged_by) FROM alert"), 0);
    assert_null(edit((struct query){.alert = {.id = 4711}}));
}

TEST_CASE(test_try)
{
    struct query query = {.kind = QUERY_ALERT_TRY,
                          .alert.text = "alert x: avg ttft_ns by host over 1m when max > 3s"};
    request(1, 5 * SECOND);
    request(2, SECOND);
    execf("UPDATE run SET heard_ns = %lld", (long long)now_ns + SECOND);
    struct result *answer = ask(&query);
    assert_int_equal(result_row_count(answer), 2);
    unsigned firing = 0;
    for (size_t i = 0; i < 2; i++)
        firing += result_get(answer, i, "severity").type == VALUE_TEXT;
    assert_int_equal(firing, 1);
    result_free(answer);
    (void)snprintf(query.alert.text, sizeof query.alert.text, "alert x: avg ttft over 1m");
    expect_error(&query, STATUS_INVALID, "ttft");
    query.alert.text[0] = '\0';
    expect_error(&query, STATUS_INVALID, "no rule");
}

TEST_MAIN_EACH(set_up, tear_down, test_life, test_rule_gone, test_silence,
               test_escalation_in_a_silence, test_silence_of_an_unknown_rule, test_unreadable_rule,
               test_shared_reads, test_trouble, test_disk_samples, test_cause,
               test_own_condition_is_no_cause, test_causes_go_one_way, test_causes_are_of_the_time,
               test_reason, test_imported, test_causes_of_many, test_acknowledge, test_try)
