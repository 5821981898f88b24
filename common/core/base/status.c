#include "common/core/base/status.h"

#include <stddef.h>

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
