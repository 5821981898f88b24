// State of the dashboard (the model of model-view-update): model_update (update.h) changes it and
// the views draw it.  No I/O, no global state.  Owned by the thread that runs tui_run.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/tui/queries.h"
#include "client/tui/grid.h"
#include "client/tui/key_bindings.h"
#include "client/tui/prompt/prompt.h"
#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"

enum {
    MODEL_NAME_SIZE = 512,
    MODEL_NOTICE_SIZE = 256,
    MODEL_SEARCH_SIZE = 128,
    MODEL_VIEWS_MAX = 9,
    MODEL_PANELS_MAX = 8
};

// State of the connection to the collector or file.
enum contact {
    CONTACT_NONE, // no round of queries has ended yet
    CONTACT_OK,   // the last round was answered
    CONTACT_LOST, // the last round ended with STATUS_UNREACHABLE or STATUS_TIMEOUT
    CONTACT_FAULT // the last round ended with another error
};

enum theme {
    THEME_DEFAULT, // readable on dark and light terminals
    THEME_LIGHT,   // darker colours, for a light background
    THEME_SAFE,    // blue, ochre and magenta, for the colour-blind
    THEME_MONO,    // bold and reversed text alone
    THEME_COUNT
};

// What the user sets with F2; settings.h changes it.
struct settings {
    enum theme theme;
    bool utc;         // times are in UTC
    char error[256];  // the first line of the file that is wrong, and why; "": none
    size_t cursor;    // row of the setup screen
    unsigned changed; // bit i: setting i is to be written
    uint64_t
        columns[MODEL_VIEWS_MAX]; // by view: bit i: the columns of its panel i are to be written
};

// What is above the view: nothing, help, the details of the cursor's row, why it is slow, the
// choice of what is compared, or a prompt: of clearing, of the filter, of a search, of an export,
// or of an alert that is acknowledged or silenced.
enum overlay {
    OVERLAY_NONE,
    OVERLAY_HELP,
    OVERLAY_DETAIL,
    OVERLAY_WHY,
    OVERLAY_CLEAR,
    OVERLAY_FILTER,
    OVERLAY_SEARCH,
    OVERLAY_EXPORT,
    OVERLAY_ACKNOWLEDGE,
    OVERLAY_SILENCE,
    OVERLAY_SETUP,
    OVERLAY_CHOOSER
};

// The last answer to a query.
struct model_answer {
    struct result *result; // owned; NULL: none yet, or no data
    bool known;            // answered, and not forgotten since
};

// A view's focused panel and the state of each panel.
struct view_state {
    unsigned focus;                             // index of the focused panel in `panels`
    bool enlarged;                              // only the focused panel is shown
    struct grid_state panels[MODEL_PANELS_MAX]; // scroll position and sorting
};

struct model {
    // Set at the start by model_init, model_set_filter and tui_run; then fixed.
    char name[MODEL_NAME_SIZE]; // address of the collector, or path of the file; escaped
    bool is_file;
    bool readonly;
    bool compact;
    query_when *when; // time parser; its `context` is the wall clock, an int64_t (ns)

    int width, height; // of the screen, in character cells

    unsigned view;                            // current view, enum view_number
    struct view_state views[MODEL_VIEWS_MAX]; // by enum view_number
    enum overlay overlay;
    size_t help_top; // first row of the help, or of the details, that is shown

    struct queries_scope scope;    // the current filter and window, and the view's queries
    bool filtered;                 // the filter excludes some records
    char filter_text[PROMPT_SIZE]; // the filter as text; "": no filter
    struct prompt prompt;          // while one is open
    struct prompt_history filters, searches;
    struct query change;       // the last query that changes the store
    bool is_changing;          // it has not been answered yet
    struct grid_choice choice; // of all tables
    struct settings settings;
    char written[MODEL_NAME_SIZE];  // a file that exports may replace; "": none
    uint64_t asked;                 // queries about subjects, to be sent once
    bool has_new_machines;          // hosts, devices or events were answered in this round
    bool against_before;            // loads are set beside the one before, not the usual one
    struct chooser chooser;         // while it is open
    char search[MODEL_SEARCH_SIZE]; // what was searched for last; "": nothing

    struct model_answer answers[POLL_ANSWERS]; // by enum polled_query
    uint64_t answered_ns;                      // time of the last answer, monotonic; 0: never
    int64_t answered_at_ns;                    // time of the last answer, wall clock
    double first_size;                         // bytes of the store in the first summary
    int64_t first_size_ns;                     // its time, wall clock; 0: none yet
    enum contact contact;
    char fault[ERROR_TEXT_SIZE]; // error of the last round; escaped

    bool paused;
    double interval_seconds;
    char notice[MODEL_NOTICE_SIZE]; // message about the last action; escaped
    uint64_t notice_until_ns;       // when the notice disappears, monotonic

    uint64_t now_ns;     // monotonic clock
    int64_t wall_now_ns; // wall clock
};

// Initialises the model.  Copies `name`, escaped and truncated.
void model_init(struct model *model, const char *name, double interval_seconds);
void model_deinit(struct model *model);

// Sets the current filter and its text.
void model_filter(struct model *model, const struct query_filter *filter, const char *text);

// Shows only rows that have the text; "": all.  There is no other filter then.
void model_filter_rows(struct model *model, const char *text);

// Where a live window ends: now; of a file, at its newest request, load or pipeline run.
int64_t model_reference_ns(const struct model *model);

// True if the view Now has states, those at the end of the window: it has a day at most, and the
// filter has no device or run, which states do not have.
bool model_is_now(const struct model *model);

// True if states are asked for: also while the window is live and longer, for the line of what
// needs attention now.
bool model_asks_now(const struct model *model);

// Forgets the answers to these queries, a bit set, and those that are under way: they are about
// something else now.
void model_forget(struct model *model, uint64_t queries);

// The last answer to a query; NULL if there is none, or it was "no data".
const struct result *model_answer(const struct model *model, enum polled_query polled);

// The number in column `key` of the answer to POLL_SUMMARY; `absent` if there is no answer or the
// value is null.
double model_figure(const struct model *model, const char *key, double absent);

// True if the window has ended.
bool model_is_past(const struct model *model);

// True if a row of NOW sums up a model's hosts, or a host's models.
bool model_is_group(const struct result *now, size_t row);

// True for an alert of the severity that fires, and is neither acknowledged nor silenced, or that
// fired in a window of the past.
bool model_alert_is_told(const struct result *alerts, size_t row, bool critical);

// In the answer to POLL_ALERTS, what fires and is silenced has the state "silenced".  In that to
// POLL_NOW, what a critical alert fires for and nothing else ails has the state "alert", and the
// alert as its reason.  The dashboard alone knows these two.
void model_mark_alerts(struct model *model);

// Number of records known to be lost.
int64_t model_lost(const struct model *model);

// Seconds since the last answer; 0 before the first.
double model_age_seconds(const struct model *model);

// When an answer is overdue, monotonic; 0: none is expected.  From then on the title has its age.
uint64_t model_overdue_ns(const struct model *model);

// Shows a message for five seconds, escaped.
void model_notify(struct model *model, const char *text);

// Why the store cannot be changed from here now; NULL if it can.
const char *model_why_unchangeable(const struct model *model);

// What must be typed to clear the records of the filter: its first name, or "everything".
const char *model_clear_word(const struct model *model);

// The context in which the keyboard's keys are looked up: the view, or the overlay above it.
enum key_context model_key_context(const struct model *model);
