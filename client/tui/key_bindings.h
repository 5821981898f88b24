// Key bindings of the dashboard: the table from keyboard keys to actions, with their help texts.
// No I/O, no global state.
#pragma once

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
    KEY_CODE_F2,
    KEY_CODE_F3,
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

// model_update (update.h) carries out the actions.
enum action {
    ACTION_NONE,    // the key is unbound
    ACTION_HELP,    // open or close the help screen
    ACTION_QUIT,    // end the dashboard
    ACTION_VIEW,    // show the view of the digit
    ACTION_REFRESH, // send all queries now; ends a pause
    ACTION_PAUSE,   // pause or resume polling
    ACTION_CLEAR,   // open the prompt that clears the records
    ACTION_NEXT_PANEL,
    ACTION_PREVIOUS_PANEL,
    ACTION_ENLARGE, // show only the focused panel, or all panels again
    ACTION_DETAIL,  // show all of the cursor's row
    ACTION_WHY,     // ask why the cursor's model and host are slow
    ACTION_BACK, // one step back: close the help or the details; else show all panels again; else
                 // undo sorting and scrolling; else focus the first panel
    ACTION_UP,   // a row up; likewise the next three
    ACTION_DOWN,
    ACTION_PAGE_UP,
    ACTION_PAGE_DOWN,
    ACTION_HOME,          // first row of the list; KEYS_PROMPT: start of the text
    ACTION_END,           // last row of the list; KEYS_PROMPT: end of the text
    ACTION_SORT_NEXT,     // sort by the next column
    ACTION_SORT_PREVIOUS, // sort by the column before
    ACTION_SORT_MORE,     // keep the column sorted by, and choose a further one
    ACTION_SORT_REVERSE,
    ACTION_LONGER,      // longer polling interval
    ACTION_SHORTER,     // shorter polling interval
    ACTION_WINDOW,      // the next length of the window, around its end
    ACTION_ZOOM_IN,     // a shorter window
    ACTION_ZOOM_OUT,    // a longer window
    ACTION_EARLIER,     // move the window back by half its length
    ACTION_LATER,       // move it on, at most to now
    ACTION_LIVE,        // let it end now again
    ACTION_ACKNOWLEDGE, // open the prompt that acknowledges the cursor's alert
    ACTION_SILENCE,     // open the prompt that silences it for two hours
    ACTION_GROUP,       // rows by model, or by host
    ACTION_EXPORT,      // open the prompt that writes what is shown to a file
    ACTION_UNFOLD,      // show or hide folded rows
    ACTION_OPEN,        // show all rows of the cursor's group
    ACTION_CLOSE,       // only those that need attention
    ACTION_METRIC,      // the histogram of the other time: to the first token, of all
    ACTION_DIFFERENCE,  // set a load beside the one before it, or the usual one
    ACTION_COMPARE,     // open the choice of what is compared
    ACTION_SEARCH,      // open the search prompt
    ACTION_FIND_NEXT,   // the next row with the searched text
    ACTION_FIND_PREVIOUS,
    ACTION_SETUP,  // open or close the setup screen
    ACTION_REDRAW, // redraw the whole screen
    ACTION_FILTER, // open the filter prompt.  Only prompts have the actions below
    ACTION_APPLY,  // parse the text, and apply it as the filter; search for it; or clear, if it
                   // is what is to be typed
    ACTION_CANCEL, // close the prompt; the filter stays as it was
    ACTION_LEFT,   // move the cursor left
    ACTION_RIGHT,  // move the cursor right
    ACTION_ERASE_BEFORE, // delete the character before the cursor
    ACTION_ERASE_BEHIND, // delete the character after the cursor
    ACTION_EMPTY,        // delete the whole text
    ACTION_COMPLETE,     // complete the word before the cursor
};

// Contexts: the part of the dashboard that has the keyboard focus.
enum key_context {
    KEYS_VIEW = 1 << 0,    // a view, without an overlay
    KEYS_HELP = 1 << 1,    // the help screen, or the details of a row
    KEYS_PROMPT = 1 << 2,  // the prompts, which insert unbound characters
    KEYS_SETUP = 1 << 3,   // the setup screen
    KEYS_CHOOSER = 1 << 4, // the choice of what is compared
};

enum { KEYS_CODES_MAX = 8 }; // keys of one binding

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

// All bindings, in the order of the help screen; the end has no `keys`.
extern const struct key_binding key_bindings[];

// The action of a key in a context; ACTION_NONE if unbound.
enum action key_bindings_find(enum key_context context, uint32_t code);
