// UTF-8: decodes, encodes, validates and cuts text, and escapes untrusted text for terminals.  The
// last functions format numbers and UUIDs, and parse UUIDs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Decodes the first character of `text` (`size` bytes): returns the character's length in bytes and
// sets `*out` (may be NULL) to its code point.  If the character is malformed, returns 0 and leaves
// `*out` unchanged.
size_t text_character(const char *text, size_t size, uint32_t *out);

// Encodes the code point `code` as UTF-8 and returns the length in bytes.  Returns 0 if `code` is
// invalid: 0, a surrogate, or above U+10FFFF.
size_t text_encode(char out[4], uint32_t code);

// True if `size` bytes of `text` are well-formed UTF-8 (no surrogates, no overlong forms,
// nothing above U+10FFFF, no NUL).
bool text_is_utf8(const char *text, size_t size);

// `text` has `length` bytes.  Returns the length of its longest prefix of at most `size` bytes that
// does not split a character.
size_t text_cut(const char *text, size_t length, size_t size);

// Copies a text (NULL: none) into `out` of `size` bytes, cut likewise.  Returns the length there.
size_t text_copy(char *out, size_t size, const char *text);

// The hash of `size` bytes (FNV-1a, 64 bits).
uint64_t text_hash(const char *text, size_t size);

// True if the character `code` can change a terminal's state or hide text: a control character, an
// invisible bidirectional formatting character, or the byte order mark.
bool text_is_unsafe(uint32_t code);

// Escapes `size` bytes of `text` for a terminal: control characters and malformed bytes become
// \xNN, the other unsafe characters \u{NNNN}.  The output is cut to `out_size` bytes, including its
// NUL. Returns `out`.
char *text_escape(char *out, size_t out_size, const char *text, size_t size);
// Escapes a text like text_escape, but without cutting it, into memory that the caller frees.
// Returns NULL if memory is out.
char *text_escape_new(const char *text, size_t size);

// Writes `word` as one word for a shell (bash, zsh, ksh): as it is, in '...', or, with characters
// that text_escape escapes, as $'...'.  Cut to `out_size` bytes, including its NUL; a
// NUL-terminated word fits TEXT_QUOTED_SIZE(its size).  Returns `out`.
#define TEXT_QUOTED_SIZE(word_size) (4 * (word_size) + 4)
char *text_quote(char *out, size_t out_size, const char *word);

// The characters of names that users give, as of baselines, in a literal that may be extended.
#define TEXT_NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// Appends to a NUL-terminated text in `size` bytes, after `between` unless it is empty; appends
// nothing if that does not fit.  Returns `text`.
char *text_append(char *text, size_t size, const char *between, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Formats a finite double with the fewest digits that read back as the same value.  Returns `out`.
enum { TEXT_NUMBER_SIZE = 32 };
char *text_from_real(char out[TEXT_NUMBER_SIZE], double value);

// Formats a time (unix ns), in UTC, as strftime does with `format`; "" if that does not fit `size`
// bytes.  Returns `out`.
char *text_from_time(char *out, size_t size, const char *format, int64_t time_ns)
    __attribute__((format(strftime, 3, 0)));

// text_from_uuid formats a UUID as 36 characters and a NUL.  text_to_uuid parses a UUID; it returns
// false unless `text` is a UUID of exactly 36 characters.
void text_from_uuid(char out[37], const unsigned char uuid[16]);
bool text_to_uuid(unsigned char uuid[16], const char *text);
