// The choice of what is compared, as a list in a box.
#include "client/tui/view.h"

#include <stdio.h>
#include <string.h>

#include "client/tui/compare/chooser.h"
#include "common/core/base/text.h"

void view_chooser_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { WIDTH = 60, BORDERS = 2, HEIGHT_MAX = 20, INDENT = 2 };
    static const char *const titles[] = {" Compare ", " Compare: A, which is before ",
                                         " Compare: with B "};
    const struct chooser *chooser = &model->chooser;
    const char *choices[CHOOSER_MAX];
    const size_t count = chooser_choices(model, choices);
    const int wanted = (int)(count > 0 ? count : 1) + BORDERS;
    const struct rect box = layout_centre(area, WIDTH, wanted < HEIGHT_MAX ? wanted : HEIGHT_MAX);
    const size_t page = box.height > BORDERS ? (size_t)(box.height - BORDERS) : 0;
    const bool is_of_windows =
        chooser->step == CHOOSER_A && chooser->draft.kind == COMPARISON_WINDOWS;
    view_draw_box(canvas, box, STYLE_FOCUS,
                  is_of_windows ? " Compare the window with " : titles[chooser->step]);
    if (count == 0)
        canvas_fit(canvas, box, INDENT, 1, box.width - 2 * INDENT, ALIGN_LEFT, STYLE_DIM,
                   "none known (baselines: inferstat baseline save NAME)");
    const size_t cursor = chooser->cursor < count ? chooser->cursor : 0;
    const size_t top = cursor >= page ? cursor - page + 1 : 0;
    for (size_t i = top; i < count && i < top + page; i++) {
        char text[QUERY_TEXT_SIZE];
        const int y = 1 + (int)(i - top);
        (void)text_escape(text, sizeof text, choices[i], strlen(choices[i]));
        canvas_fit_name(canvas, box, INDENT, y, box.width - 2 * INDENT, STYLE_PLAIN, text);
        if (i == cursor)
            canvas_reverse(canvas, (struct rect){box.x + 1, box.y + y, box.width - BORDERS, 1});
    }
}
