// The setup screen: settings, and the columns of the table that has the keys.
#include "client/tui/view.h"

#include <stdio.h>

#include "client/tui/settings/settings.h"

enum { WIDTH = 56, FRAME = 2, HINT = 1, INDENT = 2, LABEL = 24 };

static struct rect box_of(const struct model *model, struct rect area)
{
    return layout_centre(area, WIDTH, (int)settings_rows(model) + FRAME + HINT);
}

// The first row that is shown, so that the cursor's is.
static size_t first_row(const struct model *model, struct rect box)
{
    const size_t page = (size_t)(box.height - FRAME - HINT);
    return model->settings.cursor >= page ? model->settings.cursor - page + 1 : 0;
}

bool view_setup_row_at(const struct model *model, struct rect area, int x, int y, size_t *row)
{
    const struct rect box = box_of(model, area);
    *row = first_row(model, box) + (size_t)(y - box.y - 1);
    return rect_contains(box, x, y) && y > box.y && y < box.y + box.height - 1 - HINT &&
           *row < settings_rows(model);
}

void view_setup_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    const struct rect box = box_of(model, area);
    const size_t first = first_row(model, box), rows = settings_rows(model);
    view_draw_box(canvas, box, STYLE_FOCUS, " Setup ");
    for (int y = 1; y < box.height - 1 - HINT && first + (size_t)y - 1 < rows; y++) {
        const size_t row = first + (size_t)y - 1;
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
