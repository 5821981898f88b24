// Prints answers of queries that have no command of their own, with all their columns.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_ANSWER_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_ANSWER_H

#include "client/cli/cli.h"

// Sends the query, page by page if it lists records, and prints at most query->limit rows
// (0: all) in the format of the options.  STATUS_NO_DATA if there are none.
MUST_CHECK enum status answer_show(struct cli *cli, const struct query *query, struct error *err);

// Prints a result as a table.
MUST_CHECK enum status answer_print(struct cli *cli, const struct result *result,
                                    struct error *err);

#endif
