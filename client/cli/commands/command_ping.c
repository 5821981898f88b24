// inferstat ping
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/output/table.h"
#include "common/sys/clock.h"
#include "common/sys/files.h"

enum { ALWAYS_SHOWN = 8, TITLE_SIZE = 64 };

static void print_json(FILE *out, const struct result *result, const char *source,
                       uint64_t round_trip_ns)
{
    struct json_writer json = files_json(out);
    json_write_begin(&json, NULL);
    json_write_text(&json, "source", source);
    json_write_uint(&json, "round_trip_ns", round_trip_ns);
    json_write_members(&json, result, 0);
    json_write_end(&json);
    (void)fputc('\n', out);
}

// A key as a title: "uptime_ns" is "uptime".
static const char *title_of(char title[TITLE_SIZE], const struct result_column *column)
{
    size_t size = strlen(column->key);
    if (column->unit == UNIT_DURATION || column->unit == UNIT_TIME)
        size -= size > 3 && strcmp(column->key + size - 3, "_ns") == 0 ? 3 : 0;
    (void)snprintf(title, TITLE_SIZE, "%.*s", (int)size, column->key);
    for (char *at = title; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return title;
}

// The figures after the first ones are shown where there is something to see.
static bool is_shown(const struct result *result, unsigned column)
{
    const struct value value = result_cell(result, 0, column);
    return column < ALWAYS_SHOWN ||
           (value.type != VALUE_NULL && !(value.type == VALUE_INT && value.i == 0));
}

static void print_for_people(FILE *out, const struct result *result, const char *source,
                             uint64_t round_trip_ns)
{
    struct value name = {.type = VALUE_TEXT, .text = {source, strlen(source)}};
    char *text = table_cell_text(name, UNIT_NONE);
    char duration[UNIT_TEXT_SIZE], title[TITLE_SIZE];
    int width = 0;
    for (unsigned i = 0; i < result_column_count(result); i++) {
        const int size = (int)strlen(title_of(title, result_column(result, i)));
        width = is_shown(result, i) && size > width ? size : width;
    }
    (void)fprintf(out, "%-*s  %s\n", width, "source", text ? text : "-");
    (void)fprintf(out, "%-*s  %s\n", width, "round trip",
                  unit_format_int(duration, UNIT_DURATION, (int64_t)round_trip_ns));
    free(text);
    for (unsigned i = 0; i < result_column_count(result); i++) {
        const struct result_column *column = result_column(result, i);
        if (!is_shown(result, i))
            continue;
        text = table_cell_text(result_cell(result, 0, i), column->unit);
        (void)fprintf(out, "%-*s  %s\n", width, title_of(title, column), text ? text : "-");
        free(text);
    }
}

enum status command_ping(struct cli *cli, struct error *err)
{
    const struct query query = {.kind = QUERY_PING};
    struct result *result = NULL;
    enum status status = cli_ask(cli, &query, &result, err);
    if (status != STATUS_OK)
        return status;
    result_free(result);
    result = NULL;
    const uint64_t asked_ns = clock_monotonic_ns(); // with the connection open
    status = cli_ask(cli, &query, &result, err);
    const uint64_t round_trip_ns = clock_monotonic_ns() - asked_ns;
    const char *source = NULL;
    if (status == STATUS_OK)
        status = cli_source(cli, &source, err);
    if (status == STATUS_OK && cli->options.format == FORMAT_JSON)
        print_json(cli->env.out, result, source, round_trip_ns);
    else if (status == STATUS_OK)
        print_for_people(cli->env.out, result, source, round_trip_ns);
    result_free(result);
    return status;
}
