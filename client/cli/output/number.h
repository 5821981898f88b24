// Formatting of counts: plural endings.
#ifndef INFERSTAT_CLIENT_CLI_OUTPUT_NUMBER_H
#define INFERSTAT_CLIENT_CLI_OUTPUT_NUMBER_H

#include <stdint.h>

// The plural ending of a noun after a count: "" for one, else "s".
static inline const char *number_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
