// Line reader for security-relevant text files (keys, trust lists): checks type, size, owner and
// permissions of the file first.
#ifndef INFERSTAT_WIRE_TEXT_FILE_H
#define INFERSTAT_WIRE_TEXT_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "common/core/base/error.h"

struct text_file;

// Required permissions.
enum text_file_privacy {
    TEXT_FILE_TRUSTED, // others may read, only the owner may write
    TEXT_FILE_SECRET,  // only the owner may read or write
};

// Opens and reads a regular file of at most 16 MiB.  The file, and a symbolic link to it, must
// belong to this user or root.  STATUS_NOT_FOUND: no such file.  STATUS_DENIED: not readable, wrong
// owner, or permissions too wide (the message says what to do).  STATUS_INVALID: too large, or no
// regular file.
MUST_CHECK enum status text_file_open(struct text_file **out, const char *path,
                                      enum text_file_privacy privacy, struct error *err);
void text_file_close(struct text_file *file); // zeroes the contents first; NULL is fine

// The whole contents with a terminating NUL, `*size` bytes without it (borrowed), and the file's
// state when it was read.
const char *text_file_contents(const struct text_file *file, size_t *size);
const struct stat *text_file_stat(const struct text_file *file);

// The next line, without its line break (borrowed; the caller may modify it).  NULL after the last
// line, and at an invalid one: longer than KEYS_LINE_SIZE, not UTF-8, or with a control character.
char *text_file_next(struct text_file *file);

// As text_file_next, but skips blank lines and lines that begin with '#'.
char *text_file_next_entry(struct text_file *file);

// Number of the line read last, from 1.
unsigned text_file_line(const struct text_file *file);

// STATUS_INVALID, with the line number, if text_file_next returned NULL at an invalid line.
MUST_CHECK enum status text_file_status(const struct text_file *file, struct error *err);

// Returns the next word of *line (separated by spaces and tabs) and advances *line past it; NULL if
// there is none.
char *text_file_word(char **line);

#endif
