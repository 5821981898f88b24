#include "client/cli/commands/record_pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/kinds.h"

enum { PAGE_ROWS = 1000, NEWEST_FOR_PEOPLE = 20 };

// Rows of the next page, of `limit` (0: all) after `done`.
static uint32_t page_rows(uint32_t limit, uint64_t done)
{
    if (limit == 0 || limit - done > PAGE_ROWS)
        return PAGE_ROWS;
    return (uint32_t)(limit - done);
}

enum status record_pages_ask(struct cli *cli, const struct query *asked,
                             record_pages_on_page *on_page, void *context, struct error *err)
{
    struct query *query = malloc(sizeof *query);
    if (!query)
        return error_no_memory(err, cli->command->name);
    *query = *asked;
    enum status status;
    uint64_t done = 0;
    do {
        if (query->kind == QUERY_RECORDS)
            query->limit = page_rows(asked->limit, done);
        struct result *page;
        status = cli_ask(cli, query, &page, err);
        if (status != STATUS_OK)
            break;
        const size_t rows = result_row_count(page);
        if (rows > 0 || done == 0)
            status = on_page(context, page, err);
        done += rows;
        query->cursor = rows > 0 ? result_next_cursor(page) : 0;
        result_free(page);
    } while (status == STATUS_OK && query->cursor != 0 &&
             (asked->limit == 0 || done < asked->limit));
    free(query);
    return status;
}

enum status record_pages_read(struct cli *cli, enum record_kind kind,
                              const struct query_filter *filter, bool oldest_first, uint64_t limit,
                              record_pages_on_page *on_page, void *context, struct error *err)
{
    const struct query query = {.kind = QUERY_RECORDS,
                                .filter = filter ? *filter : cli->query.filter,
                                .limit = (uint32_t)limit,
                                .records = {.kind = kind, .oldest_first = oldest_first}};
    enum status status = record_pages_ask(cli, &query, on_page, context, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status; // cli_no_data says why
}

enum status record_pages_to_rows(void *context, const struct result *page, struct error *err)
{
    struct rows *rows = context;
    rows_write(rows, page, 0, result_row_count(page));
    if (ferror(rows->out))
        return error_set(err, STATUS_IO, "output: cannot write: the output is incomplete");
    return STATUS_OK;
}

// The number of rows to read: --limit, else all with --json and --csv, and the newest 20
// without.  0: all.
static uint64_t page_limit(const struct cli *cli)
{
    if (option_given(&cli->options, OPTION_LIMIT))
        return cli->query.limit;
    return cli->options.format == FORMAT_TEXT ? NEWEST_FOR_PEOPLE : 0;
}

// Prints that the listing is cut, if it is.
static void note_limit(const struct cli *cli, uint64_t rows)
{
    if (!option_given(&cli->options, OPTION_LIMIT) && rows == NEWEST_FOR_PEOPLE)
        (void)fprintf(cli->env.out, "(the %" PRIu64 " %s; --limit 0 shows all)\n", rows,
                      cli->query.records.oldest_first ? "oldest" : "newest");
}

// A table being filled from pages.
struct listed {
    struct cli *cli;
    record_pages_add *add;
    const struct columns *view;
    struct table *table;
    uint64_t rows;
};

static enum status on_page(void *context, const struct result *page, struct error *err)
{
    struct listed *listed = context;
    listed->rows += result_row_count(page);
    if (listed->add)
        return listed->add(listed->cli, listed->view, listed->table, page, err);
    for (size_t row = 0; row < result_row_count(page); row++)
        columns_add_row(listed->view, listed->table, page, row);
    return STATUS_OK;
}

static enum status print(struct cli *cli, enum record_kind kind, record_pages_add *add,
                         struct error *err)
{
    struct listed listed = {.cli = cli, .add = add, .view = columns_of(kind)};
    if (columns_new_table(&listed.table, listed.view) != STATUS_OK)
        return error_no_memory(err, cli->command->name);
    enum status status = record_pages_read(cli, kind, NULL, cli->query.records.oldest_first,
                                           page_limit(cli), on_page, &listed, err);
    if (status == STATUS_OK && listed.rows == 0)
        status = cli_no_data(cli, cli->command->name, err);
    if (status == STATUS_OK)
        status = table_print(listed.table, cli->env.out, cli->env.width, err);
    if (status == STATUS_OK)
        note_limit(cli, listed.rows);
    table_free(listed.table);
    return status;
}

enum status record_pages_list(struct cli *cli, record_pages_add *add, struct error *err)
{
    const enum record_kind kind = kinds_find(cli->command->name);
    if (cli->options.format == FORMAT_TEXT)
        return print(cli, kind, add, err);
    struct rows rows = {.out = cli->env.out, .format = cli->options.format};
    enum status status = record_pages_read(cli, kind, NULL, cli->query.records.oldest_first,
                                           page_limit(cli), record_pages_to_rows, &rows, err);
    if (status != STATUS_OK)
        return status;
    rows_end(&rows);
    return rows.count > 0 ? STATUS_OK : cli_no_data(cli, cli->command->name, err);
}
