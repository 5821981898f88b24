// Tables of results on a canvas.
#include "tests/support/test.h"

#include "client/tui/grid.h"
#include "client/tui/grid_rows.h"
#include "tests/support/tui_fixture.h"

static const struct grid_column columns[] = {
    {"host", "host", GRID_UNIT, true, 4, 12, 0}, {"t/s", "speed", GRID_BARE, false, 6, 0, 0},
    {"took", "took", GRID_UNIT, false, 7, 0, 1}, {"end", "end", GRID_OUTCOME, true, 6, 6, 2},
    {"lost", "lost", GRID_LOSS, false, 4, 0, 3}, {"cover", "cover", GRID_WHOLE, false, 7, 0, 3},
    {"ok", "ok", GRID_VERDICT, false, 3, 0, 3},  {"at", "at", GRID_CLOCK, true, 8, 8, 6},
};
static const struct grid grid = {.columns = columns, .count = COUNT_OF(columns)};

static const char rows[] = "host|speed:tokens/s|took:ns|end|lost|cover:ratio|ok|at:unix_ns\n"
                           "beta|45.5|1500000|open|0|1.0|-|1774785599000000000\n"
                           "alpha-is-long|100.25|-|killed|12|0.5|0|1774785598000000000\n"
                           "gamma|-|2500000000|closed|0|1.0|1|1774485597000000000\n";

static char *drawn_grid(const struct grid *shown, const struct result *result,
                        struct grid_state state, int width, int height)
{
    struct canvas canvas;
    canvas_init(&canvas, false);
    assert_int_equal(canvas_resize(&canvas, width + 1, height), STATUS_OK); // and the cursor's
    grid_draw(shown, &state, result, FIXTURE_WALL_NS, false, &canvas, canvas_area(&canvas));
    char *text = fixture_text(&canvas), *to = text;
    bool first = true;
    for (const char *from = text; *from; from++) {
        if (!first || *from == '\n')
            *to++ = *from;
        first = *from == '\n';
    }
    *to = '\0';
    canvas_deinit(&canvas);
    return text;
}

static char *drawn(const struct result *result, struct grid_state state, int width, int height)
{
    return drawn_grid(&grid, result, state, width, height);
}

static const struct grid_choice of_alpha = {.only = "IS-LONG"};

TEST_CASE(draws)
{
    static const struct {
        struct grid_state state;
        int width, height;
        const char *expected;
    } cases[] = {
        {{.sort = GRID_UNSORTED},
         60,
         5,
         "host            t/s    took end    lost   cover  ok at\n"
         "beta          45.50   1.5ms open      0 100.0 %   - 11:59:59\n"
         "alpha-is-lo… 100.25       - killed   12  50.0 %  NO 11:59:58\n"
         "gamma             -    2.5s closed    0 100.0 % yes 26-03-26\n\n"},
        // The clock goes before the host is cut, then hosts are cut.
        {{.sort = GRID_UNSORTED},
         52,
         2,
         "host            t/s    took end    lost   cover  ok\n"
         "beta          45.50   1.5ms open      0 100.0 %   -\n"},
        {{.sort = GRID_UNSORTED},
         46,
         3,
         "host       t/s    took end    lost   cover  ok\n"
         "beta     45.50   1.5ms open      0 100.0 %   -\n"
         "alpha-… 100.25       - killed   12  50.0 %  NO\n"},
        {{.sort = GRID_UNSORTED},
         20,
         2,
         "host     t/s    took\n"
         "beta   45.50   1.5ms\n"},
        {{.sort = GRID_UNSORTED},
         5,
         2,
         "host\n"
         "beta\n"},
        // Texts rise, numbers fall, what is absent comes last either way.
        {{.sort = 0},
         20,
         4,
         "host▲    t/s    took\n"
         "alph… 100.25       -\n"
         "beta   45.50   1.5ms\n"
         "gamma      -    2.5s\n"},
        {{.sort = 1},
         20,
         4,
         "host    t/s▼    took\n"
         "alph… 100.25       -\n"
         "beta   45.50   1.5ms\n"
         "gamma      -    2.5s\n"},
        {{.sort = 1, .reversed = true},
         20,
         4,
         "host    t/s▲    took\n"
         "beta   45.50   1.5ms\n"
         "alph… 100.25       -\n"
         "gamma      -    2.5s\n"},
        {{.sort = GRID_UNSORTED, .reversed = true, .top = 1},
         20,
         4,
         "host     t/s    took\n"
         "alph… 100.25       -\n"
         "beta   45.50   1.5ms\n\n"},
        // Several columns: what is equal in the first is sorted by the second.
        {{.sort = 2, .before = {{4, true}}, .before_count = 1},
         30,
         4,
         "host        t/s  took▼2 lost▲1\n"
         "gamma         -    2.5s      0\n"
         "beta      45.50   1.5ms      0\n"
         "alpha-i… 100.25       -     12\n"},
        // What the user hides is hidden, what the user wants goes after the others.
        {{.sort = GRID_UNSORTED, .hidden = 1u << 1, .pinned = 1u << 7},
         26,
         2,
         "host         took at\n"
         "beta        1.5ms 11:59:59\n"},
        {{.sort = GRID_UNSORTED, .choice = &of_alpha},
         20,
         3,
         "host     t/s    took\n"
         "alph… 100.25       -\n\n"},
        // The column sorted by stays, whatever its rank.
        {{.sort = 7},
         24,
         2,
         "host        t/s at▼\n"
         "beta      45.50 11:59:59\n"},
        {{.sort = GRID_UNSORTED, .top = 2},
         20,
         3,
         "host     t/s    took\n"
         "gamma      -    2.5s\n\n"},
        {{.sort = GRID_UNSORTED, .top = 99}, 20, 2, "host     t/s    took\n\n"},
    };
    struct result *result = fixture_result(rows);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *text = drawn(result, cases[i].state, cases[i].width, cases[i].height);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
    result_free(result);
}

TEST_CASE(takes_answers_that_lack_everything)
{
    char *text = drawn(NULL, (struct grid_state){.sort = 1}, 20, 3);
    assert_string_equal(text, "host   t/s▼    took\n\n\n");
    free(text);
    struct result *result = fixture_result("other|host\nx|1\n-|-\n");
    text = drawn(result, (struct grid_state){.sort = 1}, 20, 3);
    assert_string_equal(text, "host   t/s▼    took\n"
                              "1         -       -\n"
                              "-         -       -\n");
    free(text);
    result_free(result);
}

TEST_CASE(large_numbers_do_without_their_fraction)
{
    struct result *result = fixture_result("host|speed:tokens/s\n"
                                           "a|999.99\nb|1000.5\nc|47419.98\nd|-12345.6\n"
                                           "e|999.999\nf|99999.94\ng|0.00012\nh|0\n");
    char *text = drawn(result, (struct grid_state){.sort = GRID_UNSORTED}, 12, 9);
    assert_string_equal(text, "host    t/s\n"
                              "a    999.99\n"
                              "b    1000.5\n"
                              "c     47420\n"
                              "d    -12346\n"
                              "e    1000.0\n"
                              "f    100000\n"
                              "g     <0.01\n"
                              "h      0.00\n");
    free(text);
    result_free(result);
}

// A column that only some models have is left out where none has it, but for the one sorted by.
TEST_CASE(columns_if_any)
{
    static const struct grid_column some[] = {{"host", "host", GRID_UNIT, true, 4, 12, 0},
                                              {"items/s", "rate", GRID_IF_ANY, false, 8, 0, 0},
                                              {"took", "took", GRID_UNIT, false, 4, 0, 0}};
    static const struct grid of_some = {.columns = some, .count = COUNT_OF(some)};
    static const struct {
        const char *rows;
        int sort;
        const char *text;
    } cases[] = {
        {"host|rate:items/s|took:ns\na|-|5\n", GRID_UNSORTED, "host took\na     5ns\n"},
        {"host|took:ns\na|5\n", GRID_UNSORTED, "host took\na     5ns\n"},
        {"host|rate:items/s|took:ns\na|-|5\n", 1, "host items/s▼ took\na           -  5ns\n"},
        {"host|rate:items/s|took:ns\na|-|5\nb|31250.5|6\n", GRID_UNSORTED,
         "host  items/s took\na           -  5ns\nb    31250.50  6ns\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct result *result = fixture_result(cases[i].rows);
        char *text = drawn_grid(&of_some, result, (struct grid_state){.sort = cases[i].sort}, 30,
                                (int)result_row_count(result) + 1);
        assert_string_equal(text, cases[i].text);
        free(text);
        result_free(result);
    }
}

// A column is as wide as its largest number, at the cost of others; what has no
// room at all is left to be guessed, never shown in part.
TEST_CASE(no_number_is_cut)
{
    struct result *result = fixture_result("host|speed:tokens/s|took:ns|lost\n"
                                           "a|99999999.9|3600000000000000|0\nb|1.5|1|123456\n");
    static const struct {
        int width;
        const char *expected;
    } cases[] = {
        {40, "host       t/s      took   lost\n"
             "a    100000000 1000h 00m      0\n"
             "b         1.50       1ns 123456\n"},
        {26, "host       t/s      took\n"
             "a    100000000 1000h 00m\n"
             "b         1.50       1ns\n"},
        {20, "host       t/s\n"
             "a    100000000\n"
             "b         1.50\n"},
        {10, "host   t/s\n"
             "a        …\n"
             "b     1.50\n"},
    };
    static const struct grid_column some[] = {
        {"host", "host", GRID_UNIT, true, 4, 12, 0},
        {"t/s", "speed", GRID_BARE, false, 6, 0, 0},
        {"took", "took", GRID_UNIT, false, 7, 0, 1},
        {"lost", "lost", GRID_LOSS, false, 4, 0, 3},
    };
    static const struct grid four = {.columns = some, .count = COUNT_OF(some)};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct grid_state unsorted = {.sort = GRID_UNSORTED};
        char *text = drawn_grid(&four, result, unsorted, cases[i].width, 3);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
    result_free(result);
}

TEST_CASE(says_by_words_and_style_what_is_bad)
{
    struct result *result = fixture_result(rows);
    struct canvas canvas;
    canvas_init(&canvas, false);
    assert_int_equal(canvas_resize(&canvas, 61, 4), STATUS_OK);
    struct grid_state unsorted = {.sort = GRID_UNSORTED};
    grid_draw(&grid, &unsorted, result, FIXTURE_WALL_NS, false, &canvas, canvas_area(&canvas));
    static const struct {
        int x, y;
        enum style style;
    } cases[] = {
        {29, 1, STYLE_PLAIN}, {29, 2, STYLE_BAD},   {38, 1, STYLE_PLAIN},
        {38, 2, STYLE_BAD},   {47, 1, STYLE_PLAIN}, {47, 2, STYLE_WARNING},
        {51, 2, STYLE_BAD},   {51, 3, STYLE_GOOD},  {51, 1, STYLE_DIM},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(canvas_cell(&canvas, cases[i].x, cases[i].y)->style, cases[i].style);
    canvas_deinit(&canvas);
    result_free(result);
}

static bool is_half(const struct result *result, size_t row, const struct grid_column *column)
{
    return strcmp(column->key, "cover") == 0 && result_number(result, row, "cover", 1) <= 0.5;
}

// The mark has its own place: what stands before it does not move, no number is cut.
TEST_CASE(marks_what_deserves_a_look)
{
    static const struct grid_column some[] = {
        {"host", "host", GRID_UNIT, true, 4, 5, 0},
        {"cover", "cover", GRID_UNIT, false, 5, 0, 0},
        {"lost", "lost", GRID_LOSS, false, 4, 0, 1},
    };
    static const struct grid judged = {
        .columns = some, .count = COUNT_OF(some), .deserves_look = is_half};
    struct result *result = fixture_result("host|cover:ratio|lost\na|0.5|7\nb|0.51|0\nc|-|0\n");
    struct canvas canvas;
    canvas_init(&canvas, false);
    assert_int_equal(canvas_resize(&canvas, 21, 4), STATUS_OK);
    struct grid_state unsorted = {.sort = GRID_UNSORTED};
    grid_draw(&judged, &unsorted, result, FIXTURE_WALL_NS, false, &canvas, canvas_area(&canvas));
    char *text = fixture_text(&canvas);
    assert_string_equal(text, " host   cover lost\n"
                              " a    !50.0 %    7\n"
                              " b     51.0 %    0\n"
                              " c          -    0\n");
    free(text);
    assert_int_equal(canvas_cell(&canvas, 7, 1)->style, STYLE_WARNING);
    assert_int_equal(canvas_cell(&canvas, 17, 1)->style, STYLE_BAD);
    assert_int_equal(canvas_cell(&canvas, 7, 2)->style, STYLE_PLAIN);
    assert_int_equal(canvas_cell(&canvas, 12, 3)->style, STYLE_DIM);
    canvas_deinit(&canvas);
    result_free(result);
}

TEST_CASE(finds_the_column_under_the_mouse)
{
    struct result *result = fixture_result(rows);
    struct grid_state unsorted = {.sort = GRID_UNSORTED};
    struct rect area = {0, 0, 61, 4};
    static const struct {
        int x, column;
    } cases[] = {{1, 0},  {12, 0}, {13, GRID_UNSORTED}, {14, 1},           {22, 2},
                 {53, 7}, {60, 7}, {61, GRID_UNSORTED}, {0, GRID_UNSORTED}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(grid_column_at(&grid, &unsorted, result, area, cases[i].x),
                         cases[i].column);
    result_free(result);
}

TEST_CASE(temperatures_have_the_unit_that_is_wanted)
{
    static const struct grid_column celsius[] = {
        {"host", "host", GRID_UNIT, true, 4, 12, 0},
        {"temp", "temp", GRID_UNIT, false, 6, 0, 0},
    };
    static const struct grid warm = {.columns = celsius, .count = COUNT_OF(celsius)};
    struct result *result = fixture_result("host|temp:celsius\na|100\nb|-40\nc|-\n");
    const struct grid_choice fahrenheit = {.fahrenheit = true};
    char *text =
             drawn_grid(&warm, result,
                        (struct grid_state){.sort = GRID_UNSORTED, .choice = &fahrenheit}, 20, 4),
         value[GRID_CELL_SIZE];
    assert_string_equal(text, "host   temp\na     212 F\nb     -40 F\nc         -\n");
    grid_value_text(value, NULL, result, 0, 1, 0);
    assert_string_equal(value, "100 C");
    free(text);
    result_free(result);
}

int main(void)
{
    (void)setenv("TZ", "UTC", 1);
    return TEST_RUN(draws, takes_answers_that_lack_everything,
                    large_numbers_do_without_their_fraction, columns_if_any, no_number_is_cut,
                    says_by_words_and_style_what_is_bad, marks_what_deserves_a_look,
                    temperatures_have_the_unit_that_is_wanted, finds_the_column_under_the_mouse);
}
