// Single-line text editor: a text, a cursor and the editing operations.  Used by the filter prompt
// (update.c).  No I/O, no global state.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/tui/key_bindings.h"
#include "common/core/base/error.h"
#include "common/core/query/query_text.h"

enum {
    PROMPT_SIZE = QUERY_LINE_SIZE, // bytes of the text, terminating NUL included
    PROMPT_CHOICES_SIZE = 256,
    PROMPT_HISTORY_MAX = 16,
    PROMPT_HISTORY_SIZE = 256, // longer texts are not kept
};

// The texts that were entered, the newest first.
struct prompt_history {
    char lines[PROMPT_HISTORY_MAX][PROMPT_HISTORY_SIZE];
    unsigned count;
};

struct prompt {
    char text[PROMPT_SIZE];            // UTF-8
    size_t size;                       // bytes of `text` without the NUL
    size_t cursor;                     // insertion point: offset of a character's first byte
    unsigned line;                     // of the history, 1 the newest; 0: a text of one's own
    char own[PROMPT_HISTORY_SIZE];     // that text, while a line of the history is shown
    char choices[PROMPT_CHOICES_SIZE]; // possible words after a completion; "": none

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

// Replaces the text from byte `from` up to the cursor, and moves the cursor behind the new one.
// Does nothing if there is no room for it.
void prompt_replace(struct prompt *prompt, size_t from, const char *text);

// Adds a text as the newest line; one that it has already moves there.
void prompt_history_add(struct prompt_history *history, const char *text);

// Sets the text to an older line of the history (`step` 1), or a newer one (-1), at last to what
// was typed before.
void prompt_history_step(const struct prompt_history *history, struct prompt *prompt, int step);

// Moves the cursor to the character before it.
void prompt_left(struct prompt *prompt);
