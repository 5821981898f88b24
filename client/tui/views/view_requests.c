// Requests: the newest of the window, and their speeds.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"

static const struct grid_column inference_columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"prompt", "prompt_tokens", GRID_UNIT, false, 6, 0, 3},
    {"cached", "cached_prompt_tokens", GRID_UNIT, false, 6, 0, 11},
    {"output", "generated_tokens", GRID_UNIT, false, 6, 0, 1},
    {"queue", "queue_ns", GRID_UNIT, false, 7, 0, 8},
    {"prefill", "prefill_ns", GRID_UNIT, false, 7, 0, 9},
    {"TTFT", "ttft_ns", GRID_UNIT, false, 7, 0, 0},
    {"decode", "decode_ns", GRID_UNIT, false, 7, 0, 9},
    {"E2E", "e2e_ns", GRID_UNIT, false, 7, 0, 1},
    {"items", "items", GRID_IF_ANY, false, 6, 0, 2},
    {"items/s", "items_per_second", GRID_IF_ANY, false, 8, 0, 0},
    {"t/s", "tokens_per_second", GRID_BARE, false, 7, 0, 0},
    {"prefill t/s", "prefill_tokens_per_second", GRID_BARE, false, 11, 0, 12},
    {"ITL p99", "itl_p99_ns", GRID_UNIT, false, 7, 0, 6},
    {"ITL max", "itl_max_ns", GRID_UNIT, false, 7, 0, 10},
    {"memory", "host_memory_bytes", GRID_UNIT, false, 9, 0, 11},
    {"finish", "finish", GRID_OUTCOME, true, 9, 9, 2},
    {"device", "device", GRID_NAME, true, 6, 20, 7},
    {"host", "host", GRID_NAME, true, 6, 24, 4},
    {"reason", "error", GRID_IF_ANY, true, 8, 60, 5},
};
static const char *const identity[] = {"run", "stream", "number", NULL};
static const struct grid inference_grid = {.columns = inference_columns,
                                           .count =
                                               sizeof inference_columns / sizeof *inference_columns,
                                           .identity = identity};

enum { SPEEDS_MAX = 512 };

// The speeds that a sparkline in the area shows: those of the newest inferences, oldest first, NaN
// where an inference has none; the lowest and the highest, NaN when it shows nothing.  They are of
// items where the newest inference has items, else of tokens.
struct speeds {
    enum unit unit;
    double values[SPEEDS_MAX];
    size_t count;
    double lowest, highest;
};

static void read_speeds(struct speeds *out, const struct model *model, struct rect area)
{
    const struct result *result = model_answer(model, POLL_INFERENCES);
    const size_t width = area.width < 0 ? 0 : (size_t)area.width;
    const size_t most = width < SPEEDS_MAX ? width : SPEEDS_MAX;
    const size_t rows = result ? result_row_count(result) : 0;
    out->count = rows < most ? rows : most;
    out->lowest = out->highest = NAN;
    const bool are_items = rows > 0 && result_get(result, 0, "items").type != VALUE_NULL;
    const char *const key = are_items ? "items_per_second" : "tokens_per_second";
    out->unit = are_items ? UNIT_ITEMS_PER_SECOND : UNIT_TOKENS_PER_SECOND;
    for (size_t i = 0; i < out->count; i++) { // the answer has the newest first
        const double speed = result_number(result, i, key, NAN);
        out->values[out->count - 1 - i] = speed;
        out->lowest = fmin(out->lowest, speed); // of a NaN and a number: the number
        out->highest = fmax(out->highest, speed);
    }
}

// A speed without its unit.
static const char *bare_speed(char *text, enum unit unit, double speed)
{
    (void)unit_format(text, unit, speed);
    text[strcspn(text, " ")] = '\0';
    return text;
}

static void inference_facts(const struct model *model, struct rect area, struct segments *facts)
{
    char text[UNIT_TEXT_SIZE];
    struct speeds speeds;
    read_speeds(&speeds, model, area);
    if (!isfinite(speeds.highest))
        return;
    segments_add(facts, 0, STYLE_STRONG, "last %s",
                 unit_format(text, speeds.unit, speeds.values[speeds.count - 1]));
    segments_add(facts, 1, STYLE_PLAIN, "low %s", bare_speed(text, speeds.unit, speeds.lowest));
    segments_add(facts, 1, STYLE_PLAIN, "high %s", bare_speed(text, speeds.unit, speeds.highest));
}

static int speed_rows(const struct model *model, struct rect area)
{
    (void)model;
    static const struct {
        int panel, plot;
    } heights[] = {{20, 3}, {10, 2}, {5, 1}};
    for (unsigned i = 0; i < sizeof heights / sizeof *heights; i++)
        if (area.height >= heights[i].panel)
            return heights[i].plot;
    return 0;
}

// A speed of 0 is the ground of the sparkline: equal speeds look equal.
static void draw_speeds(const struct model *model, struct canvas *canvas, struct rect area)
{
    struct speeds speeds;
    struct rect panel = rect_below(area, -1); // with its title, as speed_rows sees it
    struct rect plot = {area.x, area.y, area.width, speed_rows(model, panel)};
    read_speeds(&speeds, model, plot);
    plot_sparkline(canvas, plot, speeds.values, speeds.count, speeds.highest);
}

static const struct panel panel = {.title = "Newest requests",
                                   .none = "no request in the window (t: a longer one)",
                                   .polled = POLL_INFERENCES,
                                   .grid = &inference_grid,
                                   .facts = inference_facts,
                                   .head_rows = speed_rows,
                                   .draw_head = draw_speeds};

const struct view view_requests = {
    .name = "Requests",
    .polls = POLL(INFERENCES),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
