// Two sides beside each other, as chosen: a verdict per model and metric, with its interval.
#include "client/tui/view.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"
#include "common/core/stats/stats.h"

static const struct grid_column columns[] = {
    {"verdict", "verdict", GRID_STATE, true, 11, 11, 0},
    {"model", "model", GRID_NAME, true, 8, 28, 0},
    {"operation", "operation", GRID_IF_ANY, true, 9, 20, 6},
    {"device", "device", GRID_NAME, true, 6, 20, 2},
    {"metric", "metric", GRID_NAME, true, 12, 26, 0},
    {"A", "before_median", GRID_IN_ROW_UNIT, false, 8, 0, 4},
    {"B", "after_median", GRID_IN_ROW_UNIT, false, 8, 0, 3},
    {"change", "ratio", GRID_CHANGE, false, 8, 0, 0},
    {"from", "ratio_low", GRID_CHANGE, false, 8, 0, 1},
    {"to", "ratio_high", GRID_CHANGE, false, 8, 0, 1},
    {"p95", "p95_verdict", GRID_STATE, true, 9, 11, 4},
    {"p99", "p99_verdict", GRID_STATE, true, 9, 11, 5},
    {"count A", "before_count", GRID_UNIT, false, 7, 0, 7},
    {"count B", "after_count", GRID_UNIT, false, 7, 0, 7},
    {"total A", "before_total", GRID_IN_ROW_UNIT, false, 9, 0, 8},
    {"total B", "after_total", GRID_IN_ROW_UNIT, false, 9, 0, 8},
    {"note", "note", GRID_IF_ANY, true, 4, 80, 4},
};
static const char *const identity[] = {"model", "operation", "device", "metric", NULL};

static bool is_worse(const struct result *result, size_t row)
{
    return result_is(result, row, "verdict", stats_verdict_text(STATS_WORSE));
}

static const struct grid grid = {.columns = columns,
                                 .count = sizeof columns / sizeof *columns,
                                 .identity = identity,
                                 .is_urgent = is_worse};

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
        unsigned count = 0;
        for (size_t row = 0; row < result_row_count(result); row++)
            count += result_is(result, row, "verdict", stats_verdict_text(verdicts[i].verdict));
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
    .none = "nothing to compare: both sides need requests (t: another window, v: other sides)",
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
