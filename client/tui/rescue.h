// Gives the terminal back when the program dies of a fault of its own (SIGSEGV,
// SIGABRT and their like), which ends it as before.  One a program.  Main thread.
#ifndef INFERSTAT_TUI_RESCUE_H
#define INFERSTAT_TUI_RESCUE_H

#include <stddef.h>
#include <termios.h>

enum { RESCUE_TEXT_SIZE = 256 };

// From here on a fault writes `size` bytes of `text` (RESCUE_TEXT_SIZE at most) to
// standard output and gives the terminal there `settings`.  Both are copied.
void rescue_arm(const char *text, size_t size, const struct termios *settings);

// Faults are again what they were before.  Does nothing when not armed.
void rescue_disarm(void);

#endif
