#include "client/tui/update.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/tui/compare/chooser.h"
#include "client/tui/grid_rows.h"
#include "client/tui/key_bindings.h"
#include "client/tui/lists.h"
#include "client/tui/machines.h"
#include "client/tui/mouse.h"
#include "client/tui/prompt/prompt_actions.h"
#include "client/tui/settings/settings.h"
#include "client/tui/view.h"
#include "common/core/base/text.h"
#include "common/core/query/query_text.h"

// ---- Views and windows -------------------------------------------------------

static struct view_state *current(struct model *model)
{
    return &model->views[view_shown(model)];
}

// Sets a subject; what was answered about another one is none of it.
static void select_subject(struct model *model, enum queries_subject subject,
                           const struct result *records, size_t row)
{
    if (!queries_select(&model->scope, subject, records, row))
        return;
    model_forget(model, queries_about(subject));
    model->asked |= queries_about(subject);
}

// The load of the cursor, and the one before it; the request whose details are open.
static unsigned select_subjects(struct model *model)
{
    const bool is_open = model->overlay == OVERLAY_DETAIL &&
                         view_current(model) == &view_requests && current(model)->focus == 0;
    size_t row;
    const struct result *loads = view_current(model) == &view_loads ? view_load(model, &row) : NULL;
    if (loads) {
        select_subject(model, SUBJECT_LOAD, loads, row);
        select_subject(model, SUBJECT_LOAD_BEFORE, loads, queries_load_before(loads, row));
    }
    if (!is_open)
        select_subject(model, SUBJECT_REQUEST, NULL, 0);
    else if (view_selected(model, 0, &row))
        select_subject(model, SUBJECT_REQUEST, model_answer(model, POLL_INFERENCES), row);
    return model->asked ? EFFECT_SCOPE | EFFECT_SUBJECT : 0;
}

// The host or device whose details are open.  Returns true if it is another one now.
static bool select_machine(struct model *model)
{
    size_t row;
    const bool is_open = model->overlay == OVERLAY_DETAIL && view_current(model) == &view_hosts &&
                         view_selected(model, 0, &row);
    if (!queries_select_machine(&model->scope, is_open ? model_answer(model, POLL_MACHINES) : NULL,
                                is_open ? row : 0))
        return false;
    model_forget(model, POLL(MACHINE_USE) | POLL(MACHINE_MORE));
    return true;
}

// The view's queries; those that it lacks are asked for at once.
static unsigned want(struct model *model)
{
    const bool is_other = select_machine(model);
    const uint64_t wanted = view_polls(model);
    if (wanted == model->scope.wanted && !is_other)
        return 0;
    model->scope.wanted = wanted;
    return EFFECT_SCOPE | EFFECT_ASK;
}

static void show_view(struct model *model, unsigned number)
{
    if (number >= VIEW_COUNT)
        return;
    model->overlay = OVERLAY_NONE;
    model->view = number;
    lists_keep(model); // its lists may have changed while it was not shown
}

// The answers of another window are none of this one.
static unsigned change_window(struct model *model, enum action action)
{
    struct window *window = &model->scope.window;
    const struct window before = *window;
    if (model->scope.filter.since_ns != 0 || model->scope.filter.until_ns != 0) {
        model_notify(model, "the filter says the times");
        return 0;
    }
    if (action == ACTION_WINDOW && window->length + 1 == window_lengths())
        *window = (struct window){0};
    else if (action == ACTION_WINDOW || action == ACTION_ZOOM_OUT)
        window_zoom(window, 1);
    else if (action == ACTION_ZOOM_IN)
        window_zoom(window, -1);
    else if (action == ACTION_LIVE)
        window->until_ns = 0;
    else
        window_pan(window, action == ACTION_EARLIER ? -1 : 1, model_reference_ns(model));
    if (before.length == window->length && before.until_ns == window->until_ns)
        return 0;
    model_forget(model, queries_of_window());
    return EFFECT_SCOPE | EFFECT_ASK;
}

// Rows that are equal in the column sorted by are sorted by the one that is chosen next.
static void sort_more(struct model *model)
{
    struct view_state *state = current(model);
    struct grid_state *sorted = &state->panels[state->focus];
    if (sorted->sort == GRID_UNSORTED) {
        model_notify(model, "sort by a first column: > or a press on its heading");
    } else if (sorted->before_count == GRID_SORTS_MAX - 1) {
        model_notify(model, "three columns are the most (Esc: as it was)");
    } else {
        sorted->before[sorted->before_count++] = (struct grid_sort){sorted->sort, sorted->reversed};
        sorted->sort = GRID_UNSORTED;
        sorted->reversed = false;
        model_notify(model, "then by: > < or a press on a heading");
    }
}

// The choice after `sort`, or before it (`step` -1).  There is one more than columns: the order of
// the answer.
static int next_sort(const struct grid *grid, const struct grid_state *sorted, int sort, int step)
{
    const int choices = (int)grid->count + 1;
    do
        sort = (sort + 1 + step + choices) % choices - 1;
    while (sort >= 0 && grid_sorts_before(sorted, (unsigned)sort));
    return sort;
}

// "sorted by E2E; next: items, items/s, t/s, prompt".
static void tell_sort(struct model *model, const struct grid *grid, const struct grid_state *sorted,
                      int step)
{
    enum { TOLD = 4 };
    char text[MODEL_NOTICE_SIZE] = "";
    int sort = sorted->sort;
    for (unsigned i = 0; i <= TOLD && (i == 0 || sort != sorted->sort);
         i++, sort = next_sort(grid, sorted, sort, step))
        (void)text_append(text, sizeof text, i == 1 ? "; next: " : ", ", "%s%s",
                          i > 0                      ? ""
                          : sorted->before_count > 0 ? "then by "
                                                     : "sorted by ",
                          sort >= 0 ? grid->columns[sort].heading : "no column");
    model_notify(model, text);
}

static void sort_next(struct model *model, int step)
{
    struct view_state *state = current(model);
    const struct grid *grid = view_current(model)->panels[state->focus].grid;
    struct grid_state *sorted = &state->panels[state->focus];
    if (!grid) {
        model_notify(model, "this panel keeps its order");
        return;
    }
    sorted->sort = next_sort(grid, sorted, sorted->sort, step);
    sorted->reversed = false;
    sorted->top = sorted->cursor = 0;
    sorted->at = 0;
    tell_sort(model, grid, sorted, step);
}

// Now has its rows by model, or by host; other views sort by model, then by host, then as the
// answer is.
static unsigned group_next(struct model *model)
{
    if (view_current(model) == &view_now) {
        model->scope.by_host = !model->scope.by_host;
        model_forget(model, POLL(NOW));
        return EFFECT_SCOPE | EFFECT_ASK;
    }
    static const char *const keys[] = {"model", "host"};
    struct view_state *state = current(model);
    const struct grid *grid = view_current(model)->panels[state->focus].grid;
    struct grid_state *sorted = &state->panels[state->focus];
    const char *now = grid && sorted->sort >= 0 ? grid->columns[sorted->sort].key : "";
    const unsigned from = strcmp(now, keys[0]) == 0 ? 1 : strcmp(now, keys[1]) == 0 ? 2 : 0;
    sorted->sort = GRID_UNSORTED;
    sorted->before_count = 0;
    for (unsigned i = 0; grid && from < 2 && i < grid->count; i++)
        if (strcmp(grid->columns[i].key, keys[from]) == 0)
            sorted->sort = (int)i;
    sorted->reversed = false;
    lists_keep(model);
    return 0;
}

void model_set_filter(struct model *model, const struct query_filter *filter)
{
    char text[PROMPT_SIZE];
    const struct query_filter none = {0};
    // A time that has no text is no reason to show another one's records.
    if (query_text_write_filter(text, sizeof text, filter ? filter : &none, NULL) != STATUS_OK)
        (void)snprintf(text, sizeof text, "(as the command line says)");
    model_filter(model, filter ? filter : &none, text);
}

bool model_may_replace(const struct model *model)
{
    return model->written[0] && strcmp(model->written, model->prompt.text) == 0;
}

// "240 of 12345 rows written: a.csv": a panel has the newest rows alone, as its query is limited.
static void tell_written(char text[MODEL_NOTICE_SIZE], const struct model *model, size_t rows)
{
    const unsigned focus = model->views[view_shown(model)].focus;
    const enum polled_query polled = view_current(model)->panels[focus].polled;
    const struct result *result = view_result(model), *window = model_answer(model, POLL_WINDOW);
    const size_t held = result ? result_row_count(result) : 0;
    const int64_t all =
        polled == POLL_INFERENCES && window ? result_integer(window, 0, "inferences", 0) : 0;
    char of[48] = "";
    struct query query;
    if (all > (int64_t)held)
        (void)snprintf(of, sizeof of, " of %" PRId64, all);
    else if (polled < POLL_COUNT &&
             queries_fill(polled, &model->scope, model->wall_now_ns, &query) && held == query.limit)
        (void)snprintf(of, sizeof of, " of %zu or more", held);
    if (rows > 0)
        (void)snprintf(text, MODEL_NOTICE_SIZE, "%zu%s rows written: %.140s%s", rows, of,
                       model->prompt.text, of[0] ? " (all: inferstat export)" : "");
    else
        (void)snprintf(text, MODEL_NOTICE_SIZE, "written: %.200s", model->prompt.text);
}

void model_end_export(struct model *model, enum status status, const char *why, size_t rows)
{
    char text[MODEL_NOTICE_SIZE];
    if ((status == STATUS_OK || status == STATUS_BUSY) &&
        model->prompt.size < sizeof model->written)
        memcpy(model->written, model->prompt.text, model->prompt.size + 1);
    if (status == STATUS_BUSY && model_may_replace(model)) {
        model->overlay = OVERLAY_EXPORT;
        (void)snprintf(model->prompt.error, sizeof model->prompt.error,
                       "the file exists: Enter replaces it");
        return;
    }
    if (status == STATUS_OK)
        tell_written(text, model, rows);
    else
        (void)snprintf(text, sizeof text, "not written: %.200s", why);
    model_notify(model, text);
}

// The histogram is of the other time.
static unsigned change_metric(struct model *model)
{
    model->scope.of_e2e = !model->scope.of_e2e;
    model_forget(model, POLL(HISTOGRAM));
    return EFFECT_SCOPE | EFFECT_ASK;
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

// One step out: of what lies over the view, the enlarged panel, the sorting.
static void step_back(struct model *model)
{
    struct view_state *state = current(model);
    struct grid_state *panel = &state->panels[state->focus];
    if (model->overlay != OVERLAY_NONE)
        model->overlay = OVERLAY_NONE;
    else if (model->search[0]) // the row that was found stays the cursor's
        model->search[0] = '\0';
    else if (state->enlarged)
        state->enlarged = false;
    else if (panel->sort != GRID_UNSORTED || panel->before_count > 0 || panel->reversed ||
             panel->top > 0 || panel->cursor > 0)
        grid_state_reset(panel);
    else
        state->focus = 0;
}

// Asks why the model and host of the cursor's row are slow; of a view without such rows, all.
static void ask_why(struct model *model)
{
    const unsigned focus = current(model)->focus;
    size_t row;
    model->scope.why = (struct query_filter){.since_ns = 0};
    if (view_selected(model, focus, &row)) {
        (void)queries_copy_name(&model->scope.why, QUERY_BY_MODEL, view_result(model), row);
        (void)queries_copy_name(&model->scope.why, QUERY_BY_HOST, view_result(model), row);
    }
    model_forget(model, POLL(WHY));
    model->help_top = 0;
    model->overlay = OVERLAY_WHY;
}

static unsigned act(struct model *model, enum action action)
{
    struct list list = list_focused(model);
    long long page = list.page > 1 ? (long long)list.page - 1 : 1;
    struct view_state *state = current(model);
    const unsigned panels = view_current(model)->panel_count;
    char text[MODEL_NOTICE_SIZE] = "";
    size_t row;
    switch (action) {
    case ACTION_NONE:
    case ACTION_VIEW: // perform does it: the digit says which
        break;
    case ACTION_QUIT:
        return EFFECT_QUIT;
    case ACTION_REFRESH:
        model->paused = false;
        return EFFECT_ASK | EFFECT_PACE;
    case ACTION_PAUSE:
        model->paused = !model->paused;
        return model->paused ? EFFECT_PACE : EFFECT_PACE | EFFECT_ASK;
    case ACTION_CLEAR:
        if (model_why_unchangeable(model))
            model_notify(model, text_append(text, sizeof text, "", "not cleared: %s",
                                            model_why_unchangeable(model)));
        else if (model->is_file)
            model_notify(model, "not cleared: of a file, inferstat clear --db does it");
        else
            prompts_open(model, OVERLAY_CLEAR, "");
        break;
    case ACTION_HELP:
        model->overlay = model->overlay == OVERLAY_HELP ? OVERLAY_NONE : OVERLAY_HELP;
        model->help_top = 0;
        break;
    case ACTION_BACK:
        step_back(model);
        break;
    case ACTION_NEXT_PANEL:
    case ACTION_PREVIOUS_PANEL:
        do
            state->focus = (state->focus + (action == ACTION_NEXT_PANEL ? 1 : panels - 1)) % panels;
        while (!view_has_panel(model, state->focus));
        lists_keep(model);
        break;
    case ACTION_ENLARGE:
        state->enlarged = !state->enlarged;
        lists_keep(model);
        break;
    case ACTION_WHY:
        if (model_is_past(model))
            model_notify(model, "why needs a window that ends now (press 0)");
        else
            ask_why(model);
        break;
    case ACTION_DETAIL:
        model->help_top = 0;
        if (view_selected(model, state->focus, &row))
            model->overlay = OVERLAY_DETAIL;
        break;
    case ACTION_UP:
    case ACTION_DOWN:
        list_move(list, action == ACTION_UP ? -1 : 1);
        break;
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
        list_move(list, action == ACTION_PAGE_UP ? -page : page);
        break;
    case ACTION_HOME:
    case ACTION_END:
        list_move(list, action == ACTION_HOME ? -(long long)list.rows : (long long)list.rows);
        break;
    case ACTION_UNFOLD:
        state->panels[state->focus].unfolded = !state->panels[state->focus].unfolded;
        lists_keep(model);
        break;
    case ACTION_WINDOW:
    case ACTION_ZOOM_IN:
    case ACTION_ZOOM_OUT:
    case ACTION_EARLIER:
    case ACTION_LATER:
    case ACTION_LIVE:
        return change_window(model, action);
    case ACTION_EXPORT:
        prompts_open(model, OVERLAY_EXPORT, "inferstat.csv");
        break;
    case ACTION_ACKNOWLEDGE:
    case ACTION_SILENCE:
        prompts_open_alert(model, action == ACTION_SILENCE ? OVERLAY_SILENCE : OVERLAY_ACKNOWLEDGE);
        break;
    case ACTION_GROUP:
        return group_next(model);
    case ACTION_OPEN:
    case ACTION_CLOSE:
        if (list.grid)
            (void)grid_rows_open(list.grid, list.state, list.result, action == ACTION_OPEN,
                                 list.page);
        break;
    case ACTION_METRIC:
        return change_metric(model);
    case ACTION_DIFFERENCE:
        model->against_before = !model->against_before;
        if (view_current(model) != &view_loads)
            model_notify(model, model->against_before ? "loads: beside the one before"
                                                      : "loads: beside the usual one");
        break;
    case ACTION_COMPARE:
        show_view(model, VIEW_COMPARE);
        chooser_open(model);
        break;
    case ACTION_SEARCH:
        prompts_open(model, OVERLAY_SEARCH, "");
        break;
    case ACTION_FIND_NEXT:
    case ACTION_FIND_PREVIOUS:
        prompts_find(model, action == ACTION_FIND_NEXT ? 1 : -1);
        break;
    case ACTION_SORT_NEXT:
    case ACTION_SORT_PREVIOUS:
        sort_next(model, action == ACTION_SORT_NEXT ? 1 : -1);
        break;
    case ACTION_SORT_MORE:
        sort_more(model);
        break;
    case ACTION_SORT_REVERSE:
        state->panels[state->focus].reversed = !state->panels[state->focus].reversed;
        break;
    case ACTION_LONGER:
    case ACTION_SHORTER:
        change_interval(model, action == ACTION_LONGER ? 1 : -1);
        return EFFECT_PACE;
    case ACTION_SETUP:
        model->overlay = OVERLAY_SETUP;
        model->settings.cursor = 0;
        break;
    case ACTION_REDRAW:
        return EFFECT_REPAINT;
    case ACTION_FILTER:
        prompts_open(model, OVERLAY_FILTER,
                     model->choice.only[0] ? model->choice.only : model->filter_text);
        break;
    case ACTION_APPLY:
    case ACTION_CANCEL:
    case ACTION_LEFT:
    case ACTION_RIGHT:
    case ACTION_ERASE_BEFORE:
    case ACTION_ERASE_BEHIND:
    case ACTION_EMPTY:
    case ACTION_COMPLETE:
        break; // of the prompt
    }
    return 0;
}

// Keys of the setup screen.
static unsigned act_setup(struct model *model, enum action action)
{
    const size_t rows = settings_rows(model);
    size_t *cursor = &model->settings.cursor;
    if (action == ACTION_SETUP) {
        model->overlay = OVERLAY_NONE;
        lists_keep(model);
        return EFFECT_SAVE;
    }
    if (action == ACTION_DOWN && *cursor + 1 < rows)
        (*cursor)++;
    if (action == ACTION_UP && *cursor > 0)
        (*cursor)--;
    if (action != ACTION_LEFT && action != ACTION_RIGHT)
        return 0;
    settings_step(model, *cursor, action == ACTION_LEFT ? -1 : 1);
    return EFFECT_LOOK | EFFECT_PACE;
}

// Three lines show the effect of no other key.
static bool is_of_compact(enum action action)
{
    return action == ACTION_QUIT || action == ACTION_PAUSE || action == ACTION_REFRESH ||
           action == ACTION_WINDOW || action == ACTION_REDRAW;
}

// The action of the key `code`, or of the mouse.
static unsigned perform(struct model *model, enum action action, uint32_t code)
{
    if (model->compact && !is_of_compact(action))
        return 0;
    const bool everywhere = action == ACTION_QUIT || action == ACTION_REDRAW;
    if (model_key_context(model) == KEYS_PROMPT && !everywhere)
        return prompts_act(model, action, code);
    if (model->overlay == OVERLAY_CHOOSER && action != ACTION_VIEW && !everywhere)
        return chooser_act(model, action) ? EFFECT_SCOPE | EFFECT_ASK | EFFECT_PACE : 0;
    if (model->overlay == OVERLAY_SETUP && !everywhere)
        return act_setup(model, action);
    if (action == ACTION_VIEW)
        show_view(model, code - '1');
    return act(model, action);
}

// ---- Answers -----------------------------------------------------------------

// The newest record of a file's summary; a window that ends there has something to show.  A
// collector that writes the file saves what it hears every five seconds.
static void find_reference(struct model *model)
{
    static const char *const times[] = {"last_inference_started_ns", "last_load_started_ns",
                                        "last_pipeline_started_ns"};
    const int64_t recent_ns = INT64_C(20000000000);
    const struct result *summary = model_answer(model, POLL_SUMMARY);
    int64_t newest_ns = 0;
    for (unsigned i = 0; summary && i < sizeof times / sizeof *times; i++) {
        const int64_t time_ns = result_integer(summary, 0, times[i], 0);
        newest_ns = time_ns > newest_ns ? time_ns : newest_ns;
    }
    const int64_t heard_ns = summary ? result_integer(summary, 0, "as_of_ns", newest_ns) : 0;
    const bool is_old = newest_ns > 0 && newest_ns < model->wall_now_ns - recent_ns &&
                        heard_ns < model->wall_now_ns - recent_ns;
    // What dies after its last request is known by the end of the file alone.
    const int64_t end_ns = heard_ns > newest_ns ? heard_ns : newest_ns + 1;
    model->scope.now_ns = is_old ? end_ns : 0;
}

static void join_machines(struct model *model)
{
    const struct machines machines = {.hosts = model_answer(model, POLL_HOSTS),
                                      .devices = model_answer(model, POLL_DEVICES),
                                      .events = model_answer(model, POLL_EVENTS)};
    struct model_answer *answer = &model->answers[POLL_MACHINES];
    result_free(answer->result);
    answer->result = machines_join(&machines);
    answer->known = true;
    model->has_new_machines = false;
    lists_keep(model);
}

static unsigned on_answer(struct model *model, const struct event *event)
{
    const int64_t before_ns = model->scope.now_ns, first_ns = model->scope.first_ns;
    struct model_answer *answer = &model->answers[event->polled];
    if (event->generation != model->scope.generations[event->polled]) {
        result_free(event->result);
        return 0;
    }
    if (event->polled == POLL_NOW) {
        result_free(model->answers[POLL_ALL_NOW].result);
        model->answers[POLL_ALL_NOW] =
            (struct model_answer){.result = result_take_all(event->result), .known = true};
    }
    // A request that is open stays: newer ones would push it out of the list.
    const bool is_open = model->overlay == OVERLAY_DETAIL && view_current(model) == &view_requests;
    const bool is_kept = is_open && event->polled == POLL_INFERENCES;
    result_free(is_kept ? event->result : answer->result);
    answer->result = is_kept ? answer->result : event->result;
    answer->known = true;
    if (event->polled == POLL_HOSTS || event->polled == POLL_DEVICES ||
        event->polled == POLL_EVENTS)
        model->has_new_machines = true;
    if (event->polled == POLL_NOW || event->polled == POLL_ALERTS)
        model_mark_alerts(model);
    model->answered_ns = event->now_ns;
    model->answered_at_ns = event->wall_now_ns;
    if (event->polled == POLL_SUMMARY && model->first_size_ns == 0 && event->result) {
        model->first_size = model_figure(model, "store_bytes", 0);
        model->first_size_ns = model->first_size > 0 ? event->wall_now_ns : 0;
    }
    if (event->polled == POLL_SUMMARY)
        model->scope.first_ns = (int64_t)model_figure(model, "first_started_ns", 0);
    if (event->polled == POLL_SUMMARY && model->is_file)
        find_reference(model);
    lists_keep(model);
    return model->scope.now_ns == before_ns && model->scope.first_ns == first_ns
               ? 0
               : EFFECT_SCOPE | EFFECT_ASK;
}

static const char *reason(const struct event *event)
{
    return event->text && event->text[0] ? event->text : status_text(event->status);
}

// What was asked once, perhaps in a round that failed, is asked again after one that did not.
static void ask_about_subjects(struct model *model)
{
    for (unsigned subject = 0; subject < SUBJECT_COUNT; subject++)
        if (model->scope.subjects[subject].since_ns != 0)
            model->asked |= queries_about((enum queries_subject)subject);
}

static void end_round(struct model *model, const struct event *event)
{
    const char *text = reason(event);
    if (model->has_new_machines)
        join_machines(model);
    if (event->status == STATUS_OK &&
        (model->contact == CONTACT_LOST || model->contact == CONTACT_FAULT))
        ask_about_subjects(model);
    bool lost = event->status == STATUS_UNREACHABLE || event->status == STATUS_TIMEOUT;
    if (event->status == STATUS_OK)
        model->contact = CONTACT_OK;
    else
        model->contact = lost ? CONTACT_LOST : CONTACT_FAULT;
    (void)text_escape(model->fault, sizeof model->fault, text, strlen(text));
}

static unsigned end_change(struct model *model, const struct event *event)
{
    char text[MODEL_NOTICE_SIZE];
    const bool clears = model->change.kind != QUERY_ALERT_EDIT;
    model->is_changing = false;
    const char *done = clears                                            ? "cleared"
                       : model->change.alert.edit == QUERY_ALERT_SILENCE ? "silenced for two hours"
                                                                         : "acknowledged";
    if (event->status != STATUS_OK)
        (void)snprintf(text, sizeof text, "not %s: %s", done, reason(event));
    else if (clears)
        (void)snprintf(text, sizeof text, "cleared %llu records",
                       (unsigned long long)event->cleared);
    else
        (void)snprintf(text, sizeof text, "%s", done);
    model_notify(model, text);
    return EFFECT_ASK;
}

static unsigned on_mouse(struct model *model, const struct event *event)
{
    uint32_t code = 0;
    const enum action action = event->kind == EVENT_PRESS
                                   ? mouse_press(model, event->x, event->y, &code)
                                   : mouse_turn(model, event->x, event->y, event->turn);
    return action == ACTION_NONE ? 0 : perform(model, action, code);
}

static unsigned update(struct model *model, const struct event *event)
{
    switch (event->kind) {
    case EVENT_KEY:
        return perform(model, key_bindings_find(model_key_context(model), event->code),
                       event->code);
    case EVENT_PRESS:
    case EVENT_WHEEL:
        return on_mouse(model, event);
    case EVENT_RESIZE:
        model->width = event->x;
        model->height = event->y;
        lists_keep(model);
        return EFFECT_REPAINT;
    case EVENT_TICK:
        break;
    case EVENT_ANSWER:
        return on_answer(model, event);
    case EVENT_ROUND:
        end_round(model, event);
        break;
    case EVENT_CHANGED:
        return end_change(model, event);
    }
    return 0;
}

unsigned model_update(struct model *model, const struct event *event)
{
    model->now_ns = event->now_ns;
    model->wall_now_ns = event->wall_now_ns;
    if (model->notice_until_ns <= model->now_ns)
        model->notice[0] = '\0';
    model->asked = 0;
    const bool was_open = model->overlay == OVERLAY_DETAIL;
    const unsigned effects = update(model, event);
    if (was_open != (model->overlay == OVERLAY_DETAIL))
        lists_keep(model); // which hold their rows, or no longer
    return effects | want(model) | select_subjects(model);
}
