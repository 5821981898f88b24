// Words of the query language: how a line is cut into them, and how a name is
// written so that it is one.  Pure.
//
// Blanks stand between words; "=" and "," are words of their own; a name with any
// of these, a quote or a backslash in it stands in quotes, single or double.  In
// quotes a backslash makes the next character plain, and \n, \t, \xNN (a byte) and
// \u{NNNN} (a character) what they are in C and Rust.
#ifndef INFERSTAT_CORE_QUERY_WORDS_H
#define INFERSTAT_CORE_QUERY_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"

// A piece of the line: `size` bytes from byte `at` on.
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
    char text[QUERY_TEXT_SIZE]; // without its quotes, terminated, UTF-8; "" of END
    struct query_place place;
};

// Reads the word that `line` (terminated) has at byte `from` or behind blanks there.
// STATUS_INVALID where it cannot be one, `word->place` saying where; `err` does not.
MUST_CHECK enum status query_word_read(struct query_word *word, const char *line, size_t from,
                                       struct error *err);

// Writes `text` (UTF-8) behind `out[*used]` so that it reads as one word, in quotes
// where it has to be or `in_quotes`, and terminates.  False, with nothing written, where `size`
// bytes are too few.
bool query_word_write(char *out, size_t size, size_t *used, const char *text, bool in_quotes);

// The column of a byte of the line: its characters before it, and one.
size_t query_column(const char *line, size_t at);

#endif
