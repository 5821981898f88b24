// Files of alerts: rules, hooks, and what is wrong with them.
#include "common/core/alert/alert_file.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/test.h"

#define SECOND 1e9

static const struct {
    const char *line;
    double warning, critical, clear, window_s, for_s;
    enum alert_stat stat;
    bool is_below;
    uint64_t least;
} good[] = {
    {"avg ttft_ns by model,host over 5m when p95 > 3s for 2m critical 4.5s", 3e9, 4.5e9, 2.7e9, 300,
     120, ALERT_STAT_P95, false, 1},
    {"avg tokens_per_second over 10s when p50 < 10t/s critical 5 clear 12 least 10", 10, 5, 12, 10,
     0, ALERT_STAT_P50, true, 10},
    {"avg load.model_bytes over 1h when max > 8192MB clear 1MB", 8192.0 * 1048576, NAN, 1048576,
     3600, 0, ALERT_STAT_MAX, false, 1},
    {"avg error_ratio by model when mean > 5% over 1m", 0.05, NAN, 0.045, 60, 0, ALERT_STAT_MEAN,
     false, 1},
    {"avg cpu_ratio when mean > 300% over 1m", 3, NAN, 2.7, 60, 0, ALERT_STAT_MEAN, false, 1},
    {"avg e2e_ns where model=\"a b\" and host=h when count > 100 over 1m critical 1000 for 7d", 100,
     1000, 90, 60, 604800, ALERT_STAT_COUNT, false, 1},
    {"avg slowdown_margin_celsius where host=a over 1m when min < -3C clear 2", -3, NAN, 2, 60, 0,
     ALERT_STAT_MIN, true, 1},
    {"avg goodput_per_second slo ttft=1s over 1m when mean < 2/s", 2, NAN, 2.2, 60, 0,
     ALERT_STAT_MEAN, true, 1},
    {"avg disk_full_in_ns over 31d when min < 1d", 86400 * SECOND, NAN, 95040 * SECOND,
     31 * 86400.0, 0, ALERT_STAT_MIN, true, 1},
    {"avg device_sample.sm_clock_hz over 1m when max < 1GHz", 1e9, NAN, 1.1e9, 60, 0,
     ALERT_STAT_MAX, true, 1},
};

static const struct {
    const char *line, *words;
} bad[] = {
    {"alert a: avg ttft_nss over 5m when p95 > 3s",
     "column 14: unknown metric \"ttft_nss\" (did you mean ttft_ns?)"},
    {"alert a: avg ttft_ns over 5m when p95 > 100 ms", "unknown word \"ms\" (write 100ms)"},
    {"alert a: avg ttft_ns over 5m when p95 > 100ms ms", "unknown word \"ms\" (one of"},
    {"alert a: avg (avg ttft_ns) over 5m when p95 > 3s", "column 14: unknown metric \"(avg\""},
    {"alert a: avg ((((((((((((ttft_ns)))))))))))) over 5m when p95 > 3s", "unknown metric"},
    {"alert a: avg avg ttft_ns over 5m when p95 > 3s", "unknown metric \"avg\""},
    {"alert a: avg ttft_ns by model,model over 5m when p95 > 3s", "twice"},
    {"alert a: avg ttft_ns over 5m when p95 > 3s when p95 > 3s", "when is given twice"},
    {"alert a: avg ttft_ns over 5m when p95 > 3s + 4s", "column 44: "},
    {"alert a: avg host_silent over 5m when max > 3s", "(did you mean host_silent_ns?)"},
    {"alert a: avg zzzzzzzzzz over 5m when max > 3s", "unknown metric \"zzzzzzzzzz\""},
    {"alert a: avg ttft_ns over 5m when p95 > 3t/s",
     "column 41: \"3t/s\" is no value in ns (a number with ms or s)"},
    {"alert a: avg ttft_ns over 5m when p95 > nan", "\"nan\" is no value in ns"},
    {"alert a: avg error_ratio over 5m when mean > nan", "\"nan\" is no value in ratio"},
    {"alert a: avg error_ratio over 5m when mean > inf", "\"inf\" is no value"},
    {"alert a: avg error_ratio over 5m when mean > 1e999", "\"1e999\" is no value"},
    {"alert a: avg error_ratio over 5m when mean > 5s", "\"5s\" is no value in ratio"},
    {"alert a: avg e2e_ns over 5m when count > 5s", "\"5s\" is no value in count"},
    {"alert a: avg host_memory_bytes over 5m when max > unlimited", "\"unlimited\" is no value"},
    {"alert a: avg ttft_ns over 5m when p95>3s", "column 35: blanks are missing around < or >"},
    {"alert a: avg ttft_ns over 5m when p95 = 3s", "> or < is missing before \"=\""},
    {"alert a: avg ttft_ns over 5m when p94 > 3s", "unknown statistic \"p94\" (did you mean p90?)"},
    {"alert a: avg ttft_ns over 5m when p95 >", "a value is missing"},
    {"alert a: avg ttft_ns over 5m when p95 > 3s critical 3s",
     "column 53: critical must be above the threshold"},
    {"alert a: avg ttft_ns over 5m when p95 < 3s critical 4s", "critical must be below"},
    {"alert a: avg ttft_ns over 5m when p95 > 3s clear 4s", "clear must not be above"},
    {"alert a: avg ttft_ns over 5m critical 4s when p95 > 3s",
     "\"when STAT > VALUE\" is missing before \"4s\""},
    {"alert a: avg ttft_ns by run over 5m when p95 > 3s", "not by run"},
    {"alert a: avg host_silent_ns by host over 5m when max > 3s", "host_silent_ns takes no by"},
    {"alert a: avg host_silent_ns where model=x over 5m when max > 3s",
     "host_silent_ns has no model"},
    {"alert a: avg host_silent_ns over 5m when count > 3", "one value of this metric: say max"},
    {"alert a: avg error_ratio over 5m when p95 > 5%", "one value of this metric: say mean"},
    {"alert a: avg error_ratio over 5m when mean > 5% since 1h", "avg takes no since"},
    {"alert a: avg error_ratio over 5m when mean > 5% step 1h", "avg takes no step"},
    {"alert a: avg error_ratio over 5m over 6m when mean > 5%", "over is given twice"},
    {"alert a: avg error_ratio ovr 5m when mean > 5%", "(did you mean over?)"},
    {"alert a: avg error_ratio over 5m when mean > 5% least 0", "least: 0 is outside 1 to"},
    {"alert a: avg ttft_ns over 1s when p95 > 3s", "over: the time must be from 10.0s to 744h 00m"},
    {"alert a: avg ttft_ns over 5m when p95 > 3s for 8d", "for: the time must be from"},
    {"alert a: avg ttft_ns when p95 > 3s", "\"over DURATION\" is missing"},
    {"alert a: avg ttft_ns over 5m", "\"when STAT > VALUE\" is missing"},
    {"alert a: summary over 5m when mean > 5%", "an alert is of avg METRIC, not of summary"},
    {"alert a: avg memory_used_ratio over 1m when max > 3", "several kinds have the metric"},
    {"alert a avg ttft_ns", "column 7: the name must end with a colon"},
    {"alert \"\": avg ttft_ns", "the name must end with a colon"},
    {"alert a/b: avg ttft_ns", "a name has up to 63 letters"},
    {"alert : avg ttft_ns", "a name has up to 63 letters"},
    {"alert", "the name is missing"},
    {"alrt x", "column 1: unknown word \"alrt\" (did you mean alert?)"},
    {"alert a: avg ttft_ns over \"5m", "column 27: "},
    {"disable slow_tokns", "unknown built-in rule \"slow_tokns\" (did you mean slow_tokens?)"},
    {"disable slow_tokens now", "disable takes one name"},
    {"disable slow_tokens\ndisable slow_tokens", "line 2: column 9: unknown built-in rule"},
    {"hook h: command mail", "a command needs an absolute path"},
    {"hook h: command", "a command needs an absolute path"},
    {"hook h: webhook ftp://x", "a webhook needs a URL"},
    {"hook h: webhook http://", "a webhook needs a URL"},
    {"hook h: webhook https:///x", "a webhook needs a URL"},
    {"hook h: webhook http://x:", "a webhook needs a URL"},
    {"hook h: webhook http://x:65536/", "a webhook needs a URL"},
    {"hook h: webhook http://x:8y", "a webhook needs a URL"},
    {"hook h: webhook http://[::1", "a webhook needs a URL"},
    {"hook h: webhook http://user@:80/", "a webhook needs a URL"},
    {"hook h: webhook \"http://x y\"", "a webhook needs a URL"},
    {"hook h: webhook http://x\"\\n\"y", "a webhook needs a URL"},
    {"hook h: webhook http://x as slak", "unknown format \"slak\" (did you mean slack?)"},
    {"hook h: webhook http://x slack", "only \"as FORMAT\" may follow"},
    {"hook h: webhook http://x as slack 1", "nothing may follow the format"},
    {"hook h: wbhook http://x", "unknown kind of hook \"wbhook\" (did you mean webhook?)"},
    {"hook h: command /a\nhook h: command /b", "line 2: column 6: the name h is given twice"},
    {"alert a: avg ttft_ns over 5m when p95 > 3s\nalert a: avg ttft_ns over 5m when p95 > 3s",
     "line 2: column 7: the name a is given twice (first in line 1)"},
    {"alert a\033: x", "a name has up to"},
};

static struct alert_file read_file(const char *text)
{
    struct alert_file file;
    struct error err = {0};
    if (alert_file_read(&file, text, strlen(text), &err) != STATUS_OK)
        fail_msg("%s: %s", text, err.text);
    return file;
}

// The rule with this name, or one without a name.
static const struct alert_rule *find(const struct alert_file *file, const char *name)
{
    static const struct alert_rule none;
    for (size_t i = 0; i < file->rule_count; i++)
        if (strcmp(file->rules[i].name, name) == 0)
            return &file->rules[i];
    return &none;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * fabs(b);
}

TEST_CASE(test_rules)
{
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        char text[ALERT_TEXT_SIZE];
        (void)snprintf(text, sizeof text, "# comment\n\n  alert r: %s", good[i].line);
        struct alert_file file = read_file(text);
        const struct alert_rule *rule = &file.rules[file.rule_count - 1];
        if (!same(rule->warning, good[i].warning) || !same(rule->critical, good[i].critical) ||
            !same(rule->clear, good[i].clear) ||
            !same((double)rule->window_ns, good[i].window_s * SECOND) ||
            !same((double)rule->for_ns, good[i].for_s * SECOND) || rule->stat != good[i].stat ||
            rule->is_below != good[i].is_below || rule->least != good[i].least)
            fail_msg("%s: %g %g %g", good[i].line, rule->warning, rule->critical, rule->clear);
        assert_string_equal(rule->name, "r");
        assert_string_equal(rule->text, good[i].line);
        assert_int_equal(rule->line, 3);
        assert_false(rule->is_builtin);
        assert_int_equal(rule->query.kind, QUERY_AVERAGE);
        alert_file_deinit(&file);
    }
}

TEST_CASE(test_bad_lines)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct alert_file file;
        struct error err = {0};
        assert_int_equal(alert_file_read(&file, bad[i].line, strlen(bad[i].line), &err),
                         STATUS_INVALID);
        if (!strstr(err.text, bad[i].words) || strncmp(err.text, "line ", 5) != 0)
            fail_msg("%s: \"%s\"", bad[i].line, err.text);
        alert_file_deinit(&file);
    }
}

TEST_CASE(test_builtin_rules)
{
    struct alert_file file = read_file("");
    assert_true(file.rule_count >= 16);
    for (size_t i = 0; i < file.rule_count; i++) {
        assert_true(file.rules[i].is_builtin);
        assert_int_equal(file.rules[i].line, 0);
    }
    const struct alert_rule *silent = find(&file, "host_silent");
    assert_int_equal(silent->source, ALERT_SOURCE_HOST_SILENT);
    assert_int_equal(silent->query.group_count, 1);
    assert_int_equal(silent->query.group_by[0], QUERY_BY_HOST);
    assert_string_equal(silent->query.metric, "host_silent_ns");
    assert_true(find(&file, "slow_load")->is_rare);
    const size_t count = file.rule_count;
    alert_file_deinit(&file);

    file = read_file("disable slow_load\r\n"
                     "alert slow_tokens: avg ttft_ns over 1m when max > 1s\n");
    assert_int_equal(file.rule_count, count - 1);
    assert_string_equal(find(&file, "slow_load")->name, "");
    assert_false(find(&file, "slow_tokens")->is_builtin);
    alert_file_deinit(&file);
}

TEST_CASE(test_hooks)
{
    struct alert_file file =
        read_file("hook a: command /usr/bin/mail -s \"a b\" --to=root,me x'y z' ''\n"
                  "hook b: webhook https://x.org/a?b=c,d as slack\n"
                  "hook c: webhook http://[::1]:9093/api/v2/alerts as alertmanager\n"
                  "hook d: webhook http://user:p@host:65535?x");
    static const char command[] = "/usr/bin/mail\0-s\0a b\0--to=root,me\0xy z\0";
    assert_int_equal(file.hook_count, 4);
    assert_int_equal(file.hooks[0].kind, ALERT_HOOK_COMMAND);
    assert_int_equal(file.hooks[0].word_count, 6);
    assert_memory_equal(file.hooks[0].target, command, sizeof command);
    assert_int_equal(file.hooks[1].kind, ALERT_HOOK_SLACK);
    assert_string_equal(file.hooks[1].target, "https://x.org/a?b=c,d");
    assert_int_equal(file.hooks[2].kind, ALERT_HOOK_ALERTMANAGER);
    assert_int_equal(file.hooks[3].kind, ALERT_HOOK_JSON);
    alert_file_deinit(&file);
}

// Lines and files that are too long, bytes that are no text, and too many rules.
TEST_CASE(test_bounds)
{
    enum { SIZE = ALERT_FILE_MAX + 2 };
    struct alert_file file;
    struct error err = {0};
    char *text = malloc(SIZE);
    assert_non_null(text);
    memset(text, '\n', SIZE);
    assert_int_equal(alert_file_read(&file, text, ALERT_FILE_MAX, &err), STATUS_OK);
    alert_file_deinit(&file);
    assert_int_equal(alert_file_read(&file, text, SIZE, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "the file has more than"));
    alert_file_deinit(&file);
    memset(text, '#', ALERT_TEXT_SIZE - 1);
    assert_int_equal(alert_file_read(&file, text, ALERT_TEXT_SIZE, &err), STATUS_OK);
    alert_file_deinit(&file);
    text[ALERT_TEXT_SIZE - 1] = '#';
    assert_int_equal(alert_file_read(&file, text, ALERT_TEXT_SIZE, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "line 1: the line has more than 1023 bytes"));
    alert_file_deinit(&file);
    text[5] = '\0';
    assert_int_equal(alert_file_read(&file, text, 10, &err), STATUS_INVALID);
    alert_file_deinit(&file);
    size_t used = 0;
    for (int i = 0; i < ALERT_RULES_MAX; i++)
        used += (size_t)snprintf(text + used, SIZE - used,
                                 "alert r%d: avg ttft_ns over 1m when max > 1s\n", i);
    assert_int_equal(alert_file_read(&file, text, used, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "too many rules"));
    alert_file_deinit(&file);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),         cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_builtin_rules), cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
