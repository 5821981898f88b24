// The worker's JSON object.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/worker/json.h"
#include "tests/support/test.h"

static void json_object(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct json json;
    json_begin(&json, out);
    json_uint(&json, "a", UINT64_MAX);
    json_real(&json, "b", 0.1);
    json_real(&json, "c", (double)NAN);
    json_real(&json, "d", -(double)INFINITY);
    json_text(&json, "e", "\"\\\n\x01\u00e9\xff\xc3");
    json_text(&json, "f", NULL);
    json_end(&json);
    (void)fclose(out);
    assert_string_equal(text, "{\"a\": 18446744073709551615, \"b\": 0.10000000000000001, "
                              "\"c\": null, \"d\": null, "
                              "\"e\": \"\\\"\\\\\\n\\u0001\u00e9\\ufffd\\ufffd\", "
                              "\"f\": null}\n");
    free(text);
    out = open_memstream(&text, &size);
    json_begin(&json, out);
    json_end(&json);
    (void)fclose(out);
    assert_string_equal(text, "{}\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
