// Event handler of the dashboard (the update of model-view-update): applies an event to the model
// and returns the effects that the caller must carry out.  No I/O, no global state.
#pragma once

#include <stdint.h>

#include "client/tui/model.h"

// Kinds of events.  The comments name the members of struct event that the kind uses.
enum event_kind {
    EVENT_KEY,     // the key `code` was pressed
    EVENT_PRESS,   // the mouse's first button was pressed at `x`, `y`
    EVENT_WHEEL,   // the mouse's wheel was turned by `turn` rows at `x`, `y`
    EVENT_RESIZE,  // the screen now has `x` columns and `y` rows
    EVENT_TICK,    // time has passed
    EVENT_ANSWER,  // the query `polled` was answered with `result` (may be NULL, see poller.h);
                   // of another generation it is dropped
    EVENT_ROUND,   // a round of queries (poller.h) ended with `status` and the message `text`
    EVENT_CHANGED, // a change of the store ended with `status`, the message `text` and `cleared`
                   // deleted records
};

struct event {
    enum event_kind kind;
    uint64_t now_ns;     // monotonic clock; set in every event
    int64_t wall_now_ns; // wall clock; set in every event
    uint32_t code;       // as in key_bindings.h
    int x, y, turn;
    enum polled_query polled;
    uint32_t generation;   // of the query, when it was asked
    struct result *result; // model_update takes ownership
    enum status status;
    const char *text; // borrowed for the call; may be NULL
    uint64_t cleared;
};

// Effects for the caller to carry out; a bit set.
enum effect {
    EFFECT_QUIT = 1 << 0,    // end the dashboard
    EFFECT_ASK = 1 << 1,     // send the view's queries now
    EFFECT_CHANGE = 1 << 2,  // send the query model->change
    EFFECT_PACE = 1 << 3,    // apply the changed interval or pause
    EFFECT_REPAINT = 1 << 4, // redraw the whole screen
    EFFECT_SCOPE = 1 << 5,   // apply the changed model->scope
    EFFECT_EXPORT = 1 << 7,  // write the file that model->prompt names
    EFFECT_LOOK = 1 << 8,    // apply the changed colours and zone of model->settings
    EFFECT_SAVE = 1 << 9,    // write the changed settings to their file
    EFFECT_SUBJECT = 1 << 6, // send the queries model->asked now
};

// Sets the filter that the command line gives; NULL: none.
void model_set_filter(struct model *model, const struct query_filter *filter);

// Notes how the export to the file of model->prompt has ended, which has so many rows (0: the
// screen).  After STATUS_BUSY, as the file exists, the prompt asks whether to replace it: once,
// also if it is written again later.
void model_end_export(struct model *model, enum status status, const char *why, size_t rows);

// True if the file of model->prompt may be replaced.
bool model_may_replace(const struct model *model);

// Applies `event` to `model`; returns a bit set of enum effect.
unsigned model_update(struct model *model, const struct event *event);
