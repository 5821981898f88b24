// Log sink: formats the library's log lines and passes them to the application's log callback.
#pragma once

#include "common/monitor/inferstat.h"

struct log_sink {
    void (*write)(void *context, enum inferstat_log_level level, const char *text); // NULL: none
    void *context;
};

// Formats a line, cut to 2047 bytes, and passes it to the callback on the calling thread, with
// control characters escaped: errors may quote what users sent.  The text is valid during the
// callback.
void log_sink_write(const struct log_sink *sink, enum inferstat_log_level level, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));
