// Single-line text editor: a text, a cursor and the editing operations.  Used by the filter prompt
// (update.c).  No I/O, no global state.
#ifndef INFERSTAT_TUI_PROMPT_H
#define INFERSTAT_TUI_PROMPT_H

#include <stddef.h>
#include <stdint.h>

#include "client/tui/key_bindings.h"
#include "common/core/base/error.h"
#include "common/core/query/query_text.h"

enum { PROMPT_SIZE = QUERY_LINE_SIZE }; // bytes of the text, terminating NUL included

struct prompt {
    char text[PROMPT_SIZE]; // UTF-8
    size_t size;            // bytes of `text` without the NUL
    size_t cursor;          // insertion point: offset of a character's first byte

    // Set by update.c when the query parser rejects the text.  Each change of the text
    // clears both; moves of the cursor leave them.
    char error[ERROR_TEXT_SIZE]; // the reason, escaped; "": no error
    struct query_place place;    // the rejected part of `text`, in bytes
};

// Sets the text to a copy of `text`, cut to PROMPT_SIZE, and the cursor to its end.
void prompt_open(struct prompt *prompt, const char *text);

// Carries out an editing action: deletes the character before or after the cursor, or the whole
// text; moves the cursor by one character, or to the start or end; ACTION_NONE inserts the
// character `code` at the cursor, unless it is a control character or there is no room for it.
// Ignores other actions.
void prompt_edit(struct prompt *prompt, enum action action, uint32_t code);

// Moves the cursor to the character before it.
void prompt_left(struct prompt *prompt);

#endif
