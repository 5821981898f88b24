// A folder of a test's own, removed with what is in it at the end.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { FOLDER_PATH_SIZE = 256 };

// Makes a new folder under $TMPDIR or /tmp; ends the test where it cannot.
void folder_make(char path[FOLDER_PATH_SIZE]);

// Removes it and everything inside.
void folder_remove(const char *path);

// "FOLDER/NAME" into `out` (FOLDER_PATH_SIZE bytes).  Returns `out`.
char *folder_path(char *out, const char *folder, const char *name);

// Whether files in the folder can have holes made.
bool folder_has_holes(const char *folder);

// Writes a file of so many bytes or of a text, over what is there.  Returns `path`.
const char *write_file(const char *path, const void *bytes, size_t size);
const char *write_text(const char *path, const char *text);

// A file's bytes and a NUL behind them, and how many they are (where `size` is not NULL); free()
// the result.  These, too, end the test where they cannot.
void *read_file(const char *path, size_t *size);
