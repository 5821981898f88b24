// The wish to stop, from SIGINT, SIGTERM or SIGHUP.  One a program.
#ifndef INFERSTAT_SYS_STOP_H
#define INFERSTAT_SYS_STOP_H

#include <stdbool.h>

#include "common/core/error.h"

// Installs the handlers, and ignores SIGPIPE and SIGXFSZ: writes answer them.  What was
// ignored when the program started (nohup, background jobs of shells) stays ignored.
// Main thread, before others start.
MUST_CHECK enum status stop_install(struct error *err);

// Makes one more signal a wish to stop, unless it is ignored.  After stop_install.
void stop_on(int number);

// Whether a stop was asked for.  Any thread.
bool stop_requested(void);

// A descriptor that becomes readable with the first wish, for poll; never read.
int stop_fd(void);

// Asks for a stop from inside.  Any thread, also a signal handler.
void stop_request(void);

#endif
