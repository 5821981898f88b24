// inferstat loads
#include "client/cli/commands/record_pages.h"
#include "client/cli/commands/stages.h"

static void put_line(void *rows, const char *line)
{
    rows_add_below(rows, line);
}

static enum status add_rows(struct cli *cli, struct rows *rows, const struct result *page,
                            struct error *err)
{
    struct stages stages = {0};
    enum status status = stages_ask(&stages, cli, page, err);
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(page); row++) {
        rows_write(rows, page, row, row + 1);
        status = stages_choose(&stages, page, row, err);
        stages_draw(&stages, cli->env.width, put_line, rows);
    }
    stages_deinit(&stages);
    return status;
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
