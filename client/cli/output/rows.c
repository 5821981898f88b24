#include "client/cli/output/rows.h"

#include "client/cli/output/csv.h"
#include "common/sys/files.h"

// `result` (NULL: there is none) has the keys of a CSV's header.
static void begin(struct rows *rows, const struct result *result)
{
    if (rows->begun)
        return;
    rows->begun = true;
    if (rows->format == FORMAT_JSON)
        (void)fputs("{\"rows\": [", rows->out);
    if (rows->format == FORMAT_CSV && result)
        csv_write_header(rows->out, result);
}

void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end)
{
    begin(rows, result);
    for (size_t row = first; row < end; row++, rows->count++) {
        if (rows->format == FORMAT_CSV) {
            csv_write_row(rows->out, result, row);
            continue;
        }
        if (rows->format == FORMAT_JSON)
            (void)fputs(rows->count > 0 ? ",\n" : "\n", rows->out);
        struct json_writer json = files_json(rows->out);
        json_write_row(&json, result, row, rows->kind);
        if (rows->format == FORMAT_JSONL)
            (void)fputc('\n', rows->out);
    }
}

void rows_end(struct rows *rows)
{
    begin(rows, NULL);
    if (rows->format == FORMAT_JSON)
        (void)fputs(rows->count > 0 ? "\n]}\n" : "]}\n", rows->out);
}

void rows_print(FILE *out, enum cli_format format, const struct result *result)
{
    struct rows rows = {.out = out, .format = format};
    if (result)
        rows_write(&rows, result, 0, result_row_count(result));
    rows_end(&rows);
}

void rows_write_json(FILE *out, const struct result *result, size_t row)
{
    struct json_writer json = files_json(out);
    json_write_row(&json, result, row, NULL);
    (void)fputc('\n', out);
}
