// inferstat why
#include <stdlib.h>

#include "client/cli/cli.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"

// A cell of text between two texts; nothing if it is null.
static void print_text(FILE *out, const char *before, const struct result *result, size_t row,
                       const char *key, const char *after)
{
    const struct value value = result_get(result, row, key);
    char *text =
        value.type == VALUE_TEXT ? text_escape_new(value.text.bytes, value.text.size) : NULL;
    if (text)
        (void)fprintf(out, "%s%s%s", before, text, after);
    free(text);
}

static const char *number(char text[UNIT_TEXT_SIZE], const struct result *result, size_t row,
                          const char *key, enum unit unit)
{
    return unit_format(text, unit, result_number(result, row, key, 0));
}

// What the causes of a model explain; it is printed above the first of them.
static void print_model(FILE *out, const struct result *result, size_t row)
{
    char now[UNIT_TEXT_SIZE], usual[UNIT_TEXT_SIZE];
    const bool is_ttft = result_is(result, row, "metric", "ttft_ns");
    const int64_t hosts = result_integer(result, row, "hosts", 0);
    print_text(out, "", result, row, "model", "");
    (void)fprintf(out, " is slower than usual on %lld of %lld host%s, in %s: ",
                  (long long)result_integer(result, row, "slow_hosts", 0), (long long)hosts,
                  cli_plural(hosts), is_ttft ? "time to first token" : "time of a request");
    (void)fprintf(out, "median %s, usually %s", number(now, result, row, "p50_ns", UNIT_DURATION),
                  number(usual, result, row, "usual_p50_ns", UNIT_DURATION));
    (void)fprintf(out, "; p95 %s, usually %s.\n", number(now, result, row, "p95_ns", UNIT_DURATION),
                  number(usual, result, row, "usual_p95_ns", UNIT_DURATION));
}

static void print_cause(FILE *out, const struct result *result, size_t row)
{
    char share[UNIT_TEXT_SIZE], time[UNIT_TEXT_SIZE];
    const bool is_part = result_get(result, row, "share_ratio").type == VALUE_REAL;
    (void)fprintf(out, "  ");
    if (is_part)
        (void)fprintf(out, "%6s %8s  ", number(share, result, row, "share_ratio", UNIT_RATIO),
                      number(time, result, row, "explained_ns", UNIT_DURATION));
    else
        print_text(out, "", result, row, "model", ": ");
    print_text(out, "", result, row, "host", ": ");
    print_text(out, "", result, row, "text", "\n");
    print_text(out, is_part ? "                   " : "    ", result, row, "evidence", "\n");
}

static void print_all(FILE *out, const struct result *result)
{
    char length[UNIT_TEXT_SIZE], time[UNIT_TEXT_SIZE];
    const int64_t as_of_ns = result_integer(result, 0, "as_of_ns", 0);
    const int64_t window_ns = as_of_ns - result_integer(result, 0, "since_ns", 0);
    size_t compared = 0; // the first row of a model
    for (size_t i = 0; i < result_row_count(result); i++) {
        bool is_first = result_is(result, i, "verdict", "WORSE");
        const struct value model = result_get(result, i, "model");
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !result_is(result, k, "verdict", "WORSE") ||
                       !result_is(result, k, "model", model.text.bytes);
        if (is_first)
            print_model(out, result, i);
        print_cause(out, result, i);
    }
    (void)fprintf(out, "\nThe last %s", unit_format_int(length, UNIT_DURATION, window_ns));
    while (compared + 1 < result_row_count(result) &&
           result_get(result, compared, "usual").type == VALUE_NULL)
        compared++;
    print_text(out, " against ", result, compared, "usual", "");
    if (result_get(result, 0, "note").type == VALUE_TEXT)
        (void)fprintf(out, ", as of %s, the last message in this file",
                      unit_format_int(time, UNIT_TIME, as_of_ns));
    (void)fprintf(out, ".\n");
}

enum status command_why(struct cli *cli, struct error *err)
{
    struct result *result = NULL;
    enum status status = cli_ask_for(cli, &cli->query, "why", &result, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_TEXT)
        print_all(cli->env.out, result);
    else
        status = cli_print(cli, NULL, result, err);
    result_free(result);
    return status;
}
