// The table of keys.
#include "tests/support/test.h"

#include "client/tui/key_bindings.h"

static const enum key_context contexts[] = {KEYS_VIEW, KEYS_HELP, KEYS_PROMPT};

TEST_CASE(a_key_means_one_thing_at_a_place)
{
    for (size_t c = 0; c < COUNT_OF(contexts); c++)
        for (const struct key_binding *binding = key_bindings; binding->keys; binding++)
            for (unsigned k = 0; k < KEYS_CODES_MAX; k++)
                if (binding->codes[k] && binding->contexts & (unsigned)contexts[c])
                    assert_int_equal(key_bindings_find(contexts[c], binding->codes[k]),
                                     binding->action);
}

TEST_CASE(every_binding_is_described)
{
    for (const struct key_binding *binding = key_bindings; binding->keys; binding++) {
        assert_true(binding->contexts != 0);
        assert_true(binding->codes[0] != 0);
        assert_true(binding->action != ACTION_NONE);
        assert_true(strlen(binding->keys) > 0 && strlen(binding->keys) <= 11);
        if (binding->rank > 0)
            assert_true(strlen(binding->key) > 0 && strlen(binding->label) > 0);
        if (binding->contexts & (KEYS_VIEW | KEYS_HELP))
            assert_true(binding->help && strlen(binding->help) <= 46);
    }
}

TEST_CASE(finds_keys)
{
    static const struct {
        enum key_context context;
        uint32_t code;
        enum action action;
    } cases[] = {
        {KEYS_VIEW, 'q', ACTION_QUIT},
        {KEYS_VIEW, KEY_CODE_F10, ACTION_QUIT},
        {KEYS_VIEW, 'h', ACTION_HELP},
        {KEYS_VIEW, '?', ACTION_HELP},
        {KEYS_VIEW, KEY_CODE_F1, ACTION_HELP},
        {KEYS_VIEW, '1', ACTION_VIEW},
        {KEYS_VIEW, '8', ACTION_VIEW},
        {KEYS_VIEW, '0', ACTION_LIVE},
        {KEYS_HELP, '2', ACTION_VIEW},
        {KEYS_PROMPT, '2', ACTION_NONE},
        {KEYS_VIEW, 'r', ACTION_REFRESH},
        {KEYS_VIEW, 'c', ACTION_CLEAR},
        {KEYS_VIEW, ' ', ACTION_PAUSE},
        {KEYS_VIEW, KEY_CODE_CTRL_L, ACTION_REDRAW},
        {KEYS_VIEW, '+', ACTION_ZOOM_IN},
        {KEYS_VIEW, '-', ACTION_ZOOM_OUT},
        {KEYS_VIEW, '[', ACTION_EARLIER},
        {KEYS_VIEW, ']', ACTION_LATER},
        {KEYS_VIEW, '}', ACTION_LONGER},
        {KEYS_VIEW, '{', ACTION_SHORTER},
        {KEYS_VIEW, 't', ACTION_WINDOW},
        {KEYS_VIEW, '/', ACTION_SEARCH},
        {KEYS_VIEW, 'n', ACTION_FIND_NEXT},
        {KEYS_VIEW, KEY_CODE_ENTER, ACTION_DETAIL},
        {KEYS_VIEW, 'k', ACTION_UP},
        {KEYS_VIEW, 'y', ACTION_NONE}, // no answer without a question
        {KEYS_VIEW, 0, ACTION_NONE},
        {KEYS_VIEW, 0x5343, ACTION_NONE},
        {KEYS_VIEW, '\\', ACTION_FILTER},
        {KEYS_VIEW, KEY_CODE_F4, ACTION_FILTER},
        {KEYS_HELP, '\\', ACTION_NONE},
        {KEYS_PROMPT, 'q', ACTION_NONE}, // a letter of what is written
        {KEYS_PROMPT, 'y', ACTION_NONE},
        {KEYS_PROMPT, ' ', ACTION_NONE},
        {KEYS_PROMPT, KEY_CODE_ENTER, ACTION_APPLY},
        {KEYS_PROMPT, KEY_CODE_ESCAPE, ACTION_CANCEL},
        {KEYS_PROMPT, KEY_CODE_F10, ACTION_QUIT},
        {KEYS_HELP, 'q', ACTION_QUIT},
        {KEYS_HELP, 'c', ACTION_NONE}, // nothing is cleared from the help screen
        {KEYS_HELP, KEY_CODE_ESCAPE, ACTION_BACK},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(key_bindings_find(cases[i].context, cases[i].code), cases[i].action);
}

TEST_MAIN(a_key_means_one_thing_at_a_place, every_binding_is_described, finds_keys)
