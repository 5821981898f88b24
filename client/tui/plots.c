#include "client/tui/plots.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/glyph.h"
#include "common/core/stats/sketch.h"

enum {
    EIGHTHS = 8,           // of a cell that block characters can fill
    LOWER_EIGHTH = 0x2581, // U+2581..U+2588: one to eight eighths from below
    LEFT_EIGHTH = 0x258F,  // U+258F..U+2588: one to eight eighths from the left
    RIGHT_HALF = 0x2590,
    LIGHT_SHADE = 0x2591,
};

static long at_most(long value, long most)
{
    return value < most ? value : most;
}

void plot_sparkline(struct canvas *canvas, struct rect area, const double *values, size_t count,
                    double top)
{
    if (rect_is_empty(area) || !(top > 0))
        return;
    size_t shown = count < (size_t)area.width ? count : (size_t)area.width;
    long full = (long)area.height * EIGHTHS;
    for (size_t i = 0; i < shown; i++) {
        double value = values[count - shown + i];
        if (!isfinite(value) || value <= 0)
            continue;
        long eighths = lround(fmin(value / top, 1) * (double)full);
        if (eighths < 1)
            eighths = 1;
        int x = area.width - (int)shown + (int)i;
        for (int y = area.height - 1; y >= 0 && eighths > 0; y--, eighths -= EIGHTHS)
            (void)canvas_put_code(canvas, area, x, y, STYLE_BAR,
                                  (uint32_t)(LOWER_EIGHTH + at_most(eighths, EIGHTHS) - 1));
    }
}

// ---- Charts over time -------------------------------------------------------------------

enum { SCALE_WIDTH = 9, CHART_WIDTH_MAX = 512 };

struct chart_columns {
    int64_t column_ns, last; // number of the last column, counted from time 0
    int64_t until_ns;        // end of the last step that is over
    int64_t began_ns;
    int width;
    double values[CHART_WIDTH_MAX], above[CHART_WIDTH_MAX];
    double weights[CHART_WIDTH_MAX]; // of values: their number, or of rates their nanoseconds
    double top;                      // the highest of all
};

// The column of a time; -1: outside.
static int column_of(const struct chart_columns *columns, int64_t time_ns)
{
    const int64_t back = columns->last - time_ns / columns->column_ns;
    return back < 0 || back >= columns->width ? -1 : columns->width - 1 - (int)back;
}

// What a period has of the chart's time, from `since_ns` on.
static double part_of(const struct chart_columns *columns, int64_t since_ns, int64_t start_ns,
                      int64_t length_ns)
{
    const int64_t from = start_ns > since_ns ? start_ns : since_ns;
    const int64_t end = start_ns + length_ns;
    const int64_t to = end < columns->until_ns ? end : columns->until_ns;
    return to > from ? (double)(to - from) : 0;
}

static void average(struct chart_columns *out, const struct plot_chart *chart, int64_t since_ns)
{
    const int64_t began_ns = out->began_ns > since_ns ? out->began_ns : since_ns;
    for (int i = 0; i < out->width; i++) {
        const int64_t start_ns = (out->last - (out->width - 1 - i)) * out->column_ns;
        const double weight =
            chart->is_rate ? part_of(out, began_ns, start_ns, out->column_ns) : out->weights[i];
        out->values[i] = out->weights[i] > 0 && weight > 0 ? out->values[i] / weight : (double)NAN;
        out->top = fmax(out->top, fmax(out->values[i], out->above[i]));
    }
}

// As many columns as fit into `cells`, of as few steps as that takes.  A step that is not over yet
// would look like a collapse: the chart ends before it.
static struct chart_columns new_columns(const struct plot_chart *chart, int cells)
{
    const int64_t steps = chart->length_ns / chart->step_ns;
    int64_t per = (steps + cells - 1) / cells, count = steps;
    per = per > 1 ? per : 1;
    while (per > 1 && (count = (steps + per - 1) / per + 1) > cells && per < steps)
        per++; // the first has a part
    struct chart_columns columns = {.column_ns = per * chart->step_ns,
                                    .until_ns = chart->until_ns / chart->step_ns * chart->step_ns,
                                    .began_ns = chart->began_ns,
                                    .width = count > 0 ? (int)at_most(count, cells) : 1};
    columns.last = (columns.until_ns - 1) / columns.column_ns;
    return columns;
}

// Puts the points into the columns of their times, the newest at the right.
static void gather(struct chart_columns *out, const struct plot_chart *chart, int cells)
{
    *out = new_columns(chart, cells);
    const int64_t since_ns = out->until_ns - chart->length_ns;
    bool has_any = false;
    for (int i = 0; i < out->width; i++)
        out->above[i] = NAN;
    for (size_t i = 0; i < chart->count; i++) {
        const struct plot_point *point = &chart->points[i];
        const int at = column_of(out, point->time_ns);
        // The rate of a step that the window cuts is that of an arbitrarily short time.
        const bool is_cut = chart->is_rate && point->time_ns < chart->until_ns - chart->length_ns;
        if (at < 0 || point->time_ns >= out->until_ns || is_cut)
            continue;
        out->above[at] = fmax(out->above[at], point->above); // of a NaN and a number: the number
        if (!isfinite(point->value))
            continue;
        const int64_t of_ns = point->of_ns > 0 ? point->of_ns : chart->step_ns;
        const double weight = chart->is_rate ? (double)of_ns : 1;
        if (point->time_ns + chart->step_ns <= out->began_ns)
            out->began_ns = 0; // others began before
        // The first step begins with the first process; the newest one may end before its time.
        if (chart->is_rate && of_ns < chart->step_ns && !has_any)
            out->began_ns = point->time_ns + chart->step_ns - of_ns;
        has_any = true;
        out->values[at] += point->value * weight;
        out->weights[at] += weight;
    }
    average(out, chart, since_ns);
}

static void draw_failures(struct canvas *canvas, struct rect area, const struct plot_chart *chart,
                          const struct chart_columns *columns, int cells)
{
    for (size_t i = 0; i < chart->mark_count; i++) {
        const int at = column_of(columns, chart->marks[i].time_ns);
        if (at >= 0 && chart->marks[i].value > 0)
            (void)canvas_put(canvas, area,
                             SCALE_WIDTH + (at * cells + columns->width - 1) / columns->width,
                             area.height - 1, STYLE_BAD, "✗");
    }
}

// Parts of the column behind the bar: what the second value has above the first.
static void draw_above(struct canvas *canvas, struct rect area, int x, double value, double above,
                       double top)
{
    const double full = area.height;
    const int from = isfinite(value) ? (int)ceil(value / top * full) : 0;
    for (int row = from; row < (int)lround(above / top * full); row++)
        (void)canvas_put_code(canvas, area, x, area.height - 1 - row, STYLE_BAR_REST, LIGHT_SHADE);
}

void plot_chart(struct canvas *canvas, struct rect area, const struct plot_chart *chart)
{
    char text[UNIT_TEXT_SIZE], from[UNIT_TEXT_SIZE + 16];
    struct rect bars = {area.x + SCALE_WIDTH, area.y + 1, area.width - SCALE_WIDTH,
                        area.height - 2};
    struct chart_columns columns;
    if (rect_is_empty(bars) || chart->step_ns <= 0)
        return;
    if (bars.width > CHART_WIDTH_MAX)
        bars.width = CHART_WIDTH_MAX;
    gather(&columns, chart, bars.width);
    (void)canvas_put(canvas, area, SCALE_WIDTH, 0, STYLE_TITLE, chart->title);
    canvas_line(canvas, area, SCALE_WIDTH, area.height - 1, bars.width, STYLE_DIM, 0x2500);
    (void)snprintf(from, sizeof from, " %s before ", chart->since);
    draw_failures(canvas, area, chart, &columns, bars.width);
    (void)canvas_put(canvas, area, SCALE_WIDTH, area.height - 1, STYLE_DIM, from);
    if (columns.top <= 0)
        return;
    (void)unit_format(text, chart->unit, columns.top);
    text[strcspn(text, " ")] = '\0'; // the title has the unit
    canvas_fit(canvas, area, 0, 1, SCALE_WIDTH - 1, ALIGN_RIGHT, STYLE_DIM, text);
    if (bars.height > 1)
        canvas_fit(canvas, area, 0, area.height - 2, SCALE_WIDTH - 1, ALIGN_RIGHT, STYLE_DIM, "0");
    double cells[CHART_WIDTH_MAX];
    for (int x = 0; x < bars.width; x++) { // columns are stretched to the whole width
        const int at = x * columns.width / bars.width;
        cells[x] = columns.values[at];
        draw_above(canvas, bars, x, cells[x], columns.above[at], columns.top);
    }
    plot_sparkline(canvas, bars, cells, (size_t)bars.width, columns.top);
}

void plot_chart_line(struct canvas *canvas, struct rect area, const struct plot_chart *chart)
{
    struct chart_columns columns;
    double cells[CHART_WIDTH_MAX];
    const int width = (int)at_most(area.width, CHART_WIDTH_MAX);
    if (rect_is_empty(area) || chart->step_ns <= 0)
        return;
    gather(&columns, chart, width);
    for (int x = 0; x < width; x++)
        cells[x] = columns.values[x * columns.width / width];
    plot_sparkline(canvas, area, cells, (size_t)width, columns.top);
}

// ---- Histograms -------------------------------------------------------------------------

static const struct {
    const char *name;
    double q;
} marks[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
enum { MARKS = sizeof marks / sizeof *marks };

// The value at quantile `q`, as in sketch.h.
static double quantile_of(const struct plot_histogram *histogram, uint64_t all, double q)
{
    const uint64_t rank = sketch_rank(q, all);
    size_t i = 0;
    for (uint64_t below = histogram->counts[0]; below <= rank && i + 1 < histogram->count;)
        below += histogram->counts[++i];
    return histogram->values[i];
}

// The logarithmic scale of a histogram: `bins` bins of `cells` columns each.
struct histogram_scale {
    double low, octaves;
    int bins, cells;
};

// A bin is no narrower than what a sketch tells apart (sketch.h), so that there are no gaps.
static struct histogram_scale scale_of(const struct plot_histogram *histogram, int width)
{
    enum { PER_OCTAVE = SKETCH_PER_OCTAVE / 2 };
    const double most = histogram->values[histogram->count - 1];
    const double least = fmax(histogram->values[0], most / 0x1p20);
    struct histogram_scale scale = {least / 1.05, fmax(log2(most / least * 1.1), 1), width, 1};
    if (scale.octaves * PER_OCTAVE < width)
        scale.bins = (int)(scale.octaves * PER_OCTAVE);
    scale.cells = width / scale.bins;
    scale.bins = width / scale.cells;
    return scale;
}

static int bin_of(const struct histogram_scale *scale, double value)
{
    const double place = value > scale->low ? log2(value / scale->low) / scale->octaves : 0;
    const int bin = (int)(place * scale->bins);
    return bin < scale->bins ? bin : scale->bins - 1;
}

// The quantiles on the axis, and its ends where there is room.
static void draw_marks(struct canvas *canvas, struct rect area, const struct histogram_scale *scale,
                       const struct plot_histogram *histogram, const double quantiles[MARKS])
{
    enum { UP = 0x2534, NAME_WIDTH = 3 };
    const int y = area.height - 1;
    int x[MARKS + 1] = {[MARKS] = area.width};
    canvas_line(canvas, area, 0, y, area.width, STYLE_DIM, 0x2500);
    for (unsigned i = 0; i < MARKS; i++) {
        x[i] = bin_of(scale, quantiles[i]) * scale->cells + scale->cells / 2;
        (void)canvas_put_code(canvas, area, x[i], y, STYLE_WARNING, UP);
    }
    for (unsigned i = 0; i < MARKS; i++) { // at the right or left, where no other mark is
        unsigned next = i + 1;
        while (next < MARKS && x[next] == x[i])
            next++;
        if (x[i] + NAME_WIDTH < x[next] && (i == 0 || x[i] != x[i - 1]))
            (void)canvas_put(canvas, area, x[i] + 1, y, STYLE_WARNING, marks[i].name);
        else if (x[i] - NAME_WIDTH > (i > 0 ? x[i - 1] + NAME_WIDTH : 0))
            (void)canvas_put(canvas, area, x[i] - NAME_WIDTH, y, STYLE_WARNING, marks[i].name);
    }
    char text[UNIT_TEXT_SIZE];
    const double least = histogram->values[0], most = histogram->values[histogram->count - 1];
    const char *end = unit_format_rough(text, histogram->unit, least);
    if (least >= scale->low && (int)strlen(end) + NAME_WIDTH < x[0])
        (void)canvas_put(canvas, area, 0, y, STYLE_DIM, end);
    end = unit_format_rough(text, histogram->unit, most);
    const int last = (bin_of(scale, most) + 1) * scale->cells - (int)strlen(end);
    if (x[MARKS - 1] + NAME_WIDTH + 1 < last)
        (void)canvas_put(canvas, area, last, y, STYLE_DIM, end);
}

void plot_histogram(struct canvas *canvas, struct rect area, const struct plot_histogram *histogram)
{
    enum { NAME_WIDTH = 6 }; // "  p50 "
    char text[UNIT_TEXT_SIZE];
    double columns[CHART_WIDTH_MAX] = {0}, quantiles[MARKS], top = 0;
    uint64_t all = 0;
    struct rect bars = {area.x, area.y + 1, area.width, area.height - 2};
    for (size_t i = 0; i < histogram->count; i++)
        all += histogram->counts[i];
    if (rect_is_empty(bars) || all == 0 || !(histogram->values[histogram->count - 1] > 0))
        return;
    if (bars.width > CHART_WIDTH_MAX)
        bars.width = CHART_WIDTH_MAX;
    int x = canvas_put(canvas, area, 0, 0, STYLE_TITLE, histogram->title);
    for (unsigned i = 0; i < MARKS; i++) {
        quantiles[i] = quantile_of(histogram, all, marks[i].q);
        const char *value = unit_format_rough(text, histogram->unit, quantiles[i]);
        if (x + NAME_WIDTH + glyph_text_width(value) > area.width)
            continue; // a part of a number would be another one
        (void)canvas_put(canvas, area, x + 2, 0, STYLE_DIM, marks[i].name);
        x += NAME_WIDTH + canvas_put(canvas, area, x + NAME_WIDTH, 0, STYLE_STRONG, value);
    }
    const struct histogram_scale scale = scale_of(histogram, bars.width);
    for (size_t i = 0; i < histogram->count; i++) {
        const int from = bin_of(&scale, histogram->values[i]) * scale.cells;
        for (int cell = 0; cell < scale.cells; cell++)
            columns[from + cell] += (double)histogram->counts[i];
        top = fmax(top, columns[from]);
    }
    const struct rect shown = {bars.x, bars.y, scale.bins * scale.cells, bars.height};
    plot_sparkline(canvas, shown, columns, (size_t)shown.width, top);
    draw_marks(canvas, (struct rect){area.x, area.y, bars.width, area.height}, &scale, histogram,
               quantiles);
}

void plot_bar(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
              double start, double end)
{
    if (width <= 0 || !isfinite(start) || !isfinite(end))
        return;
    const long full = (long)width * EIGHTHS;
    const long from = at_most(lround(fmin(fmax(start, 0), 1) * (double)full), full - 1);
    long to = lround(fmin(fmax(end, 0), 1) * (double)full);
    if (to <= from)
        to = from + 1;

    for (long cell = from / EIGHTHS; cell * EIGHTHS < to; cell++) {
        long left = cell * EIGHTHS;
        long filled = to - left; // of this cell, from its left edge
        // No character leaves out less or more than half of a cell on the left.
        bool right_half = from - left >= EIGHTHS / 2 && filled >= EIGHTHS;
        (void)canvas_put_code(canvas, area, x + (int)cell, y, style,
                              right_half ? RIGHT_HALF
                                         : (uint32_t)(LEFT_EIGHTH - at_most(filled, EIGHTHS) + 1));
    }
}

// The part of the whole that no stage covers.
static double uncovered_ns(const struct plot_stage *stages, size_t count, double total_ns)
{
    double rest = total_ns;
    for (size_t i = 0; i < count; i++)
        rest -= stages[i].duration_ns;
    return rest > 0 ? rest : 0;
}

static bool covered(const struct plot_stage *stages, size_t count, double at_ns)
{
    for (size_t i = 0; i < count; i++)
        if (at_ns >= stages[i].start_ns && at_ns < stages[i].start_ns + stages[i].duration_ns)
            return true;
    return false;
}

struct waterfall_columns {
    int name, bar_at, bar, duration_at, duration, beside_at, beside, share_at, share;
};

static struct waterfall_columns waterfall_columns(struct rect area, const struct plot_stage *stages,
                                                  size_t count)
{
    struct waterfall_columns columns = {
        .name = glyph_text_width("other"), .duration = 8, .share = 8};
    for (size_t i = 0; i < count; i++) {
        int width = glyph_text_width(stages[i].name);
        if (width > columns.name)
            columns.name = width;
    }
    int most = area.width / 3; // a long name must not push the bars out
    if (columns.name > most)
        columns.name = most;
    for (size_t i = 0; i < count; i++)
        if (stages[i].beside_ns > 0)
            columns.beside = columns.duration;
    columns.share_at = area.width - columns.share;
    columns.beside_at = columns.share_at - columns.beside - (columns.beside > 0);
    columns.duration_at = columns.beside_at - columns.duration - 1;
    columns.bar_at = columns.name + 1;
    columns.bar = columns.duration_at - columns.bar_at - 1;
    return columns;
}

static void draw_figures(struct canvas *canvas, struct rect area,
                         const struct waterfall_columns *columns, int y, double duration_ns,
                         double beside_ns, double total_ns)
{
    char text[UNIT_TEXT_SIZE];
    // Worth a look: a fifth more or less, if that is a twentieth of the load.
    const double more_ns = beside_ns > 0 ? duration_ns - beside_ns : 0;
    const bool differs = fabs(more_ns) > 0.2 * beside_ns && fabs(more_ns) > 0.05 * total_ns;
    canvas_fit(canvas, area, columns->duration_at, y, columns->duration, ALIGN_RIGHT, STYLE_PLAIN,
               unit_format(text, UNIT_DURATION, duration_ns));
    if (columns->beside > 0) {
        if (!(beside_ns > 0))
            return;
        canvas_fit(canvas, area, columns->beside_at, y, columns->beside, ALIGN_RIGHT, STYLE_DIM,
                   unit_format(text, UNIT_DURATION, beside_ns));
        canvas_fit(canvas, area, columns->share_at, y, columns->share, ALIGN_RIGHT,
                   !differs      ? STYLE_DIM
                   : more_ns > 0 ? STYLE_WARNING
                                 : STYLE_GOOD,
                   unit_format_change(text, duration_ns / beside_ns));
        return;
    }
    double share = total_ns > 0 ? duration_ns / total_ns : (double)NAN;
    canvas_fit(canvas, area, columns->share_at, y, columns->share, ALIGN_RIGHT, STYLE_DIM,
               unit_format(text, UNIT_RATIO, share));
}

void plot_waterfall_headings(struct canvas *canvas, struct rect area, int y,
                             const struct plot_stage *stages, size_t count, const char *beside)
{
    const struct waterfall_columns columns = waterfall_columns(area, stages, count);
    canvas_fit(canvas, area, 0, y, columns.name, ALIGN_LEFT, STYLE_HEADING, "stage");
    canvas_fit(canvas, area, columns.duration_at, y, columns.duration, ALIGN_RIGHT, STYLE_HEADING,
               "took");
    if (columns.beside > 0)
        canvas_fit(canvas, area, columns.beside_at, y, columns.beside, ALIGN_RIGHT, STYLE_HEADING,
                   beside);
    canvas_fit(canvas, area, columns.share_at, y, columns.share, ALIGN_RIGHT, STYLE_HEADING,
               columns.beside > 0 ? "change" : "share");
}

static void draw_other(struct canvas *canvas, struct rect area,
                       const struct waterfall_columns *columns, int y,
                       const struct plot_stage *stages, size_t count, double total_ns,
                       double beside_ns)
{
    canvas_fit(canvas, area, 0, y, columns->name, ALIGN_LEFT, STYLE_DIM, "other");
    for (int i = 0; i < columns->bar; i++) {
        double middle = ((double)i + 0.5) / (double)columns->bar * total_ns;
        if (!covered(stages, count, middle))
            (void)canvas_put_code(canvas, area, columns->bar_at + i, y, STYLE_BAR_REST,
                                  LIGHT_SHADE);
    }
    draw_figures(canvas, area, columns, y, uncovered_ns(stages, count, total_ns), beside_ns,
                 total_ns);
}

void plot_waterfall(struct canvas *canvas, struct rect area, const struct plot_stage *stages,
                    size_t count, double total_ns, double other_beside_ns, size_t first)
{
    if (rect_is_empty(area))
        return;
    struct waterfall_columns columns = waterfall_columns(area, stages, count);
    for (int y = 0; y < area.height; y++) {
        size_t i = first + (size_t)y;
        if (i > count)
            return;
        if (i == count) {
            draw_other(canvas, area, &columns, y, stages, count, total_ns, other_beside_ns);
            return;
        }
        const struct plot_stage *stage = &stages[i];
        canvas_fit(canvas, area, 0, y, columns.name, ALIGN_LEFT, STYLE_PLAIN, stage->name);
        if (total_ns > 0)
            plot_bar(canvas, area, columns.bar_at, y, columns.bar, STYLE_BAR,
                     stage->start_ns / total_ns, (stage->start_ns + stage->duration_ns) / total_ns);
        draw_figures(canvas, area, &columns, y, stage->duration_ns, stage->beside_ns, total_ns);
    }
}
