// Terminal display width of Unicode characters (as wcwidth, but independent of the locale), and an
// ASCII replacement for each character.  Used by text tables and the dashboard.
#pragma once

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

// The ASCII replacement of `code`: printable ASCII is returned unchanged, each symbol that the
// dashboard draws has a replacement, and everything else is '?'.
uint32_t glyph_ascii(uint32_t code);
