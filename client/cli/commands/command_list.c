// inferstat inferences | operations | pipelines | devices | runs
#include "client/cli/commands/record_pages.h"

enum status command_list(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_SLOWEST))
        return command_slowest(cli, err);
    return record_pages_list(cli, NULL, err);
}
