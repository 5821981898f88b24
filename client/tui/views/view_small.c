// What is shown on a screen too small for anything else.
#include "client/tui/view.h"

#include <stdio.h>

void view_small_draw(struct canvas *canvas)
{
    char size[64], least[64];
    (void)snprintf(size, sizeof size, "it is %d x %d,", canvas->width, canvas->height);
    (void)snprintf(least, sizeof least, "needed is %d x %d", LAYOUT_WIDTH_MIN, LAYOUT_HEIGHT_MIN);
    const struct view_line lines[] = {
        {STYLE_STRONG, "terminal too small:"},
        {STYLE_PLAIN, size},
        {STYLE_PLAIN, least},
        {STYLE_PLAIN, "q quits"},
    };
    view_draw_lines(canvas, canvas_area(canvas), lines, 4);
}
