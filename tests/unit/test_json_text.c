#include "tests/support/test.h"

#include <string.h>

#include "common/core/json_text.h"

static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size, taken;
        const char *piece;
    } cases[] = {
        {"ab", 2, 1, "a"},
        {"\"", 1, 1, "\\\""},
        {"\\", 1, 1, "\\\\"},
        {"/", 1, 1, "/"},
        {"\b", 1, 1, "\\b"},
        {"\f", 1, 1, "\\f"},
        {"\n", 1, 1, "\\n"},
        {"\r", 1, 1, "\\r"},
        {"\t", 1, 1, "\\t"},
        {"\0", 1, 1, "\\u0000"},
        {"\x1b", 1, 1, "\\u001b"},
        {"\x7f", 1, 1, "\\u007f"},
        {"\xc2\x9b", 2, 2, "\\u009b"},     // what begins an escape sequence too
        {"\xe2\x80\xae", 3, 3, "\\u202e"}, // text runs the other way from here on
        {"\xef\xbb\xbf", 3, 3, "\\ufeff"},
        {"\xc3\xa9x", 3, 2, "\xc3\xa9"},
        {"\xe2\x82\xac", 3, 3, "\xe2\x82\xac"},
        {"\xf4\x8f\xbf\xbf", 4, 4, "\xf4\x8f\xbf\xbf"},
        {"\xe2\x82\xac", 2, 1, "\\ufffd"},     // ends early
        {"\xed\xa0\x80", 3, 1, "\\ufffd"},     // surrogate
        {"\xf4\x90\x80\x80", 4, 1, "\\ufffd"}, // beyond U+10FFFF
        {"\xff", 1, 1, "\\ufffd"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char piece[JSON_PIECE_SIZE];
        assert_int_equal(json_text_piece(piece, cases[i].text, cases[i].size), cases[i].taken);
        assert_string_equal(piece, cases[i].piece);
    }
}

// Every byte alone gives a piece that fits.
static void test_every_byte(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        const char text = (char)byte;
        char piece[JSON_PIECE_SIZE + 1];
        memset(piece, '#', sizeof piece);
        assert_int_equal(json_text_piece(piece, &text, 1), 1);
        assert_true(memchr(piece, '\0', JSON_PIECE_SIZE) != NULL && piece[0] != '\0');
        assert_int_equal(piece[JSON_PIECE_SIZE], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
