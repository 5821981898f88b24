// The choice of what is compared, as a list in a box.
#include "client/tui/view.h"

#include <stdio.h>
#include <string.h>

#include "client/tui/compare/chooser.h"
#include "common/core/base/text.h"

enum { WIDTH = 60, BORDERS = 2, HEIGHT_MAX = 20, INDENT = 2 };

struct view_box view_chooser_box(const struct model *model, struct rect area)
{
    const char *choices[CHOOSER_MAX];
    const size_t count = chooser_choices(model, choices);
    const int wanted = (int)(count > 0 ? count : 1) + BORDERS;
    const struct rect box = layout_centre(area, WIDTH, wanted < HEIGHT_MAX ? wanted : HEIGHT_MAX);
    return view_box_of(box, 0, count, model->chooser.cursor < count ? model->chooser.cursor : 0);
}

void view_chooser_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const char *const titles[] = {" Compare ", " Compare: A, which is before ",
                                         " Compare: with B "};
    const struct chooser *chooser = &model->chooser;
    const char *choices[CHOOSER_MAX];
    const size_t count = chooser_choices(model, choices);
    const struct view_box shown = view_chooser_box(model, area);
    const struct rect box = shown.area;
    const bool is_of_windows =
        chooser->step == CHOOSER_A && chooser->draft.kind == COMPARISON_WINDOWS;
    view_draw_box(canvas, box, STYLE_FOCUS,
                  is_of_windows ? " Compare the window with " : titles[chooser->step]);
    if (count == 0)
        canvas_fit(canvas, box, INDENT, 1, box.width - 2 * INDENT, ALIGN_LEFT, STYLE_DIM,
                   "none known (baselines: inferstat baseline save NAME)");
    for (size_t i = shown.first; i < shown.end; i++) {
        char text[QUERY_TEXT_SIZE];
        const int y = 1 + (int)(i - shown.first);
        (void)text_escape(text, sizeof text, choices[i], strlen(choices[i]));
        canvas_fit_name(canvas, box, INDENT, y, box.width - 2 * INDENT, STYLE_PLAIN, text);
        if (i == (chooser->cursor < count ? chooser->cursor : 0))
            canvas_reverse(canvas, (struct rect){box.x + 1, box.y + y, box.width - BORDERS, 1});
    }
}
