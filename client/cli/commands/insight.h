// Report variants of the commands `loads` and `inferences`, one per option: slowest requests,
// average load times and comparisons of loads.
#ifndef INFERSTAT_CLIENT_CLI_COMMANDS_INSIGHT_H
#define INFERSTAT_CLIENT_CLI_COMMANDS_INSIGHT_H

#include "client/cli/cli.h"

// inferences --slowest N
MUST_CHECK enum status command_slowest(struct cli *cli, struct error *err);

// loads --average, loads --compare A B
MUST_CHECK enum status command_load_average(struct cli *cli, struct error *err);
MUST_CHECK enum status command_load_comparison(struct cli *cli, struct error *err);

#endif
