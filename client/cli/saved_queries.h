// Queries as words of a command line: a line of the query language, or the name of
// one in the file ~/.config/inferstat/queries (or below XDG_CONFIG_HOME), whose lines
// are "name = text".
#ifndef INFERSTAT_CLIENT_CLI_SAVED_QUERIES_H
#define INFERSTAT_CLIENT_CLI_SAVED_QUERIES_H

#include "client/cli/cli.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Reads the query that `text` is or names.  Where it cannot be read, the line and
// marks under what is wrong go to env.notes, and the reason into `err`.
MUST_CHECK enum status saved_queries_read(const struct cli *cli, const char *text,
                                          struct query *out, struct error *err);

// The file's queries, columns "name" and "text"; none where there is no file.  A line that
// is none is named in env.notes and passed over.
MUST_CHECK enum status saved_queries_list(const struct cli *cli, struct result **out,
                                          struct error *err);

#endif
