// What happens, and what becomes of the model.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_fixture.h"

enum { OPEN, HISTORY }; // of the view Alerts
enum { STAGES = 1 };    // of the view Loads

static struct model *fresh(int width, int height, void (*fill)(struct model *))
{
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    fixture_model(model, width, height);
    if (fill)
        fill(model);
    return model;
}

static void drop(struct model *model)
{
    model_deinit(model);
    free(model);
}

static const struct view_state *state_of(const struct model *model)
{
    return &model->views[view_shown(model)];
}

static const struct grid_state *list_of(const struct model *model)
{
    return &state_of(model)->panels[state_of(model)->focus];
}

// The visible lines of the focused panel.
static size_t page_of(const struct model *model)
{
    struct rect areas[MODEL_PANELS_MAX];
    const unsigned focus = state_of(model)->focus;
    view_arrange(model, areas);
    return view_panel_page(model, &view_current(model)->panels[focus], areas[focus]);
}

TEST_CASE(keys_have_effects)
{
    static const struct {
        uint32_t code;
        unsigned effects;
    } cases[] = {
        {'q', EFFECT_QUIT},
        {KEY_CODE_F10, EFFECT_QUIT},
        {'r', EFFECT_ASK | EFFECT_PACE},
        {' ', EFFECT_PACE},
        {'}', EFFECT_PACE},
        {'{', EFFECT_PACE},
        {'t', EFFECT_SCOPE | EFFECT_ASK},
        {'+', EFFECT_SCOPE | EFFECT_ASK},
        {'[', EFFECT_SCOPE | EFFECT_ASK},
        {']', 0}, // nothing is later than now
        {'3', EFFECT_SCOPE | EFFECT_ASK},
        {'1', 0}, // it is shown
        {KEY_CODE_CTRL_L, EFFECT_REPAINT},
        {'c', 0}, // asks first
        {'h', 0},
        {'x', 0},
        {0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model *model = fresh(80, 24, fixture_normal);
        assert_int_equal(fixture_key(model, cases[i].code), cases[i].effects);
        drop(model);
    }
}

static unsigned type(struct model *model, const char *text)
{
    for (; *text; text++)
        fixture_key(model, (unsigned char)*text);
    return fixture_key(model, KEY_CODE_ENTER);
}

TEST_CASE(clear_asks_for_the_name)
{
    struct model *model = fresh(80, 24, fixture_normal);
    assert_int_equal(fixture_key(model, 'c'), 0);
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    assert_int_equal(type(model, "y"), 0);
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    assert_true(model->prompt.error[0] != '\0');
    assert_int_equal(fixture_key(model, KEY_CODE_ESCAPE), 0);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, 'c');
    assert_int_equal(type(model, "everything"), EFFECT_CHANGE | EFFECT_PACE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, 'c'); // not before the answer
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "not been answered"));
    fixture_event(model, (struct event){.kind = EVENT_CHANGED, .cleared = 1});
    fixture_key(model, '\\');
    (void)type(model, "host=gpu-17");
    fixture_key(model, 'c');
    assert_int_equal(type(model, "everything"), 0);
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(type(model, "gpu-17"), EFFECT_CHANGE | EFFECT_PACE);
    fixture_event(model, (struct event){.kind = EVENT_CHANGED});
    model->is_file = true;
    fixture_key(model, 'c');
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "--db"));
    drop(model);
}

TEST_CASE(readonly_refuses_to_clear)
{
    struct model *model = fresh(80, 24, fixture_normal);
    model->readonly = true;
    assert_int_equal(fixture_key(model, 'c'), 0);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "--readonly"));
    drop(model);
}

TEST_CASE(clear_says_how_it_ended)
{
    struct model *model = fresh(80, 24, fixture_normal);
    struct event event = {.kind = EVENT_CHANGED, .cleared = 152};
    assert_int_equal(fixture_event(model, event), EFFECT_ASK);
    assert_string_equal(model->notice, "cleared 152 records");
    event = (struct event){.kind = EVENT_CHANGED, .status = STATUS_DENIED, .text = "not\x1byours"};
    fixture_event(model, event);
    assert_string_equal(model->notice, "not cleared: not\\x1Byours");
    event.text = "";
    fixture_event(model, event);
    assert_string_equal(model->notice, "not cleared: not permitted");

    struct event later = {.kind = EVENT_TICK, .now_ns = FIXTURE_NOW_NS + UINT64_C(4999999999)};
    (void)model_update(model, &later);
    assert_true(model->notice[0] != '\0');
    later.now_ns = FIXTURE_NOW_NS + UINT64_C(5000000000);
    (void)model_update(model, &later);
    assert_true(model->notice[0] == '\0');
    drop(model);
}

TEST_CASE(a_pause_asks_only_when_told)
{
    struct model *model = fresh(80, 24, fixture_normal);
    assert_int_equal(fixture_key(model, ' '), EFFECT_PACE);
    assert_true(model->paused);
    assert_int_equal(fixture_key(model, 't'), EFFECT_SCOPE | EFFECT_ASK);
    fixture_answer(model, POLL_SUMMARY, "inferences\n999\n");
    assert_true(model_figure(model, "inferences", 0) == 999);
    assert_int_equal(fixture_key(model, ' '), EFFECT_PACE | EFFECT_ASK);
    drop(model);
}

TEST_CASE(contact_follows_the_rounds)
{
    static const struct {
        enum status status;
        enum contact contact;
    } cases[] = {
        {STATUS_OK, CONTACT_OK},         {STATUS_UNREACHABLE, CONTACT_LOST},
        {STATUS_TIMEOUT, CONTACT_LOST},  {STATUS_CORRUPT, CONTACT_FAULT},
        {STATUS_INVALID, CONTACT_FAULT}, {STATUS_OK, CONTACT_OK},
    };
    struct model *model = fresh(80, 24, NULL);
    assert_int_equal(model->contact, CONTACT_NONE);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fixture_round(model, cases[i].status, "why");
        assert_int_equal(model->contact, cases[i].contact);
        assert_string_equal(model->fault, "why");
    }
    drop(model);
}

TEST_CASE(age_counts_from_the_last_answer)
{
    struct model *model = fresh(80, 24, NULL);
    assert_true(model_age_seconds(model) == 0);
    fixture_normal(model);
    struct event tick = {.kind = EVENT_TICK, .now_ns = FIXTURE_NOW_NS + UINT64_C(5000000000)};
    (void)model_update(model, &tick);
    assert_true(model_age_seconds(model) == 5);
    drop(model);
}

TEST_CASE(the_interval_moves_in_steps)
{
    struct model *model = fresh(80, 24, NULL);
    static const double up[] = {5, 10, 30, 60, 300, 300};
    for (size_t i = 0; i < COUNT_OF(up); i++) {
        fixture_key(model, '}');
        assert_true(model->interval_seconds == up[i]);
    }
    static const double down[] = {60, 30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.1};
    for (size_t i = 0; i < COUNT_OF(down); i++) {
        fixture_key(model, '{');
        assert_true(model->interval_seconds == down[i]);
    }
    model->interval_seconds = 3600;
    fixture_key(model, '}');
    assert_true(model->interval_seconds == 3600);
    fixture_key(model, '{');
    assert_true(model->interval_seconds == 300);
    drop(model);
}

TEST_CASE(the_cursor_moves_within_the_rows)
{
    struct model *model = fresh(120, 40, fixture_many);
    fixture_key(model, '3');
    const struct grid_state *list = list_of(model);
    const size_t page = page_of(model);
    assert_true(page > 2 && page < 128);

    fixture_key(model, KEY_CODE_UP);
    assert_int_equal(list->cursor, 0);
    fixture_key(model, 'j');
    fixture_key(model, KEY_CODE_DOWN);
    assert_int_equal(list->cursor, 2);
    assert_int_equal(list->top, 0); // still visible
    fixture_key(model, 'k');
    assert_int_equal(list->cursor, 1);
    fixture_key(model, KEY_CODE_PAGE_DOWN);
    assert_int_equal(list->cursor, page);
    assert_int_equal(list->top, 1);
    fixture_key(model, KEY_CODE_END);
    assert_int_equal(list->cursor, 127);
    assert_int_equal(list->top, 128 - page);
    fixture_key(model, KEY_CODE_PAGE_DOWN);
    assert_int_equal(list->cursor, 127);
    fixture_key(model, KEY_CODE_PAGE_UP);
    assert_int_equal(list->cursor, 127 - (page - 1));
    fixture_key(model, KEY_CODE_HOME);
    assert_int_equal(list->cursor, 0);
    assert_int_equal(list->top, 0);

    // Fewer rows than it was at, and a larger screen.
    fixture_key(model, KEY_CODE_END);
    fixture_empty(model);
    assert_int_equal(list->cursor, 0);
    fixture_many(model);
    fixture_key(model, KEY_CODE_END);
    fixture_event(model, (struct event){.kind = EVENT_RESIZE, .x = 120, .y = 300});
    assert_int_equal(list->top, 0);
    assert_int_equal(list->cursor, 127);
    drop(model);
}

#define REQUESTS "run|stream|number|model\n"

// New rows come before the cursor's; at the first row, the cursor is always on the newest.
TEST_CASE(the_cursor_stays_on_its_row)
{
    struct model *model = fresh(120, 40, fixture_normal);
    fixture_key(model, '3');
    fixture_answer(model, POLL_INFERENCES, REQUESTS "r|1|3|c\nr|1|2|b\nr|1|1|a\n");
    fixture_answer(model, POLL_INFERENCES, REQUESTS "r|1|4|d\nr|1|3|c\nr|1|2|b\nr|1|1|a\n");
    assert_int_equal(list_of(model)->cursor, 0);
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, KEY_CODE_DOWN); // "b"
    fixture_answer(model, POLL_INFERENCES,
                   REQUESTS "r|1|6|f\nr|1|5|e\nr|1|4|d\nr|1|3|c\nr|1|2|b\nr|1|1|a\n");
    assert_int_equal(list_of(model)->cursor, 4);
    assert_int_equal(list_of(model)->top, 0); // all are visible
    size_t row;
    assert_true(view_selected(model, 0, &row));
    assert_int_equal(row, 4);
    fixture_answer(model, POLL_INFERENCES, REQUESTS "r|1|6|f\n"); // it is gone
    assert_int_equal(list_of(model)->cursor, 0);
    drop(model);
}
TEST_CASE(what_has_ended_is_folded)
{
    struct model *model = fresh(120, 60, fixture_many);
    char *screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, "▸ 5 ended"));
    assert_null(strstr(screen, "gpu-36"));
    free(screen);
    fixture_key(model, 'o');
    screen = fixture_screen(model, false);
    assert_null(strstr(screen, "▸ 5 ended"));
    assert_non_null(strstr(screen, "gpu-36"));
    free(screen);
    drop(model);
}

TEST_CASE(search_finds_rows)
{
    struct model *model = fresh(120, 40, fixture_many);
    fixture_key(model, 'n');
    assert_non_null(strstr(model->notice, "/ searches"));
    fixture_key(model, '/');
    assert_int_equal(model->overlay, OVERLAY_SEARCH);
    (void)type(model, "GPU-1");
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_int_equal(list_of(model)->cursor, 10);
    fixture_key(model, 'n');
    assert_int_equal(list_of(model)->cursor, 11);
    for (unsigned i = 0; i < 9; i++) // from the last one on to the first
        fixture_key(model, 'n');
    assert_int_equal(list_of(model)->cursor, 10);
    fixture_key(model, 'N');
    assert_int_equal(list_of(model)->cursor, 19);
    fixture_key(model, '/');
    (void)type(model, "nowhere");
    assert_string_equal(model->notice, "not found");
    assert_int_equal(list_of(model)->cursor, 19);
    fixture_key(model, '/');
    fixture_key(model, 'x');
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_string_equal(model->search, "nowhere");
    drop(model);
}

TEST_CASE(rows_go_by_model_or_host)
{
    struct model *model = fresh(120, 40, fixture_many);
    assert_int_equal(fixture_key(model, 'g'), EFFECT_SCOPE | EFFECT_ASK);
    assert_true(model->scope.by_host);
    assert_int_equal(list_of(model)->sort, GRID_UNSORTED);
    (void)fixture_key(model, 'g');
    assert_false(model->scope.by_host);
    (void)fixture_key(model, '3'); // other views sort
    const struct grid *grid = view_current(model)->panels[0].grid;
    static const char *const keys[] = {"model", "host"};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        fixture_key(model, 'g');
        assert_true(list_of(model)->sort >= 0);
        assert_string_equal(grid->columns[list_of(model)->sort].key, keys[i]);
    }
    fixture_key(model, 'g');
    assert_int_equal(list_of(model)->sort, GRID_UNSORTED);
    drop(model);
}

TEST_CASE(an_export_asks_for_a_name)
{
    struct model *model = fresh(120, 40, fixture_many);
    fixture_key(model, 'e');
    assert_string_equal(model->prompt.text, "inferstat.csv");
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(type(model, "x.svg"), EFFECT_EXPORT);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    model_end_export(model, STATUS_OK, "");
    assert_string_equal(model->notice, "written: x.svg");
    model_end_export(model, STATUS_IO, "x.svg: File\x1b exists");
    assert_string_equal(model->notice, "not written: x.svg: File\\x1B exists");
    assert_true(model_may_replace(model)); // what it wrote itself

    // A file of others is replaced after one more Enter.
    fixture_key(model, 'e');
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(type(model, "y.svg"), EFFECT_EXPORT);
    assert_false(model_may_replace(model));
    model_end_export(model, STATUS_BUSY, "y.svg: it exists");
    assert_int_equal(model->overlay, OVERLAY_EXPORT);
    assert_string_equal(model->prompt.error, "the file exists: Enter replaces it");
    assert_int_equal(fixture_key(model, KEY_CODE_ENTER), EFFECT_EXPORT);
    assert_true(model_may_replace(model));
    fixture_key(model, 'e');
    fixture_key(model, KEY_CODE_CTRL_U);
    type(model, "z.svg");
    assert_false(model_may_replace(model));

    // After Esc it is asked about again.
    model_end_export(model, STATUS_BUSY, "z.svg: it exists");
    assert_true(model_may_replace(model));
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_false(model_may_replace(model));
    drop(model);
}

TEST_CASE(alerts_are_acknowledged_and_silenced)
{
    struct model *model = fresh(120, 40, fixture_alerts);
    fixture_key(model, 'a');
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "Alerts"));
    fixture_key(model, '7');
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, 'a');
    assert_int_equal(type(model, "it's known"), EFFECT_CHANGE);
    assert_int_equal(model->change.kind, QUERY_ALERT_EDIT);
    assert_int_equal(model->change.alert.edit, QUERY_ALERT_ACK);
    assert_int_equal(model->change.alert.id, 6);
    assert_string_equal(model->change.alert.text, "it's known");
    fixture_event(model, (struct event){.kind = EVENT_CHANGED});
    assert_string_equal(model->notice, "acknowledged");
    fixture_key(model, 'S');
    assert_int_equal(type(model, "x"), EFFECT_CHANGE);
    assert_int_equal(model->change.alert.edit, QUERY_ALERT_SILENCE);
    assert_int_equal(model->change.alert.for_ns, INT64_C(7200000000000));
    assert_string_equal(model->change.alert.rule, "device_hot");
    assert_string_equal(model->change.filter.by[QUERY_BY_HOST], "gpu-18");
    assert_string_equal(model->change.filter.by[QUERY_BY_MODEL], "");
    struct error err;
    assert_int_equal(query_check(&model->change, &err), STATUS_OK);
    fixture_event(model,
                  (struct event){.kind = EVENT_CHANGED, .status = STATUS_DENIED, .text = "no"});
    assert_string_equal(model->notice, "not silenced for two hours: no");
    fixture_round(model, STATUS_UNREACHABLE, "gone");
    fixture_key(model, 'a');
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "no answer"));
    fixture_round(model, STATUS_OK, NULL);
    model->readonly = true;
    fixture_key(model, 'S');
    assert_int_equal(model->overlay, OVERLAY_NONE);
    drop(model);
}

TEST_CASE(enter_shows_all_of_a_row)
{
    struct model *model = fresh(120, 40, fixture_many);
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, KEY_CODE_ENTER);
    assert_int_equal(model->overlay, OVERLAY_DETAIL);
    char *screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, "gpu-01"));
    assert_non_null(strstr(screen, "because"));
    free(screen);
    fixture_answer(model, POLL_NOW, "model|host|state\n"); // the row goes away
    screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, "no longer"));
    free(screen);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, KEY_CODE_ENTER); // there is no row
    assert_int_equal(model->overlay, OVERLAY_NONE);
    drop(model);
}

TEST_CASE(the_window_changes)
{
    struct model *model = fresh(120, 40, fixture_normal);
    static const char *const lengths[] = {"1h", "24h", "7d", "30d", "all", "1m", "5m"};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        fixture_key(model, 't');
        assert_string_equal(window_text(&model->scope.window), lengths[i]);
        assert_int_equal(view_shown(model), i >= 2 && i < 5 ? VIEW_PAST : VIEW_NOW);
    }
    fixture_key(model, '[');
    const struct event later = {.kind = EVENT_KEY,
                                .code = ']',
                                .now_ns = FIXTURE_NOW_NS,
                                .wall_now_ns = FIXTURE_WALL_NS + INT64_C(60000000000)};
    (void)model_update(model, &later);
    assert_int_equal(model->scope.window.until_ns, 0); // though it is later now
    fixture_key(model, '[');
    fixture_key(model, '[');
    assert_int_equal(model->scope.window.until_ns, FIXTURE_WALL_NS - INT64_C(300000000000));
    assert_int_equal(view_shown(model), VIEW_PAST);
    fixture_key(model, '-'); // a longer one with the same end
    assert_string_equal(window_text(&model->scope.window), "1h");
    assert_int_equal(model->scope.window.until_ns, FIXTURE_WALL_NS - INT64_C(300000000000));
    fixture_key(model, ']');
    assert_int_equal(model->scope.window.until_ns, 0);
    assert_int_equal(view_shown(model), VIEW_NOW);
    for (int i = 0; i < 9; i++)
        fixture_key(model, '-');
    assert_string_equal(window_text(&model->scope.window), "all");
    assert_int_equal(fixture_key(model, '['), 0); // all time has no other
    struct query_filter filter = {.since_ns = FIXTURE_WALL_NS - 5};
    model_set_filter(model, &filter);
    fixture_key(model, 't');
    assert_string_equal(window_text(&model->scope.window), "all");
    assert_non_null(strstr(model->notice, "filter"));
    drop(model);
}

// A copied file is of another day: its windows end where its records do.
// Answers of another window or filter are shown no more, nor those that were under way.
TEST_CASE(answers_are_of_what_is_asked)
{
    struct query_filter filter = {.by[QUERY_BY_HOST] = "gpu-18"};
    struct model *model = fresh(120, 40, fixture_normal);
    const uint32_t before = model->scope.generations[POLL_WINDOW];
    fixture_key(model, 't');
    assert_null(model_answer(model, POLL_WINDOW));
    assert_non_null(model_answer(model, POLL_SUMMARY)); // of all time
    char *screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, " asking ..."));
    assert_null(strstr(screen, "gpu-17"));
    free(screen);
    struct event late = {.kind = EVENT_ANSWER,
                         .polled = POLL_WINDOW,
                         .generation = before,
                         .result = fixture_result("requests_per_second\n5\n")};
    (void)model_update(model, &late);
    assert_null(model_answer(model, POLL_WINDOW));
    fixture_answer(model, POLL_WINDOW, "requests_per_second\n5\n");
    assert_non_null(model_answer(model, POLL_WINDOW));
    model_filter(model, &filter, "host=gpu-18");
    assert_null(model_answer(model, POLL_WINDOW));
    assert_null(model_answer(model, POLL_SUMMARY));
    assert_null(model_answer(model, POLL_MACHINES));
    fixture_key(model, 'c');
    screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, "asking how many"));
    free(screen);
    drop(model);
}

// A model's and a host's rows of Now are of other answers; so is why another row is slow.
TEST_CASE(other_questions_have_other_answers)
{
    struct model *model = fresh(120, 40, fixture_fleet);
    fixture_key(model, 'g');
    assert_null(model_answer(model, POLL_NOW));
    fixture_key(model, 'w');
    fixture_answer(model, POLL_WHY, "verdict\n");
    const uint32_t before = model->scope.generations[POLL_WHY];
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, 'w');
    assert_null(model_answer(model, POLL_WHY));
    assert_int_not_equal(model->scope.generations[POLL_WHY], before);
    drop(model);
}

TEST_CASE(windows_of_a_file_end_at_its_records)
{
    const int64_t day_ns = INT64_C(86400000000000);
    char summary[128];
    struct model *model = fresh(120, 40, NULL);
    model->is_file = true;
    (void)snprintf(summary, sizeof summary,
                   "runs|last_load_started_ns|last_inference_started_ns\n"
                   "1|%lld|%lld\n",
                   (long long)(FIXTURE_WALL_NS - 3 * day_ns),
                   (long long)(FIXTURE_WALL_NS - 2 * day_ns));
    fixture_answer(model, POLL_SUMMARY, summary);
    assert_int_equal(model->scope.now_ns, FIXTURE_WALL_NS - 2 * day_ns + 1);
    assert_int_equal(view_shown(model), VIEW_PAST);
    fixture_key(model, '[');
    assert_int_equal(model->scope.window.until_ns,
                     FIXTURE_WALL_NS - 2 * day_ns + 1 - INT64_C(150000000000));
    fixture_key(model, ']');
    assert_int_equal(model->scope.window.until_ns, 0);
    drop(model);
}

TEST_CASE(a_silent_collector_shows_the_age_of_data)
{
    struct model *model = fresh(120, 40, fixture_normal);
    struct event tick = {.kind = EVENT_TICK,
                         .now_ns = FIXTURE_NOW_NS + UINT64_C(2400000000),
                         .wall_now_ns = FIXTURE_WALL_NS};
    (void)model_update(model, &tick);
    char *screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, "● live"));
    free(screen);
    tick.now_ns += UINT64_C(200000000);
    (void)model_update(model, &tick);
    screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, "○ 3s old"));
    free(screen);
    drop(model);
}

TEST_CASE(tab_goes_round)
{
    struct model *model = fresh(80, 24, fixture_alerts);
    fixture_key(model, '7');
    static const unsigned order[] = {HISTORY, OPEN, HISTORY};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        fixture_key(model, '\t');
        assert_int_equal(state_of(model)->focus, order[i]);
    }
    fixture_key(model, KEY_CODE_BACK_TAB);
    assert_int_equal(state_of(model)->focus, OPEN);
    drop(model);
}

TEST_CASE(views_keep_what_was_done_to_them)
{
    struct model *model = fresh(60, 16, fixture_pipelines);
    fixture_key(model, '7');
    fixture_key(model, '\t');
    fixture_key(model, '5');
    assert_int_equal(model->view, VIEW_PIPELINES);
    assert_int_equal(state_of(model)->focus, 0);
    fixture_key(model, '>');
    fixture_key(model, '7');
    assert_int_equal(model->view, VIEW_ALERTS);
    assert_int_equal(state_of(model)->focus, HISTORY);
    fixture_key(model, '5');
    assert_int_equal(state_of(model)->panels[0].sort, 0);
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 10, .y = areas[0].y + 1});
    assert_int_equal(state_of(model)->panels[0].sort, 1);
    drop(model);
}

// From the help, a view is shown at once; a question and the prompt keep the key.
TEST_CASE(views_are_shown_from_the_help_alone)
{
    struct model *model = fresh(80, 24, fixture_pipelines);
    fixture_key(model, '?');
    fixture_key(model, '5');
    assert_int_equal(model->view, VIEW_PIPELINES);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, 'c');
    fixture_key(model, '1');
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, '\\');
    fixture_key(model, '1');
    assert_string_equal(model->prompt.text, "1");
    assert_int_equal(model->view, VIEW_PIPELINES);
    drop(model);
}

// Answers that come while another view is shown may be shorter than it was scrolled.
TEST_CASE(a_view_shown_again_stands_within_its_rows)
{
    struct model *model = fresh(60, 16, fixture_many);
    fixture_key(model, KEY_CODE_END);
    assert_true(list_of(model)->top > 0);
    fixture_key(model, '2');
    fixture_normal(model);
    fixture_key(model, '1');
    assert_int_equal(list_of(model)->top, 0);
    assert_int_equal(list_of(model)->cursor, 0);
    drop(model);
}

TEST_CASE(sorting_goes_through_the_columns)
{
    struct model *model = fresh(80, 24, fixture_many);
    const struct grid_state *hosts = list_of(model);
    const int columns = (int)view_current(model)->panels[0].grid->count;
    assert_int_equal(hosts->sort, GRID_UNSORTED);
    fixture_key(model, '<');
    assert_int_equal(hosts->sort, columns - 1);
    fixture_key(model, '>');
    assert_int_equal(hosts->sort, GRID_UNSORTED);
    fixture_key(model, 's');
    fixture_key(model, KEY_CODE_F6);
    assert_int_equal(hosts->sort, 1);
    fixture_key(model, 'I');
    assert_true(hosts->reversed);
    fixture_key(model, ','); // a second column, which is another one
    fixture_key(model, '>');
    fixture_key(model, '>');
    assert_int_equal(hosts->before_count, 1);
    assert_int_equal(hosts->before[0].column, 1);
    assert_true(hosts->before[0].reversed);
    assert_int_equal(hosts->sort, 2);
    assert_true(grid_sorts_by(hosts, 1) && grid_sorts_by(hosts, 2) && !grid_sorts_by(hosts, 0));
    fixture_key(model, ',');
    fixture_key(model, ',');
    assert_int_equal(hosts->before_count, 2); // the first of three is still to be chosen
    fixture_key(model, '<');
    fixture_key(model, ',');
    assert_int_equal(hosts->before_count, 2);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(hosts->before_count, 0);
    assert_int_equal(hosts->sort, GRID_UNSORTED);
    assert_false(hosts->reversed);
    fixture_key(model, '4');
    fixture_key(model, '\t'); // stages have an order of their own
    fixture_key(model, '>');
    assert_int_equal(state_of(model)->panels[STAGES].sort, GRID_UNSORTED);
    assert_true(model->notice[0] != '\0');
    drop(model);
}

TEST_CASE(escape_steps_out)
{
    struct model *model = fresh(80, 24, fixture_alerts);
    fixture_key(model, '7');
    fixture_key(model, '\t');
    fixture_key(model, 'z');
    fixture_key(model, 'h');
    assert_int_equal(model->overlay, OVERLAY_HELP);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_true(state_of(model)->enlarged);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_false(state_of(model)->enlarged);
    assert_int_equal(state_of(model)->focus, HISTORY);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(state_of(model)->focus, OPEN);
    drop(model);
}

TEST_CASE(help_scrolls)
{
    struct model *model = fresh(60, 16, fixture_normal);
    fixture_key(model, '?');
    fixture_key(model, KEY_CODE_END);
    struct rect body = layout_frame(60, 16, false).body;
    assert_int_equal(model->help_top, view_help_rows(body) - (size_t)body.height);
    fixture_key(model, KEY_CODE_HOME);
    assert_int_equal(model->help_top, 0);
    fixture_event(model, (struct event){.kind = EVENT_WHEEL, .x = 5, .y = 5, .turn = 3});
    assert_int_equal(model->help_top, 3);
    drop(model);
}

TEST_CASE(the_mouse_does_what_keys_do)
{
    struct model *model = fresh(80, 24, fixture_alerts);
    fixture_key(model, '7');
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    struct rect at = areas[OPEN];
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = at.x, .y = at.y});
    assert_int_equal(state_of(model)->focus, OPEN);
    struct event row = {.kind = EVENT_PRESS, .x = at.x + 3, .y = at.y + 3};
    fixture_event(model, row); // the second row
    assert_int_equal(state_of(model)->panels[OPEN].cursor, 1);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_event(model, row);
    assert_int_equal(model->overlay, OVERLAY_DETAIL);
    fixture_key(model, KEY_CODE_ESCAPE);
    row.y = at.y + 9; // below the rows
    fixture_event(model, row);
    assert_int_equal(state_of(model)->panels[OPEN].cursor, 1);

    struct event heading = {
        .kind = EVENT_PRESS, .x = areas[HISTORY].x + 1, .y = areas[HISTORY].y + 1};
    fixture_event(model, heading);
    assert_int_equal(state_of(model)->panels[HISTORY].sort, 0);
    assert_false(state_of(model)->panels[HISTORY].reversed);
    fixture_event(model, heading);
    assert_true(state_of(model)->panels[HISTORY].reversed);

    fixture_key(model, 'c'); // a question is not answered by the mouse
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = at.x, .y = at.y});
    assert_int_equal(state_of(model)->focus, HISTORY);
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 9999, .y = -4});
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_many(model);
    fixture_key(model, '1');
    view_arrange(model, areas);
    fixture_event(model, (struct event){
                             .kind = EVENT_WHEEL, .x = areas[0].x, .y = areas[0].y + 3, .turn = 3});
    assert_int_equal(list_of(model)->top, 3);
    assert_int_equal(list_of(model)->cursor, 3);
    drop(model);
}

// A view's name is at another place in a narrow title, where the others are numbers only.
TEST_CASE(the_mouse_shows_views)
{
    for (int width = 60; width <= 200; width += 20) {
        struct model *model = fresh(width, 24, fixture_normal);
        unsigned seen = 0;
        for (int x = 0; x < width; x++) {
            struct event event = {.kind = EVENT_PRESS, .x = x, .y = 0};
            fixture_key(model, '1');
            fixture_key(model, 'c'); // not while a question is open
            fixture_event(model, event);
            fixture_key(model, KEY_CODE_ESCAPE);
            assert_int_equal(model->view, VIEW_NOW);
            fixture_event(model, event);
            seen |= 1u << model->view;
            event.y = 1;
            fixture_event(model, event);
        }
        assert_int_equal(seen, (1u << VIEW_COUNT) - 1);
        drop(model);
    }
}

TEST_CASE(losses_are_added_up)
{
    struct model *model = fresh(80, 24, NULL);
    assert_int_equal(model_lost(model), 0);
    fixture_losses(model);
    assert_int_equal(model_lost(model), 12);
    drop(model);
}

// Whatever comes in whatever order, at whatever size: it draws.
TEST_CASE(takes_any_sequence_of_events)
{
    static const uint32_t keys[] = {'h',
                                    'c',
                                    'y',
                                    'n',
                                    ' ',
                                    '\t',
                                    '\r',
                                    's',
                                    '<',
                                    'I',
                                    '+',
                                    '-',
                                    'r',
                                    '1',
                                    '2',
                                    '3',
                                    '4',
                                    '5',
                                    '6',
                                    '7',
                                    '8',
                                    'a',
                                    'S',
                                    't',
                                    '[',
                                    ']',
                                    '/',
                                    'o',
                                    'z',
                                    'j',
                                    'k',
                                    KEY_CODE_PAGE_UP,
                                    KEY_CODE_PAGE_DOWN,
                                    KEY_CODE_HOME,
                                    KEY_CODE_END,
                                    KEY_CODE_ESCAPE,
                                    KEY_CODE_BACK_TAB,
                                    0x5343,
                                    0};
    void (*const fills[])(struct model *) = {fixture_normal, fixture_empty, fixture_many,
                                             fixture_losses, fixture_names, fixture_pipelines};
    uint64_t seed = 42;
    struct model *model = fresh(80, 24, NULL);
    for (int round = 0; round < 4000; round++) {
        struct event event = {0};
        switch (test_random(&seed) % 8) {
        case 0:
            event = (struct event){.kind = EVENT_RESIZE,
                                   .x = (int)(test_random(&seed) % 250),
                                   .y = (int)(test_random(&seed) % 80)};
            fixture_event(model, event);
            break;
        case 1:
            fills[test_random(&seed) % COUNT_OF(fills)](model);
            break;
        case 2:
            fixture_round(model, (enum status)(test_random(&seed) % STATUS_COUNT), "because");
            break;
        case 3:
            event = (struct event){.kind = test_random(&seed) % 2 ? EVENT_PRESS : EVENT_WHEEL,
                                   .x = (int)(test_random(&seed) % 250) - 5,
                                   .y = (int)(test_random(&seed) % 80) - 5,
                                   .turn = (int)(test_random(&seed) % 9) - 4};
            fixture_event(model, event);
            break;
        default:
            fixture_key(model, keys[test_random(&seed) % COUNT_OF(keys)]);
        }
        free(fixture_screen(model, round % 2));
    }
    drop(model);
}

TEST_MAIN(answers_are_of_what_is_asked, other_questions_have_other_answers, keys_have_effects,
          clear_asks_for_the_name, readonly_refuses_to_clear, clear_says_how_it_ended,
          a_pause_asks_only_when_told, contact_follows_the_rounds, age_counts_from_the_last_answer,
          the_interval_moves_in_steps, the_cursor_moves_within_the_rows,
          the_cursor_stays_on_its_row, what_has_ended_is_folded, search_finds_rows,
          rows_go_by_model_or_host, an_export_asks_for_a_name, alerts_are_acknowledged_and_silenced,
          enter_shows_all_of_a_row, the_window_changes, windows_of_a_file_end_at_its_records,
          a_silent_collector_shows_the_age_of_data, tab_goes_round,
          views_keep_what_was_done_to_them, views_are_shown_from_the_help_alone,
          a_view_shown_again_stands_within_its_rows, sorting_goes_through_the_columns,
          escape_steps_out, help_scrolls, the_mouse_does_what_keys_do, the_mouse_shows_views,
          losses_are_added_up, takes_any_sequence_of_events)
