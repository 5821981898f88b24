#include "common/core/base/text_pattern.h"
#include "tests/support/test.h"

TEST_CASE(test_patterns)
{
    static const struct {
        const char *text, *pattern;
    } cases[] = {
        {"", ""},
        {"out of memory", "out of memory"},
        {"a prompt of 90 tokens does not fit a context of 64",
         "a prompt of # tokens does not fit a context of #"},
        {"request 7f3a failed", "request # failed"},
        {"req_8Hd9sK2: no slot", "req_#: no slot"},
        {"id 123E4567-e89b-12d3-a456-426614174000 is gone", "id # is gone"},
        {"id deadbeef-dead-beef-dead-beefdeadbeef", "id #"},
        {"id deadbeef-dead-beef-dead-beefdeadbeefx", "id deadbeef-dead-beef-dead-beefdeadbeefx"},
        {"10.0.0.1:5571: connection refused", "#: connection refused"},
        {"connect to fe80::1ff:fe23:4567:890a: timed out", "connect to #: timed out"},
        {"[::1]:80 in std::vector", "[#]:# in std::vector"},
        {"at 0x7ffd and 0xabc", "at # and #"},
        {"sha256 e3b0c44298fc1c149afbf4c8996fb924", "sha# #"},
        {"took 1.5ms of 1,024 ms at 2026-11-23T10:00:00Z", "took #ms of # ms at #Z"},
        {"99b and 100b, 33fa and 3f9a", "#b and #b, # and #"},
        {"cafe and decade", "cafe and decade"},
        {"#17 of cuda:1", "# of cuda:#"},
        {"\xd0\xb7\xd0\xb0\xd0\xbf\xd1\x80\xd0\xbe\xd1\x81 5", // "запрос 5"
         "\xd0\xb7\xd0\xb0\xd0\xbf\xd1\x80\xd0\xbe\xd1\x81 #"},
        {"1", "#"},
        {"-1 .5 5.", "-# .# #."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const size_t size = strlen(cases[i].text);
        char *text = malloc(size + 1), *out = malloc(size + 1); // for a sanitizer
        assert_true(text && out);
        memcpy(text, cases[i].text, size);
        const size_t used = text_pattern(out, text, size);
        assert_int_equal(used, strlen(out));
        if (strcmp(out, cases[i].pattern) != 0)
            fail_msg("\"%s\": \"%s\", not \"%s\"", cases[i].text, out, cases[i].pattern);
        free(text);
        free(out);
    }
}

// Any bytes: never longer than the text, and no digit is left.
TEST_CASE(test_any_bytes)
{
    static const char bytes[] = "09afAFxgZ.,:-#_ \xc3\xa4/[";
    uint64_t random = 1;
    for (unsigned round = 0; round < 20000; round++) {
        char text[64], out[65];
        const size_t size = round % (sizeof text + 1);
        for (size_t i = 0; i < size; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[i] = bytes[(random >> 33) % (sizeof bytes - 1)];
        }
        const size_t used = text_pattern(out, text, size);
        assert_true(used <= size);
        for (size_t i = 0; i < used; i++)
            assert_false(out[i] >= '0' && out[i] <= '9');
    }
}

TEST_MAIN(test_patterns, test_any_bytes)
