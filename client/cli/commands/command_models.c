// inferstat models
#include <stdlib.h>

#include "client/cli/args/known_names.h"
#include "client/cli/cli.h"
#include "common/core/base/array.h"
#include "common/store/read/answer_cells.h"

enum { DESCRIBED = 1000 }; // newest loaded models that are looked at

static const struct answer_column keys[] = {
    {"model", UNIT_NONE},           {"quantisation", UNIT_NONE},
    {"file_bytes", UNIT_BYTES},     {"hosts", UNIT_COUNT},
    {"requests", UNIT_COUNT},       {"generated_tokens", UNIT_TOKENS},
    {"items", UNIT_COUNT},          {"tokens_per_second_p50", UNIT_TOKENS_PER_SECOND},
    {"ttft_p50_ns", UNIT_DURATION}, {"ttft_p95_ns", UNIT_DURATION},
    {"last_ns", UNIT_TIME},
};

static const struct column columns[] = {
    {"model", "model", COLUMN_LEFT(0)},
    {"quantisation", "type", COLUMN_LEFT(4), .is_optional = true},
    {"file_bytes", "size", COLUMN_RIGHT(4), .is_optional = true},
    {"hosts", "hosts", COLUMN_RIGHT(2)},
    {"requests", "requests", COLUMN_RIGHT(0)},
    {"generated_tokens", "output tokens", COLUMN_RIGHT(1), .is_optional = true},
    {"items", "items", COLUMN_RIGHT(1), .is_optional = true},
    {"tokens_per_second_p50", "t/s p50", COLUMN_RIGHT(0), .is_optional = true},
    {"ttft_p50_ns", "TTFT p50", COLUMN_RIGHT(3), .is_optional = true},
    {"ttft_p95_ns", "TTFT p95", COLUMN_RIGHT(0), .is_optional = true},
    {"last_ns", "last seen", COLUMN_LEFT(0), .is_whole = true},
};

static const struct columns view = {columns, sizeof columns / sizeof *columns, NULL};

// Sums of the overview's rows of one model.
struct model {
    size_t row; // of the overview, its first
    struct known_names hosts;
    int64_t requests, tokens, items, last_ns;
    bool has_tokens, has_items;
};

struct models {
    struct model *all;
    size_t count, room;
    struct result *overview, *described, *loaded, *speeds, *ttfts;
};

static void add_number(const struct result *result, size_t row, const char *key, int64_t *sum,
                       bool *has)
{
    const int64_t value = result_integer(result, row, key, -1);
    if (value < 0)
        return;
    *sum += value;
    *has = true;
}

static enum status add_row(struct models *models, size_t row, struct error *err)
{
    const struct result *overview = models->overview;
    const struct value name = result_get(overview, row, "model");
    struct model *model = models->all;
    bool has;
    if (name.type != VALUE_TEXT) // a process without requests
        return STATUS_OK;
    while (model < models->all + models->count &&
           !value_is_same(name, result_get(overview, model->row, "model")))
        model++;
    if (model == models->all + models->count) {
        if (!ARRAY_RESERVE(&models->all, &models->room, models->count + 1))
            return error_no_memory(err, "models");
        model = &models->all[models->count++];
        *model = (struct model){.row = row};
    }
    const int64_t last_ns = result_integer(overview, row, "last_ns", 0);
    model->last_ns = last_ns > model->last_ns ? last_ns : model->last_ns;
    add_number(overview, row, "inferences", &model->requests, &has);
    add_number(overview, row, "generated_tokens", &model->tokens, &model->has_tokens);
    add_number(overview, row, "items", &model->items, &model->has_items);
    return known_names_add(&model->hosts, result_get(overview, row, "host"), err);
}

static int by_last(const void *left, const void *right)
{
    const struct model *a = left, *b = right;
    return (a->last_ns < b->last_ns) - (a->last_ns > b->last_ns);
}

// ---- The answer -------------------------------------------------------------------

// Asks for a metric of each model; no answer if no record has it.
static enum status ask_metric(struct cli *cli, const char *metric, struct result **out,
                              struct error *err)
{
    struct query query = {.kind = QUERY_AVERAGE,
                          .filter = cli->query.filter,
                          .group_by = {QUERY_BY_MODEL},
                          .group_count = 1};
    (void)snprintf(query.metric, sizeof query.metric, "%s", metric);
    const enum status status = cli_ask(cli, &query, out, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

// Asks for the newest descriptions, of any time.
static enum status ask_described(struct cli *cli, struct result **out, struct error *err)
{
    struct query query = {.kind = QUERY_RECORDS,
                          .filter = cli->query.filter,
                          .limit = DESCRIBED,
                          .records.kind = RECORD_KIND_MODEL};
    query.filter.since_ns = query.filter.until_ns = 0;
    query.filter.by[QUERY_BY_DEVICE][0] = '\0'; // descriptions have none
    const enum status status = cli_ask(cli, &query, out, err);
    return status == STATUS_NO_DATA ? STATUS_OK : status;
}

// Copies the cell of the first row in which `from` names the model.
static void copy_cell(struct result *answer, const char *key, const struct result *from,
                      const char *names, const char *column, struct value model)
{
    for (size_t row = 0; from && row < result_row_count(from); row++) {
        if (!value_is_same(model, result_get(from, row, names)))
            continue;
        answer_value(answer, key, result_get(from, row, column));
        return;
    }
}

static void add_model(struct result *answer, const struct models *models, const struct model *model)
{
    const struct value name = result_get(models->overview, model->row, "model");
    answer_row(answer);
    answer_value(answer, "model", name);
    copy_cell(answer, "quantisation", models->described, "name", "quantisation", name);
    copy_cell(answer, "file_bytes", models->loaded, "model", "max", name); // unless described
    copy_cell(answer, "file_bytes", models->described, "name", "file_bytes", name);
    answer_int(answer, "hosts", (int64_t)model->hosts.count);
    answer_int(answer, "requests", model->requests);
    if (model->has_tokens)
        answer_int(answer, "generated_tokens", model->tokens);
    if (model->has_items)
        answer_int(answer, "items", model->items);
    copy_cell(answer, "tokens_per_second_p50", models->speeds, "model", "p50", name);
    copy_cell(answer, "ttft_p50_ns", models->ttfts, "model", "p50", name);
    copy_cell(answer, "ttft_p95_ns", models->ttfts, "model", "p95", name);
    answer_int(answer, "last_ns", model->last_ns);
}

static enum status ask_all(struct cli *cli, struct models *models, struct error *err)
{
    enum status status = cli_ask_for(cli, &cli->query, "models", "no data", &models->overview, err);
    for (size_t row = 0; status == STATUS_OK && row < result_row_count(models->overview); row++)
        status = add_row(models, row, err);
    if (status == STATUS_OK)
        status = ask_metric(cli, "load.model_bytes", &models->loaded, err);
    if (status == STATUS_OK)
        status = ask_metric(cli, "tokens_per_second", &models->speeds, err);
    if (status == STATUS_OK)
        status = ask_metric(cli, "ttft_ns", &models->ttfts, err);
    return status == STATUS_OK ? ask_described(cli, &models->described, err) : status;
}

static void deinit(struct models *models)
{
    for (size_t i = 0; i < models->count; i++)
        known_names_deinit(&models->all[i].hosts);
    free(models->all);
    result_free(models->overview);
    result_free(models->described);
    result_free(models->loaded);
    result_free(models->speeds);
    result_free(models->ttfts);
}

enum status command_models(struct cli *cli, struct error *err)
{
    struct models models = {.count = 0};
    struct result *answer = NULL;
    enum status status = ask_all(cli, &models, err);
    if (status == STATUS_OK)
        status = answer_new(&answer, keys, sizeof keys / sizeof *keys, err);
    if (models.count > 1)
        qsort(models.all, models.count, sizeof *models.all, by_last);
    for (size_t i = 0; i < models.count && status == STATUS_OK; i++)
        add_model(answer, &models, &models.all[i]);
    if (status == STATUS_OK)
        status = answer_check(answer, err);
    if (status == STATUS_OK)
        status = cli_print_rows(cli, &view, answer, "no data: no model has requests or loads", err);
    result_free(answer);
    deinit(&models);
    return status;
}
