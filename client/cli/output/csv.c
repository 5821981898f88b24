#include "client/cli/output/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/text.h"

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

void csv_write_value(FILE *out, struct value value)
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

void csv_write_header(FILE *out, const struct result *result)
{
    for (unsigned i = 0; i < result_column_count(result); i++) {
        const char *key = result_column(result, i)->key;
        if (i > 0)
            (void)fputc(',', out);
        write_text(out, key, strlen(key));
    }
    (void)fputc('\n', out);
}

void csv_write_row(FILE *out, const struct result *result, size_t row)
{
    for (unsigned i = 0; i < result_column_count(result); i++) {
        if (i > 0)
            (void)fputc(',', out);
        csv_write_value(out, result_cell(result, row, i));
    }
    (void)fputc('\n', out);
}
