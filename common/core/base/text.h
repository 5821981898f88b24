// Validates, cuts and escapes UTF-8 text from untrusted sources.
#ifndef INFERSTAT_CORE_TEXT_H
#define INFERSTAT_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes of the well-formed character that `size` bytes of `text` begin with, its
// code in `*out` (may be NULL); 0, `*out` left alone, where they begin with none.
size_t text_character(const char *text, size_t size, uint32_t *out);

// UTF-8 of a character: writes its bytes and returns how many; 0 for a code that no
// character has (0, surrogates, above U+10FFFF).
size_t text_encode(char out[4], uint32_t code);

// Whether `size` bytes are well-formed UTF-8 (no surrogates, no overlong forms,
// nothing above U+10FFFF, no NUL).
bool text_is_utf8(const char *text, size_t size);

// The longest prefix of at most `size` bytes that does not cut a character.
size_t text_cut(const char *text, size_t length, size_t size);

// Whether a terminal may interpret the character instead of showing it: control characters,
// invisible bidirectional controls and the byte order mark.
bool text_is_unsafe(uint32_t code);

// Copies `text`, escaped for a terminal: control characters, including escape, and malformed
// bytes become \xNN; bidirectional controls and the byte order mark become \u{NNNN}.
// Cut to `out_size` bytes, terminated.  Returns `out`.
char *text_escape(char *out, size_t out_size, const char *text, size_t size);
// The whole text so; the caller frees it.  NULL when out of memory.
char *text_escape_new(const char *text, size_t size);

// The fewest digits that read back as the same finite double.  Returns `out`.
enum { TEXT_NUMBER_SIZE = 32 };
char *text_from_real(char out[TEXT_NUMBER_SIZE], double value);

// A UUID's 36 characters and a terminating NUL from 16 bytes, and back: false
// where `text` is not exactly such 36 characters.
void text_from_uuid(char out[37], const unsigned char uuid[16]);
bool text_to_uuid(unsigned char uuid[16], const char *text);

#endif
