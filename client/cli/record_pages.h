// Records page by page, so that a listing of any length takes bounded memory
// here and bounded time there.
#ifndef INFERSTAT_CLIENT_CLI_RECORD_PAGES_H
#define INFERSTAT_CLIENT_CLI_RECORD_PAGES_H

#include <stdint.h>

#include "client/cli/cli.h"
#include "client/cli/rows.h"
#include "client/cli/columns.h"

// Takes one page (borrowed); anything but STATUS_OK ends the listing.
typedef enum status record_pages_on_page(void *context, const struct result *page,
                                         struct error *err);

// Asks for records of `kind` under the options' filter and hands the pages to
// `on_page`, at most `limit` rows in all (0: all).  A page without rows is handed on
// too when it is the first, for its columns; none is where all that was asked for has
// expired.
MUST_CHECK enum status record_pages_read(struct cli *cli, enum record_kind kind, bool oldest_first,
                                         uint64_t limit, record_pages_on_page *on_page,
                                         void *context, struct error *err);

// The same with a filter other than the options'.
MUST_CHECK enum status record_pages_read_filtered(struct cli *cli, enum record_kind kind,
                                                  const struct query_filter *filter,
                                                  bool oldest_first, uint64_t limit,
                                                  record_pages_on_page *on_page, void *context,
                                                  struct error *err);

// Writes such a listing to `rows`; rows_end is the caller's.
MUST_CHECK enum status record_pages_write(struct cli *cli, enum record_kind kind, bool oldest_first,
                                          uint64_t limit, struct rows *rows, struct error *err);

// Adds the rows of a page (borrowed) to a table of the view.
typedef enum status record_pages_add(struct cli *cli, const struct columns *view,
                                     struct table *table, const struct result *page,
                                     struct error *err);

// A listing for people: the whole of a command without --json or --csv.  The newest
// rows, where --limit asks for no others.
MUST_CHECK enum status record_pages_print(struct cli *cli, record_pages_add *add,
                                          struct error *err);

// A listing for machines: the whole of a command under --json or --csv.
MUST_CHECK enum status record_pages_export(struct cli *cli, struct error *err);

#endif
