// All of the cursor's row: every value that is known, with its name.
#include "client/tui/view.h"

#include <stdio.h>
#include <string.h>

#include "common/core/base/glyph.h"
#include "common/core/query/result.h"

enum { NAME_WIDTH = 30, MARGIN = 1, TITLE_ROWS = 2 };

// The row that is shown; NULL if it is gone.
static const struct result *selected(const struct model *model, size_t *row)
{
    const unsigned focus = model->views[view_shown(model)].focus;
    const struct panel *panel = &view_current(model)->panels[focus];
    return view_selected(model, focus, row) ? model_answer(model, panel->polled) : NULL;
}

// The name of a column without its unit, which the value has: "ttft_ns" is "ttft".
static const char *bare_name(char *text, size_t size, const char *key)
{
    static const char *const units[] = {"_ns",    "_bytes",  "_ratio", "_celsius",
                                        "_watts", "_joules", "_hz"};
    (void)snprintf(text, size, "%s", key);
    const size_t length = strlen(text);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t unit = strlen(units[i]);
        if (length > unit && strcmp(text + length - unit, units[i]) == 0)
            text[length - unit] = '\0';
    }
    return text;
}

// Lines that a text takes in `width` columns.
static int lines_of(const char *text, int width)
{
    const int needed = glyph_text_width(text);
    return width > 0 && needed > width ? (needed + width - 1) / width : 1;
}

// Draws a text over several lines, from line `y` on.
static void draw_wrapped(struct canvas *canvas, struct rect area, int x, int y, const char *text)
{
    const int width = area.width - x;
    int at = 0;
    for (uint32_t code; width > 0 && (code = glyph_next(&text)) != 0;) {
        const int columns = glyph_width(code);
        if (at % width + columns > width)
            at += width - at % width;
        (void)canvas_put_code(canvas, area, x + at % width, y + at / width, STYLE_PLAIN, code);
        at += columns;
    }
}

// Draws what is not null from line `y` on, if there is a canvas; returns the number of lines.
static size_t lay_out(const struct model *model, struct canvas *canvas, struct rect area, int y)
{
    size_t row, lines = TITLE_ROWS;
    const struct result *result = selected(model, &row);
    const int x = MARGIN + NAME_WIDTH + 1;
    if (!result) {
        if (canvas)
            (void)canvas_put(canvas, area, MARGIN, y, STYLE_WARNING,
                             "The row is no longer among those that are shown (Esc: back)");
        return 1;
    }
    if (canvas)
        (void)canvas_put(canvas, area, MARGIN, y, STYLE_TITLE, "Detail (Esc: back)");
    for (unsigned column = 0; column < result_column_count(result); column++) {
        char value[GRID_CELL_SIZE], name[64];
        if (result_cell(result, row, column).type == VALUE_NULL)
            continue;
        grid_value_text(value, result, row, column, 0);
        if (canvas) {
            canvas_fit(canvas, area, MARGIN, y + (int)lines, NAME_WIDTH, ALIGN_LEFT, STYLE_DIM,
                       bare_name(name, sizeof name, result_column(result, column)->key));
            draw_wrapped(canvas, area, x, y + (int)lines, value);
        }
        lines += (size_t)lines_of(value, area.width - x);
    }
    return lines;
}

size_t view_detail_rows(const struct model *model, struct rect area)
{
    return lay_out(model, NULL, area, 0);
}

void view_detail_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    (void)lay_out(model, canvas, area, -(int)model->help_top);
}
