// Why the store cannot be written at present, for those who ask how the collector is: it
// answers questions all the same, and what is not acknowledged waits at its producers.
#ifndef INFERSTAT_COLLECTOR_TROUBLE_H
#define INFERSTAT_COLLECTOR_TROUBLE_H

#include <stddef.h>

#include "common/core/error.h"

struct trouble;

MUST_CHECK enum status trouble_new(struct trouble **out, struct error *err);
void trouble_free(struct trouble *trouble); // NULL is fine

// Why the last group was not written; "" since one was.  Writer thread.
void trouble_tell(struct trouble *trouble, const char *why);

// The same, into `why`; its size, 0 where there is no trouble.  Any thread.
size_t trouble_read(struct trouble *trouble, char why[ERROR_TEXT_SIZE]);

#endif
