// inferstat alerts [ack|unack ID|silence [RULE]|unsilence ID|silences|trouble|rules [FILE]]
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/alert/alert_state.h"
#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"
#include "common/wire/rules_file.h"

// ---- Lists ----------------------------------------------------------------------------

static void add_notes(struct table *table, const struct result *result, size_t row)
{
    char who[QUERY_TEXT_SIZE], title[QUERY_TEXT_SIZE + 32];
    table_add_cell_below(table, "    ", result, row, "why");
    (void)snprintf(title, sizeof title, "    acknowledged by %s: ",
                   result_text(who, sizeof who, result, row, "acknowledged_by"));
    table_add_cell_below(table, title, result, row, "acknowledged_text");
    table_add_cell_below(table, "    silenced until ", result, row, "silenced_until_ns");
}

// "41.7 % in 5m": the value, and the window that it is of.
static char *value_text(const struct column *column, const struct result *result, size_t row)
{
    char rule[ALERT_TEXT_SIZE], window[QUERY_WINDOW_SIZE], *both = NULL;
    char *value = column_in_row_unit(column, result, row);
    (void)result_text(rule, sizeof rule, result, row, "rule_text");
    if (!value || !query_text_alert_window(window, rule)[0])
        return value;
    const int length = asprintf(&both, "%s in %s", value, window);
    free(value);
    return length < 0 ? NULL : both;
}

static bool fires(const struct result *result, size_t row)
{
    return result_is(result, row, "state", alert_state_text(ALERT_FIRING));
}

static bool is_silenced(const struct result *result, size_t row)
{
    return result_get(result, row, "silenced_until_ns").type != VALUE_NULL;
}

// The state; "silenced" of what fires, but calls no hook.
static char *state_text(const struct column *column, const struct result *result, size_t row)
{
    return fires(result, row) && is_silenced(result, row) ? strdup("silenced")
                                                          : column_value(column, result, row);
}

static const struct column alert_columns[] = {
    {"id", "id", COLUMN_RIGHT(0)},
    {"state", "state", COLUMN_LEFT(0), .cell = state_text},
    {"rule", "rule", COLUMN_LEFT(0)},
    {"model", "model", COLUMN_LEFT(0), .is_optional = true},
    {"host", "host", COLUMN_LEFT(0), .is_optional = true},
    {"device", "device", COLUMN_LEFT(0), .is_optional = true},
    {"value", "value", COLUMN_RIGHT(0), .cell = value_text},
    {"threshold", "threshold", COLUMN_RIGHT(0), .cell = column_in_row_unit},
    {"severity", "severity", COLUMN_LEFT(0)},
    {"since_ns", "since", COLUMN_LEFT(1)},
    {"resolved_ns", "resolved", COLUMN_LEFT(2), .is_optional = true},
    {"rule_text", "means", COLUMN_LEFT(3), .is_optional = true},
};
static const struct columns alert_view = {COLUMNS_OF(alert_columns), add_notes};

static const struct column silence_columns[] = {
    {"id", "id", COLUMN_RIGHT(0)},         {"rule", "rule", COLUMN_LEFT(0)},
    {"model", "model", COLUMN_LEFT(0)},    {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},  {"since_ns", "since", COLUMN_LEFT(2)},
    {"until_ns", "until", COLUMN_LEFT(0)}, {"silenced_by", "by", COLUMN_LEFT(1)},
    {"text", "why", COLUMN_LEFT(1)},
};
static const struct columns silence_view = {COLUMNS_OF(silence_columns), NULL};

static const struct column trouble_columns[] = {
    {"kind", "kind", COLUMN_LEFT(0)},
    {"name", "name", COLUMN_LEFT(0), .is_optional = true},
    {"since_ns", "since", COLUMN_LEFT(0)},
    {"waiting", "waiting", COLUMN_RIGHT(0), .is_optional = true},
    {"dropped", "given up", COLUMN_RIGHT(0), .is_optional = true},
    {"text", "why", COLUMN_LEFT(0)},
};
static const struct columns trouble_view = {COLUMNS_OF(trouble_columns), NULL};

// After a table of alerts for people: what keeps others from being seen or told.
static enum status add_trouble(struct cli *cli, struct error *err)
{
    const struct query query = {.kind = QUERY_ALERTS, .alert.list = QUERY_ALERTS_TROUBLE};
    struct result *result = NULL;
    if (cli->options.format != FORMAT_TEXT)
        return STATUS_OK;
    enum status status = cli_ask(cli, &query, &result, err);
    if (status == STATUS_INVALID) // of an older collector, which has no such list
        return STATUS_OK;
    if (status == STATUS_OK && result_row_count(result) > 0) {
        (void)fprintf(cli->env.out, "\ntrouble:\n");
        status = cli_print(cli, &trouble_view, result, err);
    }
    result_free(result);
    cli_note_file(cli);
    return status;
}

// The alerts that are open.  --check: status 1 while one fires that is not silenced.
static enum status show_open(struct cli *cli, struct error *err)
{
    const struct query query = {.kind = QUERY_ALERTS, .filter = cli->query.filter};
    const bool is_check = option_given(&cli->options, OPTION_CHECK);
    struct result *result = NULL;
    struct error other;
    size_t firing = 0;
    enum status status = cli_ask(cli, &query, &result, err);
    if (status == STATUS_NO_DATA) // of a bundle
        cli_print_none(cli);
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(result); row++)
        firing += fires(result, row) && !is_silenced(result, row);
    if (status == STATUS_OK) {
        status = cli_print_rows(cli, &alert_view, result, "no alerts", err);
        if (status == STATUS_NO_DATA && is_check && !cli->nothing[0]) { // all names are known
            (void)fputs(cli->options.format == FORMAT_TEXT ? "no alerts\n" : "", cli->env.out);
            status = STATUS_OK;
        }
    }
    result_free(result);
    if ((status == STATUS_OK || status == STATUS_NO_DATA) && add_trouble(cli, &other) != STATUS_OK)
        return error_set(err, STATUS_IO, "%s", other.text);
    if (status == STATUS_OK && is_check && firing > 0)
        return error_set(err, STATUS_CHECK_FAILED, "alerts: %zu alert%s", firing,
                         firing == 1 ? " fires" : "s fire");
    return status;
}

static enum status list(struct cli *cli, enum query_alert_list which, const struct columns *view,
                        const char *nothing, struct error *err)
{
    const struct query query = {
        .kind = QUERY_ALERTS, .filter = cli->query.filter, .alert.list = which};
    return cli_show(cli, &query, view, nothing, err);
}

// ---- Changes --------------------------------------------------------------------------

static const struct edit_word {
    const char *word, *done;
    enum query_alert_edit edit;
} edits[] = {
    {"ack", "acknowledged", QUERY_ALERT_ACK},
    {"unack", "no longer acknowledged", QUERY_ALERT_UNACK},
    {"silence", "lasts", QUERY_ALERT_SILENCE},
    {"unsilence", "ended", QUERY_ALERT_UNSILENCE},
};

static enum status set_text(char *out, size_t size, const char *text, const char *what,
                            struct error *err)
{
    if (strlen(text) >= size)
        return error_set(err, STATUS_INVALID, "%s: longer than %zu bytes", what, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return STATUS_OK;
}

static enum status fill_edit(struct query *query, const struct cli *cli,
                             const struct edit_word *edit, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const char *argument = options->argument_count > 1 ? options->arguments[1] : NULL;
    enum status status = STATUS_OK;
    query->alert.edit = edit->edit;
    query->alert.for_ns = options->for_ns;
    if (edit->edit == QUERY_ALERT_SILENCE && !option_given(options, OPTION_FOR))
        return error_set(err, STATUS_INVALID, "alerts silence: --for TIME is missing");
    if (edit->edit == QUERY_ALERT_SILENCE && !argument && option_given(options, OPTION_ALL))
        argument = "*";
    if (edit->edit != QUERY_ALERT_SILENCE && !argument)
        return error_set(err, STATUS_INVALID, "alerts %s: ID is missing", edit->word);
    if (edit->edit == QUERY_ALERT_SILENCE && argument)
        status = set_text(query->alert.rule, sizeof query->alert.rule, argument, "RULE", err);
    else if (argument)
        status = parse_int(&query->alert.id, argument, 1, INT64_MAX, "ID", err);
    if (status == STATUS_OK && options->text)
        status =
            set_text(query->alert.text, sizeof query->alert.text, options->text, "--text", err);
    return status;
}

static void print_edit(const struct cli *cli, const struct edit_word *edit,
                       const struct result *result)
{
    const int64_t id = result_integer(result, 0, "id", 0);
    char until[UNIT_TEXT_SIZE];
    if (edit->edit == QUERY_ALERT_SILENCE)
        (void)fprintf(cli->env.out, "silence %" PRId64 " lasts until %s\n", id,
                      unit_format_int(until, UNIT_TIME, result_integer(result, 0, "until_ns", 0)));
    else
        (void)fprintf(cli->env.out, "%s %" PRId64 " %s\n",
                      edit->edit == QUERY_ALERT_UNSILENCE ? "silence" : "alert", id, edit->done);
}

static enum status change(struct cli *cli, const struct edit_word *edit, struct error *err)
{
    struct query query = {.kind = QUERY_ALERT_EDIT, .filter = cli->query.filter};
    struct result *result = NULL;
    if (option_given(&cli->options, OPTION_WATCH)) // it would make the change again and again
        return options_refuse(OPTION_WATCH, "alerts", err);
    enum status status = fill_edit(&query, cli, edit, err);
    if (status == STATUS_OK)
        status = cli_ask(cli, &query, &result, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_TEXT)
        print_edit(cli, edit, result);
    else
        status = cli_print(cli, NULL, result, err);
    result_free(result);
    return status;
}

// ---- Rules ----------------------------------------------------------------------------

enum { RULE_NAME, RULE_LINE, RULE_GROUPS, RULE_HOLDS, RULE_NOTE, RULE_TEXT };

static const struct column rule_columns[] = {
    {"rule", "rule", COLUMN_LEFT(0)},
    {"line", "line", COLUMN_RIGHT(2), .is_optional = true},
    {"groups", "groups", COLUMN_RIGHT(0), .is_optional = true},
    {"holds", "holds", COLUMN_RIGHT(0), .is_optional = true},
    {"note", "note", COLUMN_LEFT(0), .is_optional = true},
    {"text", "text", COLUMN_LEFT(1), .is_below = true},
};
static const struct columns rule_view = {COLUMNS_OF(rule_columns), NULL};

static void set_cell(struct result *result, unsigned column, const char *text)
{
    (void)result_set_text(result, column, text, strlen(text));
}

// Counts the groups of a rule, and those for which it holds now.
static enum status try_rule(struct cli *cli, const struct alert_rule *rule, struct result *list,
                            struct error *err)
{
    struct query query = {.kind = QUERY_ALERT_TRY};
    struct result *result = NULL;
    size_t holds = 0;
    (void)snprintf(query.alert.text, sizeof query.alert.text, "alert %s: %s", rule->name,
                   rule->text);
    enum status status = cli_ask(cli, &query, &result, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "rule %s", rule->name);
    const size_t groups = result_row_count(result);
    for (size_t row = 0; row < groups; row++)
        holds += result_get(result, row, "severity").type == VALUE_TEXT;
    result_set_int(list, RULE_GROUPS, (int64_t)groups);
    result_set_int(list, RULE_HOLDS, (int64_t)holds);
    if (groups > 0 && holds == groups)
        set_cell(list, RULE_NOTE, "it holds for every group");
    result_free(result);
    return STATUS_OK;
}

// What a rule does whatever the data: but for temperatures and differences of memory, no value is
// negative, and a group has a value at least.  NULL: nothing is sure.
static const char *certain_note(const struct alert_rule *rule)
{
    const bool is_count = rule->stat == ALERT_STAT_COUNT;
    const double least = is_count ? (double)rule->least : 0; // of a value
    if (!is_count && (rule->unit == UNIT_CELSIUS || strstr(rule->query.metric, "_delta_")))
        return NULL;
    if (rule->is_below)
        return rule->warning <= least ? "it never holds" : NULL;
    return rule->warning < least ? "it holds for every group that has values" : NULL;
}

// With --check, what each rule does now, too: of the source that the options name, else of the
// usual collector, if that answers.
static enum status fill_rules(struct cli *cli, const struct alert_file *file, struct result *list,
                              struct error *err)
{
    const bool is_named =
        option_given(&cli->options, OPTION_DB) || option_given(&cli->options, OPTION_COLLECTOR);
    bool tries = option_given(&cli->options, OPTION_CHECK);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof rule_columns / sizeof *rule_columns; i++)
        if (result_add_column(list, rule_columns[i].key, UNIT_NONE) != STATUS_OK)
            return error_no_memory(err, "alerts");
    for (size_t i = 0; i < file->rule_count && status == STATUS_OK; i++) {
        const struct alert_rule *rule = &file->rules[i];
        (void)result_add_row(list);
        set_cell(list, RULE_NAME, rule->name);
        if (!rule->is_builtin)
            result_set_int(list, RULE_LINE, rule->line);
        set_cell(list, RULE_TEXT, rule->text);
        if (tries)
            status = try_rule(cli, rule, list, err);
        if (status != STATUS_OK && !is_named) {
            tries = false;
            status = STATUS_OK;
        }
        const char *note = certain_note(rule);
        if (note)
            set_cell(list, RULE_NOTE, note);
    }
    return status == STATUS_OK && result_status(list) != STATUS_OK ? error_no_memory(err, "alerts")
                                                                   : status;
}

static enum status show_rules(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const char *path = options->argument_count > 1 ? options->arguments[1] : "";
    struct alert_file file = {0};
    struct result *list = NULL;
    if (option_given(options, OPTION_CHECK) && !path[0])
        return error_set(err, STATUS_INVALID, "alerts rules --check: FILE is missing");
    enum status status = rules_file_read(&file, path, err);
    if (status == STATUS_OK && option_given(options, OPTION_CHECK))
        status = rules_file_check(&file, path, err);
    if (status == STATUS_OK && result_new(&list) != STATUS_OK)
        status = error_no_memory(err, "alerts");
    if (status == STATUS_OK)
        status = fill_rules(cli, &file, list, err);
    if (status == STATUS_OK)
        status = cli_print(cli, &rule_view, list, err);
    result_free(list);
    alert_file_deinit(&file);
    return status;
}

enum status command_alerts(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const char *word = options->argument_count > 0 ? options->arguments[0] : NULL;
    if (!word && option_given(options, OPTION_HISTORY))
        return list(cli, QUERY_ALERTS_HISTORY, &alert_view, "no alert has fired", err);
    if (!word)
        return show_open(cli, err);
    if (strcmp(word, "rules") == 0)
        return show_rules(cli, err);
    if (strcmp(word, "silences") == 0)
        return list(cli, QUERY_ALERTS_SILENCES, &silence_view, "no silences", err);
    if (strcmp(word, "trouble") == 0)
        return list(cli, QUERY_ALERTS_TROUBLE, &trouble_view, "no trouble", err);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        if (strcmp(word, edits[i].word) == 0)
            return change(cli, &edits[i], err);
    return error_set(
        err, STATUS_INVALID,
        "alerts: '%s' is none of ack, unack, silence, unsilence, silences, trouble and rules "
        "(see inferstat alerts --help)",
        word);
}
