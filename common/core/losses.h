// What was lost, by reason, in words.
#ifndef INFERSTAT_CORE_LOSSES_H
#define INFERSTAT_CORE_LOSSES_H

#include <stddef.h>

#include "common/core/result.h"

enum { LOSSES_SIZE = 512 };

// Writes "5 spool_full, 2 ring_full" for the columns dropped_REASON of a row that
// are above zero, the most first; "" where nothing was lost.  Returns `text`.
const char *losses_text(char text[LOSSES_SIZE], const struct result *result, size_t row);

#endif
