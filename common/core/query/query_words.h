// Tokenizer of the query language: splits a line into words, and quotes names.  The parser in
// query_text.h uses it.  No I/O, no global state.
//
// Blanks, tabs and line ends separate words; "=" and "," are words.  A name that contains one of
// these, a quote or a backslash is written in single or double quotes.  Escapes in quotes: \\ \" \'
// \n \t, \xNN (a byte) and \u{NNNN} (a character).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

// A part of a line: `size` bytes from byte offset `at` on.  The place of a word includes its
// quotes.
struct query_place {
    size_t at, size;
};

enum query_word_kind {
    QUERY_WORD_END, // of the line
    QUERY_WORD_TEXT,
    QUERY_WORD_EQUALS,
    QUERY_WORD_COMMA,
};

struct query_word {
    enum query_word_kind kind;
    bool quoted;
    char text[QUERY_TEXT_SIZE]; // UTF-8, without the quotes, NUL-terminated; "" for END
    struct query_place place;
};

// Reads the next word of `line` (NUL-terminated) from byte `from` on; the word after it is read
// from word->place.at + word->place.size on.  At the end of the line the word is QUERY_WORD_END. If
// the word is malformed, too long or not UTF-8, returns STATUS_INVALID; word->place is the invalid
// part and `err` has the reason.
MUST_CHECK enum status query_word_read(struct query_word *word, const char *line, size_t from,
                                       struct error *err);

// Appends `text` (UTF-8) at `out[*used]` as one word and a NUL; adds no blank.  Quotes the word if
// it needs quotes, or if `in_quotes`.  `*used` (below `size`) counts the bytes before the NUL.
// Returns false and appends nothing if the word does not fit in the `size` bytes of `out`.
bool query_word_write(char *out, size_t size, size_t *used, const char *text, bool in_quotes);

// The column, from 1, of the byte at offset `at`: the count of characters before that byte, plus
// one.
size_t query_column(const char *line, size_t at);
