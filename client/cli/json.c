#include "client/cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/cli/number.h"
#include "common/core/text.h"

// Bytes of the well-formed character at `text`, or 0.
static size_t character_size(const char *text, size_t size)
{
    for (size_t n = 1; n <= 4 && n <= size; n++) {
        if (text_is_utf8(text, n))
            return n;
    }
    return 0;
}

static void write_ascii(FILE *out, unsigned char c)
{
    static const char *const named[] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
    };
    if (c < sizeof named / sizeof named[0] && named[c])
        (void)fputs(named[c], out);
    else if (c < 0x20 || c == 0x7f)
        (void)fprintf(out, "\\u%04x", c);
    else
        (void)fputc(c, out);
}

void json_write_text(FILE *out, const char *text, size_t size)
{
    (void)fputc('"', out);
    for (size_t i = 0; i < size;) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x80) {
            write_ascii(out, c);
            i++;
            continue;
        }
        size_t n = character_size(text + i, size - i);
        if (n > 0)
            (void)fwrite(text + i, 1, n, out);
        else
            (void)fputs("\\ufffd", out);
        i += n > 0 ? n : 1;
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
