// Query builder of the command line: writes a command and its options as one line of the query
// language, and parses this line.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H
#define INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "common/core/query/query.h"

// Input of the query builder.
struct query_line {
    const char *command; // name of the command, which may also be a verb of the query language
    const struct cli_options *options;
    FILE *notes;    // receives warnings
    int64_t now_ns; // wall clock, for relative times
};

// Builds a query from the options that are clauses of the query language.  If from->command is a
// verb, `*out` is the query of this verb; else it is a QUERY_SUMMARY that has only the filter.
// Returns STATUS_INVALID if an option is invalid; `err` names the option.
MUST_CHECK enum status query_line_read(struct query *out, const struct query_line *from,
                                       struct error *err);

#endif
