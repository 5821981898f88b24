// inferstat help [COMMAND], inferstat --help, inferstat COMMAND --help: text generated from the
// tables of commands and options.
#include "client/cli/cli.h"

static void write_help(FILE *out)
{
    (void)fputs("Usage: inferstat [--collector ADDR | --db FILE] COMMAND [OPTION]...\n"
                "Queries and shows measurements of GPU inference: loads, requests, losses.\n",
                out);
    for (const struct cli_command *command = cli_commands; command->name; command++) {
        if (command->group)
            (void)fprintf(out, "\n%s\n", command->group);
        option_write_entry(out, command->name, command->summary);
    }

    (void)fputs("\nOptions (each command takes those its own help lists):\n", out);
    for (int i = 0; i < OPTION_COUNT; i++)
        option_write_help(out, option_row((enum cli_option)i));

    (void)fputs("\n"
                "Exit status: 0 done, 1 a check said no, 2 wrong usage, 3 no data, 4 the\n"
                "collector or file cannot be reached or used, 5 a comparison lacks evidence.\n"
                "Environment: INFERSTAT_COLLECTOR (address), INFERSTAT_KEY, INFERSTAT_SERVER_KEY,\n"
                "NO_COLOR, TZ (zone of times shown).\n"
                "More: inferstat COMMAND --help, man inferstat.\n",
                out);
}

static void write_command_help(FILE *out, const struct cli_command *command)
{
    (void)fprintf(out, "Usage: inferstat %s%s%s [OPTION]...\n%s.\n", command->name,
                  command->arguments ? " " : "", command->arguments ? command->arguments : "",
                  command->summary);
    (void)fputs(command->details ? "\n" : "", out);
    if (command->details)
        table_print_words(out, 80, 0, 0, command->details);
    (void)fprintf(out, "\nExamples:\n  inferstat %s\n  inferstat %s\n\nOptions:\n",
                  command->examples[0], command->examples[1]);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (options_contain(command->options, (enum cli_option)i))
            option_write_help(out, option_row((enum cli_option)i));
}

enum status cli_show_help(struct cli *cli, const char *name, struct error *err)
{
    if (!name) {
        write_help(cli->env.out);
        return STATUS_OK;
    }
    enum status status = cli_command_find(&cli->command, name, err);
    if (status == STATUS_OK)
        write_command_help(cli->env.out, cli->command);
    return status;
}

enum status command_help(struct cli *cli, struct error *err)
{
    const struct cli_options *options = &cli->options;
    return cli_show_help(cli, options->argument_count > 0 ? options->arguments[0] : NULL, err);
}
