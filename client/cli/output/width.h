// The terminal columns that a text takes.  Needs a UTF-8 LC_CTYPE (main sets
// one); elsewhere every byte counts as one column.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_WIDTH_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_WIDTH_H

#include <stddef.h>

unsigned width_of(const char *text);

// The bytes of the longest start of `text` that takes at most `columns`.
size_t width_cut(const char *text, unsigned columns);

#endif
