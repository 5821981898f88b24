// Where things stand: nothing overlaps, nothing leaves the screen, at any size.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "client/tui/layout.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

static void assert_inside(struct rect inner, struct rect outer)
{
    if (rect_is_empty(inner))
        return;
    assert_true(inner.x >= outer.x && inner.y >= outer.y);
    assert_true(inner.x + inner.width <= outer.x + outer.width);
    assert_true(inner.y + inner.height <= outer.y + outer.height);
}

static void assert_apart(struct rect a, struct rect b)
{
    if (rect_is_empty(a) || rect_is_empty(b))
        return;
    assert_true(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y ||
                b.y + b.height <= a.y);
}

static void assert_all_apart(const struct rect *rects, unsigned count, struct rect screen)
{
    for (unsigned i = 0; i < count; i++) {
        assert_inside(rects[i], screen);
        for (unsigned k = i + 1; k < count; k++)
            assert_apart(rects[i], rects[k]);
    }
}

TEST_CASE(frames_never_overlap)
{
    for (int width = 1; width <= 300; width++) {
        for (int height = 1; height <= 100; height++) {
            struct layout_frame frame = layout_frame(width, height, (width + height) % 2);
            const struct rect rects[] = {frame.title, frame.status, frame.banner, frame.body,
                                         frame.footer};
            assert_all_apart(rects, 5, (struct rect){0, 0, width, height});
            assert_int_equal(!rect_is_empty(frame.body), layout_fits(width, height));
        }
    }
}

// The least screen has every view, a row of it at least, its details and the help.
TEST_CASE(a_small_screen_has_every_view)
{
    void (*const fills[])(struct model *) = {scene_fleet, scene_pipelines, scene_alerts};
    for (size_t fill = 0; fill < COUNT_OF(fills); fill++) {
        struct model *model = fixture_new(60, 15, fills[fill]);
        assert_false(fixture_shows(model, "too small"));
        for (unsigned view = 0; view < VIEW_COUNT; view++) {
            struct rect areas[MODEL_PANELS_MAX];
            fixture_key(model, '1' + view);
            view_arrange(model, areas);
            assert_true(view_panel_page(model, &view_current(model)->panels[0], areas[0]) > 0);
            assert_true(fixture_shows(model, "? help"));
        }
        fixture_free(model);
    }
}

// Of every view, those of the past among them; with all rows unfolded, and with details open.
TEST_CASE(panels_never_overlap)
{
    static const struct {
        void (*fill)(struct model *);
        const char *keys;
    } cases[] = {
        {scene_normal, ""},     {scene_many, "o"},        {scene_losses, ""},
        {scene_fleet, "o"},     {scene_fleet, "oj\r"},    {scene_many, "["},
        {scene_normal, "2"},    {scene_normal, "2\r"},    {scene_losses, "3o"},
        {scene_normal, "3\r"},  {scene_normal, "4"},      {scene_losses, "4\r"},
        {scene_pipelines, "5"}, {scene_pipelines, "5\r"}, {scene_normal, "6"},
        {scene_normal, "6\r"},  {scene_alerts, "7"},      {scene_alerts, "7\r"},
        {scene_losses, "8"},    {scene_many, "8\r"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model model;
        fixture_model(&model, 200, 60);
        cases[i].fill(&model);
        for (const char *key = cases[i].keys; *key; key++)
            fixture_key(&model, *key == '\r' ? KEY_CODE_ENTER : (uint32_t)*key);
        cases[i].fill(&model); // also of the window that the keys have chosen
        assert_int_equal(model.overlay == OVERLAY_DETAIL, strchr(cases[i].keys, '\r') != NULL);
        const struct view *view = view_current(&model);
        struct view_state *shown = &model.views[view_shown(&model)];
        const bool banner = view_banner_is_needed(&model);
        for (int width = 1; width <= 400; width++) {
            for (int height = 1; height <= 120; height += height < 70 ? 1 : 5) {
                struct rect areas[MODEL_PANELS_MAX];
                model.width = width;
                model.height = height;
                shown->focus = (unsigned)width % view->panel_count;
                if (!view_has_panel(&model, shown->focus))
                    shown->focus = 0;
                view_arrange(&model, areas);
                assert_all_apart(areas, MODEL_PANELS_MAX, layout_frame(width, height, banner).body);
                for (unsigned k = 0; k < view->panel_count; k++)
                    assert_inside(view_panel_list(&model, &view->panels[k], areas[k]), areas[k]);
                if (layout_fits(width, height)) // the panel that has the keys is there
                    assert_false(rect_is_empty(areas[shown->focus]));
            }
        }
        model_deinit(&model);
    }
}

TEST_CASE(the_enlarged_panel_stands_alone)
{
    struct model model;
    fixture_model(&model, 80, 24);
    scene_normal(&model);
    model.views[0].enlarged = true;
    model.views[0].focus = 2;
    struct rect areas[MODEL_PANELS_MAX], body = layout_frame(80, 24, false).body;
    view_arrange(&model, areas);
    for (unsigned i = 0; i < MODEL_PANELS_MAX; i++)
        assert_int_equal(rect_is_empty(areas[i]), i != 2);
    assert_memory_equal(&areas[2], &body, sizeof body);
    model_deinit(&model);
}

TEST_CASE(stacks_give_by_rank)
{
    // a: wants 6 at rank 1.  b: 9 at rank 2.  c: grows.
    static const struct layout_want wants[] = {{3, 6, 1, false}, {3, 9, 2, false}, {4, 4, 0, true}};
    static const struct {
        int height;
        int given[3];
    } cases[] = {
        {30, {6, 9, 15}}, {19, {6, 9, 4}}, {18, {6, 8, 4}}, {13, {6, 3, 4}},
        {11, {4, 3, 4}},  {10, {3, 3, 4}}, {9, {5, 0, 4}},  {7, {3, 0, 4}},
        {6, {0, 0, 6}},   {3, {0, 0, 0}},  {0, {0, 0, 0}},  {-4, {0, 0, 0}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct rect out[3];
        layout_stack((struct rect){2, 1, 20, cases[i].height}, wants, 3, out);
        for (int k = 0; k < 3; k++)
            assert_int_equal(out[k].height, cases[i].given[k]);
    }
}

TEST_CASE(stacks_never_overlap)
{
    uint64_t seed = 11;
    for (int round = 0; round < 20000; round++) {
        struct layout_want wants[LAYOUT_STACK_MAX];
        unsigned count = 1 + (unsigned)(test_random(&seed) % LAYOUT_STACK_MAX);
        for (unsigned i = 0; i < count; i++)
            wants[i] =
                (struct layout_want){(int)(test_random(&seed) % 6), (int)(test_random(&seed) % 12),
                                     (unsigned)(test_random(&seed) % 4), i % 3 == 0};
        struct rect out[LAYOUT_STACK_MAX], area = {3, 5, 40, (int)(test_random(&seed) % 50)};
        layout_stack(area, wants, count, out);
        assert_all_apart(out, count, area);
        for (unsigned i = 0; i < count; i++)
            assert_true(rect_is_empty(out[i]) || out[i].height >= wants[i].minimum);
    }
}

TEST_CASE(splits_and_centres)
{
    struct rect left, right, area = {1, 2, 20, 6};
    layout_beside(area, 8, 2, &left, &right);
    assert_int_equal(left.width, 8);
    assert_int_equal(right.x, 11);
    assert_int_equal(right.width, 10);
    layout_beside(area, 30, 2, &left, &right);
    assert_int_equal(left.width, 20);
    assert_true(rect_is_empty(right));

    struct rect centre = layout_centre(area, 10, 2);
    assert_memory_equal(&centre, &((struct rect){6, 4, 10, 2}), sizeof centre);
    centre = layout_centre(area, 100, 100);
    assert_memory_equal(&centre, &area, sizeof centre);
}

// Three lines have no prompt, panel or list: their keys do nothing, and the window is named.
TEST_CASE(compact_has_few_keys)
{
    struct model *model = fixture_new(80, 3, scene_normal);
    model->compact = true;
    for (uint32_t code = 1; code < KEY_CODE_F10; code++) {
        if (code == 'q' || code == ' ' || code == 'r' || code == 't' || code == KEY_CODE_CTRL_L)
            continue;
        code = code == 256 ? KEY_CODE_FIRST : code;
        assert_int_equal(fixture_key(model, code), 0);
        assert_int_equal(model->overlay, OVERLAY_NONE);
    }
    (void)fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 16, .y = 0});
    assert_int_equal(model->view, VIEW_NOW);
    assert_true(fixture_shows(model, "  window 5m\n"));
    assert_true(fixture_key(model, 't') & EFFECT_ASK);
    fixture_key(model, ' ');
    assert_true(fixture_shows(model, "‖ paused  window "));
    assert_int_equal(fixture_key(model, 'q'), EFFECT_QUIT);
    fixture_free(model);
}

// Its throughput is drawn by time: of an engine that stopped four minutes ago, at the left.
TEST_CASE(compact_draws_by_time)
{
    enum { LABEL = 8, HALF = 30 };
    char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text, "started_ns|mean\n");
    for (int i = 0; i < 20; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%lld|500\n",
                             (long long)(FIXTURE_WALL_NS - (298 - 2 * i) * INT64_C(1000000000)));
    struct model *model = fixture_new(80, 3, scene_normal);
    model->compact = true;
    fixture_answer(model, POLL_TOKENS, text);
    struct canvas canvas;
    canvas_init(&canvas, true);
    assert_int_equal(canvas_resize(&canvas, 80, 3), STATUS_OK);
    view_draw(model, &canvas);
    unsigned left = 0, right = 0;
    for (int x = 0; x < HALF; x++) {
        left += canvas_cell(&canvas, LABEL + x, 2)->code != ' ';
        right += canvas_cell(&canvas, LABEL + HALF + x, 2)->code != ' ';
    }
    assert_true(left > 4);
    assert_int_equal(right, 0);
    canvas_deinit(&canvas);
    fixture_free(model);
}

TEST_MAIN(a_small_screen_has_every_view, compact_has_few_keys, compact_draws_by_time,
          frames_never_overlap, panels_never_overlap, the_enlarged_panel_stands_alone,
          stacks_give_by_rank, stacks_never_overlap, splits_and_centres)
