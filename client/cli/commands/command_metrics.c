// inferstat metrics [--columns]
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/record/record.h"

// Fills cells of a result and remembers a failed allocation.
struct filler {
    struct result *result;
    enum status status;
    unsigned column;
};

static void fill_row(struct filler *filler)
{
    if (filler->status == STATUS_OK)
        filler->status = result_add_row(filler->result);
    filler->column = 0;
}

static void fill_text(struct filler *filler, const char *text)
{
    if (filler->status == STATUS_OK)
        filler->status = result_set_text(filler->result, filler->column, text, strlen(text));
    filler->column++;
}

static void fill_int(struct filler *filler, int64_t value)
{
    if (filler->status == STATUS_OK)
        result_set_int(filler->result, filler->column, value);
    filler->column++;
}

static void fill_head(struct filler *filler, const char *const *keys)
{
    filler->status = result_new(&filler->result);
    for (; *keys && filler->status == STATUS_OK; keys++)
        filler->status = result_add_column(filler->result, *keys, UNIT_NONE);
}

static void fill_metrics(struct filler *filler)
{
    static const char *const keys[] = {"metric", "kind", "unit", "source", "meaning", NULL};
    fill_head(filler, keys);
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        fill_row(filler);
        fill_text(filler, metrics[i].name);
        fill_text(filler, record_kind_info(metrics[i].kind)->name);
        fill_text(filler, unit_name(metrics[i].unit));
        fill_text(filler, metrics[i].column < 0 ? "derived" : "stored");
        fill_text(filler, metrics[i].meaning);
    }
}

static void fill_columns(struct filler *filler)
{
    static const char *const keys[] = {"kind", "kind_number", "index",   "column", "type",
                                       "unit", "presence",    "meaning", NULL};
    fill_head(filler, keys);
    for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        for (unsigned i = 0; i < info->column_count; i++) {
            const struct record_column *column = &info->columns[i];
            fill_row(filler);
            fill_text(filler, info->name);
            fill_int(filler, kind);
            fill_int(filler, i);
            fill_text(filler, column->name);
            fill_text(filler, column_type_name(column->type));
            fill_text(filler, unit_name(column->unit));
            fill_text(filler, column->maybe ? "maybe" : "always");
            fill_text(filler, column->meaning);
        }
    }
}

// Names are for copying: a narrow terminal truncates the meaning only.
static enum status print(struct cli *cli, const struct result *result, struct error *err)
{
    struct column columns[8] = {{0}};
    const unsigned count = result_column_count(result);
    for (unsigned i = 0; i < count; i++) {
        const bool is_number = result_cell(result, 0, i).type == VALUE_INT;
        columns[i] = (struct column){.key = result_column(result, i)->key,
                                     .title = result_column(result, i)->key,
                                     .align = is_number ? TABLE_RIGHT : TABLE_LEFT,
                                     .is_whole = i + 1 < count};
    }
    return cli_print(cli, &(struct columns){columns, count, NULL}, result, err);
}

enum status command_metrics(struct cli *cli, struct error *err)
{
    struct filler filler = {0};
    if (option_given(&cli->options, OPTION_COLUMNS))
        fill_columns(&filler);
    else
        fill_metrics(&filler);
    enum status status = filler.status == STATUS_OK ? print(cli, filler.result, err)
                                                    : error_no_memory(err, "metrics");
    result_free(filler.result);
    return status;
}
