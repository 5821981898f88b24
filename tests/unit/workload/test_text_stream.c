// Bytes become whole characters, malformed ones U+FFFD.

#include "common/core/base/text.h"
#include "server/workload/llm/text_stream.h"
#include "tests/support/test.h"

#define BAD "\uFFFD"

static size_t run(struct text_stream *stream, const char *in, size_t size, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += text_stream_put(stream, in[i], out + n);
    n += text_stream_finish(stream, out + n);
    out[n] = '\0';
    return n;
}

TEST_CASE(texts)
{
    static const struct {
        const char *in, *out;
        bool terminal;
    } cases[] = {
        {"", "", false},
        {"plain\n", "plain\n", false},
        {"\u00e9\u20ac\U0001F600", "\u00e9\u20ac\U0001F600", false},
        {"\xc3", BAD, false},
        {"\xc3x", BAD "x", false},
        {"\x80", BAD, false},
        {"\xc0\xaf", BAD BAD, false},                 // overlong
        {"\xe0\x80\x80", BAD BAD BAD, false},         // overlong
        {"\xed\xa0\x80", BAD BAD BAD, false},         // a surrogate
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD, false}, // beyond U+10FFFF
        {"\xf0\x9f\x98", BAD, false},                 // cut short
        {"\xf0\x9f\x98\xc3\xa9", BAD "\u00e9", false},
        {"\xff\xfe", BAD BAD, false},
        {"a\x1b[2Jb", "a\x1b[2Jb", false},
        {"a\x1b[2Jb\n\tc\r", "a" BAD "[2Jb\n\tc" BAD, true},
        {"\x7f\xc2\x9b\xc2\xa0", BAD BAD "\xc2\xa0", true}, // DEL, C1, not a control
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text_stream stream = {.terminal = cases[i].terminal};
        char out[128];
        run(&stream, cases[i].in, strlen(cases[i].in), out);
        assert_string_equal(out, cases[i].out);
    }
}

// Nothing is written before a character is complete.
TEST_CASE(waits)
{
    struct text_stream stream = {0};
    char out[TEXT_STREAM_OUT_SIZE];
    assert_int_equal(text_stream_put(&stream, '\xf0', out), 0);
    assert_int_equal(text_stream_put(&stream, '\x9f', out), 0);
    assert_int_equal(text_stream_put(&stream, '\x98', out), 0);
    assert_int_equal(text_stream_put(&stream, '\x80', out), 4);
    assert_memory_equal(out, "\U0001F600", 4);
    assert_int_equal(text_stream_finish(&stream, out), 0);
}

// Whatever comes in, UTF-8 comes out, and no call writes more than it may.
TEST_CASE(always_utf8)
{
    uint64_t seed = 5;
    for (int round = 0; round < 3000; round++) {
        struct text_stream stream = {.terminal = round % 2};
        char out[512];
        size_t n = 0;
        for (int i = 0; i < 60; i++) {
            uint64_t r = test_random(&seed);
            // Mostly bytes that begin or go on with a character.
            const char byte = (char)(r % 3 ? 0x80 | r >> 8 : 1 + (r >> 8) % 127);
            size_t size = text_stream_put(&stream, byte, out + n);
            assert_in_range(size, 0, TEXT_STREAM_OUT_SIZE);
            n += size;
        }
        n += text_stream_finish(&stream, out + n);
        assert_true(text_is_utf8(out, n));
    }
}

TEST_MAIN(texts, waits, always_utf8)
