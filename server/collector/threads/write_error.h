// Why the store cannot be written at present, for those who ask how the collector is: it
// answers questions all the same, and what is not acknowledged waits at its producers.
#ifndef INFERSTAT_COLLECTOR_THREADS_WRITE_ERROR_H
#define INFERSTAT_COLLECTOR_THREADS_WRITE_ERROR_H

#include <stddef.h>

#include "common/core/base/error.h"

struct write_error;

MUST_CHECK enum status write_error_new(struct write_error **out, struct error *err);
void write_error_free(struct write_error *write_error); // NULL is fine

// Why the last group was not written; "" since one was.  Writer thread.
void write_error_tell(struct write_error *write_error, const char *why);

// The same, into `why`; its size, 0 where there is no trouble.  Any thread.
size_t write_error_read(struct write_error *write_error, char why[ERROR_TEXT_SIZE]);

#endif
