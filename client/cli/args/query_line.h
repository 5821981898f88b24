// Query builder of the command line: builds a query from a command and its options.  The builder
// writes command and options as one line of the query language, and parses this line
// (query_text.h).
#ifndef INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H
#define INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H

#include "client/cli/cli.h"

// Builds cli->query from cli->command and cli->options.  If the command is a verb of the query
// language, the query is that of this verb with the options that are its clauses; else it is a
// QUERY_SUMMARY that has only the filter.  (--slowest, --average and --compare select another
// verb.) Ignores all other options.  Returns STATUS_INVALID if an option is invalid; `err` names
// the option.
MUST_CHECK enum status query_line_read(struct cli *cli, struct error *err);

#endif
