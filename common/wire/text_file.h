// Line reader for security-relevant text files (key files, lists of trusted keys): before reading
// it checks the file's type, size, owner and permissions.
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#include "common/core/base/error.h"

struct text_file;

// Permissions that text_file_open requires.
enum text_file_privacy {
    TEXT_FILE_TRUSTED, // others may read, only the owner may write
    TEXT_FILE_SECRET,  // only the owner may read or write
};

// Opens and reads a regular file of at most 16 MiB; text_file_close frees `*out`.  The file, and a
// symbolic link to it, must belong to this user or root.  Returns STATUS_NOT_FOUND if there is no
// such file; STATUS_DENIED if it is not readable, has another owner or wider permissions (`err`
// says what to do); STATUS_INVALID if it is too large or no regular file.
MUST_CHECK enum status text_file_open(struct text_file **out, const char *path,
                                      enum text_file_privacy privacy, struct error *err);
void text_file_close(struct text_file *file); // zeroes the contents first; NULL is fine

// The whole contents with a terminating NUL, which `*size` does not count; borrowed until
// text_file_close; text_file_next replaces line breaks in it.  text_file_stat: the metadata (fstat)
// at the time of reading.
const char *text_file_contents(const struct text_file *file, size_t *size);
const struct stat *text_file_stat(const struct text_file *file);

// The next line, without its line break; borrowed, but the caller may modify it.  NULL after the
// last line.  Also NULL, from then on, if the line is invalid: KEYS_LINE_SIZE bytes (keys.h) or
// more, not UTF-8, or with a control character other than tab.
char *text_file_next(struct text_file *file);

// Like text_file_next, but skips leading blanks, blank lines, and lines that begin with '#'.
char *text_file_next_entry(struct text_file *file);

// The line number, from 1, of the line read last.
unsigned text_file_line(const struct text_file *file);

// Call it after text_file_next returned NULL.  Returns STATUS_INVALID, with the line number in
// `err`, if the reason was an invalid line, else STATUS_OK.
MUST_CHECK enum status text_file_status(const struct text_file *file, struct error *err);

// Returns the next word of *line (separated by spaces and tabs), terminates it with NUL and
// advances *line past it; NULL if there is none.
char *text_file_word(char **line);
