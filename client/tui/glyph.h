// Characters as a terminal shows them: decoding, width, ASCII stand-ins.  Pure,
// and independent of the locale.
#ifndef INFERSTAT_TUI_GLYPH_H
#define INFERSTAT_TUI_GLYPH_H

#include <stdint.h>

enum { GLYPH_BYTES_MAX = 4 };

// Decodes the character at `*text` (terminated) and moves `*text` behind it.
// Returns 0 at the end of the text, and '?' for a malformed byte.
uint32_t glyph_next(const char **text);

// Writes `code` as UTF-8.  Returns the bytes written, GLYPH_BYTES_MAX at most.
int glyph_encode(char out[GLYPH_BYTES_MAX], uint32_t code);

// Columns the character takes: 2 for wide ones (East Asian, emoji), 0 for
// combining and invisible ones, 1 otherwise.
int glyph_width(uint32_t code);

// The ASCII character that stands for `code` where only ASCII may be shown: what
// the dashboard draws with has its own, everything else is '?'.
uint32_t glyph_ascii(uint32_t code);

#endif
