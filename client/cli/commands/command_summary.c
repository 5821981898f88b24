// inferstat summary [--line]
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/args/known_names.h"
#include "client/cli/cli.h"
#include "client/cli/commands/device_trouble.h"
#include "client/cli/commands/stages.h"
#include "client/cli/output/table.h"
#include "common/core/base/text.h"
#include "common/core/query/result.h"
#include "common/sys/files.h"

enum { TEXT_SIZE = 256, INDENT = 12 };

// ---- Figures as text --------------------------------------------------------------

// One figure of the answer as text, "-" if absent.
static const char *figure(char text[TEXT_SIZE], const struct result *summary, const char *key)
{
    char *cell = column_value(&(struct column){.key = key}, summary, 0);
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
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (count_of(summary, keys[i]) != 0)
            return false;
    return true;
}

// ---- The last load ----------------------------------------------------------------

struct last_load {
    struct cli *cli;
    struct stages stages;
};

static enum status on_page(void *context, struct result *page, struct error *err)
{
    struct last_load *last = context;
    enum status status = stages_ask(&last->stages, last->cli, page, err);
    if (status == STATUS_OK && result_row_count(page) > 0)
        status = stages_choose(&last->stages, page, 0, err);
    result_free(page);
    return status;
}

static void put_line(void *out, const char *line)
{
    (void)fprintf(out, "%s\n", line);
}

// ---- For people -------------------------------------------------------------------

// Prints a text in which {key} is the figure, {#key} the plain number, and {!key} "(3 failed)":
// rollups do not know what failed, so that it is of the records kept.
static void print(FILE *out, const struct result *summary, const char *text)
{
    for (;;) {
        char key[64], shown[TEXT_SIZE];
        const size_t plain = strcspn(text, "{");
        (void)fwrite(text, 1, plain, out);
        text += plain;
        if (*text == '\0')
            return;
        const size_t size = strcspn(++text, "}");
        (void)snprintf(key, sizeof key, "%.*s", (int)size, text);
        text += size + 1;
        if (key[0] == '#')
            (void)fputs(unit_format_int(shown, UNIT_COUNT, count_of(summary, key + 1)), out);
        else if (key[0] == '!')
            (void)fprintf(out, "(%s failed%s)", CLI_COUNT(count_of(summary, key + 1)),
                          count_of(summary, "expired") > 0 ? " of those kept" : "");
        else
            (void)fputs(figure(shown, summary, key), out);
    }
}

static void print_losses(FILE *out, const struct result *summary)
{
    char losses[LOSS_TEXT_SIZE];
    print(out, summary,
          "records     {#produced} produced: {#stored} stored, {#in_flight} in flight, ");
    (void)fprintf(out, "%s lost; coverage ", CLI_COUNT(lost_of(summary)));
    print(out, summary, "{coverage_ratio}");
    if (count_of(summary, "lost") != lost_of(summary))
        print(out, summary, " of the window ({#lost} lost)");
    (void)fputc('\n', out);
    if (result_loss_text(losses, summary, 0)[0])
        (void)fprintf(out, "            lost: %s\n", losses);
    if (count_of(summary, "duplicates") + count_of(summary, "expired") +
            count_of(summary, "cleared") >
        0)
        print(out, summary,
              "            {#duplicates} repeated, {#expired} expired, {#cleared} cleared\n");
    if (count_of(summary, "forgotten_runs") > 0)
        print(out, summary,
              "removed     {#forgotten_runs} runs ({#forgotten_on_request} by inferstat forget), "
              "with "
              "{#forgotten_stored} records stored and {#forgotten_lost} lost\n");
    if (has(summary, "refusals"))
        print(out, summary, "not taken   {refusals}\n");
}

// The lines of the summary, each printed if the answer has the figure, and the count is not 0.
static const struct {
    const char *figure, *count; // NULL: always
    const char *text;
} lines[] = {
    {"store_error", NULL, "            cannot be written: {store_error}\n"},
    {NULL, NULL, "runs        {#runs} ({#runs_open} open); hosts {#hosts}, models {#models}\n"},
    {NULL, NULL, "requests    {#inferences} {!inferences_failed}"},
    {"generated_tokens", NULL, "; {prompt_tokens} prompt and {generated_tokens} output tokens"},
    {"items", NULL, "; {#items} items"},
    {NULL, NULL, "\n"},
    {NULL, "inferences", "throughput  "},
    {"output_token_rate", "inferences",
     "{output_token_rate} output, {prompt_token_rate} prefill, "},
    {"item_rate", "inferences", "{item_rate} of items, "},
    {NULL, "inferences", "{request_rate} in {window_ns}; {error_ratio} failed\n"},
    {"generated_tokens", "inferences",
     "speed       {mean_tokens_per_second} mean speed of a request, {tokens_per_second} all tokens "
     "/ all decode time\n"
     "TTFT        {ttft_mean_ns} mean, {ttft_p95_ns} p95\n"},
    {"items_per_second", "inferences",
     "items       {items_per_second} of their requests: all items / all time\n"},
    {NULL, "inferences", "E2E         {e2e_mean_ns} mean"},
    {"items", "inferences", ", {e2e_p50_ns} p50, {e2e_p95_ns} p95"},
    {NULL, "inferences", "\n"},
    {NULL, NULL,
     "loads       {#loads} {!loads_failed}, {load_mean_ns} mean of those that succeeded\n"},
    {NULL, "pipelines", "pipelines   {#pipelines} {!pipelines_failed}\n"},
    {"last_pipeline_started_ns", "pipelines", "            last: {last_pipeline_workload}"},
    {"last_pipeline_model", "pipelines", " of {last_pipeline_model}"},
    {"last_pipeline_started_ns", "pipelines",
     ": {last_pipeline_items_per_second}, {last_pipeline_status}, overlap "
     "{last_pipeline_overlap_ratio}, {last_pipeline_started_ns}\n"},
    {NULL, NULL, "memory      {host_memory_bytes} host memory of open runs\n"},
    {"startup_last_ns", NULL, "startup     {startup_last_ns} last\n"},
    {"last_inference_generated_tokens", NULL,
     "last reply  {last_inference_model}: {last_inference_tokens_per_second}, TTFT "
     "{last_inference_ttft_ns}, {last_inference_generated_tokens} output tokens, "
     "{last_inference_started_ns}\n"},
    {"last_inference_items", NULL,
     "last reply  {last_inference_model}: {#last_inference_items} items in "
     "{last_inference_e2e_ns}, {last_inference_started_ns}\n"},
    {"last_load_started_ns", NULL,
     "last load   {last_load_model}: {last_load_duration_ns}, {last_load_status}, "
     "{last_load_started_ns}\n"},
};

static enum status print_for_people(const struct last_load *last, const char *source,
                                    const struct result *summary, struct error *err)
{
    FILE *const terminal = last->cli->env.out;
    char name[TEXT_SIZE], *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return error_no_memory(err, "summary");
    last->cli->env.out = out;
    (void)fprintf(out, "source      %s ", text_escape(name, sizeof name, source, strlen(source)));
    print(out, summary, "({store_bytes})\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if ((!lines[i].figure || has(summary, lines[i].figure)) &&
            (!lines[i].count || count_of(summary, lines[i].count) != 0))
            print(out, summary, lines[i].text);
    stages_draw(&last->stages, last->cli->env.width, put_line, out);
    device_trouble_note(last->cli, "trouble     ");
    print_losses(out, summary);
    last->cli->env.out = terminal;
    const bool fails = fclose(out) != 0;
    if (!fails)
        cli_print_lines(last->cli, INDENT, text);
    free(text);
    return fails ? error_no_memory(err, "summary") : STATUS_OK;
}

// The model's name, if the figures are of one model.
static void print_line(FILE *out, const struct result *summary)
{
    print(out, summary,
          count_of(summary, "models") > 1        ? "{#models} models"
          : has(summary, "last_inference_model") ? "{last_inference_model}"
                                                 : "{last_load_model}");
    print(out, summary,
          has(summary, "item_rate") && !has(summary, "output_token_rate")
              ? " {item_rate} {request_rate} E2E {e2e_mean_ns}"
              : " {output_token_rate} {request_rate} TTFT {ttft_mean_ns}");
    print(out, summary, " req {#inferences} mem {host_memory_bytes} lost {#lost}\n");
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
    for (size_t i = 0; i < last->stages.count; i++) {
        const struct stage *stage = &last->stages.chosen[i];
        json_write_begin(&json, NULL);
        json_write_value(&json, "stage", stage->name);
        json_write_int(&json, "duration_ns", stage->duration_ns);
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
    if (cli->options.format == FORMAT_CSV)
        return cli_print(cli, NULL, summary, err);
    enum status status = STATUS_OK;
    if (has(summary, "last_load_started_ns"))
        status = record_pages_read(cli, RECORD_KIND_LOAD, NULL, false, 1, on_page, last, err);
    if (status != STATUS_OK)
        return status;
    if (cli->options.format == FORMAT_JSON) {
        print_json(last, summary);
        return STATUS_OK;
    }
    const char *source;
    status = cli_source(cli, &source, err);
    if (status == STATUS_OK)
        status = print_for_people(last, source, summary, err);
    return status;
}

enum status command_summary(struct cli *cli, struct error *err)
{
    if (option_given(&cli->options, OPTION_LINE) && cli->options.format != FORMAT_TEXT)
        return error_set(err, STATUS_INVALID, "summary: --line and --%s: only one of them",
                         cli->options.format == FORMAT_CSV ? "csv" : "json");
    struct result *summary;
    enum status status = cli_ask(cli, &cli->query, &summary, err);
    if (status == STATUS_OK && is_empty(summary) && known_names_widen(cli, &cli->query.filter)) {
        result_free(summary);
        status = cli_ask(cli, &cli->query, &summary, err);
    }
    if (status != STATUS_OK)
        return status;
    struct last_load last = {.cli = cli};
    status = show(&last, summary, err);
    if (status == STATUS_OK && is_empty(summary))
        status = cli_no_data(cli, "summary", err);
    stages_deinit(&last.stages);
    result_free(summary);
    return status;
}
