// Sparklines, bars and the waterfall of stages.  Pure.
#ifndef INFERSTAT_TUI_PLOTS_H
#define INFERSTAT_TUI_PLOTS_H

#include <stddef.h>

#include "client/tui/canvas.h"

// Draws one column per value, the newest (last) at the right edge; older values that do not
// fit are omitted.  A value of `top` fills the area's height, 0 is the base line; values
// above 0 are always visible.  NaN leaves its column empty.
void plot_sparkline(struct canvas *canvas, struct rect area, const double *values, size_t count,
                    double top);

// Draws a bar in row `y` from `start` to `end`, both 0..1 of the `width` columns
// from `x`.  At least a minimal bar is visible.
void plot_bar(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
              double start, double end);

// One part of a whole.  Text is borrowed.
struct plot_stage {
    const char *name;
    double start_ns; // from the start of the whole
    double duration_ns;
};

// Rows of a waterfall of `count` stages: one each, and one for `other`, the time that no
// stage covers.
size_t plot_waterfall_rows(size_t count);

// Draws the rows from `first` on, as many as fit the area: name, a bar at the
// stage's place in the whole, duration, share of `total_ns`.
void plot_waterfall(struct canvas *canvas, struct rect area, const struct plot_stage *stages,
                    size_t count, double total_ns, size_t first);

#endif
