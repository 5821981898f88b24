// The query of a command line: its options that are clauses of the query language become a
// line of it, which is read as any other.
#ifndef INFERSTAT_CLIENT_CLI_QUERY_LINE_H
#define INFERSTAT_CLIENT_CLI_QUERY_LINE_H

#include <stdint.h>
#include <stdio.h>

#include "client/cli/cli_options.h"
#include "common/core/query/query.h"

// What the query is made from.
struct query_line {
    const char *command; // for messages
    const char *verb;    // of the language; NULL: filters only
    const struct cli_options *options;
    FILE *notes; // warnings go there
    int64_t now_ns;
};

// Reads the verb with the clauses of the options that it takes, or only a filter (as
// QUERY_SUMMARY) where there is no verb.  STATUS_INVALID names the option at fault.
MUST_CHECK enum status query_line_read(struct query *out, const struct query_line *from,
                                       struct error *err);

#endif
