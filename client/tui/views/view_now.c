// Now: charts of the window, and a row per model and host with its state and figures.
#include "client/tui/view.h"

#include <math.h>

#include "client/tui/plots.h"
#include "common/core/query/result.h"

static const struct grid_column columns[] = {
    {"model", "model", GRID_NAME, true, 10, 28, 0},
    {"host", "host", GRID_NAME, true, 6, 24, 0},
    {"state", "state", GRID_STATE, true, 8, 9, 0},
    {"since", "since_ns", GRID_CLOCK, true, 8, 8, 9},
    {"req/s", "request_rate", GRID_BARE, false, 6, 0, 0},
    {"tok/s", "output_token_rate", GRID_BARE, false, 7, 0, 1},
    {"items/s", "item_rate", GRID_IF_ANY, false, 8, 0, 1},
    {"run", "running_requests", GRID_UNIT, false, 4, 0, 4},
    {"wait", "waiting_requests", GRID_UNIT, false, 4, 0, 5},
    {"TTFT p50", "ttft_p50_ns", GRID_UNIT, false, 8, 0, 3},
    {"p95", "ttft_p95_ns", GRID_UNIT, false, 7, 0, 0},
    {"t/s p50", "tokens_per_second_p50", GRID_BARE, false, 7, 0, 4},
    {"E2E p50", "e2e_p50_ns", GRID_IF_ANY, false, 8, 0, 7},
    {"E2E p95", "e2e_p95_ns", GRID_IF_ANY, false, 7, 0, 3},
    {"errors", "error_ratio", GRID_SHARE, false, 6, 0, 1},
    {"requests", "requests", GRID_UNIT, false, 8, 0, 8},
    {"why", "reason", GRID_UNIT, true, 10, 90, 6},
};
static const char *const identity[] = {"model", "host", NULL};

static bool is_ended(const struct result *result, size_t row)
{
    return result_is(result, row, "state", "ended");
}

static const struct grid grid = {.columns = columns,
                                 .count = sizeof columns / sizeof *columns,
                                 .identity = identity,
                                 .is_folded = is_ended,
                                 .folded = "ended"};

// ---- Charts -------------------------------------------------------------------------

enum { CHART_GAP = 2, CHART_LEAST_WIDTH = 30, POINTS_MAX = 512 };

// The rows of the charts in a panel of this height; 0: none.
static int chart_rows(const struct model *model, struct rect area)
{
    static const struct {
        int panel, chart;
    } heights[] = {{40, 9}, {26, 7}, {17, 5}};
    if (window_step_ns(&model->scope.window) == 0)
        return 0;
    for (unsigned i = 0; i < sizeof heights / sizeof *heights; i++)
        if (area.height >= heights[i].panel)
            return heights[i].chart;
    return 0;
}

static void read_points(struct plot_chart *chart, struct plot_point points[POINTS_MAX],
                        const struct result *result, const char *low, const char *high)
{
    const size_t rows = result ? result_row_count(result) : 0;
    chart->points = points;
    for (size_t row = 0; row < rows && chart->count < POINTS_MAX; row++)
        points[chart->count++] = (struct plot_point){
            result_integer(result, row, "started_ns", 0), result_number(result, row, low, NAN),
            high ? result_number(result, row, high, NAN) : (double)NAN};
}

static struct plot_chart new_chart(const struct model *model, const char *title, enum unit unit)
{
    const struct window *window = &model->scope.window;
    return (struct plot_chart){.title = title,
                               .unit = unit,
                               .since = window_text(window),
                               .step_ns = window_step_ns(window),
                               .length_ns = window_length_ns(window),
                               .until_ns =
                                   window_is_live(window) ? model->wall_now_ns : window->until_ns};
}

static void draw_charts(const struct model *model, struct canvas *canvas, struct rect area)
{
    const int rows = chart_rows(model, rect_below(area, -1));
    struct rect charts = {area.x, area.y, area.width, rows}, left, right;
    struct plot_point tokens[POINTS_MAX], ttft[POINTS_MAX];
    if (rows == 0)
        return;
    layout_beside(charts, (area.width - CHART_GAP) / 2, CHART_GAP, &left, &right);
    if (right.width < CHART_LEAST_WIDTH)
        left = charts;
    struct plot_chart chart = new_chart(model, "tok/s", UNIT_TOKEN_RATE);
    chart.is_rate = true;
    read_points(&chart, tokens, model_answer(model, POLL_TOKENS), "mean", NULL);
    plot_chart(canvas, left, &chart);
    if (right.width < CHART_LEAST_WIDTH)
        return;
    chart = new_chart(model, "TTFT p50 p95", UNIT_DURATION);
    read_points(&chart, ttft, model_answer(model, POLL_TTFT), "p50", "p95");
    plot_chart(canvas, right, &chart);
}

// ---- The view -------------------------------------------------------------------------

static const struct panel panel = {.title = "Models",
                                   .none = "no process of a model",
                                   .polled = POLL_NOW,
                                   .grid = &grid,
                                   .head_rows = chart_rows,
                                   .draw_head = draw_charts};

const struct view view_now = {
    .name = "Now",
    .polls = POLL(NOW) | POLL(WINDOW) | POLL(TOKENS) | POLL(TTFT),
    .panels = &panel,
    .panel_count = 1,
    .draw_empty = view_empty_requests_draw,
};
