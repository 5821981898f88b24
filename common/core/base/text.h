// UTF-8 decoding, validation and escaping of untrusted text; text forms of numbers and UUIDs.
#ifndef INFERSTAT_CORE_TEXT_H
#define INFERSTAT_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Decodes the first character of `text` (`size` bytes): returns its length in bytes and sets
// `*out` (may be NULL) to its code point.  Returns 0, `*out` unchanged, if it is malformed.
size_t text_character(const char *text, size_t size, uint32_t *out);

// Encodes a code point as UTF-8 and returns its length in bytes; 0 for an invalid one (0, a
// surrogate, above U+10FFFF).
size_t text_encode(char out[4], uint32_t code);

// Whether `size` bytes are well-formed UTF-8 (no surrogates, no overlong forms,
// nothing above U+10FFFF, no NUL).
bool text_is_utf8(const char *text, size_t size);

// The length of the longest prefix of at most `size` bytes that does not split a character.
size_t text_cut(const char *text, size_t length, size_t size);

// Whether a character can change a terminal's state or hide text: control characters,
// invisible bidirectional formatting characters, and the byte order mark.
bool text_is_unsafe(uint32_t code);

// Escapes `text` for a terminal: control characters and malformed bytes become \xNN, the
// other unsafe characters \u{NNNN}.  Cut to `out_size` bytes, terminated.  Returns `out`.
char *text_escape(char *out, size_t out_size, const char *text, size_t size);
// The same without a limit; the caller frees the result.  NULL when out of memory.
char *text_escape_new(const char *text, size_t size);

// Writes the fewest digits that read back as the same finite double.  Returns `out`.
enum { TEXT_NUMBER_SIZE = 32 };
char *text_from_real(char out[TEXT_NUMBER_SIZE], double value);

// Formats a UUID as 36 characters and a NUL, and parses one: false unless `text` is exactly
// 36 such characters.
void text_from_uuid(char out[37], const unsigned char uuid[16]);
bool text_to_uuid(unsigned char uuid[16], const char *text);

#endif
