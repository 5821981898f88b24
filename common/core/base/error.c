#include "common/core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

#undef error_set // the analyzer's stand-in

static const char *const texts[STATUS_COUNT] = {
#define STATUS_TEXT(name, text) [STATUS_##name] = text,
    STATUS_TABLE(STATUS_TEXT)
#undef STATUS_TEXT
};

const char *status_text(enum status status)
{
    if ((size_t)status >= STATUS_COUNT)
        return "unknown status";
    return texts[status];
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (!err)
        return status;
    char text[ERROR_TEXT_SIZE + 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)text_copy(err->text, sizeof err->text, text);
    err->status = status;
    err->expired_ns = 0;
    return status;
}

enum status error_prefix(struct error *err, enum status status, const char *format, ...)
{
    if (!err)
        return status;
    const struct error old = *err;
    char prefix[ERROR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    (void)error_set(err, old.status, "%s: %s", prefix, old.text);
    err->expired_ns = old.expired_ns;
    return err->status;
}
