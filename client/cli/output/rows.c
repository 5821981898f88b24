#include "client/cli/output/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/parse.h"
#include "common/core/base/text.h"
#include "common/sys/files.h"

// ---- CSV --------------------------------------------------------------------------

static void write_quoted(FILE *out, const char *text, size_t size)
{
    bool plain = size > 0;
    for (size_t i = 0; i < size; i++)
        plain = plain && !strchr("\",\r\n", text[i]);
    if (plain) {
        (void)fwrite(text, 1, size, out);
        return;
    }
    (void)fputc('"', out);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"')
            (void)fputc('"', out);
        (void)fputc(text[i], out);
    }
    (void)fputc('"', out);
}

static bool is_ascii(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

static void write_text(FILE *out, const char *text, size_t size)
{
    if (is_ascii(text, size) || !isatty(fileno(out))) {
        write_quoted(out, text, size);
        return;
    }
    char *shown = text_escape_new(text, size);
    if (shown)
        write_quoted(out, shown, strlen(shown));
    free(shown);
}

static void write_value(FILE *out, struct value value)
{
    char text[TEXT_NUMBER_SIZE];
    switch (value.type) {
    case VALUE_INT:
        (void)fprintf(out, "%" PRId64, value.i);
        return;
    case VALUE_REAL:
        if (isfinite(value.r))
            (void)fputs(text_from_real(text, value.r), out);
        return;
    case VALUE_TEXT:
        write_text(out, value.text.bytes, value.text.size);
        return;
    case VALUE_NULL:
        return;
    }
}

static void write_csv_header(FILE *out, const struct result *result)
{
    for (unsigned i = 0; i < result_column_count(result); i++) {
        const char *key = result_column(result, i)->key;
        if (i > 0)
            (void)fputc(',', out);
        write_text(out, key, strlen(key));
    }
    (void)fputc('\n', out);
}

static void write_csv_row(FILE *out, const struct result *result, size_t row)
{
    for (unsigned i = 0; i < result_column_count(result); i++) {
        if (i > 0)
            (void)fputc(',', out);
        write_value(out, result_cell(result, row, i));
    }
    (void)fputc('\n', out);
}

// ---- All formats ------------------------------------------------------------------

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
        write_csv_header(rows->out, result);
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
        write_csv_row(rows->out, result, row);
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

// ---- Fields -----------------------------------------------------------------------

static void set_unknown(struct rows *rows, const struct result *result, const char *key)
{
    enum { KEYS_MAX = 256 };
    const char *keys[KEYS_MAX];
    unsigned count = 0;
    for (; count < KEYS_MAX && count < result_column_count(result); count++)
        keys[count] = result_column(result, count)->key;
    const char *nearest = parse_nearest(key, keys, count);
    for (unsigned i = 0; rows->columns && i < rows->columns->count; i++)
        if (strcmp(rows->columns->columns[i].title, key) == 0)
            nearest = rows->columns->columns[i].key;
    (void)snprintf(rows->unknown, sizeof rows->unknown, "\"%.60s\" (%s%.60s%s)", key,
                   nearest ? "did you mean " : "--json shows the keys", nearest ? nearest : "",
                   nearest ? "?" : "");
}

// A result with the columns of `fields` only, without rows; `from` are their places in `result`.
// NULL: a field is unknown, or memory is short.
static struct result *pick_columns(struct rows *rows, const struct result *result, unsigned *from,
                                   unsigned room)
{
    struct result *picked = NULL;
    bool fails = result_new(&picked) != STATUS_OK;
    unsigned count = 0;
    for (const char *field = rows->fields; !fails && *field;) {
        char key[64];
        const size_t size = strcspn(field, ",");
        (void)snprintf(key, sizeof key, "%.*s", (int)size, field);
        const int found = result_find(result, key);
        if (found < 0 || count == room)
            set_unknown(rows, result, key);
        fails = found < 0 || count == room ||
                result_add_column(picked, key, result_column(result, (unsigned)found)->unit) !=
                    STATUS_OK;
        if (!fails)
            from[count++] = (unsigned)found;
        field += size + (field[size] == ',');
    }
    if (!fails)
        return picked;
    result_free(picked);
    return NULL;
}

// Copies a row's columns into a new row.
static bool pick_row(struct result *picked, const struct result *result, size_t row,
                     const unsigned *from)
{
    if (result_add_row(picked) != STATUS_OK)
        return false;
    for (unsigned i = 0; i < result_column_count(picked); i++) {
        const struct value value = result_cell(result, row, from[i]);
        if (value.type == VALUE_INT)
            result_set_int(picked, i, value.i);
        if (value.type == VALUE_REAL)
            result_set_real(picked, i, value.r);
        if (value.type == VALUE_TEXT &&
            result_set_text(picked, i, value.text.bytes, value.text.size) != STATUS_OK)
            return false;
    }
    return true;
}

static void write_fields(struct rows *rows, const struct result *result, size_t first, size_t end)
{
    enum { FIELDS_MAX = 64 };
    unsigned from[FIELDS_MAX] = {0};
    struct result *picked = pick_columns(rows, result, from, FIELDS_MAX);
    if (!picked)
        return;
    rows->columns = NULL;
    size_t count = 0;
    while (count < end - first && pick_row(picked, result, first + count, from))
        count++;
    begin(rows, picked);
    for (size_t row = 0; row < count; row++, rows->count++)
        write_row(rows, picked, row);
    result_free(picked);
}

void rows_write(struct rows *rows, const struct result *result, size_t first, size_t end)
{
    if (rows->fields) {
        write_fields(rows, result, first, end);
        return;
    }
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
    if (status == STATUS_OK && rows->unknown[0])
        status = error_set(err, STATUS_INVALID, "--fields: there is no column %s", rows->unknown);
    if (status == STATUS_OK)
        begin(rows, NULL);
    if (status == STATUS_OK && rows->format == FORMAT_JSON)
        (void)fputs(rows->count > 0 ? "\n]}\n" : "]}\n", rows->out);
    if (status == STATUS_OK && rows->format == FORMAT_TEXT && rows->count > 0)
        status = rows->table ? table_print(rows->table, rows->out, rows->width, rows->colours, err)
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
