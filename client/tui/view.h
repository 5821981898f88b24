// Views of the dashboard.  Each is one file and one row of a table.  Pure.
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
    enum polled_query polled; // the query of the list
    const struct grid *grid;  // its format; NULL: `draw_list` draws it

    // Adds texts to the title line; may be NULL.
    void (*facts)(const struct model *model, struct rect area, struct segments *facts);
    // Height of the head in a panel of that size, and its drawing; may be NULL.
    int (*head_rows)(const struct model *model, struct rect area);
    void (*draw_head)(const struct model *model, struct canvas *canvas, struct rect area);
    // Without a grid: number of rows, and their drawing from `top` on.
    size_t (*list_rows)(const struct model *model);
    void (*draw_list)(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top);
};

struct view {
    const char *name;
    const struct panel *panels;
    unsigned panel_count; // MODEL_PANELS_MAX at most
    // Lays out the panels in `body`; those that do not fit are empty.
    void (*arrange)(const struct model *model, struct rect body, struct rect *out);
    // Drawn instead of the panels if the store is known to be empty.
    void (*draw_empty)(const struct model *model, struct canvas *canvas, struct rect area);
};

// Indices in the table; the first is the initial view; keys count from 1.
enum view_number { VIEW_OVERVIEW, VIEW_PIPELINES };

// All views, `*count` of them (MODEL_VIEWS_MAX at most), static.
const struct view *const *views(unsigned *count);

// The current view.
const struct view *view_current(const struct model *model);

// The areas of the current view's panels, MODEL_PANELS_MAX of them.  An enlarged panel, or
// a focused one that does not fit, fills the view; all are empty while a notice is shown.
void view_arrange(const struct model *model, struct rect *out);

// The area of a panel's list, including a table's headings; its number of rows; how many of
// them are visible.
struct rect view_panel_list(const struct model *model, const struct panel *panel, struct rect area);
size_t view_panel_rows(const struct model *model, const struct panel *panel);
size_t view_panel_page(const struct model *model, const struct panel *panel, struct rect area);

// Draws everything.
void view_draw(const struct model *model, struct canvas *canvas);

// ---- Views and overlays, one file each --------------------------

extern const struct view view_overview;
extern const struct view view_pipelines;

void view_frame_draw(const struct model *model, struct canvas *canvas,
                     const struct layout_frame *frame);
bool view_frame_has_banner(const struct model *model);
// True if a view's name is at that position; `area`: the title's.
bool view_frame_view_at(const struct model *model, struct rect area, int x, int y,
                        unsigned *number);

size_t view_help_rows(struct rect area);
void view_help_draw(const struct model *model, struct canvas *canvas, struct rect area);
void view_confirm_draw(const struct model *model, struct canvas *canvas, struct rect area);
void view_prompt_draw(const struct model *model, struct canvas *canvas, struct rect area);
void view_small_draw(struct canvas *canvas);

// ---- For views -----------------------------------------------------------------

struct view_line {
    enum style style;
    const char *text;
};

// Draws lines as a block in the middle of the area.
void view_draw_lines(struct canvas *canvas, struct rect area, const struct view_line *lines,
                     int count);

// Clears an area and draws a frame with a title around it.
void view_draw_box(struct canvas *canvas, struct rect box, enum style style, const char *title);

// Draws the notice of an empty store: `promise`, then `count` lines (VIEW_HOW_MAX at most)
// of commands that produce records; for a file, the command that writes into it.
enum { VIEW_HOW_MAX = 4 };
void view_empty_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *promise, const struct view_line *how, int count);

#endif
