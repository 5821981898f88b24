// The connections of one socket that listens, by their file descriptors, which
// belong to libzmq: they are only ever shut down here, which libzmq takes for a
// peer that left.  One thread, but for lines_heard.
#ifndef INFERSTAT_WIRE_SOCKET_LINES_H
#define INFERSTAT_WIRE_SOCKET_LINES_H

#include <stdint.h>

#include "common/core/status.h"

struct lines;

struct lines_counters {
    uint64_t open;
    uint64_t over_limit; // shut down because of the limit
    uint64_t unheard;    // ended by themselves without ever being heard
};

// Of a socket bound to `endpoint`; `max` connections at one time, 0: no limit.
MUST_CHECK enum status lines_new(struct lines **out, const char *endpoint, unsigned max);
void lines_free(struct lines *lines);

// A connection was accepted.  Where that is one too many, the oldest of those that
// have not been heard yet is shut down; where there is none, the new one.
void lines_opened(struct lines *lines, int fd);
// It ended, or libzmq ended it.
void lines_closed(struct lines *lines, int fd);

// A message came over it.  Any thread.
void lines_heard(struct lines *lines, int fd);

// Shuts all down.
void lines_hang_up(struct lines *lines);

void lines_count(const struct lines *lines, struct lines_counters *out);

#endif
