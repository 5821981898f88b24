// Output of comparison queries (A/B comparison of metrics) as a table or as Markdown.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_COMPARISON_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_COMPARISON_H

#include <stddef.h>
#include <stdio.h>

#include "client/cli/cli.h"

// Counts over all rows of a comparison.
struct comparison_tally {
    size_t judged;    // rows with a verdict
    size_t counts[4]; // by enum stats_verdict
    size_t too_few;   // undecided rows with fewer values than a verdict needs
    size_t p95_worse; // rows with a worse 95th percentile; the verdict is the median's
};

struct comparison_tally comparison_tally(const struct result *result);

// Prints the answer to `query` as a table, or as Markdown with --markdown.
MUST_CHECK enum status comparison_print(const struct cli *cli, const struct query *query,
                                        const struct result *result, struct error *err);

#endif
