// inferstat inferences | operations | pipelines | devices | runs
#include "client/cli/listing.h"
#include "client/cli/view.h"

// A table being filled from pages.
struct listed {
    const struct view *view;
    struct table *table;
    uint64_t rows;
};

static enum status take_page(void *context, const struct result *page, struct error *err)
{
    (void)err;
    struct listed *listed = context;
    for (size_t row = 0; row < result_row_count(page); row++)
        view_add_row(listed->view, listed->table, page, row);
    listed->rows += result_row_count(page);
    return STATUS_OK;
}

static enum status list_for_people(struct cli *cli, struct error *err)
{
    enum record_kind kind = listing_kind(cli);
    struct listed listed = {.view = view_of(kind)};
    if (view_table(&listed.table, listed.view) != STATUS_OK)
        return error_set(err, STATUS_NOMEM, "%s: out of memory", cli->command->name);
    enum status status =
        listing_pages(cli, kind, false, listing_limit(cli), take_page, &listed, err);
    if (status == STATUS_OK && listed.rows == 0)
        status = cli_no_data(cli, cli->command->name, err);
    if (status == STATUS_OK)
        status = table_print(listed.table, cli->around.out, cli->around.width, err);
    if (status == STATUS_OK)
        listing_note_limit(cli, listed.rows);
    table_free(listed.table);
    return status;
}

enum status command_list(struct cli *cli, struct error *err)
{
    return cli->options.format == FORMAT_TEXT ? list_for_people(cli, err)
                                              : listing_for_machines(cli, err);
}
