// Plots on a canvas: sparklines, bars and waterfall charts of load stages.  Pure.
#ifndef INFERSTAT_TUI_PLOTS_H
#define INFERSTAT_TUI_PLOTS_H

#include <stddef.h>

#include "client/tui/canvas.h"

// Draws one column per value, the newest (last) at the right edge; omits older values that do not
// fit.  The y axis is 0..`top`; a value above 0 is always visible.  NaN leaves its column empty.
void plot_sparkline(struct canvas *canvas, struct rect area, const double *values, size_t count,
                    double top);

// Draws a bar in row `y` from `start` to `end`, which are fractions (0..1) of the `width` columns
// from `x` on.  Even an empty bar is drawn with its minimum width.
void plot_bar(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
              double start, double end);

// One stage of a load.
struct plot_stage {
    char name[96];
    double start_ns; // from the start of the load
    double duration_ns;
};

// Rows of a waterfall chart: one per stage, and one, "other", for the time outside all stages.
size_t plot_waterfall_rows(size_t count);

// Draws the rows from `first` on that fit the area: name, a bar from the stage's start to its end,
// duration, share of `total_ns` (the load's duration).
void plot_waterfall(struct canvas *canvas, struct rect area, const struct plot_stage *stages,
                    size_t count, double total_ns, size_t first);

#endif
