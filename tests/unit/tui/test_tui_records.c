// Requests that are opened, loads beside others, and the choice of what is compared.
#include "tests/support/test.h"

#include "client/tui/compare/chooser.h"
#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

TEST_CASE(stages_follow_the_cursor)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    assert_int_equal(fixture_key(model, '4') & EFFECT_SUBJECT, EFFECT_SUBJECT);
    fixture_answer(model, POLL_LOADS,
                   "run|stream|number|started_ns|duration_ns\n"
                   "aaaa|1|2|1774785000000000000|5\nbbbb|1|1|1774784000000000000|5\n");
    assert_string_equal(model->scope.subjects[SUBJECT_LOAD].by[QUERY_BY_RUN], "aaaa");
    assert_int_equal(fixture_key(model, KEY_CODE_DOWN), EFFECT_SCOPE | EFFECT_SUBJECT);
    assert_string_equal(model->scope.subjects[SUBJECT_LOAD].by[QUERY_BY_RUN], "bbbb");
    assert_int_equal(fixture_key(model, KEY_CODE_DOWN), 0);
    fixture_free(model);
}

// A startup at the cursor of its list has its stages and memory beside it, and nothing usual;
// the one before it is of the same host.
TEST_CASE(stages_of_a_startup)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    struct query query;
    fixture_key(model, '4');
    fixture_key(model, '\t');
    assert_true(queries_fill(POLL_STAGES_USUAL, &model->scope, 0, &query));
    assert_int_equal(fixture_key(model, '\t'), EFFECT_SCOPE | EFFECT_SUBJECT);
    assert_true(queries_fill(POLL_STAGES, &model->scope, 0, &query));
    assert_false(queries_fill(POLL_STAGES_USUAL, &model->scope, 0, &query));
    assert_string_equal(model->scope.subjects[SUBJECT_LOAD_BEFORE].by[QUERY_BY_RUN], "before");
    scene_stages(model);
    assert_true(fixture_shows(model, "open_prompts"));
    assert_false(fixture_shows(model, "read_header"));
    assert_true(fixture_shows(model, "memory 8.0 MB before, 77.0 MB after, +69.0 MB"));
    assert_false(fixture_shows(model, "✗"));
    fixture_key(model, '\r');
    assert_true(fixture_shows(model, "memory_ready"));
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, '\t'); // back to the loads
    assert_true(queries_fill(POLL_STAGES_USUAL, &model->scope, 0, &query));
    fixture_free(model);
}

// What is asked about a request is asked once, when it is opened; again after a silence.
TEST_CASE(a_request_is_asked_about_when_it_is_opened)
{
    const uint64_t about = queries_about(SUBJECT_REQUEST);
    struct model *model = fixture_new(120, 40, scene_normal);
    assert_int_equal(fixture_key(model, '3') & EFFECT_SUBJECT, 0);
    assert_int_equal(fixture_key(model, '\r'), EFFECT_SCOPE | EFFECT_SUBJECT);
    assert_true(model->asked == about);
    assert_true((model->scope.wanted & about) == 0);
    assert_int_equal(fixture_key(model, KEY_CODE_DOWN) & EFFECT_SUBJECT, 0);
    fixture_answer(model, POLL_LOADS_THEN, "run\nx\n");
    fixture_round(model, STATUS_TIMEOUT, "no answer");
    fixture_round(model, STATUS_OK, NULL);
    assert_true(model->asked == about);
    fixture_round(model, STATUS_BUSY, "busy");
    fixture_round(model, STATUS_OK, NULL);
    assert_true(model->asked == about);
    fixture_round(model, STATUS_OK, NULL);
    assert_true(model->asked == 0);
    fixture_answer(model, POLL_INFERENCES, "run|started_ns\nnewer|1774785600000000000\n");
    assert_string_equal(model->scope.subjects[SUBJECT_REQUEST].by[QUERY_BY_RUN], "r"); // it stays
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_null(model_answer(model, POLL_LOADS_THEN));
    assert_int_equal(fixture_key(model, '\r'), EFFECT_SCOPE | EFFECT_SUBJECT);
    fixture_free(model);
}

// Each step of the choice by keys; the window moves, what is compared stays.
TEST_CASE(what_is_compared_is_chosen_by_keys)
{
    struct model *model = fixture_new(80, 24, scene_many);
    fixture_answer(model, POLL_OVERVIEW,
                   "model|host\nllama|gpu-1\nllama|gpu-2\nqwen|gpu-1\nphi|gpu-3\n");
    fixture_answer(model, POLL_BASELINES, "baseline\njune\n");
    fixture_key(model, 'v');
    assert_int_equal(model->view, VIEW_COMPARE);
    assert_true(model->scope.wanted & POLL(BASELINES));
    fixture_key(model, 'j');
    fixture_key(model, '\r'); // two models
    fixture_key(model, 'j');
    fixture_key(model, '\r'); // qwen
    fixture_key(model, KEY_CODE_END);
    assert_int_equal(fixture_key(model, '\r') & EFFECT_SCOPE, EFFECT_SCOPE); // phi
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_false(model->answers[POLL_COMPARE].known);
    fixture_key(model, '-');
    fixture_key(model, '[');
    struct query query;
    assert_true(queries_fill(POLL_COMPARE, &model->scope, FIXTURE_WALL_NS, &query));
    assert_string_equal(query.filter.by[QUERY_BY_MODEL], "qwen");
    assert_string_equal(query.compare.other.by[QUERY_BY_MODEL], "phi");
    assert_int_equal(query.filter.since_ns, query.compare.other.since_ns);

    fixture_key(model, 'v'); // the mouse does what keys do
    const struct rect body = layout_frame(80, 24, false).body;
    const int y = view_chooser_box(model, body).area.y;
    for (int press = 0; press < 3; press++) // the first on the border
        fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 40, .y = y + (press > 0)});
    assert_int_equal(model->chooser.step, CHOOSER_A);
    assert_int_equal(model->chooser.draft.kind, COMPARISON_WINDOWS);
    fixture_event(model, (struct event){.kind = EVENT_WHEEL, .x = 40, .y = 9, .turn = 3});
    assert_int_equal(model->chooser.cursor, 1);
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, KEY_CODE_ESCAPE);

    fixture_key(model, 'v'); // Esc goes a step back, then leaves things as they were
    for (int i = 0; i < 3; i++)
        fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, '\r');
    assert_int_equal(model->chooser.step, CHOOSER_A);
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_int_equal(model->scope.comparison.kind, COMPARISON_MODELS);
    fixture_free(model);
}

// The interval of a change has its unit once; where its ends have different ones, each has its own.
TEST_CASE(both_ends_of_an_interval_have_their_unit)
{
    static const struct {
        const char *low, *high, *unit, *shown;
    } cases[] = {
        {"1.15", "1.27", "ns", " +15.0  +27.0 % "}, {"0.73", "1.05", "ns", " -27.0   +5.0 % "},
        {"1.5", "15", "ns", " +50.0 %      x15 "},  {"12", "15", "ns", " x12      x15 "},
        {"1.1", "1.2", "celsius", " +3     +6 C "}, {"-", "1.2", "ns", " - "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[512];
        struct model *model = fixture_new(200, 24, scene_normal);
        fixture_key(model, '6');
        (void)snprintf(text, sizeof text,
                       "verdict|model|metric|unit|before_median|after_median|ratio|ratio_low|"
                       "ratio_high|p95_verdict\nWORSE|m|x|%s|30|33|2|%s|%s|SAME\n",
                       cases[i].unit, cases[i].low, cases[i].high);
        fixture_answer(model, POLL_COMPARE, text);
        assert_true(fixture_shows(model, cases[i].shown));
        fixture_free(model);
    }
}

// Random keys, answers and sizes: what is drawn stays on the screen (sanitizers watch).
TEST_CASE(random_keys_in_views_of_records)
{
    static const char keys[] = "3456vvmdjk\r\r\x1b[]+-t>sIzo\t/";
    uint64_t random = 4711;
    for (int round = 0; round < 40; round++) {
        struct model *model = fixture_new(60 + (int)(test_random(&random) % 160),
                                          16 + (int)(test_random(&random) % 50),
                                          round % 2 ? scene_pipelines : scene_losses);
        for (int i = 0; i < 60; i++) {
            fixture_key(model, (unsigned char)keys[test_random(&random) % (sizeof keys - 1)]);
            if (i % 7 == 0)
                fixture_answer(model, (enum polled_query)(test_random(&random) % POLL_COUNT),
                               "run|host|model|device|started_ns|e2e_ns|duration_ns|value|count\n"
                               "a|b|c|d|1774785000000000000|5|7|0|1\n"
                               "a|b|c|d|1774785000000000001|-|9223372036854775807|9e300|9\n");
            free(fixture_screen(model, round % 3 == 0));
        }
        fixture_free(model);
    }
}

// Details with bars and charts stay between the title and the footer, wherever they are scrolled
// to, and what is scrolled past the top goes line by line.
TEST_CASE(details_stay_in_the_body)
{
    for (int height = 16; height <= 30; height++) {
        struct model *model = fixture_new(120, 40, scene_normal);
        fixture_key(model, '3');
        fixture_answer(
            model, POLL_INFERENCES,
            "run|stream|number|model|host|started_ns|e2e_ns|queue_ns|prefill_ns|decode_ns\n"
            "r|1|1|m|h|1774785000000000000|5000000|1000000|1000000|3000000\n");
        (void)fixture_event(model, (struct event){.kind = EVENT_RESIZE, .x = 75, .y = height});
        fixture_key(model, '\r');
        fixture_answer(
            model, POLL_EXPLANATION,
            "run|request|started_ns|took_ns|median_ns|excess_ns|peers|blame|note|"
            "queue_excess_ns|prefill_excess_ns|decode_excess_ns|throttle_excess_ns|load_excess_ns|"
            "cpu_excess_ns|memory_excess_ns|other_excess_ns|io_excess_ns\n"
            "r|1|1774785000000000000|5000000|1000000|4000000|9|queue|note|"
            "400000|400000|400000|400000|400000|400000|400000|400000|400000\n");
        for (int line = 0; line < 20; line++) {
            struct canvas canvas;
            canvas_init(&canvas, true);
            assert_int_equal(canvas_resize(&canvas, 75, height), STATUS_OK);
            view_draw(model, &canvas);
            const struct rect body = layout_frame(75, height, view_banner_is_needed(model)).body;
            for (int x = 0; x < 75; x++)
                for (int y = 0; y < height; y++)
                    assert_true((y >= body.y && y < body.y + body.height) ||
                                canvas_cell(&canvas, x, y)->code != '#');
            canvas_deinit(&canvas);
            fixture_key(model, 'j');
        }
        fixture_free(model);
    }
    struct model *model = fixture_new(80, 18, scene_normal);
    fixture_key(model, '2');
    fixture_key(model, '\r');
    fixture_key(model, 'j');
    fixture_key(model, 'j');
    fixture_key(model, 'j');
    assert_false(fixture_shows(model, "CPU %")); // of the chart's seven lines the last ones
    assert_true(fixture_shows(model, "5m before"));
    assert_false(fixture_shows(model, "is_host"));
    fixture_free(model);
}

// The name of a metric is whole where verdicts and notes would take its room; these are in the
// details.
TEST_CASE(a_metric_that_is_compared_has_its_name)
{
    static const int widths[] = {100, 110, 120};
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        struct model *model = fixture_new(widths[i], 40, scene_normal);
        fixture_answer(model, POLL_COMPARE,
                       "verdict|model|host|device|metric|ratio:ratio|ratio_low:ratio|ratio_high:"
                       "ratio|before_median|after_median|p95_verdict|p99_verdict|note\n"
                       "WORSE|llama-3-8b-instruct|gpu-1|cuda:0|tokens_per_second|1.2|1.1|1.3|200|"
                       "240|UNDECIDED|UNDECIDED|the work differs: median 12 / 400 prompt_tokens\n"
                       "WORSE|llama-3-8b-instruct|gpu-1|cuda:1|request_rate|1.2|1.1|1.3|200|240|"
                       "UNDECIDED|UNDECIDED|-\n");
        fixture_key(model, '6');
        assert_true(fixture_shows(model, " tokens_per_second "));
        assert_true(fixture_shows(model, " request_rate "));
        fixture_key(model, '\r');
        assert_true(fixture_shows(model, "change from"));
        assert_true(fixture_shows(model, "the work differs"));
        fixture_free(model);
    }
}

// The totals rest longer than the times below them: they are no fewer.
TEST_CASE(totals_are_no_fewer_than_their_times)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_key(model, '3');
    fixture_answer(model, POLL_SUMMARY, "runs|inferences:count\n1|2148\n");
    fixture_answer(model, POLL_HISTOGRAM, "value:ns|count:count\n1e8|2000\n2e8|275\n");
    assert_true(fixture_shows(model, "TTFT of 2,275 requests (m: E2E)"));
    assert_true(fixture_shows(model, "2,275 requests"));
    assert_false(fixture_shows(model, "2,148"));
    fixture_free(model);
}

// Of a model in trouble, the details have words; its reason tells of the device.
TEST_CASE(details_have_words)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    fixture_answer(model, POLL_NOW,
                   "model|host|state|reason|error_ratio:ratio|has_trouble\n"
                   "m|h|ok|cuda:0 throttling|0.25|1\n");
    fixture_key(model, '\r');
    assert_true(fixture_shows(model, "failed requests"));
    assert_false(fixture_shows(model, "has_trouble"));
    fixture_free(model);
}

TEST_MAIN(details_stay_in_the_body, stages_follow_the_cursor, stages_of_a_startup,
          a_request_is_asked_about_when_it_is_opened, what_is_compared_is_chosen_by_keys,
          random_keys_in_views_of_records, both_ends_of_an_interval_have_their_unit,
          a_metric_that_is_compared_has_its_name, totals_are_no_fewer_than_their_times,
          details_have_words)
