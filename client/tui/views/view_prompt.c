// The line in which the user says what is to be shown, searched for or cleared.
#include "client/tui/view.h"

#include <stdio.h>
#include <string.h>

#include "client/tui/prompt/prompt.h"
#include "common/core/base/text.h"
#include "common/core/base/glyph.h"

enum { WIDTH = 76, HEIGHT = 7, INDENT = 2, QUESTION_ROWS = 3 };

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

// The lines above the text: what is cleared, how many records that is, and the word to type, whole;
// returns their number.  Draws them if there is a canvas.
static int draw_question(const struct model *model, struct canvas *canvas, struct rect box)
{
    char what[PROMPT_SIZE + 32], counts[96];
    const int width = box.width - 2 * INDENT;
    const bool narrows = query_filter_narrows(&model->scope.filter);
    if (narrows)
        (void)snprintf(what, sizeof what, "Clear the records of: %s", model->filter_text);
    else
        (void)snprintf(what, sizeof what, "Clear all records of the store");
    if (!model->answers[POLL_SUMMARY].known)
        (void)snprintf(counts, sizeof counts, "asking how many these are ...");
    else
        (void)snprintf(counts, sizeof counts,
                       "%s: requests %.0f, loads %.0f, pipelines %.0f, operations %.0f",
                       narrows ? "These are" : "It holds", model_figure(model, "inferences", 0),
                       model_figure(model, "loads", 0), model_figure(model, "pipelines", 0),
                       model_figure(model, "operations", 0));
    const struct rect inside = {box.x + INDENT, box.y, width, box.height};
    canvas_fit(canvas, inside, 0, 1, width, ALIGN_LEFT, STYLE_STRONG, what);
    canvas_fit(canvas, inside, 0, 2, width, ALIGN_LEFT, STYLE_PLAIN, counts);
    canvas_fit(canvas, inside, 0, 3, width, ALIGN_LEFT, STYLE_PLAIN,
               "And samples; runs and ledgers stay.  To clear, type:");
    return QUESTION_ROWS +
           canvas_wrap(canvas, inside, 0, QUESTION_ROWS + 1, STYLE_STRONG, model_clear_word(model));
}

void view_prompt_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const struct {
        const char *title, *hint, *enter;
    } texts[] = {
        [OVERLAY_FILTER] = {" Show only ", "a text of rows, or: model=NAME and host=NAME since 1h",
                            "show only these"},
        [OVERLAY_SEARCH] = {" Search ", "a text in any value of a row", "search"},
        [OVERLAY_EXPORT] = {" Write to a file ", ".csv .json: the rows; .txt .svg: the screen",
                            "write"},
        [OVERLAY_ACKNOWLEDGE] = {" Acknowledge ", "why, for those who look at it next",
                                 "acknowledge"},
        [OVERLAY_SILENCE] = {" Silence for two hours ",
                             "why; hooks are not called for this rule and group until then",
                             "silence"},
        [OVERLAY_CLEAR] = {" Clear ", "there is no way back", "clear"},
    };
    const struct prompt *prompt = &model->prompt;
    const bool clears = model->overlay == OVERLAY_CLEAR;
    const struct rect widest = layout_centre(area, WIDTH, HEIGHT);
    const int above = clears ? draw_question(model, NULL, widest) : 0;
    const struct rect box = layout_centre(area, WIDTH, HEIGHT + above);
    view_draw_box(canvas, box, clears ? STYLE_BAD : STYLE_FOCUS, texts[model->overlay].title);
    const int width = box.width - 2 * INDENT;
    const size_t first = first_shown(prompt, width);
    if (clears)
        (void)draw_question(model, canvas, box);
    struct rect line = {box.x + INDENT, box.y + above + 1, width, 1};
    draw_text(prompt, canvas, line, first);
    line.y++;
    if (!clears)
        draw_marks(prompt, canvas, line, first);
    canvas_fit(canvas, box, INDENT, above + 3, width, ALIGN_LEFT,
               prompt->error[0]     ? STYLE_BAD
               : prompt->choices[0] ? STYLE_PLAIN
                                    : STYLE_DIM,
               prompt->error[0]     ? prompt->error
               : prompt->choices[0] ? prompt->choices
                                    : texts[model->overlay].hint);
    struct segments answers = {.separator = "    "};
    segments_add_key(&answers, 0, "Enter", texts[model->overlay].enter);
    segments_add_key(&answers, 1, "Esc", "cancel");
    (void)segments_draw(&answers, canvas, box, INDENT, above + HEIGHT - 2, width, ALIGN_LEFT);
}
