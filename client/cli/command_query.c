// inferstat query [TEXT|NAME]
#include <stdlib.h>
#include <string.h>

#include "client/cli/answer.h"
#include "client/cli/cli.h"
#include "client/cli/named.h"
#include "client/cli/rows.h"
#include "common/core/query/query_text.h"

// ---- As the matching command ----------------------------------------------------------

// A set of options as they would be given, beside those of the command line.
static void give(struct cli_options *options, enum cli_option option, bool given)
{
    options->given[option] = options->given[option] || given;
}

// What a query asks, as options.  Texts are borrowed from the query.
static void take_options(struct cli_options *options, const struct query *query)
{
    options->filter = query->filter;
    memcpy(options->group_by, query->group_by, sizeof options->group_by);
    options->group_count = query->group_count;
    options->step_ns = query->step_ns;
    options->slo =
        query->kind == QUERY_AVERAGE && query->average.slo[0] ? query->average.slo : NULL;
    options->limit = query->limit;
    give(options, OPTION_LIMIT, query->limit != 0);
    give(options, OPTION_OLDEST, query->kind == QUERY_RECORDS && query->records.oldest_first);
    options->argument_count = 0;
    if (query->metric[0])
        options->arguments[options->argument_count++] = query->metric;
}

enum { SLOWEST_USUAL = 10 };

static void take_slowest(struct cli_options *options, const struct query *query)
{
    options->slowest = query->limit != 0 ? query->limit : SLOWEST_USUAL;
    options->metric = query->metric[0] ? query->metric : NULL;
    options->argument_count = 0;
    give(options, OPTION_SLOWEST, true);
}

static void take_stages(struct cli_options *options, const struct query *query)
{
    give(options, OPTION_AVERAGE, true);
    give(options, OPTION_BY, query->group_count > 0);
}

static void take_list(struct cli_options *options, const struct query *query)
{
    (void)query;
    options->arguments[0] = "list";
    options->argument_count = 1;
}

// The commands that ask such queries; others show the answer as it comes.
static const struct form {
    enum query_kind kind;
    const char *command; // NULL: that of the verb's name
    void (*take)(struct cli_options *options, const struct query *query); // more; may be NULL
} forms[] = {
    {QUERY_AVERAGE, NULL, NULL},
    {QUERY_SUMMARY, NULL, NULL},
    {QUERY_AUDIT, NULL, NULL},
    {QUERY_RECORDS, NULL, NULL},
    {QUERY_FLEET, NULL, NULL},
    {QUERY_SLOWEST, "inferences", take_slowest},
    {QUERY_STAGES, "loads", take_stages},
    {QUERY_BASELINES, "baseline", take_list},
};

static enum status run_as(struct cli *cli, const struct form *form, const struct query *query,
                          struct error *err)
{
    const char *name = form->command ? form->command : query_verb_of(query)->word;
    const struct cli_command listing = {.name = name, .run = command_list};
    const struct cli_command *own = cli->command;
    if (cli_command_find(&cli->command, name, NULL) != STATUS_OK)
        cli->command = &listing; // of records that have no command of their own
    take_options(&cli->options, query);
    if (form->take)
        form->take(&cli->options, query);
    enum status status = cli->command->run(cli, err);
    cli->command = own;
    return status;
}

static enum status run_query(struct cli *cli, const struct query *query, struct error *err)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].kind == query->kind)
            return run_as(cli, &forms[i], query, err);
    take_options(&cli->options, query);
    return query->kind == QUERY_COMPARE ? cli_compare(cli, query, err)
                                        : answer_show(cli, query, err);
}

// ---- The words -------------------------------------------------------------------------

static enum status list_names(struct cli *cli, struct error *err)
{
    struct result *list;
    enum status status = named_list(cli, &list, err);
    if (status != STATUS_OK)
        return error_prefix(err, status, "query");
    if (cli->options.format == FORMAT_TEXT && result_row_count(list) > 0) {
        status = answer_print(cli, list, err);
    } else if (cli->options.format != FORMAT_TEXT) {
        struct rows rows = {.out = cli->around.out, .format = cli->options.format};
        rows_write(&rows, list, 0, result_row_count(list));
        rows_end(&rows);
    }
    if (status == STATUS_OK && result_row_count(list) == 0)
        status = error_set(err, STATUS_NO_DATA,
                           "query: no query has a name (write NAME = TEXT into "
                           "~/.config/inferstat/queries)");
    result_free(list);
    return status;
}

// The words with a blank between, as the shell has cut them.
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
    struct query *query = malloc(sizeof *query);
    enum status status =
        text && query ? named_read(cli, text, query, err) : error_no_memory(err, "query");
    if (status == STATUS_OK)
        status = run_query(cli, query, err);
    free(query);
    free(text);
    return status;
}
