// Paginated queries: reads a long answer as several pages of rows, with one query per page.  So a
// query takes a bounded time, and the caller need not hold the whole answer in memory.  Used by the
// commands that list or export records.
#pragma once

#include <stdint.h>

#include "client/cli/cli.h"

// Parses the command's arguments as kinds of records, singular or plural, and sets `*out` to a bit
// set of them (bit k is enum record_kind k); 0 without arguments.  Returns STATUS_INVALID if a
// kind is unknown; `err` suggests the nearest one.
MUST_CHECK enum status record_pages_kinds(uint32_t *out, const struct cli *cli, struct error *err);

// Callback for each page; it owns `page` and frees it, also if it fails.  A status other than
// STATUS_OK ends the reading and is returned.
typedef enum status record_pages_on_page(void *context, struct result *page, struct error *err);

// Answers a query and calls `on_page` for each page of the answer.  Only QUERY_RECORDS and
// QUERY_AUDIT have several pages.  QUERY_RECORDS reads at most query->limit rows in total (0: all).
// An answer without rows is one empty page, which has the columns.
MUST_CHECK enum status record_pages_ask(struct cli *cli, const struct query *query,
                                        record_pages_on_page *on_page, void *context,
                                        struct error *err);

// `on_page` callback that prints the page by rows_write; `rows` is a struct rows (rows.h).
MUST_CHECK enum status record_pages_to_rows(void *rows, struct result *page, struct error *err);

// A growable array of pages.  Initialise with zeroes, release with record_pages_free.
struct record_pages {
    struct result **all;
    size_t count, room; // pages; capacity of `all`
};

// `on_page` callback that appends the page to `pages`, a struct record_pages.
MUST_CHECK enum status record_pages_keep(void *pages, struct result *page, struct error *err);
void record_pages_free(struct record_pages *pages);

// Reads the records of `kind` that match `filter` (NULL: cli->query.filter), at most `limit`
// (0: all), page by page.  If all matching records have expired, returns STATUS_OK without calling
// `on_page`.
MUST_CHECK enum status record_pages_read(struct cli *cli, enum record_kind kind,
                                         const struct query_filter *filter, bool oldest_first,
                                         uint64_t limit, record_pages_on_page *on_page,
                                         void *context, struct error *err);

// Callback that adds the rows of `page` (borrowed) to the text table of `rows`.
typedef enum status record_pages_add(struct cli *cli, struct rows *rows, const struct result *page,
                                     struct error *err);

// Runs a listing command (`loads`, `inferences`, ...): lists the records of the kind in cli->query.
//   text             a table of at most --limit records (default 20); `add` fills it; NULL: one row
//                    per record
//   --json or --csv  at most --limit records (default: all); does not call `add`
MUST_CHECK enum status record_pages_list(struct cli *cli, record_pages_add *add, struct error *err);

// Answers a query by record_pages_ask and prints all columns of the answer.  Returns
// STATUS_NO_DATA if the answer has no rows.
MUST_CHECK enum status record_pages_show(struct cli *cli, const struct query *query,
                                         struct error *err);
