// Charts of the window: throughput and TTFT over time.
#include "client/tui/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/plots.h"
#include "common/core/query/result.h"

enum { CHART_GAP = 2, CHART_LEAST_WIDTH = 30, POINTS_MAX = 512 };

static struct queries_span span_of(const struct model *model)
{
    return queries_span(&model->scope, model->answered_at_ns);
}

bool view_has_charts(const struct model *model)
{
    return span_of(model).step_ns != 0;
}

int view_charts_rows(const struct model *model, struct rect area)
{
    static const struct layout_step heights[] = {{40, 9}, {26, 7}, {17, 5}, {0, 0}};
    return view_has_charts(model) ? layout_rows(area.height, heights) : 0;
}

static size_t read_points(struct plot_point points[POINTS_MAX], const struct result *result,
                          const char *low, const char *high)
{
    const size_t rows = result ? result_row_count(result) : 0;
    size_t count = 0;
    for (size_t row = 0; row < rows && count < POINTS_MAX; row++)
        points[count++] = (struct plot_point){
            result_integer(result, row, "started_ns", 0), result_number(result, row, low, NAN),
            high ? result_number(result, row, high, NAN) : (double)NAN,
            result_integer(result, row, "window_ns", 0)};
    return count;
}

// When the first process began whose figures the rows of NOW have; 0: unknown.
static int64_t began_ns(const struct model *model)
{
    const struct result *now = model_is_now(model) ? model_answer(model, POLL_NOW) : NULL;
    int64_t began = 0;
    for (size_t row = 0; now && row < result_row_count(now); row++) {
        const int64_t at = result_integer(now, row, "as_of_ns", 0) -
                           result_integer(now, row, "window_ns", INT64_MAX);
        began = at > 0 && (began == 0 || at < began) ? at : began;
    }
    return began;
}

static struct plot_chart new_chart(const struct model *model, const char *title, enum unit unit)
{
    const struct queries_span span = span_of(model);
    struct plot_chart chart = {.title = title,
                               .unit = unit,
                               .step_ns = span.step_ns,
                               .length_ns = span.until_ns - span.since_ns,
                               .until_ns = span.until_ns,
                               .began_ns = began_ns(model)};
    if (chart.length_ns != window_length_ns(&model->scope.window))
        (void)view_age_text(chart.since, (double)chart.length_ns / 1e9);
    else
        (void)snprintf(chart.since, sizeof chart.since, "%s", window_text(&model->scope.window));
    return chart;
}

void view_chart_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *title, enum polled_query polled, enum unit unit)
{
    const bool is_ttft = polled == POLL_TTFT;
    struct plot_point points[POINTS_MAX], errors[POINTS_MAX];
    struct plot_chart chart = new_chart(model, title, unit);
    chart.is_rate = polled == POLL_TOKENS;
    chart.points = points;
    chart.count = read_points(points, model_answer(model, polled), is_ttft ? "p50" : "mean",
                              is_ttft ? "p95" : NULL);
    chart.marks = errors;
    chart.mark_count =
        is_ttft ? read_points(errors, model_answer(model, POLL_ERRORS), "mean", NULL) : 0;
    if (title)
        plot_chart(canvas, area, &chart);
    else
        plot_chart_line(canvas, area, &chart);
}

void view_charts_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    const int rows = view_charts_rows(model, rect_below(area, -1));
    struct rect charts = {area.x, area.y, area.width, rows}, left, right;
    if (rows == 0)
        return;
    layout_beside(charts, (area.width - CHART_GAP) / 2, CHART_GAP, &left, &right);
    const bool has_both = right.width >= CHART_LEAST_WIDTH;
    view_chart_draw(model, canvas, has_both ? left : charts, "tok/s", POLL_TOKENS, UNIT_TOKEN_RATE);
    if (has_both)
        view_chart_draw(model, canvas, right, "TTFT p50 p95 (✗ failed)", POLL_TTFT, UNIT_DURATION);
}

void view_charts_line(const struct model *model, struct canvas *canvas, struct rect area)
{
    view_chart_draw(model, canvas, area, NULL, POLL_TOKENS, UNIT_TOKEN_RATE);
}

size_t view_machine_draw(const struct model *model, struct canvas *canvas, struct rect area, int y,
                         const struct result *result, size_t row)
{
    enum { CHART_ROWS = 7, TEXT_SIZE = 640 };
    const bool is_host = result_integer(result, row, "is_host", 0) == 1;
    const struct result *fleet = is_host ? model_answer(model, POLL_FLEET) : NULL;
    struct rect charts = {area.x, area.y + y, area.width, CHART_ROWS}, left, right;
    size_t lines = 0;
    layout_beside(charts, (area.width - CHART_GAP) / 2, CHART_GAP, &left, &right);
    if (view_has_charts(model)) {
        view_chart_draw(model, canvas, left, is_host ? "CPU %" : "GPU %", POLL_MACHINE_USE,
                        UNIT_RATIO);
        view_chart_draw(model, canvas, right, is_host ? "memory pressure %" : "power W",
                        POLL_MACHINE_MORE, is_host ? UNIT_RATIO : UNIT_WATTS);
        lines += CHART_ROWS + 1;
    }
    for (size_t i = 0; fleet && i < result_row_count(fleet); i++) {
        char text[TEXT_SIZE];
        if (!value_is_same(result_get(fleet, i, "host"), result_get(result, row, "host")) ||
            !view_fleet_text(text, sizeof text, fleet, i, true))
            continue;
        canvas_fit(canvas, area, 1, y + (int)lines++, area.width - 1, ALIGN_LEFT, STYLE_WARNING,
                   text);
    }
    return lines;
}
