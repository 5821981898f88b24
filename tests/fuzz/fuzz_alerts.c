// Files of alerts under libFuzzer: first lines put together from the words that such files have,
// chosen by the bytes; then the bytes themselves.
#include "common/core/alert/alert_file.h"

#include <math.h>
#include <string.h>

#include "common/core/base/text.h"
#include "tests/fuzz/fuzz.h"

static const char *const words[] = {"alert",      "disable",
                                    "hook",       "a:",
                                    "b:",         "slow_tokens",
                                    "slow_load:", "avg",
                                    "ttft_ns",    "by",
                                    "model",      "host",
                                    ",",          "device",
                                    "where",      "=",
                                    "over",       "5m",
                                    "when",       "p95",
                                    "max",        "count",
                                    "mean",       ">",
                                    "<",          "3s",
                                    "nan",        "-3C",
                                    "5%",         "1e308",
                                    "8192MB",     "for",
                                    "critical",   "clear",
                                    "least",      "10",
                                    "\"x y",      "\"",
                                    "\\",         "#",
                                    "command",    "/bin/x",
                                    "webhook",    "as",
                                    "slack",      "https://h/?a=b",
                                    "xid_count",  "slo",
                                    "e2e=1s",     "\n",
                                    "\n",         "\r\n",
                                    "\t",         "disk_full_in_ns"};

enum { WORD_COUNT = sizeof words / sizeof *words };

static void check_rule(const struct alert_rule *rule)
{
    check(rule->name[0] && memchr(rule->name, '\0', ALERT_NAME_SIZE));
    check(memchr(rule->text, '\0', ALERT_TEXT_SIZE));
    check(rule->query.kind == QUERY_AVERAGE && rule->query.metric[0]);
    check(rule->query.group_count <= 3 && rule->query.step_ns == 0 && rule->query.limit == 0);
    check(rule->query.filter.since_ns == 0 && rule->query.filter.until_ns == 0);
    check(rule->window_ns > 0 && rule->for_ns >= 0 && rule->least > 0);
    check(isfinite(rule->warning) && isfinite(rule->clear));
    check(rule->is_below ? rule->clear >= rule->warning : rule->clear <= rule->warning);
    check(isnan(rule->critical) ||
          (rule->is_below ? rule->critical < rule->warning : rule->critical > rule->warning));
    check(rule->source != ALERT_SOURCE_NONE || query_check(&rule->query, NULL) == STATUS_OK);
    check(rule->is_builtin == (rule->line == 0));
}

static void check_hook(const struct alert_hook *hook)
{
    const char *word = hook->target;
    check(hook->name[0] && hook->word_count > 0 && hook->line > 0);
    for (unsigned i = 0; i < hook->word_count; i++) {
        const char *end = memchr(word, '\0', (size_t)(hook->target + ALERT_TEXT_SIZE - word));
        check(end != NULL);
        word = end + 1;
    }
    check(hook->kind == ALERT_HOOK_COMMAND ? hook->target[0] == '/'
                                           : strncmp(hook->target, "http", 4) == 0);
}

static void check_file(const char *text, size_t size)
{
    struct alert_file file;
    struct error err = {0};
    const enum status status = alert_file_read(&file, text, size, &err);
    check(status == STATUS_OK || status == STATUS_INVALID);
    check(file.rule_count <= ALERT_RULES_MAX && file.hook_count <= ALERT_HOOKS_MAX);
    if (status == STATUS_INVALID) {
        check(strncmp(err.text, "line ", 5) == 0);
        check(!strpbrk(err.text, "\x1b\n\r\t")); // what it quotes is escaped
        check(text_is_utf8(err.text, strlen(err.text)));
    }
    for (size_t i = 0; i < file.rule_count; i++)
        check_rule(&file.rules[i]);
    for (size_t i = 0; i < file.hook_count; i++)
        check_hook(&file.hooks[i]);
    alert_file_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[1 << 14];
    size_t used = 0;
    for (size_t i = 0; i < size && used + 32 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 words[data[i] % WORD_COUNT], data[i] < 200 ? " " : "");
    check_file(text, used);
    check_file((const char *)data, size);
    return 0;
}
