// Counts as text.
#ifndef INFERSTAT_CLIENT_CLI_NUMBER_H
#define INFERSTAT_CLIENT_CLI_NUMBER_H

#include <stdint.h>

// What the noun behind a count ends in: "" for one, else "s".
static inline const char *number_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
