// Error value: a status and a message, passed up the call chain to the program, which reports
// it once.
#ifndef INFERSTAT_CORE_ERROR_H
#define INFERSTAT_CORE_ERROR_H

#include <stdint.h>

#include "common/core/base/status.h"

enum { ERROR_TEXT_SIZE = 512 };

// In the caller's memory.  `text` is always terminated and reads "what was wrong: why (what
// to do)", without the program's name and a full stop.
struct error {
    enum status status;
    int64_t expired_ns; // query, STATUS_NO_DATA: earlier records have expired; 0: none have
    char text[ERROR_TEXT_SIZE];
};

// Fills `err` (may be NULL) and returns `status`.  Text that does not fit is cut.
enum status error_set(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__
// Tells the analyzer, which does not see error.c, that the result is `status`.
#define error_set(err, status, ...) ((void)(error_set)(err, status, __VA_ARGS__), (status))
#endif

// Reports a failed allocation: STATUS_NOMEM and "`what`: out of memory".
static inline enum status error_no_memory(struct error *err, const char *what)
{
    return error_set(err, STATUS_NOMEM, "%s: out of memory", what);
}

// Prefixes the text of `err` (may be NULL) with "context: " and returns its status, or
// `status` when `err` is NULL.
enum status error_prefix(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
