// Connection table of one listening socket, by file descriptor, with a connection limit.  libzmq
// owns the descriptors: this module only calls shutdown on them, which libzmq sees as a
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

// Creates the table of a socket bound to `endpoint`, for at most `max` connections (0: no limit).
MUST_CHECK enum status lines_new(struct lines **out, const char *endpoint, unsigned max);
void lines_free(struct lines *lines);

// Call it when a connection was accepted.  Above the limit, shuts down the oldest connection that
// has sent no message; if there is none, the new connection.
void lines_opened(struct lines *lines, int fd);
// Call it when a connection was closed by the peer or by libzmq.
void lines_closed(struct lines *lines, int fd);

// Call it when a message arrived on a connection.  Any thread.
void lines_heard(struct lines *lines, int fd);

// Shuts down all connections.
void lines_hang_up(struct lines *lines);

void lines_count(const struct lines *lines, struct lines_counters *out);

#endif
