// Where keys and the mouse move: cursors, panels, views.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "client/tui/lists.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

enum { OPEN, HISTORY }; // of the view Alerts
enum { STAGES = 1 };    // of the view Loads

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

TEST_CASE(the_cursor_moves_within_the_rows)
{
    struct model *model = fixture_new(120, 40, scene_many);
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
    scene_empty(model);
    assert_int_equal(list->cursor, 0);
    scene_many(model);
    fixture_key(model, KEY_CODE_END);
    fixture_event(model, (struct event){.kind = EVENT_RESIZE, .x = 120, .y = 300});
    assert_int_equal(list->top, 0);
    assert_int_equal(list->cursor, 127);
    fixture_free(model);
}

#define REQUESTS "run|stream|number|model\n"

// New rows come before the cursor's; at the first row, the cursor is always on the newest.
TEST_CASE(the_cursor_stays_on_its_row)
{
    struct model *model = fixture_new(120, 40, scene_normal);
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
    fixture_free(model);
}

TEST_CASE(what_has_ended_is_folded)
{
    struct model *model = fixture_new(120, 60, scene_many);
    assert_true(fixture_shows(model, "▸ 5 ended"));
    assert_false(fixture_shows(model, "gpu-36"));
    fixture_key(model, 'o');
    assert_false(fixture_shows(model, "▸ 5 ended"));
    assert_true(fixture_shows(model, "gpu-36"));
    fixture_free(model);
}

TEST_CASE(search_finds_rows)
{
    struct model *model = fixture_new(120, 40, scene_many);
    fixture_key(model, 'n');
    assert_non_null(strstr(model->notice, "/ searches"));
    fixture_key(model, '/');
    assert_int_equal(model->overlay, OVERLAY_SEARCH);
    fixture_type(model, "GPU-1");
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_int_equal(list_of(model)->cursor, 10);
    fixture_key(model, KEY_CODE_ESCAPE); // ends the search, and the cursor stays
    assert_int_equal(list_of(model)->cursor, 10);
    fixture_key(model, '/');
    fixture_type(model, "GPU-1");
    assert_int_equal(list_of(model)->cursor, 10);
    fixture_key(model, 'n');
    assert_int_equal(list_of(model)->cursor, 11);
    for (unsigned i = 0; i < 9; i++) // from the last one on to the first
        fixture_key(model, 'n');
    assert_int_equal(list_of(model)->cursor, 10);
    fixture_key(model, 'N');
    assert_int_equal(list_of(model)->cursor, 19);
    fixture_key(model, '/');
    fixture_type(model, "nowhere");
    assert_string_equal(model->notice, "not found");
    assert_int_equal(list_of(model)->cursor, 19);
    fixture_key(model, '/');
    fixture_key(model, 'x');
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_string_equal(model->search, "nowhere");
    scene_fleet(model);
    fixture_key(model, KEY_CODE_HOME);
    fixture_key(model, KEY_CODE_LEFT); // closes its group
    static const char *const hidden[] = {"gpu04", "old-b"};
    for (size_t i = 0; i < COUNT_OF(hidden); i++) {
        assert_false(fixture_shows(model, hidden[i]));
        fixture_key(model, '/');
        fixture_type(model, hidden[i]);
        assert_true(fixture_shows(model, hidden[i]));
    }
    // The reason of a model's row names hosts, too.
    fixture_answer(model, POLL_NOW,
                   "model|host|state|reason|group_size\n"
                   "m|-|slow|gpu-9: late|2\nm|gpu-8|ok|-|-\nm|gpu-9|slow|late|-\n");
    fixture_key(model, '/');
    fixture_type(model, "gpu-9");
    assert_int_equal(list_of(model)->cursor, 2);
    fixture_key(model, '/');
    fixture_type(model, "late");
    assert_int_equal(list_of(model)->cursor, 2);
    fixture_free(model);
}

TEST_CASE(rows_go_by_model_or_host)
{
    struct model *model = fixture_new(120, 40, scene_many);
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
    fixture_free(model);
}

TEST_CASE(enter_shows_all_of_a_row)
{
    struct model *model = fixture_new(120, 40, scene_many);
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, KEY_CODE_ENTER);
    assert_int_equal(model->overlay, OVERLAY_DETAIL);
    assert_true(fixture_shows(model, "gpu-01"));
    assert_true(fixture_shows(model, "because"));
    fixture_answer(model, POLL_NOW, "model|host|state\n"); // the row goes away
    assert_true(fixture_shows(model, "no longer"));
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, KEY_CODE_ENTER); // there is no row
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_free(model);
}

TEST_CASE(tab_goes_round)
{
    struct model *model = fixture_new(80, 24, scene_alerts);
    fixture_key(model, '7');
    static const unsigned order[] = {HISTORY, OPEN, HISTORY};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        fixture_key(model, '\t');
        assert_int_equal(state_of(model)->focus, order[i]);
    }
    fixture_key(model, KEY_CODE_BACK_TAB);
    assert_int_equal(state_of(model)->focus, OPEN);
    fixture_free(model);
}

TEST_CASE(views_keep_what_was_done_to_them)
{
    struct model *model = fixture_new(60, 16, scene_pipelines);
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
    fixture_free(model);
}

// Answers that come while another view is shown may be shorter than it was scrolled.
TEST_CASE(a_view_shown_again_stands_within_its_rows)
{
    struct model *model = fixture_new(60, 16, scene_many);
    fixture_key(model, KEY_CODE_END);
    assert_true(list_of(model)->top > 0);
    fixture_key(model, '2');
    scene_normal(model);
    fixture_key(model, '1');
    assert_int_equal(list_of(model)->top, 0);
    assert_int_equal(list_of(model)->cursor, 0);
    fixture_free(model);
}

TEST_CASE(sorting_goes_through_the_columns)
{
    struct model *model = fixture_new(80, 24, scene_many);
    const struct grid_state *hosts = list_of(model);
    const int columns = (int)view_current(model)->panels[0].grid->count;
    assert_int_equal(hosts->sort, GRID_UNSORTED);
    fixture_key(model, '<');
    assert_int_equal(hosts->sort, columns - 1);
    fixture_key(model, '>');
    assert_int_equal(hosts->sort, GRID_UNSORTED);
    assert_string_equal(model->notice,
                        "sorted by no column; next: model / host, state, req/s, tok/s");
    fixture_key(model, 's');
    fixture_key(model, KEY_CODE_F6);
    assert_int_equal(hosts->sort, 1);
    assert_string_equal(model->notice, "sorted by state; next: req/s, tok/s, items/s, run");
    fixture_key(model, 'I');
    assert_true(hosts->reversed);
    fixture_key(model, ','); // a second column, which is another one
    fixture_key(model, '>');
    fixture_key(model, '>');
    assert_int_equal(hosts->before_count, 1);
    assert_int_equal(hosts->before[0].column, 1);
    assert_true(hosts->before[0].reversed);
    assert_int_equal(hosts->sort, 2);
    assert_string_equal(model->notice, "then by req/s; next: tok/s, items/s, run, wait");
    assert_true(grid_sorts_by(hosts, 1) && grid_sorts_by(hosts, 2) && !grid_sorts_by(hosts, 0));
    fixture_key(model, ',');
    fixture_key(model, ',');
    assert_int_equal(hosts->before_count, 2); // the first of three is still to be chosen
    fixture_key(model, '<');
    assert_string_equal(model->notice, "then by why; next: trend, J/tok, VRAM, GPU %");
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
    fixture_free(model);
}

// Startups, and failures, have a place only while there are some.
TEST_CASE(no_key_goes_to_a_panel_that_is_not_there)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    for (uint32_t view = '3'; view <= '4'; view++) {
        const enum polled_query last = view == '3' ? POLL_FAILED : POLL_STARTUPS;
        fixture_key(model, view);
        fixture_answer(model, last, "host|model\nh|m\n");
        fixture_key(model, KEY_CODE_BACK_TAB);
        const unsigned focus = state_of(model)->focus;
        assert_int_equal(view_current(model)->panels[focus].polled, last);
        model_forget(model, POLL_ALL);
        model->scope.generations[last] = 0;
        lists_keep(model);
        assert_int_equal(state_of(model)->focus, focus); // it may have rows yet
        fixture_answer(model, last, NULL);
        assert_int_equal(state_of(model)->focus, 0);
        fixture_key(model, KEY_CODE_BACK_TAB);
        assert_int_equal(state_of(model)->focus, focus - 1);
        fixture_key(model, '\t');
        assert_int_equal(state_of(model)->focus, 0);
    }
    fixture_free(model);
}

TEST_CASE(escape_steps_out)
{
    struct model *model = fixture_new(80, 24, scene_alerts);
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
    fixture_free(model);
}

TEST_CASE(help_scrolls)
{
    struct model *model = fixture_new(60, 16, scene_normal);
    fixture_key(model, '?');
    fixture_key(model, KEY_CODE_END);
    struct rect body = layout_frame(60, 16, false).body;
    assert_int_equal(model->help_top,
                     view_overlay_draw(model, NULL, body, 0) - (size_t)body.height);
    fixture_key(model, KEY_CODE_HOME);
    assert_int_equal(model->help_top, 0);
    fixture_event(model, (struct event){.kind = EVENT_WHEEL, .x = 5, .y = 5, .turn = 3});
    assert_int_equal(model->help_top, 3);
    fixture_free(model);
}

TEST_CASE(the_mouse_does_what_keys_do)
{
    struct model *model = fixture_new(80, 24, scene_alerts);
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
    scene_many(model);
    fixture_key(model, '1');
    view_arrange(model, areas);
    fixture_event(model, (struct event){
                             .kind = EVENT_WHEEL, .x = areas[0].x, .y = areas[0].y + 3, .turn = 3});
    assert_int_equal(list_of(model)->top, 3);
    assert_int_equal(list_of(model)->cursor, 3);
    fixture_free(model);
}

// A view's name is at another place in a narrow title, where the others are numbers only.
TEST_CASE(the_mouse_shows_views)
{
    for (int width = 60; width <= 200; width += 20) {
        struct model *model = fixture_new(width, 24, scene_normal);
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
        fixture_free(model);
    }
}

TEST_MAIN(the_cursor_moves_within_the_rows, the_cursor_stays_on_its_row, what_has_ended_is_folded,
          search_finds_rows, rows_go_by_model_or_host, enter_shows_all_of_a_row, tab_goes_round,
          views_keep_what_was_done_to_them, a_view_shown_again_stands_within_its_rows,
          sorting_goes_through_the_columns, escape_steps_out, help_scrolls,
          no_key_goes_to_a_panel_that_is_not_there, the_mouse_does_what_keys_do,
          the_mouse_shows_views)
