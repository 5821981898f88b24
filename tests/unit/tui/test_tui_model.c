// What happens, and what becomes of the model.
#include "tests/support/test.h"

#include <time.h>

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

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
        struct model *model = fixture_new(80, 24, scene_normal);
        assert_int_equal(fixture_key(model, cases[i].code), cases[i].effects);
        fixture_free(model);
    }
}

TEST_CASE(clear_asks_for_the_name)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    assert_int_equal(fixture_key(model, 'c'), 0);
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    assert_int_equal(fixture_type(model, "y"), 0);
    assert_int_equal(model->overlay, OVERLAY_CLEAR);
    assert_true(model->prompt.error[0] != '\0');
    assert_int_equal(fixture_key(model, KEY_CODE_ESCAPE), 0);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, 'c');
    assert_int_equal(fixture_type(model, "everything"), EFFECT_CHANGE | EFFECT_PACE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    fixture_key(model, 'c'); // not before the answer
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "not been answered"));
    fixture_event(model, (struct event){.kind = EVENT_CHANGED, .cleared = 1});
    fixture_key(model, '\\');
    fixture_type(model, "host=gpu-17");
    fixture_key(model, 'c');
    assert_int_equal(fixture_type(model, "everything"), 0);
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(fixture_type(model, "gpu-17"), EFFECT_CHANGE | EFFECT_PACE);
    fixture_event(model, (struct event){.kind = EVENT_CHANGED});
    model->is_file = true;
    fixture_key(model, 'c');
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "--db"));
    fixture_free(model);
}

TEST_CASE(readonly_refuses_to_clear)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    model->readonly = true;
    assert_int_equal(fixture_key(model, 'c'), 0);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "--readonly"));
    fixture_free(model);
}

TEST_CASE(clear_says_how_it_ended)
{
    struct model *model = fixture_new(80, 24, scene_normal);
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
    fixture_free(model);
}

TEST_CASE(a_pause_asks_only_when_told)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    assert_int_equal(fixture_key(model, ' '), EFFECT_PACE);
    assert_true(model->paused);
    assert_int_equal(fixture_key(model, 't'), EFFECT_SCOPE | EFFECT_ASK);
    fixture_answer(model, POLL_SUMMARY, "inferences\n999\n");
    assert_true(model_figure(model, "inferences", 0) == 999);
    assert_int_equal(fixture_key(model, ' '), EFFECT_PACE | EFFECT_ASK);
    fixture_free(model);
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
    struct model *model = fixture_new(80, 24, NULL);
    assert_int_equal(model->contact, CONTACT_NONE);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fixture_round(model, cases[i].status, "why");
        assert_int_equal(model->contact, cases[i].contact);
        assert_string_equal(model->fault, "why");
    }
    fixture_free(model);
}

TEST_CASE(age_counts_from_the_last_answer)
{
    struct model *model = fixture_new(80, 24, NULL);
    assert_true(model_age_seconds(model) == 0);
    scene_normal(model);
    struct event tick = {.kind = EVENT_TICK, .now_ns = FIXTURE_NOW_NS + UINT64_C(5000000000)};
    (void)model_update(model, &tick);
    assert_true(model_age_seconds(model) == 5);
    fixture_free(model);
}

TEST_CASE(the_interval_moves_in_steps)
{
    struct model *model = fixture_new(80, 24, NULL);
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
    fixture_free(model);
}

TEST_CASE(an_export_asks_for_a_name)
{
    struct model *model = fixture_new(120, 40, scene_many);
    fixture_key(model, 'e');
    assert_string_equal(model->prompt.text, "inferstat.csv");
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(fixture_type(model, "x.svg"), EFFECT_EXPORT);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    model_end_export(model, STATUS_OK, "", 0);
    assert_string_equal(model->notice, "written: x.svg");
    model_end_export(model, STATUS_IO, "x.svg: File\x1b exists", 0);
    assert_string_equal(model->notice, "not written: x.svg: File\\x1B exists");
    assert_true(model_may_replace(model)); // what it wrote itself

    // A file of others is replaced after one more Enter.
    fixture_key(model, 'e');
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(fixture_type(model, "y.svg"), EFFECT_EXPORT);
    assert_false(model_may_replace(model));
    model_end_export(model, STATUS_BUSY, "y.svg: it exists", 0);
    assert_int_equal(model->overlay, OVERLAY_EXPORT);
    assert_string_equal(model->prompt.error, "the file exists: Enter replaces it");
    assert_int_equal(fixture_key(model, KEY_CODE_ENTER), EFFECT_EXPORT);
    assert_true(model_may_replace(model));
    fixture_key(model, 'e');
    fixture_key(model, KEY_CODE_CTRL_U);
    fixture_type(model, "z.svg");
    assert_false(model_may_replace(model));

    // After Esc it is asked about again.
    model_end_export(model, STATUS_BUSY, "z.svg: it exists", 0);
    assert_true(model_may_replace(model));
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_false(model_may_replace(model));
    fixture_free(model);
}

// Of a window with more rows than the panel holds, the notice says how many are not in the file.
TEST_CASE(an_export_says_how_many_rows_it_has)
{
    char loads[4096] = "run|stream|number|started_ns|duration_ns\n";
    for (int i = 0; i < 100; i++)
        (void)snprintf(loads + strlen(loads), sizeof loads - strlen(loads), "r|1|%d|1|5\n", i);
    static const struct {
        char key;
        const char *window;
        size_t rows;
        const char *notice;
    } cases[] = {
        {'3', "inferences\n128\n", 128, "128 rows written: a.csv"},
        {'3', "inferences\n12345\n", 128,
         "128 of 12345 rows written: a.csv (all: inferstat export)"},
        {'3', "inferences\n12345\n", 7, "7 of 12345 rows written: a.csv (all: inferstat export)"},
        {'3', NULL, 128, "128 rows written: a.csv"},
        {'4', NULL, 100, "100 of 100 or more rows written: a.csv (all: inferstat export)"},
        {'2', NULL, 6, "6 rows written: a.csv"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model *model = fixture_new(120, 40, scene_normal);
        fixture_answer(model, POLL_WINDOW, cases[i].window);
        fixture_answer(model, POLL_LOADS, loads);
        fixture_key(model, (unsigned char)cases[i].key);
        fixture_key(model, 'e');
        fixture_key(model, KEY_CODE_CTRL_U);
        assert_int_equal(fixture_type(model, "a.csv"), EFFECT_EXPORT);
        model_end_export(model, STATUS_OK, "", cases[i].rows);
        assert_string_equal(model->notice, cases[i].notice);
        fixture_free(model);
    }
}

TEST_CASE(alerts_are_acknowledged_and_silenced)
{
    struct model *model = fixture_new(120, 40, scene_alerts);
    fixture_key(model, 'a');
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_non_null(strstr(model->notice, "Alerts"));
    fixture_key(model, '7');
    fixture_key(model, KEY_CODE_DOWN);
    fixture_key(model, 'a');
    assert_int_equal(fixture_type(model, "it's known"), EFFECT_CHANGE);
    assert_int_equal(model->change.kind, QUERY_ALERT_EDIT);
    assert_int_equal(model->change.alert.edit, QUERY_ALERT_ACK);
    assert_int_equal(model->change.alert.id, 6);
    assert_string_equal(model->change.alert.text, "it's known");
    fixture_event(model, (struct event){.kind = EVENT_CHANGED});
    assert_string_equal(model->notice, "acknowledged");
    fixture_key(model, 'S');
    assert_int_equal(fixture_type(model, "x"), EFFECT_CHANGE);
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
    fixture_free(model);
}

TEST_CASE(the_window_changes)
{
    struct model *model = fixture_new(120, 40, scene_normal);
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
    assert_int_equal(view_shown(model), VIEW_NOW); // the states at its end
    fixture_key(model, '-');                       // a longer one with the same end
    assert_string_equal(window_text(&model->scope.window), "1h");
    assert_int_equal(model->scope.window.until_ns, FIXTURE_WALL_NS - INT64_C(300000000000));
    fixture_key(model, ']');
    assert_int_equal(model->scope.window.until_ns, 0);
    assert_int_equal(view_shown(model), VIEW_NOW);
    assert_int_equal(fixture_key(model, '0'), 0); // it ends now
    for (int i = 0; i < 3; i++)
        fixture_key(model, '[');
    assert_int_equal(fixture_key(model, '0'), EFFECT_SCOPE | EFFECT_ASK);
    assert_int_equal(model->scope.window.until_ns, 0);
    assert_string_equal(window_text(&model->scope.window), "1h");
    for (int i = 0; i < 9; i++)
        fixture_key(model, '-');
    assert_string_equal(window_text(&model->scope.window), "all");
    assert_int_equal(fixture_key(model, '['), 0); // all time has no other
    struct query_filter filter = {.since_ns = FIXTURE_WALL_NS - 5};
    model_set_filter(model, &filter);
    fixture_key(model, 't');
    assert_string_equal(window_text(&model->scope.window), "all");
    assert_non_null(strstr(model->notice, "filter"));
    fixture_free(model);
}

// Answers of another window or filter are shown no more, nor those that were under way.
TEST_CASE(answers_are_of_what_is_asked)
{
    struct query_filter filter = {.by[QUERY_BY_HOST] = "gpu-18"};
    struct model *model = fixture_new(120, 40, scene_normal);
    const uint32_t before = model->scope.generations[POLL_WINDOW];
    fixture_key(model, 't');
    assert_null(model_answer(model, POLL_WINDOW));
    assert_non_null(model_answer(model, POLL_SUMMARY)); // of all time
    assert_true(fixture_shows(model, " asking ..."));
    assert_false(fixture_shows(model, "gpu-17"));
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
    assert_true(fixture_shows(model, "asking how many"));
    fixture_free(model);
}

// A model's and a host's rows of Now are of other answers; so is why another row is slow.
TEST_CASE(other_questions_have_other_answers)
{
    struct model *model = fixture_new(120, 40, scene_fleet);
    fixture_key(model, 'g');
    assert_null(model_answer(model, POLL_NOW));
    fixture_key(model, 'w');
    fixture_answer(model, POLL_WHY, "verdict\n");
    const uint32_t before = model->scope.generations[POLL_WHY];
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, 'w');
    assert_null(model_answer(model, POLL_WHY));
    assert_int_not_equal(model->scope.generations[POLL_WHY], before);
    fixture_free(model);
}

// All times are in the zone that the title names, where there is room.
TEST_CASE(the_title_names_the_zone)
{
    static const struct {
        const char *zone;
        int width;
        const char *live, *past;
    } cases[] = {
        {"UTC", 120, "window 5m  12:00:00  UTC\n", "5m until 11:57:30  UTC\n"},
        {"CET-1", 120, "window 5m  13:00:00  CET\n", "5m until 12:57:30  CET\n"},
        {"<+0530>-5:30", 100, "window 5m  17:30:00  +0530\n", "5m until 17:27:30  +0530\n"},
        {"UTC", 99, "window 5m  12:00:00\n", "5m until 11:57:30\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model *model = fixture_new(cases[i].width, 24, scene_normal);
        (void)setenv("TZ", cases[i].zone, 1);
        tzset();
        assert_true(fixture_shows(model, cases[i].live));
        fixture_key(model, '[');
        assert_true(fixture_shows(model, cases[i].past));
        fixture_free(model);
    }
    (void)setenv("TZ", "UTC", 1);
    tzset();
}

// A copied file is of another day: its windows end where its records do.
TEST_CASE(windows_of_a_file_end_at_its_records)
{
    const int64_t day_ns = INT64_C(86400000000000);
    char summary[128];
    struct model *model = fixture_new(120, 40, NULL);
    model->is_file = true;
    (void)snprintf(summary, sizeof summary,
                   "runs|last_load_started_ns|last_inference_started_ns\n"
                   "1|%lld|%lld\n",
                   (long long)(FIXTURE_WALL_NS - 3 * day_ns),
                   (long long)(FIXTURE_WALL_NS - 2 * day_ns));
    fixture_answer(model, POLL_SUMMARY, summary);
    assert_int_equal(model->scope.now_ns, FIXTURE_WALL_NS - 2 * day_ns + 1);
    assert_int_equal(view_shown(model), VIEW_NOW);
    fixture_round(model, STATUS_OK, NULL);
    assert_true(fixture_shows(model, "● file  window 5m  03-27 12:00:00\n"));
    fixture_key(model, '[');
    assert_int_equal(model->scope.window.until_ns,
                     FIXTURE_WALL_NS - 2 * day_ns + 1 - INT64_C(150000000000));
    fixture_key(model, ']');
    assert_int_equal(model->scope.window.until_ns, 0);
    fixture_key(model, '7');
    fixture_answer(model, POLL_ALERTS, NULL);
    assert_true(fixture_shows(model, "bundles have no alerts"));
    fixture_free(model);
}

// A file that was copied a minute ago does not go on, that of a collector with idle engines does.
// It ends with the last message: an engine may have died after its last request.
TEST_CASE(a_file_goes_on_while_its_collector_hears)
{
    const int64_t minute_ns = INT64_C(60000000000), newest_ns = FIXTURE_WALL_NS - minute_ns;
    const int64_t heard_ns[] = {newest_ns, newest_ns + minute_ns / 2,
                                FIXTURE_WALL_NS - minute_ns / 6};
    const int64_t now_ns[] = {newest_ns + 1, newest_ns + minute_ns / 2, 0};
    struct model *model = fixture_new(120, 40, NULL);
    model->is_file = true;
    for (size_t i = 0; i < COUNT_OF(heard_ns); i++) {
        char summary[128];
        (void)snprintf(summary, sizeof summary,
                       "runs|last_inference_started_ns|as_of_ns\n1|%lld|%lld\n",
                       (long long)newest_ns, (long long)heard_ns[i]);
        fixture_answer(model, POLL_SUMMARY, summary);
        assert_int_equal(model->scope.now_ns, now_ns[i]);
    }
    fixture_free(model);
}

// All time of a short file has states and charts, that of a long one averages.
TEST_CASE(all_time_of_a_short_file_has_states)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    model->is_file = true;
    model->scope.window.length = window_lengths() - 1;
    for (int is_short = 0; is_short < 2; is_short++) {
        const int64_t end_ns = FIXTURE_WALL_NS - INT64_C(360000000000000);
        char summary[128];
        (void)snprintf(summary, sizeof summary,
                       "runs|first_started_ns|last_inference_started_ns\n1|%lld|%lld\n",
                       (long long)(end_ns - (is_short ? 28 : 100000) * INT64_C(1000000000)),
                       (long long)end_ns);
        fixture_answer(model, POLL_SUMMARY, summary);
        assert_int_equal(fixture_shows(model, "Averages of the window"), !is_short);
        assert_int_equal(fixture_shows(model, "28s before"), is_short);
    }
    fixture_free(model);
}

// The axis of a chart says since when it is where the store is younger than the window.
TEST_CASE(a_chart_says_when_it_begins)
{
    char summary[128];
    struct model *model = fixture_new(120, 40, scene_normal);
    model->scope.window.length = 4; // 7d
    assert_true(fixture_shows(model, "7d before"));
    (void)snprintf(summary, sizeof summary, "runs|first_started_ns\n1|%lld\n",
                   (long long)(FIXTURE_WALL_NS - INT64_C(7500000000000)));
    fixture_answer(model, POLL_SUMMARY, summary);
    assert_int_equal(model->scope.first_ns, FIXTURE_WALL_NS - INT64_C(7500000000000));
    assert_true(fixture_shows(model, "2h 05m before"));
    fixture_free(model);
}

TEST_CASE(a_silent_collector_shows_the_age_of_data)
{
    struct model *model = fixture_new(120, 40, scene_normal);
    struct event tick = {.kind = EVENT_TICK,
                         .now_ns = FIXTURE_NOW_NS + UINT64_C(2400000000),
                         .wall_now_ns = FIXTURE_WALL_NS};
    (void)model_update(model, &tick);
    assert_true(fixture_shows(model, "● live"));
    tick.now_ns += UINT64_C(200000000);
    (void)model_update(model, &tick);
    assert_true(fixture_shows(model, "○ 3s old"));
    fixture_free(model);
}

// From the help, a view is shown at once; a question and the prompt keep the key.
TEST_CASE(views_are_shown_from_the_help_alone)
{
    struct model *model = fixture_new(80, 24, scene_pipelines);
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
    fixture_free(model);
}

TEST_CASE(losses_are_added_up)
{
    struct model *model = fixture_new(80, 24, NULL);
    assert_int_equal(model_lost(model), 0);
    scene_losses(model);
    assert_int_equal(model_lost(model), 12);
    fixture_free(model);
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
    void (*const fills[])(struct model *) = {scene_normal, scene_empty, scene_many,
                                             scene_losses, scene_names, scene_pipelines};
    uint64_t seed = 42;
    struct model *model = fixture_new(80, 24, NULL);
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
    fixture_free(model);
}

TEST_MAIN(keys_have_effects, clear_asks_for_the_name, readonly_refuses_to_clear,
          clear_says_how_it_ended, a_pause_asks_only_when_told, contact_follows_the_rounds,
          age_counts_from_the_last_answer, the_interval_moves_in_steps, an_export_asks_for_a_name,
          an_export_says_how_many_rows_it_has, the_title_names_the_zone,
          alerts_are_acknowledged_and_silenced, the_window_changes, answers_are_of_what_is_asked,
          other_questions_have_other_answers, windows_of_a_file_end_at_its_records,
          a_file_goes_on_while_its_collector_hears, a_chart_says_when_it_begins,
          all_time_of_a_short_file_has_states, a_silent_collector_shows_the_age_of_data,
          views_are_shown_from_the_help_alone, losses_are_added_up, takes_any_sequence_of_events)
