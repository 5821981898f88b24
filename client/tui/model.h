// All that the dashboard knows: the state views draw from.  Pure; owned by the
// caller's thread.  update.h changes it.
#ifndef INFERSTAT_TUI_MODEL_H
#define INFERSTAT_TUI_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/asks.h"
#include "client/tui/grid.h"
#include "client/tui/prompt.h"
#include "common/core/error.h"
#include "common/core/query.h"
#include "common/core/result.h"

enum { MODEL_NAME_SIZE = 512, MODEL_NOTICE_SIZE = 256, MODEL_VIEWS_MAX = 9, MODEL_PANELS_MAX = 8 };

// Whether whoever answers is there.
enum contact {
    CONTACT_NONE, // not asked to the end yet
    CONTACT_OK,   // the last round of asks was answered
    CONTACT_LOST, // nobody answers
    CONTACT_FAULT // somebody answers, but not with what was asked for
};

// What lies over the view.
enum overlay { OVERLAY_NONE, OVERLAY_HELP, OVERLAY_CLEAR, OVERLAY_FILTER };

// The last answer to an ask.
struct model_answer {
    struct result *result; // owned; NULL: none yet, or nothing to ask
    bool known;            // answered at least once
};

// Which panel of a view has the keys, and what was done to each.
struct view_state {
    unsigned focus;
    bool enlarged; // the focused panel alone
    struct grid_state panels[MODEL_PANELS_MAX];
};

struct model {
    // Fixed for the dashboard's life.
    char name[MODEL_NAME_SIZE]; // who answers: an address or a file; escaped
    bool is_file;
    bool readonly;
    struct query_filter given; // what the command line asked for
    query_when *when;          // reads times; its context is the wall clock, an int64_t

    int width, height; // of the screen

    unsigned view;
    struct view_state views[MODEL_VIEWS_MAX];
    enum overlay overlay;
    size_t help_top; // first row of help shown

    struct query_filter filter;    // what is shown
    bool filtered;                 // that is a part of the records only
    char filter_text[PROMPT_SIZE]; // the same in words; "": everything
    struct prompt prompt;          // while OVERLAY_FILTER is open

    struct model_answer answers[ASK_COUNT];
    uint64_t answered_ns;   // when the last answer came; 0: never
    int64_t answered_at_ns; // the same by the wall clock
    enum contact contact;
    char fault[ERROR_TEXT_SIZE]; // what the last round failed with; escaped

    bool paused;
    double interval_seconds;
    char notice[MODEL_NOTICE_SIZE]; // a word about what the user did; escaped
    uint64_t notice_until_ns;

    uint64_t now_ns;     // monotonic clock
    int64_t wall_now_ns; // wall clock
};

// `name` is escaped and cut.
void model_init(struct model *model, const char *name, double interval_seconds);
void model_deinit(struct model *model);

// Shows what the filter covers, from now on or as the command line asked for.
void model_filter(struct model *model, const struct query_filter *filter, const char *text);

// The last answer to an ask, NULL when there is none.
const struct result *model_answer(const struct model *model, enum ask ask);

// A figure of the summary, `absent` where there is none.
double model_figure(const struct model *model, const char *key, double absent);

// Whether the store is known to hold no run: not where a filter may be why.
bool model_store_is_empty(const struct model *model);

// Records known to be lost.
int64_t model_lost(const struct model *model);

// Seconds since the last answer; 0 when none ever came.
double model_age_seconds(const struct model *model);

// A text of the result's row, escaped for the screen; "-" where there is none.
// Returns `out`.
char *model_text(char *out, size_t size, const struct result *result, size_t row, const char *key);

#endif
