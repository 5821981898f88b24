#include "tests/unit/workload/vectors.h"

#include "tests/support/test.h"

const char *vectors_path(const char *name)
{
    static char path[4096];
    const char *folder = getenv("INFERSTAT_TEST_MODELS");
    if (!folder || !*folder)
        return NULL;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

unsigned char *vectors_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long end = ftell(file);
    assert_true(end >= 0);
    rewind(file);
    unsigned char *data = malloc((size_t)end + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)end, file), end);
    data[end] = '\0';
    (void)fclose(file);
    *size = (size_t)end;
    return data;
}

static struct json *parse(const char **at);

static void skip_space(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static size_t put_utf8(char *out, unsigned int code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

static unsigned int parse_hex4(const char **at)
{
    char digits[5] = {0};
    memcpy(digits, *at, 4);
    *at += 4;
    return (unsigned int)strtoul(digits, NULL, 16);
}

static size_t parse_escape(const char **at, char *out)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    char c = *(*at)++;
    if (c != 'u') {
        const char *name = strchr(names, c);
        assert_non_null(name);
        *out = values[name - names];
        return 1;
    }
    unsigned int code = parse_hex4(at);
    if (code >= 0xd800 && code < 0xdc00) {
        *at += 2; // "\u" of the second half
        code = 0x10000 + ((code & 0x3ff) << 10) + (parse_hex4(at) & 0x3ff);
    }
    return put_utf8(out, code);
}

static char *parse_text(const char **at, size_t *size)
{
    (*at)++;
    char *text = malloc(strlen(*at) + 1);
    assert_non_null(text);
    size_t n = 0;
    while (**at != '"') {
        if (**at == '\\') {
            (*at)++;
            n += parse_escape(at, text + n);
        } else {
            text[n++] = *(*at)++;
        }
    }
    (*at)++;
    text[n] = '\0';
    *size = n;
    return realloc(text, n + 1);
}

static void parse_members(const char **at, struct json *parent, char end)
{
    struct json **link = &parent->child;
    (*at)++;
    skip_space(at);
    while (**at != end) {
        char *key = NULL;
        if (end == '}') {
            size_t size;
            key = parse_text(at, &size);
            skip_space(at);
            assert_int_equal(*(*at)++, ':');
        }
        *link = parse(at);
        (*link)->key = key;
        link = &(*link)->next;
        skip_space(at);
        if (**at == ',')
            (*at)++;
        skip_space(at);
    }
    (*at)++;
}

static struct json *parse(const char **at)
{
    struct json *json = calloc(1, sizeof *json);
    assert_non_null(json);
    skip_space(at);
    if (**at == '{') {
        json->type = JSON_OBJECT;
        parse_members(at, json, '}');
    } else if (**at == '[') {
        json->type = JSON_ARRAY;
        parse_members(at, json, ']');
    } else if (**at == '"') {
        json->type = JSON_TEXT;
        json->text = parse_text(at, &json->size);
    } else if (strncmp(*at, "null", 4) == 0) {
        *at += 4;
    } else if (strncmp(*at, "true", 4) == 0 || strncmp(*at, "false", 5) == 0) {
        json->type = JSON_BOOL;
        json->number = **at == 't';
        *at += **at == 't' ? 4 : 5;
    } else {
        char *end;
        json->type = JSON_NUMBER;
        json->number = strtod(*at, &end);
        assert_true(end > *at);
        *at = end;
    }
    return json;
}

struct json *vectors_read(const char *path)
{
    size_t size;
    char *text = (char *)vectors_file(path, &size);
    const char *at = text;
    struct json *json = parse(&at);
    free(text);
    return json;
}

void vectors_free(struct json *json)
{
    while (json) {
        struct json *next = json->next;
        vectors_free(json->child);
        free(json->key);
        free(json->text);
        free(json);
        json = next;
    }
}

const struct json *vectors_get(const struct json *object, const char *key)
{
    for (const struct json *member = object->child; member; member = member->next)
        if (strcmp(member->key, key) == 0)
            return member;
    fail_msg("no member '%s'", key);
    return NULL;
}

unsigned int *vectors_ids(const struct json *array, size_t *count)
{
    size_t n = 0;
    for (const struct json *number = array->child; number; number = number->next)
        n++;
    unsigned int *ids = calloc(n + 1, sizeof *ids);
    assert_non_null(ids);
    *count = 0;
    for (const struct json *number = array->child; number; number = number->next)
        ids[(*count)++] = (unsigned int)number->number;
    return ids;
}

char *vectors_hex(const struct json *text, size_t *size)
{
    *size = text->size / 2;
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < *size; i++) {
        char digits[3] = {text->text[2 * i], text->text[2 * i + 1], '\0'};
        bytes[i] = (char)strtoul(digits, NULL, 16);
    }
    return bytes;
}
