// The view Now: its tree of models and hosts, its banner, and why.
#include "tests/support/test.h"

#include "client/tui/grid_rows.h"
#include "client/tui/key_bindings.h"
#include "client/tui/lists.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

static void fleet(struct model *model, int width)
{
    fixture_model(model, width, 40);
    scene_fleet(model);
}

static const struct grid_state *state_of(const struct model *model)
{
    return &model->views[VIEW_NOW].panels[0];
}

// Closed, a model shows only the hosts that need attention.
TEST_CASE(groups_open_and_close)
{
    struct model model;
    fleet(&model, 120);
    assert_int_equal(list_focused(&model).rows, 8); // few rows: groups are open
    fixture_key(&model, KEY_CODE_DOWN);             // onto a host of the model
    fixture_key(&model, KEY_CODE_LEFT);
    assert_int_equal(list_focused(&model).rows, 6);
    assert_int_equal(state_of(&model)->cursor, 0); // on the group
    fixture_key(&model, KEY_CODE_LEFT);
    assert_int_equal(list_focused(&model).rows, 6);
    fixture_key(&model, KEY_CODE_RIGHT);
    assert_int_equal(list_focused(&model).rows, 8);
    struct rect areas[MODEL_PANELS_MAX];
    view_arrange(&model, areas);
    const struct rect list = view_panel_list(&model, &view_current(&model)->panels[0], areas[0]);
    const struct event press = {.kind = EVENT_PRESS, .x = 1, .y = list.y + 1}; // on its mark
    (void)fixture_event(&model, press);
    assert_int_equal(list_focused(&model).rows, 6);
    model_deinit(&model);
}

// A reason that is longer than its place is cut, and keeps it.
TEST_CASE(reasons_have_a_place_on_a_wide_screen)
{
    struct model model;
    fleet(&model, 200);
    fixture_answer(&model, POLL_NOW,
                   "model|host|state|reason\nm|a|errors|its load failed: /srv/models/of/a/team/"
                   "model.gguf: cannot open: No such file or directory\n");
    assert_true(
        fixture_shows(&model, "its load failed: /srv/models/of/a/team/model.gguf: cannot o…"));
    model_deinit(&model);
}

// What is ok although its device is in trouble has a mark; another state says enough.
TEST_CASE(trouble_marks_what_is_ok)
{
    struct model model;
    fleet(&model, 120);
    fixture_answer(&model, POLL_NOW,
                   "model|host|state|reason|has_trouble\nm|a|ok|-|-\nn|b|ok|PCIe downgrade|1\n"
                   "o|c|slow|throttling|1\n");
    char *text = fixture_screen(&model, false);
    const char *mark = strstr(text, "!● ok");
    assert_non_null(mark);
    assert_null(strstr(mark + 1, "!● ok"));
    assert_null(strstr(text, "!▲"));
    free(text);
    model_deinit(&model);
}

// What stands for all rows is none of them.
TEST_CASE(all_is_no_row)
{
    struct model model;
    fleet(&model, 120);
    fixture_answer(
        &model, POLL_NOW,
        "model|host|state|group_size\n-|-|-|3\nm|-|ok|2\nm|a|ok|-\nm|b|ok|-\nn|c|ok|-\n");
    assert_int_equal(list_focused(&model).rows, 4);
    fixture_answer(&model, POLL_NOW, "model|host|state|group_size\n-|c|down|-\nn|c|ok|-\n");
    assert_int_equal(list_focused(&model).rows, 2);
    model_deinit(&model);
}

// The head line is of all requests of the window, also of an engine that is down now; another
// grouping asks for it again.
TEST_CASE(the_head_line_is_of_all)
{
    struct model model;
    fleet(&model, 120);
    assert_false(view_polls(&model) & POLL(WINDOW));
    fixture_answer(&model, POLL_WINDOW, "request_rate\n5\n"); // of before the window was live
    fixture_answer(&model, POLL_NOW,
                   "model|host|state|request_rate|error_ratio|group_size\n"
                   "-|-|-|7.5|0.125|2\nm|a|ok|2.5|0|-\nm|b|down|-|-|-\n");
    assert_true(fixture_shows(&model, "req/s 7.50 · errors 12.5 %"));
    fixture_key(&model, 'g');
    assert_false(fixture_shows(&model, "req/s 7.50"));
    assert_true(fixture_shows(&model, " asking ..."));
    model_deinit(&model);
}

// States are of models and hosts: under a filter of a device or run there are averages.
TEST_CASE(states_have_no_device)
{
    static const enum query_dimension without[] = {QUERY_BY_DEVICE, QUERY_BY_RUN};
    struct model model;
    fleet(&model, 120);
    for (size_t i = 0; i < COUNT_OF(without); i++) {
        struct query_filter filter = {.by[QUERY_BY_HOST] = "gpu-01"};
        model_filter(&model, &filter, "where host=gpu-01");
        assert_int_equal(view_shown(&model), VIEW_NOW);
        (void)snprintf(filter.by[without[i]], QUERY_TEXT_SIZE, "x");
        model_filter(&model, &filter, "where it is x");
        assert_int_equal(view_shown(&model), VIEW_PAST);
    }
    model_deinit(&model);
}

// w asks about the row's model and host, with an old answer gone, until Esc.
TEST_CASE(why_asks_about_the_row)
{
    struct model model;
    fleet(&model, 120);
    assert_false(model.scope.wanted & POLL(WHY));
    fixture_answer(&model, POLL_WHY, "model|text\nother|old\n");
    fixture_key(&model, KEY_CODE_DOWN);
    assert_int_equal(fixture_key(&model, 'w'), EFFECT_SCOPE | EFFECT_ASK);
    assert_true(model.scope.wanted & POLL(WHY));
    assert_null(model_answer(&model, POLL_WHY));
    struct query query;
    assert_true(queries_fill(POLL_WHY, &model.scope, FIXTURE_WALL_NS, &query));
    assert_int_equal(query.kind, QUERY_WHY);
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "llama-70b");
    assert_string_equal(query.filter.by[QUERY_BY_HOST], "gpu03");
    assert_true(query.filter.since_ns == FIXTURE_WALL_NS - INT64_C(300000000000));
    fixture_key(&model, KEY_CODE_ESCAPE);
    assert_int_equal(model.overlay, OVERLAY_NONE);
    assert_false(model.scope.wanted & POLL(WHY));
    model_deinit(&model);
}

// The banner of a fleet, at a width.
static char *banner(struct model *model)
{
    enum { BANNER_ROW = 2 };
    char *screen = fixture_screen(model, false), *line = screen;
    for (int i = 0; i < BANNER_ROW; i++)
        line = strchr(line, '\n') + 1;
    *strchr(line, '\n') = '\0';
    char *text = strdup(line);
    assert_non_null(text);
    free(screen);
    return text;
}

static void expect_banner(struct model *model, const char *expected)
{
    char *text = banner(model);
    assert_string_equal(text, expected);
    free(text);
}

#define ALERTS_OF "id|rule|model|host|device|state|severity|acknowledged_ns|silenced_until_ns\n"

// The worst first; what does not fit is counted.
TEST_CASE(the_banner_has_the_worst_first)
{
    struct model model;
    fleet(&model, 300);
    fixture_answer(&model, POLL_ALERTS,
                   ALERTS_OF "1|device_hot|-|gpu09|cuda:1|firing|warning|-|-\n"
                             "2|known|-|gpu09|-|firing|critical|5|-\n"
                             "3|error_ratio|phi-4|-|-|firing|critical|-|-\n"
                             "4|later|-|-|-|pending|critical|-|-\n");
    expect_banner(
        &model,
        " ✗ llama-70b gpu03 down 2m   ✗ error_ratio phi-4   ✗ qwen2.5-coder-32b-instruct "
        "gpu02.rack7.example.org errors…   ▲ device_hot gpu09 cuda:1   ▲ llama-70b gpu01 "
        "TTFT 717ms, usually 250ms   ▲ gpu05 cuda:0 decode -6.6 %: PCIe x8 of x16 (peers x16)");
    const struct event narrow = {.kind = EVENT_RESIZE, .x = 60, .y = 40};
    (void)fixture_event(&model, narrow);
    expect_banner(&model, " ✗ llama-70b gpu03 down 2m   ✗ error_ratio phi-4   +4 more");
    model_deinit(&model);
}

// Alerts of one rule are one finding, with what they have in common and their count; what is gone
// comes before all of them.
TEST_CASE(the_banner_tells_a_rule_once)
{
    struct model model;
    fleet(&model, 200);
    fixture_answer(&model, POLL_FLEET, NULL);
    fixture_answer(&model, POLL_NOW,
                   "model|host|state|since_ns:unix_ns|group_size\n"
                   "m|gpu1|down|1774785480000000000|-\n");
    fixture_answer(&model, POLL_ALERTS,
                   ALERTS_OF "1|device_throttled|-|gpu7|cuda:0|firing|critical|-|-\n"
                             "2|device_throttled|-|gpu7|cuda:1|firing|critical|-|-\n"
                             "3|device_throttled|-|gpu7|cuda:2|firing|critical|5|-\n"
                             "4|slow_ttft|m|gpu1|-|firing|warning|-|-\n"
                             "5|device_throttled|-|gpu7|cuda:3|firing|critical|-|-\n"
                             "6|slow_ttft|m|gpu2|-|firing|warning|-|-\n");
    expect_banner(&model, " ✗ m gpu1 down 2m   ✗ device_throttled gpu7 (3 devices)   "
                          "▲ slow_ttft m (2 hosts)");
    model_deinit(&model);
}

#define NOW_OF "model|host|state|since_ns:unix_ns|error_ratio:ratio|reason|group_size\n"

// Of a window in the past, what fired in it is told, not what fires now.
TEST_CASE(the_banner_of_a_past_window_has_what_fired_in_it)
{
    struct model model;
    fleet(&model, 200);
    fixture_answer(&model, POLL_ALERTS, ALERTS_OF "1|device_hot|-|gpu09|-|firing|critical|-|-\n");
    fixture_key(&model, '[');
    assert_true(model.scope.wanted & POLL(HISTORY));
    assert_false(view_banner_is_needed(&model));
    fixture_answer(&model, POLL_HISTORY,
                   ALERTS_OF "2|slow_ttft|m|gpu1|-|resolved|warning|-|-\n"
                             "3|host_silent|-|gpu2|-|resolved|critical|5|-\n"
                             "4|host_memory|-|gpu3|-|firing|warning|-|-\n");
    expect_banner(&model, " ✗ host_silent gpu2   ▲ slow_ttft m gpu1   ▲ host_memory gpu3");
    fixture_answer(&model, POLL_NOW,
                   NOW_OF "m|gpu1|down|1774785330000000000|-|gone|-\n" // 2 minutes before the end
                          "m|gpu9|ok|0|-|-|-\n");                      // whatever fires now
    assert_true(fixture_shows(&model, "✗ m gpu1 down 2m   ✗ host_silent gpu2"));
    assert_false(fixture_shows(&model, "alert"));
    fixture_key(&model, 'w');
    assert_int_equal(model.overlay, OVERLAY_NONE);
    assert_true(fixture_shows(&model, "why needs a window that ends now"));
    fixture_key(&model, '7');
    assert_true(fixture_shows(&model, "now, not the window"));
    fixture_key(&model, '0');
    assert_false(fixture_shows(&model, "now, not the window"));
    fixture_key(&model, '1');
    fixture_answer(&model, POLL_ALERTS, ALERTS_OF "1|device_hot|-|gpu09|-|firing|critical|-|-\n");
    assert_false(model.scope.wanted & POLL(HISTORY));
    expect_banner(&model, " ✗ device_hot gpu09");
    model_deinit(&model);
}

// The models of a host that is gone are one finding, and the hosts of a model that fails: with the
// figure of the group, never that of one of them, and none where they differ.
TEST_CASE(the_banner_tells_together_what_is_one_thing)
{
    struct model model;
    fleet(&model, 200);
    fixture_answer(&model, POLL_FLEET, NULL);
    fixture_answer(&model, POLL_NOW,
                   NOW_OF "m|-|down|1774785480000000000|0.375|gpu1: gone|3\n"
                          "m|gpu1|down|1774785480000000000|-|gone|-\n"
                          "m|gpu2|errors|1774785480000000000|0.25|no room|-\n"
                          "m|gpu3|errors|1774785480000000000|0.5|no room|-\n"
                          "n|gpu1|down|1774785480000000000|-|gone|-\n");
    expect_banner(&model, " ✗ gpu1 down 2m (2 models)   ✗ m errors 37.5 % (2 hosts)");
    fixture_answer(&model, POLL_NOW,
                   NOW_OF "m|gpu1|down|1774785480000000000|-|gone|-\n"
                          "n|gpu1|down|1774785000000000000|-|gone|-\n"
                          "m|gpu2|errors|1774785480000000000|0.25|no room|-\n"
                          "m|gpu3|errors|1774785480000000000|0.5|no room|-\n");
    expect_banner(&model, " ✗ gpu1 down (2 models)   ✗ m errors (2 hosts)");
    fixture_answer(&model, POLL_NOW,
                   NOW_OF "m|gpu1|errors|1774785480000000000|-|load failed: no room|-\n"
                          "m|gpu2|errors|1774785480000000000|-|load failed: no file|-\n"
                          "n|gpu3|errors|1774785480000000000|-|load failed: no file|-\n");
    expect_banner(&model, " ✗ m load failed (2 hosts)   ✗ n gpu3 load failed");
    model_deinit(&model);
}

// A process without a model, as a sampler, is told as one, after what models have.
TEST_CASE(a_process_without_a_model_is_no_model)
{
    struct model model;
    fleet(&model, 200);
    fixture_answer(&model, POLL_FLEET, NULL);
    fixture_answer(&model, POLL_NOW,
                   NOW_OF "-|gpu1|down|1774785480000000000|-|gone|-\n"
                          "m|gpu1|down|1774785480000000000|-|gone|-\n"
                          "m|gpu2|errors|1774785480000000000|0.25|no room|-\n"
                          "m|gpu3|slow|1774785480000000000|-|late|-\n");
    expect_banner(&model, " ✗ m gpu1 down 2m   ✗ m gpu2 errors 25.0 %   ✗ gpu1: process without a "
                          "model down 2m   ▲ m gpu3 late");
    assert_true(fixture_shows(&model, "no model gpu1"));
    assert_false(fixture_shows(&model, "- gpu1"));
    model_deinit(&model);
}

// Peers are asked for with a host; only what the filter covers is told.
TEST_CASE(the_banner_has_what_stands_out_of_the_filter)
{
    struct model model;
    fleet(&model, 200);
    const struct query_filter filter = {.by[QUERY_BY_HOST] = "gpu-*"};
    model_filter(&model, &filter, "where host=\"gpu-*\"");
    fixture_answer(&model, POLL_NOW, NOW_OF);
    fixture_answer(&model, POLL_ALERTS, ALERTS_OF);
    fixture_answer(&model, POLL_FLEET,
                   "host|device|metric|verdict|deviation_ratio:ratio|reason\n"
                   "a|cuda:0|ttft_ns|worse|0.5|-\n"
                   "gpu-3|cuda:1|ttft_ns|worse|0.2|PCIe x8 of x16\n"
                   "gpu-4|cuda:0|ttft_ns|worse|0.2|-\n"
                   "gpu-3|cuda:1|tokens_per_second|worse|-0.1|-\n"
                   "gpu-4|cuda:1|ttft_ns|worse|0.1|-\n"
                   "gpu-3|cuda:0|ttft_ns|usual|0.01|-\n");
    expect_banner(&model, " ▲ gpu-3 cuda:1 TTFT +20.0 %: PCIe x8 of x16   ▲ gpu-4 TTFT +20.0 %");
    model_deinit(&model);
}

// All rows count, in whatever order they are.
TEST_CASE(the_banner_counts_all_rows)
{
    enum { HOSTS = 100, SIZE = HOSTS * 128 };
    char *text = calloc(1, SIZE);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, SIZE, NOW_OF "q|-|errors|0|0.02|x|100\n");
    for (int i = 0; i < HOSTS; i++)
        used += (size_t)snprintf(text + used, SIZE - used,
                                 "q|h%d|errors|0|%s|x|-\nm%d|h%d|slow|0|-|late|-\n", i,
                                 i ? "0.01" : "0.97", i, i);
    struct model model;
    fleet(&model, 60);
    fixture_answer(&model, POLL_FLEET, NULL);
    fixture_answer(&model, POLL_ALERTS, ALERTS_OF);
    fixture_answer(&model, POLL_NOW, text);
    expect_banner(&model, " ✗ q errors 2.0 % (100 hosts)   ▲ m0 h0 late   +99 more");
    free(text);
    model_deinit(&model);
}

// What nothing else ails is marked by a critical alert for its model, its host or both, whichever
// answer comes first; one that is acknowledged, or only warns, marks nothing.
TEST_CASE(a_critical_alert_marks_its_rows)
{
    static const char rows[] = NOW_OF "m|-|ok|0|-|as usual|2\nm|gpu1|ok|0|-|as usual|-\n"
                                      "m|gpu2|slow|0|-|late|-\nn|-|idle|0|-|-|2\n"
                                      "n|gpu1|idle|0|-|-|-\nn|gpu2|ok|0|-|-|-\n"
                                      "-|gpu1|ok|0|-|-|-\n-|gpu2|ok|0|-|-|-\n";
    static const char alerts[] = ALERTS_OF "1|slow_ttft|m|gpu1|-|firing|critical|-|-\n"
                                           "2|host_full|-|gpu2|-|firing|critical|-|-\n"
                                           "3|errors|n|gpu1|-|firing|critical|5|-\n"
                                           "4|errors|n|gpu1|-|firing|warning|-|-\n"
                                           "5|errors|-|-|-|firing|critical|-|-\n";
    static const char *const states[] = {"alert", "alert", "slow", "idle",
                                         "idle",  "alert", "ok",   "alert"};
    for (int order = 0; order < 2; order++) {
        struct model model;
        fleet(&model, 200);
        fixture_answer(&model, order ? POLL_NOW : POLL_ALERTS, order ? rows : alerts);
        fixture_answer(&model, order ? POLL_ALERTS : POLL_NOW, order ? alerts : rows);
        const struct result *now = model_answer(&model, POLL_NOW);
        for (size_t row = 0; row < COUNT_OF(states); row++)
            assert_true(result_is(now, row, "state", states[row]));
        assert_true(result_is(now, 1, "reason", "alert slow_ttft"));
        assert_true(result_is(now, 2, "reason", "late"));
        assert_true(fixture_shows(&model, "✗ alert"));
        model_deinit(&model);
    }
}

static unsigned looked_at;

static bool is_folded_counted(const struct result *result, size_t row)
{
    (void)result;
    (void)row;
    looked_at++;
    return true;
}

// A pass over a large tree looks at each row a few times, not at all rows for each of them.
TEST_CASE(a_large_tree_costs_by_its_rows)
{
    enum { MODELS = 20, HOSTS = 199, ROWS = MODELS * (HOSTS + 1), SIZE = ROWS * 32 };
    char *text = calloc(1, SIZE);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, SIZE, "model|host|state|group_size\n");
    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, SIZE - used, "m%d|h%d|ended|%s\n", i / (HOSTS + 1), i,
                                 i % (HOSTS + 1) ? "-" : "199");
    struct result *now = fixture_result(text);
    struct grid grid = *view_now.panels[0].grid;
    struct grid_state view = {.sort = GRID_UNSORTED, .unfolded = true};
    struct canvas canvas;
    grid.is_folded = is_folded_counted;
    canvas_init(&canvas, false);
    assert_int_equal(canvas_resize(&canvas, 120, 40), STATUS_OK);
    grid_draw(&grid, &view, now, FIXTURE_WALL_NS, true, &canvas, canvas_area(&canvas));
    assert_int_equal(grid_rows_lines(&grid, &view, now), ROWS);
    assert_in_range(looked_at, 1, 6 * ROWS);
    canvas_deinit(&canvas);
    result_free(now);
    free(text);
}

// What the user closed stays closed, and no other group closes, when the tree grows beyond the rows
// up to which all are open.
TEST_CASE(closed_groups_stay_closed)
{
    static const char rows[] = "model|host|state|group_size\n"
                               "m|-|ok|5\nm|1|ok|-\nm|2|ok|-\nm|3|ok|-\nm|4|ok|-\nm|5|ok|-\n"
                               "n|-|ok|5\nn|1|ok|-\nn|2|ok|-\nn|3|ok|-\nn|4|ok|-\nn|5|ok|-\n";
    char more[sizeof rows + 16];
    struct model model;
    fleet(&model, 120);
    fixture_answer(&model, POLL_NOW, rows);
    assert_int_equal(list_focused(&model).rows, 12);
    fixture_key(&model, KEY_CODE_LEFT);
    assert_int_equal(list_focused(&model).rows, 7);
    (void)snprintf(more, sizeof more, "%so|1|ok|-\n", rows);
    fixture_answer(&model, POLL_NOW, more);
    assert_int_equal(list_focused(&model).rows, 3); // both closed
    fixture_answer(&model, POLL_NOW, rows);
    assert_int_equal(list_focused(&model).rows, 7);
    model_deinit(&model);
}

TEST_MAIN(a_critical_alert_marks_its_rows, the_banner_tells_a_rule_once,
          the_banner_of_a_past_window_has_what_fired_in_it, a_large_tree_costs_by_its_rows,
          states_have_no_device, all_is_no_row, the_head_line_is_of_all, closed_groups_stay_closed,
          groups_open_and_close, reasons_have_a_place_on_a_wide_screen, trouble_marks_what_is_ok,
          why_asks_about_the_row, the_banner_has_the_worst_first,
          the_banner_tells_together_what_is_one_thing, a_process_without_a_model_is_no_model,
          the_banner_has_what_stands_out_of_the_filter, the_banner_counts_all_rows)
