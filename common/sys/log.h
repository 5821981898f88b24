// Logger: writes messages with severity levels to standard error.  Any thread may call it; each
// message is one write call.  Longer messages are cut after 1023 bytes.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

// Sets the program's name and the least severe level to show (default: LOG_LEVEL_WARNING).  Call
// it before threads start.  `program` is borrowed until the process ends.
void log_open(const char *program, enum log_level level);

// True if messages of `level` are shown; a caller need not compute a message that is not shown.
bool log_shows(enum log_level level);

// Writes "PROGRAM: text", with control characters escaped.  At the levels warning and debug the
// level's name precedes the text: "PROGRAM: warning: text".
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The name of a level ("error", "warning", "info", "debug"); NULL after the last one.
const char *log_level_name(unsigned level);
