// inferstat clear | forget
#include <inttypes.h>
#include <string.h>

#include "client/cli/args/value_args.h"
#include "common/core/base/text.h"

// Asks the user to confirm.
static bool confirm(struct cli *cli, const struct query *query, const char *source)
{
    FILE *notes = cli->env.notes;
    char name[1024];
    const bool forgets = query->kind == QUERY_FORGET;
    (void)fputs(forgets ? "Forget " : "Clear ", notes);
    if (forgets) { // "the run 0198...", or "all runs of gpu07"
        const char *run = query->filter.by[QUERY_BY_RUN];
        (void)fprintf(
            notes, run[0] ? "the run %s, with its records" : "all runs of %s, with their records",
            run[0] ? run : query->key.text);
    } else {
        (void)fputs(query_filter_narrows(&query->filter) ? "the records of " : "", notes);
        cli_write_filter(notes, &query->filter, "ALL records");
    }
    (void)fprintf(notes, " in %s? They cannot be restored. [y/N] ",
                  text_escape(name, sizeof name, source, strlen(source)));
    (void)fflush(notes);
    char answer[16] = "";
    if (!fgets(answer, sizeof answer, cli->env.in))
        return false;
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

// Asks the user, then the collector or the file.  `*result` is NULL if the user declines.
static enum status ask_surely(struct cli *cli, const struct query *query, struct result **result,
                              struct error *err)
{
    const bool sure = option_given(&cli->options, OPTION_YES);
    *result = NULL;
    if (!sure && !cli->env.in_is_terminal)
        return error_set(err, STATUS_INVALID,
                         "%s: refused: there is no terminal to confirm on (give --yes)",
                         cli->command->name);
    const char *source;
    enum status status = cli_source(cli, &source, err);
    if (status != STATUS_OK)
        return status;
    if (sure || confirm(cli, query, source))
        return cli_ask(cli, query, result, err);
    (void)fprintf(cli->env.notes, "inferstat: nothing was %s\n",
                  query->kind == QUERY_FORGET ? "forgotten" : "cleared");
    return STATUS_OK;
}

enum status command_clear(struct cli *cli, struct error *err)
{
    const struct query query = {.kind = QUERY_CLEAR, .filter = cli->query.filter};
    struct result *result;
    enum status status = ask_surely(cli, &query, &result, err);
    if (status != STATUS_OK || !result)
        return status;
    int64_t cleared = result_integer(result, 0, "cleared", 0);
    result_free(result);
    if (cli->options.format == FORMAT_JSON)
        (void)fprintf(cli->env.out, "{\"cleared\": %" PRId64 "}\n", cleared);
    else
        (void)fprintf(cli->env.out, "%s record%s cleared\n", CLI_COUNT(cleared),
                      cli_plural(cleared));
    return STATUS_OK;
}

// --key is the key of the runs here, or its name, and not this user's own.
enum status command_forget(struct cli *cli, struct error *err)
{
    struct query query = {.kind = QUERY_FORGET, .filter = cli->query.filter};
    const char *word = cli->options.trust.key_file;
    char key[WIRE_KEY_TEXT_SIZE];
    struct error ignored;
    cli->options.trust.key_file = NULL;
    if (word && key_arg_parse(key, word, "--key", &ignored) == STATUS_OK)
        word = key;
    if (word && strlen(word) >= sizeof query.key.text)
        return error_set(err, STATUS_INVALID, "forget: --key: %.80s...: no key and no name of one",
                         word);
    (void)snprintf(query.key.text, sizeof query.key.text, "%s", word ? word : "");
    if ((query.key.text[0] != '\0') == (query.filter.by[QUERY_BY_RUN][0] != '\0'))
        return error_set(err, STATUS_INVALID,
                         "forget: what? (give --run UUID, or --key NAME for all runs of a key)");
    struct result *result = NULL;
    enum status status = query_check(&query, err);
    if (status == STATUS_OK)
        status = ask_surely(cli, &query, &result, err);
    if (status != STATUS_OK || !result)
        return status;
    const int64_t cleared = result_integer(result, 0, "cleared", 0);
    const int64_t runs = result_integer(result, 0, "runs", 0);
    result_free(result);
    if (cli->options.format == FORMAT_JSON)
        (void)fprintf(cli->env.out, "{\"runs\": %" PRId64 ", \"cleared\": %" PRId64 "}\n", runs,
                      cleared);
    else
        (void)fprintf(cli->env.out,
                      "%s run%s forgotten, with %s record%s (rollups of days that have begun to "
                      "expire count them still)\n",
                      CLI_COUNT(runs), cli_plural(runs), CLI_COUNT(cleared), cli_plural(cleared));
    return STATUS_OK;
}
