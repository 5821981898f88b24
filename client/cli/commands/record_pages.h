// Paginated record queries: one query per page of rows, so that a listing of any length needs
// bounded memory in the client and bounded time per query in the collector.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_RECORD_PAGES_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_RECORD_PAGES_H

#include <stdint.h>

#include "client/cli/cli.h"

// Parses the command's arguments as a set of kinds (bit k: enum record_kind k), singular or plural;
// 0 without arguments.  STATUS_INVALID: unknown kind; the message suggests the nearest one.
MUST_CHECK enum status record_pages_kinds(uint32_t *out, const struct cli *cli, struct error *err);

// Callback for each page, which it owns; a status other than STATUS_OK ends the reading.
typedef enum status record_pages_on_page(void *context, struct result *page, struct error *err);

// Sends a query and calls `on_page` with the answer.  QUERY_RECORDS and QUERY_AUDIT are answered in
// pages, records at most query->limit rows in total (0: all).  `on_page` also gets an empty first
// page, which has the columns.
MUST_CHECK enum status record_pages_ask(struct cli *cli, const struct query *query,
                                        record_pages_on_page *on_page, void *context,
                                        struct error *err);

// An on_page callback that writes the page to its context, a struct rows.
MUST_CHECK enum status record_pages_to_rows(void *rows, struct result *page, struct error *err);

// An on_page callback that keeps the page in its context.  Initialise with zeroes, release with
// record_pages_free.
struct record_pages {
    struct result **all;
    size_t count, room;
};
MUST_CHECK enum status record_pages_keep(void *pages, struct result *page, struct error *err);
void record_pages_free(struct record_pages *pages);

// Reads records of `kind` that match the filter (NULL: cli->query.filter) page by page.  If all
// matching records have expired, returns STATUS_OK without calling `on_page`.
MUST_CHECK enum status record_pages_read(struct cli *cli, enum record_kind kind,
                                         const struct query_filter *filter, bool oldest_first,
                                         uint64_t limit, record_pages_on_page *on_page,
                                         void *context, struct error *err);

// Callback that adds the rows of a page (borrowed) to a table.
typedef enum status record_pages_add(struct cli *cli, struct rows *rows, const struct result *page,
                                     struct error *err);

// Runs a listing command of the kind that the command is named after.  Prints a table of --limit
// rows (default 20), filled by `add` (NULL: one table row per record); with --json or --csv writes
// the rows in that format (default: all).
MUST_CHECK enum status record_pages_list(struct cli *cli, record_pages_add *add, struct error *err);

// Sends the query and prints its answer with all columns, at most query->limit rows (0: all).
// STATUS_NO_DATA: there are none.
MUST_CHECK enum status record_pages_show(struct cli *cli, const struct query *query,
                                         struct error *err);

#endif
