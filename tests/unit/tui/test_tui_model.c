// What happens, and what becomes of the model.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_fixture.h"

enum { HOSTS, LOAD, INFERENCES, RUNS };

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
    return &model->views[model->view];
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
        {'+', EFFECT_PACE},
        {'-', EFFECT_PACE},
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

TEST_CASE(clear_asks_and_takes_no_for_an_answer)
{
    struct model *model = fresh(80, 24, fixture_normal);
    static const uint32_t refusals[] = {'n', 'N', KEY_CODE_ESCAPE, 'q'};
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        assert_int_equal(fixture_key(model, 'c'), 0);
        assert_int_equal(model->overlay, OVERLAY_CLEAR);
        assert_int_equal(fixture_key(model, refusals[i]), 0);
        assert_int_equal(model->overlay, OVERLAY_NONE);
    }
    fixture_key(model, 'c');
    assert_int_equal(fixture_key(model, KEY_CODE_ENTER), 0);
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    assert_int_equal(fixture_key(model, 'y'), EFFECT_CLEAR | EFFECT_PACE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_int_equal(fixture_key(model, 'y'), 0);
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
    struct event event = {.kind = EVENT_CLEARED, .cleared = 152};
    assert_int_equal(fixture_event(model, event), EFFECT_ASK);
    assert_string_equal(model->notice, "cleared 152 records");
    event = (struct event){.kind = EVENT_CLEARED, .status = STATUS_DENIED, .text = "not\x1byours"};
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

TEST_CASE(pause_keeps_what_is_shown)
{
    struct model *model = fresh(80, 24, fixture_normal);
    fixture_key(model, ' ');
    assert_true(model->paused);
    fixture_answer(model, POLL_SUMMARY, "inferences\n999\n");
    fixture_round(model, STATUS_UNREACHABLE, "gone");
    assert_true(model_figure(model, "inferences", 0) == 128);
    assert_int_equal(model->contact, CONTACT_OK);
    assert_int_equal(fixture_key(model, ' '), EFFECT_PACE | EFFECT_ASK);
    fixture_answer(model, POLL_SUMMARY, "inferences\n999\n");
    assert_true(model_figure(model, "inferences", 0) == 999);
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
        fixture_key(model, '+');
        assert_true(model->interval_seconds == up[i]);
    }
    static const double down[] = {60, 30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.1};
    for (size_t i = 0; i < COUNT_OF(down); i++) {
        fixture_key(model, '-');
        assert_true(model->interval_seconds == down[i]);
    }
    model->interval_seconds = 3600;
    fixture_key(model, '+');
    assert_true(model->interval_seconds == 3600);
    fixture_key(model, '-');
    assert_true(model->interval_seconds == 300);
    drop(model);
}

TEST_CASE(panels_scroll_within_their_rows)
{
    struct model *model = fresh(120, 40, fixture_many);
    fixture_key(model, '\t');
    fixture_key(model, '\t');
    assert_int_equal(state_of(model)->focus, INFERENCES);
    const size_t *top = &state_of(model)->panels[INFERENCES].top;
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    const struct panel *panel = &view_current(model)->panels[INFERENCES];
    size_t page = view_panel_page(model, panel, areas[INFERENCES]);
    assert_true(page > 2 && page < 128);

    fixture_key(model, KEY_CODE_UP);
    assert_int_equal(*top, 0);
    fixture_key(model, 'j');
    fixture_key(model, KEY_CODE_DOWN);
    assert_int_equal(*top, 2);
    fixture_key(model, 'k');
    assert_int_equal(*top, 1);
    fixture_key(model, KEY_CODE_PAGE_DOWN);
    assert_int_equal(*top, page);
    fixture_key(model, KEY_CODE_END);
    assert_int_equal(*top, 128 - page);
    fixture_key(model, KEY_CODE_PAGE_DOWN);
    assert_int_equal(*top, 128 - page);
    fixture_key(model, KEY_CODE_PAGE_UP);
    assert_int_equal(*top, 128 - page - (page - 1));
    fixture_key(model, KEY_CODE_HOME);
    assert_int_equal(*top, 0);

    // Fewer rows than were scrolled by, and a larger screen.
    fixture_key(model, KEY_CODE_END);
    fixture_normal(model);
    assert_true(*top <= 128 - page);
    fixture_event(model, (struct event){.kind = EVENT_RESIZE, .x = 120, .y = 300});
    assert_int_equal(*top, 0);
    drop(model);
}

TEST_CASE(tab_goes_round)
{
    struct model *model = fresh(80, 24, fixture_normal);
    static const unsigned order[] = {LOAD, INFERENCES, RUNS, HOSTS};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        fixture_key(model, '\t');
        assert_int_equal(state_of(model)->focus, order[i]);
    }
    fixture_key(model, KEY_CODE_BACK_TAB);
    assert_int_equal(state_of(model)->focus, RUNS);
    drop(model);
}

TEST_CASE(views_keep_what_was_done_to_them)
{
    struct model *model = fresh(60, 16, fixture_pipelines);
    fixture_key(model, '\t');
    fixture_key(model, '2');
    assert_int_equal(model->view, VIEW_PIPELINES);
    assert_int_equal(state_of(model)->focus, 0);
    fixture_key(model, '\t'); // its only panel
    assert_int_equal(state_of(model)->focus, 0);
    fixture_key(model, '>');
    fixture_key(model, '1');
    assert_int_equal(model->view, VIEW_OVERVIEW);
    assert_int_equal(state_of(model)->focus, LOAD);
    fixture_key(model, 'p');
    assert_int_equal(state_of(model)->panels[0].sort, 0);
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 9, .y = areas[0].y + 1});
    assert_int_equal(state_of(model)->panels[0].sort, 1);
    drop(model);
}

// From the help, a view is shown at once; a question and the prompt keep the key.
TEST_CASE(views_are_shown_from_the_help_alone)
{
    struct model *model = fresh(80, 24, fixture_pipelines);
    fixture_key(model, '?');
    fixture_key(model, '2');
    assert_int_equal(model->view, VIEW_PIPELINES);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, 'c');
    fixture_key(model, '1');
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    fixture_key(model, 'n');
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
    assert_true(state_of(model)->panels[HOSTS].top > 0);
    fixture_key(model, '2');
    fixture_normal(model);
    fixture_key(model, '1');
    assert_int_equal(state_of(model)->panels[HOSTS].top, 0);
    drop(model);
}

TEST_CASE(sorting_goes_through_the_columns)
{
    struct model *model = fresh(80, 24, fixture_many);
    const struct grid_state *hosts = &state_of(model)->panels[HOSTS];
    const int columns = (int)view_current(model)->panels[HOSTS].grid->count;
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
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(hosts->sort, GRID_UNSORTED);
    assert_false(hosts->reversed);
    fixture_key(model, '\t'); // stages have an order of their own
    fixture_key(model, '>');
    assert_int_equal(state_of(model)->panels[LOAD].sort, GRID_UNSORTED);
    assert_true(model->notice[0] != '\0');
    drop(model);
}

TEST_CASE(escape_steps_out)
{
    struct model *model = fresh(80, 24, fixture_many);
    fixture_key(model, '\t');
    fixture_key(model, '\t');
    fixture_key(model, KEY_CODE_ENTER);
    fixture_key(model, 'h');
    assert_int_equal(model->overlay, OVERLAY_HELP);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_true(state_of(model)->enlarged);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_false(state_of(model)->enlarged);
    assert_int_equal(state_of(model)->focus, INFERENCES);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(state_of(model)->focus, HOSTS);
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

TEST_CASE(the_mouse_focuses_sorts_and_scrolls)
{
    struct model *model = fresh(80, 24, fixture_many);
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(model, areas);
    struct rect at = areas[INFERENCES];
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = at.x, .y = at.y});
    assert_int_equal(state_of(model)->focus, INFERENCES);
    fixture_event(model, (struct event){.kind = EVENT_WHEEL, .x = at.x, .y = at.y + 2, .turn = 3});
    assert_int_equal(state_of(model)->panels[INFERENCES].top, 3);
    assert_int_equal(state_of(model)->panels[HOSTS].top, 0);

    struct event heading = {.kind = EVENT_PRESS, .x = areas[HOSTS].x, .y = areas[HOSTS].y + 1};
    fixture_event(model, heading);
    assert_int_equal(state_of(model)->panels[HOSTS].sort, 0);
    assert_false(state_of(model)->panels[HOSTS].reversed);
    fixture_event(model, heading);
    assert_true(state_of(model)->panels[HOSTS].reversed);

    fixture_key(model, 'c'); // a question is not answered by the mouse
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = at.x, .y = at.y});
    assert_int_equal(state_of(model)->focus, HOSTS);
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 9999, .y = -4});
    drop(model);
}

// A view's name is at another place in a narrow title, where the others are numbers only.
TEST_CASE(the_mouse_shows_views)
{
    static const struct {
        int width, x, y;
        unsigned from, to;
    } cases[] = {
        {120, 24, 0, VIEW_OVERVIEW, VIEW_PIPELINES}, {120, 14, 0, VIEW_PIPELINES, VIEW_OVERVIEW},
        {120, 24, 1, VIEW_OVERVIEW, VIEW_OVERVIEW},  {120, 2, 0, VIEW_OVERVIEW, VIEW_OVERVIEW},
        {120, 22, 0, VIEW_OVERVIEW, VIEW_OVERVIEW},  {120, 119, 0, VIEW_OVERVIEW, VIEW_OVERVIEW},
        {60, 24, 0, VIEW_OVERVIEW, VIEW_PIPELINES},  {60, 25, 0, VIEW_OVERVIEW, VIEW_OVERVIEW},
        {60, 12, 0, VIEW_PIPELINES, VIEW_OVERVIEW},  {60, 15, 0, VIEW_PIPELINES, VIEW_PIPELINES},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model *model = fresh(cases[i].width, 24, fixture_normal);
        fixture_key(model, cases[i].from == VIEW_PIPELINES ? '2' : '1');
        struct event event = {.kind = EVENT_PRESS, .x = cases[i].x, .y = cases[i].y};
        fixture_key(model, 'c'); // not while a question is open
        fixture_event(model, event);
        fixture_key(model, 'n');
        assert_int_equal(model->view, cases[i].from);
        fixture_event(model, event);
        assert_int_equal(model->view, cases[i].to);
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

TEST_MAIN(keys_have_effects, clear_asks_and_takes_no_for_an_answer, readonly_refuses_to_clear,
          clear_says_how_it_ended, pause_keeps_what_is_shown, contact_follows_the_rounds,
          age_counts_from_the_last_answer, the_interval_moves_in_steps,
          panels_scroll_within_their_rows, tab_goes_round, views_keep_what_was_done_to_them,
          views_are_shown_from_the_help_alone, a_view_shown_again_stands_within_its_rows,
          sorting_goes_through_the_columns, escape_steps_out, help_scrolls,
          the_mouse_focuses_sorts_and_scrolls, the_mouse_shows_views, losses_are_added_up,
          takes_any_sequence_of_events)
