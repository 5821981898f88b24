// The writer's current error, shared with the query service, which reports it in `ping`.
// While the store cannot be written, queries are answered and producers keep their records.
#ifndef INFERSTAT_COLLECTOR_THREADS_WRITE_ERROR_H
#define INFERSTAT_COLLECTOR_THREADS_WRITE_ERROR_H

#include <stddef.h>

#include "common/core/base/error.h"

struct write_error;

MUST_CHECK enum status write_error_new(struct write_error **out, struct error *err);
void write_error_free(struct write_error *write_error); // accepts NULL

// Sets why the last group could not be written; "" after one was.  Writer thread.
void write_error_set(struct write_error *write_error, const char *why);

// Copies the error to `why` and returns its length, 0 when there is none.  Any thread.
size_t write_error_read(struct write_error *write_error, char why[ERROR_TEXT_SIZE]);

#endif
