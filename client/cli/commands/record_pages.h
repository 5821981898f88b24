// Paginated record queries: one query per page of rows, so that a listing of any length needs
// bounded memory in the client and bounded time per query in the collector.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_RECORD_PAGES_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_RECORD_PAGES_H

#include <stdint.h>

#include "client/cli/cli.h"
#include "client/cli/output/rows.h"
#include "client/cli/output/columns.h"

// Callback for each page (borrowed); a status other than STATUS_OK ends the reading.
typedef enum status record_pages_on_page(void *context, const struct result *page,
                                         struct error *err);

// Sends a query and calls `on_page` with the answer.  A QUERY_RECORDS is answered in pages, at
// most query->limit rows in total (0: all).  `on_page` also gets an empty first page, which has the
// columns.
MUST_CHECK enum status record_pages_ask(struct cli *cli, const struct query *query,
                                        record_pages_on_page *on_page, void *context,
                                        struct error *err);

// An on_page callback that writes the page to its context, a struct rows.
MUST_CHECK enum status record_pages_to_rows(void *rows, const struct result *page,
                                            struct error *err);

// Reads records of `kind` that match the filter (NULL: cli->query.filter) page by page.  If all
// matching records have expired, returns STATUS_OK without calling `on_page`.
MUST_CHECK enum status record_pages_read(struct cli *cli, enum record_kind kind,
                                         const struct query_filter *filter, bool oldest_first,
                                         uint64_t limit, record_pages_on_page *on_page,
                                         void *context, struct error *err);

// Callback that adds the rows of a page (borrowed) to a table with these columns.
typedef enum status record_pages_add(struct cli *cli, const struct columns *view,
                                     struct table *table, const struct result *page,
                                     struct error *err);

// Runs a listing command of the kind that the command is named after.  Prints a table of --limit
// rows (default 20), filled by `add` (NULL: one table row per record); with --json or --csv writes
// the rows in that format (default: all).
MUST_CHECK enum status record_pages_list(struct cli *cli, record_pages_add *add, struct error *err);

#endif
