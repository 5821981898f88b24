// Event handler of the dashboard (model-update-view): applies an event to the model and returns
// the actions to carry out.  Pure.
#ifndef INFERSTAT_TUI_UPDATE_H
#define INFERSTAT_TUI_UPDATE_H

#include <stdint.h>

#include "client/tui/model.h"

enum event_kind {
    EVENT_KEY,     // `code`
    EVENT_PRESS,   // the mouse's first button at `x`, `y`
    EVENT_WHEEL,   // the wheel at `x`, `y`, turned by `turn` rows
    EVENT_RESIZE,  // to `x` columns and `y` rows
    EVENT_TICK,    // the clock advances
    EVENT_ANSWER,  // `polled` was answered with `result` (may be NULL, see poller.h)
    EVENT_ROUND,   // a round of queries ended with `status`, `text`
    EVENT_CLEARED, // a clear ended with `status`, `text`, `cleared` records
};

// `now_ns` (monotonic) and `wall_now_ns` are set in every event.
struct event {
    enum event_kind kind;
    uint64_t now_ns;
    int64_t wall_now_ns;
    uint32_t code;
    int x, y, turn;
    enum polled_query polled;
    struct result *result; // model_update takes ownership
    enum status status;
    const char *text; // borrowed for the call; may be NULL
    uint64_t cleared;
};

// Actions for the caller, as a bit set.
enum effect {
    EFFECT_QUIT = 1 << 0,
    EFFECT_ASK = 1 << 1,     // send all queries now
    EFFECT_CLEAR = 1 << 2,   // clear the records that match the filter
    EFFECT_PACE = 1 << 3,    // apply the changed interval or pause
    EFFECT_REPAINT = 1 << 4, // redraw the whole screen
    EFFECT_FILTER = 1 << 5,  // apply the changed model->filter
};

// Applies an event; returns a bit set of enum effect.
unsigned model_update(struct model *model, const struct event *event);

#endif
