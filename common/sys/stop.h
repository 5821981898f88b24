// Requests to stop the program, from SIGINT, SIGTERM or SIGHUP.  One per program.
#ifndef INFERSTAT_SYS_STOP_H
#define INFERSTAT_SYS_STOP_H

#include <stdbool.h>

#include "common/core/base/error.h"

// Installs the handlers, and ignores SIGPIPE and SIGXFSZ, so that writes return errors.
// A signal that was ignored at the start (nohup, background jobs) stays ignored.  Main
// thread, before others start.
MUST_CHECK enum status stop_install(struct error *err);

// Makes another signal a stop request, unless it is ignored.  After stop_install.
void stop_on(int number);

// True once a stop was requested.  Any thread.
bool stop_requested(void);

// A descriptor for poll that becomes readable at the first request; never read from it.
int stop_fd(void);

// Requests a stop from the program itself.  Any thread, also a signal handler.
void stop_request(void);

#endif
