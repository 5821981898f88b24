// inferstat baseline save NAME | list | delete NAME
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/base/text.h"

static const struct column columns[] = {
    {"baseline", "baseline", COLUMN_LEFT(0)},
    {"created_ns", "saved", COLUMN_LEFT(0)},
    {"since_ns", "since", COLUMN_LEFT(2)},
    {"until_ns", "until", COLUMN_LEFT(2)},
    {"runs", "runs", COLUMN_RIGHT(0)},
    {"values", "values", COLUMN_RIGHT(1)},
    {"coverage_ratio", "coverage", COLUMN_RIGHT(1)},
    {"filter", "of", COLUMN_LEFT(3)},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, NULL};

// The options that only `save` takes.
static const enum cli_option of_save[] = {OPTION_MODEL, OPTION_HOST,      OPTION_DEVICE,
                                          OPTION_RUN,   OPTION_OPERATION, OPTION_SINCE,
                                          OPTION_UNTIL, OPTION_FORCE,     OPTION_COUNT};

static void print_saved(FILE *out, const struct query *query, const struct result *result)
{
    const int64_t runs = result_integer(result, 0, "runs", 0);
    char since[UNIT_TEXT_SIZE], until[UNIT_TEXT_SIZE], coverage[UNIT_TEXT_SIZE];
    (void)fprintf(
        out,
        "baseline %s saved: %s values of %s %s, from %s until %s, "
        "coverage %s\n",
        query->baseline.name, CLI_COUNT(result_integer(result, 0, "values", 0)), CLI_COUNT(runs),
        runs == 1 ? "run" : "runs",
        unit_format_int(since, UNIT_TIME, result_integer(result, 0, "since_ns", 0)),
        unit_format_int(until, UNIT_TIME, result_integer(result, 0, "until_ns", 0)),
        unit_format(coverage, UNIT_RATIO, result_number(result, 0, "coverage_ratio", (double)NAN)));
}

static enum status print_change(const struct cli *cli, const struct query *query,
                                const struct result *result, struct error *err)
{
    FILE *out = cli->env.out;
    if (cli->options.format == FORMAT_CSV)
        return cli_print(cli, NULL, result, err);
    if (cli->options.format == FORMAT_JSON) {
        rows_write_json(out, result, 0);
    } else if (query->kind == QUERY_BASELINE_SAVE) {
        print_saved(out, query, result);
        cli_note_expired(cli, result);
    } else {
        (void)fprintf(out, "baseline %s deleted\n", query->baseline.name);
    }
    return STATUS_OK;
}

static enum status change(struct cli *cli, enum query_kind kind, struct error *err)
{
    struct query query = {.kind = kind,
                          .filter = cli->query.filter,
                          .baseline.force = option_given(&cli->options, OPTION_FORCE)};
    const char *name = cli->options.arguments[1];
    const size_t size = strlen(name);
    if (size == 0 || size >= sizeof query.baseline.name ||
        strspn(name, TEXT_NAME_CHARACTERS) != size)
        return error_set(err, STATUS_INVALID,
                         "baseline: '%.*s': a name has 1 to %zu characters of a-z A-Z 0-9 . _ -",
                         (int)sizeof query.baseline.name, name, sizeof query.baseline.name - 1);
    memcpy(query.baseline.name, name, size + 1);
    struct result *result;
    enum status status = cli_ask(cli, &query, &result, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "baseline");
    status = print_change(cli, &query, result, err);
    result_free(result);
    return status;
}

// The sub-commands.
static const struct {
    const char *name;
    bool takes_name;
    enum query_kind kind;
} parts[] = {
    {"save", true, QUERY_BASELINE_SAVE},
    {"list", false, QUERY_BASELINES},
    {"delete", true, QUERY_BASELINE_DELETE},
};

enum status command_baseline(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const char *word = options->arguments[0];
    size_t part = 0;
    while (part < sizeof parts / sizeof *parts && strcmp(parts[part].name, word) != 0)
        part++;
    if (part == sizeof parts / sizeof *parts)
        return error_set(err, STATUS_INVALID,
                         "baseline: '%s' is none of save, list and delete (see inferstat baseline "
                         "--help)",
                         word);
    if (options->argument_count != (parts[part].takes_name ? 2 : 1))
        return error_set(err, STATUS_INVALID, "baseline %s: %s (see inferstat baseline --help)",
                         word, parts[part].takes_name ? "NAME is missing" : "unexpected argument");
    const enum cli_option option = options_first_given(options, of_save);
    if (option != OPTION_COUNT && parts[part].kind != QUERY_BASELINE_SAVE) {
        char title[32];
        (void)snprintf(title, sizeof title, "baseline %s", parts[part].name);
        return options_refuse(option, title, err);
    }
    if (parts[part].kind != QUERY_BASELINES)
        return change(cli, parts[part].kind, err);
    return cli_show(cli, &(struct query){.kind = QUERY_BASELINES}, &view,
                    "no data: no baselines are stored (inferstat baseline save NAME)", err);
}
