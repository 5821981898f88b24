// The setup screen: settings, and the columns of the table that has the keys.
#include "client/tui/view.h"

#include <stdio.h>

#include "client/tui/settings/settings.h"

enum { WIDTH = 56, FRAME = 2, HINT = 1, INDENT = 2, LABEL = 24 };

struct view_box view_setup_box(const struct model *model, struct rect area)
{
    const size_t rows = settings_rows(model);
    return view_box_of(layout_centre(area, WIDTH, (int)rows + FRAME + HINT), HINT, rows,
                       model->settings.cursor);
}

void view_setup_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    const struct view_box shown = view_setup_box(model, area);
    const struct rect box = shown.area;
    view_draw_box(canvas, box, STYLE_FOCUS, " Setup ");
    for (size_t row = shown.first; row < shown.end; row++) {
        const int y = 1 + (int)(row - shown.first);
        const char *label, *value;
        char text[64];
        settings_row(model, row, &label, &value);
        (void)snprintf(text, sizeof text, "< %s >", value);
        canvas_fit(canvas, box, INDENT, y, LABEL, ALIGN_LEFT, STYLE_PLAIN, label);
        canvas_fit(canvas, box, INDENT + LABEL + 1, y, box.width - 2 * INDENT - LABEL - 1,
                   ALIGN_LEFT, STYLE_KEY, text);
        if (row == model->settings.cursor)
            canvas_reverse(canvas, (struct rect){box.x + 1, box.y + y, box.width - 2, 1});
    }
    const char *error = model->settings.error;
    canvas_fit(canvas, box, INDENT, box.height - 1 - HINT, box.width - 2 * INDENT, ALIGN_LEFT,
               error[0] ? STYLE_BAD : STYLE_DIM,
               error[0] ? error : "Left Right: change   Esc: done, and saved");
}
