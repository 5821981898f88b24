#include "common/monitor/delivery/log_sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/base/text.h"

enum { LINE_SIZE = 2048 };

void log_sink_write(const struct log_sink *sink, enum inferstat_log_level level, const char *format,
                    ...)
{
    if (!sink->write)
        return;
    char line[LINE_SIZE], shown[LINE_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    sink->write(sink->context, level, text_escape(shown, sizeof shown, line, strlen(line)));
}
