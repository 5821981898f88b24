// inferstat inferences | operations | pipelines | devices
#include "client/cli/commands/insight.h"
#include "client/cli/commands/record_pages.h"

static enum status add_rows(struct cli *cli, const struct columns *view, struct table *table,
                            const struct result *page, struct error *err)
{
    (void)cli;
    (void)err;
    for (size_t row = 0; row < result_row_count(page); row++)
        columns_add_row(view, table, page, row);
    return STATUS_OK;
}

enum status command_list(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_SLOWEST))
        return command_slowest(cli, err);
    return cli->options.format == FORMAT_TEXT ? record_pages_print(cli, add_rows, err)
                                              : record_pages_export(cli, err);
}
