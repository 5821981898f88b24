// Key bindings of the dashboard: one table of keys, contexts, actions and help texts.  Pure.
#ifndef INFERSTAT_TUI_KEY_BINDINGS_H
#define INFERSTAT_TUI_KEY_BINDINGS_H

#include <stdint.h>

// Keys are Unicode characters, and these codes beyond them.
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

// Contexts of a binding.
enum key_context {
    KEYS_VIEW = 1 << 0,   // a view has the focus
    KEYS_HELP = 1 << 1,   // the help screen
    KEYS_ASKED = 1 << 2,  // a confirmation is open
    KEYS_PROMPT = 1 << 3, // a line is edited; unbound characters are inserted
};

enum { KEYS_CODES_MAX = 4 };

struct key_binding {
    unsigned contexts;              // bit set of enum key_context
    uint32_t codes[KEYS_CODES_MAX]; // 0: unused
    enum action action;
    unsigned rank;     // in the footer: the highest is omitted first; 0: not in it
    const char *keys;  // all keys, for help: "h ? F1"
    const char *key;   // one key, for the footer: "h"
    const char *label; // label in the footer: "help"
    const char *help;  // one line of help; NULL: none
};

// All bindings, in the order of the help screen; static.
const struct key_binding *key_bindings(unsigned *count);

// The action of a key in a context; ACTION_NONE if unbound.
enum action key_bindings_find(enum key_context context, uint32_t code);

#endif
