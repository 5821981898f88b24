// A tracing session of LTTng with a daemon of its own, for bench_record: the
// tracepoint of bench_tracepoint is enabled in it, and its events go to files.
// One at a time in a process.
#pragma once

#include <stdbool.h>

// Starts the daemon and the session, with all files in `folder`.  As root, whose
// daemon has a fixed place, in a mount namespace that this process enters for good.
// False where it cannot be done; `*why` is static.
bool lttng_session_open(const char *folder, const char **why);

// Nanoseconds of one tracepoint, as bench_tracepoint says; 0 where it fails.
double lttng_session_time(unsigned requests, unsigned tokens);

// Ends session and daemon.  False when events were discarded: then the times are
// not those of recording.
bool lttng_session_close(void);
