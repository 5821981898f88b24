#include "client/tui/key_bindings.h"

#include <stddef.h>

enum { SHOWING = KEYS_VIEW | KEYS_HELP, LISTS = SHOWING | KEYS_CHOOSER };

// One binding; what follows the help are its codes.
#define BIND(contexts, action, rank, keys, key, label, help, ...)                                  \
    {                                                                                              \
        contexts, {__VA_ARGS__}, ACTION_##action, rank, keys, key, label, help                     \
    }

const struct key_binding key_bindings[] = {
    BIND(SHOWING, HELP, 1, "h ? F1", "?", "help", "help", 'h', '?', KEY_CODE_F1),
    BIND(LISTS, QUIT, 1, "q F10", "q", "quit", "quit", 'q', KEY_CODE_F10),
    BIND(LISTS, VIEW, 0, "1 ... 8", "", "", "the view of that number", '1', '2', '3', '4', '5', '6',
         '7', '8'),
    BIND(KEYS_VIEW, DETAIL, 2, "Enter", "Enter", "detail", "all of the row", KEY_CODE_ENTER, '\n'),
    BIND(KEYS_VIEW, WHY, 4, "w", "w", "why", "why the row's model is slow", 'w'),
    BIND(KEYS_VIEW, SEARCH, 5, "/ F3", "/", "search", "find a row with a text; n N: more", '/',
         KEY_CODE_F3),
    BIND(KEYS_VIEW, FIND_NEXT, 0, "n", "", "", "the next row found", 'n'),
    BIND(KEYS_VIEW, FIND_PREVIOUS, 0, "N", "", "", "the row found before", 'N'),
    BIND(KEYS_VIEW, FILTER, 6, "\\ F4", "\\", "filter", "show only: where model=NAME since 1h",
         '\\', KEY_CODE_F4),
    BIND(KEYS_VIEW, WINDOW, 3, "t", "t", "window", "the window of the figures: 1m ... all", 't'),
    BIND(KEYS_VIEW, ZOOM_IN, 0, "+", "", "", "a shorter window", '+', '='),
    BIND(KEYS_VIEW, ZOOM_OUT, 0, "-", "", "", "a longer window", '-'),
    BIND(KEYS_VIEW, EARLIER, 10, "[", "[ ]", "earlier", "half a window earlier", '['),
    BIND(KEYS_VIEW, LATER, 0, "]", "", "", "half a window later", ']'),
    BIND(KEYS_VIEW, LIVE, 3, "0", "0", "to now", "the window up to now", '0'),
    BIND(KEYS_VIEW, REFRESH, 0, "r", "", "", "ask again now", 'r'),
    BIND(KEYS_VIEW, PAUSE, 9, "Space", "Space", "pause", "pause, go on", ' '),
    BIND(KEYS_VIEW, CLEAR, 0, "c", "", "", "clear records (asks for their name)", 'c'),
    BIND(KEYS_VIEW, ACKNOWLEDGE, 0, "a", "", "", "acknowledge the alert", 'a'),
    BIND(KEYS_VIEW, SILENCE, 0, "S", "", "", "silence the alert for two hours", 'S'),
    BIND(KEYS_VIEW, GROUP, 0, "g", "", "", "rows by model, or by host", 'g'),
    BIND(KEYS_VIEW, OPEN, 0, "Right", "", "", "all hosts of the model", KEY_CODE_RIGHT),
    BIND(KEYS_VIEW, CLOSE, 0, "Left", "", "", "only those that need attention", KEY_CODE_LEFT),
    BIND(KEYS_VIEW, EXPORT, 0, "e", "", "", "write to a .csv .json .txt .svg file", 'e'),
    BIND(KEYS_VIEW, UNFOLD, 0, "o", "", "", "show what has ended, hide it", 'o'),
    BIND(KEYS_VIEW, METRIC, 0, "m", "", "", "requests: histogram of TTFT, of E2E", 'm'),
    BIND(KEYS_VIEW, DIFFERENCE, 0, "d", "", "", "loads: beside the usual, the one before", 'd'),
    BIND(KEYS_VIEW, COMPARE, 0, "v", "", "", "choose what is compared", 'v'),
    BIND(KEYS_CHOOSER, APPLY, 1, "Enter", "Enter", "choose", NULL, KEY_CODE_ENTER, '\n'),
    BIND(KEYS_CHOOSER, CANCEL, 1, "Esc", "Esc", "back", NULL, KEY_CODE_ESCAPE),
    BIND(KEYS_VIEW, NEXT_PANEL, 7, "Tab", "Tab", "panel", "next panel", KEY_CODE_TAB),
    BIND(KEYS_VIEW, PREVIOUS_PANEL, 0, "Shift-Tab", "", "", "previous panel", KEY_CODE_BACK_TAB),
    BIND(KEYS_VIEW, ENLARGE, 11, "z", "z", "enlarge", "the panel alone, all panels", 'z'),
    BIND(SHOWING, BACK, 0, "Esc", "", "", "back", KEY_CODE_ESCAPE),
    BIND(LISTS | KEYS_SETUP, UP, 0, "Up k", "", "", "a row up", KEY_CODE_UP, 'k'),
    BIND(LISTS | KEYS_SETUP, DOWN, 0, "Down j", "", "", "a row down", KEY_CODE_DOWN, 'j'),
    BIND(LISTS, PAGE_UP, 0, "PgUp", "", "", "a page up", KEY_CODE_PAGE_UP),
    BIND(LISTS, PAGE_DOWN, 1, "PgDn", "PgUp PgDn", "scroll", "a page down", KEY_CODE_PAGE_DOWN),
    BIND(LISTS, HOME, 0, "Home", "", "", "to the first row", KEY_CODE_HOME),
    BIND(LISTS, END, 0, "End", "", "", "to the last row", KEY_CODE_END),
    BIND(KEYS_VIEW, SORT_NEXT, 8, "> s F6", "s", "sort", "sort by the next column", '>', 's',
         KEY_CODE_F6),
    BIND(KEYS_VIEW, SORT_PREVIOUS, 0, "<", "", "", "sort by the one before", '<'),
    BIND(KEYS_VIEW, SORT_MORE, 0, ",", "", "", "then by a further column: , and >", ','),
    BIND(KEYS_VIEW, SORT_REVERSE, 0, "I", "", "", "turn the order round", 'I'),
    BIND(KEYS_VIEW, LONGER, 0, "}", "", "", "ask less often", '}'),
    BIND(KEYS_VIEW, SHORTER, 0, "{", "", "", "ask more often", '{'),
    BIND(KEYS_VIEW, SETUP, 0, "F2", "", "", "colours, units, refresh, columns", KEY_CODE_F2),
    BIND(LISTS | KEYS_PROMPT | KEYS_SETUP, REDRAW, 0, "Ctrl-L", "", "", "redraw", KEY_CODE_CTRL_L),
    BIND(KEYS_PROMPT, QUIT, 0, "F10", "", "", NULL, KEY_CODE_F10),
    BIND(KEYS_PROMPT, APPLY, 1, "Enter", "Enter", "do it", NULL, KEY_CODE_ENTER, '\n'),
    BIND(KEYS_PROMPT, CANCEL, 1, "Esc", "Esc", "cancel", NULL, KEY_CODE_ESCAPE),
    BIND(KEYS_PROMPT, EMPTY, 2, "Ctrl-U", "Ctrl-U", "empty", NULL, KEY_CODE_CTRL_U),
    BIND(KEYS_PROMPT, COMPLETE, 3, "Tab", "Tab", "complete", NULL, KEY_CODE_TAB),
    BIND(KEYS_PROMPT, UP, 4, "Up", "Up", "earlier", NULL, KEY_CODE_UP),
    BIND(KEYS_PROMPT, DOWN, 0, "Down", "", "", NULL, KEY_CODE_DOWN),
    BIND(KEYS_PROMPT, LEFT, 0, "Left", "", "", NULL, KEY_CODE_LEFT),
    BIND(KEYS_PROMPT, RIGHT, 0, "Right", "", "", NULL, KEY_CODE_RIGHT),
    BIND(KEYS_PROMPT, HOME, 0, "Home", "", "", NULL, KEY_CODE_HOME),
    BIND(KEYS_PROMPT, END, 0, "End", "", "", NULL, KEY_CODE_END),
    BIND(KEYS_PROMPT, ERASE_BEFORE, 0, "Backspace", "", "", NULL, KEY_CODE_BACKSPACE,
         KEY_CODE_CTRL_H),
    BIND(KEYS_PROMPT, ERASE_BEHIND, 0, "Delete", "", "", NULL, KEY_CODE_DELETE),
    BIND(KEYS_SETUP, QUIT, 2, "q F10", "q", "quit", NULL, 'q', KEY_CODE_F10),
    BIND(KEYS_SETUP, LEFT, 0, "Left", "", "", NULL, KEY_CODE_LEFT, 'h'),
    BIND(KEYS_SETUP, RIGHT, 1, "Right Enter", "Left Right", "change", NULL, KEY_CODE_RIGHT,
         KEY_CODE_ENTER, '\n', ' ', 'l'),
    BIND(KEYS_SETUP, SETUP, 1, "Esc F2", "Esc", "done", NULL, KEY_CODE_ESCAPE, KEY_CODE_F2),
    {0},
};

enum action key_bindings_find(enum key_context context, uint32_t code)
{
    if (code == 0)
        return ACTION_NONE;
    for (const struct key_binding *binding = key_bindings; binding->keys; binding++)
        for (unsigned i = 0; i < KEYS_CODES_MAX && binding->contexts & (unsigned)context; i++)
            if (binding->codes[i] == code)
                return binding->action;
    return ACTION_NONE;
}
