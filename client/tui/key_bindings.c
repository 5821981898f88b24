#include "client/tui/key_bindings.h"

#include <stddef.h>

enum { SHOWING = KEYS_VIEW | KEYS_HELP };

static const struct key_binding bindings[] = {
    {SHOWING, {'h', '?', KEY_CODE_F1}, ACTION_HELP, 1, "h ? F1", "h", "help", "help"},
    {SHOWING, {'q', KEY_CODE_F10}, ACTION_QUIT, 1, "q F10", "q", "quit", "quit"},
    {SHOWING, {'1'}, ACTION_OVERVIEW, 10, "1", "1 2", "view", "hosts, loads, inferences, runs"},
    {SHOWING,
     {'2', 'p'},
     ACTION_PIPELINES,
     0,
     "2 p",
     "",
     "",
     "pipeline runs: copies beside kernels"},
    {KEYS_VIEW, {'r'}, ACTION_REFRESH, 2, "r", "r", "refresh", "ask again now"},
    {KEYS_VIEW, {' '}, ACTION_PAUSE, 3, "Space", "Space", "pause", "pause, go on"},
    {KEYS_VIEW, {'c'}, ACTION_CLEAR, 4, "c", "c", "clear", "clear the records (asks first)"},
    {KEYS_VIEW, {KEY_CODE_TAB}, ACTION_NEXT_PANEL, 5, "Tab", "Tab", "panel", "next panel"},
    {KEYS_VIEW,
     {KEY_CODE_BACK_TAB},
     ACTION_PREVIOUS_PANEL,
     0,
     "Shift-Tab",
     "",
     "",
     "previous panel"},
    {KEYS_VIEW,
     {KEY_CODE_ENTER, '\n'},
     ACTION_ENLARGE,
     6,
     "Enter",
     "Enter",
     "enlarge",
     "the panel alone, all panels"},
    {SHOWING, {KEY_CODE_ESCAPE}, ACTION_BACK, 0, "Esc", "", "", "back"},
    {SHOWING, {KEY_CODE_UP, 'k'}, ACTION_UP, 0, "Up k", "", "", "scroll up"},
    {SHOWING, {KEY_CODE_DOWN, 'j'}, ACTION_DOWN, 0, "Down j", "", "", "scroll down"},
    {SHOWING, {KEY_CODE_PAGE_UP}, ACTION_PAGE_UP, 0, "PgUp", "", "", "a page up"},
    {SHOWING,
     {KEY_CODE_PAGE_DOWN},
     ACTION_PAGE_DOWN,
     1,
     "PgDn",
     "PgUp PgDn",
     "scroll",
     "a page down"},
    {SHOWING, {KEY_CODE_HOME}, ACTION_HOME, 0, "Home", "", "", "to the first row"},
    {SHOWING, {KEY_CODE_END}, ACTION_END, 0, "End", "", "", "to the last row"},
    {KEYS_VIEW,
     {'>', 's', KEY_CODE_F6},
     ACTION_SORT_NEXT,
     7,
     "> s F6",
     "< >",
     "sort",
     "sort by the next column"},
    {KEYS_VIEW, {'<'}, ACTION_SORT_PREVIOUS, 0, "<", "", "", "sort by the one before"},
    {KEYS_VIEW, {'I'}, ACTION_SORT_REVERSE, 0, "I", "", "", "turn the order round"},
    {KEYS_VIEW,
     {'\\', KEY_CODE_F4},
     ACTION_FILTER,
     9,
     "\\ F4",
     "\\",
     "filter",
     "show only: where model=NAME since 1h"},
    {KEYS_VIEW, {'+', '='}, ACTION_LONGER, 8, "+", "+ -", "interval", "ask less often"},
    {KEYS_VIEW, {'-'}, ACTION_SHORTER, 0, "-", "", "", "ask more often"},
    {SHOWING, {KEY_CODE_CTRL_L}, ACTION_REDRAW, 0, "Ctrl-L", "", "", "redraw"},
    {KEYS_ASKED, {'y', 'Y'}, ACTION_YES, 1, "y", "y", "yes, clear", NULL},
    {KEYS_ASKED, {'n', 'N', KEY_CODE_ESCAPE, 'q'}, ACTION_NO, 1, "n Esc", "n", "no, keep", NULL},
    {KEYS_ASKED | KEYS_PROMPT, {KEY_CODE_F10}, ACTION_QUIT, 0, "F10", "", "", NULL},
    {KEYS_PROMPT,
     {KEY_CODE_ENTER, '\n'},
     ACTION_APPLY,
     1,
     "Enter",
     "Enter",
     "show only these",
     NULL},
    {KEYS_PROMPT, {KEY_CODE_ESCAPE}, ACTION_UNFILTER, 1, "Esc", "Esc", "as at the start", NULL},
    {KEYS_PROMPT, {KEY_CODE_CTRL_U}, ACTION_EMPTY, 2, "Ctrl-U", "Ctrl-U", "empty", NULL},
    {KEYS_PROMPT, {KEY_CODE_LEFT}, ACTION_LEFT, 0, "Left", "", "", NULL},
    {KEYS_PROMPT, {KEY_CODE_RIGHT}, ACTION_RIGHT, 0, "Right", "", "", NULL},
    {KEYS_PROMPT, {KEY_CODE_HOME}, ACTION_HOME, 0, "Home", "", "", NULL},
    {KEYS_PROMPT, {KEY_CODE_END}, ACTION_END, 0, "End", "", "", NULL},
    {KEYS_PROMPT,
     {KEY_CODE_BACKSPACE, KEY_CODE_CTRL_H},
     ACTION_ERASE_BEFORE,
     0,
     "Backspace",
     "",
     "",
     NULL},
    {KEYS_PROMPT, {KEY_CODE_DELETE}, ACTION_ERASE_BEHIND, 0, "Delete", "", "", NULL},
    {KEYS_PROMPT, {KEY_CODE_CTRL_L}, ACTION_REDRAW, 0, "Ctrl-L", "", "", NULL},
};

const struct key_binding *key_bindings(unsigned *count)
{
    *count = sizeof bindings / sizeof *bindings;
    return bindings;
}

enum action key_bindings_find(enum key_context context, uint32_t code)
{
    if (code == 0)
        return ACTION_NONE;
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) {
        if (!(bindings[i].contexts & (unsigned)context))
            continue;
        for (unsigned k = 0; k < KEYS_CODES_MAX; k++)
            if (bindings[i].codes[k] == code)
                return bindings[i].action;
    }
    return ACTION_NONE;
}
