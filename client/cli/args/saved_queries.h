// Saved queries: looks up a query by its name in a file of the user.  The file is
// $XDG_CONFIG_HOME/inferstat/queries, or without that variable ~/.config/inferstat/queries.  It has
// lines "name = text"; the text is in the query language.
#pragma once

#include "client/cli/cli.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

// Parses `text`: the name of a saved query, or a query in the query language.  On a syntax error
// prints the query to cli->env.notes with the invalid part underlined, and returns STATUS_INVALID.
MUST_CHECK enum status saved_queries_read(struct cli *cli, const char *text, struct query *out,
                                          struct error *err);

// Lists the saved queries in columns "name" and "text".  Without the file the list is empty.
// Skips invalid lines, with a warning on cli->env.notes.  The caller frees `*out`.
MUST_CHECK enum status saved_queries_list(const struct cli *cli, struct result **out,
                                          struct error *err);
