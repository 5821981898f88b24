// The period that the dashboard's figures cover: its length, and its end, which is now or fixed.
// No I/O, no global state.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"

struct window {
    unsigned length;  // index of the lengths, below window_lengths()
    int64_t until_ns; // where it ends, wall clock; 0: now, whenever that is
};

// The dashboard's first window.
#define WINDOW_DEFAULT ((struct window){.length = 1})

// The number of lengths: 1m, 5m, 1h, 24h, 7d, 30d, all.
unsigned window_lengths(void);

// The window's length in nanoseconds; 0: all time.
int64_t window_length_ns(const struct window *window);

// Its length as text: "5m", "all".  Static.
const char *window_text(const struct window *window);

// True if it ends now.
bool window_is_live(const struct window *window);

// Changes the length by `step` places of the list, at most to its ends; the end of the window
// stays.
void window_zoom(struct window *window, int step);

// Moves it by `step` halves of its length, at most to now; then it is live again, as it is where
// the next half would go beyond now.  All time stays.
void window_pan(struct window *window, int step, int64_t now_ns);

// Sets the filter's times, unless it has some of its own.
void window_apply(const struct window *window, int64_t now_ns, struct query_filter *filter);

// The step of time that divides a length of time into 200 points of a chart at most; 0 if that is
// not positive.
int64_t window_step_ns(int64_t length_ns);
