// Query builder of the command line: builds a query from a command and its options.  The builder
// writes command and options as one line of the query language, and parses this line
// (query_text.h).
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

// Builds a query.  If from->command is a verb of the query language, `*out` is the query of this
// verb with the options that are its clauses; else `*out` is a QUERY_SUMMARY that has only the
// filter.  (--slowest, --average and --compare select another verb.)  Ignores all other options.
// Returns STATUS_INVALID if an option is invalid; `err` names the option.
MUST_CHECK enum status query_line_read(struct query *out, const struct query_line *from,
                                       struct error *err);

#endif
