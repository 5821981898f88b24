// Views of the dashboard: a table of views, their panels, and the functions that draw them.  Each
// view has one source file.  Pure.
#ifndef INFERSTAT_TUI_VIEW_H
#define INFERSTAT_TUI_VIEW_H

#include "client/tui/canvas.h"
#include "client/tui/layout.h"
#include "client/tui/model.h"
#include "client/tui/segments.h"

// A part of a view: a title, a head of fixed height and a scrolling list.
struct panel {
    const char *title;
    const char *none;         // text shown while the list is empty
    enum polled_query polled; // the query whose answer the list shows
    const struct grid *grid;  // the list's columns; NULL: `draw_list` draws the list

    // Adds texts to the title line; may be NULL.
    void (*facts)(const struct model *model, struct rect area, struct segments *facts);
    // Height of the head in a panel of size `area`; draw_head draws it.  May be NULL.
    int (*head_rows)(const struct model *model, struct rect area);
    void (*draw_head)(const struct model *model, struct canvas *canvas, struct rect area);
    // Without a grid: number of rows; draw_list draws them from row `top` on.
    size_t (*list_rows)(const struct model *model);
    void (*draw_list)(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top);
};

struct view {
    const char *name;
    const struct panel *panels;
    unsigned panel_count; // MODEL_PANELS_MAX at most
    // Lays out the panels in `body`; a panel that does not fit gets an empty rectangle.
    void (*arrange)(const struct model *model, struct rect body, struct rect *out);
    // Draws the notice that replaces the panels while the store is empty.
    void (*draw_empty)(const struct model *model, struct canvas *canvas, struct rect area);
};

// Indices of views(); the initial view is 0.  The key of a view is its index + 1.
enum view_number { VIEW_OVERVIEW, VIEW_PIPELINES };

// The table of views (MODEL_VIEWS_MAX at most); static.
const struct view *const *views(unsigned *count);

// The current view.
const struct view *view_current(const struct model *model);

// The areas of the current view's panels: `out` has MODEL_PANELS_MAX elements.  An enlarged panel,
// or a focused panel that does not fit, fills the view.  All are empty while a notice is shown.
void view_arrange(const struct model *model, struct rect *out);

// Of a panel's list: its area, headings included; its number of rows; the number of visible rows.
struct rect view_panel_list(const struct model *model, const struct panel *panel, struct rect area);
size_t view_panel_rows(const struct model *model, const struct panel *panel);
size_t view_panel_page(const struct model *model, const struct panel *panel, struct rect area);

// Draws the whole screen: frame, view and overlay.
void view_draw(const struct model *model, struct canvas *canvas);

// ---- Views and overlays, one file each --------------------------

extern const struct view view_overview;
extern const struct view view_pipelines;

void view_frame_draw(const struct model *model, struct canvas *canvas,
                     const struct layout_frame *frame);
bool view_frame_has_banner(const struct model *model);
// Finds the view whose name is at a position of the title line `area`; false if there is none.
bool view_frame_view_at(const struct model *model, struct rect area, int x, int y,
                        unsigned *number);

size_t view_help_rows(struct rect area);
void view_help_draw(const struct model *model, struct canvas *canvas, struct rect area);
void view_confirm_draw(const struct model *model, struct canvas *canvas, struct rect area);
void view_prompt_draw(const struct model *model, struct canvas *canvas, struct rect area);

// ---- For views -----------------------------------------------------------------

struct view_line {
    enum style style;
    const char *text;
};

// Draws lines as a block in the middle of the area.
void view_draw_lines(struct canvas *canvas, struct rect area, const struct view_line *lines,
                     int count);

// Clears `box` and draws its border with a title.
void view_draw_box(struct canvas *canvas, struct rect box, enum style style, const char *title);

// Draws the notice of an empty store: the line `promise`, which says what the view will show, then
// `count` lines (VIEW_HOW_MAX at most) with commands that produce records.  For a store file, the
// command that writes into the file replaces them.
enum { VIEW_HOW_MAX = 4 };
void view_empty_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *promise, const struct view_line *how, int count);

#endif
