#include "tests/support/test.h"

#include "common/core/base/text.h"

TEST_CASE(test_utf8)
{
    static const struct {
        const char *text;
        size_t size;
        bool good;
        size_t taken; // by the first character; 0: it is malformed
        uint32_t code;
    } cases[] = {
        {"", 0, true, 0, 0},
        {"abc", 3, true, 1, 'a'},
        {"a\0b", 3, false, 1, 'a'},
        {"\0", 1, false, 1, 0},
        {"\xc3\xa9x", 3, true, 2, 0xe9},
        {"\xc3", 1, false, 0, 0},
        {"\xa9", 1, false, 0, 0},
        {"\xc0\xaf", 2, false, 0, 0},     // overlong
        {"\xe0\x80\xaf", 3, false, 0, 0}, // overlong
        {"\xe2\x82\xac", 3, true, 3, 0x20ac},
        {"\xe2\x82\xac", 2, false, 0, 0},
        {"\xed\xa0\x80", 3, false, 0, 0}, // surrogate
        {"\xed\x9f\xbf", 3, true, 3, 0xd7ff},
        {"\xf0\x9f\x98\x80", 4, true, 4, 0x1f600},
        {"\xf0\x8f\xbf\xbf", 4, false, 0, 0}, // overlong
        {"\xf4\x8f\xbf\xbf", 4, true, 4, 0x10ffff},
        {"\xf4\x90\x80\x80", 4, false, 0, 0}, // above
        {"\xf5\x80\x80\x80", 4, false, 0, 0},
        {"\xff", 1, false, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t code = 0;
        assert_int_equal(text_is_utf8(cases[i].text, cases[i].size), cases[i].good);
        assert_int_equal(text_character(cases[i].text, cases[i].size, &code), cases[i].taken);
        assert_int_equal(code, cases[i].code);
    }
    assert_int_equal(text_character("\xc3\xa9", 2, NULL), 2);
}

// Every character there is, and no other.
TEST_CASE(test_encode)
{
    for (uint32_t code = 0; code <= 0x110001; code++) {
        char bytes[4];
        uint32_t back = 0;
        const size_t size = text_encode(bytes, code);
        const bool none = code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
        assert_int_equal(size == 0, none);
        if (size > 0) {
            assert_int_equal(text_character(bytes, size, &back), size);
            assert_int_equal(back, code);
        }
    }
    char bytes[4];
    assert_int_equal(text_encode(bytes, UINT32_MAX), 0);
}

TEST_CASE(test_cut)
{
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; // 1 + 2 + 3 + 4 bytes
    static const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t size = 0; size < COUNT_OF(ends); size++)
        assert_int_equal(text_cut(text, 10, size), ends[size]);
    assert_int_equal(text_cut("", 0, 0), 0);
    char copy[6];
    assert_int_equal(text_copy(copy, sizeof copy, text), ends[5]);
    assert_int_equal(strlen(copy), ends[5]);
    assert_int_equal(text_copy(copy, sizeof copy, NULL), 0);
    // Malformed text is cut somewhere, and never beyond the size.
    assert_true(text_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 8, 6) <= 6);
}

TEST_CASE(test_escape)
{
    static const struct {
        const char *text;
        size_t size;
        const char *shown;
    } cases[] = {
        {"plain", 5, "plain"},
        {"", 0, ""},
        {"\x1b[31mred", 8, "\\x1B[31mred"},
        {"a\nb\tc", 5, "a\\x0Ab\\x09c"},
        {"a\0b", 3, "a\\x00b"},
        {"\x7f", 1, "\\x7F"},
        {"caf\xc3\xa9", 5, "caf\xc3\xa9"},
        {"\xc2\x9b", 2, "\\xC2\\x9B"}, // C1: another way to begin an escape
        {"\xff\xfe", 2, "\\xFF\\xFE"},
        // What turns the order of a line, or shows nothing at all; and its neighbours.
        {"a\xe2\x80\xae"
         "b",
         5, "a\\u{202E}b"},
        {"\xd8\x9b\xd8\x9c\xd8\x9d", 6, "\xd8\x9b\\u{061C}\xd8\x9d"},
        {"\xe2\x80\x8d\xe2\x80\x8e", 6, "\xe2\x80\x8d\\u{200E}"},
        {"\xe2\x80\x8f\xe2\x80\x90", 6, "\\u{200F}\xe2\x80\x90"},
        {"\xe2\x80\xa9\xe2\x80\xaa", 6, "\xe2\x80\xa9\\u{202A}"},
        {"\xe2\x80\xae\xe2\x80\xaf", 6, "\\u{202E}\xe2\x80\xaf"},
        {"\xe2\x81\xa5\xe2\x81\xa6", 6, "\xe2\x81\xa5\\u{2066}"},
        {"\xe2\x81\xa9\xe2\x81\xaa", 6, "\\u{2069}\xe2\x81\xaa"},
        {"\xef\xbb\xbfmodel\xef\xbb\xbe", 11, "\\u{FEFF}model\xef\xbb\xbe"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char out[64];
        assert_string_equal(text_escape(out, sizeof out, cases[i].text, cases[i].size),
                            cases[i].shown);
    }
    // Cut without breaking an escape or a character.
    char small[5];
    assert_string_equal(text_escape(small, sizeof small, "ab\x1b", 3), "ab");
    assert_string_equal(text_escape(small, sizeof small, "abc\xc3\xa9", 5), "abc");
    assert_string_equal(text_escape(small, sizeof small, "a\xe2\x80\xae", 4), "a");
    char one[1];
    assert_string_equal(text_escape(one, sizeof one, "abc", 3), "");
}

TEST_CASE(test_uuid)
{
    unsigned char uuid[16], back[16];
    for (unsigned i = 0; i < 16; i++)
        uuid[i] = (unsigned char)(i * 17);
    char text[37];
    text_from_uuid(text, uuid);
    assert_string_equal(text, "00112233-4455-6677-8899-aabbccddeeff");
    assert_true(text_to_uuid(back, text));
    assert_memory_equal(uuid, back, 16);
    assert_true(text_to_uuid(back, "00112233-4455-6677-8899-AABBCCDDEEFF"));
    static const char *const wrong[] = {
        "",
        "00112233-4455-6677-8899-aabbccddeef",
        "00112233-4455-6677-8899-aabbccddeeff0",
        "00112233-4455-6677-8899aabbccddeeff00",
        "0011223g-4455-6677-8899-aabbccddeeff",
        "00112233445566778899aabbccddeeff",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(text_to_uuid(back, wrong[i]));
}

TEST_CASE(test_quote)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"", "''"},
        {"stories-15M", "stories-15M"},
        {"~root", "'~root'"},
        {"=ls", "'=ls'"},
        {"a b", "'a b'"},
        {"b\xc3\xbcro", "'b\xc3\xbcro'"},
        {"it's $(x) \\", "'it'\\''s $(x) \\'"},
        {"it's\n\\", "$'it\\'s\\012\\\\'"},
        {"\x1b[31m", "$'\\033[31m'"},
        {"\xe2\x80\xae", "$'\\342\\200\\256'"},
        {"\xff", "$'\\377'"},
    };
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        char out[64];
        assert_string_equal(text_quote(out, sizeof out, cases[i].text), cases[i].quoted);
    }
    char small[8];
    assert_string_equal(text_quote(small, sizeof small, "a b c d e f"), "'a '");
}

TEST_CASE(test_append)
{
    char text[10] = "";
    assert_string_equal(text_append(text, sizeof text, ", ", "%d", 12), "12");
    assert_string_equal(text_append(text, sizeof text, ", ", "%s", "abc"), "12, abc");
    assert_string_equal(text_append(text, sizeof text, ", ", "%s", "d"), "12, abc");
    assert_string_equal(text_append(text, sizeof text, "", "%s", "def"), "12, abc");
    assert_string_equal(text_append(text, sizeof text, "", "%s", "de"), "12, abcde");
    assert_string_equal(text_append(text, sizeof text, ", ", "%s", ""), "12, abcde");
}

TEST_MAIN(test_utf8, test_encode, test_cut, test_escape, test_quote, test_append, test_uuid)
