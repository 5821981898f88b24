// UTF-8 decoding, display width and ASCII replacement of characters.  Pure; independent of the
// locale.
#ifndef INFERSTAT_TUI_GLYPH_H
#define INFERSTAT_TUI_GLYPH_H

#include <stdint.h>

enum { GLYPH_BYTES_MAX = 4 };

// Decodes the character at `*text` (NUL-terminated) and advances `*text` past it.  Returns 0 at
// the end of the text, and '?' for a malformed byte.
uint32_t glyph_next(const char **text);

// Writes `code` as UTF-8.  Returns the bytes written, GLYPH_BYTES_MAX at most.
int glyph_encode(char out[GLYPH_BYTES_MAX], uint32_t code);

// Display width in columns: 2 for wide characters (East Asian, emoji), 0 for combining and
// invisible ones, 1 otherwise.
int glyph_width(uint32_t code);

// The ASCII replacement of `code`: one for each symbol that the dashboard draws, '?' for
// everything else.
uint32_t glyph_ascii(uint32_t code);

#endif
