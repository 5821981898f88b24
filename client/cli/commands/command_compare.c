// inferstat compare BEFORE AFTER | compare --against BEFORE
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/commands/comparison.h"
#include "client/cli/output/rows.h"
#include "common/core/stats/stats.h"

// The smallest margin; 0 means the default.
static const double no_margin = 1e-9;

// Checks the options against each other: two baselines, or one baseline and filters.
static enum status check_sides(const struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const unsigned words = options->argument_count;
    if (option_given(options, OPTION_MARKDOWN) && options->format != FORMAT_TEXT)
        return error_set(err, STATUS_INVALID, "--json, --csv and --markdown: only one of them");
    if (options->against ? words != 0 : words != 2)
        return error_set(err, STATUS_INVALID,
                         "compare: give two baselines, or --against BASELINE and filters (see "
                         "inferstat compare --help)");
    if (!options->against && query_filter_narrows(&cli->query.compare.other))
        return error_set(err, STATUS_INVALID,
                         "compare: filters do not apply to two baselines (--against compares one "
                         "with what filters cover)");
    return STATUS_OK;
}

// The overall verdict: any comparison that is worse; else any that is undecided despite
// enough values; else undecided if none had enough values.
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
    rows_print(cli->env.out, cli->options.format, result);
    return STATUS_OK;
}

enum status cli_compare(struct cli *cli, const struct query *query, struct error *err)
{
    struct result *result;
    enum status status = cli_ask(cli, query, &result, err);
    if (status == STATUS_NO_DATA && cli->options.format == FORMAT_JSON)
        rows_print(cli->env.out, FORMAT_JSON, NULL);
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
    enum status status = check_sides(cli, err);
    double *margin = &cli->query.compare.margin;
    if (cli->options.margin && *margin < no_margin)
        *margin = no_margin;
    return status == STATUS_OK ? cli_compare(cli, &cli->query, err) : status;
}
