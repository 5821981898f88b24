// Text inside the quotes of a JSON string (RFC 8259), valid whatever goes in.
#ifndef INFERSTAT_CORE_JSON_TEXT_H
#define INFERSTAT_CORE_JSON_TEXT_H

#include <stddef.h>

enum { JSON_PIECE_SIZE = 8 };

// Writes the first character of `text` (`size` bytes, at least one) as a JSON string
// has it, terminated: quotes, backslashes and what a terminal would take for more than
// text (text_is_unsafe) escaped, malformed bytes as U+FFFD, one each.  Returns the bytes of `text`
// that it stands for.
size_t json_text_piece(char out[JSON_PIECE_SIZE], const char *text, size_t size);

#endif
