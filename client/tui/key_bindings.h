// Key bindings of the dashboard: the table from keyboard keys to actions, with their help texts.
// No I/O, no global state.
#ifndef INFERSTAT_TUI_KEY_BINDINGS_H
#define INFERSTAT_TUI_KEY_BINDINGS_H

#include <stdint.h>

// A key's code is its Unicode character, or one of these.
enum {
    KEY_CODE_FIRST = 0x110000,
    KEY_CODE_UP = KEY_CODE_FIRST,
    KEY_CODE_DOWN,
    KEY_CODE_PAGE_UP,
    KEY_CODE_PAGE_DOWN,
    KEY_CODE_HOME,
    KEY_CODE_END,
    KEY_CODE_BACK_TAB,
    KEY_CODE_LEFT,
    KEY_CODE_RIGHT,
    KEY_CODE_DELETE,
    KEY_CODE_F1,
    KEY_CODE_F4,
    KEY_CODE_F6,
    KEY_CODE_F10,
    KEY_CODE_TAB = '\t',
    KEY_CODE_ENTER = '\r',
    KEY_CODE_ESCAPE = 0x1B,
    KEY_CODE_CTRL_L = 0x0C,
    KEY_CODE_CTRL_U = 0x15,
    KEY_CODE_CTRL_H = 0x08,
    KEY_CODE_BACKSPACE = 0x7F,
};

enum action {
    ACTION_NONE,
    ACTION_HELP,
    ACTION_QUIT,
    ACTION_OVERVIEW,
    ACTION_PIPELINES,
    ACTION_REFRESH,
    ACTION_PAUSE,
    ACTION_CLEAR,
    ACTION_NEXT_PANEL,
    ACTION_PREVIOUS_PANEL,
    ACTION_ENLARGE,
    ACTION_BACK,
    ACTION_UP,
    ACTION_DOWN,
    ACTION_PAGE_UP,
    ACTION_PAGE_DOWN,
    ACTION_HOME,
    ACTION_END,
    ACTION_SORT_NEXT,
    ACTION_SORT_PREVIOUS,
    ACTION_SORT_REVERSE,
    ACTION_LONGER,
    ACTION_SHORTER,
    ACTION_REDRAW,
    ACTION_YES,
    ACTION_NO,
    ACTION_FILTER,
    ACTION_APPLY,
    ACTION_UNFILTER,
    ACTION_LEFT,
    ACTION_RIGHT,
    ACTION_ERASE_BEFORE,
    ACTION_ERASE_BEHIND,
    ACTION_EMPTY,
};

// Contexts: the part of the dashboard that has the keyboard focus.
enum key_context {
    KEYS_VIEW = 1 << 0,   // a view
    KEYS_HELP = 1 << 1,   // the help screen
    KEYS_ASKED = 1 << 2,  // a confirmation
    KEYS_PROMPT = 1 << 3, // the filter prompt, which inserts unbound characters
};

enum { KEYS_CODES_MAX = 4 };

struct key_binding {
    unsigned contexts;              // bit set of enum key_context in which the binding is active
    uint32_t codes[KEYS_CODES_MAX]; // the bound keys; 0: unused element
    enum action action;
    unsigned rank;     // the footer omits the highest rank first; 0: not in the footer
    const char *keys;  // names of all keys, for the help: "h ? F1"
    const char *key;   // name of one key, for the footer: "h"
    const char *label; // label of the action in the footer: "help"
    const char *help;  // line of the help; NULL: none
};

// All bindings, in the order of the help screen; static.
const struct key_binding *key_bindings(unsigned *count);

// The action of a key in a context; ACTION_NONE if unbound.
enum action key_bindings_find(enum key_context context, uint32_t code);

#endif
