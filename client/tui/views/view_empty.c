// What stands in place of a view while the store has no records.
#include "client/tui/view.h"

#include <assert.h>
#include <stdio.h>

void view_empty_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *promise, const struct view_line *how, int count)
{
    enum { INTRODUCTION = 4 };
    char first[MODEL_NAME_SIZE + 64], where[MODEL_NAME_SIZE + 64];
    assert(count <= VIEW_HOW_MAX);
    (void)snprintf(first, sizeof first, "No records in %s yet.", model->name);
    if (model->is_file) {
        promise = "A collector writes into the file, and workers report to it:";
        (void)snprintf(where, sizeof where, "  inferstatd --db %s", model->name);
        count = 0;
    } else {
        (void)snprintf(where, sizeof where, "  export INFERSTAT_COLLECTOR=%s", model->name);
    }
    struct view_line lines[INTRODUCTION + VIEW_HOW_MAX] = {
        {STYLE_STRONG, first}, {STYLE_PLAIN, ""}, {STYLE_PLAIN, promise}, {STYLE_STRONG, where}};
    for (int i = 0; i < count; i++)
        lines[INTRODUCTION + i] = how[i];
    view_draw_lines(canvas, area, lines, INTRODUCTION + count);
}
