// inferstat compare BEFORE AFTER | compare --against BEFORE
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/comparison.h"
#include "client/cli/rows.h"
#include "common/core/stats/stats.h"

// A margin of none at all; 0 asks for the default.
static const double no_margin = 1e-9;

static enum status take_name(char out[QUERY_KEY_SIZE], const char *name, struct error *err)
{
    const size_t size = strlen(name);
    if (size == 0 || size >= QUERY_KEY_SIZE)
        return error_set(err, STATUS_INVALID,
                         "compare: the name of a baseline has 1 to %d characters",
                         QUERY_KEY_SIZE - 1);
    memcpy(out, name, size + 1);
    return STATUS_OK;
}

static bool is_filtered(const struct cli_options *options)
{
    bool filtered = options->filter.since_ns != 0 || options->filter.until_ns != 0;
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++)
        filtered = filtered || options->filter.by[i][0] != '\0';
    return filtered;
}

static enum status take_sides(struct query *query, const struct cli_options *options,
                              struct error *err)
{
    const unsigned words = options->argument_count;
    if (options->against ? words != 0 : words != 2)
        return error_set(err, STATUS_INVALID,
                         "compare: say two baselines, or --against BASELINE and filters (see "
                         "inferstat compare --help)");
    if (!options->against && is_filtered(options))
        return error_set(err, STATUS_INVALID,
                         "compare: two baselines have no filters any longer (--against compares "
                         "one with what filters cover)");
    enum status status =
        take_name(query->compare.baseline[0],
                  options->against ? options->against : options->arguments[0], err);
    if (status == STATUS_OK && !options->against)
        status = take_name(query->compare.baseline[1], options->arguments[1], err);
    query->compare.other = options->filter;
    return status;
}

static enum status take_metric(struct query *query, const char *name, struct error *err)
{
    if (!name)
        return STATUS_OK;
    const struct query_metric *metric;
    enum status status = query_metric_find(&metric, name, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "--metric");
    memcpy(query->metric, name, strlen(name) + 1);
    return STATUS_OK;
}

static enum status read_line(struct query *query, const struct cli_options *options,
                             struct error *err)
{
    *query =
        (struct query){.kind = QUERY_COMPARE, .compare.force = option_given(options, OPTION_FORCE)};
    if (option_given(options, OPTION_MARGIN))
        query->compare.margin = options->margin > no_margin ? options->margin : no_margin;
    if (option_given(options, OPTION_MARKDOWN) && options->format != FORMAT_TEXT)
        return error_set(err, STATUS_INVALID, "--json, --csv and --markdown: only one of them");
    enum status status = take_sides(query, options, err);
    return status == STATUS_OK ? take_metric(query, options->metric, err) : status;
}

// What the whole comes to: one that is worse decides; then one that had values enough
// and is undecided all the same; then whether any had.
static enum status judge(const struct result *result, struct error *err)
{
    const struct comparison_tally tally = comparison_tally(result);
    const size_t rows = tally.judged, undecided = tally.counts[STATS_UNDECIDED];
    if (tally.counts[STATS_WORSE] > 0)
        return error_set(err, STATUS_CHECK_FAILED, "compare: %zu of %zu are worse",
                         tally.counts[STATS_WORSE], rows);
    if (undecided > tally.too_few)
        return error_set(err, STATUS_UNDECIDED,
                         "compare: %zu of %zu are undecided: their values differ too much (more "
                         "of them, or a larger --margin, may decide)",
                         undecided - tally.too_few, rows);
    if (tally.too_few == rows)
        return error_set(err, STATUS_UNDECIDED, "compare: undecided: too few values on a side");
    return STATUS_OK;
}

static enum status print(const struct cli *cli, const struct query *query,
                         const struct result *result, struct error *err)
{
    if (cli->options.format == FORMAT_TEXT)
        return comparison_print(cli, query, result, err);
    struct rows rows = {.out = cli->around.out, .format = cli->options.format};
    rows_write(&rows, result, 0, result_row_count(result));
    rows_end(&rows);
    return STATUS_OK;
}

enum status cli_compare(struct cli *cli, const struct query *query, struct error *err)
{
    struct result *result;
    enum status status = cli_ask(cli, query, &result, err);
    if (status == STATUS_NO_DATA && cli->options.format == FORMAT_JSON)
        rows_end(&(struct rows){.out = cli->around.out, .format = FORMAT_JSON});
    if (status != STATUS_OK)
        return error_prefix(err, status, "compare");
    status = print(cli, query, result, err);
    if (status == STATUS_OK)
        status = judge(result, err);
    result_free(result);
    return status;
}

enum status command_compare(struct cli *cli, struct error *err)
{
    struct query query;
    enum status status = read_line(&query, &cli->options, err);
    return status == STATUS_OK ? cli_compare(cli, &query, err) : status;
}
