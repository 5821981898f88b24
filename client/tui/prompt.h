// A line of text that the user writes: where the filter of the dashboard is given.
// Pure.
#ifndef INFERSTAT_TUI_PROMPT_H
#define INFERSTAT_TUI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/core/query_text.h"

enum { PROMPT_SIZE = QUERY_LINE_SIZE }; // bytes of the text, terminating NUL included

struct prompt {
    char text[PROMPT_SIZE];      // UTF-8
    size_t size;                 // bytes of it
    size_t cursor;               // the byte before which is written, where a character begins
    char error[ERROR_TEXT_SIZE]; // why it was not taken, escaped; "": nothing is wrong
    struct query_place place;    // and what of it
};

// Begins with `text`, the cursor behind it.
void prompt_open(struct prompt *prompt, const char *text);

// Writes a character; false, with nothing written, for one that no line holds (a
// control character) or where there is no room.  What changes the text, or empties
// it, also takes back what was wrong.
bool prompt_insert(struct prompt *prompt, uint32_t code);
void prompt_empty(struct prompt *prompt);

// Takes away the character before the cursor, or behind it.
void prompt_erase_before(struct prompt *prompt);
void prompt_erase_behind(struct prompt *prompt);

// Moves the cursor by a character, or to an end.
void prompt_left(struct prompt *prompt);
void prompt_right(struct prompt *prompt);
void prompt_home(struct prompt *prompt);
void prompt_end(struct prompt *prompt);

#endif
