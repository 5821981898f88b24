// Requests: the newest of the window, how their times are distributed, and what failed.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/base/unit.h"
#include "common/core/query/result.h"

enum panel_number { PANEL_LIST, PANEL_FAILED, PANELS };

static const struct grid_column inference_columns[] = {
    {"time", "started_ns", GRID_CLOCK, true, 8, 8, 0},
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"░queue ▒prefill █decode", "e2e_ns", GRID_DRAWN, true, 23, 90, 1},
    {"TTFT", "ttft_ns", GRID_UNIT, false, 7, 0, 0},
    {"E2E", "e2e_ns", GRID_UNIT, false, 7, 0, 1},
    {"items", "items", GRID_IF_ANY, false, 6, 0, 2},
    {"items/s", "items_per_second", GRID_IF_ANY, false, 8, 0, 0},
    {"t/s", "tokens_per_second", GRID_BARE, false, 7, 0, 0},
    {"prompt", "prompt_tokens", GRID_UNIT, false, 6, 0, 5},
    {"cached", "cached_prompt_tokens", GRID_UNIT, false, 6, 0, 11},
    {"output", "generated_tokens", GRID_UNIT, false, 6, 0, 3},
    {"queue", "queue_ns", GRID_UNIT, false, 7, 0, 8},
    {"prefill", "prefill_ns", GRID_UNIT, false, 7, 0, 9},
    {"decode", "decode_ns", GRID_UNIT, false, 7, 0, 9},
    {"prefill t/s", "prefill_tokens_per_second", GRID_BARE, false, 11, 0, 12},
    {"ITL p99", "itl_p99_ns", GRID_UNIT, false, 7, 0, 6},
    {"ITL max", "itl_max_ns", GRID_UNIT, false, 7, 0, 10},
    {"memory", "host_memory_bytes", GRID_UNIT, false, 9, 0, 12},
    {"finish", "finish", GRID_OUTCOME, true, 9, 9, 2},
    {"device", "device", GRID_NAME, true, 6, 20, 7},
    {"host", "host", GRID_NAME, true, 6, 24, 1},
    {"reason", "error", GRID_IF_ANY, true, 8, 60, 3},
};
static const char *const identity[] = {"run", "stream", "number", NULL};

static int compare_numbers(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

// The time that a bar of full width stands for: of the longest request, but at most a multiple of
// the median, so that one long request does not leave the others without a bar.
static double bar_scale(const struct result *result)
{
    enum { VALUES_MAX = 256, MEDIANS = 3 };
    double values[VALUES_MAX];
    const int column = result_find(result, "e2e_ns");
    size_t count = 0;
    for (size_t row = 0; row < result_row_count(result) && count < VALUES_MAX; row++) {
        values[count] = value_number(result_cell(result, row, (unsigned)column), NAN);
        count += isfinite(values[count]);
    }
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_numbers);
    return fmin(values[count - 1], MEDIANS * values[count / 2]);
}

// The phases of a request, one after the other; one that ends behind the scale ends in an arrow.
static void draw_bar(const struct grid_column *column, struct canvas *canvas, struct rect area,
                     int x, int y, int width, double scale, const struct result *result, size_t row)
{
    (void)column;
    enum { ARROW = 0x25B6 };
    static const struct {
        const char *key;
        uint32_t code;
        enum style style;
    } phases[] = {{"queue_ns", 0x2591, STYLE_WARNING},
                  {"prefill_ns", 0x2592, STYLE_BAR},
                  {"decode_ns", 0x2588, STYLE_BAR}};
    const double total_ns = result_number(result, row, "e2e_ns", NAN);
    if (!(scale > 0) || !isfinite(total_ns))
        return;
    double at_ns = 0;
    int from = 0;
    for (unsigned i = 0; i < 3; i++) {
        at_ns += result_number(result, row, phases[i].key, i == 2 ? total_ns - at_ns : 0);
        const int to = (int)lround(fmin(at_ns / scale, 1) * width);
        for (; from < to; from++)
            (void)canvas_put_code(canvas, area, x + from, y, phases[i].style, phases[i].code);
    }
    if (from == 0)
        (void)canvas_put(canvas, area, x, y, STYLE_BAR, "▏");
    if (total_ns > scale)
        (void)canvas_put_code(canvas, area, x + width - 1, y, STYLE_WARNING, ARROW);
}

static const struct grid inference_grid = {GRID_COLUMNS(inference_columns), .draw = draw_bar,
                                           .scale = bar_scale, .identity = identity};

static const struct grid_column failed_columns[] = {
    {"last", "last_ns", GRID_CLOCK, true, 8, 8, 1},
    {"count", "count", GRID_LOSS, false, 6, 0, 0},
    {"of", "kind", GRID_UNIT, true, 4, 10, 3},
    {"model", "model", GRID_NAME, true, 8, 24, 0},
    {"host", "host", GRID_NAME, true, 6, 20, 2},
    {"reason", "error", GRID_UNIT, true, 20, 160, 0},
};
static const char *const failed_identity[] = {"kind", "model", "host", "error", NULL};
static const struct grid failed_grid = {GRID_COLUMNS(failed_columns), .identity = failed_identity};

// The average speed of the window, of items where the newest request has items.
static void inference_facts(const struct model *model, struct rect area, struct segments *facts)
{
    char text[UNIT_TEXT_SIZE];
    const struct result *result = model_answer(model, POLL_INFERENCES);
    const struct result *window = model_answer(model, POLL_WINDOW);
    (void)area;
    if (!result)
        return;
    const bool are_items = result_get(result, 0, "items").type != VALUE_NULL;
    const char *const key = are_items ? "items_per_second" : "tokens_per_second";
    const enum unit unit = are_items ? UNIT_ITEMS_PER_SECOND : UNIT_TOKENS_PER_SECOND;
    const double mean = window ? result_number(window, 0, key, NAN) : (double)NAN;
    if (isfinite(mean))
        segments_add(facts, 0, STYLE_PLAIN, "average %s", unit_format(text, unit, mean));
}

static int head_rows(const struct model *model, struct rect area)
{
    (void)model;
    static const struct layout_step heights[] = {{40, 9}, {26, 7}, {16, 5}, {12, 4}, {0, 0}};
    return layout_rows(area.height, heights);
}

static void draw_times(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { BINS_MAX = 2048 };
    double values[BINS_MAX];
    uint64_t counts[BINS_MAX], all = 0;
    char title[96], count[UNIT_TEXT_SIZE];
    const struct result *bins = model_answer(model, POLL_HISTOGRAM);
    const char *name = model->scope.of_e2e ? "E2E" : "TTFT";
    struct plot_histogram histogram = {
        .title = title, .unit = UNIT_DURATION, .values = values, .counts = counts};
    for (size_t row = 0; bins && row < result_row_count(bins) && histogram.count < BINS_MAX;
         row++) {
        values[histogram.count] = result_number(bins, row, "value", 0);
        counts[histogram.count] = (uint64_t)result_integer(bins, row, "count", 0);
        all += counts[histogram.count++];
    }
    if (all == 0) {
        (void)snprintf(title, sizeof title, "%s %s",
                       model->answers[POLL_HISTOGRAM].known ? "no request of the window has"
                                                            : "asking for",
                       name);
        (void)canvas_put(canvas, area, 0, 0, STYLE_DIM, title);
        return;
    }
    (void)snprintf(title, sizeof title, "%s of %s requests (m: %s)", name,
                   unit_format_int(count, UNIT_COUNT, (int64_t)all),
                   model->scope.of_e2e ? "TTFT" : "E2E");
    plot_histogram(canvas, area, &histogram);
}

static void draw_head(const struct model *model, struct canvas *canvas, struct rect area)
{
    const int rows = head_rows(model, rect_below(area, -1)); // with its title
    if (rows > 0)
        draw_times(model, canvas, (struct rect){area.x + 1, area.y, area.width - 2, rows});
}

static const struct panel panels[PANELS] = {
    [PANEL_LIST] = {.title = "Newest requests",
                    .none = "no request in the window (t: a longer one)",
                    .polled = POLL_INFERENCES,
                    .grid = &inference_grid,
                    .facts = inference_facts,
                    .head_rows = head_rows,
                    .draw_head = draw_head},
    [PANEL_FAILED] = {.title = "Failed in the window",
                      .none = "nothing failed in the window",
                      .polled = POLL_FAILED,
                      .needs_rows = true,
                      .grid = &failed_grid},
};

// Failures have a place only when there are some.
static void arrange(const struct model *model, struct rect body, struct rect *out)
{
    enum { TITLE_AND_HEADING = 2, FAILED_MAX = 6 };
    const size_t rows = view_panel_rows(model, &panels[PANEL_FAILED]);
    const int most = body.height / 4 < FAILED_MAX ? body.height / 4 : FAILED_MAX;
    const int failed = rows == 0 ? 0 : TITLE_AND_HEADING + (rows < (size_t)most ? (int)rows : most);
    const struct layout_want wants[] = {{5, 8, 0, true}, {rows == 0 ? 0 : 3, failed, 1, false}};
    layout_stack(body, wants, PANELS, out);
}

const struct view view_requests = {
    .name = "Requests",
    .polls = POLL(INFERENCES) | POLL(HISTOGRAM) | POLL(FAILED) | POLL(WINDOW),
    .panels = panels,
    .panel_count = PANELS,
    .arrange = arrange,
    .draw_empty = view_empty_requests_draw,
};
