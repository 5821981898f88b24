#include "tests/support/test.h"

#include <float.h>
#include <math.h>

#include "common/core/base/text.h"
#include "common/core/query/json_writer.h"

struct sink {
    char text[1024];
    size_t size;
};

static void put(void *context, const char *bytes, size_t size)
{
    struct sink *sink = context;
    assert_true(size > 0 && size < sizeof sink->text - sink->size);
    memcpy(sink->text + sink->size, bytes, size);
    sink->size += size;
    sink->text[sink->size] = '\0';
}

TEST_CASE(test_text)
{
    static const struct {
        const char *text;
        size_t size; // 0: to the NUL
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {"plain", 0, "\"plain\""},
        {"say \"hi\" \\ /", 0, "\"say \\\"hi\\\" \\\\ /\""},
        {"\b\f\n\r\t", 0, "\"\\b\\f\\n\\r\\t\""},
        {"\x01\x1f\x7f", 0, "\"\\u0001\\u001f\\u007f\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\x1b[31m", 0, "\"\\u001b[31m\""},
        {"\xc2\x9b", 0, "\"\\u009b\""},     // what begins an escape sequence too
        {"\xe2\x80\xae", 0, "\"\\u202e\""}, // text runs the other way from here on
        {"\xef\xbb\xbf", 0, "\"\\ufeff\""},
        {"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x9a\x80", 0,
         "\"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x9a\x80\""},
        {"\xf4\x8f\xbf\xbf", 0, "\"\xf4\x8f\xbf\xbf\""},
        {"\xff", 0, "\"\\ufffd\""},
        {"a\xc3", 0, "\"a\\ufffd\""},                                  // cut short
        {"\xe2\x82\xac", 2, "\"\\ufffd\\ufffd\""},                     // the same
        {"\xc0\xaf", 0, "\"\\ufffd\\ufffd\""},                         // overlong
        {"\xed\xa0\x80", 0, "\"\\ufffd\\ufffd\\ufffd\""},              // surrogate
        {"\xf5\x80\x80\x80z", 0, "\"\\ufffd\\ufffd\\ufffd\\ufffdz\""}, // above U+10FFFF
        {"\xf4\x90\x80\x80", 0, "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sink sink = {{0}, 0};
        struct json_writer json = {.put = put, .sink = &sink};
        const size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        json_write_value(
            &json, NULL,
            (struct value){.type = VALUE_TEXT, .text = {.bytes = cases[i].text, .size = size}});
        assert_string_equal(sink.text, cases[i].json);
    }
}

TEST_CASE(test_real)
{
    static const struct {
        double value;
        const char *json;
    } cases[] = {
        {0.0, "0"},
        {0.1, "0.1"},
        {1.0 / 3.0, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {-1.5, "-1.5"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "4.94065645841247e-324"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
        {-(double)INFINITY, "null"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sink sink = {{0}, 0};
        struct json_writer json = {.put = put, .sink = &sink};
        json_write_real(&json, NULL, cases[i].value);
        assert_string_equal(sink.text, cases[i].json);
    }
}

// Any double comes back as it was.
TEST_CASE(test_real_round_trip)
{
    uint64_t random = 20260329;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = test_random(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char text[TEXT_NUMBER_SIZE];
        double back = strtod(text_from_real(text, value), NULL);
        assert_memory_equal(&back, &value, sizeof back);
    }
}

TEST_CASE(test_nesting)
{
    struct sink sink = {{0}, 0};
    struct json_writer json = {.put = put, .sink = &sink};
    json_write_begin(&json, NULL);
    json_write_uint(&json, "a", UINT64_MAX);
    json_write_int(&json, "b", INT64_MIN);
    json_write_bool(&json, "c\"", false);
    json_write_begin_list(&json, "d");
    json_write_begin(&json, NULL);
    json_write_end(&json);
    json_write_begin(&json, NULL);
    json_write_text(&json, "e", NULL);
    json_write_number(&json, "f", "1e3");
    json_write_end(&json);
    json_write_begin_list(&json, NULL);
    json_write_end_list(&json);
    json_write_int(&json, NULL, 1);
    json_write_int(&json, NULL, 2);
    json_write_end_list(&json);
    json_write_text(&json, "g", "h");
    json_write_end(&json);
    assert_string_equal(sink.text, "{\"a\": 18446744073709551615, \"b\": -9223372036854775808, "
                                   "\"c\\\"\": false, \"d\": [{}, {\"e\": null, \"f\": 1e3}, [], "
                                   "1, 2], \"g\": \"h\"}");
}

TEST_MAIN(test_text, test_real, test_real_round_trip, test_nesting)
