#include "common/core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

#undef error_set // the analyzer's stand-in

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (!err)
        return status;
    char text[ERROR_TEXT_SIZE + 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t kept = text_cut(text, strlen(text), sizeof err->text - 1);
    memcpy(err->text, text, kept);
    err->text[kept] = '\0';
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
        const size_t kept = text_cut(old, strlen(old), room);
        memcpy(err->text + used, ": ", 2);
        memcpy(err->text + used + 2, old, kept);
        err->text[used + 2 + kept] = '\0';
    }
    return err->status;
}
