#include "client/tui/segments.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/core/base/glyph.h"

void segments_add(struct segments *segments, unsigned rank, enum style style, const char *format,
                  ...)
{
    if (segments->count == SEGMENTS_MAX)
        return;
    struct segment *item = &segments->items[segments->count++];
    *item = (struct segment){.rank = rank, .style = style};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(item->text, sizeof item->text, format, args);
    va_end(args);
}

void segments_add_name(struct segments *segments, unsigned rank, enum style style, int width_max,
                       const char *name)
{
    unsigned before = segments->count;
    segments_add(segments, rank, style, "%s", name);
    if (segments->count > before)
        segments->items[before].width_max = width_max;
}

void segments_add_key(struct segments *segments, unsigned rank, const char *key, const char *text)
{
    unsigned before = segments->count;
    segments_add(segments, rank, STYLE_PLAIN, "%s", text);
    if (segments->count > before)
        (void)snprintf(segments->items[before].key, SEGMENT_KEY_SIZE, "%s", key);
}

static int text_width(const struct segment *item)
{
    int width = glyph_text_width(item->text);
    return item->width_max > 0 && width > item->width_max ? item->width_max : width;
}

// Columns of the facts ranked below `limit`, separators between them included.
static int total_width(const struct segments *segments, unsigned limit)
{
    int width = 0, shown = 0;
    for (unsigned i = 0; i < segments->count; i++) {
        if (segments->items[i].rank >= limit)
            continue;
        const char *key = segments->items[i].key;
        width += text_width(&segments->items[i]) + (key[0] ? glyph_text_width(key) + 1 : 0);
        shown++;
    }
    if (shown > 1)
        width += (shown - 1) * glyph_text_width(segments->separator);
    return width;
}

// The rank from which on facts are left out, so that the others fit.
static unsigned limit_for(const struct segments *segments, int width)
{
    unsigned limit = 0;
    for (unsigned i = 0; i < segments->count; i++)
        if (segments->items[i].rank >= limit)
            limit = segments->items[i].rank + 1;
    while (limit > 1 && total_width(segments, limit) > width)
        limit--;
    return limit;
}

static int draw_item(const struct segment *item, struct canvas *canvas, struct rect area, int x,
                     int y, int end)
{
    int start = x;
    if (item->key[0]) {
        x += canvas_put(canvas, area, x, y, STYLE_KEY, item->key);
        x++;
    }
    int room = end - x, needed = text_width(item);
    canvas_fit(canvas, area, x, y, room < needed ? room : needed, ALIGN_LEFT, item->style,
               item->text);
    return x + needed - start;
}

int segments_total_width(const struct segments *segments)
{
    return total_width(segments, UINT_MAX);
}

int segments_width(const struct segments *segments, int width)
{
    if (width <= 0)
        return 0;
    const int used = total_width(segments, limit_for(segments, width));
    return used < width ? used : width;
}

int segments_draw(const struct segments *segments, struct canvas *canvas, struct rect area, int x,
                  int y, int width, enum align align)
{
    if (width <= 0)
        return 0;
    const unsigned limit = limit_for(segments, width);
    const int used = segments_width(segments, width);
    if (align == ALIGN_RIGHT)
        x += width - used;

    const int end = x + used;
    bool first = true;
    for (unsigned i = 0; i < segments->count && x < end; i++) {
        const struct segment *item = &segments->items[i];
        if (item->rank >= limit)
            continue;
        if (!first)
            x += canvas_put(canvas, area, x, y, STYLE_DIM, segments->separator);
        first = false;
        x += draw_item(item, canvas, area, x, y, end);
    }
    return used;
}
