// The question before the store is cleared.
#include "client/tui/view.h"

#include <stdio.h>

static void draw_box(struct canvas *canvas, struct rect box, const char *title)
{
    enum { ACROSS = 0x2500, DOWN = 0x2502 };
    int right = box.width - 1, bottom = box.height - 1;
    canvas_blank(canvas, box);
    canvas_line(canvas, box, 0, 0, box.width, STYLE_BAD, ACROSS);
    canvas_line(canvas, box, 0, bottom, box.width, STYLE_BAD, ACROSS);
    for (int y = 1; y < bottom; y++) {
        (void)canvas_put_code(canvas, box, 0, y, STYLE_BAD, DOWN);
        (void)canvas_put_code(canvas, box, right, y, STYLE_BAD, DOWN);
    }
    (void)canvas_put(canvas, box, 0, 0, STYLE_BAD, "┌");
    (void)canvas_put(canvas, box, right, 0, STYLE_BAD, "┐");
    (void)canvas_put(canvas, box, 0, bottom, STYLE_BAD, "└");
    (void)canvas_put(canvas, box, right, bottom, STYLE_BAD, "┘");
    (void)canvas_put(canvas, box, 2, 0, STYLE_BAD, title);
}

void view_confirm_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    enum { WIDTH = 58, HEIGHT = 8, INDENT = 3 };
    struct rect box = layout_centre(area, WIDTH, HEIGHT);
    draw_box(canvas, box, " Clear ");

    char counts[128];
    (void)snprintf(counts, sizeof counts, "It holds: inferences %.0f, loads %.0f, operations %.0f.",
                   model_figure(model, "inferences", 0), model_figure(model, "loads", 0),
                   model_figure(model, "operations", 0));
    const char *const lines[] = {
        model->filtered ? "Forget the records that the filter covers?"
                        : "Forget all records of the store?",
        model->filtered ? "" : counts,
        "Runs and their ledgers stay.  There is no way back.",
    };
    for (int i = 0; i < 3; i++)
        canvas_fit(canvas, box, INDENT, 1 + i, box.width - 2 * INDENT, ALIGN_LEFT,
                   i == 0 ? STYLE_STRONG : STYLE_PLAIN, lines[i]);

    struct segments answers = {.separator = "    "};
    segments_add_key(&answers, 0, "y", "yes, clear");
    segments_add_key(&answers, 0, "n", "no, keep");
    (void)segments_draw(&answers, canvas, box, INDENT, HEIGHT - 3, box.width - 2 * INDENT,
                        ALIGN_LEFT);
}
