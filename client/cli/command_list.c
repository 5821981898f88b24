// inferstat inferences | operations | pipelines | devices
#include "client/cli/insight.h"
#include "client/cli/listing.h"

static enum status add_rows(struct cli *cli, const struct view *view, struct table *table,
                            const struct result *page, struct error *err)
{
    (void)cli;
    (void)err;
    for (size_t row = 0; row < result_row_count(page); row++)
        view_add_row(view, table, page, row);
    return STATUS_OK;
}

enum status command_list(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_SLOWEST))
        return command_slowest(cli, err);
    return cli->options.format == FORMAT_TEXT ? listing_for_people(cli, add_rows, err)
                                              : listing_for_machines(cli, err);
}
