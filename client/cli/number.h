// Numbers as text: real ones for machines to read, counts for people.
#ifndef INFERSTAT_CLIENT_CLI_NUMBER_H
#define INFERSTAT_CLIENT_CLI_NUMBER_H

#include <stdint.h>

enum { NUMBER_TEXT_SIZE = 32 };

// Writes a finite number with the fewest digits that read back as the same
// double.  `text` holds NUMBER_TEXT_SIZE bytes.  Returns it.
char *number_text(char *text, double value);

// What the noun behind a count ends in: "" for one, else "s".
static inline const char *number_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
