// inferstat events [--since WHEN]
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/commands/device_trouble.h"
#include "common/core/base/text.h"

enum { LINE_SIZE = 1024 };

static char *event_text(const struct column *column, const struct result *result, size_t row)
{
    char text[TROUBLE_TEXT_SIZE];
    (void)column;
    return strdup(device_trouble_event(text, result, row));
}

// "12.3s", and "12.3s so far" of one that lasts.
static char *lasted_text(const struct column *column, const struct result *result, size_t row)
{
    char *text = NULL, *plain = column_value(column, result, row);
    const bool is_moment = result_integer(result, row, "duration_ns", -1) == 0;
    if (!plain || (!is_moment && result_get(result, row, "ended_ns").type != VALUE_NULL))
        return plain;
    const int length = asprintf(&text, is_moment ? "-" : "%s so far", plain);
    free(plain);
    return length < 0 ? NULL : text;
}

static const char *change(char text[UNIT_TEXT_SIZE], const struct result *result, size_t row,
                          const char *key)
{
    return unit_format_change(text, result_number(result, row, key, NAN));
}

static char *whole_text(const struct column *column, const struct result *result, size_t row)
{
    char text[UNIT_TEXT_SIZE];
    const double value = result_number(result, row, column->key, NAN);
    return strdup(isnan(value) ? "-" : unit_format_int(text, UNIT_TOKENS, llround(value)));
}

// ---- What it cost ---------------------------------------------------------------------

static void add_value(char line[LINE_SIZE], const char *before, const struct result *result,
                      size_t row, const char *key)
{
    char *text = column_value(&(struct column){.key = key}, result, row);
    (void)text_append(line, LINE_SIZE, "", "%s%s", before, text ? text : "-");
    free(text);
}

// The figures of a model's requests: the keys are KEY, usual_KEY, RATIO, RATIO_low and RATIO_high.
static const struct {
    const char *title, *key, *ratio;
} figures[] = {
    {"", "tokens_per_second", "tokens_per_second_ratio"},
    {"TTFT ", "ttft_ns", "ttft_ratio"},
    {"energy per token ", "joules_per_token", "joules_per_token_ratio"},
};

// Adds "    llama-8b: 31.20 t/s, usually 50.01 t/s: -37.6 % (-38.9 % to -36.2 %)".  Returns false,
// without a line, if the figure is unknown or its interval contains the usual one.
static bool add_figure(struct table *table, const struct result *result, size_t row, size_t i)
{
    char line[LINE_SIZE] = "", usual[64], low[64], high[64], text[UNIT_TEXT_SIZE], to[sizeof text];
    (void)snprintf(usual, sizeof usual, "usual_%s", figures[i].key);
    (void)snprintf(low, sizeof low, "%s_low", figures[i].ratio);
    (void)snprintf(high, sizeof high, "%s_high", figures[i].ratio);
    if (!(result_number(result, row, low, 0) > 1) && !(result_number(result, row, high, 2) < 1))
        return false;
    add_value(line, "    ", result, row, "model");
    (void)text_append(line, LINE_SIZE, "", ": %s", figures[i].title);
    add_value(line, "", result, row, figures[i].key);
    add_value(line, ", usually ", result, row, usual);
    (void)text_append(line, LINE_SIZE, "", ": %s", change(text, result, row, figures[i].ratio));
    if (strcmp(change(text, result, row, low), change(to, result, row, high)) != 0)
        (void)text_append(line, LINE_SIZE, "", " (%s to %s)", text, to);
    table_add_below(table, line);
    return true;
}

// Lines on the requests of a model while the event lasted.
static void add_cost(struct table *table, const struct result *result, size_t row)
{
    char line[LINE_SIZE] = "", text[256];
    const struct value note = result_get(result, row, "note");
    bool differs = false;
    if (result_get(result, row, "model").type != VALUE_TEXT)
        return;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        differs |= add_figure(table, result, row, i);
    if (differs)
        return;
    add_value(line, "    ", result, row, "model");
    (void)text_append(line, LINE_SIZE, "", ": %s",
                      note.type == VALUE_TEXT
                          ? text_escape(text, sizeof text, note.text.bytes, note.text.size)
                          : "as usual");
    table_add_below(table, line);
}

static const struct column columns[] = {
    {"started_ns", "started", COLUMN_LEFT(0)},
    {"host", "host", COLUMN_LEFT(0)},
    {"device", "device", COLUMN_LEFT(0)},
    {"event", "event", COLUMN_LEFT(0), .cell = event_text},
    {"duration_ns", "lasted", COLUMN_RIGHT(0), .cell = lasted_text},
    {"requests", "requests", COLUMN_RIGHT(4), .is_optional = true},
    {"tokens_per_second_ratio", "speed", COLUMN_RIGHT(2), .cell = column_change,
     .is_optional = true},
    {"tokens_lost", "tokens lost", COLUMN_RIGHT(0), .cell = whole_text, .is_optional = true,
     .is_below = true},
    {"joules_lost", "energy lost", COLUMN_RIGHT(3), .is_optional = true},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, add_cost};

enum status command_events(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    const bool is_table = cli->options.format == FORMAT_TEXT;
    if (cli->query.limit == 0)
        cli->query.limit = is_table && !option_given(&cli->options, OPTION_LIMIT)
                               ? CLI_ROWS_FOR_PEOPLE
                               : QUERY_EVENTS_MAX;
    enum status status = cli_ask_for(cli, &cli->query, "events", "no trouble", &result, err);
    if (status != STATUS_OK)
        return status;
    status = cli_print_rows(cli, &view, result, "no trouble", err);
    cli_note_events(cli, result);
    if (status == STATUS_OK)
        cli_note_file(cli);
    result_free(result);
    return status;
}
