// Readers of the small text files of /proc and /sys.  Nothing in them is trusted: a file may be
// missing, empty, endless or vanish while it is read.  Any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads the file FOLDER/NAME into `out` and terminates it with a zero; what does not fit is left
// out.  Returns false if the file cannot be read.
bool proc_file_read(char *out, size_t size, const char *folder, const char *name);

// Reads a file that begins with an integer.  Returns false for any other, such as "max".
bool proc_file_number(int64_t *out, const char *folder, const char *name);

// Finds the integer behind `name` at the start of a line of `text`.  Returns false if there is
// none.
bool proc_file_find(int64_t *out, const char *text, const char *name);
