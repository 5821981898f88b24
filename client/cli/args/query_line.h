// Query builder of the command line: writes the options as one line of the query language, then
// parses that line.
#ifndef INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H
#define INFERSTAT_CLIENT_CLI_ARGS_QUERY_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "client/cli/args/cli_options.h"
#include "common/core/query/query.h"

// Input of the query builder.
struct query_line {
    const char *command; // the query's verb, if the query language has a verb of that name
    const struct cli_options *options;
    FILE *notes; // receives warnings
    int64_t now_ns;
};

// Builds the query of the verb from the options that are its clauses.  For a command without a
// verb the query is a QUERY_SUMMARY with the filter only.  STATUS_INVALID names the invalid option.
MUST_CHECK enum status query_line_read(struct query *out, const struct query_line *from,
                                       struct error *err);

#endif
