#include "client/tui/layout.h"

#include <assert.h>

bool layout_fits(int width, int height)
{
    return width >= LAYOUT_WIDTH_MIN && height >= LAYOUT_HEIGHT_MIN;
}

struct layout_frame layout_frame(int width, int height, bool banner)
{
    struct layout_frame frame = {0};
    if (!layout_fits(width, height))
        return frame;
    frame.title = (struct rect){0, 0, width, 1};
    frame.status = (struct rect){0, 1, width, 1};
    int top = 2;
    if (banner)
        frame.banner = (struct rect){0, top++, width, 1};
    frame.body = (struct rect){0, top, width, height - top - 1};
    frame.footer = (struct rect){0, height - 1, width, 1};
    return frame;
}

// Gives every panel that is shown its least height; leaves out the highest ranks
// until that fits.  Returns the rows left.
static int give_minimum(int height, const struct layout_want *wants, unsigned count, int *heights)
{
    int used = 0;
    for (unsigned i = 0; i < count; i++) {
        heights[i] = wants[i].minimum;
        used += heights[i];
    }
    while (used > height) {
        unsigned last = count;
        for (unsigned i = 0; i < count; i++)
            if (heights[i] > 0 && (last == count || wants[i].rank > wants[last].rank))
                last = i;
        if (last == count)
            break;
        used -= heights[last];
        heights[last] = 0;
    }
    return height - used;
}

// Hands out the rows left, in order of rank, up to what is wanted.
static int give_wanted(int left, const struct layout_want *wants, unsigned count, int *heights)
{
    bool given[LAYOUT_STACK_MAX] = {false};
    for (unsigned n = 0; n < count; n++) {
        unsigned next = count;
        for (unsigned i = 0; i < count; i++)
            if (!given[i] && (next == count || wants[i].rank < wants[next].rank))
                next = i;
        given[next] = true;
        int more = wants[next].wanted - heights[next];
        if (heights[next] == 0 || more <= 0)
            continue;
        if (more > left)
            more = left;
        heights[next] += more;
        left -= more;
    }
    return left;
}

void layout_stack(struct rect area, const struct layout_want *wants, unsigned count,
                  struct rect *out)
{
    assert(count <= LAYOUT_STACK_MAX);
    int heights[LAYOUT_STACK_MAX] = {0};
    int height = area.height > 0 ? area.height : 0;
    int left = give_minimum(height, wants, count, heights);
    left = give_wanted(left, wants, count, heights);
    for (unsigned i = 0; i < count; i++) {
        if (wants[i].grows && heights[i] > 0) {
            heights[i] += left;
            left = 0;
        }
    }
    int y = area.y;
    for (unsigned i = 0; i < count; i++) {
        out[i] =
            heights[i] > 0 ? (struct rect){area.x, y, area.width, heights[i]} : (struct rect){0};
        y += heights[i];
    }
}

void layout_beside(struct rect area, int left_width, int gap, struct rect *left, struct rect *right)
{
    if (left_width > area.width)
        left_width = area.width;
    int right_width = area.width - left_width - gap;
    *left = (struct rect){area.x, area.y, left_width, area.height};
    *right = (struct rect){0};
    if (right_width > 0)
        *right = (struct rect){area.x + left_width + gap, area.y, right_width, area.height};
}

int layout_rows(int height, const struct layout_step *steps)
{
    while (steps->height > 0 && height < steps->height)
        steps++;
    return steps->rows;
}

struct rect layout_centre(struct rect area, int width, int height)
{
    if (width > area.width)
        width = area.width;
    if (height > area.height)
        height = area.height;
    return (struct rect){area.x + (area.width - width) / 2, area.y + (area.height - height) / 2,
                         width, height};
}
