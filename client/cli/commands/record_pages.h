// Reads records page by page: bounded memory in the client and bounded time in the collector
// for a listing of any length.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_RECORD_PAGES_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_RECORD_PAGES_H

#include <stdint.h>

#include "client/cli/cli.h"
#include "client/cli/output/rows.h"
#include "client/cli/output/columns.h"

// Called with each page (borrowed); anything but STATUS_OK stops.
typedef enum status record_pages_on_page(void *context, const struct result *page,
                                         struct error *err);

// Sends a query and calls `on_page` with its answer: with each page if it lists records, at
// most `limit` rows in all (0: all).  An empty first page is passed on for its columns.
MUST_CHECK enum status record_pages_ask(struct cli *cli, const struct query *query,
                                        record_pages_on_page *on_page, void *context,
                                        struct error *err);

// An on_page whose context is a struct rows, to which it writes the page.
MUST_CHECK enum status record_pages_to_rows(void *rows, const struct result *page,
                                            struct error *err);

// Reads records of `kind` that match the filter (NULL: the command's query's) page by page.
// There is no page if all matching records have expired.
MUST_CHECK enum status record_pages_read(struct cli *cli, enum record_kind kind,
                                         const struct query_filter *filter, bool oldest_first,
                                         uint64_t limit, record_pages_on_page *on_page,
                                         void *context, struct error *err);

// Adds the rows of a page (borrowed) to a table with these columns.
typedef enum status record_pages_add(struct cli *cli, const struct columns *view,
                                     struct table *table, const struct result *page,
                                     struct error *err);

// The whole command: a table of the newest rows, as many as --limit says, to which `add` adds
// each page (NULL: its rows), or all rows with --json or --csv.
MUST_CHECK enum status record_pages_list(struct cli *cli, record_pages_add *add, struct error *err);

#endif
