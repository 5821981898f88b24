#include "client/cli/commands/answer.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/output/table.h"
#include "common/core/base/text.h"

enum { PAGE_ROWS = 1000 };

// Called with each page (borrowed); anything but STATUS_OK stops.
typedef enum status answer_on_page(void *context, const struct result *page, struct error *err);

// Only listings are split into pages.
static bool has_pages(const struct query *query)
{
    return query->kind == QUERY_RECORDS;
}

// Rows of the next page, of `limit` (0: all) after `done`.
static uint32_t page_rows(uint32_t limit, uint64_t done)
{
    const uint64_t left = limit - done;
    return limit == 0 || left > PAGE_ROWS ? PAGE_ROWS : (uint32_t)left;
}

static enum status ask_pages(struct cli *cli, const struct query *asked, answer_on_page *on_page,
                             void *context, struct error *err)
{
    struct query *query = malloc(sizeof *query);
    if (!query)
        return error_no_memory(err, cli->command->name);
    *query = *asked;
    uint64_t done = 0;
    enum status status;
    do {
        struct result *page;
        if (has_pages(asked))
            query->limit = page_rows(asked->limit, done);
        status = cli_ask(cli, query, &page, err);
        if (status != STATUS_OK)
            break;
        const size_t count = result_row_count(page);
        done += count;
        query->cursor = count > 0 ? result_next_cursor(page) : 0;
        status = on_page(context, page, err);
        result_free(page);
    } while (status == STATUS_OK && query->cursor != 0 &&
             (asked->limit == 0 || done < asked->limit));
    free(query);
    return status;
}

static enum status write_page(void *context, const struct result *page, struct error *err)
{
    struct rows *rows = context;
    rows_write(rows, page, 0, result_row_count(page));
    if (ferror(rows->out))
        return error_set(err, STATUS_IO, "output: cannot write: the output is incomplete");
    return STATUS_OK;
}

enum status answer_write(struct cli *cli, const struct query *query, struct rows *rows,
                         struct error *err)
{
    return ask_pages(cli, query, write_page, rows, err);
}

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

// Column keys come from the collector: they are not trusted.
static char *escaped(const char *key)
{
    const size_t room = 4 * strlen(key) + 1;
    char *text = malloc(room);
    return text ? text_escape(text, room, key, strlen(key)) : NULL;
}

static enum status begin_table(struct filled *filled, const struct result *page)
{
    const unsigned count = result_column_count(page);
    struct table_column *columns = calloc(count + 1, sizeof *columns);
    filled->titles = calloc(count + 1, sizeof *filled->titles);
    enum status status = columns && filled->titles ? STATUS_OK : STATUS_NOMEM;
    filled->count = count;
    for (unsigned i = 0; status == STATUS_OK && i < count; i++) {
        filled->titles[i] = escaped(result_column(page, i)->key);
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
    enum status status = ask_pages(cli, query, fill_page, &filled, err);
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
    enum status status = answer_write(cli, query, &rows, err);
    if (status != STATUS_OK)
        return status;
    rows_end(&rows);
    return rows.count > 0 ? STATUS_OK : cli_no_data(cli, cli->command->name, err);
}
