#include "client/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/args/query_line.h"
#include "common/core/base/parse.h"
#include "common/sys/clock.h"

enum { COMMANDS_MAX = 64 };

// The first command that has an option of this name; NULL: none.
static const char *find_by_option(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        for (const enum cli_option *option = command->options; *option != OPTION_COUNT; option++)
            if (strcmp(option_row(*option)->name, name) == 0)
                return command->name;
    return NULL;
}

enum status cli_command_find(const struct cli_command **out, const char *name, struct error *err)
{
    const char *names[COMMANDS_MAX];
    unsigned count = 0;
    for (; count < COMMANDS_MAX && cli_commands[count].name; count++) {
        if (strcmp(cli_commands[count].name, name) == 0) {
            *out = &cli_commands[count];
            return STATUS_OK;
        }
        names[count] = cli_commands[count].name;
    }
    const char *with_option = find_by_option(name);
    if (with_option)
        return error_set(err, STATUS_INVALID, "%s: unknown command (did you mean %s --%s?)", name,
                         with_option, name);
    const char *nearest = parse_nearest(name, names, count);
    return error_set(err, STATUS_INVALID, "%s: unknown command (%s%s%s)", name,
                     nearest ? "did you mean " : "see inferstat --help", nearest ? nearest : "",
                     nearest ? "?" : "");
}

static const enum cli_option *options_of(const char *name)
{
    const struct cli_command *command;
    return cli_command_find(&command, name, NULL) == STATUS_OK ? command->options : NULL;
}

// ---- Running ----------------------------------------------------------------------

static enum status check_arguments(const struct cli *cli, struct error *err)
{
    const struct cli_command *command = cli->command;
    unsigned count = cli->options.argument_count;
    if (count < command->arguments_min)
        return error_set(err, STATUS_INVALID, "%s: give %s (see inferstat %s --help)",
                         command->name, command->arguments, command->name);
    if (count > command->arguments_max)
        return error_set(err, STATUS_INVALID, "%s: unexpected argument '%s'", command->name,
                         cli->options.arguments[command->arguments_max]);
    return STATUS_OK;
}

// Without a command it is the dashboard on a terminal.
static enum status run_command(struct cli *cli, struct error *err)
{
    const char *name = cli->options.command;
    const time_t now = (time_t)(cli->env.now_ns / INT64_C(1000000000));
    char text[UNIT_TEXT_SIZE];
    struct tm local;
    if (!name && !(cli->env.in_is_terminal && cli->env.out_is_terminal))
        return error_set(err, STATUS_INVALID,
                         "no command, and no terminal for the dashboard (see inferstat --help)");
    enum status status = cli_command_find(&cli->command, name ? name : "top", err);
    if (status == STATUS_OK)
        status = options_check(&cli->options, cli->command->options, cli->command->name, err);
    if (status == STATUS_OK)
        status = check_arguments(cli, err);
    if (status == STATUS_OK)
        status = query_line_read(cli, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.watch_ns > 0 && cli->options.format == FORMAT_TEXT &&
        !option_given(&cli->options, OPTION_LINE) &&
        !option_given(&cli->options, OPTION_MARKDOWN) && localtime_r(&now, &local) &&
        strftime(text, sizeof text, "%F %T %Z", &local) > 0)
        (void)fprintf(cli->env.out, "%s\n", text);
    return cli->command->run(cli, err);
}

// Prints a failure, waits for the next time, and clears the screen of a terminal.
static void wait_watch(const struct cli *cli, enum status status, const struct error *err)
{
    const struct timespec time = clock_timespec((uint64_t)cli->options.watch_ns);
    if (cli_exit_code(status) != 0)
        (void)fprintf(cli->env.out, "%s\n", err->text);
    (void)fflush(cli->env.out);
    (void)nanosleep(&time, NULL);
    if (cli->env.out_is_terminal)
        (void)fputs("\033[H\033[2J\033[3J", cli->env.out);
}

enum status cli_run(const struct cli_environment *env, int argc, char *const *argv,
                    struct error *err)
{
    struct cli cli = {.env = *env};
    enum status status = options_parse(&cli.options, argc, argv, options_of, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(&cli.options, OPTION_HELP))
        return cli_show_help(&cli, cli.options.command, err);
    if (option_given(&cli.options, OPTION_VERSION)) {
        (void)fprintf(env->out, "inferstat %s\n", INFERSTAT_VERSION);
        return STATUS_OK;
    }
    if (option_given(&cli.options, OPTION_UTC)) {
        (void)setenv("TZ", "UTC", 1);
        tzset();
    }
    while (true) {
        status = run_command(&cli, err);
        remote_close(cli.remote);
        if (cli.options.watch_ns == 0 || cli_exit_code(status) == 2) // a wrong command line
            return status;
        wait_watch(&cli, status, err);
        cli = (struct cli){.env = *env, .options = cli.options};
        cli.env.now_ns = clock_wall_ns();
    }
}
