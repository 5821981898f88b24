// Views: what stands on the screen.  One table names them all; a view is a row of
// it and a file.  Pure.
#ifndef INFERSTAT_TUI_VIEW_H
#define INFERSTAT_TUI_VIEW_H

#include "client/tui/canvas.h"
#include "client/tui/layout.h"
#include "client/tui/model.h"
#include "client/tui/segments.h"

// A part of a view with a title: something of a fixed height (its head) above a
// list of rows that scrolls.
struct panel {
    const char *title;
    const char *none;        // shown while the list has no rows
    enum ask ask;            // whose answer the list shows
    const struct grid *grid; // how; NULL: `draw_list` does it

    // Facts beside the title; may be NULL.
    void (*facts)(const struct model *model, struct rect area, struct segments *facts);
    // Rows the head takes of a panel that size, and drawing it; may be NULL.
    int (*head_rows)(const struct model *model, struct rect area);
    void (*draw_head)(const struct model *model, struct canvas *canvas, struct rect area);
    // Without a table: rows of the list, and drawing them from `top` on.
    size_t (*list_rows)(const struct model *model);
    void (*draw_list)(const struct model *model, struct canvas *canvas, struct rect area,
                      size_t top);
};

struct view {
    const char *name;
    const struct panel *panels;
    unsigned panel_count; // MODEL_PANELS_MAX at most
    // Places every panel in `body`; empty rectangles for those without room.
    void (*arrange)(const struct model *model, struct rect body, struct rect *out);
    // Drawn in place of the panels when the store is known to be empty.
    void (*draw_empty)(const struct model *model, struct canvas *canvas, struct rect area);
};

// Places in the table, the first one shown first; keys count them from 1.
enum view_number { VIEW_OVERVIEW, VIEW_PIPELINES };

// All views, `*count` of them (MODEL_VIEWS_MAX at most), static.
const struct view *const *views(unsigned *count);

// The view shown.
const struct view *view_current(const struct model *model);

// Where the panels of the view shown stand, MODEL_PANELS_MAX of them.  One that is
// enlarged, or has the keys and no room of its own, stands alone; all are empty
// while a notice stands in their place.
void view_arrange(const struct model *model, struct rect *out);

// Where the panel's list stands in the panel's area, the headings of a table
// included; its rows; and how many of them are visible there.
struct rect view_panel_list(const struct model *model, const struct panel *panel, struct rect area);
size_t view_panel_rows(const struct model *model, const struct panel *panel);
size_t view_panel_page(const struct model *model, const struct panel *panel, struct rect area);

// Draws everything.
void view_draw(const struct model *model, struct canvas *canvas);

// ---- The views and what lies over them, one file each --------------------------

extern const struct view view_overview;
extern const struct view view_pipelines;

void view_frame_draw(const struct model *model, struct canvas *canvas,
                     const struct layout_frame *frame);
bool view_frame_has_banner(const struct model *model);
// Whether a view's name stands at that place of the screen; `area`: the title's.
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

// Draws a frame with a title around an area made blank.
void view_draw_box(struct canvas *canvas, struct rect box, enum style style, const char *title);

// Says that there are no records, and what makes some: `promise`, then what to type,
// `count` lines of it (VIEW_HOW_MAX at most).  A file says what writes into it.
enum { VIEW_HOW_MAX = 4 };
void view_empty_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *promise, const struct view_line *how, int count);

#endif
