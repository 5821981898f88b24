// A program's messages to standard error.  Any thread; a line is written whole.
#ifndef INFERSTAT_SYS_LOG_H
#define INFERSTAT_SYS_LOG_H

#include <stdbool.h>

#include "common/core/error.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

// Names the program and says what is shown (default: LOG_LEVEL_WARNING).  To be
// called before threads start.  `program` is borrowed for ever.
void log_open(const char *program, enum log_level level);

// Whether lines of that level are shown: for what is worth computing only then.
bool log_shows(enum log_level level);

// Writes "PROGRAM: text" ("PROGRAM: warning: text" for warnings) with control
// characters escaped.
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The level of that name ("error", "warning", "info", "debug").
MUST_CHECK enum status log_level_parse(enum log_level *out, const char *text, struct error *err);

#endif
