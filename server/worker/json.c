#include "server/worker/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "server/workload/llm/text_stream.h"

void json_begin(struct json *json, FILE *out)
{
    *json = (struct json){.out = out};
    (void)fputc('{', out);
}

static void start_member(struct json *json, const char *key)
{
    (void)fprintf(json->out, "%s\"%s\": ", json->any ? ", " : "", key);
    json->any = true;
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
    start_member(json, key);
    (void)fprintf(json->out, "%" PRIu64, value);
}

void json_real(struct json *json, const char *key, double value)
{
    start_member(json, key);
    if (isfinite(value))
        (void)fprintf(json->out, "%.17g", value);
    else
        (void)fputs("null", json->out);
}

static void write_characters(FILE *out, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            (void)fprintf(out, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(out, "\\u%04x", c);
        else
            (void)fputc(c, out);
    }
}

void json_text(struct json *json, const char *key, const char *value)
{
    start_member(json, key);
    if (!value) {
        (void)fputs("null", json->out);
        return;
    }
    struct text_stream stream = {0};
    char out[TEXT_STREAM_OUT_SIZE];
    (void)fputc('"', json->out);
    for (const char *at = value; *at; at++) {
        size_t size = text_stream_put(&stream, (unsigned char)*at, out);
        write_characters(json->out, out, size);
    }
    size_t size = text_stream_finish(&stream, out);
    write_characters(json->out, out, size);
    (void)fputc('"', json->out);
}

void json_end(struct json *json)
{
    (void)fputs("}\n", json->out);
}
