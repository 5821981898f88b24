// Formatting of dropped-record counts, by reason.
#ifndef INFERSTAT_CORE_LOSS_TEXT_H
#define INFERSTAT_CORE_LOSS_TEXT_H

#include <stddef.h>

#include "common/core/query/result.h"

enum { LOSS_TEXT_SIZE = 512 };

// Writes the dropped_REASON columns of a row that are above zero, largest first, as
// "5 spool_full, 2 ring_full"; "" if there are none.  Returns `text`.
const char *loss_text(char text[LOSS_TEXT_SIZE], const struct result *result, size_t row);

#endif
