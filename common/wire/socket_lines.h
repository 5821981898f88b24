// Connection table of one listening socket, by file descriptor, with a connection limit.  The gate
// (socket_gate.h) keeps it up to date with libzmq's events.  libzmq owns the descriptors: this
// module only calls shutdown on them, which libzmq sees as a disconnected peer.  lines_opened,
// lines_closed and lines_hang_up are for one thread, the gate's.
#ifndef INFERSTAT_WIRE_SOCKET_LINES_H
#define INFERSTAT_WIRE_SOCKET_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/status.h"

struct lines;

enum { LINES_KEY_SIZE = 32 };

struct lines_counters {
    uint64_t open;       // connections that are open now
    uint64_t over_limit; // shut down because of the limit
    uint64_t unheard;    // closed by the peer before any message
};

// Creates the table of a socket bound to `endpoint`, for at most `max` connections (0: no limit).
MUST_CHECK enum status lines_new(struct lines **out, const char *endpoint, unsigned max);
void lines_free(struct lines *lines);

// Call it when a connection was accepted.  If there are then more than `max`, shuts down the oldest
// connection that has sent no message; if there is none, the new connection.
void lines_opened(struct lines *lines, int fd);
// Call it when a connection was closed by the peer or by libzmq.
void lines_closed(struct lines *lines, int fd);

// Call it when a message arrived on a connection; `key` is the sender's public key, NULL: none.
// Any thread.
void lines_heard(struct lines *lines, int fd, const unsigned char *key);

// Shuts down connections that have sent no message.  For each other connection calls `stays` with
// `context` and the sender's key, and shuts the connection down if `stays` returns false.  No
// thread may call lines_heard meanwhile.
void lines_hang_up(struct lines *lines,
                   bool (*stays)(void *context, const unsigned char key[LINES_KEY_SIZE]),
                   void *context);

// Reads the counters.  Any thread.
void lines_count(const struct lines *lines, struct lines_counters *out);

#endif
