// Loads of models: the newest of the window, and the stages of the one at the cursor.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"

enum panel_number { PANEL_LIST, PANEL_STAGES, PANELS };

static const struct grid_column columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"host", "host", GRID_NAME, true, 6, 24, 2},
    {"device", "device", GRID_NAME, true, 6, 20, 6},
    {"status", "status", GRID_OUTCOME, true, 6, 9, 1},
    {"total", "duration_ns", GRID_UNIT, false, 7, 0, 0},
    {"size", "model_bytes", GRID_UNIT, false, 9, 0, 3},
    {"rate", "load_bytes_per_second", GRID_UNIT, false, 9, 0, 4},
    {"cached", "page_cache_ratio", GRID_UNIT, false, 6, 0, 5},
    {"before", "memory_before_bytes", GRID_UNIT, false, 9, 0, 9},
    {"after", "memory_after_bytes", GRID_UNIT, false, 9, 0, 8},
    {"delta", "memory_delta_bytes", GRID_UNIT, false, 9, 0, 7},
    {"reason", "error", GRID_UNIT, true, 8, 60, 4},
};
static const char *const identity[] = {"run", "stream", "number", NULL};
static const struct grid load_grid = {
    .columns = columns, .count = sizeof columns / sizeof *columns, .identity = identity};

enum { STAGES_MAX = 64, NAME_MAX_WIDTH = 24 };

// The load at the cursor; NULL if there is none.
static const struct result *selected_load(const struct model *model, size_t *row)
{
    return view_selected(model, PANEL_LIST, row) ? model_answer(model, POLL_LOADS) : NULL;
}

// Its stages in the answer, in their order.
static size_t stages_of_load(const struct model *model, struct plot_stage stages[STAGES_MAX])
{
    size_t at;
    const struct result *load = selected_load(model, &at), *all = model_answer(model, POLL_STAGES);
    if (!load || !all)
        return 0;
    const int64_t start_ns = result_integer(load, at, "started_ns", 0);
    size_t count = 0;
    for (size_t row = 0; row < result_row_count(all) && count < STAGES_MAX; row++) {
        if (!value_is_same(result_get(load, at, "run"), result_get(all, row, "run")) ||
            result_integer(load, at, "stream", -1) != result_integer(all, row, "stream", -2) ||
            result_integer(load, at, "number", -1) != result_integer(all, row, "parent", -2))
            continue;
        struct plot_stage *stage = &stages[count++];
        (void)result_text(stage->name, sizeof stage->name, all, row, "stage");
        stage->start_ns = (double)(result_integer(all, row, "started_ns", start_ns) - start_ns);
        stage->duration_ns = result_number(all, row, "duration_ns", 0);
    }
    return count;
}

static bool load_failed(const struct model *model)
{
    char status[32];
    size_t at;
    const struct result *load = selected_load(model, &at);
    return load && strcmp(result_text(status, sizeof status, load, at, "status"), "ok") != 0;
}

static void load_facts(const struct model *model, struct rect area, struct segments *facts)
{
    (void)area;
    size_t at;
    const struct result *load = selected_load(model, &at);
    if (!load)
        return;
    char text[128], number[UNIT_TEXT_SIZE];
    if (load_failed(model))
        segments_add(facts, 0, STYLE_BAD, "✗ %s",
                     result_text(text, sizeof text, load, at, "status"));
    segments_add_name(facts, 1, STYLE_STRONG, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, at, "model"));
    segments_add_name(facts, 4, STYLE_PLAIN, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, at, "device"));
    segments_add_name(facts, 7, STYLE_PLAIN, NAME_MAX_WIDTH,
                      result_text(text, sizeof text, load, at, "host"));
    segments_add(facts, 0, STYLE_STRONG, "%s",
                 unit_format(number, UNIT_DURATION, result_number(load, at, "duration_ns", NAN)));
    segments_add(facts, 2, STYLE_PLAIN, "%s",
                 unit_format(number, UNIT_BYTES, result_number(load, at, "model_bytes", NAN)));
    double rate = result_number(load, at, "load_bytes_per_second", NAN);
    if (isfinite(rate))
        segments_add(facts, 6, STYLE_PLAIN, "%s", unit_format(number, UNIT_BYTES_PER_SECOND, rate));
    double delta = result_number(load, at, "memory_delta_bytes", NAN);
    if (isfinite(delta))
        segments_add(facts, 3, STYLE_PLAIN, "memory %s%s", delta >= 0 ? "+" : "",
                     unit_format(number, UNIT_BYTES, delta));
    double cached = result_number(load, at, "page_cache_ratio", NAN);
    if (isfinite(cached))
        segments_add(facts, 5, STYLE_PLAIN, "%s, %s cached",
                     cached >= 0.9   ? "warm"
                     : cached <= 0.1 ? "cold"
                                     : "partly warm",
                     unit_format(number, UNIT_RATIO, cached));
}

static int load_head_rows(const struct model *model, struct rect area)
{
    (void)area;
    return load_failed(model) ? 1 : 0;
}

static void draw_load_head(const struct model *model, struct canvas *canvas, struct rect area)
{
    char reason[512];
    size_t at;
    const struct result *load = selected_load(model, &at);
    if (!load_failed(model))
        return;
    (void)result_text(reason, sizeof reason, load, at, "error");
    canvas_fit(canvas, area, 0, 0, area.width, ALIGN_LEFT, STYLE_BAD, reason);
}

static size_t load_rows(const struct model *model)
{
    struct plot_stage stages[STAGES_MAX];
    size_t at;
    return selected_load(model, &at) ? stages_of_load(model, stages) + 1 : 0; // and "other"
}

static void draw_load(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top)
{
    struct plot_stage stages[STAGES_MAX];
    size_t at;
    const struct result *load = selected_load(model, &at);
    if (!load)
        return;
    plot_waterfall(canvas, area, stages, stages_of_load(model, stages),
                   result_number(load, at, "duration_ns", 0), top);
}

static const struct panel panels[PANELS] = {
    [PANEL_LIST] = {.title = "Loads",
                    .none = "no load in the window (t: a longer one)",
                    .polled = POLL_LOADS,
                    .grid = &load_grid},
    [PANEL_STAGES] = {.title = "Stages",
                      .none = "no load in the window",
                      .polled = POLL_STAGES,
                      .facts = load_facts,
                      .head_rows = load_head_rows,
                      .draw_head = draw_load_head,
                      .list_rows = load_rows,
                      .draw_list = draw_load},
};

static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE_AND_HEADING = 2, TITLE = 1 };
    const struct layout_want list = {4, TITLE_AND_HEADING + 4, 0, true};
    const struct layout_want stages = {
        3, TITLE + load_head_rows(model, body) + (int)load_rows(model), 1, false};
    const struct layout_want wants[] = {list, stages};
    layout_stack(body, wants, PANELS, out);
}

const struct view view_loads = {
    .name = "Loads",
    .polls = POLL(LOADS) | POLL(STAGES),
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = view_empty_requests_draw,
};
