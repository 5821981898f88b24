#include "client/tui/mouse.h"

#include "client/tui/grid_rows.h"
#include "client/tui/lists.h"
#include "client/tui/view.h"

// The panel at a place of the screen, or MODEL_PANELS_MAX.
static unsigned panel_at(const struct model *model, int x, int y, struct rect *area)
{
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    for (unsigned i = 0; i < view_current(model)->panel_count; i++) {
        if (rect_contains(areas[i], x, y)) {
            *area = areas[i];
            return i;
        }
    }
    return MODEL_PANELS_MAX;
}

// A press on a row moves the cursor there; on the cursor's row, shows all of it; on the mark of a
// group (column `x`), opens or closes that.
static enum action press_row(struct model *model, unsigned at, struct rect area, size_t line, int x)
{
    enum { MARK_WIDTH = 3 };
    struct list list = list_of_panel(model, at, area);
    const long long moved = (long long)(list.state->top + line) - (long long)list.state->cursor;
    size_t row;
    if (x < MARK_WIDTH && list.grid->is_group && list.state->top + line < list.rows) {
        list_move(list, moved);
        const bool is_small = list.result && grid_rows_is_small(list.grid, list.result);
        if (view_selected(model, at, &row))
            (void)grid_rows_open(
                list.grid, list.state, list.result,
                !grid_rows_is_open(list.grid, list.state, list.result, row, is_small), list.page);
        return ACTION_NONE;
    }
    if (moved == 0)
        return ACTION_DETAIL;
    if (list.state->top + line < list.rows)
        list_move(list, moved);
    return ACTION_NONE;
}

static enum action press_panel(struct model *model, unsigned at, struct rect area, int x, int y)
{
    const struct panel *panel = &view_current(model)->panels[at];
    struct view_state *view = &model->views[view_shown(model)];
    struct grid_state *state = &view->panels[at];
    view->focus = at;
    struct rect rows = view_panel_list(model, panel, area);
    if (panel->grid && y > rows.y)
        return press_row(model, at, area, (size_t)(y - rows.y - 1), x - rows.x);
    if (!panel->grid || y != rows.y)
        return ACTION_NONE;
    int column =
        grid_column_at(panel->grid, state, model_answer(model, panel->polled), rows, x - rows.x);
    if (column == GRID_UNSORTED || grid_sorts_before(state, (unsigned)column))
        return ACTION_NONE;
    state->reversed = state->sort == column && !state->reversed;
    state->sort = column;
    state->top = state->cursor = 0;
    state->at = 0;
    return ACTION_NONE;
}

// A press on a row of the setup screen or the chooser moves the cursor there; on the cursor's row,
// changes or chooses it.
static enum action press_box(struct model *model, int x, int y)
{
    const struct rect body = layout_frame(model->width, model->height, false).body;
    const bool is_setup = model->overlay == OVERLAY_SETUP;
    size_t *cursor = is_setup ? &model->settings.cursor : &model->chooser.cursor;
    const struct view_box box = (is_setup ? view_setup_box : view_chooser_box)(model, body);
    const size_t row = box.first + (size_t)(y - box.area.y - 1);
    if (!rect_contains(box.area, x, y) || y == box.area.y || row >= box.end)
        return ACTION_NONE;
    if (row == *cursor)
        return is_setup ? ACTION_RIGHT : ACTION_APPLY;
    *cursor = row;
    return ACTION_NONE;
}

enum action mouse_press(struct model *model, int x, int y, uint32_t *code)
{
    struct rect area;
    unsigned at = panel_at(model, x, y, &area), number;
    const struct rect title = layout_frame(model->width, model->height, false).title;
    if (model->overlay == OVERLAY_SETUP || model->overlay == OVERLAY_CHOOSER)
        return press_box(model, x, y);
    if (model->compact || model->overlay != OVERLAY_NONE ||
        !layout_fits(model->width, model->height))
        return ACTION_NONE;
    if (view_frame_window_at(model, title, x, y))
        return ACTION_WINDOW;
    if (view_frame_view_at(model, title, x, y, &number)) {
        *code = '1' + number;
        return ACTION_VIEW;
    }
    return at < MODEL_PANELS_MAX ? press_panel(model, at, area, x, y) : ACTION_NONE;
}

enum action mouse_turn(struct model *model, int x, int y, int rows)
{
    struct rect area;
    unsigned at = panel_at(model, x, y, &area);
    if (model->overlay == OVERLAY_CHOOSER)
        return rows > 0 ? ACTION_DOWN : ACTION_UP;
    if (model_key_context(model) == KEYS_HELP)
        list_scroll(list_focused(model), rows);
    if (model->overlay == OVERLAY_NONE && at < MODEL_PANELS_MAX)
        list_scroll(list_of_panel(model, at, area), rows);
    return ACTION_NONE;
}
