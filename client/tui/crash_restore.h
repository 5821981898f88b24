// Restores the terminal when the program crashes (SIGSEGV, SIGABRT and similar); the signal
// then ends it as usual.  One per program.  Main thread.
#ifndef INFERSTAT_TUI_CRASH_RESTORE_H
#define INFERSTAT_TUI_CRASH_RESTORE_H

#include <stddef.h>
#include <termios.h>

enum { CRASH_RESTORE_TEXT_SIZE = 256 };

// From now on a crash writes `size` bytes of `text` (CRASH_RESTORE_TEXT_SIZE at most) to standard
// output and restores the terminal's `settings`.  Both are copied.
void crash_restore_arm(const char *text, size_t size, const struct termios *settings);

// Restores the previous signal handlers.  Does nothing if not armed.
void crash_restore_disarm(void);

#endif
