// inferstat import FILE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/commands/llama_bench.h"
#include "common/sys/files.h"

static void print_refused_baselines(struct cli *cli, const struct result *answer)
{
    const int64_t refused = result_integer(answer, 0, "baselines_refused", 0);
    char text[512];
    if (refused != 0 && result_get(answer, 0, "baseline_note").type == VALUE_TEXT)
        (void)fprintf(cli->env.notes,
                      "inferstat: import: %" PRId64 " baseline%s not taken, the first: %s\n",
                      refused, refused == 1 ? " was" : "s were",
                      result_text(text, sizeof text, answer, 0, "baseline_note"));
}

// What is printed behind the records imported, where the answer has any.
static const struct {
    const char *key, *one, *many;
} parts[] = {
    {"runs_completed", "run that was there is completed", "runs that were there are completed"},
    {"runs_there", "run already exists", "runs already exist"},
    {"baselines", "baseline", "baselines"},
    {"baselines_there", "baseline already exists", "baselines already exist"},
};

static void print_import(struct cli *cli, const struct result *answer)
{
    FILE *out = cli->env.out;
    const int64_t records = result_integer(answer, 0, "records", 0);
    const int64_t runs = result_integer(answer, 0, "runs", 0);
    (void)fprintf(out, "%s record%s of %s run%s imported", CLI_COUNT(records), cli_plural(records),
                  CLI_COUNT(runs), cli_plural(runs));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int64_t count = result_integer(answer, 0, parts[i].key, 0);
        if (count > 0)
            (void)fprintf(out, "; %s %s", CLI_COUNT(count),
                          count == 1 ? parts[i].one : parts[i].many);
    }
    (void)fputc('\n', out);
    print_refused_baselines(cli, answer);
    char text[512];
    if (result_get(answer, 0, "note").type != VALUE_TEXT)
        return;
    const int64_t refused = result_integer(answer, 0, "refused", 0);
    (void)result_text(text, sizeof text, answer, 0, "note");
    if (refused > 0)
        (void)fprintf(
            cli->env.notes, "inferstat: import: %s run%s or record%s not taken, the first: %s\n",
            CLI_COUNT(refused), cli_plural(refused), refused == 1 ? " was" : "s were", text);
    else
        (void)fprintf(cli->env.notes, "inferstat: import: %s\n", text);
}

static enum status import_bundle(struct cli *cli, const char *path, struct error *err)
{
    struct query query = {.kind = QUERY_IMPORT};
    return cli_ask_of_file(cli, &query, path, print_import, err);
}

// Writes the bundle to a folder that the collector, perhaps of another user, can read, and
// removes it afterwards.
static enum status import_results(struct cli *cli, const char *path, struct error *err)
{
    const char *place = getenv("TMPDIR");
    char folder[QUERY_PATH_SIZE], file[QUERY_PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s/inferstat-import-XXXXXX",
                   place && place[0] == '/' ? place : "/tmp");
    if (!mkdtemp(folder))
        return error_set(err, STATUS_IO, "%s: cannot be made: %s", folder, strerror(errno));
    enum status status = files_join(file, sizeof file, folder, "results.db", err);
    if (status == STATUS_OK)
        status = llama_bench_convert(path, file, err);
    if (status == STATUS_OK && (chmod(folder, 0755) != 0 || chmod(file, 0644) != 0))
        status = error_set(err, STATUS_IO, "%s: %s", file, strerror(errno));
    if (status == STATUS_OK)
        status = import_bundle(cli, file, err);
    (void)unlink(file);
    (void)rmdir(folder);
    if (status == STATUS_OK && cli->options.format != FORMAT_JSON)
        (void)fputs("inferstat: import: llama-bench does not say how much memory its process had: "
                    "host_memory_bytes of these records is 0\n",
                    cli->env.notes);
    return status;
}

enum status command_import(struct cli *cli, struct error *err)
{
    const char *path = cli->options.arguments[0];
    return llama_bench_is_json(path) ? import_results(cli, path, err)
                                     : import_bundle(cli, path, err);
}
