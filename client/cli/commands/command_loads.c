// inferstat loads
#include "client/cli/commands/insight.h"
#include "client/cli/commands/record_pages.h"
#include "client/cli/commands/stages.h"

static void put_line(void *table, const char *line)
{
    table_add_below(table, line);
}

static enum status add_rows(struct cli *cli, const struct columns *view, struct table *table,
                            const struct result *page, struct error *err)
{
    struct stages *stages;
    enum status status = stages_ask(&stages, cli, page, err);
    if (status != STATUS_OK)
        return status;
    for (size_t row = 0; row < result_row_count(page); row++) {
        columns_add_row(view, table, page, row);
        size_t count;
        const struct stage *stage = stages_of(stages, page, row, &count);
        stages_draw(stage, count, result_integer(page, row, "started_ns", 0),
                    result_integer(page, row, "duration_ns", 0), cli->env.width, put_line, table);
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
