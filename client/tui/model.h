// The dashboard's state, which views draw.  Pure; owned by the caller's thread.  update.h
// changes it.
#ifndef INFERSTAT_TUI_MODEL_H
#define INFERSTAT_TUI_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/queries.h"
#include "client/tui/grid.h"
#include "client/tui/prompt.h"
#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum { MODEL_NAME_SIZE = 512, MODEL_NOTICE_SIZE = 256, MODEL_VIEWS_MAX = 9, MODEL_PANELS_MAX = 8 };

// State of the source.
enum contact {
    CONTACT_NONE, // no round of queries has ended yet
    CONTACT_OK,   // the last round was answered
    CONTACT_LOST, // no answer
    CONTACT_FAULT // the answer is an error
};

// The overlay above the view.
enum overlay { OVERLAY_NONE, OVERLAY_HELP, OVERLAY_CLEAR, OVERLAY_FILTER };

// The last answer to a query.
struct model_answer {
    struct result *result; // owned; NULL: none yet, or no query was needed
    bool known;            // answered at least once
};

// A view's focused panel and the state of each panel.
struct view_state {
    unsigned focus;
    bool enlarged; // the focused panel alone
    struct grid_state panels[MODEL_PANELS_MAX];
};

struct model {
    // Fixed for the dashboard's life.
    char name[MODEL_NAME_SIZE]; // the source, an address or a file; escaped
    bool is_file;
    bool readonly;
    struct query_filter given; // the filter of the command line
    query_when *when;          // parses times; its context is the wall clock, an int64_t

    int width, height; // of the screen

    unsigned view;
    struct view_state views[MODEL_VIEWS_MAX];
    enum overlay overlay;
    size_t help_top; // first row of help shown

    struct query_filter filter;    // the current filter
    bool filtered;                 // it excludes some records
    char filter_text[PROMPT_SIZE]; // the filter as text; "": everything
    struct prompt prompt;          // while OVERLAY_FILTER is open

    struct model_answer answers[POLL_COUNT];
    uint64_t answered_ns;   // time of the last answer; 0: never
    int64_t answered_at_ns; // the same by the wall clock
    enum contact contact;
    char fault[ERROR_TEXT_SIZE]; // error of the last round; escaped

    bool paused;
    double interval_seconds;
    char notice[MODEL_NOTICE_SIZE]; // message about the last action; escaped
    uint64_t notice_until_ns;

    uint64_t now_ns;     // monotonic clock
    int64_t wall_now_ns; // wall clock
};

// `name` is escaped and cut.
void model_init(struct model *model, const char *name, double interval_seconds);
void model_deinit(struct model *model);

// Shows what the filter covers, from now on or as the command line asked for.
void model_filter(struct model *model, const struct query_filter *filter, const char *text);

// The last answer to a query; NULL if there is none.
const struct result *model_answer(const struct model *model, enum polled_query polled);

// A number of the summary; `absent` if it has none.
double model_figure(const struct model *model, const char *key, double absent);

// True if the store is known to have no runs; false if a filter may be the reason.
bool model_store_is_empty(const struct model *model);

// Number of records known to be lost.
int64_t model_lost(const struct model *model);

// Seconds since the last answer; 0 before the first.
double model_age_seconds(const struct model *model);

// A text of the result's row, escaped for the screen; "-" if absent.
// Returns `out`.
char *model_text(char *out, size_t size, const struct result *result, size_t row, const char *key);

#endif
