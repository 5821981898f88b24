#include "client/cli/commands/record_pages.h"

#include <stdlib.h>

#include "client/cli/output/columns.h"
#include "common/core/base/array.h"
#include "common/core/base/parse.h"
#include "common/sys/clock.h"

enum { PAGE_ROWS = 1000 };

// How long, and at what interval, a later page is retried while the collector runs another
// client's audit.
#define BUSY_LIMIT_NS UINT64_C(10000000000)
#define BUSY_PAUSE_NS UINT64_C(100000000)

// ---- Kinds ------------------------------------------------------------------------

enum status record_pages_kinds(uint32_t *out, const struct cli *cli, struct error *err)
{
    *out = 0;
    for (unsigned i = 0; i < cli->options.argument_count; i++) {
        const char *word = cli->options.arguments[i];
        const enum record_kind kind = record_kind_find(word);
        if (kind != RECORD_KIND_COUNT) {
            *out |= UINT32_C(1) << kind;
            continue;
        }
        const char *names[RECORD_KIND_COUNT];
        for (int k = 0; k < (int)RECORD_KIND_COUNT; k++)
            names[k] = record_kind_info((enum record_kind)k)->name;
        const char *nearest = parse_nearest(word, names, RECORD_KIND_COUNT);
        return error_set(err, STATUS_INVALID, "%s: unknown kind of records: %s (%s%s%s)",
                         cli->command->name, word, nearest ? "did you mean " : "see inferstat ",
                         nearest ? nearest : "metrics --columns", nearest ? "?" : "");
    }
    return STATUS_OK;
}

// ---- Pages ------------------------------------------------------------------------

// Retries while another client's audit is running, so that earlier pages are not lost.
static enum status ask_page(struct cli *cli, const struct query *query, struct result **out,
                            struct error *err)
{
    const uint64_t deadline = clock_monotonic_ns() + (query->cursor != 0 ? BUSY_LIMIT_NS : 0);
    enum status status = cli_ask(cli, query, out, err);
    while (status == STATUS_BUSY && clock_monotonic_ns() < deadline) {
        clock_sleep_until_ns(clock_monotonic_ns() + BUSY_PAUSE_NS);
        status = cli_ask(cli, query, out, err);
    }
    return status;
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
            query->limit = asked->limit == 0 || asked->limit - done > PAGE_ROWS
                               ? PAGE_ROWS
                               : (uint32_t)(asked->limit - done);
        struct result *page;
        status = ask_page(cli, query, &page, err);
        if (status != STATUS_OK)
            break;
        const size_t rows = result_row_count(page);
        query->cursor = rows > 0 ? result_next_cursor(page) : 0;
        if (rows > 0 || done == 0)
            status = on_page(context, page, err);
        else
            result_free(page);
        done += rows;
    } while (status == STATUS_OK && query->cursor != 0 &&
             (asked->limit == 0 || done < asked->limit || query->kind == QUERY_AUDIT));
    free(query);
    return status;
}

enum status record_pages_read(struct cli *cli, enum record_kind kind,
                              const struct query_filter *filter, bool oldest_first, uint64_t limit,
                              record_pages_on_page *on_page, void *context, struct error *err)
{
    const struct query query = {.kind = QUERY_RECORDS,
                                .filter = filter ? *filter : cli->query.filter,
                                .group_by = {cli->query.group_by[0]},
                                .group_count = kind == RECORD_KIND_DEVICE && cli->query.group_count,
                                .limit = (uint32_t)limit,
                                .records = {.kind = kind, .oldest_first = oldest_first}};
    enum status status = record_pages_ask(cli, &query, on_page, context, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status; // cli_no_data says why
}

enum status record_pages_to_rows(void *context, struct result *page, struct error *err)
{
    struct rows *rows = context;
    rows_write(rows, page, 0, result_row_count(page));
    result_free(page);
    if (ferror(rows->out))
        return error_set(err, STATUS_IO, "output: cannot write: the output is incomplete");
    return STATUS_OK;
}

enum status record_pages_keep(void *context, struct result *page, struct error *err)
{
    struct record_pages *pages = context;
    if (!ARRAY_RESERVE(&pages->all, &pages->room, pages->count + 1)) {
        result_free(page);
        return error_no_memory(err, "records");
    }
    pages->all[pages->count++] = page;
    return STATUS_OK;
}

void record_pages_free(struct record_pages *pages)
{
    for (size_t i = 0; i < pages->count; i++)
        result_free(pages->all[i]);
    free(pages->all);
}

// ---- Listings ---------------------------------------------------------------------

struct listing {
    struct cli *cli;
    record_pages_add *add;
    struct rows rows;
    bool has_more; // records after the last page
};

static enum status on_page(void *context, struct result *page, struct error *err)
{
    struct listing *listing = context;
    listing->has_more = result_next_cursor(page) != 0;
    if (!listing->add || listing->rows.format != FORMAT_TEXT)
        return record_pages_to_rows(&listing->rows, page, err);
    enum status status = listing->add(listing->cli, &listing->rows, page, err);
    result_free(page);
    return status;
}

static enum status end(struct cli *cli, struct rows *rows, enum status status, struct error *err)
{
    status = rows_end(rows, status, err);
    return status == STATUS_OK && rows->count == 0 ? cli_no_data(cli, cli->command->name, err)
                                                   : status;
}

enum status record_pages_list(struct cli *cli, record_pages_add *add, struct error *err)
{
    const enum record_kind kind = cli->query.records.kind;
    const bool is_oldest = cli->query.records.oldest_first;
    const bool is_limited = option_given(&cli->options, OPTION_LIMIT);
    // Without --limit the newest 20 for people, and all with --json and --csv.
    const uint64_t usual = cli->options.format == FORMAT_TEXT ? CLI_ROWS_FOR_PEOPLE : 0;
    struct listing listing = {.cli = cli, .add = add, .rows = cli_rows(cli, columns_of(kind))};
    enum status status = record_pages_read(
        cli, kind, NULL, is_oldest, is_limited ? cli->query.limit : usual, on_page, &listing, err);
    status = end(cli, &listing.rows, status, err);
    if (status == STATUS_OK && listing.has_more)
        cli_note_limit(cli, listing.rows.count, 0);
    return status;
}

enum status record_pages_show(struct cli *cli, const struct query *query, struct error *err)
{
    struct rows rows = cli_rows(cli, NULL);
    enum status status = record_pages_ask(cli, query, record_pages_to_rows, &rows, err);
    return end(cli, &rows, status, err);
}
