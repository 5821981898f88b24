#include "client/cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/args/known_names.h"
#include "common/core/base/text.h"

int cli_exit_code(enum status status)
{
    switch ((int)status) {
    case STATUS_OK:
    case STATUS_CANCELLED:
        return 0;
    case STATUS_CHECK_FAILED:
        return 1;
    case STATUS_INVALID:
        return 2;
    case STATUS_NO_DATA:
        return 3;
    case STATUS_UNDECIDED:
        return 5;
    default:
        return 4;
    }
}

struct remote_target cli_target(const struct cli *cli)
{
    return (struct remote_target){
        .collector = cli->options.collector,
        .db = cli->options.db,
        .timeout_ns = (uint64_t)cli->options.timeout_ns,
        .trust = cli->options.trust,
    };
}

static enum status open_remote(struct cli *cli, struct error *err)
{
    if (cli->remote)
        return STATUS_OK;
    struct remote_target target = cli_target(cli);
    target.at_once = true;
    enum status status = remote_open(&cli->remote, &target, err);
    if (status == STATUS_OK && remote_warning(cli->remote)[0])
        (void)fprintf(cli->env.notes, "inferstat: WARNING: %s\n", remote_warning(cli->remote));
    return status;
}

// Asks again if the filter can be widened.  `status` and `*out` are of the answer that has nothing.
static enum status ask_widely(struct cli *cli, const struct query *query, enum status status,
                              struct result **out, struct error *err)
{
    struct query *wide = malloc(sizeof *wide);
    if (!wide)
        return status;
    *wide = *query;
    if (known_names_widen(cli, &wide->filter)) {
        for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
            if (strcmp(cli->query.filter.by[i], query->filter.by[i]) == 0)
                memcpy(cli->query.filter.by[i], wide->filter.by[i], QUERY_TEXT_SIZE);
        if (status == STATUS_OK)
            result_free(*out);
        *out = NULL;
        status = remote_query(cli->remote, wide, out, err);
    }
    free(wide);
    return status;
}

enum status cli_ask(struct cli *cli, const struct query *query, struct result **out,
                    struct error *err)
{
    enum status status = open_remote(cli, err);
    if (status == STATUS_OK)
        status = remote_query(cli->remote, query, out, err);
    // A collector older than the field has no other reason to refuse a listing.
    if (status == STATUS_NO_DATA && (err->expired_ns != 0 || query->kind == QUERY_RECORDS))
        (void)snprintf(cli->nothing, sizeof cli->nothing, "%s", err->text);
    const bool is_empty = status == STATUS_OK && result_row_count(*out) == 0;
    return (is_empty || status == STATUS_NO_DATA) && !query_is_administrative(query->kind)
               ? ask_widely(cli, query, status, out, err)
               : status;
}

static enum status nothing_found(const struct cli *cli, const char *what, const char *nothing,
                                 struct error *err)
{
    const struct query_filter *filter = &cli->query.filter;
    const char *why = cli->nothing[0]                      ? cli->nothing
                      : filter->since_ns > cli->env.now_ns ? "the window begins in the future"
                      : query_filter_narrows(filter)       ? "the filters match nothing"
                                                           : "the store holds none";
    return error_set(err, STATUS_NO_DATA, "%s: %s: %s", what, nothing, why);
}

enum status cli_ask_for(struct cli *cli, const struct query *query, const char *what,
                        const char *nothing, struct result **out, struct error *err)
{
    enum status status = cli_ask(cli, query, out, err);
    if (status != STATUS_NO_DATA)
        return status;
    cli_print_none(cli);
    return nothing_found(cli, what, nothing, err);
}

bool cli_has_colours(const struct cli *cli)
{
    const char *none = getenv("NO_COLOR");
    return cli->env.out_is_terminal && !option_given(&cli->options, OPTION_NO_COLOR) &&
           !(none && none[0] != '\0');
}

struct rows cli_rows(const struct cli *cli, const struct columns *columns)
{
    return (struct rows){.out = cli->env.out,
                         .format = cli->options.format,
                         .columns = columns,
                         .fields = cli->options.fields,
                         .colours = cli_has_colours(cli),
                         .width = option_given(&cli->options, OPTION_WIDE) ? 0 : cli->env.width};
}

enum status cli_print(const struct cli *cli, const struct columns *columns,
                      const struct result *result, struct error *err)
{
    struct rows rows = cli_rows(cli, columns);
    rows_write(&rows, result, 0, result_row_count(result));
    return rows_end(&rows, STATUS_OK, err);
}

enum status cli_print_rows(const struct cli *cli, const struct columns *columns,
                           const struct result *result, const char *nothing, struct error *err)
{
    struct rows rows = cli_rows(cli, columns);
    const size_t count = result_row_count(result), limit = cli->options.limit;
    rows_write(&rows, result, 0, limit && limit < count ? limit : count);
    enum status status = rows_end(&rows, STATUS_OK, err);
    if (status == STATUS_OK)
        cli_note_limit(cli, rows.count, count + (uint64_t)result_integer(result, 0, "left_out", 0));
    return status == STATUS_OK && count == 0
               ? error_set(err, STATUS_NO_DATA, "%s: %s", cli->command->name,
                           cli->nothing[0] ? cli->nothing : nothing)
               : status;
}

enum status cli_show(struct cli *cli, const struct query *query, const struct columns *columns,
                     const char *nothing, struct error *err)
{
    struct result *result;
    enum status status = cli_ask(cli, query, &result, err);
    if (status == STATUS_NO_DATA)
        cli_print_none(cli);
    if (status != STATUS_OK)
        return status;
    status = cli_print_rows(cli, columns, result, nothing, err);
    result_free(result);
    return status;
}

uint64_t cli_total(struct cli *cli, const char *key)
{
    struct query query = {.kind = QUERY_PING, .filter = cli->query.filter};
    struct result *result = NULL;
    int64_t total = -1;
    if (isatty(fileno(cli->env.notes)) != 1 || open_remote(cli, NULL) != STATUS_OK)
        return 0;
    for (int i = 0; i < 2 && total < 0; i++) {
        if (remote_query(cli->remote, &query, &result, NULL) == STATUS_OK)
            total = result_integer(result, 0, key, -1);
        result_free(result);
        result = NULL;
        query.kind = QUERY_SUMMARY;
    }
    return total > 0 ? (uint64_t)total : 0;
}

void cli_print_none(const struct cli *cli)
{
    struct rows rows = {.out = cli->env.out, .format = FORMAT_JSON};
    if (cli->options.format == FORMAT_JSON)
        (void)!rows_end(&rows, STATUS_OK, NULL);
}

enum status cli_source(struct cli *cli, const char **out, struct error *err)
{
    enum status status = open_remote(cli, err);
    if (status == STATUS_OK)
        *out = remote_name(cli->remote);
    return status;
}

enum status cli_no_data(const struct cli *cli, const char *what, struct error *err)
{
    return nothing_found(cli, what, "no data", err);
}

void cli_print_words(const struct cli *cli, int at, int indent, const char *text)
{
    table_print_words(cli->env.out, cli_rows(cli, NULL).width, at, indent, text);
}

void cli_print_lines(const struct cli *cli, int indent, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        cli_print_words(cli, 0, indent, line);
}

void cli_say(const struct cli *cli, const char *format, ...)
{
    char *line = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) >= 0)
        cli_print_words(cli, 0, 0, line);
    va_end(arguments);
    free(line);
}

int64_t cli_as_of(struct cli *cli)
{
    const struct query query = {.kind = QUERY_PING};
    struct result *result = NULL;
    if (!option_given(&cli->options, OPTION_DB) || open_remote(cli, NULL) != STATUS_OK ||
        remote_query(cli->remote, &query, &result, NULL) != STATUS_OK)
        return 0;
    const int64_t as_of_ns = result_integer(result, 0, "as_of_ns", 0);
    result_free(result);
    return as_of_ns;
}

void cli_note_file(struct cli *cli)
{
    char time[UNIT_TEXT_SIZE];
    const int64_t as_of_ns = cli->options.format == FORMAT_TEXT ? cli_as_of(cli) : 0;
    if (as_of_ns != 0)
        (void)fprintf(cli->env.out, "\nAs of %s, the last message in this file.\n",
                      unit_format_int(time, UNIT_TIME, as_of_ns));
}

void cli_note(const struct cli *cli, const struct result *result)
{
    char text[1024];
    const struct value note = result_get(result, 0, "note");
    if (cli->options.format == FORMAT_TEXT && note.type == VALUE_TEXT && note.text.size > 0)
        cli_say(cli, "Note: %s.", result_text(text, sizeof text, result, 0, "note"));
}

void cli_note_limit(const struct cli *cli, uint64_t shown, uint64_t all)
{
    const bool is_oldest = cli->query.kind == QUERY_RECORDS && cli->query.records.oldest_first;
    if (cli->options.format != FORMAT_TEXT || shown == all)
        return;
    if (all > 0)
        (void)fprintf(cli->env.out, "(%s of %s", CLI_COUNT(shown), CLI_COUNT(all));
    else
        (void)fprintf(cli->env.out, "(the %s %s", CLI_COUNT(shown),
                      is_oldest ? "oldest" : "newest");
    const uint64_t most = cli->query.kind == QUERY_EVENTS ? QUERY_EVENTS_MAX : UINT64_MAX;
    const bool is_most =
        shown >= most || (option_given(&cli->options, OPTION_LIMIT) && cli->options.limit == 0);
    const bool is_text = strcmp(cli->options.command, "query") == 0; // has no --limit
    (void)fprintf(cli->env.out, "%s)\n",
                  is_most      ? ""
                  : is_text    ? "; limit N shows more"
                  : all > most ? "; --limit 0 shows more"
                               : "; --limit 0 shows all");
}

void cli_note_events(const struct cli *cli, const struct result *result)
{
    if (cli->query.kind == QUERY_EVENTS && cli->query.limit == QUERY_EVENTS_MAX &&
        result_integer(result, 0, "left_out", 0) > 0)
        (void)fprintf(cli->env.notes,
                      "inferstat: events: only the %s newest (--until shows earlier ones; export "
                      "event has all, without their cost)\n",
                      CLI_COUNT(QUERY_EVENTS_MAX));
}

void cli_note_expired(const struct cli *cli, const struct result *result)
{
    char time[UNIT_TEXT_SIZE];
    const int64_t until_ns = result_integer(result, 0, "expired_ns", 0);
    if (until_ns != 0)
        (void)fprintf(cli->env.out, "(records before %s have expired)\n",
                      unit_format_int(time, UNIT_TIME, until_ns));
}

void cli_write_filter(FILE *out, const struct query_filter *filter, const char *none)
{
    const char *separator = "";
    char text[QUERY_TEXT_SIZE * 4];
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++) {
        if (filter->by[i][0] == '\0')
            continue;
        (void)fprintf(out, "%s%s %s", separator, query_dimension_name((enum query_dimension)i),
                      text_escape(text, sizeof text, filter->by[i], strlen(filter->by[i])));
        separator = ", ";
    }
    if (filter->since_ns)
        (void)fprintf(out, "%ssince %s", separator,
                      unit_format_int(text, UNIT_TIME, filter->since_ns));
    separator = filter->since_ns ? ", " : separator;
    if (filter->until_ns)
        (void)fprintf(out, "%suntil %s", separator,
                      unit_format_int(text, UNIT_TIME, filter->until_ns));
    if (!query_filter_narrows(filter))
        (void)fputs(none, out);
}
