// inferstat export [KIND]... | --query TEXT | --bundle FILE
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/commands/record_pages.h"
#include "client/cli/output/progress.h"
#include "client/cli/args/saved_queries.h"
#include "common/sys/files.h"

static enum status check_kinds(struct cli *cli, uint32_t *kinds, struct error *err)
{
    enum status status = record_pages_kinds(kinds, cli, err);
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

struct exporting {
    const struct cli *cli;
    struct rows *rows;
    struct progress progress;
};

static enum status on_page(void *context, struct result *page, struct error *err)
{
    struct exporting *exporting = context;
    cli_note_events(exporting->cli, page);
    const enum status status = record_pages_to_rows(exporting->rows, page, err);
    progress_set(&exporting->progress, exporting->rows->count);
    return status;
}

static enum status write_kinds(struct cli *cli, uint32_t kinds, struct exporting *exporting,
                               struct error *err)
{
    struct rows *rows = exporting->rows;
    uint64_t limit = cli->options.limit;
    for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++) {
        if (!(kinds >> kind & 1) || (limit != 0 && rows->count >= limit))
            continue;
        rows->kind = record_kind_info((enum record_kind)kind)->name;
        enum status status =
            record_pages_read(cli, (enum record_kind)kind, NULL, true,
                              limit ? limit - rows->count : 0, on_page, exporting, err);
        // Without KIND, kinds that lack a filter's dimension are skipped.
        if (status != STATUS_OK && (status != STATUS_INVALID || cli->options.argument_count > 0))
            return status;
    }
    return STATUS_OK;
}

// Writes the answer to a query, or (NULL) records of these kinds; there must be some.
static enum status write_rows(struct cli *cli, const struct query *query, uint32_t kinds,
                              struct rows *rows, struct error *err)
{
    struct exporting exporting = {.cli = cli, .rows = rows};
    const bool is_whole = !query && cli->options.argument_count == 0 && !cli->options.limit &&
                          !query_filter_narrows(&cli->query.filter);
    const char *counted = is_whole                                        ? "stored"
                          : kinds == UINT32_C(1) << RECORD_KIND_INFERENCE ? "inferences"
                                                                          : NULL;
    if (rows->out != cli->env.out || !cli->env.out_is_terminal)
        progress_begin(&exporting.progress, cli->env.notes, "export", "records", UNIT_COUNT,
                       counted && !cli->options.limit ? cli_total(cli, counted)
                                                      : cli->options.limit);
    enum status status = query ? record_pages_ask(cli, query, on_page, &exporting, err)
                               : write_kinds(cli, kinds, &exporting, err);
    progress_end(&exporting.progress);
    status = rows_end(rows, status, err);
    return status == STATUS_OK && rows->count == 0 ? cli_no_data(cli, "export", err) : status;
}

// Standard output or errors.
static bool is_standard(const struct stat *file)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == file->st_dev && own.st_ino == file->st_ino)
            return true;
    return false;
}

// The same to standard output, or to the file of --output.
static enum status write_out(struct cli *cli, const struct query *query, uint32_t kinds,
                             struct error *err)
{
    const char *path = cli->options.output;
    struct rows rows = {.out = cli->env.out, .format = cli->options.format};
    struct output output;
    struct stat there;
    if (!path)
        return write_rows(cli, query, kinds, &rows, err);
    // Like backup; but /dev/stdout may name a file that the shell has made.
    if (stat(path, &there) == 0 ? S_ISREG(there.st_mode) && !is_standard(&there)
                                : lstat(path, &there) == 0)
        return error_set(err, STATUS_BUSY, "%s: already exists (name another file, or remove it)",
                         path);
    enum status status = output_open(&output, path, err);
    if (status != STATUS_OK)
        return status;
    rows.out = output.out;
    status = write_rows(cli, query, kinds, &rows, err);
    if (status != STATUS_OK)
        (void)error_prefix(err, status, "%s was not written", path);
    status = output_close(&output, status, err);
    if (status == STATUS_OK)
        (void)fprintf(cli->env.notes, "inferstat: %s %s written to %s\n", CLI_COUNT(rows.count),
                      query ? "rows" : "records", path);
    return status;
}

// --query takes no kinds and filters beside it.
static enum status export_query(struct cli *cli, struct error *err)
{
    static const enum cli_option others[] = {
        OPTION_MODEL,     OPTION_HOST,     OPTION_DEVICE, OPTION_RUN,   OPTION_OPERATION,
        OPTION_STAGE,     OPTION_WORKLOAD, OPTION_STATUS, OPTION_SYNC,  OPTION_CHUNK_BYTES,
        OPTION_POOL_SIZE, OPTION_SOURCE,   OPTION_EVENT,  OPTION_SINCE, OPTION_UNTIL,
        OPTION_LIMIT,     OPTION_COUNT};
    if (cli->options.argument_count > 0 ||
        options_first_given(&cli->options, others) != OPTION_COUNT)
        return error_set(err, STATUS_INVALID,
                         "export: --query takes no kinds and no filters beside it (write them in "
                         "its text)");
    enum status status = saved_queries_read(cli, cli->options.query, &cli->query, err);
    if (cli->query.kind == QUERY_EVENTS && cli->query.limit == 0)
        cli->query.limit = QUERY_EVENTS_MAX;
    return status == STATUS_OK ? write_out(cli, &cli->query, 0, err) : status;
}

enum status command_export(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_BUNDLE))
        return cli_bundle(cli, err);
    if (cli->options.format == FORMAT_TEXT)
        cli->options.format = FORMAT_JSONL;
    if (option_given(&cli->options, OPTION_QUERY))
        return export_query(cli, err);
    uint32_t kinds;
    enum status status = check_kinds(cli, &kinds, err);
    if (status != STATUS_OK)
        return status;
    struct query all = {.kind = QUERY_RECORDS, .filter = cli->query.filter};
    status = query_check(&all, err);
    return status == STATUS_OK ? write_out(cli, NULL, kinds, err) : status;
}
