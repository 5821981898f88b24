// The connections of one listening socket, by file descriptor.  libzmq owns the
// descriptors: this module only calls shutdown on them, which libzmq sees as a
// disconnected peer.  One thread, except for lines_heard.
#ifndef INFERSTAT_WIRE_SOCKET_LINES_H
#define INFERSTAT_WIRE_SOCKET_LINES_H

#include <stdint.h>

#include "common/core/base/status.h"

struct lines;

struct lines_counters {
    uint64_t open;
    uint64_t over_limit; // shut down because of the limit
    uint64_t unheard;    // closed by the peer before any message
};

// For a socket bound to `endpoint`; at most `max` connections, 0: no limit.
MUST_CHECK enum status lines_new(struct lines **out, const char *endpoint, unsigned max);
void lines_free(struct lines *lines);

// A connection was accepted.  Above the limit, shuts down the oldest connection without a
// message; if there is none, the new one.
void lines_opened(struct lines *lines, int fd);
// The connection was closed by the peer or by libzmq.
void lines_closed(struct lines *lines, int fd);

// A message arrived on it.  Any thread.
void lines_heard(struct lines *lines, int fd);

// Shuts all down.
void lines_hang_up(struct lines *lines);

void lines_count(const struct lines *lines, struct lines_counters *out);

#endif
