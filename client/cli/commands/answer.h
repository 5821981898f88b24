// Prints answers of queries that have no command of their own, with all their columns.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_ANSWER_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_ANSWER_H

#include "client/cli/cli.h"
#include "client/cli/output/rows.h"

// Sends the query, page by page where the answer has pages, and writes at most query->limit
// rows (0: all).  The caller calls rows_end.
MUST_CHECK enum status answer_write(struct cli *cli, const struct query *query, struct rows *rows,
                                    struct error *err);

// The same in the format of the options: a table for people, or for machines.
// STATUS_NO_DATA where there is no row.
MUST_CHECK enum status answer_show(struct cli *cli, const struct query *query, struct error *err);

// Prints a result as such a table.
MUST_CHECK enum status answer_print(struct cli *cli, const struct result *result,
                                    struct error *err);

#endif
