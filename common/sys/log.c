#include "common/sys/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/core/base/text.h"

static const char *log_program = "inferstat";
static enum log_level log_shown = LOG_LEVEL_WARNING;

static const struct {
    const char *name;
    const char *prefix;
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", ""},
    [LOG_LEVEL_WARNING] = {"warning", "warning: "},
    [LOG_LEVEL_INFO] = {"info", ""},
    [LOG_LEVEL_DEBUG] = {"debug", "debug: "},
};

void log_open(const char *program, enum log_level level)
{
    log_program = program;
    log_shown = level;
}

bool log_shows(enum log_level level)
{
    return level <= log_shown;
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_shows(level))
        return;
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);

    char shown[2048];
    (void)text_escape(shown, sizeof shown, text, strlen(text));
    // One write a line, so that lines of several threads and programs stay whole.
    char line[2304];
    int size = snprintf(line, sizeof line, "%s: %s%s\n", log_program, levels[level].prefix, shown);
    if (size > 0)
        (void)!write(STDERR_FILENO, line, (size_t)size < sizeof line ? (size_t)size : sizeof line);
}

const char *log_level_name(unsigned level)
{
    return level < sizeof levels / sizeof *levels ? levels[level].name : NULL;
}
