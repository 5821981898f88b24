// Builds the query of a command line: options that are clauses of the query language are
// written as a line of it, which is parsed as any other.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H
#define INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "common/core/query/query.h"

// The parts of the command line that the query depends on.
struct query_line {
    const char *command; // its verb, if the language has one of that name
    const struct cli_options *options;
    FILE *notes; // warnings go there
    int64_t now_ns;
};

// Parses the verb with those options that are clauses of it, or only a filter (as
// QUERY_SUMMARY) if there is no verb.  STATUS_INVALID names the option at fault.
MUST_CHECK enum status query_line_read(struct query *out, const struct query_line *from,
                                       struct error *err);

#endif
