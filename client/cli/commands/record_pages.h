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

// Reads records of `kind` that match the query's filter and calls `on_page` with each page, at
// most `limit` rows in all (0: all).  An empty first page is passed on for its columns; there
// is none if all matching records have expired.
MUST_CHECK enum status record_pages_read(struct cli *cli, enum record_kind kind, bool oldest_first,
                                         uint64_t limit, record_pages_on_page *on_page,
                                         void *context, struct error *err);

// The same with another filter.
MUST_CHECK enum status record_pages_read_filtered(struct cli *cli, enum record_kind kind,
                                                  const struct query_filter *filter,
                                                  bool oldest_first, uint64_t limit,
                                                  record_pages_on_page *on_page, void *context,
                                                  struct error *err);

// Writes such a listing to `rows`.  The caller calls rows_end.
MUST_CHECK enum status record_pages_write(struct cli *cli, enum record_kind kind, bool oldest_first,
                                          uint64_t limit, struct rows *rows, struct error *err);

// Adds the rows of a page (borrowed) to a table with these columns.
typedef enum status record_pages_add(struct cli *cli, const struct columns *view,
                                     struct table *table, const struct result *page,
                                     struct error *err);

// The whole command without --json or --csv: a table of the newest rows, as many as --limit
// says.
MUST_CHECK enum status record_pages_print(struct cli *cli, record_pages_add *add,
                                          struct error *err);

// The whole command with --json or --csv.
MUST_CHECK enum status record_pages_export(struct cli *cli, struct error *err);

#endif
