// Charts of the window: throughput and TTFT over time.
#include "client/tui/view.h"

#include <math.h>

#include "client/tui/plots.h"
#include "common/core/query/result.h"

enum { CHART_GAP = 2, CHART_LEAST_WIDTH = 30, POINTS_MAX = 512 };

int view_charts_rows(const struct model *model, struct rect area)
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
                               .until_ns = window_is_live(window) ? model_reference_ns(model)
                                                                  : window->until_ns};
}

void view_charts_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    const int rows = view_charts_rows(model, rect_below(area, -1));
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
