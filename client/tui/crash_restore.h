// Crash handler: restores the terminal on a fatal signal (SIGSEGV, SIGABRT and similar), then
// raises the signal again with its previous handler.  One per program.  Main thread.
#ifndef INFERSTAT_TUI_CRASH_RESTORE_H
#define INFERSTAT_TUI_CRASH_RESTORE_H

#include <stddef.h>
#include <termios.h>

enum { CRASH_RESTORE_TEXT_SIZE = 256 };

// Installs the handler.  It writes `size` bytes of `text` (CRASH_RESTORE_TEXT_SIZE at most) to
// standard output and restores the terminal's `settings`.  Copies both.
void crash_restore_arm(const char *text, size_t size, const struct termios *settings);

// Restores the previous signal handlers.  Does nothing if not armed.
void crash_restore_disarm(void);

#endif
