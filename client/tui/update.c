#include "client/tui/update.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

static const uint64_t notice_ns = UINT64_C(5000000000);

static void notify(struct model *model, const char *text)
{
    (void)text_escape(model->notice, sizeof model->notice, text, strlen(text));
    model->notice_until_ns = model->now_ns + notice_ns;
}

// ---- Scrolling and panels ----------------------------------------------------

static struct view_state *current(struct model *model)
{
    return &model->views[model->view];
}

// The list that takes the keys: its first row shown, its rows, and how many of
// them are visible.
struct list {
    size_t *top;
    size_t rows, page;
};

static struct list panel_list(struct model *model, unsigned number, struct rect area)
{
    const struct panel *panel = &view_current(model)->panels[number];
    return (struct list){&current(model)->panels[number].top, view_panel_rows(model, panel),
                         view_panel_page(model, panel, area)};
}

static struct list focused_list(struct model *model)
{
    if (model->overlay == OVERLAY_HELP) {
        struct rect body = layout_frame(model->width, model->height, false).body;
        size_t page = body.height > 0 ? (size_t)body.height : 0;
        return (struct list){&model->help_top, view_help_rows(body), page};
    }
    const unsigned focus = current(model)->focus;
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    return panel_list(model, focus, areas[focus]);
}

// Moves by `rows`, not beyond the last page nor before the first row.
static void scroll(struct list list, long long rows)
{
    size_t last = list.rows > list.page ? list.rows - list.page : 0;
    long long top = (long long)(*list.top < last ? *list.top : last);
    top += rows;
    if (top > (long long)last)
        top = (long long)last;
    *list.top = top > 0 ? (size_t)top : 0;
}

// After an answer or a new size a list may be shorter than it was scrolled.
static void clamp_scrolls(struct model *model)
{
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    for (unsigned i = 0; i < view_current(model)->panel_count; i++)
        scroll(panel_list(model, i, areas[i]), 0);
}

static void show_view(struct model *model, enum view_number number)
{
    model->overlay = OVERLAY_NONE;
    model->view = number;
    clamp_scrolls(model); // its lists may have changed while it was not shown
}

static void sort_next(struct model *model, int step)
{
    struct view_state *state = current(model);
    const struct grid *grid = view_current(model)->panels[state->focus].grid;
    if (!grid) {
        notify(model, "this panel keeps its order");
        return;
    }
    // One more choice than columns: the order of the answer.
    struct grid_state *sorted = &state->panels[state->focus];
    int choices = (int)grid->count + 1;
    sorted->sort = (sorted->sort + 1 + step + choices) % choices - 1;
    sorted->reversed = false;
    sorted->top = 0;
}

// ---- The filter prompt ---------------------------------------------------------

void model_set_filter(struct model *model, const struct query_filter *filter)
{
    char text[PROMPT_SIZE];
    const struct query_filter none = {0};
    model->given = filter ? *filter : none;
    // A time that has no text is no reason to show another one's records.
    if (query_text_write_filter(text, sizeof text, &model->given, NULL) != STATUS_OK)
        (void)snprintf(text, sizeof text, "(as the command line says)");
    model_filter(model, &model->given, text);
}

// What the dashboard asks for has models, hosts, devices and runs to filter by.
static enum status check_filter(const struct query_filter *filter, struct error *err)
{
    for (unsigned i = 0; i < QUERY_DIMENSION_COUNT; i++)
        if (filter->by[i][0] && i != QUERY_BY_MODEL && i != QUERY_BY_HOST && i != QUERY_BY_DEVICE &&
            i != QUERY_BY_RUN)
            return error_set(err, STATUS_INVALID, "what the dashboard shows has no %s",
                             query_dimension_name((enum query_dimension)i));
    return STATUS_OK;
}

static enum status read_filter(const struct model *model, struct query_filter *filter,
                               struct query_place *place, struct error *err)
{
    int64_t now_ns = model->wall_now_ns;
    enum status status =
        query_text_read_filter(filter, model->prompt.text, model->when, &now_ns, place, err);
    if (status != STATUS_OK)
        return status;
    *place = (struct query_place){0, model->prompt.size};
    return check_filter(filter, err);
}

// The screen is to show what was asked for, also after a pause.
static unsigned close_prompt(struct model *model)
{
    model->overlay = OVERLAY_NONE;
    model->paused = false;
    return EFFECT_FILTER | EFFECT_ASK | EFFECT_PACE;
}

static unsigned apply(struct model *model)
{
    struct query_filter filter;
    struct prompt *prompt = &model->prompt;
    struct error err = {0};
    if (read_filter(model, &filter, &prompt->place, &err) != STATUS_OK) {
        (void)text_escape(prompt->error, sizeof prompt->error, err.text, strlen(err.text));
        return 0;
    }
    model_filter(model, &filter, prompt->text);
    return close_prompt(model);
}

// `code` is the key of an action that is bound to none: a character.
static unsigned act_in_prompt(struct model *model, enum action action, uint32_t code)
{
    if (action == ACTION_APPLY)
        return apply(model);
    if (action == ACTION_UNFILTER) {
        const struct query_filter given = model->given;
        model_set_filter(model, &given);
        return close_prompt(model);
    }
    prompt_edit(&model->prompt, action, code);
    return 0;
}

// ---- Keys --------------------------------------------------------------------

static void change_interval(struct model *model, int step)
{
    static const double steps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300};
    const int count = sizeof steps / sizeof *steps;
    double next = model->interval_seconds; // beyond the steps it stays
    for (int i = 0; i < count; i++) {
        int at = step > 0 ? count - 1 - i : i; // the last one found is the nearest
        if (step > 0 ? steps[at] > model->interval_seconds : steps[at] < model->interval_seconds)
            next = steps[at];
    }
    model->interval_seconds = next;
}

static unsigned answer_clear(struct model *model, bool yes)
{
    model->overlay = OVERLAY_NONE;
    if (!yes)
        return 0;
    model->paused = false; // the screen is to show what the clear has done
    notify(model, "clearing ...");
    return EFFECT_CLEAR | EFFECT_PACE;
}

// One step out: of what lies over the view, the enlarged panel, the sorting.
static void step_back(struct model *model)
{
    struct view_state *state = current(model);
    struct grid_state *panel = &state->panels[state->focus];
    if (model->overlay != OVERLAY_NONE)
        model->overlay = OVERLAY_NONE;
    else if (state->enlarged)
        state->enlarged = false;
    else if (panel->sort != GRID_UNSORTED || panel->reversed || panel->top > 0)
        *panel = (struct grid_state){.sort = GRID_UNSORTED};
    else
        state->focus = 0;
}

static unsigned act(struct model *model, enum action action)
{
    struct list list = focused_list(model);
    long long page = list.page > 1 ? (long long)list.page - 1 : 1;
    struct view_state *state = current(model);
    const unsigned panels = view_current(model)->panel_count;
    switch (action) {
    case ACTION_NONE:
        break;
    case ACTION_QUIT:
        return EFFECT_QUIT;
    case ACTION_OVERVIEW:
    case ACTION_PIPELINES:
        show_view(model, action == ACTION_OVERVIEW ? VIEW_OVERVIEW : VIEW_PIPELINES);
        break;
    case ACTION_REFRESH:
        model->paused = false;
        return EFFECT_ASK | EFFECT_PACE;
    case ACTION_PAUSE:
        model->paused = !model->paused;
        return model->paused ? EFFECT_PACE : EFFECT_PACE | EFFECT_ASK;
    case ACTION_CLEAR:
        if (model->readonly)
            notify(model, "not cleared: the dashboard was started with --readonly");
        else
            model->overlay = OVERLAY_CLEAR;
        break;
    case ACTION_YES:
    case ACTION_NO:
        return answer_clear(model, action == ACTION_YES);
    case ACTION_HELP:
        model->overlay = model->overlay == OVERLAY_HELP ? OVERLAY_NONE : OVERLAY_HELP;
        model->help_top = 0;
        break;
    case ACTION_BACK:
        step_back(model);
        break;
    case ACTION_NEXT_PANEL:
    case ACTION_PREVIOUS_PANEL:
        state->focus = (state->focus + (action == ACTION_NEXT_PANEL ? 1 : panels - 1)) % panels;
        clamp_scrolls(model);
        break;
    case ACTION_ENLARGE:
        state->enlarged = !state->enlarged;
        clamp_scrolls(model);
        break;
    case ACTION_UP:
    case ACTION_DOWN:
        scroll(list, action == ACTION_UP ? -1 : 1);
        break;
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
        scroll(list, action == ACTION_PAGE_UP ? -page : page);
        break;
    case ACTION_HOME:
        *list.top = 0;
        break;
    case ACTION_END:
        scroll(list, (long long)list.rows);
        break;
    case ACTION_SORT_NEXT:
    case ACTION_SORT_PREVIOUS:
        sort_next(model, action == ACTION_SORT_NEXT ? 1 : -1);
        break;
    case ACTION_SORT_REVERSE:
        state->panels[state->focus].reversed = !state->panels[state->focus].reversed;
        break;
    case ACTION_LONGER:
    case ACTION_SHORTER:
        change_interval(model, action == ACTION_LONGER ? 1 : -1);
        return EFFECT_PACE;
    case ACTION_REDRAW:
        return EFFECT_REPAINT;
    case ACTION_FILTER:
        prompt_open(&model->prompt, model->filter_text);
        model->overlay = OVERLAY_FILTER;
        break;
    case ACTION_APPLY:
    case ACTION_UNFILTER:
    case ACTION_LEFT:
    case ACTION_RIGHT:
    case ACTION_ERASE_BEFORE:
    case ACTION_ERASE_BEHIND:
    case ACTION_EMPTY:
        break; // of the prompt
    }
    return 0;
}

static unsigned on_key(struct model *model, uint32_t code)
{
    const enum action action = key_bindings_find(model_key_context(model), code);
    const bool everywhere = action == ACTION_QUIT || action == ACTION_REDRAW;
    return model->overlay == OVERLAY_FILTER && !everywhere ? act_in_prompt(model, action, code)
                                                           : act(model, action);
}

// ---- Mouse -------------------------------------------------------------------

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

static void press_panel(struct model *model, unsigned at, struct rect area, int x, int y)
{
    const struct panel *panel = &view_current(model)->panels[at];
    struct grid_state *state = &current(model)->panels[at];
    current(model)->focus = at;
    struct rect rows = view_panel_list(model, panel, area);
    if (!panel->grid || y != rows.y)
        return;
    int column =
        grid_column_at(panel->grid, state, model_answer(model, panel->polled), rows, x - rows.x);
    if (column == GRID_UNSORTED)
        return;
    state->reversed = state->sort == column && !state->reversed;
    state->sort = column;
    state->top = 0;
}

// A press on a view's name shows it; on a panel, gives it the keys; on a heading, sorts by
// that column, and the next press there turns the order round.
static void press(struct model *model, int x, int y)
{
    struct rect area;
    unsigned at = panel_at(model, x, y, &area), number;
    if (model->overlay != OVERLAY_NONE || !layout_fits(model->width, model->height))
        return;
    if (view_frame_view_at(model, layout_frame(model->width, model->height, false).title, x, y,
                           &number))
        show_view(model, (enum view_number)number);
    else if (at < MODEL_PANELS_MAX)
        press_panel(model, at, area, x, y);
}

static void turn_wheel(struct model *model, const struct event *event)
{
    struct rect area;
    unsigned at = panel_at(model, event->x, event->y, &area);
    if (model->overlay == OVERLAY_HELP)
        scroll(focused_list(model), event->turn);
    if (model->overlay == OVERLAY_NONE && at < MODEL_PANELS_MAX)
        scroll(panel_list(model, at, area), event->turn);
}

// ---- Answers -----------------------------------------------------------------

static void on_answer(struct model *model, const struct event *event)
{
    if (model->paused) {
        result_free(event->result);
        return;
    }
    struct model_answer *answer = &model->answers[event->polled];
    result_free(answer->result);
    answer->result = event->result;
    answer->known = true;
    model->answered_ns = event->now_ns;
    model->answered_at_ns = event->wall_now_ns;
    clamp_scrolls(model);
}

static const char *reason(const struct event *event)
{
    return event->text && event->text[0] ? event->text : status_text(event->status);
}

static void end_round(struct model *model, const struct event *event)
{
    const char *text = reason(event);
    bool lost = event->status == STATUS_UNREACHABLE || event->status == STATUS_TIMEOUT;
    if (model->paused)
        return;
    if (event->status == STATUS_OK)
        model->contact = CONTACT_OK;
    else
        model->contact = lost ? CONTACT_LOST : CONTACT_FAULT;
    (void)text_escape(model->fault, sizeof model->fault, text, strlen(text));
}

static unsigned end_clear(struct model *model, const struct event *event)
{
    char text[MODEL_NOTICE_SIZE];
    if (event->status == STATUS_OK)
        (void)snprintf(text, sizeof text, "cleared %llu records",
                       (unsigned long long)event->cleared);
    else
        (void)snprintf(text, sizeof text, "not cleared: %s", reason(event));
    notify(model, text);
    return EFFECT_ASK;
}

unsigned model_update(struct model *model, const struct event *event)
{
    model->now_ns = event->now_ns;
    model->wall_now_ns = event->wall_now_ns;
    if (model->notice_until_ns <= model->now_ns)
        model->notice[0] = '\0';

    switch (event->kind) {
    case EVENT_KEY:
        return on_key(model, event->code);
    case EVENT_PRESS:
        press(model, event->x, event->y);
        break;
    case EVENT_WHEEL:
        turn_wheel(model, event);
        break;
    case EVENT_RESIZE:
        model->width = event->x;
        model->height = event->y;
        clamp_scrolls(model);
        return EFFECT_REPAINT;
    case EVENT_TICK:
        break;
    case EVENT_ANSWER:
        on_answer(model, event);
        break;
    case EVENT_ROUND:
        end_round(model, event);
        break;
    case EVENT_CLEARED:
        return end_clear(model, event);
    }
    return 0;
}
