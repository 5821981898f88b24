// Single-line text editor: a text, a cursor and the editing operations.  Used by the filter prompt
// (filter_prompt.h).  No I/O, no global state.
#ifndef INFERSTAT_TUI_PROMPT_H
#define INFERSTAT_TUI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query_text.h"

enum { PROMPT_SIZE = QUERY_LINE_SIZE }; // bytes of the text, terminating NUL included

struct prompt {
    char text[PROMPT_SIZE]; // UTF-8
    size_t size;            // bytes of `text` without the NUL
    size_t cursor;          // insertion point: offset of a character's first byte

    // Set by filter_prompt.c when the query parser rejects the text.  Each change of the text
    // clears both; moves of the cursor leave them.
    char error[ERROR_TEXT_SIZE]; // the reason, escaped; "": no error
    struct query_place place;    // the rejected part of `text`, in bytes
};

// Sets the text to a copy of `text`, cut to PROMPT_SIZE, and the cursor to its end.
void prompt_open(struct prompt *prompt, const char *text);

// Inserts a character at the cursor.  Returns false if `code` is a control character or there is no
// room for it.
bool prompt_insert(struct prompt *prompt, uint32_t code);

// Deletes the whole text.
void prompt_empty(struct prompt *prompt);

// Delete the character before the cursor, and the one after it.
void prompt_erase_before(struct prompt *prompt);
void prompt_erase_behind(struct prompt *prompt);

// Move the cursor by one character, or to the start or end of the text.
void prompt_left(struct prompt *prompt);
void prompt_right(struct prompt *prompt);
void prompt_home(struct prompt *prompt);
void prompt_end(struct prompt *prompt);

#endif
