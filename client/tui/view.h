// Views of the dashboard (the views of model-view-update): a view is a page of panels that shows
// the model.  This header has the table of views, and the functions that draw the view, the frame
// around it, and the overlay above it (help, details or prompt).  No I/O.
#pragma once

#include "client/tui/canvas.h"
#include "client/tui/layout.h"
#include "client/tui/model.h"
#include "client/tui/segments.h"

// A part of a view: from top to bottom, a title line, a head that does not scroll (may be empty),
// and a list that scrolls.
struct panel {
    const char *title;
    const char *none;         // text shown while the list is empty
    enum polled_query polled; // the query whose answer the list shows
    const struct grid *grid;  // draws the list; NULL: list_rows and draw_list do
    bool needs_rows;          // it has a place only while the answer has rows

    // Adds short texts to the title line of a panel in `area`.  NULL: none.
    void (*facts)(const struct model *model, struct rect area, struct segments *facts);
    // Returns the height of the head of a panel in `area`.  NULL: no head.
    int (*head_rows)(const struct model *model, struct rect area);
    // Draws the head.  NULL: no head.
    void (*draw_head)(const struct model *model, struct canvas *canvas, struct rect area);
    // Returns the number of rows of the list.  Used only without a grid.
    size_t (*list_rows)(const struct model *model);
    // Draws the list from row `top` on.  Used only without a grid.
    void (*draw_list)(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top);
};

struct view {
    const char *name;
    uint64_t polls; // the queries that it shows: bit i is enum polled_query i
    const struct panel *panels;
    unsigned panel_count; // MODEL_PANELS_MAX at most
    // Lays out the panels in `body`: sets out[i] to the area of panel i, which is empty if the
    // panel does not fit.  NULL: the only panel fills the body.
    void (*arrange)(const struct model *model, struct rect body, struct rect *out);
    // Draws the notice that replaces the panels while the store is empty.
    void (*draw_empty)(const struct model *model, struct canvas *canvas, struct rect area);
};

// The views that have a number.  The dashboard starts with view 0.  The digit on the keyboard that
// shows a view is the view's index + 1.
enum view_number {
    VIEW_NOW,
    VIEW_HOSTS,
    VIEW_REQUESTS,
    VIEW_LOADS,
    VIEW_PIPELINES,
    VIEW_COMPARE,
    VIEW_ALERTS,
    VIEW_LEDGER,
    VIEW_COUNT,
    VIEW_PAST = VIEW_COUNT, // in place of Now, of what has no states
    VIEW_TABLE_SIZE
};

// The table of views (MODEL_VIEWS_MAX at most).
extern const struct view *const views[VIEW_TABLE_SIZE];

// The number of the view that is shown, which may be VIEW_PAST; and this view.
unsigned view_shown(const struct model *model);
const struct view *view_current(const struct model *model);

// The queries of the current view and of the frame.
uint64_t view_polls(const struct model *model);

// Sets `*row` to the row of the answer that the cursor of panel `number` is on.  Returns false if
// the panel has no cursor, or no rows.
bool view_selected(const struct model *model, unsigned number, size_t *row);

// The answer that the focused panel shows; NULL if there is none.
const struct result *view_result(const struct model *model);

// The load, or startup, at the cursor in view_loads, row `*row` of the answer; NULL if there is
// none.
const struct result *view_load(const struct model *model, size_t *row);

// The indices of its rows that the focused panel shows, in their order, `*count` of them; the
// caller frees it.  NULL if there are none, or if memory is short.
size_t *view_rows(const struct model *model, size_t *count);

// False if panel `number` has no place: its answer is known to have no rows, which it needs.
bool view_has_panel(const struct model *model, unsigned number);

// Computes the areas of the current view's panels; `out` has MODEL_PANELS_MAX elements.  A focused
// panel that is enlarged, or would not fit, gets the whole view.  All areas are empty while a
// notice replaces the panels, or if the screen is too small.
void view_arrange(const struct model *model, struct rect *out);

// Returns the part of the panel's `area` that the list fills, the headings of a grid included.
struct rect view_panel_list(const struct model *model, const struct panel *panel, struct rect area);

// Returns the number of rows of the panel's list.
size_t view_panel_rows(const struct model *model, const struct panel *panel);

// Returns the number of rows of the list that are visible in a panel in `area`.
size_t view_panel_page(const struct model *model, const struct panel *panel, struct rect area);

// Facts of a panel that has the present whatever the window is: beside one that has ended it says
// so.
void view_present_facts(const struct model *model, struct rect area, struct segments *facts);

// Draws the whole screen: frame, view and overlay; of a compact dashboard three lines.
void view_draw(const struct model *model, struct canvas *canvas);

// ---- Views and overlays, one file each --------------------------

extern const struct view view_now;
extern const struct view view_past;
extern const struct view view_hosts;
extern const struct view view_requests;
extern const struct view view_loads;
extern const struct view view_pipelines;
extern const struct view view_compare;
extern const struct view view_alerts;
extern const struct view view_ledger;

// Draws all parts of the screen except the view: title, status, banner and footer.
void view_frame_draw(const struct model *model, struct canvas *canvas,
                     const struct layout_frame *frame);

// The banner says in one line what needs attention, the worst first: an error of the collector or
// its store, else alerts that fire, states of models and hosts, and hosts that stand out.  It is
// needed if there is any.
bool view_banner_is_needed(const struct model *model);
void view_banner_draw(const struct model *model, struct canvas *canvas, struct rect area);

// True if there are charts over time: what is shown has a beginning.
bool view_has_charts(const struct model *model);

// Charts at the head of a panel in `area`: their rows, 0 if there is no room or there are none; and
// the charts.
int view_charts_rows(const struct model *model, struct rect area);
void view_charts_draw(const struct model *model, struct canvas *canvas, struct rect area);

// Writes "▲ gpu03 cuda:0 decode -6.6 %: PCIe x8 of x16", with the device or without: worse than the
// same device of other hosts.  Returns false for rows of FLEET that are not worse.
bool view_fleet_text(char *text, size_t size, const struct result *fleet, size_t row,
                     bool has_device);

// Draws what an alert's details begin with, likewise: the rule, value and threshold, the cause, and
// the command that shows more.
size_t view_alert_draw(struct canvas *canvas, struct rect area, int y, const struct result *result,
                       size_t row);

// Draws what a host's or device's details begin with, from line `y` of `area` on, if there is a
// canvas: charts of the window, and of a host what FLEET finds.  Returns the number of lines.
size_t view_machine_draw(const struct model *model, struct canvas *canvas, struct rect area, int y,
                         const struct result *result, size_t row);

// Throughput over the window in one line, without scale or title.
void view_charts_line(const struct model *model, struct canvas *canvas, struct rect area);

// A chart of an answer by step of the window: the mean of each step; of POLL_TTFT the median, p95
// and failures.  Without a title it has no scale either.
void view_chart_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *title, enum polled_query polled, enum unit unit);

// Draws three lines: figures of the window, what needs attention, and the throughput over time.
void view_compact_draw(const struct model *model, struct canvas *canvas);

// Finds the view whose name is at `x`, `y` in the title line `area`, and sets `*number` to its
// index.  Returns false if there is none.
bool view_frame_view_at(const struct model *model, struct rect area, int x, int y,
                        unsigned *number);

// True if the right part of the title line, which has the window, is at `x`, `y`.
bool view_frame_window_at(const struct model *model, struct rect area, int x, int y);

// Draws the help, the details of the row at the cursor of the focused panel, or the answer to
// POLL_WHY, whichever is open, from line `y` of `area` on, if there is a canvas.  Returns the
// number of lines, 0 if none is open.
size_t view_overlay_draw(const struct model *model, struct canvas *canvas, struct rect area, int y);

// Each of them.
size_t view_help_draw(const struct model *model, struct canvas *canvas, struct rect area, int y);
size_t view_detail_draw(const struct model *model, struct canvas *canvas, struct rect area, int y);
size_t view_causes_draw(const struct model *model, struct canvas *canvas, struct rect area, int y);

// A list in a box with a border: the rows from `first` on, before `end`, so that the cursor's is
// among them.
struct view_box {
    struct rect area;
    size_t first, end;
};

// Lays out a list of `rows` rows, above `below` lines of the box.
struct view_box view_box_of(struct rect area, int below, size_t rows, size_t cursor);

// The setup screen, and its list.
void view_setup_draw(const struct model *model, struct canvas *canvas, struct rect area);
struct view_box view_setup_box(const struct model *model, struct rect area);

// Of the request whose details are open: why it took so long; and what else happened on its host.
// They draw from line `y` on, if there is a canvas, and return the number of lines.
size_t view_why_draw(const struct model *model, struct canvas *canvas, struct rect area, int y,
                     const struct result *result, size_t row);
size_t view_meanwhile_draw(const struct model *model, struct canvas *canvas, struct rect area,
                           int y, const struct result *result, size_t row);

// The choice of what is compared, and its list.
struct view_box view_chooser_box(const struct model *model, struct rect area);
void view_chooser_draw(const struct model *model, struct canvas *canvas, struct rect area);

void view_prompt_draw(const struct model *model, struct canvas *canvas, struct rect area);

// ---- For views -----------------------------------------------------------------

// Texts of UNIT_TEXT_SIZE bytes at most, returned: an age, "5s", "2m 30s", "1h 05m"; a time of day,
// "14:03:22".
const char *view_age_text(char *text, double seconds);
const char *view_clock_text(char *text, int64_t time_ns);

struct view_line {
    enum style style;
    const char *text;
};

// Clears `box` and draws its border with a title.
void view_draw_box(struct canvas *canvas, struct rect box, enum style style, const char *title);

// Draws the notice of an empty store.  For a collector, the notice has the line `promise`, which
// says what the view will show, and the `count` lines `how` (VIEW_HOW_MAX at most), which are
// commands that produce records.  For a store file, the notice has a command that starts a
// collector on the file instead.
enum { VIEW_HOW_MAX = 4 };
void view_empty_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *promise, const struct view_line *how, int count);

// The same for views whose records come from requests.
void view_empty_requests_draw(const struct model *model, struct canvas *canvas, struct rect area);
