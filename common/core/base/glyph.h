// Display width of Unicode characters in a terminal, and their replacement by ASCII characters;
// both independent of the locale.  Tables and the dashboard use it.
#ifndef INFERSTAT_CORE_GLYPH_H
#define INFERSTAT_CORE_GLYPH_H

#include <stddef.h>
#include <stdint.h>

// Decodes the character at `*text` (NUL-terminated) and advances `*text` past it.  Returns 0 at
// the end of the text, and '?' for a malformed byte.
uint32_t glyph_next(const char **text);

// Display width in columns: 2 for wide characters (East Asian, emoji), 0 for combining and
// invisible ones, 1 otherwise.
int glyph_width(uint32_t code);

// glyph_text_width: the display width of a text in columns.  glyph_cut: the size in bytes of the
// text's longest prefix that is at most `columns` wide.
int glyph_text_width(const char *text);
size_t glyph_cut(const char *text, int columns);

// The ASCII replacement of `code`: one for each symbol that the dashboard draws, '?' for
// everything else.
uint32_t glyph_ascii(uint32_t code);

#endif
