// Reads small text files of keys line by line, after checking type, size, owner and
// permissions.
#ifndef INFERSTAT_WIRE_TEXT_FILE_H
#define INFERSTAT_WIRE_TEXT_FILE_H

#include "common/core/base/error.h"

struct text_file;

// Required permissions.
enum text_file_privacy {
    TEXT_FILE_TRUSTED, // readable by all, writable by its owner only
    TEXT_FILE_SECRET,  // readable by its owner only
};

// Opens and reads a regular file of at most 1 MiB, owned by this user or root, or a
// symbolic link to one, itself owned by them.  STATUS_NOT_FOUND: no such
// file; STATUS_DENIED: it is not readable, or its permissions are too wide (the text says
// what to do).
MUST_CHECK enum status text_file_open(struct text_file **out, const char *path,
                                      enum text_file_privacy privacy, struct error *err);
void text_file_close(struct text_file *file); // overwrites its memory; NULL is fine

// The next line, without its line break; NULL after the last one, and at a line that is
// too long (KEYS_LINE_SIZE), not UTF-8 or contains a control character, which
// text_file_status reports.  Borrowed; the caller may modify it.
char *text_file_next(struct text_file *file);

// The same, skipping blank lines and lines that begin with '#'.
char *text_file_next_entry(struct text_file *file);

// Number of the line read last, from 1.
unsigned text_file_line(const struct text_file *file);

// STATUS_INVALID, naming the line, if an invalid line ended the reading.
MUST_CHECK enum status text_file_status(const struct text_file *file, struct error *err);

// Removes the next word (separated by spaces and tabs) from *line; NULL if there is none.
char *text_file_word(char **line);

#endif
