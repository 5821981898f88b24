// inferstat loads
#include "client/cli/commands/insight.h"
#include "client/cli/commands/record_pages.h"
#include "client/cli/commands/stages.h"

enum {
    WATERFALL_LEAST = 72, // terminal columns for stages with bars
    BAR_WIDTH = 30,
};

static void add_waterfall(struct table *table, struct stages *stages, const struct result *page,
                          size_t row, unsigned bar)
{
    int64_t started = result_integer(page, row, "started_ns", 0);
    int64_t duration = result_integer(page, row, "duration_ns", 0);
    size_t count;
    const struct stage *stage = stages_of(stages, page, row, &count);
    char line[STAGES_LINE_SIZE];
    for (size_t i = 0; i < count; i++)
        table_add_below(table, stages_line(line, &stage[i], started, duration, bar));
    struct stage other = {.duration_ns = stages_other_ns(stage, count, duration)};
    if (other.duration_ns > 0)
        table_add_below(table, stages_line(line, &other, started, duration, bar));
}

static enum status add_rows(struct cli *cli, const struct columns *view, struct table *table,
                            const struct result *page, struct error *err)
{
    struct stages *stages;
    enum status status = stages_ask(&stages, cli, page, err);
    if (status != STATUS_OK)
        return status;
    unsigned width = cli->env.width;
    unsigned bar = width == 0 || width >= WATERFALL_LEAST ? BAR_WIDTH : 0;
    for (size_t row = 0; row < result_row_count(page); row++) {
        columns_add_row(view, table, page, row);
        add_waterfall(table, stages, page, row, bar);
    }
    stages_free(stages);
    return STATUS_OK;
}

enum status command_loads(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    const bool average = option_given(options, OPTION_AVERAGE);
    const bool compare = option_given(options, OPTION_COMPARE);
    if (average && compare)
        return error_set(err, STATUS_INVALID, "loads: --average and --compare: only one of them");
    if (options->argument_count > 0 && !compare)
        return error_set(err, STATUS_INVALID,
                         "loads: unexpected argument '%s' (sides of --compare?)",
                         options->arguments[0]);
    if (option_given(options, OPTION_BY) && !average && !compare)
        return error_set(err, STATUS_INVALID, "loads: --by is for --average and --compare");
    if (average)
        return command_load_average(cli, err);
    if (compare)
        return command_load_comparison(cli, err);
    return record_pages_list(cli, add_rows, err);
}
