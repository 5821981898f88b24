// Prints comparisons as a table, or as Markdown for a page or pull request.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_COMPARISON_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_COMPARISON_H

#include <stddef.h>
#include <stdio.h>

#include "client/cli/cli.h"

// Totals over all rows.
struct comparison_tally {
    size_t judged;    // rows with a verdict
    size_t counts[4]; // by enum stats_verdict
    size_t too_few;   // of the undecided: those with too few values to be judged at all
    size_t p95_worse; // rows with a worse 95th percentile, whatever the median's verdict
};

struct comparison_tally comparison_tally(const struct result *result);

// Prints the answer to `query` as a table or, with --markdown, as Markdown.
MUST_CHECK enum status comparison_print(const struct cli *cli, const struct query *query,
                                        const struct result *result, struct error *err);

#endif
