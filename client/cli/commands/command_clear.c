// inferstat clear
#include <inttypes.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/base/text.h"

// Prints what would be deleted: "ALL records" or "the records of model stories15M, ...".
static void print_scope(FILE *out, const struct query_filter *filter)
{
    const bool filtered = cli_write_filter(out, filter, "the records of ");
    char time[UNIT_TEXT_SIZE];
    if (!filtered)
        (void)fputs(filter->since_ns || filter->until_ns ? "the records" : "ALL records", out);
    if (filter->since_ns)
        (void)fprintf(out, " since %s", unit_format_int(time, UNIT_TIME, filter->since_ns));
    if (filter->until_ns)
        (void)fprintf(out, " until %s", unit_format_int(time, UNIT_TIME, filter->until_ns));
}

// Asks the user to confirm.
static bool confirm(struct cli *cli, const char *source)
{
    FILE *notes = cli->env.notes;
    char name[1024];
    (void)fputs("Forget ", notes);
    print_scope(notes, &cli->query.filter);
    (void)fprintf(notes, " in %s? They cannot be restored. [y/N] ",
                  text_escape(name, sizeof name, source, strlen(source)));
    (void)fflush(notes);
    char answer[16] = "";
    if (!fgets(answer, sizeof answer, cli->env.in))
        return false;
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

enum status command_clear(struct cli *cli, struct error *err)
{
    bool sure = option_given(&cli->options, OPTION_YES);
    if (!sure && !cli->env.in_is_terminal)
        return error_set(err, STATUS_INVALID,
                         "clear: refused: there is no terminal to confirm on (give --yes)");
    const char *source;
    enum status status = cli_source(cli, &source, err);
    if (status != STATUS_OK)
        return status;
    if (!sure && !confirm(cli, source)) {
        (void)fputs("inferstat: nothing was cleared\n", cli->env.notes);
        return STATUS_OK;
    }
    struct query query = {.kind = QUERY_CLEAR, .filter = cli->query.filter};
    struct result *result;
    status = cli_ask(cli, &query, &result, err);
    if (status != STATUS_OK)
        return status;
    int64_t cleared = result_integer(result, 0, "cleared", 0);
    result_free(result);
    if (cli->options.format == FORMAT_JSON)
        (void)fprintf(cli->env.out, "{\"cleared\": %" PRId64 "}\n", cleared);
    else
        (void)fprintf(cli->env.out, "%" PRId64 " record%s cleared\n", cleared, cli_plural(cleared));
    return STATUS_OK;
}
