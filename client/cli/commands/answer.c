#include "client/cli/commands/answer.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/commands/record_pages.h"
#include "client/cli/output/table.h"
#include "common/core/base/text.h"

// ---- For people --------------------------------------------------------------------

// A table being filled; its columns are those of the first page.
struct filled {
    struct table *table;
    const char *what;
    char **titles;
    unsigned count;
    size_t rows;
};

static void free_filled(struct filled *filled)
{
    table_free(filled->table);
    for (unsigned i = 0; filled->titles && i < filled->count; i++)
        free(filled->titles[i]);
    free(filled->titles);
}

static enum status begin_table(struct filled *filled, const struct result *page)
{
    const unsigned count = result_column_count(page);
    struct table_column *columns = calloc(count + 1, sizeof *columns);
    filled->titles = calloc(count + 1, sizeof *filled->titles);
    enum status status = columns && filled->titles ? STATUS_OK : STATUS_NOMEM;
    filled->count = count;
    for (unsigned i = 0; status == STATUS_OK && i < count; i++) {
        const char *key = result_column(page, i)->key; // of the collector: not trusted
        filled->titles[i] = text_escape_new(key, strlen(key));
        status = filled->titles[i] ? STATUS_OK : STATUS_NOMEM;
        const enum value_type type = result_cell(page, 0, i).type;
        columns[i] = (struct table_column){
            .title = filled->titles[i],
            .align = type == VALUE_INT || type == VALUE_REAL ? TABLE_RIGHT : TABLE_LEFT,
            .may_shrink = type == VALUE_TEXT,
        };
    }
    if (status == STATUS_OK)
        status = table_new(&filled->table, columns, count);
    free(columns);
    return status;
}

static enum status fill_page(void *context, const struct result *page, struct error *err)
{
    struct filled *filled = context;
    if (!filled->table && begin_table(filled, page) != STATUS_OK)
        return error_no_memory(err, filled->what);
    const unsigned columns = result_column_count(page); // expected to equal those of the first page
    for (size_t row = 0; row < result_row_count(page); row++)
        for (unsigned i = 0; i < filled->count; i++) {
            table_add_value(filled->table, result_cell(page, row, i),
                            i < columns ? result_column(page, i)->unit : UNIT_NONE);
        }
    filled->rows += result_row_count(page);
    return STATUS_OK;
}

static enum status print(const struct cli *cli, const struct filled *filled, struct error *err)
{
    return table_print(filled->table, cli->env.out, cli->env.width, err);
}

enum status answer_print(struct cli *cli, const struct result *result, struct error *err)
{
    struct filled filled = {.what = cli->command->name};
    enum status status = fill_page(&filled, result, err);
    if (status == STATUS_OK)
        status = print(cli, &filled, err);
    free_filled(&filled);
    return status;
}

static enum status show_table(struct cli *cli, const struct query *query, struct error *err)
{
    struct filled filled = {.what = cli->command->name};
    enum status status = record_pages_ask(cli, query, fill_page, &filled, err);
    if (status == STATUS_OK && filled.rows == 0)
        status = cli_no_data(cli, cli->command->name, err);
    if (status == STATUS_OK)
        status = print(cli, &filled, err);
    free_filled(&filled);
    return status;
}

enum status answer_show(struct cli *cli, const struct query *query, struct error *err)
{
    if (cli->options.format == FORMAT_TEXT)
        return show_table(cli, query, err);
    struct rows rows = {.out = cli->env.out, .format = cli->options.format};
    enum status status = record_pages_ask(cli, query, record_pages_to_rows, &rows, err);
    if (status != STATUS_OK)
        return status;
    rows_end(&rows);
    return rows.count > 0 ? STATUS_OK : cli_no_data(cli, cli->command->name, err);
}
