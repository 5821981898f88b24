// Formatter of loss counts: how many records were dropped for each reason, as text for people.
#ifndef INFERSTAT_CORE_LOSS_TEXT_H
#define INFERSTAT_CORE_LOSS_TEXT_H

#include <stddef.h>

#include "common/core/query/result.h"

enum { LOSS_TEXT_SIZE = 512 };

// Formats the values of all columns of a row whose key begins with "dropped_" and whose value is
// above zero, largest first: "5 spool_full, 2 ring_full".  "" if there are none.  Returns `text`.
const char *loss_text(char text[LOSS_TEXT_SIZE], const struct result *result, size_t row);

#endif
