// Two sides beside each other, as chosen: a verdict per model and metric, with its interval.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/glyph.h"
#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"
#include "common/core/stats/stats.h"

static const struct grid_column columns[] = {
    {"verdict", "verdict", GRID_STATE, true, 11, 11, 0},
    {"model", "model", GRID_NAME, true, 6, 28, 0},
    {"operation", "operation", GRID_IF_ANY, true, 9, 20, 6},
    {"host", "host", GRID_IF_DIFFERENT, true, 6, 20, 0},
    {"device", "device", GRID_IF_DIFFERENT, true, 6, 20, 0},
    {"metric", "metric", GRID_NAME, true, 8, 26, 0},
    {"A", "before_median", GRID_DRAWN, false, 7, 8, 3},
    {"B", "after_median", GRID_DRAWN, false, 7, 8, 2},
    {"change", "ratio", GRID_DRAWN, false, 8, 8, 0},
    {"from      to", "ratio_low", GRID_DRAWN, false, 15, 17, 1},
    {"p95", "p95_verdict", GRID_STATE, true, 9, 11, 5},
    {"p99", "p99_verdict", GRID_STATE, true, 9, 11, 5},
    {"count A", "before_count", GRID_UNIT, false, 7, 0, 7},
    {"count B", "after_count", GRID_UNIT, false, 7, 0, 7},
    {"note", "note", GRID_IF_ANY, true, 4, 80, 5},
};
static const char *const identity[] = {"model", "operation", "host", "device", "metric", NULL};

// What changed comes before what did not.
static bool has_changed(const struct result *result, size_t row)
{
    const char *worse = stats_verdict_text(STATS_WORSE);
    return result_is(result, row, "verdict", worse) ||
           result_is(result, row, "verdict", stats_verdict_text(STATS_BETTER)) ||
           result_is(result, row, "p95_verdict", worse) ||
           result_is(result, row, "p99_verdict", worse);
}

// A side's median, or its total where the row has that; in the row's unit.
static void side_value(char text[GRID_CELL_SIZE], const struct result *result, size_t row,
                       bool is_before)
{
    int column = result_find(result, is_before ? "before_median" : "after_median");
    const int total = result_find(result, is_before ? "before_total" : "after_total");
    if (total >= 0 && result_cell(result, row, (unsigned)total).type != VALUE_NULL)
        column = total;
    grid_value_text(text, NULL, result, row, (unsigned)column, 0);
}

// The interval of the change, "+15.0 +27.0 %".  Where it has no end, what is missing for one: "need
// 12 each", or, as values of a run are alike, "few runs, 6".
static void interval(char text[GRID_CELL_SIZE], const struct result *result, size_t row)
{
    char ends[2][UNIT_TEXT_SIZE];
    const int64_t needed = result_integer(result, row, "needed_count", 0);
    const int64_t before = result_integer(result, row, "before_count", 0);
    const int64_t after = result_integer(result, row, "after_count", 0);
    const int64_t runs[] = {result_integer(result, row, "before_runs", 0),
                            result_integer(result, row, "after_runs", 0)};
    (void)snprintf(text, GRID_CELL_SIZE, "-");
    const char *low = result_change(ends[0], result, row, "before_median", "ratio_low");
    const char *high = result_change(ends[1], result, row, "before_median", "ratio_high");
    if (result_number(result, row, "ratio_low", 0) > 0 &&
        isfinite(result_number(result, row, "ratio_high", NAN)))
        (void)snprintf(text, GRID_CELL_SIZE, "%.*s %8s",
                       strchr(high, ' ') ? (int)strcspn(low, " ") : GRID_CELL_SIZE, low, high);
    else if (!result_is(result, row, "verdict", stats_verdict_text(STATS_UNDECIDED)))
        return;
    else if (before < needed || after < needed)
        (void)snprintf(text, GRID_CELL_SIZE, "need %lld each", (long long)needed);
    else
        (void)snprintf(text, GRID_CELL_SIZE, "few runs, %lld",
                       (long long)(runs[0] < runs[1] ? runs[0] : runs[1]));
}

static void draw_value(const struct grid_column *column, struct canvas *canvas, struct rect area,
                       int x, int y, int width, double scale, const struct result *result,
                       size_t row)
{
    char text[GRID_CELL_SIZE];
    (void)scale;
    if (strcmp(column->key, "ratio") == 0)
        (void)result_change(text, result, row, "before_median", column->key);
    else if (column->key[0] == 'r')
        interval(text, result, row);
    else
        side_value(text, result, row, column->key[0] == 'b');
    if (column->key[0] != 'r' && glyph_text_width(text) > width)
        text[strcspn(text, " ")] = '\0'; // the metric's name tells the unit
    canvas_fit(canvas, area, x, y, width, ALIGN_RIGHT,
               strcmp(text, "-") == 0 ? STYLE_DIM : STYLE_PLAIN, text);
}

static const struct grid grid = {GRID_COLUMNS(columns), .draw = draw_value, .identity = identity,
                                 .is_urgent = has_changed};

// "2 worse · 1 better · 3 the same · 4 undecided".
static void facts(const struct model *model, struct rect area, struct segments *facts)
{
    static const struct {
        enum stats_verdict verdict;
        const char *word;
        enum style style;
    } verdicts[] = {{STATS_WORSE, "worse", STYLE_BAD},
                    {STATS_BETTER, "better", STYLE_GOOD},
                    {STATS_SAME, "the same", STYLE_PLAIN},
                    {STATS_UNDECIDED, "undecided", STYLE_PLAIN}};
    const struct result *result = model_answer(model, POLL_COMPARE);
    (void)area;
    for (unsigned i = 0; result && i < sizeof verdicts / sizeof *verdicts; i++) {
        const char *text = stats_verdict_text(verdicts[i].verdict);
        unsigned count = 0;
        for (size_t row = 0; row < result_row_count(result); row++)
            count += result_is(result, row, "verdict", text);
        segments_add(facts, i, count > 0 ? verdicts[i].style : STYLE_DIM, "%u %s", count,
                     verdicts[i].word);
    }
}

// What a side is: "gpu-1, 5m", "baseline june", "the same a day earlier", "the window 5m".
static void side_text(char *text, size_t size, const struct model *model, unsigned side)
{
    const struct comparison *comparison = &model->scope.comparison;
    const char *window = window_text(&model->scope.window);
    char name[QUERY_TEXT_SIZE];
    (void)text_escape(name, sizeof name, comparison->names[side], strlen(comparison->names[side]));
    if (comparison->kind == COMPARISON_WINDOWS && side == 0)
        (void)snprintf(text, size, "%s", comparison_earlier_text(comparison->earlier));
    else if (comparison->kind == COMPARISON_BASELINES ||
             (comparison->kind == COMPARISON_BASELINE && side == 0))
        (void)snprintf(text, size, "baseline %.100s", name);
    else if (comparison->names[side][0])
        (void)snprintf(text, size, "%.100s, %s", name, window);
    else
        (void)snprintf(text, size, "the window %s", window);
}

// Two lines: the sides, and how their environments differ.
static int head_rows(const struct model *model, struct rect area)
{
    (void)model;
    (void)area;
    return 2;
}

static void draw_head(const struct model *model, struct canvas *canvas, struct rect area)
{
    char text[160], differences[512];
    struct segments line = {.separator = "   "};
    const struct result *result = model_answer(model, POLL_COMPARE);
    const bool has_rows = result && result_row_count(result) > 0;
    for (unsigned side = 0; side < 2; side++) {
        side_text(text, sizeof text, model, side);
        segments_add(&line, 0, STYLE_STRONG, "%s: %.140s", side == 0 ? "A" : "B", text);
    }
    segments_add_key(&line, 1, "v", "chooses");
    (void)segments_draw(&line, canvas, area, 1, 0, area.width - 2, ALIGN_LEFT);
    if (!has_rows || result_get(result, 0, "differences").type != VALUE_TEXT)
        return;
    const int x = 1 + canvas_put(canvas, area, 1, 1, STYLE_WARNING, "▲ they differ: ");
    canvas_fit(canvas, area, x, 1, area.width - x - 1, ALIGN_LEFT, STYLE_WARNING,
               result_text(differences, sizeof differences, result, 0, "differences"));
}

static const struct panel panel = {
    .title = "Compare",
    .none = "both sides need requests (t: another window, v: other sides)",
    .polled = POLL_COMPARE,
    .grid = &grid,
    .facts = facts,
    .head_rows = head_rows,
    .draw_head = draw_head};

const struct view view_compare = {
    .name = "Compare",
    .polls = POLL(COMPARE),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
