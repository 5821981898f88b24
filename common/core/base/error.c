#include "common/core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef error_set // the analyzer's stand-in

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    err->status = status;
    err->expired_ns = 0;
    return status;
}

enum status error_prefix(struct error *err, enum status status, const char *format, ...)
{
    if (!err)
        return status;
    char old[ERROR_TEXT_SIZE];
    memcpy(old, err->text, sizeof old);

    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    const size_t used = n < 0 ? 0 : (size_t)n;
    if (used + 2 < sizeof err->text) {
        const size_t room = sizeof err->text - used - 3; // behind ": ", before the NUL
        const size_t kept = strnlen(old, room);
        memcpy(err->text + used, ": ", 2);
        memcpy(err->text + used + 2, old, kept);
        err->text[used + 2 + kept] = '\0';
    }
    return err->status;
}
