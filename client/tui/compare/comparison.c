#include "client/tui/compare/comparison.h"

#include <stdint.h>
#include <stdio.h>

#define HOUR_NS INT64_C(3600000000000)

static const struct {
    const char *text;
    unsigned sides;
} kinds[COMPARISON_KINDS] = {
    [COMPARISON_WINDOWS] = {"two windows", 0},
    [COMPARISON_MODELS] = {"two models", 2},
    [COMPARISON_HOSTS] = {"two hosts", 2},
    [COMPARISON_BASELINE] = {"a baseline and the window", 1},
    [COMPARISON_BASELINES] = {"two baselines", 2},
};

static const struct {
    const char *text;
    int64_t ns; // 0: the window's length
} earliers[] = {{"the window before it", 0},
                {"the same an hour earlier", HOUR_NS},
                {"the same a day earlier", 24 * HOUR_NS},
                {"the same a week earlier", 168 * HOUR_NS}};

const char *comparison_kind_text(enum comparison_kind kind)
{
    return kinds[kind].text;
}

unsigned comparison_sides(enum comparison_kind kind)
{
    return kinds[kind].sides;
}

unsigned comparison_earlier_count(void)
{
    return sizeof earliers / sizeof *earliers;
}

const char *comparison_earlier_text(unsigned earlier)
{
    return earliers[earlier].text;
}

// The window is side B, one of its length before it side A.  Never overlap.
static bool fill_windows(const struct comparison *comparison, const struct window *window,
                         struct query *query)
{
    const int64_t length_ns = window_length_ns(window);
    const int64_t asked_ns = earliers[comparison->earlier].ns;
    const int64_t earlier_ns = asked_ns > length_ns ? asked_ns : length_ns;
    if (length_ns == 0 || query->filter.since_ns <= earlier_ns)
        return false;
    query->compare.other = query->filter;
    query->filter.since_ns -= earlier_ns;
    query->filter.until_ns = query->filter.since_ns + length_ns;
    return true;
}

bool comparison_fill(const struct comparison *comparison, const struct window *window,
                     struct query *query)
{
    const enum comparison_kind kind = comparison->kind;
    const enum query_dimension by = kind == COMPARISON_MODELS ? QUERY_BY_MODEL : QUERY_BY_HOST;
    query->compare.force = true; // the view says how the sides differ
    if (kind == COMPARISON_WINDOWS)
        return fill_windows(comparison, window, query);
    query->compare.other = query->filter;
    if (kind == COMPARISON_MODELS || kind == COMPARISON_HOSTS) {
        (void)snprintf(query->filter.by[by], QUERY_TEXT_SIZE, "%s", comparison->names[0]);
        (void)snprintf(query->compare.other.by[by], QUERY_TEXT_SIZE, "%s", comparison->names[1]);
        return true;
    }
    query->filter = (struct query_filter){0}; // a baseline has no filter
    if (kind == COMPARISON_BASELINES)
        query->compare.other = query->filter;
    for (unsigned side = 0; side < kinds[kind].sides; side++)
        (void)snprintf(query->compare.baseline[side], QUERY_KEY_SIZE, "%.*s", QUERY_KEY_SIZE - 1,
                       comparison->names[side]);
    return true;
}
