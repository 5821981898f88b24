#include "client/tui/lists.h"

#include "client/tui/grid_rows.h"

struct list list_of_panel(struct model *model, unsigned number, struct rect area)
{
    const struct panel *panel = &view_current(model)->panels[number];
    struct grid_state *state = &model->views[view_shown(model)].panels[number];
    return (struct list){
        panel->grid, model_answer(model, panel->polled), state,
        &state->top, view_panel_rows(model, panel),      view_panel_page(model, panel, area)};
}

struct list list_focused(struct model *model)
{
    if (model_key_context(model) == KEYS_HELP) {
        struct rect body = layout_frame(model->width, model->height, false).body;
        size_t page = body.height > 0 ? (size_t)body.height : 0;
        size_t rows = view_overlay_draw(model, NULL, body, 0);
        return (struct list){.top = &model->help_top, .rows = rows, .page = page};
    }
    const unsigned focus = model->views[view_shown(model)].focus;
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    return list_of_panel(model, focus, areas[focus]);
}

void list_scroll(struct list list, long long rows)
{
    if (list.grid) {
        grid_rows_scroll(list.grid, list.state, list.result, rows, list.page);
        return;
    }
    const size_t last = list.rows > list.page ? list.rows - list.page : 0;
    const long long top = (long long)(*list.top < last ? *list.top : last) + rows;
    *list.top = top < 0 ? 0 : (size_t)top < last ? (size_t)top : last;
}

void list_move(struct list list, long long rows)
{
    if (list.grid)
        grid_rows_move(list.grid, list.state, list.result, rows, list.page);
    else
        list_scroll(list, rows);
}

void lists_keep(struct model *model)
{
    unsigned *focus = &model->views[view_shown(model)].focus;
    struct rect areas[MODEL_PANELS_MAX];
    *focus = view_has_panel(model, *focus) ? *focus : 0;
    view_arrange(model, areas);
    for (unsigned i = 0; i < view_current(model)->panel_count; i++) {
        struct list list = list_of_panel(model, i, areas[i]);
        if (list.grid)
            list.state->is_held = model->overlay == OVERLAY_DETAIL;
        if (list.grid && model->answers[view_current(model)->panels[i].polled].known)
            grid_rows_keep(list.grid, list.state, list.result, list.page);
        else
            list_scroll(list, 0);
    }
}
