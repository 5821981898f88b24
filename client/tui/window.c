#include "client/tui/window.h"

#define SECOND_NS INT64_C(1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS   (60 * MINUTE_NS)
#define DAY_NS    (24 * HOUR_NS)

static const struct {
    const char *text;
    int64_t length_ns;
} lengths[] = {
    {"1m", MINUTE_NS},  {"5m", 5 * MINUTE_NS}, {"1h", HOUR_NS}, {"24h", DAY_NS},
    {"7d", 7 * DAY_NS}, {"30d", 30 * DAY_NS},  {"all", 0},
};

enum { LENGTHS = sizeof lengths / sizeof *lengths };

unsigned window_lengths(void)
{
    return LENGTHS;
}

int64_t window_length_ns(const struct window *window)
{
    return lengths[window->length].length_ns;
}

const char *window_text(const struct window *window)
{
    return lengths[window->length].text;
}

bool window_is_live(const struct window *window)
{
    return window->until_ns == 0;
}

void window_zoom(struct window *window, int step)
{
    const int length = (int)window->length + step;
    window->length = length < 0 ? 0 : length >= LENGTHS ? LENGTHS - 1 : (unsigned)length;
    if (window_length_ns(window) == 0)
        window->until_ns = 0; // all time has no end
}

void window_pan(struct window *window, int step, int64_t now_ns)
{
    const int64_t length_ns = window_length_ns(window);
    const int64_t end_ns = window_is_live(window) ? now_ns : window->until_ns;
    const int64_t half_ns = length_ns / 2, until_ns = end_ns + step * half_ns;
    const int64_t live_ns = step > 0 ? now_ns - half_ns + 1 : now_ns; // now has gone on meanwhile
    if (length_ns > 0)
        window->until_ns = until_ns >= live_ns ? 0 : until_ns > length_ns ? until_ns : length_ns;
}

void window_apply(const struct window *window, int64_t now_ns, struct query_filter *filter)
{
    const int64_t length_ns = window_length_ns(window);
    if (filter->since_ns != 0 || filter->until_ns != 0 || length_ns == 0)
        return;
    filter->until_ns = window->until_ns;
    filter->since_ns = (window_is_live(window) ? now_ns : window->until_ns) - length_ns;
}

int64_t window_step_ns(int64_t length_ns)
{
    static const int64_t steps[] = {SECOND_NS,      2 * SECOND_NS, 10 * SECOND_NS, MINUTE_NS,
                                    10 * MINUTE_NS, HOUR_NS,       6 * HOUR_NS,    DAY_NS};
    enum { POINTS = 200 };
    if (length_ns <= 0)
        return 0;
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++)
        if (length_ns / steps[i] <= POINTS)
            return steps[i];
    return (length_ns / DAY_NS / POINTS + 1) * DAY_NS;
}
