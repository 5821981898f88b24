// Query builder of the command line: builds a query from a command, its arguments and its options.
// First it writes them as one line of the query language.  Then it parses this line (query_text.h).
#pragma once

#include "client/cli/cli.h"

// Builds cli->query from cli->command and cli->options.
//   The command is a verb of the query language   the query of this verb; the command's arguments
//                                                 and options are its clauses
//   --slowest, or --average, or --compare         likewise, but the verb is "slowest" or "stages"
//   any other command                             a QUERY_SUMMARY that has only the filter
// Ignores options that are no clauses.  Returns STATUS_INVALID if an option is invalid; `err` names
// it.
MUST_CHECK enum status query_line_read(struct cli *cli, struct error *err);
