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

json_t *vectors_read(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!json)
        fail_msg("%s: %s", path, error.text);
    return json;
}

const json_t *vectors_get(const json_t *object, const char *key)
{
    const json_t *member = json_object_get(object, key);
    if (!member)
        fail_msg("no member '%s'", key);
    return member;
}

char *vectors_hex(const json_t *text, size_t *size)
{
    const char *digits = json_string_value(text);
    *size = json_string_length(text) / 2;
    char *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < *size; i++) {
        const char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return bytes;
}
