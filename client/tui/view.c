#include "client/tui/view.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/grid_rows.h"
#include "common/core/base/glyph.h"

const struct view *const views[VIEW_TABLE_SIZE] = {
    [VIEW_NOW] = &view_now,
    [VIEW_HOSTS] = &view_hosts,
    [VIEW_REQUESTS] = &view_requests,
    [VIEW_LOADS] = &view_loads,
    [VIEW_PIPELINES] = &view_pipelines,
    [VIEW_COMPARE] = &view_compare,
    [VIEW_ALERTS] = &view_alerts,
    [VIEW_LEDGER] = &view_ledger,
    [VIEW_PAST] = &view_past,
};

unsigned view_shown(const struct model *model)
{
    assert(model->view < VIEW_COUNT);
    return model->view == VIEW_NOW && !model_is_now(model) ? VIEW_PAST : model->view;
}

const struct view *view_current(const struct model *model)
{
    return views[view_shown(model)];
}

uint64_t view_polls(const struct model *model)
{
    return view_current(model)->polls | POLL(SUMMARY) |
           (model_is_past(model) ? POLL(HISTORY) : POLL(ALERTS)) |
           (model_asks_now(model) ? POLL(NOW) : 0) | (model_is_now(model) ? POLL(FLEET) : 0) |
           (model->overlay == OVERLAY_WHY ? POLL(WHY) : 0) |
           (model->overlay == OVERLAY_DETAIL && view_current(model) == &view_hosts
                ? POLL(MACHINE_USE) | POLL(MACHINE_MORE)
                : 0) |
           (model->overlay == OVERLAY_CHOOSER ? POLL(OVERVIEW) | POLL(BASELINES) : 0);
}

bool view_selected(const struct model *model, unsigned number, size_t *row)
{
    const struct panel *panel = &view_current(model)->panels[number];
    return panel->grid &&
           grid_rows_selected(panel->grid, &model->views[view_shown(model)].panels[number],
                              model_answer(model, panel->polled), row);
}

// ---- Panels --------------------------------------------------------------------

enum { TITLE_ROWS = 1, HEADING_ROWS = 1 };

// False before the first answer, and if answers without a filter say that there are no runs.
static bool has_panels(const struct model *model)
{
    const struct result *now = model_answer(model, POLL_NOW);
    return model->answered_ns != 0 &&
           (model->filtered || !model_answer(model, POLL_SUMMARY) ||
            model_figure(model, "runs", 0) > 0 || (now && result_row_count(now) > 0));
}

const struct result *view_result(const struct model *model)
{
    const unsigned focus = model->views[view_shown(model)].focus;
    return model_answer(model, view_current(model)->panels[focus].polled);
}

size_t *view_rows(const struct model *model, size_t *count)
{
    static const struct grid plain = {.count = 0};
    static const struct grid_state all = {.sort = GRID_UNSORTED};
    const struct view_state *state = &model->views[view_shown(model)];
    const struct grid *grid = view_current(model)->panels[state->focus].grid;
    size_t folded;
    return grid_rows_shown(grid ? grid : &plain, grid ? &state->panels[state->focus] : &all,
                           view_result(model), count, &folded);
}

bool view_has_panel(const struct model *model, unsigned number)
{
    const struct panel *panel = &view_current(model)->panels[number];
    const struct result *result = model_answer(model, panel->polled);
    return !panel->needs_rows || !model->answers[panel->polled].known ||
           (result && result_row_count(result) > 0);
}

void view_arrange(const struct model *model, struct rect *out)
{
    memset(out, 0, MODEL_PANELS_MAX * sizeof *out);
    struct layout_frame frame =
        layout_frame(model->width, model->height, view_banner_is_needed(model));
    if (rect_is_empty(frame.body) || !has_panels(model))
        return;
    const struct view_state *state = &model->views[view_shown(model)];
    const struct view *view = view_current(model);
    out[0] = frame.body;
    if (view->arrange)
        view->arrange(model, frame.body, out);
    if (!state->enlarged && !rect_is_empty(out[state->focus]))
        return;
    memset(out, 0, MODEL_PANELS_MAX * sizeof *out);
    out[state->focus] = frame.body;
}

struct rect view_panel_list(const struct model *model, const struct panel *panel, struct rect area)
{
    int head = panel->head_rows ? panel->head_rows(model, area) : 0;
    return rect_below(area, TITLE_ROWS + head);
}

size_t view_panel_rows(const struct model *model, const struct panel *panel)
{
    if (!panel->grid)
        return panel->list_rows(model);
    const struct view_state *state = &model->views[view_shown(model)];
    return grid_rows_lines(panel->grid, &state->panels[panel - view_current(model)->panels],
                           model_answer(model, panel->polled));
}

size_t view_panel_page(const struct model *model, const struct panel *panel, struct rect area)
{
    int rows = view_panel_list(model, panel, area).height - (panel->grid ? HEADING_ROWS : 0);
    return rows > 0 ? (size_t)rows : 0;
}

void view_present_facts(const struct model *model, struct rect area, struct segments *facts)
{
    (void)area;
    if (model_is_past(model))
        segments_add(facts, 0, STYLE_WARNING, "now, not the window");
}

static void draw_title(const struct model *model, const struct panel *panel,
                       const struct grid_state *state, bool focused, struct canvas *canvas,
                       struct rect area)
{
    enum { RULE = 0x2500, RULE_FOCUSED = 0x2550 };
    canvas_line(canvas, area, 0, 0, area.width, STYLE_DIM, focused ? RULE_FOCUSED : RULE);
    char text[GRID_ONLY_SIZE + 64];
    (void)snprintf(text, sizeof text, " %s ", panel->title);
    int left = 1 + canvas_put(canvas, area, 1, 0, focused ? STYLE_FOCUS : STYLE_TITLE, text);

    int right = area.width - 1;
    size_t rows = view_panel_rows(model, panel), page = view_panel_page(model, panel, area);
    if (page > 0 && rows > page) {
        (void)snprintf(text, sizeof text, " %zu-%zu of %zu ", state->top + 1, state->top + page,
                       rows);
        right -= glyph_text_width(text);
        (void)canvas_put(canvas, area, right, 0, STYLE_DIM, text);
        right--;
    }
    if (panel->grid && model->choice.only[0]) {
        (void)snprintf(text, sizeof text, " rows with \"%s\" ", model->choice.only);
        const int wanted = glyph_text_width(text), most = right - left - 1;
        const int width = wanted < most ? wanted : most;
        canvas_fit(canvas, area, left + 1, 0, width, ALIGN_LEFT, STYLE_WARNING, text);
        left += 1 + width;
    }
    if (!panel->facts)
        return;
    struct segments facts = {.separator = " · "};
    panel->facts(model, area, &facts);
    int room = right - left - 3; // a piece of rule and a space on either side
    if (facts.count == 0 || room <= 0)
        return;
    const int used = segments_draw(&facts, canvas, area, left + 2, 0, room, ALIGN_RIGHT);
    if (used == 0)
        return;
    (void)canvas_put(canvas, area, left + 2 + room - used - 1, 0, STYLE_DIM, " ");
    (void)canvas_put(canvas, area, left + 2 + room, 0, STYLE_DIM, " ");
}

static void draw_panel(const struct model *model, const struct panel *panel,
                       const struct grid_state *state, bool focused, struct canvas *canvas,
                       struct rect area)
{
    struct rect list = view_panel_list(model, panel, area);
    draw_title(model, panel, state, focused, canvas, area);
    if (panel->draw_head)
        panel->draw_head(model, canvas, rect_below(area, TITLE_ROWS));
    if (rect_is_empty(list))
        return;
    if (panel->grid)
        grid_draw(panel->grid, state, model_answer(model, panel->polled), model->wall_now_ns,
                  focused, canvas, list);
    else
        panel->draw_list(model, canvas, list, state->top);
    const char *why = !model->answers[panel->polled].known       ? "asking ..."
                      : model->filtered || model->choice.only[0] ? "nothing that the filter covers"
                      : panel->polled == POLL_MACHINES && !window_is_live(&model->scope.window)
                          ? "no samples in this window (0: up to now)"
                      : panel->polled == POLL_ALERTS && model->is_file
                          ? "no open alert in this file (bundles have no alerts)"
                          : panel->none;
    if (view_panel_rows(model, panel) == 0)
        canvas_fit(canvas, list, 0, panel->grid ? HEADING_ROWS : 0, list.width, ALIGN_LEFT,
                   STYLE_DIM, why);
}

// ---- Notices in place of the panels ------------------------------------------------

// Draws lines as a block in the middle of the area.
static void draw_lines(struct canvas *canvas, struct rect area, const struct view_line *lines,
                       int count)
{
    int width = 0;
    for (int i = 0; i < count; i++) {
        int needed = glyph_text_width(lines[i].text);
        if (needed > width)
            width = needed;
    }
    struct rect block = layout_centre(area, width, count);
    for (int i = 0; i < count; i++)
        canvas_fit(canvas, block, 0, i, block.width, ALIGN_LEFT, lines[i].style, lines[i].text);
}

struct view_box view_box_of(struct rect area, int below, size_t rows, size_t cursor)
{
    enum { BORDERS = 2 };
    const int height = area.height - BORDERS - below;
    const size_t page = height > 0 ? (size_t)height : 0;
    const size_t first = cursor >= page ? cursor - page + 1 : 0;
    return (struct view_box){area, first, first + page < rows ? first + page : rows};
}

void view_draw_box(struct canvas *canvas, struct rect box, enum style style, const char *title)
{
    enum { ACROSS = 0x2500, DOWN = 0x2502 };
    int right = box.width - 1, bottom = box.height - 1;
    canvas_blank(canvas, box);
    canvas_line(canvas, box, 0, 0, box.width, style, ACROSS);
    canvas_line(canvas, box, 0, bottom, box.width, style, ACROSS);
    for (int y = 1; y < bottom; y++) {
        (void)canvas_put_code(canvas, box, 0, y, style, DOWN);
        (void)canvas_put_code(canvas, box, right, y, style, DOWN);
    }
    (void)canvas_put(canvas, box, 0, 0, style, "┌");
    (void)canvas_put(canvas, box, right, 0, style, "┐");
    (void)canvas_put(canvas, box, 0, bottom, style, "└");
    (void)canvas_put(canvas, box, right, bottom, style, "┘");
    (void)canvas_put(canvas, box, 2, 0, style, title);
}

static void draw_waiting(const struct model *model, struct canvas *canvas, struct rect area)
{
    char first[MODEL_NAME_SIZE + 32], start[MODEL_NAME_SIZE + 32];
    if (model->contact == CONTACT_NONE) {
        (void)snprintf(first, sizeof first, "%s %s ...",
                       model->is_file ? "reading" : "connecting to", model->name);
        draw_lines(canvas, area, &(struct view_line){STYLE_STRONG, first}, 1);
        return;
    }
    if (model->contact == CONTACT_LOST && !model->is_file) {
        (void)snprintf(first, sizeof first, "✗ no answer from %s", model->name);
        (void)snprintf(start, sizeof start, "  inferstatd --listen %s", model->name);
        const struct view_line lines[] = {
            {STYLE_BAD, first},
            {STYLE_PLAIN, ""},
            {STYLE_PLAIN, "Trying again until a collector is there.  This starts one:"},
            {STYLE_STRONG, start},
        };
        draw_lines(canvas, area, lines, 4);
        return;
    }
    (void)snprintf(first, sizeof first, "✗ %s", model->name);
    const struct view_line lines[] = {{STYLE_BAD, first}, {STYLE_PLAIN, model->fault}};
    draw_lines(canvas, area, lines, 2);
}

void view_empty_draw(const struct model *model, struct canvas *canvas, struct rect area,
                     const char *promise, const struct view_line *how, int count)
{
    enum { INTRODUCTION = 4 };
    char first[MODEL_NAME_SIZE + 64], where[MODEL_NAME_SIZE + 64];
    assert(count <= VIEW_HOW_MAX);
    (void)snprintf(first, sizeof first, "No records in %s yet.", model->name);
    if (model->is_file) {
        promise = "A collector writes into the file, and workers report to it:";
        (void)snprintf(where, sizeof where, "  inferstatd --db %s", model->name);
        count = 0;
    } else {
        (void)snprintf(where, sizeof where, "  export INFERSTAT_COLLECTOR=%s", model->name);
    }
    struct view_line lines[INTRODUCTION + VIEW_HOW_MAX] = {
        {STYLE_STRONG, first}, {STYLE_PLAIN, ""}, {STYLE_PLAIN, promise}, {STYLE_STRONG, where}};
    for (int i = 0; i < count; i++)
        lines[INTRODUCTION + i] = how[i];
    draw_lines(canvas, area, lines, INTRODUCTION + count);
}

void view_empty_requests_draw(const struct model *model, struct canvas *canvas, struct rect area)
{
    static const struct view_line how[] = {
        {STYLE_STRONG, "  inferstat-worker llm --model FILE.gguf"},
        {STYLE_PLAIN, ""},
        {STYLE_PLAIN, "No model at hand?  One with random weights:"},
        {STYLE_STRONG, "  inferstat-worker make-model --shape 15m FILE.gguf"},
    };
    view_empty_draw(model, canvas, area,
                    "Start a worker, and what it does appears here at once:", how,
                    sizeof how / sizeof *how);
}

static void draw_too_small(struct canvas *canvas)
{
    char size[64], least[64];
    (void)snprintf(size, sizeof size, "it is %d x %d,", canvas->width, canvas->height);
    (void)snprintf(least, sizeof least, "needed is %d x %d", LAYOUT_WIDTH_MIN, LAYOUT_HEIGHT_MIN);
    const struct view_line lines[] = {
        {STYLE_STRONG, "terminal too small:"},
        {STYLE_PLAIN, size},
        {STYLE_PLAIN, least},
        {STYLE_PLAIN, "q quits"},
    };
    draw_lines(canvas, canvas_area(canvas), lines, 4);
}

size_t view_overlay_draw(const struct model *model, struct canvas *canvas, struct rect area, int y)
{
    return model->overlay == OVERLAY_HELP     ? view_help_draw(model, canvas, area, y)
           : model->overlay == OVERLAY_DETAIL ? view_detail_draw(model, canvas, area, y)
           : model->overlay == OVERLAY_WHY    ? view_causes_draw(model, canvas, area, y)
                                              : 0;
}

// ---- Everything ----------------------------------------------------------------------

static void draw_body(const struct model *model, struct canvas *canvas, struct rect body)
{
    const struct view *view = view_current(model);
    const struct view_state *state = &model->views[view_shown(model)];
    struct rect areas[MODEL_PANELS_MAX];
    if (model_key_context(model) == KEYS_HELP) {
        canvas->clip = body; // charts of details have areas of their own
        (void)view_overlay_draw(model, canvas, body, -(int)model->help_top);
        canvas->clip = canvas_area(canvas);
    } else if (model->answered_ns == 0) {
        draw_waiting(model, canvas, body);
    } else if (!has_panels(model)) {
        view->draw_empty(model, canvas, body);
    } else {
        view_arrange(model, areas);
        for (unsigned i = 0; i < view->panel_count; i++)
            if (!rect_is_empty(areas[i]))
                draw_panel(model, &view->panels[i], &state->panels[i], i == state->focus, canvas,
                           areas[i]);
    }
}

void view_draw(const struct model *model, struct canvas *canvas)
{
    canvas_clear(canvas);
    if (model->compact) {
        view_compact_draw(model, canvas);
        return;
    }
    if (!layout_fits(canvas->width, canvas->height)) {
        draw_too_small(canvas);
        return;
    }
    struct layout_frame frame =
        layout_frame(canvas->width, canvas->height, view_banner_is_needed(model));
    view_frame_draw(model, canvas, &frame);
    draw_body(model, canvas, frame.body);
    const struct rect under = layout_frame(canvas->width, canvas->height, false).body;
    if (model->overlay == OVERLAY_SETUP)
        view_setup_draw(model, canvas, under);
    if (model->overlay == OVERLAY_CHOOSER)
        view_chooser_draw(model, canvas, under);
    if (model_key_context(model) == KEYS_PROMPT)
        view_prompt_draw(model, canvas, frame.body);
}
