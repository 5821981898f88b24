// The question before the store is cleared.
#include "client/tui/view.h"

#include <stdio.h>

void view_confirm_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { WIDTH = 58, HEIGHT = 9, INDENT = 3 };
    struct rect box = layout_centre(area, WIDTH, HEIGHT);
    view_draw_box(canvas, box, STYLE_BAD, " Clear ");

    char counts[80], others[96], question[PROMPT_SIZE + 32];
    (void)snprintf(counts, sizeof counts, "%s: inferences %.0f, pipelines %.0f, loads %.0f,",
                   model->filtered ? "These are" : "It holds", model_figure(model, "inferences", 0),
                   model_figure(model, "pipelines", 0), model_figure(model, "loads", 0));
    (void)snprintf(others, sizeof others, "operations %.0f, and samples of devices and processes.",
                   model_figure(model, "operations", 0));
    (void)snprintf(question, sizeof question, "Clear the records of: %s?", model->filter_text);
    const char *const lines[] = {
        model->filtered ? question : "Clear all records of the store?",
        counts,
        others,
        "Runs and their ledgers stay.  There is no way back.",
    };
    for (int i = 0; i < (int)(sizeof lines / sizeof *lines); i++)
        canvas_fit(canvas, box, INDENT, 1 + i, box.width - 2 * INDENT, ALIGN_LEFT,
                   i == 0 ? STYLE_STRONG : STYLE_PLAIN, lines[i]);

    struct segments answers = {.separator = "    "};
    segments_add_key(&answers, 0, "y", "yes, clear");
    segments_add_key(&answers, 0, "n", "no, keep");
    (void)segments_draw(&answers, canvas, box, INDENT, HEIGHT - 3, box.width - 2 * INDENT,
                        ALIGN_LEFT);
}
