// Authentication and connection limits for the listening sockets of a context: one thread that
// answers libzmq's authentication requests (ZAP, ZeroMQ RFC 27), and counts, limits and closes
// connections by the events of libzmq's socket monitors.  Only socket.c uses it.
//
// Observed behaviour of libzmq 4.3.4:
//  * libzmq sends one ZAP request per connection, after the peer has proved that it owns
//    its key.  Without a ZAP handler libzmq admits every peer, so the thread starts before
//    the first socket listens.
//  * A refusal (400) reaches the client as an error: its session ends, and it does not
//    retry.  The same holds if only one side uses CURVE.  A client with a wrong server key is
//    disconnected without an error and reconnects after a constant interval.
//  * The user id of the ZAP reply is attached to every payload frame, not to the routing
//    frame before it.
//  * The monitor reports a descriptor as accepted before the ZAP request, and as disconnected
//    before it is closed: the gate knows every admitted connection.
#ifndef INFERSTAT_WIRE_SOCKET_GATE_H
#define INFERSTAT_WIRE_SOCKET_GATE_H

#include <stdbool.h>

#include "common/wire/socket.h"

struct gate;      // one per context with listening sockets
struct gate_post; // one per listening socket

// Starts the thread.  `zmq` is libzmq's context.
MUST_CHECK enum status gate_new(struct gate **out, void *zmq, struct error *err);
// Close all posts before.
void gate_free(struct gate *gate);

// Monitors `socket` (a libzmq socket of this thread, not bound yet) and applies `listen` to it.
MUST_CHECK enum status gate_open(struct gate_post **out, struct gate *gate, void *socket,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);
// Call it while the socket is still open.  NULL is fine.
void gate_close(struct gate_post *post);

// Call it when a message arrived on the connection with descriptor `fd`; `key` is its sender's, or
// NULL.  The socket's thread.
void gate_heard(struct gate_post *post, int fd, const unsigned char *key);

// wire_hang_up and wire_count of the post's socket.
void gate_hang_up(struct gate_post *post);
void gate_count(const struct gate_post *post, struct wire_counters *out);

// True if the socket has a guard: peers need a key.
bool gate_is_guarded(const struct gate_post *post);

#endif
