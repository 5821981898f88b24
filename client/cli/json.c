#include "client/cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/cli/number.h"
#include "common/core/json_text.h"

void json_write_text(FILE *out, const char *text, size_t size)
{
    (void)fputc('"', out);
    for (size_t i = 0; i < size;) {
        char piece[JSON_PIECE_SIZE];
        i += json_text_piece(piece, text + i, size - i);
        (void)fputs(piece, out);
    }
    (void)fputc('"', out);
}

void json_write_real(FILE *out, double value)
{
    char text[NUMBER_TEXT_SIZE];
    (void)fputs(isfinite(value) ? number_text(text, value) : "null", out);
}

void json_write_value(FILE *out, struct value value)
{
    switch (value.type) {
    case VALUE_INT:
        (void)fprintf(out, "%" PRId64, value.i);
        return;
    case VALUE_REAL:
        json_write_real(out, value.r);
        return;
    case VALUE_TEXT:
        json_write_text(out, value.text.bytes, value.text.size);
        return;
    case VALUE_NULL:
        break;
    }
    (void)fputs("null", out);
}

void json_write_members(FILE *out, const struct result *result, size_t row)
{
    unsigned count = result_column_count(result);
    for (unsigned i = 0; i < count; i++) {
        const char *key = result_column(result, i)->key;
        if (i > 0)
            (void)fputs(", ", out);
        json_write_text(out, key, strlen(key));
        (void)fputs(": ", out);
        json_write_value(out, result_cell(result, row, i));
    }
}

void json_write_row(FILE *out, const struct result *result, size_t row, const char *kind)
{
    (void)fputc('{', out);
    if (kind) {
        (void)fputs("\"kind\": ", out);
        json_write_text(out, kind, strlen(kind));
        if (result_column_count(result) > 0)
            (void)fputs(", ", out);
    }
    json_write_members(out, result, row);
    (void)fputc('}', out);
}
