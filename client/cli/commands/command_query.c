// inferstat query [TEXT|NAME]
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/commands/record_pages.h"
#include "client/cli/args/saved_queries.h"
#include "common/core/query/query_text.h"

// ---- As the matching command ----------------------------------------------------------

enum { SLOWEST_USUAL = 10 };

static enum status list_baselines(struct cli *cli, struct error *err)
{
    cli->options.arguments[0] = "list";
    cli->options.argument_count = 1;
    return command_baseline(cli, err);
}

// The commands devices and events answer other queries than the listings of these kinds.
static enum status list_records(struct cli *cli, struct error *err)
{
    return cli->query.records.kind == RECORD_KIND_LOAD ? command_loads(cli, err)
                                                       : command_list(cli, err);
}

// The commands that print such answers; other answers are printed with all columns.
static const struct form {
    enum query_kind kind;
    const char *command;                                    // NULL: the verb's name
    enum status (*run)(struct cli *cli, struct error *err); // NULL: the command's
} forms[] = {
    {QUERY_AVERAGE, NULL, NULL},
    {QUERY_SUMMARY, NULL, NULL},
    {QUERY_AUDIT, NULL, NULL},
    {QUERY_RECORDS, NULL, list_records},
    {QUERY_FLEET, NULL, NULL},
    {QUERY_NOW, NULL, NULL},
    {QUERY_WHY, NULL, NULL},
    {QUERY_ERRORS, NULL, NULL},
    {QUERY_EVENTS, NULL, NULL},
    {QUERY_DEVICE_HEALTH, "devices", NULL},
    {QUERY_HOST_HEALTH, NULL, NULL},
    {QUERY_SLOWEST, "inferences", command_slowest},
    {QUERY_STAGES, "loads", command_load_average},
    {QUERY_BASELINES, "baseline", list_baselines},
};

static enum status run_as(struct cli *cli, const struct form *form, struct error *err)
{
    const char *name = form->command ? form->command : query_verb_of(&cli->query)->word;
    const struct cli_command listing = {.name = name, .run = command_list};
    const struct cli_command *own = cli->command;
    if (cli_command_find(&cli->command, name, NULL) != STATUS_OK)
        cli->command = &listing; // of kinds that have no command
    enum status status = form->run ? form->run(cli, err) : cli->command->run(cli, err);
    cli->command = own;
    return status;
}

static enum status run_query(struct cli *cli, struct error *err)
{
    struct query *query = &cli->query;
    cli->options.given[OPTION_LIMIT] = query->limit != 0;
    cli->options.limit = query->limit;
    cli->options.argument_count = 0;
    if (query->kind == QUERY_SLOWEST && query->limit == 0)
        query->limit = SLOWEST_USUAL;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].kind == query->kind)
            return run_as(cli, &forms[i], err);
    return query->kind == QUERY_COMPARE ? cli_compare(cli, query, err)
                                        : record_pages_show(cli, query, err);
}

// ---- The words -------------------------------------------------------------------------

static enum status list_names(struct cli *cli, struct error *err)
{
    struct result *list;
    enum status status = saved_queries_list(cli, &list, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "query");
    status = cli_print_rows(cli, NULL, list,
                            "no saved queries (write NAME = TEXT into "
                            "${XDG_CONFIG_HOME:-~/.config}/inferstat/queries)",
                            err);
    result_free(list);
    return status;
}

static char *join_words(const struct cli_options *options)
{
    size_t size = 1;
    for (unsigned i = 0; i < options->argument_count; i++)
        size += strlen(options->arguments[i]) + 1;
    char *text = calloc(size, 1);
    char *end = text;
    for (unsigned i = 0; text && i < options->argument_count; i++)
        end = stpcpy(stpcpy(end, i > 0 ? " " : ""), options->arguments[i]);
    return text;
}

enum status command_query(struct cli *cli, struct error *err)
{
    if (cli->options.argument_count == 0)
        return list_names(cli, err);
    char *text = join_words(&cli->options);
    enum status status =
        text ? saved_queries_read(cli, text, &cli->query, err) : error_no_memory(err, "query");
    if (status == STATUS_OK)
        status = run_query(cli, err);
    free(text);
    return status;
}
