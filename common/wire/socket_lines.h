// Connection table of one listening socket, by file descriptor, with a connection limit.  libzmq
// owns the descriptors: this module only calls shutdown on them, which libzmq sees as a
// disconnected peer.  One thread, except where it says otherwise.
#ifndef INFERSTAT_WIRE_SOCKET_LINES_H
#define INFERSTAT_WIRE_SOCKET_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/status.h"

struct lines;

enum { LINES_KEY_SIZE = 32 };

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

// Call it when a message arrived on a connection, with its sender's key; NULL: none.  Any thread.
void lines_heard(struct lines *lines, int fd, const unsigned char *key);

// Shuts down the connections that have sent no message, and those whose sender's key `stays`
// rejects.  No lines_heard at the same time.
void lines_hang_up(struct lines *lines,
                   bool (*stays)(void *context, const unsigned char key[LINES_KEY_SIZE]),
                   void *context);

// Reads the counters.  Any thread.
void lines_count(const struct lines *lines, struct lines_counters *out);

#endif
