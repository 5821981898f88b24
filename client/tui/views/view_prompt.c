// The line in which the user says what is to be shown.
#include "client/tui/view.h"

#include <string.h>

#include "client/tui/prompt.h"
#include "common/core/base/text.h"
#include "common/core/base/glyph.h"

enum { WIDTH = 76, HEIGHT = 7, INDENT = 2 };

// The columns that the first `size` bytes of the text take.
static int columns_of(const char *text, size_t size)
{
    char part[PROMPT_SIZE];
    memcpy(part, text, size);
    part[size] = '\0';
    return glyph_text_width(part);
}

// The first byte shown, so that the cursor is among `width` columns.
static size_t first_shown(const struct prompt *prompt, int width)
{
    struct prompt back = {.size = prompt->size, .cursor = prompt->cursor};
    memcpy(back.text, prompt->text, prompt->size);
    size_t first = prompt->cursor;
    int used = 1; // the cursor's own
    while (first > 0) {
        prompt_left(&back);
        used += columns_of(prompt->text + back.cursor, first - back.cursor);
        if (used > width)
            break;
        first = back.cursor;
    }
    return first;
}

// A wide character whose second half has no room is left out, and a rest behind the
// line's end is cut by the area.
static void draw_text(const struct prompt *prompt, struct canvas *canvas, struct rect line,
                      size_t first)
{
    enum { CURSOR = 0x2581 };
    (void)canvas_put(canvas, line, 0, 0, STYLE_PLAIN, prompt->text + first);
    const int x = columns_of(prompt->text + first, prompt->cursor - first);
    const char *behind = prompt->text + prompt->cursor;
    char under[5] = "";
    const size_t size = text_character(behind, strlen(behind), NULL);
    memcpy(under, behind, size);
    if (under[0] != '\0' && under[0] != ' ')
        (void)canvas_put(canvas, line, x, 0, STYLE_FOCUS, under);
    else
        (void)canvas_put_code(canvas, line, x, 0, STYLE_FOCUS, CURSOR);
}

// Marks under what is wrong, as far as it is shown.
static void draw_marks(const struct prompt *prompt, struct canvas *canvas, struct rect line,
                       size_t first)
{
    size_t from = prompt->place.at, end = from + prompt->place.size;
    if (!prompt->error[0] || end > prompt->size)
        return;
    if (from < first)
        from = first;
    const int x = columns_of(prompt->text + first, from - first);
    const int width = end > from ? columns_of(prompt->text + from, end - from) : 1;
    canvas_line(canvas, line, x, 0, width > 0 ? width : 1, STYLE_BAD, '~');
    (void)canvas_put_code(canvas, line, x, 0, STYLE_BAD, '^');
}

void view_prompt_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    const struct prompt *prompt = &model->prompt;
    struct rect box = layout_centre(area, WIDTH, HEIGHT);
    view_draw_box(canvas, box, STYLE_FOCUS, " Show only ");
    const int width = box.width - 2 * INDENT;
    const size_t first = first_shown(prompt, width);
    struct rect line = {box.x + INDENT, box.y + 1, width, 1};
    draw_text(prompt, canvas, line, first);
    line.y++;
    draw_marks(prompt, canvas, line, first);
    static const char hint[] = "where model=NAME and host=NAME since 1h until 10m";
    canvas_fit(canvas, box, INDENT, 3, width, ALIGN_LEFT, prompt->error[0] ? STYLE_BAD : STYLE_DIM,
               prompt->error[0] ? prompt->error : hint);
    struct segments answers = {.separator = "    "};
    segments_add_key(&answers, 0, "Enter", "show only these");
    segments_add_key(&answers, 1, "Esc", "as at the start");
    (void)segments_draw(&answers, canvas, box, INDENT, HEIGHT - 2, width, ALIGN_LEFT);
}
