// Display width of texts in terminal columns (wcwidth).  Needs a UTF-8 LC_CTYPE, which main
// sets; in other locales each byte counts as one column.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_WIDTH_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_WIDTH_H

#include <stddef.h>

unsigned width_of(const char *text);

// Size in bytes of the longest prefix of `text` that is at most `columns` wide.
size_t width_cut(const char *text, unsigned columns);

#endif
