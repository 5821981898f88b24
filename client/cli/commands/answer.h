// Generic query command: runs any query that has no dedicated CLI command and prints the full
// result set, all columns.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_ANSWER_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_ANSWER_H

#include "client/cli/cli.h"

// Sends the query and prints at most query->limit rows (0: all) in the output format of the
// options.  Reads a record listing in pages.  STATUS_NO_DATA: the result is empty.
MUST_CHECK enum status answer_show(struct cli *cli, const struct query *query, struct error *err);

// Prints a result as a table.
MUST_CHECK enum status answer_print(struct cli *cli, const struct result *result,
                                    struct error *err);

#endif
