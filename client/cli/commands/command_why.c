// inferstat why
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"

enum { LINE_SIZE = 4096, INDENT = 4 };

static const char *number(char text[UNIT_TEXT_SIZE], const struct result *result, size_t row,
                          const char *key, enum unit unit)
{
    return unit_format(text, unit, result_number(result, row, key, 0));
}

// What the causes of a model explain; it is printed above the first of them.
static void print_model(const struct cli *cli, const struct result *result, size_t row)
{
    char line[LINE_SIZE], model[LINE_SIZE / 2], texts[5][UNIT_TEXT_SIZE];
    const int64_t hosts = result_integer(result, row, "hosts", 0);
    const bool is_p50 = result_is(result, row, "quantile", "p50");
    const double more = result_number(result, row, is_p50 ? "p50_ns" : "p95_ns", 0) -
                        result_number(result, row, is_p50 ? "usual_p50_ns" : "usual_p95_ns", 0);
    (void)snprintf(line, sizeof line,
                   "%s is slower than usual on %lld of %lld host%s. %s: median %s, usually %s;"
                   " p95 %s, usually %s. Of the %s more in the %s:",
                   result_text(model, sizeof model, result, row, "model"),
                   (long long)result_integer(result, row, "slow_hosts", 0), (long long)hosts,
                   cli_plural(hosts),
                   result_is(result, row, "metric", "ttft_ns") ? "Time to first token"
                                                               : "Time of a request",
                   number(texts[0], result, row, "p50_ns", UNIT_DURATION),
                   number(texts[1], result, row, "usual_p50_ns", UNIT_DURATION),
                   number(texts[2], result, row, "p95_ns", UNIT_DURATION),
                   number(texts[3], result, row, "usual_p95_ns", UNIT_DURATION),
                   unit_format(texts[4], UNIT_DURATION, more), is_p50 ? "median" : "p95");
    cli_print_words(cli, 0, 0, line);
}

static void print_cause(const struct cli *cli, const struct result *result, size_t row)
{
    char line[LINE_SIZE], name[LINE_SIZE / 4], text[LINE_SIZE / 2], share[UNIT_TEXT_SIZE];
    char time[UNIT_TEXT_SIZE];
    const bool is_part = result_get(result, row, "share_ratio").type == VALUE_REAL;
    static const char *const keys[] = {"model", "host"};
    size_t used = 0;
    for (size_t i = is_part; i < sizeof keys / sizeof *keys; i++) // the model is above its parts
        if (result_get(result, row, keys[i]).type == VALUE_TEXT)
            used += (size_t)snprintf(line + used, sizeof line - used,
                                     "%s: ", result_text(name, sizeof name, result, row, keys[i]));
    (void)snprintf(line + used, sizeof line - used, "%s",
                   result_text(text, sizeof text, result, row, "text"));
    int at = fprintf(cli->env.out, "  ");
    if (is_part)
        at += fprintf(cli->env.out, "%7s %8s  ",
                      number(share, result, row, "share_ratio", UNIT_RATIO),
                      number(time, result, row, "explained_ns", UNIT_DURATION));
    cli_print_words(cli, at, INDENT, line);
    const struct value evidence = result_get(result, row, "evidence");
    char *escaped = evidence.type == VALUE_TEXT
                        ? text_escape_new(evidence.text.bytes, evidence.text.size)
                        : NULL;
    if (escaped)
        (void)fprintf(cli->env.out, "%*s%s\n", INDENT, "", escaped);
    free(escaped);
}

static void print_all(const struct cli *cli, const struct result *result)
{
    char line[LINE_SIZE], length[UNIT_TEXT_SIZE], time[UNIT_TEXT_SIZE], usual[128] = "";
    const int64_t as_of_ns = result_integer(result, 0, "as_of_ns", 0);
    const int64_t window_ns = as_of_ns - result_integer(result, 0, "since_ns", 0);
    struct value last = {.type = VALUE_NULL}; // the model whose parts are printed
    for (size_t i = 0; i < result_row_count(result); i++) {
        const struct value model = result_get(result, i, "model");
        if (result_is(result, i, "verdict", "WORSE") && !value_is_same(model, last)) {
            (void)fputs(i > 0 ? "\n" : "", cli->env.out);
            print_model(cli, result, i);
            last = model;
        }
        print_cause(cli, result, i);
        if (!usual[0] && result_integer(result, i, "usual_requests", 0) > 0)
            (void)result_text(usual, sizeof usual, result, i, "usual");
    }
    const bool is_file = result_get(result, 0, "note").type == VALUE_TEXT;
    (void)snprintf(line, sizeof line, "The last %s%s%s%s%s%s.",
                   unit_format_int(length, UNIT_DURATION, window_ns), usual[0] ? " against " : "",
                   usual, is_file ? ", as of " : "",
                   is_file ? unit_format_int(time, UNIT_TIME, as_of_ns) : "",
                   is_file ? ", the last message in this file" : "");
    (void)fprintf(cli->env.out, "\n");
    cli_print_words(cli, 0, 0, line);
}

// Names the source in the command of each cause, with the options that the user gave.
static enum status add_source(const struct cli_options *options, struct result *result)
{
    const struct {
        enum cli_option option;
        const char *value; // "": it has none
    } given[] = {{OPTION_COLLECTOR, options->collector},
                 {OPTION_DB, options->db},
                 {OPTION_COLLECTOR_USER, options->trust.collector_user},
                 {OPTION_KEY, options->trust.key_file},
                 {OPTION_SERVER_KEY, options->trust.server_key},
                 {OPTION_INSECURE, ""}};
    static const char program[] = "inferstat";
    const unsigned column = (unsigned)result_find(result, "evidence");
    char source[2 * TEXT_QUOTED_SIZE(PATH_MAX)] = "", quoted[TEXT_QUOTED_SIZE(PATH_MAX)];
    enum status status = STATUS_OK;
    size_t used = 0;
    for (size_t i = 0; i < sizeof given / sizeof *given && used < sizeof source; i++)
        if (option_given(options, given[i].option))
            used += (size_t)snprintf(
                source + used, sizeof source - used, " --%s%s%s", option_row(given[i].option)->name,
                *given[i].value ? " " : "",
                *given[i].value ? text_quote(quoted, sizeof quoted, given[i].value) : "");
    for (size_t i = 0; i < result_row_count(result) && status == STATUS_OK; i++) {
        const struct value value = result_cell(result, i, column);
        char *text = NULL;
        if (value.type != VALUE_TEXT || strncmp(value.text.bytes, program, strlen(program)) != 0)
            continue; // of a later version's collector
        const int size =
            asprintf(&text, "%s%s%s", program, source, value.text.bytes + strlen(program));
        status =
            size < 0 ? STATUS_NOMEM : result_replace_text(result, i, column, text, (size_t)size);
        free(size < 0 ? NULL : text);
    }
    return status;
}

enum status command_why(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    enum status status = cli_ask_for(cli, &cli->query, "why", "no data", &result, err);
    if (status != STATUS_OK)
        return status;
    status = add_source(&cli->options, result);
    if (status != STATUS_OK)
        status = error_no_memory(err, "why");
    else if (cli->options.format == FORMAT_TEXT)
        print_all(cli, result);
    else
        status = cli_print(cli, NULL, result, err);
    result_free(result);
    return status;
}
