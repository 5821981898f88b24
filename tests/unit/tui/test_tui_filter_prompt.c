// The prompt of the dashboard's filter: its line, and what becomes of it.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "client/tui/view.h"
#include "tests/support/tui_scenes.h"

#define HOUR_NS INT64_C(3600000000000)

// Writes a text key by key.
static void type(struct model *model, const char *text)
{
    for (; *text; text++)
        assert_int_equal(fixture_key(model, (unsigned char)*text), 0);
}

TEST_CASE(a_line_is_edited)
{
    // "<" and ">" move, "[" and "]" go to the ends, "-" erases before, "+" behind.
    static const struct {
        const char *start, *keys, *text;
        size_t cursor;
    } cases[] = {
        {"", "abc", "abc", 3},
        {"abc", "d", "abcd", 4},
        {"abc", "<<x", "axbc", 2},
        {"abc", "<<<<<x", "xabc", 1},
        {"abc", ">>x", "abcx", 4},
        {"abc", "[x]y", "xabcy", 5},
        {"abc", "-", "ab", 2},
        {"abc", "[-", "abc", 0},
        {"abc", "[+", "bc", 0},
        {"abc", "+", "abc", 3},
        {"abc", "<-", "ac", 1},
        {"a\u00e4\u6f22", "<-", "a\u6f22", 1},
        {"a\u00e4\u6f22", "-", "a\u00e4", 3},
        {"a\u00e4\u6f22", "[>+", "a\u6f22", 1},
        {"abc", "!", "", 0},
        {"abc", "!x", "x", 1},
    };
    static const char keys[] = "<>[]-+!";
    static const enum action actions[] = {ACTION_LEFT, ACTION_RIGHT,        ACTION_HOME,
                                          ACTION_END,  ACTION_ERASE_BEFORE, ACTION_ERASE_BEHIND,
                                          ACTION_EMPTY};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct prompt prompt;
        prompt_open(&prompt, cases[i].start);
        for (const char *key = cases[i].keys; *key; key++) {
            const char *at = strchr(keys, *key);
            prompt_edit(&prompt, at ? actions[at - keys] : ACTION_NONE, (unsigned char)*key);
        }
        assert_string_equal(prompt.text, cases[i].text);
        assert_int_equal(prompt.size, strlen(cases[i].text));
        assert_int_equal(prompt.cursor, cases[i].cursor);
    }
}

// Whether the prompt takes a character.
static bool takes(struct prompt *prompt, uint32_t code)
{
    const size_t before = prompt->size;
    prompt_edit(prompt, ACTION_NONE, code);
    return prompt->size > before;
}

TEST_CASE(a_line_takes_characters_only)
{
    struct prompt prompt;
    prompt_open(&prompt, "");
    static const uint32_t refused[] = {0, 1, 0x1b, 0x7f, 0x85, 0xd800, 0x110000, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        assert_false(takes(&prompt, refused[i]));
    static const uint32_t taken[] = {' ', '~', 0xe4, 0x20ac, 0x6f22, 0x1f600, 0x10ffff};
    for (size_t i = 0; i < COUNT_OF(taken); i++)
        assert_true(takes(&prompt, taken[i]));
    assert_string_equal(prompt.text, " ~\u00e4\u20ac\u6f22\U0001f600\U0010ffff");

    size_t count = 0;
    prompt_edit(&prompt, ACTION_EMPTY, 0);
    while (takes(&prompt, 'x'))
        count++;
    assert_int_equal(count, PROMPT_SIZE - 1);
    assert_int_equal(strlen(prompt.text), PROMPT_SIZE - 1);
    prompt_edit(&prompt, ACTION_ERASE_BEFORE, 0);
    assert_false(takes(&prompt, 0xe4)); // two bytes where one has room
    assert_true(takes(&prompt, 'y'));
}

TEST_CASE(a_filter_is_applied)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    assert_int_equal(fixture_key(model, '\\'), 0);
    assert_int_equal(model->overlay, OVERLAY_FILTER);
    type(model, "where model='x y' and host=q since 1h"); // letters that are keys elsewhere
    assert_false(model->filtered);
    fixture_key(model, ' '); // nor does a blank pause
    assert_false(model->paused);
    assert_int_equal(fixture_key(model, KEY_CODE_ENTER), EFFECT_SCOPE | EFFECT_ASK | EFFECT_PACE);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_true(model->filtered);
    assert_string_equal(model->scope.filter.by[QUERY_BY_MODEL], "x y");
    assert_string_equal(model->scope.filter.by[QUERY_BY_HOST], "q");
    assert_int_equal(model->scope.filter.since_ns, FIXTURE_WALL_NS - HOUR_NS);
    model->scope.now_ns = FIXTURE_WALL_NS - 9 * HOUR_NS; // of an old file
    fixture_key(model, KEY_CODE_F4);
    fixture_key(model, KEY_CODE_ENTER);
    assert_int_equal(model->scope.filter.since_ns, FIXTURE_WALL_NS - 10 * HOUR_NS);

    // The next time it is there to be changed; nothing of it is left when it is emptied.
    fixture_key(model, KEY_CODE_F4);
    assert_string_equal(model->prompt.text, "where model='x y' and host=q since 1h ");
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(fixture_key(model, KEY_CODE_ENTER), EFFECT_SCOPE | EFFECT_ASK | EFFECT_PACE);
    assert_false(model->filtered);
    assert_string_equal(model->filter_text, "");
    assert_string_equal(model->scope.filter.by[QUERY_BY_MODEL], "");
    fixture_free(model);
}

// Charts begin and end where the filter's times do.
TEST_CASE(charts_are_of_the_times_of_the_filter)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    const struct query_filter filter = {.since_ns = FIXTURE_WALL_NS - 3 * HOUR_NS,
                                        .until_ns = FIXTURE_WALL_NS - 2 * HOUR_NS};
    model_filter(model, &filter, "since 3h until 2h");
    fixture_answer(model, POLL_NOW, NULL);
    char text[128];
    (void)snprintf(text, sizeof text, "started_ns|mean\n%lld|432\n",
                   (long long)(FIXTURE_WALL_NS - 2 * HOUR_NS - HOUR_NS / 4));
    fixture_answer(model, POLL_TOKENS, text);
    assert_true(fixture_shows(model, "1h 00m before"));
    assert_true(fixture_shows(model, "144.00"));
    fixture_free(model);
}

TEST_CASE(what_is_wrong_is_said_in_the_prompt)
{
    static const struct {
        const char *text, *why;
        size_t at, size;
    } cases[] = {
        {"modle=x", "column 1: unknown word \"modle\" (did you mean model?)", 0, 5},
        {"model=x since soon", "column 15: time: cannot read the time 'soon'", 14, 4},
        {"model=x limit 3", "column 9: a filter takes no limit", 8, 5},
        {"model=x operation=copy", "what the dashboard shows has no operation", 0, 22},
        {"stage=read", "what the dashboard shows has no stage", 0, 10},
        {"run=xyz", "column 1: run is not a UUID", 0, 7},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct model *model = fixture_new(80, 24, scene_normal);
        fixture_key(model, '\\');
        type(model, cases[i].text);
        assert_int_equal(fixture_key(model, KEY_CODE_ENTER), 0);
        assert_int_equal(model->overlay, OVERLAY_FILTER);
        assert_false(model->filtered);
        if (strncmp(model->prompt.error, cases[i].why, strlen(cases[i].why)) != 0)
            fail_msg("'%s': '%s'", cases[i].text, model->prompt.error);
        assert_int_equal(model->prompt.place.at, cases[i].at);
        assert_int_equal(model->prompt.place.size, cases[i].size);
        fixture_key(model, KEY_CODE_BACKSPACE); // until it is changed
        assert_string_equal(model->prompt.error, "");
        fixture_free(model);
    }
}

TEST_CASE(escape_leaves_the_filter_as_it_was)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    struct query_filter given = {.until_ns = FIXTURE_WALL_NS};
    strcpy(given.by[QUERY_BY_HOST], "a b");
    model_set_filter(model, &given);
    assert_true(model->filtered);
    assert_string_equal(model->filter_text, "where host=\"a b\" until 2026-03-29T12:00:00Z");

    fixture_key(model, '\\');
    assert_string_equal(model->prompt.text, model->filter_text);
    fixture_key(model, KEY_CODE_CTRL_U);
    type(model, "model=m");
    fixture_key(model, KEY_CODE_ENTER);
    assert_string_equal(model->scope.filter.by[QUERY_BY_HOST], "");

    fixture_key(model, '\\');
    type(model, " nonsense");
    assert_int_equal(fixture_key(model, KEY_CODE_ESCAPE), 0);
    assert_int_equal(model->overlay, OVERLAY_NONE);
    assert_string_equal(model->scope.filter.by[QUERY_BY_MODEL], "m");
    assert_string_equal(model->filter_text, "model=m");
    fixture_free(model);

    model = fixture_new(80, 24, scene_normal);
    model_set_filter(model, NULL);
    assert_false(model->filtered);
    assert_string_equal(model->filter_text, "");
    fixture_free(model);
}

// The prompt takes neither the mouse nor, but for these, the keys from elsewhere.
TEST_CASE(other_keys)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    fixture_key(model, '\\');
    assert_int_equal(fixture_key(model, KEY_CODE_CTRL_L), EFFECT_REPAINT);
    fixture_key(model, KEY_CODE_F1);
    fixture_key(model, KEY_CODE_TAB);
    assert_int_equal(model->overlay, OVERLAY_FILTER);
    assert_string_equal(model->prompt.text, "");
    assert_int_equal(fixture_key(model, KEY_CODE_F10), EFFECT_QUIT);
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 3, .y = 3});
    assert_int_equal(model->overlay, OVERLAY_FILTER);
    fixture_free(model);
}

// A pause ends: the screen is to show what was asked for.
TEST_CASE(a_filter_ends_the_pause)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    fixture_key(model, ' ');
    assert_true(model->paused);
    fixture_key(model, '\\');
    fixture_key(model, KEY_CODE_ENTER);
    assert_false(model->paused);
    fixture_free(model);
}

// A text without conditions is one that rows have.
TEST_CASE(a_text_filters_rows)
{
    struct model *model = fixture_new(80, 24, scene_normal);
    scene_many(model);
    const size_t all = view_panel_rows(model, view_current(model)->panels);
    fixture_key(model, '\\');
    type(model, "GPU-01");
    assert_true(fixture_key(model, KEY_CODE_ENTER) & EFFECT_ASK);
    assert_false(model->filtered || query_filter_narrows(&model->scope.filter));
    const size_t few = view_panel_rows(model, view_current(model)->panels);
    assert_true(few > 0 && few < all);
    char *screen = fixture_screen(model, false);
    assert_non_null(strstr(screen, " rows with \"GPU-01\" ")); // not figures and charts
    assert_null(strstr(strtok(screen, "\n"), "GPU-01"));
    free(screen);
    assert_string_equal(model_clear_word(model), "everything");
    fixture_key(model, '\\');
    type(model, "x");
    fixture_key(model, KEY_CODE_ESCAPE);
    assert_string_equal(model->choice.only, "GPU-01");
    size_t shown;
    free(view_rows(model, &shown)); // what is exported
    assert_int_equal(shown, few);
    fixture_key(model, '\\');
    fixture_key(model, KEY_CODE_CTRL_U);
    type(model, "model=m");
    fixture_key(model, KEY_CODE_ENTER);
    assert_string_equal(model->choice.only, "");
    fixture_key(model, '\\');
    fixture_key(model, KEY_CODE_CTRL_U);
    fixture_key(model, KEY_CODE_ENTER);
    assert_false(model->filtered);
    scene_many(model); // answers that are of no filter
    assert_int_equal(view_panel_rows(model, view_current(model)->panels), all);
    fixture_free(model);
}

TEST_CASE(what_was_entered_is_there_again)
{
    static const struct {
        uint32_t key;
        const char *text;
    } steps[] = {{KEY_CODE_UP, "c"},     {KEY_CODE_UP, "a"},    {KEY_CODE_UP, "b"},
                 {KEY_CODE_UP, "b"},     {KEY_CODE_DOWN, "a"},  {KEY_CODE_DOWN, "c"},
                 {KEY_CODE_DOWN, "own"}, {KEY_CODE_DOWN, "own"}};
    struct model *model = fixture_new(80, 24, scene_normal);
    const char *const entered[] = {"a", "b", "a", "c", ""};
    for (size_t i = 0; i < COUNT_OF(entered); i++) {
        fixture_key(model, '\\');
        fixture_key(model, KEY_CODE_CTRL_U);
        type(model, entered[i]);
        fixture_key(model, KEY_CODE_ENTER);
    }
    fixture_key(model, '\\');
    type(model, "own");
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        fixture_key(model, steps[i].key);
        assert_string_equal(model->prompt.text, steps[i].text);
    }
    fixture_key(model, KEY_CODE_ESCAPE);
    fixture_key(model, '/'); // searches have their own
    fixture_key(model, KEY_CODE_UP);
    assert_string_equal(model->prompt.text, "");
    fixture_free(model);

    struct prompt_history history = {0};
    char line[16];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(line, sizeof line, "%d", i);
        prompt_history_add(&history, line);
    }
    assert_int_equal(history.count, PROMPT_HISTORY_MAX);
    assert_string_equal(history.lines[0], "39");
    assert_string_equal(history.lines[PROMPT_HISTORY_MAX - 1], "24");
}

// The word that clears is shown whole, however long it is, as it must be typed as it is.
TEST_CASE(the_word_that_clears_is_whole)
{
    struct query_filter filter = {0};
    struct model *model = fixture_new(80, 24, scene_normal);
    memset(filter.by[QUERY_BY_HOST], 'h', QUERY_TEXT_SIZE - 1);
    filter.by[QUERY_BY_HOST][QUERY_TEXT_SIZE - 2] = 'e'; // "hhh...he"
    model_filter(model, &filter, "where host=h");
    fixture_key(model, 'c');
    char *screen = fixture_screen(model, false);
    unsigned shown = 0;
    for (const char *at = strstr(screen, "To clear, type:"); *at; at++)
        shown += *at == 'h';
    assert_in_range(shown, QUERY_TEXT_SIZE - 2, QUERY_TEXT_SIZE + 8);
    assert_non_null(strstr(screen, "he "));
    free(screen);
    fixture_free(model);
}

TEST_CASE(names_are_completed)
{
    static const struct {
        const char *typed, *text, *choices;
    } cases[] = {
        {"mo", "model=", ""},
        {"model=q", "model=qwen-7b", ""},
        {"model=gpu", "model=gpu", ""},
        {"host=no", "host=node-0", "node-01 node-02"},
        {"host=node-02 si", "host=node-02 since", ""},
        {"LLA", "llama-8b", ""},
        {"host=node-01 model=", "host=node-01 model=", "qwen-7b llama-8b synthetic-15m"},
        {"zzz", "zzz", ""},
    };
    struct model *model = fixture_new(80, 24, scene_normal);
    fixture_answer(
        model, POLL_NOW,
        "model|host|state\nqwen-7b|node-01|ok\nllama-8b|node-02|ok\nqwen-7b|node-02|ok\n");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fixture_key(model, '\\');
        fixture_key(model, KEY_CODE_CTRL_U);
        type(model, cases[i].typed);
        fixture_key(model, KEY_CODE_TAB);
        assert_string_equal(model->prompt.text, cases[i].text);
        assert_string_equal(model->prompt.choices, cases[i].choices);
        assert_int_equal(model->prompt.cursor, strlen(cases[i].text));
        fixture_key(model, KEY_CODE_ESCAPE);
    }
    fixture_free(model);
}

TEST_MAIN(charts_are_of_the_times_of_the_filter, a_line_is_edited, a_line_takes_characters_only,
          a_filter_is_applied, what_is_wrong_is_said_in_the_prompt,
          escape_leaves_the_filter_as_it_was, other_keys, a_filter_ends_the_pause,
          a_text_filters_rows, what_was_entered_is_there_again, names_are_completed,
          the_word_that_clears_is_whole)
