// inferstat loads
#include "client/cli/listing.h"
#include "client/cli/stages.h"
#include "client/cli/view.h"

enum {
    WATERFALL_LEAST = 72, // terminal columns for stages with bars
    BAR_WIDTH = 30,
};

struct listed {
    struct cli *cli;
    const struct view *view;
    struct table *table;
    uint64_t rows;
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

static enum status take_page(void *context, const struct result *page, struct error *err)
{
    struct listed *listed = context;
    struct stages *stages;
    enum status status = stages_ask(&stages, listed->cli, page, err);
    if (status != STATUS_OK)
        return status;
    unsigned width = listed->cli->around.width;
    unsigned bar = width == 0 || width >= WATERFALL_LEAST ? BAR_WIDTH : 0;
    for (size_t row = 0; row < result_row_count(page); row++) {
        view_add_row(listed->view, listed->table, page, row);
        add_waterfall(listed->table, stages, page, row, bar);
    }
    listed->rows += result_row_count(page);
    stages_free(stages);
    return STATUS_OK;
}

static enum status list_for_people(struct cli *cli, struct error *err)
{
    struct listed listed = {.cli = cli, .view = view_of(RECORD_KIND_LOAD)};
    if (view_table(&listed.table, listed.view) != STATUS_OK)
        return error_set(err, STATUS_NOMEM, "loads: out of memory");
    enum status status =
        listing_pages(cli, RECORD_KIND_LOAD, false, listing_limit(cli), take_page, &listed, err);
    if (status == STATUS_OK && listed.rows == 0)
        status = cli_no_data(cli, "loads", err);
    if (status == STATUS_OK)
        status = table_print(listed.table, cli->around.out, cli->around.width, err);
    if (status == STATUS_OK)
        listing_note_limit(cli, listed.rows);
    table_free(listed.table);
    return status;
}

enum status command_loads(struct cli *cli, struct error *err)
{
    return cli->options.format == FORMAT_TEXT ? list_for_people(cli, err)
                                              : listing_for_machines(cli, err);
}
