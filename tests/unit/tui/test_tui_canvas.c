// Characters and canvases: decoding, width, clipping, text.
#include "tests/support/test.h"

#include "client/tui/canvas.h"
#include "common/core/base/glyph.h"
#include "client/tui/segments.h"
#include "common/core/base/text.h"
#include "tests/support/tui_fixture.h"

static struct canvas make(int width, int height, bool ascii)
{
    struct canvas canvas;
    canvas_init(&canvas, ascii);
    assert_int_equal(canvas_resize(&canvas, width, height), STATUS_OK);
    return canvas;
}

static void assert_text(const struct canvas *canvas, const char *expected)
{
    char *text = fixture_text(canvas);
    assert_string_equal(text, expected);
    free(text);
}

TEST_CASE(decodes_characters)
{
    static const struct {
        const char *text;
        uint32_t code;
        int size;
    } cases[] = {
        {"a", 'a', 1},
        {"é", 0xE9, 2},
        {"千", 0x5343, 3},
        {"🚀", 0x1F680, 4},
        {"\x80", '?', 1},             // a continuation on its own
        {"\xC3", '?', 1},             // cut by the end
        {"\xE5\x8D", '?', 1},         // the same, later
        {"\xC3(", '?', 1},            // cut by another character
        {"\xC0\xAF", '?', 1},         // overlong
        {"\xED\xA0\x80", '?', 1},     // a surrogate
        {"\xF4\x90\x80\x80", '?', 1}, // beyond the last
        {"\xFF", '?', 1},
        {"", 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *text = cases[i].text;
        assert_int_equal(glyph_next(&text), cases[i].code);
        assert_int_equal(text - cases[i].text, cases[i].size);
    }
}

TEST_CASE(encodes_what_it_decodes)
{
    for (uint32_t code = 1; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 37) {
        if (code >= 0xD800 && code < 0xE000)
            continue;
        char text[5] = {0};
        const char *at = text;
        const size_t size = text_encode(text, code);
        assert_true(text_is_utf8(text, size));
        assert_int_equal(glyph_next(&at), code);
        assert_int_equal(at - text, size);
    }
}

TEST_CASE(knows_widths)
{
    static const struct {
        uint32_t code;
        int width;
    } cases[] = {
        {'a', 1},    {' ', 1},    {'~', 1},     {0x7F, 0},   {0x1B, 0},    {0xE9, 1},
        {0x301, 0},  {0x202E, 0}, {0x200B, 0},  {0xFEFF, 0}, {0x5343, 2},  {0xAC00, 2},
        {0xFF21, 2}, {0x2588, 1}, {0x1F680, 2}, {0x2500, 1}, {0x20000, 2}, {0x25CF, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(glyph_width(cases[i].code), cases[i].width);
}

TEST_CASE(draws_and_cuts_at_every_edge)
{
    struct canvas canvas = make(6, 3, false);
    struct rect area = {1, 1, 4, 1};
    assert_int_equal(canvas_put(&canvas, area, -2, 0, STYLE_PLAIN, "abcdefgh"), 8);
    canvas_put(&canvas, area, 0, 1, STYLE_PLAIN, "below");
    canvas_put(&canvas, area, 0, -1, STYLE_PLAIN, "above");
    assert_text(&canvas, "\n cdef\n\n");
    canvas_put(&canvas, (struct rect){4, 2, 100, 100}, 0, 0, STYLE_PLAIN, "beyond");
    canvas_put(&canvas, (struct rect){0}, 0, 0, STYLE_PLAIN, "nowhere");
    assert_text(&canvas, "\n cdef\n    be\n");
    canvas_deinit(&canvas);
}

TEST_CASE(wide_characters_are_whole_or_absent)
{
    struct canvas canvas = make(5, 1, false);
    struct rect area = canvas_area(&canvas);
    assert_int_equal(canvas_put(&canvas, area, 0, 0, STYLE_PLAIN, "千問題"), 6);
    assert_text(&canvas, "千問\n"); // the third has one column only
    canvas_put(&canvas, area, 1, 0, STYLE_PLAIN, "x");
    assert_text(&canvas, " x問\n"); // half of the first is overwritten
    canvas_put(&canvas, area, 2, 0, STYLE_PLAIN, "y");
    assert_text(&canvas, " xy\n");
    canvas_put(&canvas, area, -1, 0, STYLE_PLAIN, "千");
    assert_text(&canvas, " xy\n");
    canvas_deinit(&canvas);
}

TEST_CASE(hostile_text_cannot_leave_its_cells)
{
    struct canvas canvas = make(12, 1, false);
    canvas_put(&canvas, canvas_area(&canvas), 0, 0, STYLE_PLAIN,
               "a\x1b[2Jb\n\r\tc\xff\u202e\u0301d");
    assert_text(&canvas, "a[2Jbc?d\n");
    canvas_deinit(&canvas);
}

TEST_CASE(fits_text)
{
    static const struct {
        const char *text;
        int width;
        enum align align;
        const char *expected;
    } cases[] = {
        {"abc", 5, ALIGN_LEFT, "abc\n"},      {"abc", 5, ALIGN_RIGHT, "  abc\n"},
        {"abcde", 5, ALIGN_RIGHT, "abcde\n"}, {"abcdef", 5, ALIGN_RIGHT, "abcd…\n"},
        {"abcdef", 1, ALIGN_LEFT, "…\n"},     {"abcdef", 0, ALIGN_LEFT, "\n"},
        {"千問題", 5, ALIGN_LEFT, "千問…\n"}, {"千問題", 4, ALIGN_LEFT, "千…\n"},
        {"千", 1, ALIGN_LEFT, "…\n"},         {"abc", -3, ALIGN_LEFT, "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct canvas canvas = make(8, 1, false);
        canvas_fit(&canvas, canvas_area(&canvas), 0, 0, cases[i].width, cases[i].align, STYLE_PLAIN,
                   cases[i].text);
        assert_text(&canvas, cases[i].expected);
        canvas_deinit(&canvas);
    }
}

TEST_CASE(ascii_draws_stand_ins)
{
    struct canvas canvas = make(20, 1, true);
    canvas_put(&canvas, canvas_area(&canvas), 0, 0, STYLE_PLAIN, "─═│▁█░●✗·…é千x");
    assert_text(&canvas, "-=|.#.*x-~???x\n");
    canvas_deinit(&canvas);
}

// Whatever is drawn anywhere, cells outside the area keep their content, no wide
// character is left in halves, and the text is UTF-8.
TEST_CASE(never_draws_outside_its_area)
{
    uint64_t seed = 20260329;
    static const char *const texts[] = {"plain", "千問-模型", "a\xffz\x1b[1m", "▁▂▃🚀", "", "x"};
    for (int round = 0; round < 3000; round++) {
        struct canvas canvas =
            make((int)(test_random(&seed) % 12), (int)(test_random(&seed) % 6), round % 2 == 0);
        for (int y = 0; y < canvas.height; y++)
            canvas_line(&canvas, canvas_area(&canvas), 0, y, canvas.width, STYLE_BAD, '#');
        struct rect area = {(int)(test_random(&seed) % 16) - 4, (int)(test_random(&seed) % 10) - 4,
                            (int)(test_random(&seed) % 16) - 2, (int)(test_random(&seed) % 8) - 2};
        const char *text = texts[test_random(&seed) % COUNT_OF(texts)];
        int x = (int)(test_random(&seed) % 16) - 6, y = (int)(test_random(&seed) % 8) - 3;
        int width = (int)(test_random(&seed) % 14) - 2;
        canvas_put(&canvas, area, x, y, STYLE_PLAIN, text);
        canvas_fit(&canvas, area, x, y + 1, width, round % 3 ? ALIGN_LEFT : ALIGN_RIGHT,
                   STYLE_PLAIN, text);
        canvas_line(&canvas, area, x, y + 2, width, STYLE_PLAIN, 0x5343);
        for (int row = 0; row < canvas.height; row++) {
            for (int column = 0; column < canvas.width; column++) {
                const struct cell *cell = canvas_cell(&canvas, column, row);
                if (!rect_contains(area, column, row))
                    assert_int_equal(cell->code, '#');
                if (cell->width == 2)
                    assert_int_equal(canvas_cell(&canvas, column + 1, row)->width, 0);
                if (cell->width == 0)
                    assert_int_equal(canvas_cell(&canvas, column - 1, row)->width, 2);
                if (canvas.ascii)
                    assert_in_range(cell->code, 0x20, 0x7E);
            }
        }
        char *shown = fixture_text(&canvas);
        assert_true(text_is_utf8(shown, strlen(shown)));
        free(shown);
        canvas_deinit(&canvas);
    }
}

TEST_CASE(sizes_are_bounded)
{
    struct canvas canvas = make(-5, 3, false);
    assert_int_equal(canvas.width, 0);
    canvas_put(&canvas, canvas_area(&canvas), 0, 0, STYLE_PLAIN, "nothing");
    assert_int_equal(canvas_resize(&canvas, CANVAS_SIDE_MAX + 1, 1), STATUS_OK);
    assert_int_equal(canvas.width, CANVAS_SIDE_MAX);
    canvas_deinit(&canvas);
}

TEST_CASE(segments_leave_out_the_least)
{
    static const struct {
        int width;
        enum align align;
        const char *expected;
    } cases[] = {
        {30, ALIGN_LEFT, "first · k key · name…\n"},
        {30, ALIGN_RIGHT, "         first · k key · name…\n"},
        {21, ALIGN_LEFT, "first · k key · name…\n"},
        {20, ALIGN_LEFT, "first · name…\n"},
        {12, ALIGN_LEFT, "first\n"},
        {4, ALIGN_LEFT, "fir…\n"},
        {0, ALIGN_LEFT, "\n"},
    };
    struct segments segments = {.separator = " · "};
    segments_add(&segments, 0, STYLE_PLAIN, "%s", "first");
    segments_add_key(&segments, 2, "k", "key");
    segments_add_name(&segments, 1, STYLE_PLAIN, 5, "name that is long");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct canvas canvas = make(30, 1, false);
        int used = segments_draw(&segments, &canvas, canvas_area(&canvas), 0, 0, cases[i].width,
                                 cases[i].align);
        assert_true(used <= cases[i].width);
        assert_text(&canvas, cases[i].expected);
        canvas_deinit(&canvas);
    }
    for (int i = 0; i < 2 * SEGMENTS_MAX; i++)
        segments_add(&segments, 1, STYLE_PLAIN, "more");
    assert_int_equal(segments.count, SEGMENTS_MAX);
}

TEST_MAIN(decodes_characters, encodes_what_it_decodes, knows_widths, draws_and_cuts_at_every_edge,
          wide_characters_are_whole_or_absent, hostile_text_cannot_leave_its_cells, fits_text,
          ascii_draws_stand_ins, never_draws_outside_its_area, sizes_are_bounded,
          segments_leave_out_the_least)
