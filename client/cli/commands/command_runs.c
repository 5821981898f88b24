// inferstat runs
#include <stdio.h>

#include "client/cli/commands/record_pages.h"
#include "common/core/query/loss_text.h"

// A run with losses has a line with the reasons below its row.
static enum status add_rows(struct cli *cli, const struct columns *view, struct table *table,
                            const struct result *page, struct error *err)
{
    (void)cli;
    (void)err;
    for (size_t row = 0; row < result_row_count(page); row++) {
        char losses[LOSS_TEXT_SIZE], line[LOSS_TEXT_SIZE + 16];
        columns_add_row(view, table, page, row);
        if (loss_text(losses, page, row)[0] == '\0')
            continue;
        (void)snprintf(line, sizeof line, "    lost: %s", losses);
        table_add_below(table, line);
    }
    return STATUS_OK;
}

enum status command_runs(struct cli *cli, struct error *err)
{
    return record_pages_list(cli, add_rows, err);
}
