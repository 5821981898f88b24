// The wish to stop, from SIGINT, SIGTERM or SIGHUP.  One a program.
#ifndef INFERSTAT_SYS_STOP_H
#define INFERSTAT_SYS_STOP_H

#include <stdbool.h>

#include "common/core/error.h"

// Installs the handlers and ignores SIGPIPE.  Main thread, before others start.
MUST_CHECK enum status stop_install(struct error *err);

// Whether a stop was asked for.  Any thread.
bool stop_requested(void);

// A descriptor that becomes readable with the first wish, for poll; never read.
int stop_fd(void);

// Asks for a stop from inside.  Any thread, also a signal handler.
void stop_request(void);

#endif
