#include "server/worker/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/core/json_text.h"

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

void json_text(struct json *json, const char *key, const char *value)
{
    start_member(json, key);
    if (!value) {
        (void)fputs("null", json->out);
        return;
    }
    char piece[JSON_PIECE_SIZE];
    size_t left = strlen(value);
    (void)fputc('"', json->out);
    while (left > 0) {
        const size_t size = json_text_piece(piece, value, left);
        (void)fputs(piece, json->out);
        value += size;
        left -= size;
    }
    (void)fputc('"', json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    start_member(json, key);
    (void)fputs(value ? "true" : "false", json->out);
}

void json_uints(struct json *json, const char *key, const uint64_t *values, size_t count)
{
    start_member(json, key);
    for (size_t i = 0; i < count; i++)
        (void)fprintf(json->out, "%s%" PRIu64, i > 0 ? ", " : "[", values[i]);
    (void)fputs(count > 0 ? "]" : "[]", json->out);
}

void json_begin_list(struct json *json, const char *key)
{
    start_member(json, key);
    (void)fputc('[', json->out);
    json->any = false;
}

void json_begin_item(struct json *json)
{
    (void)fputs(json->any ? ", {" : "{", json->out);
    json->any = false;
}

void json_end_item(struct json *json)
{
    (void)fputc('}', json->out);
    json->any = true;
}

void json_end_list(struct json *json)
{
    (void)fputc(']', json->out);
    json->any = true;
}

void json_end(struct json *json)
{
    (void)fputs("}\n", json->out);
}
