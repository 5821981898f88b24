#include "common/core/query/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

// The escapes that have a letter of their own; NULL where there is none.
static const char *short_escape(uint32_t code)
{
    static const char *const escapes[] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
    };
    return code < sizeof escapes / sizeof *escapes ? escapes[code] : NULL;
}

enum { PIECE_SIZE = 8 };

static void put(const struct json_writer *json, const char *text)
{
    json->put(json->sink, text, strlen(text));
}

// Writes the first character of `text` inside quotes; returns its bytes.  Malformed bytes are
// U+FFFD, one each.
static size_t put_character(const struct json_writer *json, const char *text, size_t size)
{
    char piece[PIECE_SIZE];
    uint32_t code = 0;
    const size_t length = text_character(text, size, &code);
    const char *escape = length > 0 ? short_escape(code) : "\\ufffd";
    if (!escape && text_is_unsafe(code)) { // none is above U+FFFF
        (void)snprintf(piece, sizeof piece, "\\u%04x", (unsigned)code & 0xffff);
        escape = piece;
    }
    if (escape)
        put(json, escape);
    else
        json->put(json->sink, text, length);
    return length > 0 ? length : 1;
}

static void put_quoted(const struct json_writer *json, const char *text, size_t size)
{
    put(json, "\"");
    while (size > 0) {
        size_t plain = 0;
        while (plain < size && text[plain] >= ' ' && text[plain] < 0x7f && text[plain] != '"' &&
               text[plain] != '\\')
            plain++;
        if (plain > 0)
            json->put(json->sink, text, plain);
        else
            plain = put_character(json, text, size);
        text += plain;
        size -= plain;
    }
    put(json, "\"");
}

static void begin_value(struct json_writer *json, const char *key)
{
    if (json->comma)
        put(json, ", ");
    json->comma = true;
    if (!key)
        return;
    put_quoted(json, key, strlen(key));
    put(json, ": ");
}

static void begin_nested(struct json_writer *json, const char *key, const char *bracket)
{
    begin_value(json, key);
    put(json, bracket);
    json->comma = false;
}

static void end_nested(struct json_writer *json, const char *bracket)
{
    put(json, bracket);
    json->comma = true;
}

void json_write_begin(struct json_writer *json, const char *key)
{
    begin_nested(json, key, "{");
}

void json_write_end(struct json_writer *json)
{
    end_nested(json, "}");
}

void json_write_begin_list(struct json_writer *json, const char *key)
{
    begin_nested(json, key, "[");
}

void json_write_end_list(struct json_writer *json)
{
    end_nested(json, "]");
}

void json_write_number(struct json_writer *json, const char *key, const char *text)
{
    begin_value(json, key);
    put(json, text);
}

void json_write_int(struct json_writer *json, const char *key, int64_t value)
{
    char text[TEXT_NUMBER_SIZE];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    json_write_number(json, key, text);
}

void json_write_uint(struct json_writer *json, const char *key, uint64_t value)
{
    char text[TEXT_NUMBER_SIZE];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    json_write_number(json, key, text);
}

void json_write_bool(struct json_writer *json, const char *key, bool value)
{
    json_write_number(json, key, value ? "true" : "false");
}

void json_write_real(struct json_writer *json, const char *key, double value)
{
    char text[TEXT_NUMBER_SIZE];
    json_write_number(json, key, isfinite(value) ? text_from_real(text, value) : "null");
}

void json_write_text(struct json_writer *json, const char *key, const char *value)
{
    begin_value(json, key);
    if (value)
        put_quoted(json, value, strlen(value));
    else
        put(json, "null");
}

void json_write_value(struct json_writer *json, const char *key, struct value value)
{
    switch (value.type) {
    case VALUE_INT:
        json_write_int(json, key, value.i);
        return;
    case VALUE_REAL:
        json_write_real(json, key, value.r);
        return;
    case VALUE_TEXT:
        begin_value(json, key);
        put_quoted(json, value.text.bytes, value.text.size);
        return;
    case VALUE_NULL:
        break;
    }
    json_write_text(json, key, NULL);
}

void json_write_members(struct json_writer *json, const struct result *result, size_t row)
{
    for (unsigned i = 0; i < result_column_count(result); i++)
        json_write_value(json, result_column(result, i)->key, result_cell(result, row, i));
}

void json_write_row(struct json_writer *json, const struct result *result, size_t row,
                    const char *kind)
{
    json_write_begin(json, NULL);
    if (kind)
        json_write_text(json, "kind", kind);
    json_write_members(json, result, row);
    json_write_end(json);
}
