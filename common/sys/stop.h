// Graceful shutdown: turns SIGINT, SIGTERM and SIGHUP into a stop flag and a readable descriptor
// (self-pipe).  The state is global: a program has one stop flag.
#pragma once

#include <stdbool.h>

#include "common/core/base/error.h"

// Installs the signal handlers, and ignores SIGPIPE and SIGXFSZ, so that writes return errors.  A
// signal that the parent process ignores (nohup, background jobs) stays ignored.  Call it on the
// main thread, before other threads start.
MUST_CHECK enum status stop_install(struct error *err);

// Makes another signal a stop request too, unless the process ignores that signal.  Call it after
// stop_install.
void stop_on(int number);

// True once a stop was requested.  Any thread.
bool stop_requested(void);

// A descriptor for poll that is readable from the first stop request on.  Callers must not read it.
int stop_fd(void);

// Requests a stop.  Any thread; async-signal-safe.
void stop_request(void);
