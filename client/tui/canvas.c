#include "client/tui/canvas.h"

#include <assert.h>
#include <stdlib.h>

#include "common/core/base/glyph.h"

enum { ELLIPSIS = 0x2026 };

static const struct cell empty_cell = {.code = ' ', .width = 1, .style = STYLE_PLAIN};

void canvas_init(struct canvas *canvas, bool ascii)
{
    *canvas = (struct canvas){.ascii = ascii};
}

void canvas_deinit(struct canvas *canvas)
{
    free(canvas->cells);
    *canvas = (struct canvas){0};
}

static int side(int length)
{
    if (length < 0)
        return 0;
    return length > CANVAS_SIDE_MAX ? CANVAS_SIDE_MAX : length;
}

enum status canvas_resize(struct canvas *canvas, int width, int height)
{
    width = side(width);
    height = side(height);
    size_t count = (size_t)width * (size_t)height;
    struct cell *cells = malloc((count ? count : 1) * sizeof *cells);
    free(canvas->cells);
    canvas->cells = cells;
    canvas->width = cells ? width : 0;
    canvas->height = cells ? height : 0;
    if (!cells)
        return STATUS_NOMEM;
    canvas_clear(canvas);
    return STATUS_OK;
}

void canvas_clear(struct canvas *canvas)
{
    size_t count = (size_t)canvas->width * (size_t)canvas->height;
    canvas->clip = canvas_area(canvas);
    for (size_t i = 0; i < count; i++)
        canvas->cells[i] = empty_cell;
}

struct rect canvas_area(const struct canvas *canvas)
{
    return (struct rect){0, 0, canvas->width, canvas->height};
}

static struct cell *cell_at(const struct canvas *canvas, int x, int y)
{
    assert(rect_contains(canvas_area(canvas), x, y));
    return &canvas->cells[(size_t)y * (size_t)canvas->width + (size_t)x];
}

const struct cell *canvas_cell(const struct canvas *canvas, int x, int y)
{
    return cell_at(canvas, x, y);
}

// Empties a cell; where it is half of a wide character, the other half too.
static void empty(struct canvas *canvas, int x, int y)
{
    struct cell *cell = cell_at(canvas, x, y);
    if (cell->width == 2 && x + 1 < canvas->width)
        *cell_at(canvas, x + 1, y) = empty_cell;
    if (cell->width == 0 && x > 0)
        *cell_at(canvas, x - 1, y) = empty_cell;
    *cell = empty_cell;
}

static bool visible(const struct canvas *canvas, struct rect area, int x, int y)
{
    return rect_contains(area, x, y) && rect_contains(canvas->clip, x, y) &&
           rect_contains(canvas_area(canvas), x, y);
}

int canvas_put_code(struct canvas *canvas, struct rect area, int x, int y, enum style style,
                    uint32_t code)
{
    int width = glyph_width(code);
    if (width == 0 || !canvas)
        return width;
    if (canvas->ascii) { // a wide character keeps its two columns
        code = glyph_ascii(code);
        if (width == 2)
            (void)canvas_put_code(canvas, area, x + 1, y, style, code);
    }
    int columns = canvas->ascii ? 1 : width;
    int left = area.x + x, row = area.y + y;
    if (!visible(canvas, area, left, row) || !visible(canvas, area, left + columns - 1, row))
        return width;

    for (int i = 0; i < columns; i++)
        empty(canvas, left + i, row);
    *cell_at(canvas, left, row) =
        (struct cell){.code = code, .width = (uint8_t)columns, .style = (uint8_t)style};
    if (columns == 2)
        *cell_at(canvas, left + 1, row) = (struct cell){.style = (uint8_t)style};
    return width;
}

int canvas_put(struct canvas *canvas, struct rect area, int x, int y, enum style style,
               const char *text)
{
    int start = x;
    for (uint32_t code; (code = glyph_next(&text)) != 0;)
        x += canvas_put_code(canvas, area, x, y, style, code);
    return x - start;
}

void canvas_fit(struct canvas *canvas, struct rect area, int x, int y, int width, enum align align,
                enum style style, const char *text)
{
    if (width <= 0)
        return;
    int needed = glyph_text_width(text);
    if (needed <= width) {
        int shift = align == ALIGN_RIGHT ? width - needed : 0;
        (void)canvas_put(canvas, area, x + shift, y, style, text);
        return;
    }
    int end = x + width - 1; // where the ellipsis stands, at the latest
    for (uint32_t code; (code = glyph_next(&text)) != 0;) {
        if (x + glyph_width(code) > end)
            break;
        x += canvas_put_code(canvas, area, x, y, style, code);
    }
    (void)canvas_put_code(canvas, area, x, y, style, ELLIPSIS);
}

void canvas_fit_name(struct canvas *canvas, struct rect area, int x, int y, int width,
                     enum style style, const char *name)
{
    const int needed = glyph_text_width(name), behind = width / 2;
    if (needed <= width || behind == 0) {
        canvas_fit(canvas, area, x, y, width, ALIGN_LEFT, style, name);
        return;
    }
    canvas_fit(canvas, area, x, y, width - behind, ALIGN_LEFT, style, name);
    int left_out = needed - behind; // columns before what is shown of the end
    const char *end = name, *next = name;
    while (left_out > 0) {
        left_out -= glyph_width(glyph_next(&next));
        end = next;
    }
    (void)canvas_put(canvas, area, x + width - behind - left_out, y, style, end);
}

static int word_width(const char *text)
{
    int width = 0;
    for (uint32_t code; (code = glyph_next(&text)) != 0 && code != ' ';)
        width += glyph_width(code);
    return width;
}

int canvas_wrap(struct canvas *canvas, struct rect area, int x, int y, enum style style,
                const char *text)
{
    const int width = area.width - x;
    int line = 0, at = 0;
    bool begins = true; // a word
    for (uint32_t code; width > 0 && *text;) {
        const int word = begins ? word_width(text) : 0;
        code = glyph_next(&text);
        const int columns = glyph_width(code);
        if (at + columns > width || (at > 0 && at + word > width && word <= width)) {
            line++;
            at = 0;
        }
        begins = code == ' ';
        if (begins && at == 0 && line > 0)
            continue; // no line begins with the space between words
        (void)canvas_put_code(canvas, area, x + at, y + line, style, code);
        at += columns;
    }
    return line + 1;
}

void canvas_line(struct canvas *canvas, struct rect area, int x, int y, int width, enum style style,
                 uint32_t code)
{
    for (int i = 0; i < width; i++)
        (void)canvas_put_code(canvas, area, x + i, y, style, code);
}

void canvas_reverse(struct canvas *canvas, struct rect area)
{
    for (int y = area.y; y < area.y + area.height; y++)
        for (int x = area.x; x < area.x + area.width; x++)
            if (rect_contains(canvas_area(canvas), x, y))
                cell_at(canvas, x, y)->reversed = true;
}

void canvas_blank(struct canvas *canvas, struct rect area)
{
    for (int y = 0; y < area.height; y++)
        canvas_line(canvas, area, 0, y, area.width, STYLE_PLAIN, ' ');
}
