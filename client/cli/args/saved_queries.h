// Queries as command line arguments: text in the query language, or the name of a query saved
// in ~/.config/inferstat/queries (or below XDG_CONFIG_HOME), whose lines are "name = text".
#ifndef INFERSTAT_CLIENT_CLI_ARGS_SAVED_QUERIES_H
#define INFERSTAT_CLIENT_CLI_ARGS_SAVED_QUERIES_H

#include "client/cli/cli.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Parses `text`, or the saved query of that name.  On an error the line, with marks under the
// mistake, goes to env.notes and the reason into `err`.
MUST_CHECK enum status saved_queries_read(const struct cli *cli, const char *text,
                                          struct query *out, struct error *err);

// The saved queries, with columns "name" and "text"; no rows if there is no file.  An invalid
// line is reported to env.notes and skipped.
MUST_CHECK enum status saved_queries_list(const struct cli *cli, struct result **out,
                                          struct error *err);

#endif
