#include "client/cli/output/rows.h"

#include <stdlib.h>

#include "client/cli/output/csv.h"
#include "common/sys/files.h"

// A table of all columns of a result.
static struct table *table_of(const struct result *result)
{
    const unsigned count = result_column_count(result);
    struct column *columns = calloc(count + 1, sizeof *columns);
    if (!columns)
        return NULL;
    for (unsigned i = 0; i < count; i++) {
        const enum value_type type = result_cell(result, 0, i).type;
        const bool is_number = type == VALUE_INT || type == VALUE_REAL;
        columns[i] = (struct column){.key = result_column(result, i)->key,
                                     .title = result_column(result, i)->key,
                                     .align = is_number ? TABLE_RIGHT : TABLE_LEFT};
    }
    struct table *table = table_new(&(struct columns){.columns = columns, .count = count});
    free(columns);
    return table;
}

// `result` (NULL: there is none) has the columns.
static void begin(struct rows *rows, const struct result *result)
{
    if (rows->begun)
        return;
    rows->begun = true;
    if (rows->format == FORMAT_JSON)
        (void)fputs("{\"rows\": [", rows->out);
    if (rows->format == FORMAT_CSV && result)
        csv_write_header(rows->out, result);
    if (rows->format == FORMAT_TEXT && result)
        rows->table = rows->columns ? table_new(rows->columns) : table_of(result);
}

static void write_row(struct rows *rows, const struct result *result, size_t row)
{
    struct json_writer json = files_json(rows->out);
    switch (rows->format) {
    case FORMAT_TEXT:
        if (rows->table)
            table_add_row(rows->table, result, row);
        return;
    case FORMAT_CSV:
        csv_write_row(rows->out, result, row);
        return;
    case FORMAT_JSON:
        (void)fputs(rows->count > 0 ? ",\n" : "\n", rows->out);
        json_write_row(&json, result, row, rows->kind);
        return;
    case FORMAT_JSONL:
        json_write_row(&json, result, row, rows->kind);
        (void)fputc('\n', rows->out);
        return;
    }
}

void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end)
{
    begin(rows, result);
    for (size_t row = first; row < end; row++, rows->count++)
        write_row(rows, result, row);
}

void rows_add_below(struct rows *rows, const char *line)
{
    if (rows->table)
        table_add_below(rows->table, line);
}

enum status rows_end(struct rows *rows, enum status status, struct error *err)
{
    if (status == STATUS_OK)
        begin(rows, NULL);
    if (status == STATUS_OK && rows->format == FORMAT_JSON)
        (void)fputs(rows->count > 0 ? "\n]}\n" : "]}\n", rows->out);
    if (status == STATUS_OK && rows->format == FORMAT_TEXT && rows->count > 0)
        status = rows->table ? table_print(rows->table, rows->out, rows->width, err)
                             : error_no_memory(err, "table");
    table_free(rows->table);
    rows->table = NULL;
    return status;
}

void rows_write_json(FILE *out, const struct result *result, size_t row)
{
    struct json_writer json = files_json(out);
    json_write_row(&json, result, row, NULL);
    (void)fputc('\n', out);
}
