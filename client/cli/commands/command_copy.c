// inferstat backup FILE, inferstat export --bundle FILE, inferstat restore BACKUP
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/rows.h"
#include "common/core/base/text.h"
#include "common/store/store.h"
#include "common/sys/files.h"

// Makes a path absolute, as the collector has another working folder.
static enum status whole_path(char out[QUERY_PATH_SIZE], const char *path, struct error *err)
{
    const bool is_whole = path[0] == '/';
    char here[QUERY_PATH_SIZE] = "";
    if (!is_whole && !getcwd(here, sizeof here))
        return error_set(err, STATUS_IO, "%s: cannot find the working folder", path);
    if (snprintf(out, QUERY_PATH_SIZE, "%s%s%s", here, is_whole ? "" : "/", path) >=
        QUERY_PATH_SIZE)
        return error_set(err, STATUS_INVALID, "%s: the path is longer than %d bytes", path,
                         QUERY_PATH_SIZE - 1);
    return STATUS_OK;
}

static uint64_t size_of(const char *path)
{
    struct stat info;
    return path && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

// A backup grows to the size of the store, an import adds about the size of its file.  What another
// host writes, or a collector's store, is not seen: then the time alone is shown.
static void begin_progress(struct cli *cli, const struct query *query, struct progress *progress)
{
    const bool is_import = query->kind == QUERY_IMPORT;
    const char *db = cli->options.db;
    char watched[QUERY_PATH_SIZE + 32];
    const uint64_t total = is_import ? size_of(query->file.path)
                           : query->file.bundle && query_filter_narrows(&query->filter) ? 0
                           : db ? size_of(db)
                                : cli_total(cli, "store_bytes");
    (void)snprintf(watched, sizeof watched, "%s%s",
                   !is_import ? query->file.path
                   : db       ? db
                              : "",
                   is_import ? "" : ".inferstat-partial");
    progress_begin(progress, cli->env.notes, cli->command->name, "", UNIT_BYTES, total);
    progress_watch(progress, watched);
}

enum status cli_ask_of_file(struct cli *cli, struct query *query, const char *path,
                            void (*print)(struct cli *cli, const struct result *answer),
                            struct error *err)
{
    struct result *answer;
    struct progress progress = {.out = NULL};
    enum status status = whole_path(query->file.path, path, err);
    if (status == STATUS_OK) {
        begin_progress(cli, query, &progress);
        status = cli_ask(cli, query, &answer, err);
        progress_end(&progress);
    }
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_JSON)
        rows_write_json(cli->env.out, answer, 0);
    else
        print(cli, answer);
    result_free(answer);
    return STATUS_OK;
}

// "1234 records (inference 1200, load 34)"
static void print_records(FILE *out, const struct result *answer)
{
    const int64_t records = result_integer(answer, 0, "records", 0);
    (void)fprintf(out, "%s record%s", CLI_COUNT(records), cli_plural(records));
    const char *before = " (";
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        const char *name = record_kind_info((enum record_kind)kind)->name;
        const int64_t count = result_integer(answer, 0, name, 0);
        if (count == 0)
            continue;
        (void)fprintf(out, "%s%s %s", before, name, CLI_COUNT(count));
        before = ", ";
    }
    if (before[0] == ',')
        (void)fputs(")", out);
}

static void print_baselines_left_out(struct cli *cli, const struct result *answer)
{
    const int64_t left_out = result_integer(answer, 0, "baselines_left_out", 0);
    if (left_out > 0)
        (void)fprintf(cli->env.notes,
                      "inferstat: export: %" PRId64 " baseline%s left out: not of the filter's "
                      "names alone\n",
                      left_out, left_out == 1 ? " is" : "s are");
}

static void print_copy(struct cli *cli, const struct result *answer)
{
    FILE *out = cli->env.out;
    char size[UNIT_TEXT_SIZE], time[UNIT_TEXT_SIZE], path[QUERY_PATH_SIZE];
    const int64_t runs = result_integer(answer, 0, "runs", 0);
    (void)fprintf(out, "%s: %s, %s run%s, ", result_text(path, sizeof path, answer, 0, "path"),
                  unit_format_int(size, UNIT_BYTES, result_integer(answer, 0, "bytes", 0)),
                  CLI_COUNT(runs), cli_plural(runs));
    print_records(out, answer);
    const int64_t rollups = result_integer(answer, 0, "rollups", 0);
    if (cli->options.bundle && rollups > 0) // those of a backup are of what it has
        (void)fprintf(out, ", %s rollup%s", CLI_COUNT(rollups), cli_plural(rollups));
    const int64_t left_out = result_integer(answer, 0, "left_out", 0);
    if (left_out > 0)
        (void)fprintf(out, "; %s more of these runs are left out", CLI_COUNT(left_out));
    const int64_t baselines = result_integer(answer, 0, "baselines", 0);
    if (cli->options.bundle && baselines > 0)
        (void)fprintf(out, "; %" PRId64 " baseline%s", baselines, cli_plural(baselines));
    (void)fprintf(
        out, "; checked, in %s\n",
        unit_format_int(time, UNIT_DURATION, result_integer(answer, 0, "duration_ns", 0)));
    print_baselines_left_out(cli, answer);
}

static enum status copy(struct cli *cli, const char *path, bool bundle, struct error *err)
{
    struct query query = {.kind = QUERY_COPY, .file.bundle = bundle, .filter = cli->query.filter};
    return cli_ask_of_file(cli, &query, path, print_copy, err);
}

enum status command_backup(struct cli *cli, struct error *err)
{
    return copy(cli, cli->options.arguments[0], false, err);
}

static void print_restored(FILE *out, const struct result *answer, const char *before)
{
    struct json_writer json = files_json(out);
    json_write_begin(&json, NULL);
    json_write_members(&json, answer, 0);
    json_write_text(&json, "before", before[0] ? before : NULL);
    json_write_end(&json);
    (void)fputc('\n', out);
}

enum status command_restore(struct cli *cli, struct error *err)
{
    const char *db = cli->options.db;
    char before[QUERY_PATH_SIZE] = "", shown[QUERY_PATH_SIZE], path[QUERY_PATH_SIZE];
    struct result *answer = NULL;
    if (!db)
        return error_set(err, STATUS_INVALID,
                         "restore: --db is missing (the store to be replaced)");
    enum status status = whole_path(path, db, err);
    if (status == STATUS_OK)
        status = store_restore(path, cli->options.arguments[0], &answer, before, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_JSON) {
        print_restored(cli->env.out, answer, before);
    } else {
        print_copy(cli, answer);
        if (before[0])
            (void)fprintf(cli->env.out, "the store before is %s\n",
                          text_escape(shown, sizeof shown, before, strlen(before)));
    }
    result_free(answer);
    return STATUS_OK;
}

enum status cli_bundle(struct cli *cli, struct error *err)
{
    static const enum cli_option others[] = {OPTION_CSV,   OPTION_FORMAT, OPTION_OUTPUT,
                                             OPTION_LIMIT, OPTION_QUERY,  OPTION_COUNT};
    if (cli->options.argument_count > 0 ||
        options_first_given(&cli->options, others) != OPTION_COUNT)
        return error_set(err, STATUS_INVALID,
                         "export: --bundle takes filters and --json, and nothing else");
    return copy(cli, cli->options.bundle, true, err);
}
