// Single-line text editor: the text, the cursor and the editing operations.  Pure.
#ifndef INFERSTAT_TUI_PROMPT_H
#define INFERSTAT_TUI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query_text.h"

enum { PROMPT_SIZE = QUERY_LINE_SIZE }; // bytes of the text, terminating NUL included

struct prompt {
    char text[PROMPT_SIZE];      // UTF-8
    size_t size;                 // bytes of `text` without the NUL
    size_t cursor;               // insertion point: offset of a character's first byte
    char error[ERROR_TEXT_SIZE]; // why the text was rejected, escaped; "": no error
    struct query_place place;    // the rejected part of the text
};

// Starts with `text`, the cursor after it.
void prompt_open(struct prompt *prompt, const char *text);

// Inserts a character.  Rejects a control character, and any character if the text is full:
// returns false.  Each change of the text clears the error.
bool prompt_insert(struct prompt *prompt, uint32_t code);
void prompt_empty(struct prompt *prompt);

// Deletes the character before or after the cursor.
void prompt_erase_before(struct prompt *prompt);
void prompt_erase_behind(struct prompt *prompt);

// Moves the cursor by one character, or to the start or end of the text.
void prompt_left(struct prompt *prompt);
void prompt_right(struct prompt *prompt);
void prompt_home(struct prompt *prompt);
void prompt_end(struct prompt *prompt);

#endif
