// Plots on a canvas: sparklines, charts over time, bars, and waterfall charts of the stages of
// model loads.  Used by the views.  No I/O, no global state.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/tui/canvas.h"
#include "common/core/base/unit.h"

// Draws a sparkline: one column per value, with the newest (last) value at the right edge of
// `area`. Omits older values that do not fit.  The y axis goes from 0 to `top`.  A value above 0 is
// always visible; NaN leaves a column empty.
void plot_sparkline(struct canvas *canvas, struct rect area, const double *values, size_t count,
                    double top);

// A value over time.
struct plot_point {
    int64_t time_ns; // start of its step
    double value;
    double above;  // a second value, at least as high, drawn behind; NaN: none
    int64_t of_ns; // of a rate: its time, up to the step's end; 0: the whole step
};

// A chart over time: each column is a step or several whole ones, stretched to the chart's width,
// so that it moves by one column at a time; a step that is not over is left out.  Columns of
// several steps show the mean of their values, and the highest `above`.
struct plot_chart {
    const char *title;
    char since[UNIT_TEXT_SIZE]; // its length as text: "5m"
    enum unit unit;
    bool is_rate; // a step without a point has the value 0; a column has the mean
                  // of the time from `began_ns` on
    const struct plot_point *points; // of rising times
    size_t count;
    int64_t step_ns, length_ns; // of the window
    int64_t until_ns;           // its end
    int64_t began_ns;           // nothing could be measured before; 0: unknown
    // Columns of steps with a value above 0 are marked below.  NULL: none.
    const struct plot_point *marks;
    size_t mark_count;
};

// Draws the chart with its title, a scale at its left and its period below; the y axis goes from 0
// to the highest value.
void plot_chart(struct canvas *canvas, struct rect area, const struct plot_chart *chart);

// Draws its values alone, over all of `area`.
void plot_chart_line(struct canvas *canvas, struct rect area, const struct plot_chart *chart);

// Draws a horizontal bar in row `y` of `area`.  The bar's scale is the `width` columns from `x` on;
// `start` and `end` are fractions (0..1) of this width.  An empty bar is drawn with minimum width.
void plot_bar(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
              double start, double end);

// How many of some values are near each of `values`, ascending; both have `count` elements.
struct plot_histogram {
    const char *title;
    enum unit unit;
    const double *values;
    const uint64_t *counts;
    size_t count;
};

// Draws a histogram over a logarithmic scale of values, with its title and the percentiles p50,
// p95 and p99 above, which are marked below it, as are the least and the greatest value.
void plot_histogram(struct canvas *canvas, struct rect area,
                    const struct plot_histogram *histogram);

struct plot_stage {
    char name[96];
    double start_ns; // from the start of the load
    double duration_ns;
    double beside_ns; // what it is compared with; 0: nothing
};

// Draws the rows of a waterfall chart, from row `first` on, that fit into `area`: one row per
// stage, and the row "other" for the time outside all stages.  A row has the stage's name, a bar
// from its start to its end, its duration, and its share of `total_ns`, the duration of the load;
// in place of the share, what it is compared with and the change, if a stage is compared.
// `other_beside_ns` is what the row "other" is compared with.
void plot_waterfall(struct canvas *canvas, struct rect area, const struct plot_stage *stages,
                    size_t count, double total_ns, double other_beside_ns, size_t first);

// Draws the headings of its columns in line `y`; `beside` is what stages are compared with.
void plot_waterfall_headings(struct canvas *canvas, struct rect area, int y,
                             const struct plot_stage *stages, size_t count, const char *beside);
