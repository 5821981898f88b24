// Rectangles of character cells.  Pure.
#ifndef INFERSTAT_TUI_RECT_H
#define INFERSTAT_TUI_RECT_H

#include <stdbool.h>

// Empty if width or height is not above zero.
struct rect {
    int x, y, width, height;
};

static inline bool rect_is_empty(struct rect rect)
{
    return rect.width <= 0 || rect.height <= 0;
}

static inline bool rect_contains(struct rect rect, int x, int y)
{
    return x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height;
}

// The rectangle without its first `rows` rows.
static inline struct rect rect_below(struct rect rect, int rows)
{
    return (struct rect){rect.x, rect.y + rows, rect.width, rect.height - rows};
}

#endif
