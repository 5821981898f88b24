// Error value: a status and a message.  A function that fails fills it, its callers pass it up the
// call chain, and the program reports it once.
#pragma once

#include <stdint.h>

#include "common/core/base/status.h"

enum { ERROR_TEXT_SIZE = 512 };

// The caller owns the memory.  `text` is NUL-terminated and reads "what was wrong: why (what to
// do)"; it has neither the program's name nor a full stop.
struct error {
    enum status status;
    int64_t expired_ns; // STATUS_NO_DATA of a query: records before this time (unix ns) have
                        // expired; 0: none have
    char text[ERROR_TEXT_SIZE];
};

// Fills `err` (may be NULL) and returns `status`.  A text that does not fit is cut.
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

// Puts the formatted text and ": " in front of the text of `err`, and returns err->status.  If
// `err` is NULL, returns `status`.
enum status error_prefix(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
