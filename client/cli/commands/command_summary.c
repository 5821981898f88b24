// inferstat summary [--line]
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/output/csv.h"
#include "client/cli/commands/record_pages.h"
#include "client/cli/commands/stages.h"
#include "client/cli/output/table.h"
#include "common/core/base/text.h"
#include "common/core/query/loss_text.h"
#include "common/sys/files.h"

enum { TEXT_SIZE = 256, BAR_WIDTH = 30, BAR_TERMINAL_LEAST = 72 };

// ---- Figures as text --------------------------------------------------------------

// One figure of the answer as text, "-" if absent.
static const char *figure(char text[TEXT_SIZE], const struct result *summary, const char *key)
{
    int column = result_find(summary, key);
    struct value value = result_cell(summary, 0, (unsigned)column);
    enum unit unit = column < 0 ? UNIT_NONE : result_column(summary, (unsigned)column)->unit;
    char *cell = table_cell_text(value, unit);
    (void)snprintf(text, TEXT_SIZE, "%s", cell ? cell : "-");
    free(cell);
    return text;
}

static int64_t count_of(const struct result *summary, const char *key)
{
    return result_integer(summary, 0, key, 0);
}

static bool has(const struct result *summary, const char *key)
{
    return result_get(summary, 0, key).type != VALUE_NULL;
}

static int64_t lost_of(const struct result *summary)
{
    return count_of(summary, "dropped") + count_of(summary, "unnumbered");
}

static bool is_empty(const struct result *summary)
{
    static const char *const keys[] = {"runs",       "loads",     "inferences",
                                       "operations", "pipelines", "produced"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (count_of(summary, keys[i]) != 0)
            return false;
    }
    return true;
}

// ---- The last load ----------------------------------------------------------------

struct last_load {
    struct cli *cli;
    bool found;
    int64_t started_ns, duration_ns;
    struct stages *stages;
    const struct stage *stage; // its stages, in order
    size_t count;
};

static enum status on_page(void *context, const struct result *page, struct error *err)
{
    struct last_load *last = context;
    if (result_row_count(page) == 0)
        return STATUS_OK;
    enum status status = stages_ask(&last->stages, last->cli, page, err);
    if (status != STATUS_OK)
        return status;
    last->found = true;
    last->started_ns = result_integer(page, 0, "started_ns", 0);
    last->duration_ns = result_integer(page, 0, "duration_ns", 0);
    last->stage = stages_of(last->stages, page, 0, &last->count);
    return STATUS_OK;
}

static enum status ask_last_load(struct last_load *last, struct error *err)
{
    return record_pages_read(last->cli, RECORD_KIND_LOAD, NULL, false, 1, on_page, last, err);
}

static void print_stages(const struct last_load *last)
{
    unsigned width = last->cli->env.width;
    unsigned bar = width == 0 || width >= BAR_TERMINAL_LEAST ? BAR_WIDTH : 0;
    FILE *out = last->cli->env.out;
    char line[STAGES_LINE_SIZE];
    for (size_t i = 0; i < last->count; i++)
        (void)fprintf(out, "%s\n",
                      stages_line(line, &last->stage[i], last->started_ns, last->duration_ns, bar));
    struct stage other = {.duration_ns =
                              stages_other_ns(last->stage, last->count, last->duration_ns)};
    if (other.duration_ns > 0)
        (void)fprintf(out, "%s\n",
                      stages_line(line, &other, last->started_ns, last->duration_ns, bar));
}

// ---- For people -------------------------------------------------------------------

// "(3 failed)": rollups do not know what failed, so that it is of the records kept.
static const char *failed_of(char text[TEXT_SIZE], const struct result *summary, const char *key)
{
    (void)snprintf(text, TEXT_SIZE, "(%" PRId64 " failed%s)", count_of(summary, key),
                   count_of(summary, "expired") > 0 ? " of those kept" : "");
    return text;
}

static void print_requests(FILE *out, const struct result *summary)
{
    char a[TEXT_SIZE], b[TEXT_SIZE], failed[TEXT_SIZE];
    (void)fprintf(out, "requests    %" PRId64 " %s; %s prompt and %s generated tokens\n",
                  count_of(summary, "inferences"), failed_of(failed, summary, "inferences_failed"),
                  figure(a, summary, "prompt_tokens"), figure(b, summary, "generated_tokens"));
    if (count_of(summary, "inferences") == 0)
        return;
    (void)fprintf(out, "speed       %s mean of requests, %s total tokens / total time\n",
                  figure(a, summary, "mean_tokens_per_second"),
                  figure(b, summary, "tokens_per_second"));
    (void)fprintf(out, "ttft        %s mean, %s p95\n", figure(a, summary, "ttft_mean_ns"),
                  figure(b, summary, "ttft_p95_ns"));
    (void)fprintf(out, "e2e         %s mean\n", figure(a, summary, "e2e_mean_ns"));
}

static void print_last_inference(FILE *out, const struct result *summary)
{
    char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE], e[TEXT_SIZE];
    (void)fprintf(out, "last reply  %s: %s, ttft %s, %s generated, %s\n",
                  figure(a, summary, "last_inference_model"),
                  figure(b, summary, "last_inference_tokens_per_second"),
                  figure(c, summary, "last_inference_ttft_ns"),
                  figure(d, summary, "last_inference_generated_tokens"),
                  figure(e, summary, "last_inference_started_ns"));
}

static void print_pipelines(FILE *out, const struct result *summary)
{
    char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE], e[TEXT_SIZE], f[TEXT_SIZE];
    if (count_of(summary, "pipelines") == 0)
        return;
    (void)fprintf(out, "pipelines   %" PRId64 " %s\n", count_of(summary, "pipelines"),
                  failed_of(a, summary, "pipelines_failed"));
    if (!has(summary, "last_pipeline_started_ns"))
        return;
    (void)fprintf(out, "            last: %s%s%s: %s, %s, overlap %s, %s\n",
                  figure(a, summary, "last_pipeline_workload"),
                  has(summary, "last_pipeline_model") ? " of " : "",
                  has(summary, "last_pipeline_model") ? figure(b, summary, "last_pipeline_model")
                                                      : "",
                  figure(c, summary, "last_pipeline_items_per_second"),
                  figure(d, summary, "last_pipeline_status"),
                  figure(e, summary, "last_pipeline_overlap_ratio"),
                  figure(f, summary, "last_pipeline_started_ns"));
}

static void print_last_load(const struct last_load *last, const struct result *summary)
{
    char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];
    (void)fprintf(
        last->cli->env.out, "last load   %s: %s, %s, %s\n", figure(a, summary, "last_load_model"),
        figure(b, summary, "last_load_duration_ns"), figure(c, summary, "last_load_status"),
        figure(d, summary, "last_load_started_ns"));
    print_stages(last);
}

static void print_losses(FILE *out, const struct result *summary)
{
    char coverage[TEXT_SIZE];
    (void)fprintf(out,
                  "records     %" PRId64 " produced: %" PRId64 " stored, %" PRId64
                  " in flight, %" PRId64 " lost; coverage %s\n",
                  count_of(summary, "produced") + count_of(summary, "unnumbered"),
                  count_of(summary, "stored"), count_of(summary, "in_flight"), lost_of(summary),
                  figure(coverage, summary, "coverage_ratio"));
    char losses[LOSS_TEXT_SIZE];
    if (loss_text(losses, summary, 0)[0])
        (void)fprintf(out, "            lost: %s\n", losses);
    if (count_of(summary, "duplicates") + count_of(summary, "expired") +
            count_of(summary, "cleared") >
        0)
        (void)fprintf(
            out, "            %" PRId64 " repeated, %" PRId64 " expired, %" PRId64 " cleared\n",
            count_of(summary, "duplicates"), count_of(summary, "expired"),
            count_of(summary, "cleared"));
    if (has(summary, "refusals"))
        (void)fprintf(out, "not taken   %s\n", figure(coverage, summary, "refusals"));
}

static void print_for_people(const struct last_load *last, const char *source,
                             const struct result *summary)
{
    FILE *out = last->cli->env.out;
    char a[TEXT_SIZE], b[TEXT_SIZE];
    (void)text_escape(b, sizeof b, source, strlen(source));
    (void)fprintf(out, "source      %s (%s)\n", b, figure(a, summary, "store_bytes"));
    if (has(summary, "store_error"))
        (void)fprintf(out, "            cannot be written: %s\n",
                      figure(a, summary, "store_error"));
    (void)fprintf(
        out, "runs        %" PRId64 " (%" PRId64 " open); hosts %" PRId64 ", models %" PRId64 "\n",
        count_of(summary, "runs"), count_of(summary, "runs_open"), count_of(summary, "hosts"),
        count_of(summary, "models"));
    print_requests(out, summary);
    (void)fprintf(out, "loads       %" PRId64 " %s, %s mean of those that succeeded\n",
                  count_of(summary, "loads"), failed_of(b, summary, "loads_failed"),
                  figure(a, summary, "load_mean_ns"));
    print_pipelines(out, summary);
    (void)fprintf(out, "memory      %s host memory of open runs\n",
                  figure(a, summary, "host_memory_bytes"));
    if (has(summary, "startup_last_ns"))
        (void)fprintf(out, "startup     %s last\n", figure(a, summary, "startup_last_ns"));
    if (has(summary, "last_inference_started_ns"))
        print_last_inference(out, summary);
    if (has(summary, "last_load_started_ns"))
        print_last_load(last, summary);
    print_losses(out, summary);
}

// The model's name, if the figures are of one model.
static const char *whose(char text[TEXT_SIZE], const struct result *summary)
{
    const int64_t models = count_of(summary, "models");
    if (models <= 1)
        return figure(text, summary,
                      has(summary, "last_inference_model") ? "last_inference_model"
                                                           : "last_load_model");
    (void)snprintf(text, TEXT_SIZE, "%" PRId64 " models", models);
    return text;
}

static void print_line(FILE *out, const struct result *summary)
{
    char model[TEXT_SIZE], speed[TEXT_SIZE], ttft[TEXT_SIZE], memory[TEXT_SIZE];
    (void)fprintf(out, "%s %s ttft %s req %" PRId64 " mem %s lost %" PRId64 "\n",
                  whose(model, summary), figure(speed, summary, "mean_tokens_per_second"),
                  figure(ttft, summary, "ttft_mean_ns"), count_of(summary, "inferences"),
                  figure(memory, summary, "host_memory_bytes"), lost_of(summary));
}

// ---- For machines -----------------------------------------------------------------

// The answer as one object with the last load's stages.
static void print_json(const struct last_load *last, const struct result *summary)
{
    FILE *out = last->cli->env.out;
    struct json_writer json = files_json(out);
    json_write_begin(&json, NULL);
    json_write_members(&json, summary, 0);
    json_write_begin_list(&json, "last_load_stages");
    for (size_t i = 0; i < last->count; i++) {
        json_write_begin(&json, NULL);
        json_write_value(&json, "stage", last->stage[i].name);
        json_write_int(&json, "duration_ns", last->stage[i].duration_ns);
        json_write_end(&json);
    }
    json_write_end_list(&json);
    json_write_end(&json);
    (void)fputc('\n', out);
}

static enum status show(struct last_load *last, const struct result *summary, struct error *err)
{
    struct cli *cli = last->cli;
    if (option_given(&cli->options, OPTION_LINE)) {
        print_line(cli->env.out, summary);
        return STATUS_OK;
    }
    if (cli->options.format == FORMAT_CSV) {
        csv_write_header(cli->env.out, summary);
        csv_write_row(cli->env.out, summary, 0);
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    if (has(summary, "last_load_started_ns"))
        status = ask_last_load(last, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_JSON) {
        print_json(last, summary);
        return STATUS_OK;
    }
    const char *source;
    status = cli_source(cli, &source, err);
    if (status == STATUS_OK)
        print_for_people(last, source, summary);
    return status;
}

enum status command_summary(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_LINE) && cli->options.format != FORMAT_TEXT)
        return error_set(err, STATUS_INVALID, "summary: --line and --%s: only one of them",
                         cli->options.format == FORMAT_CSV ? "csv" : "json");
    struct result *summary;
    enum status status = cli_ask(cli, &cli->query, &summary, err);
    if (status != STATUS_OK)
        return status;
    struct last_load last = {.cli = cli};
    status = show(&last, summary, err);
    if (status == STATUS_OK && is_empty(summary))
        status = cli_no_data(cli, "summary", err);
    stages_free(last.stages);
    result_free(summary);
    return status;
}
