// Saved queries: command-line arguments that are a query text or the name of a saved query.
// The file ~/.config/inferstat/queries (or below XDG_CONFIG_HOME) has lines "name = text".
#ifndef INFERSTAT_CLIENT_CLI_ARGS_SAVED_QUERIES_H
#define INFERSTAT_CLIENT_CLI_ARGS_SAVED_QUERIES_H

#include "client/cli/cli.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Parses `text` as a query, or as the name of a saved query.  On a syntax error, prints the text
// with the invalid part underlined to env.notes and sets `err`.
MUST_CHECK enum status saved_queries_read(const struct cli *cli, const char *text,
                                          struct query *out, struct error *err);

// Lists the saved queries, with columns "name" and "text"; no rows without the file.  Reports
// invalid lines to env.notes and skips them.
MUST_CHECK enum status saved_queries_list(const struct cli *cli, struct result **out,
                                          struct error *err);

#endif
