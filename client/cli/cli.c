#include "client/cli/cli.h"

#include <string.h>

#include "client/cli/args/query_line.h"
#include "common/core/base/text.h"

int cli_exit_code(enum status status)
{
    switch ((int)status) {
    case STATUS_OK:
    case STATUS_CANCELLED:
        return 0;
    case STATUS_CHECK_FAILED:
        return 1;
    case STATUS_INVALID:
        return 2;
    case STATUS_NO_DATA:
        return 3;
    case STATUS_UNDECIDED:
        return 5;
    default:
        return 4;
    }
}

// ---- For commands -----------------------------------------------------------------

struct remote_target cli_target(const struct cli *cli)
{
    return (struct remote_target){
        .collector = cli->options.collector,
        .db = cli->options.db,
        .timeout_ns = (uint64_t)cli->options.timeout_ns,
        .trust = cli->options.trust,
    };
}

static enum status open_remote(struct cli *cli, struct error *err)
{
    if (cli->remote)
        return STATUS_OK;
    struct remote_target target = cli_target(cli);
    enum status status = remote_open(&cli->remote, &target, err);
    if (status == STATUS_OK && remote_warning(cli->remote)[0])
        (void)fprintf(cli->env.notes, "inferstat: WARNING: %s\n", remote_warning(cli->remote));
    return status;
}

enum status cli_ask(struct cli *cli, const struct query *query, struct result **out,
                    struct error *err)
{
    enum status status = open_remote(cli, err);
    if (status == STATUS_OK)
        status = remote_query(cli->remote, query, out, err);
    // A collector older than the field has no other reason to refuse a listing.
    if (status == STATUS_NO_DATA && (err->expired_ns != 0 || query->kind == QUERY_RECORDS))
        (void)snprintf(cli->expired, sizeof cli->expired, "%.63s", err->text);
    return status;
}

enum status cli_ask_for(struct cli *cli, const struct query *query, const char *what,
                        struct result **out, struct error *err)
{
    enum status status = cli_ask(cli, query, out, err);
    if (status != STATUS_NO_DATA)
        return status;
    cli_print_none(cli);
    return cli_no_data(cli, what, err);
}

struct rows cli_rows(const struct cli *cli, const struct columns *columns)
{
    return (struct rows){.out = cli->env.out,
                         .format = cli->options.format,
                         .columns = columns,
                         .width = cli->env.width};
}

enum status cli_print(const struct cli *cli, const struct columns *columns,
                      const struct result *result, struct error *err)
{
    struct rows rows = cli_rows(cli, columns);
    rows_write(&rows, result, 0, result_row_count(result));
    return rows_end(&rows, STATUS_OK, err);
}

void cli_print_none(const struct cli *cli)
{
    struct rows rows = {.out = cli->env.out, .format = FORMAT_JSON};
    if (cli->options.format == FORMAT_JSON)
        (void)!rows_end(&rows, STATUS_OK, NULL);
}

enum status cli_source(struct cli *cli, const char **out, struct error *err)
{
    enum status status = open_remote(cli, err);
    if (status == STATUS_OK)
        *out = remote_name(cli->remote);
    return status;
}

enum status cli_no_data(const struct cli *cli, const char *what, struct error *err)
{
    const struct query_filter *filter = &cli->query.filter;
    const char *why = cli->expired[0]                      ? cli->expired
                      : filter->since_ns > cli->env.now_ns ? "the window begins in the future"
                      : query_filter_narrows(filter)       ? "the filters match nothing"
                                                           : "the store holds none";
    return error_set(err, STATUS_NO_DATA, "%s: no data: %s", what, why);
}

void cli_note_expired(const struct cli *cli, const struct result *result)
{
    char time[UNIT_TEXT_SIZE];
    const int64_t until_ns = result_integer(result, 0, "expired_ns", 0);
    if (until_ns != 0)
        (void)fprintf(cli->env.out, "(records before %s have expired)\n",
                      unit_format_int(time, UNIT_TIME, until_ns));
}

bool cli_write_filter(FILE *out, const struct query_filter *filter, const char *before)
{
    bool filtered = false;
    for (int i = 0; i < (int)QUERY_DIMENSION_COUNT; i++) {
        char name[QUERY_TEXT_SIZE * 4];
        if (filter->by[i][0] == '\0')
            continue;
        (void)fprintf(out, "%s%s %s", filtered ? ", " : before,
                      query_dimension_name((enum query_dimension)i),
                      text_escape(name, sizeof name, filter->by[i], strlen(filter->by[i])));
        filtered = true;
    }
    return filtered;
}

// ---- The program ------------------------------------------------------------------

// Finds the command; without one it is the dashboard on a terminal.
static enum status choose_command(struct cli *cli, struct error *err)
{
    const char *name = cli->options.command;
    if (!name && !(cli->env.in_is_terminal && cli->env.out_is_terminal))
        return error_set(err, STATUS_INVALID,
                         "no command, and no terminal for the dashboard (see inferstat --help)");
    return cli_command_find(&cli->command, name ? name : "top", err);
}

static enum status check_arguments(const struct cli *cli, struct error *err)
{
    const struct cli_command *command = cli->command;
    unsigned count = cli->options.argument_count;
    if (count < command->arguments_min)
        return error_set(err, STATUS_INVALID, "%s: %s is missing (see inferstat %s --help)",
                         command->name, command->arguments, command->name);
    if (count > command->arguments_max)
        return error_set(err, STATUS_INVALID, "%s: unexpected argument '%s'", command->name,
                         cli->options.arguments[command->arguments_max]);
    return STATUS_OK;
}

static enum status read_query(struct cli *cli, struct error *err)
{
    const struct query_line line = {.command = cli->command->name,
                                    .options = &cli->options,
                                    .notes = cli->env.notes,
                                    .now_ns = cli->env.now_ns};
    return query_line_read(&cli->query, &line, err);
}

static enum status run_command(struct cli *cli, struct error *err)
{
    enum status status = choose_command(cli, err);
    if (status == STATUS_OK)
        status = options_check(&cli->options, cli->command->options, cli->command->name, err);
    if (status == STATUS_OK)
        status = check_arguments(cli, err);
    if (status == STATUS_OK)
        status = read_query(cli, err);
    return status == STATUS_OK ? cli->command->run(cli, err) : status;
}

enum status cli_run(const struct cli_environment *env, int argc, char *const *argv,
                    struct error *err)
{
    struct cli cli = {.env = *env};
    enum status status = options_parse(&cli.options, argc, argv, err);
    if (status != STATUS_OK)
        return status;
    if (option_given(&cli.options, OPTION_HELP))
        return cli_show_help(&cli, cli.options.command, err);
    if (option_given(&cli.options, OPTION_VERSION)) {
        (void)fprintf(env->out, "inferstat %s\n", INFERSTAT_VERSION);
        return STATUS_OK;
    }
    status = run_command(&cli, err);
    remote_close(cli.remote);
    return status;
}
