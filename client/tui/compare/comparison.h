// What the view Compare sets beside each other: two windows, models or hosts, or a baseline and the
// window.  No I/O, no global state.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/tui/window.h"
#include "common/core/query/query.h"

enum comparison_kind {
    COMPARISON_WINDOWS,  // the window, and one of the same length before it
    COMPARISON_MODELS,   // two models, over the window
    COMPARISON_HOSTS,    // two hosts, likewise
    COMPARISON_BASELINE, // a baseline and the window
    COMPARISON_BASELINES,
    COMPARISON_KINDS
};

struct comparison {
    enum comparison_kind kind;
    unsigned earlier;               // COMPARISON_WINDOWS: below comparison_earlier_count()
    char names[2][QUERY_TEXT_SIZE]; // side A, which is "before", and side B; "": the window
};

// The choice of a comparison, by steps (chooser.h).
enum chooser_step { CHOOSER_KIND, CHOOSER_A, CHOOSER_B };

struct chooser {
    enum chooser_step step;
    size_t cursor;           // among the choices of the step
    struct comparison draft; // what was chosen in the steps before
};

enum { CHOOSER_MAX = 128 };

// What a kind is called.  Static.
const char *comparison_kind_text(enum comparison_kind kind);

// How many sides of the kind have a name to choose.
unsigned comparison_sides(enum comparison_kind kind);

// How much earlier the other window can be: the number of choices, and their texts.  Static.
unsigned comparison_earlier_count(void);
const char *comparison_earlier_text(unsigned earlier);

// Sets the sides of a query COMPARE.  query->filter is that of the dashboard, with its window.
// Returns false if there is no window before it: of all time, or of a filter's own times.
bool comparison_fill(const struct comparison *comparison, const struct window *window,
                     struct query *query);
