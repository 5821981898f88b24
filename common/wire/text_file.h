// Small text files of keys, read line by line with everything checked: who may
// read or change them, that they are files, how long they are.
#ifndef INFERSTAT_WIRE_TEXT_FILE_H
#define INFERSTAT_WIRE_TEXT_FILE_H

#include "common/core/error.h"

struct text_file;

// Who else may have to do with it.
enum text_file_privacy {
    TEXT_FILE_TRUSTED, // all may read it, none but its owner change it
    TEXT_FILE_SECRET,  // none but its owner may read it
};

// Opens and reads a regular file of at most 1 MiB, owned by this user or root, or a
// symbolic link to one, itself owned by them.  STATUS_NOT_FOUND: there is none;
// STATUS_DENIED: it may not be read, or others may do what they must not (the text
// says what to do).
MUST_CHECK enum status text_file_open(struct text_file **out, const char *path,
                                      enum text_file_privacy privacy, struct error *err);
void text_file_close(struct text_file *file); // forgets what it held; NULL is fine

// The next line, without its end; NULL after the last, and where one is too long
// (KEYS_LINE_SIZE), not UTF-8 or has a NUL or a control character in it, which
// text_file_status says.  Borrowed, and changed as the caller likes.
char *text_file_next(struct text_file *file);

// The same, without blank lines and those that begin with '#'.
char *text_file_next_entry(struct text_file *file);

// The line read last, from 1.
unsigned text_file_line(const struct text_file *file);

// STATUS_INVALID, naming the line, when it is the reason why there was none.
MUST_CHECK enum status text_file_status(const struct text_file *file, struct error *err);

// Cuts the next word, between spaces and tabs, off *line; NULL: there is none.
char *text_file_word(char **line);

#endif
