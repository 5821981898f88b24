// inferstat avg METRIC [--by LIST] [--step TIME] [--slo LIST]
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/output/columns.h"

// The figures shown after the columns of the groups.
static const struct {
    struct column column;
    bool needed; // shown even if no row has it, but for throughput
} figures[] = {
    {{"count", "count", COLUMN_RIGHT(0)}, true},
    {{"mean", "mean", COLUMN_RIGHT(0)}, true},
    {{"sum", "sum", COLUMN_RIGHT(1)}, false},
    {{"window_ns", "in", COLUMN_RIGHT(2)}, false},
    {{"total_over_total", "total/total", COLUMN_RIGHT(0)}, false},
    {{"met_ratio", "met", COLUMN_RIGHT(0)}, false},
    {{"min", "min", COLUMN_RIGHT(3)}, true},
    {{"max", "max", COLUMN_RIGHT(2)}, true},
    {{"p50", "p50", COLUMN_RIGHT(0)}, true},
    {{"p90", "p90", COLUMN_RIGHT(3)}, true},
    {{"p95", "p95", COLUMN_RIGHT(1)}, true},
    {{"p99", "p99", COLUMN_RIGHT(0)}, true},
    {{"coverage_ratio", "coverage", COLUMN_RIGHT(0)}, true},
    {{"lost", "lost", COLUMN_RIGHT(1)}, true},
};

enum {
    FIGURE_COUNT = sizeof figures / sizeof *figures,
    SHOWN_MAX = QUERY_DIMENSION_COUNT + 1 + FIGURE_COUNT, // with the step
};

// A share of a bandwidth over 1 cannot be: it is marked, and the note says what it may be.
static char *bandwidth_text(const struct column *column, const struct result *result, size_t row)
{
    char *plain = column_value(column, result, row), *text = NULL;
    const struct value value = result_get(result, row, column->key);
    if (!plain || value.type != VALUE_REAL || !(value.r > 1.0))
        return plain;
    const int length = asprintf(&text, "%s!", plain);
    free(plain);
    return length < 0 ? NULL : text;
}

static bool any_row_has(const struct result *result, const char *key)
{
    for (size_t row = 0; row < result_row_count(result); row++)
        if (result_get(result, row, key).type != VALUE_NULL)
            return true;
    return false;
}

// Chooses the columns: groups first, then figures.
static unsigned choose(struct column out[SHOWN_MAX], const struct query_metric *metric,
                       const struct query *query, const struct result *result)
{
    unsigned count = columns_by_group(out, query);
    if (query->step_ns != 0)
        out[count++] = (struct column){.key = "started_ns", .title = "from"};
    for (unsigned i = 0; i < FIGURE_COUNT; i++)
        if ((figures[i].needed && !any_row_has(result, "window_ns")) ||
            any_row_has(result, figures[i].column.key)) {
            out[count] = figures[i].column;
            if (strcmp(metric->name, QUERY_METRIC_MBU) == 0)
                out[count].cell = bandwidth_text;
            count++;
        }
    return count;
}

// Notes incomplete coverage.
static void note_coverage(const struct cli *cli, const struct result *result)
{
    double least = 1.0; // where it is unknown, the store's note says so
    for (size_t row = 0; row < result_row_count(result); row++) {
        double coverage = result_number(result, row, "coverage_ratio", 1.0);
        least = coverage < least ? coverage : least;
    }
    if (least >= 1.0)
        return;
    char text[UNIT_TEXT_SIZE];
    cli_say(cli,
            "Note: records were lost; these figures cover %s%s of all records of "
            "their time, of any kind and model (inferstat runs lists the losses).",
            result_row_count(result) > 1 ? "as little as " : "",
            unit_format(text, UNIT_RATIO, least));
}

static enum status print(struct cli *cli, const struct query_metric *metric,
                         const struct result *result, struct error *err)
{
    FILE *out = cli->env.out;
    struct column shown[SHOWN_MAX];
    const bool is_table = cli->options.format == FORMAT_TEXT;
    const struct columns view = {shown, choose(shown, metric, &cli->query, result), NULL};
    if (is_table)
        (void)fprintf(out, "%s.%s: %s\n", record_kind_info(metric->kind)->name, metric->name,
                      metric->meaning);
    enum status status = cli_print_rows(cli, &view, result, "", err);
    if (status == STATUS_OK && is_table) {
        note_coverage(cli, result);
        cli_note(cli, result);
    }
    return status;
}

// Whether the filters match records of the kind that lack the metric.
static bool covers_records(struct cli *cli, const struct query_metric *metric)
{
    const struct query query = {.kind = QUERY_RECORDS,
                                .records.kind = metric->kind,
                                .filter = cli->query.filter,
                                .limit = 1};
    struct result *result = NULL;
    struct error ignored = {0};
    if (cli_ask(cli, &query, &result, &ignored) != STATUS_OK)
        return false;
    const bool covers = result_row_count(result) > 0;
    result_free(result);
    return covers;
}

// Explains why there is no data: few stores can have the metric, or the records lack it.
static enum status no_data(struct cli *cli, const struct query_metric *metric, struct error *err)
{
    if (strcmp(metric->name, QUERY_METRIC_MBU) == 0)
        return cli_no_data(cli,
                           QUERY_METRIC_MBU " (of models with file_bytes on devices with"
                                            " memory_bandwidth_bytes_per_second)",
                           err);
    const struct query_filter *filter = &cli->query.filter;
    if (!cli->nothing[0] && filter->since_ns <= cli->env.now_ns && covers_records(cli, metric))
        return error_set(err, STATUS_NO_DATA,
                         "%s: no data: none of these records of kind %s has it", cli->query.metric,
                         record_kind_info(metric->kind)->name);
    return cli_no_data(cli, cli->query.metric, err);
}

static enum status ask(struct cli *cli, const struct query_metric *known, struct result **out,
                       struct error *err)
{
    enum status status = cli_ask(cli, &cli->query, out, err);
    if (status != STATUS_NO_DATA && (status != STATUS_OK || result_row_count(*out) > 0))
        return status;
    cli_print_none(cli);
    return no_data(cli, known, err);
}

enum status command_average(struct cli *cli, struct error *err)
{
    const struct query_metric *metric;
    enum status status = query_metric_find(&metric, cli->query.metric, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "avg");

    struct result *result = NULL;
    cli->query.limit = 0; // cli_print_rows leaves rows out
    status = ask(cli, metric, &result, err);
    if (status == STATUS_OK)
        status = print(cli, metric, result, err);
    result_free(result);
    return status;
}
