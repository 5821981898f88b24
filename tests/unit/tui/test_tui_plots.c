// Sparklines, bars and waterfalls as text.
#include "tests/support/test.h"

#include <math.h>

#include "client/tui/plots.h"
#include "tests/support/tui_fixture.h"

static struct canvas make(int width, int height, bool ascii)
{
    struct canvas canvas;
    canvas_init(&canvas, ascii);
    assert_int_equal(canvas_resize(&canvas, width, height), STATUS_OK);
    return canvas;
}

static void finish(struct canvas *canvas, const char *expected)
{
    char *text = fixture_text(canvas);
    assert_string_equal(text, expected);
    free(text);
    canvas_deinit(canvas);
}

TEST_CASE(sparklines)
{
    static const struct {
        int width, height;
        bool ascii;
        double top;
        double values[10];
        size_t count;
        const char *expected;
    } cases[] = {
        {8, 1, false, 8, {1, 2, 3, 4, 5, 6, 7, 8}, 8, "▁▂▃▄▅▆▇█\n"},
        {8, 1, true, 8, {1, 2, 3, 4, 5, 6, 7, 8}, 8, ".:-=+*%#\n"},
        {3, 1, false, 8, {1, 2, 3, 4}, 4, "▂▃▄\n"},       // the newest stay
        {5, 1, false, 8, {4, 8}, 2, "   ▄█\n"},           // at the right edge
        {4, 1, false, 8, {8, NAN, 0, 0.01}, 4, "█  ▁\n"}, // absent, nothing, a little
        {3, 1, false, 8, {9, INFINITY, -1}, 3, "█\n"},
        {3, 2, false, 16, {4, 8, 12}, 3, "  ▄\n▄██\n"},
        {3, 1, false, 0, {1, 2, 3}, 3, "\n"},
        {3, 1, false, NAN, {1, 2, 3}, 3, "\n"},
        {3, 1, false, 8, {0}, 0, "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct canvas canvas = make(cases[i].width, cases[i].height, cases[i].ascii);
        plot_sparkline(&canvas, canvas_area(&canvas), cases[i].values, cases[i].count,
                       cases[i].top);
        finish(&canvas, cases[i].expected);
    }
}

TEST_CASE(bars)
{
    static const struct {
        double start, end;
        const char *expected;
    } cases[] = {
        {0, 1, "████████\n"},   {0, 0.5, "████\n"},    {0.5, 1, "    ████\n"}, {0, 0, "▏\n"},
        {1, 1, "       ▐\n"},   {0.5, 0.5, "    ▏\n"}, {0, 1.0 / 64, "▏\n"},   {0, 3.0 / 64, "▍\n"},
        {0.0625, 0.25, "▐█\n"}, {-5, 9, "████████\n"}, {0.25, 0.1, "  ▏\n"},   {NAN, 1, "\n"},
        {0, INFINITY, "\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct canvas canvas = make(10, 1, false);
        plot_bar(&canvas, canvas_area(&canvas), 0, 0, 8, STYLE_BAR, cases[i].start, cases[i].end);
        finish(&canvas, cases[i].expected);
    }
}

static const struct plot_stage stages[] = {
    {"read_header", 0, 20e6, 0},
    {"tokenizer_init", 20e6, 30e6, 0},
    {"model_building", 50e6, 40e6, 0},
};

TEST_CASE(waterfall)
{
    struct canvas canvas = make(54, 5, false);
    plot_waterfall(&canvas, canvas_area(&canvas), stages, 3, 100e6, 0, 0);
    finish(&canvas, "read_header    ████▎                   20.0ms   20.0 %\n"
                    "tokenizer_init     ██████▌             30.0ms   30.0 %\n"
                    "model_building           ▐███████▉     40.0ms   40.0 %\n"
                    "other                             ░░   10.0ms   10.0 %\n"
                    "\n");
}

TEST_CASE(waterfall_scrolls)
{
    struct canvas canvas = make(54, 2, false);
    plot_waterfall(&canvas, canvas_area(&canvas), stages, 3, 100e6, 0, 2);
    finish(&canvas, "model_building           ▐███████▉     40.0ms   40.0 %\n"
                    "other                             ░░   10.0ms   10.0 %\n");
}

TEST_CASE(waterfall_without_stages)
{
    struct canvas canvas = make(40, 1, true);
    plot_waterfall(&canvas, canvas_area(&canvas), NULL, 0, 5e6, 0, 0);
    finish(&canvas, "other ................    5.0ms  100.0 %\n");
}

// Neither nonsense nor tiny areas break it.
TEST_CASE(waterfall_takes_anything)
{
    static const double numbers[] = {0, -1, 1e300, -1e300, 1, 1e9, NAN, INFINITY};
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        struct plot_stage any[3];
        for (int i = 0; i < 3; i++)
            any[i] = (struct plot_stage){"千問-模型-七十億-and-more",
                                         numbers[test_random(&seed) % COUNT_OF(numbers)],
                                         numbers[test_random(&seed) % COUNT_OF(numbers)],
                                         numbers[test_random(&seed) % COUNT_OF(numbers)]};
        struct canvas canvas =
            make((int)(test_random(&seed) % 80), (int)(test_random(&seed) % 6), round % 2);
        plot_waterfall(&canvas, canvas_area(&canvas), any, 3,
                       numbers[test_random(&seed) % COUNT_OF(numbers)],
                       numbers[test_random(&seed) % COUNT_OF(numbers)], test_random(&seed) % 5);
        canvas_deinit(&canvas);
    }
}

// A quarter of the values are twice as large as the others, the last is four times as large.
TEST_CASE(histogram_marks_its_percentiles)
{
    static const double values[] = {1e6, 2e6, 4e6};
    static const uint64_t counts[] = {70, 29, 1};
    const struct plot_histogram histogram = {"TTFT", UNIT_DURATION, values, counts, 3};
    struct canvas canvas = make(44, 4, false);
    plot_histogram(&canvas, canvas_area(&canvas), &histogram);
    finish(&canvas, "TTFT  p50 1.0ms  p95 2.0ms  p99 2.0ms\n"
                    " █\n"
                    " █                    ▇                   ▁\n"
                    "─┴p50─────────────────┴p95────────────4.0ms─\n");
    // Without room at its right a mark has its name at the left.
    static const double close[] = {1e6, 2e6, 2.1e6, 4e6};
    static const uint64_t of_close[] = {10, 60, 27, 3};
    const struct plot_histogram narrow = {"E2E", UNIT_DURATION, close, of_close, 4};
    canvas = make(44, 4, false);
    plot_histogram(&canvas, canvas_area(&canvas), &narrow);
    finish(&canvas, "E2E  p50 2.0ms  p95 2.1ms  p99 4.0ms\n"
                    "                      █\n"
                    " ▃                    █▇                  ▁\n"
                    "1.0ms──────────────p50┴┴p95────────────p99┴─\n");
    // A number that has no room is left out, as a part of it would be another one.
    canvas = make(36, 3, false);
    plot_histogram(&canvas, canvas_area(&canvas), &histogram);
    finish(&canvas, "TTFT  p50 1.0ms  p95 2.0ms\n"
                    " █                ▃               ▁\n"
                    "─┴p50─────────────┴p95────────4.0ms─\n");
}

// All requests take about as long: the axis goes on, its right end is no value.
TEST_CASE(histogram_of_alike_values)
{
    static const double values[] = {100e6, 105e6};
    static const uint64_t counts[] = {50, 50};
    const struct plot_histogram histogram = {"TTFT", UNIT_DURATION, values, counts, 2};
    struct canvas canvas = make(60, 4, false);
    plot_histogram(&canvas, canvas_area(&canvas), &histogram);
    finish(&canvas, "TTFT  p50 100ms  p95 105ms  p99 105ms\n"
                    "    █   █\n"
                    "    █   █\n"
                    "────┴p50┴p95────────────────────────────────────────────────\n");
}

// Any bins, of any size.
TEST_CASE(histogram_takes_anything)
{
    static const double numbers[] = {0, 1e-300, 1, 1e9, 1e300};
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        double values[3];
        uint64_t counts[3];
        for (int i = 0; i < 3; i++) {
            values[i] = numbers[(unsigned)i + test_random(&seed) % 3];
            counts[i] = test_random(&seed) % 3 ? test_random(&seed) >> 24 : 0;
        }
        const struct plot_histogram histogram = {"E2E", UNIT_DURATION, values, counts,
                                                 test_random(&seed) % 4};
        struct canvas canvas =
            make((int)(test_random(&seed) % 80), (int)(test_random(&seed) % 9), round % 2);
        plot_histogram(&canvas, canvas_area(&canvas), &histogram);
        canvas_deinit(&canvas);
    }
}

// The row of bars of a chart whose two-second steps begin at 0, drawn at a time.
static char *chart_at(int64_t until_ns, bool is_rate)
{
    enum { SCALE = 9, COLUMNS = 10, POINTS = 10 };
    const int64_t step_ns = 2000000000;
    struct plot_point points[POINTS];
    for (int i = 0; i < POINTS; i++)
        points[i] = (struct plot_point){i * step_ns, i == 4 ? 8 : 4, NAN, 0};
    const struct plot_chart chart = {.title = "t",
                                     .since = "20s",
                                     .is_rate = is_rate,
                                     .points = points,
                                     .count = POINTS,
                                     .step_ns = step_ns,
                                     .length_ns = 10 * step_ns,
                                     .until_ns = until_ns};
    struct canvas canvas = make(SCALE + COLUMNS, 3, false);
    plot_chart(&canvas, canvas_area(&canvas), &chart);
    char *text = fixture_text(&canvas), *bars = strchr(text, '\n') + 1;
    *strchr(bars, '\n') = '\0';
    char *row = strdup(bars);
    assert_non_null(row);
    free(text);
    canvas_deinit(&canvas);
    return row;
}

// With the next step all moves by one column.
TEST_CASE(a_chart_moves_by_whole_steps)
{
    static const struct {
        int64_t until_ns;
        const char *row;
    } cases[] = {
        {18500000000, "       8  ▄▄▄▄█▄▄▄▄"}, // without what has only begun
        {20000000000, "       8 ▄▄▄▄█▄▄▄▄▄"},
        {21999999999, "       8  ▄▄▄█▄▄▄▄▄"}, // without what the window cuts
        {22000000000, "       8 ▄▄▄█▄▄▄▄▄"},
        {26000000000, "       8 ▄█▄▄▄▄▄"},
        {90000000000, ""}, // all points are older
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *row = chart_at(cases[i].until_ns, true);
        assert_string_equal(row, cases[i].row);
        free(row);
    }
}

// A rate is that of the time since the process began, as that of its row is; failures are marked.
TEST_CASE(a_chart_begins_with_the_process)
{
    enum { SCALE = 9, COLUMNS = 20 };
    const int64_t step_ns = 60000000000;
    struct plot_point points[] = {{8 * step_ns, 2, NAN, 0}, {9 * step_ns, 4, NAN, 0}};
    // The text of the axis stays readable.
    const struct plot_point marks[] = {{0, 1, NAN, 0},
                                       {2 * step_ns, 1, NAN, 0},
                                       {7 * step_ns, 0, NAN, 0},
                                       {9 * step_ns, 0.5, NAN, 0}};
    struct plot_chart chart = {.title = "t",
                               .since = "10m",
                               .is_rate = true,
                               .points = points,
                               .count = COUNT_OF(points),
                               .step_ns = step_ns,
                               .length_ns = 10 * step_ns,
                               .until_ns = 10 * step_ns,
                               .began_ns = 8 * step_ns + step_ns / 2,
                               .marks = marks,
                               .mark_count = COUNT_OF(marks)};
    struct canvas canvas = make(SCALE + COLUMNS, 3, false);
    plot_chart(&canvas, canvas_area(&canvas), &chart);
    finish(&canvas, "         t\n"
                    "       4                 ████\n"
                    "          10m before ──────✗─\n");
    chart.began_ns = 0;
    canvas = make(SCALE + COLUMNS, 3, false);
    plot_chart(&canvas, canvas_area(&canvas), &chart);
    finish(&canvas, "         t\n"
                    "       4                 ▄▄██\n"
                    "          10m before ──────✗─\n");
    // The newest step may have ended before its time.
    points[1].of_ns = step_ns - 1;
    canvas = make(SCALE + COLUMNS, 3, false);
    plot_chart(&canvas, canvas_area(&canvas), &chart);
    finish(&canvas, "         t\n"
                    "    4.00                 ▄▄██\n"
                    "          10m before ──────✗─\n");
    points[1].of_ns = 0;
    // The rate of a step's second half is that of the process, whenever it is said to have begun.
    points[0].of_ns = step_ns / 2;
    chart.began_ns = 9 * step_ns - step_ns / 4;
    canvas = make(SCALE + COLUMNS, 3, false);
    plot_chart(&canvas, canvas_area(&canvas), &chart);
    finish(&canvas, "         t\n"
                    "       4                 ▄▄██\n"
                    "          10m before ──────✗─\n");
}

// A chart has the whole window, at any width; a point before the process began tells that another
// one did before.
TEST_CASE(a_chart_is_as_wide_as_its_place)
{
    enum { SCALE = 9, STEPS = 4 };
    const int64_t step_ns = 1000000000;
    const struct plot_point points[] = {
        {0, 4, NAN, 0}, {step_ns, 4, NAN, 0}, {2 * step_ns, 8, NAN, 0}, {3 * step_ns, 8, NAN, 0}};
    const struct plot_chart chart = {.title = "t",
                                     .since = "4s",
                                     .is_rate = true,
                                     .points = points,
                                     .count = COUNT_OF(points),
                                     .step_ns = step_ns,
                                     .length_ns = STEPS * step_ns,
                                     .until_ns = STEPS * step_ns,
                                     .began_ns = 3 * step_ns / 2};
    static const struct {
        int cells;
        const char *text;
    } cases[] = {
        {3, "         t\n       8  ▄█\n          4s\n"},
        {6, "         t\n       8 ▄▄▄███\n          4s be\n"},
        {8, "         t\n       8 ▄▄▄▄████\n          4s befo\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct canvas canvas = make(SCALE + cases[i].cells, 3, false);
        plot_chart(&canvas, canvas_area(&canvas), &chart);
        finish(&canvas, cases[i].text);
    }
}

TEST_MAIN(a_chart_is_as_wide_as_its_place, a_chart_begins_with_the_process,
          a_chart_moves_by_whole_steps, sparklines, bars, waterfall, waterfall_scrolls,
          waterfall_without_stages, waterfall_takes_anything, histogram_marks_its_percentiles,
          histogram_of_alike_values, histogram_takes_anything)
