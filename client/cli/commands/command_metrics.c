// inferstat metrics [--columns]
#include <string.h>

#include "client/cli/cli.h"
#include "common/core/record/record.h"

static void set_text(struct result *result, unsigned column, const char *text)
{
    (void)result_set_text(result, column, text, strlen(text));
}

static enum status fill_metrics(struct result *result)
{
    static const char *const keys[] = {"metric", "kind", "unit", "source", "meaning"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (result_add_column(result, keys[i], UNIT_NONE) != STATUS_OK)
            return STATUS_NOMEM;
    unsigned count;
    const struct query_metric *metrics = query_metrics(&count);
    for (unsigned i = 0; i < count; i++) {
        (void)result_add_row(result);
        set_text(result, 0, metrics[i].name);
        set_text(result, 1, record_kind_info(metrics[i].kind)->name);
        set_text(result, 2, unit_name(metrics[i].unit));
        set_text(result, 3, metrics[i].column < 0 ? "derived" : "stored");
        set_text(result, 4, metrics[i].meaning);
    }
    return result_status(result);
}

static enum status fill_columns(struct result *result)
{
    static const char *const keys[] = {"kind", "kind_number", "index",    "column",
                                       "type", "unit",        "presence", "meaning"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (result_add_column(result, keys[i], UNIT_NONE) != STATUS_OK)
            return STATUS_NOMEM;
    for (int kind = 0; kind < (int)RECORD_KIND_COUNT; kind++) {
        const struct record_kind_info *info = record_kind_info((enum record_kind)kind);
        for (unsigned i = 0; i < info->column_count; i++) {
            const struct record_column *column = &info->columns[i];
            (void)result_add_row(result);
            set_text(result, 0, info->name);
            result_set_int(result, 1, kind);
            result_set_int(result, 2, i);
            set_text(result, 3, column->name);
            set_text(result, 4, column_type_name(column->type));
            set_text(result, 5, unit_name(column->unit));
            set_text(result, 6, column->maybe ? "maybe" : "always");
            set_text(result, 7, column->meaning);
        }
    }
    return result_status(result);
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
    struct result *result = NULL;
    enum status status = result_new(&result);
    if (status == STATUS_OK)
        status = option_given(&cli->options, OPTION_COLUMNS) ? fill_columns(result)
                                                             : fill_metrics(result);
    status = status == STATUS_OK ? print(cli, result, err) : error_no_memory(err, "metrics");
    result_free(result);
    return status;
}
