// Saved queries: looks up queries by name in the user's configuration file.  The file is
// ~/.config/inferstat/queries (inferstat/queries in XDG_CONFIG_HOME, if that is set) and has lines
// "name = text", where the text is in the query language.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_SAVED_QUERIES_H
#define INFERSTAT_CLIENT_CLI_ARGS_SAVED_QUERIES_H

#include "client/cli/cli.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Parses the query `text`, which is in the query language or the name of a saved query.  On a
// syntax error prints the query to env.notes, with the invalid part underlined, and sets `err`.
MUST_CHECK enum status saved_queries_read(const struct cli *cli, const char *text,
                                          struct query *out, struct error *err);

// Lists the saved queries in columns "name" and "text".  Without the file the list is empty.
// Skips invalid lines, with a warning on env.notes.  The caller frees `*out`.
MUST_CHECK enum status saved_queries_list(const struct cli *cli, struct result **out,
                                          struct error *err);

#endif
