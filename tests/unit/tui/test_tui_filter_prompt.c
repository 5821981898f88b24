// The prompt of the dashboard's filter: its line, and what becomes of it.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"
#include "tests/support/tui_fixture.h"

#define HOUR_NS INT64_C(3600000000000)

static struct model *fresh(void)
{
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    fixture_model(model, 80, 24);
    fixture_normal(model);
    return model;
}

static void drop(struct model *model)
{
    model_deinit(model);
    free(model);
}

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
    struct model *model = fresh();
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

    // The next time it is there to be changed; nothing of it is left when it is emptied.
    fixture_key(model, KEY_CODE_F4);
    assert_string_equal(model->prompt.text, "where model='x y' and host=q since 1h ");
    fixture_key(model, KEY_CODE_CTRL_U);
    assert_int_equal(fixture_key(model, KEY_CODE_ENTER), EFFECT_SCOPE | EFFECT_ASK | EFFECT_PACE);
    assert_false(model->filtered);
    assert_string_equal(model->filter_text, "");
    assert_string_equal(model->scope.filter.by[QUERY_BY_MODEL], "");
    drop(model);
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
        struct model *model = fresh();
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
        drop(model);
    }
}

TEST_CASE(escape_leaves_the_filter_as_it_was)
{
    struct model *model = fresh();
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
    drop(model);

    model = fresh();
    model_set_filter(model, NULL);
    assert_false(model->filtered);
    assert_string_equal(model->filter_text, "");
    drop(model);
}

// The prompt takes neither the mouse nor, but for these, the keys from elsewhere.
TEST_CASE(other_keys)
{
    struct model *model = fresh();
    fixture_key(model, '\\');
    assert_int_equal(fixture_key(model, KEY_CODE_CTRL_L), EFFECT_REPAINT);
    fixture_key(model, KEY_CODE_F1);
    fixture_key(model, KEY_CODE_TAB);
    assert_int_equal(model->overlay, OVERLAY_FILTER);
    assert_string_equal(model->prompt.text, "");
    assert_int_equal(fixture_key(model, KEY_CODE_F10), EFFECT_QUIT);
    fixture_event(model, (struct event){.kind = EVENT_PRESS, .x = 3, .y = 3});
    assert_int_equal(model->overlay, OVERLAY_FILTER);
    drop(model);
}

// A pause ends: the screen is to show what was asked for.
TEST_CASE(a_filter_ends_the_pause)
{
    struct model *model = fresh();
    fixture_key(model, ' ');
    assert_true(model->paused);
    fixture_key(model, '\\');
    fixture_key(model, KEY_CODE_ENTER);
    assert_false(model->paused);
    drop(model);
}

TEST_MAIN(a_line_is_edited, a_line_takes_characters_only, a_filter_is_applied,
          what_is_wrong_is_said_in_the_prompt, escape_leaves_the_filter_as_it_was, other_keys,
          a_filter_ends_the_pause)
