// inferstat import FILE
#include <inttypes.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/json.h"
#include "common/core/text.h"

static void print_import(struct cli *cli, const struct result *answer)
{
    FILE *out = cli->around.out;
    (void)fprintf(out, "%" PRId64 " records of %" PRId64 " runs imported",
                  result_integer(answer, 0, "records", 0), result_integer(answer, 0, "runs", 0));
    const int64_t completed = result_integer(answer, 0, "runs_completed", 0);
    const int64_t there = result_integer(answer, 0, "runs_there", 0);
    if (completed > 0)
        (void)fprintf(out, "; %" PRId64 " runs that were there are completed", completed);
    if (there > 0)
        (void)fprintf(out, "; %" PRId64 " runs are there already", there);
    (void)fputc('\n', out);
    const struct value note = result_cell(answer, 0, (unsigned)result_find(answer, "note"));
    char text[512];
    if (note.type != VALUE_TEXT)
        return;
    const int64_t refused = result_integer(answer, 0, "refused", 0);
    (void)text_escape(text, sizeof text, note.text.bytes, note.text.size);
    if (refused > 0)
        (void)fprintf(cli->around.notes,
                      "inferstat: import: %" PRId64
                      " runs or records were not taken, the first: %s\n",
                      refused, text);
    else
        (void)fprintf(cli->around.notes, "inferstat: import: %s\n", text);
}

enum status command_import(struct cli *cli, struct error *err)
{
    struct query query = {.kind = QUERY_IMPORT};
    struct result *answer;
    enum status status = cli_path(query.path, cli->options.arguments[0], err);
    if (status == STATUS_OK)
        status = cli_ask(cli, &query, &answer, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_JSON) {
        json_write_row(cli->around.out, answer, 0, NULL);
        (void)fputc('\n', cli->around.out);
    } else {
        print_import(cli, answer);
    }
    result_free(answer);
    return STATUS_OK;
}
