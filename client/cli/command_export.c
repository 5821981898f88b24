// inferstat export [KIND]...
#include <inttypes.h>

#include "client/cli/kinds.h"
#include "client/cli/listing.h"
#include "client/cli/output.h"

static enum status check_kinds(struct cli *cli, uint32_t *kinds, struct error *err)
{
    enum status status = kinds_parse(kinds, cli, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_CSV && (*kinds == 0 || (*kinds & (*kinds - 1)) != 0))
        return error_set(err, STATUS_INVALID,
                         "export: a CSV holds one kind of records (name one, as in inferstat "
                         "export inference --csv)");
    if (*kinds == 0)
        *kinds = (UINT32_C(1) << RECORD_KIND_COUNT) - 1;
    return STATUS_OK;
}

static enum status write_kinds(struct cli *cli, uint32_t kinds, struct rows *rows,
                               struct error *err)
{
    uint64_t limit = cli->options.limit;
    for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++) {
        if (!(kinds >> kind & 1) || (limit != 0 && rows->count >= limit))
            continue;
        rows->kind = record_kind_info((enum record_kind)kind)->name;
        enum status status = listing_write(cli, (enum record_kind)kind, true,
                                           limit ? limit - rows->count : 0, rows, err);
        // Where all kinds are meant, those that lack what a filter names have
        // nothing under it.
        if (status == STATUS_INVALID && cli->options.argument_count == 0)
            continue;
        if (status != STATUS_OK)
            return status;
    }
    rows_end(rows);
    return STATUS_OK;
}

static enum status write_file(struct cli *cli, uint32_t kinds, struct rows *rows, struct error *err)
{
    const char *path = cli->options.output;
    struct output output;
    enum status status = output_open(&output, path, err);
    if (status != STATUS_OK)
        return status;
    rows->out = output.out;
    status = write_kinds(cli, kinds, rows, err);
    if (status == STATUS_OK && rows->count == 0)
        status = cli_no_data(cli, "export", err);
    if (status != STATUS_OK)
        (void)error_prefix(err, status, "%s was not written", path);
    status = output_close(&output, status, err);
    if (status == STATUS_OK)
        (void)fprintf(cli->around.notes, "inferstat: %" PRIu64 " records written to %s\n",
                      rows->count, path);
    return status;
}

enum status command_export(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_BUNDLE))
        return cli_bundle(cli, err);
    uint32_t kinds;
    enum status status = check_kinds(cli, &kinds, err);
    if (status != STATUS_OK)
        return status;
    struct query all = {.kind = QUERY_RECORDS, .filter = cli->options.filter};
    status = query_check(&all, err);
    if (status != STATUS_OK)
        return status;
    struct rows rows = {
        .out = cli->around.out,
        .format = cli->options.format == FORMAT_TEXT ? FORMAT_JSONL : cli->options.format,
    };
    status = cli->options.output ? write_file(cli, kinds, &rows, err)
                                 : write_kinds(cli, kinds, &rows, err);
    if (status == STATUS_OK && rows.count == 0)
        return cli_no_data(cli, "export", err);
    return status;
}
