// inferstat help [COMMAND]
#include "client/cli/cli.h"
#include "client/cli/args/help.h"

enum status command_help(struct cli *cli, struct error *err)
{
    if (cli->options.argument_count == 0) {
        help_write(cli->env.out);
        return STATUS_OK;
    }
    const struct cli_command *command;
    enum status status = cli_command_find(&command, cli->options.arguments[0], err);
    if (status == STATUS_OK)
        help_write_command(cli->env.out, command);
    return status;
}
