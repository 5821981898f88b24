// Admission control for the listening sockets of a context: one thread that answers
// libzmq's authentication requests (ZAP, ZeroMQ RFC 27), and counts, limits and closes
// connections according to libzmq's socket monitors.  Only socket.c uses it.
//
// As seen with libzmq 4.3.4:
//  * libzmq sends one ZAP request per connection, after the peer has proved that it owns
//    its key.  Without a ZAP handler libzmq admits every peer, so the thread starts before
//    the first socket listens.
//  * A refusal (400) reaches the client as an error: its session ends, and it does not
//    retry.  The same holds for a client with another mechanism, plain to CURVE and CURVE
//    to plain.  A client with a wrong server key is disconnected without an error and
//    reconnects after each reconnect interval, which does not grow.
//  * The user id of the ZAP reply is attached to every payload frame, not to the routing
//    frame before it.
//  * A descriptor is reported as accepted before the ZAP request, and as disconnected
//    before it is closed: every admitted connection is known here.
#ifndef INFERSTAT_WIRE_SOCKET_GATE_H
#define INFERSTAT_WIRE_SOCKET_GATE_H

#include <stdbool.h>

#include "common/wire/socket.h"

struct gate;      // one per context that listens
struct gate_post; // one per listening socket

// Starts the thread.  `zmq` is libzmq's context.
MUST_CHECK enum status gate_new(struct gate **out, void *zmq, struct error *err);
// All posts must be closed before.
void gate_free(struct gate *gate);

// Monitors `socket` (libzmq's, of this thread, not bound yet) and applies `listen`.
MUST_CHECK enum status gate_open(struct gate_post **out, struct gate *gate, void *socket,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);
// While the socket is still open.  NULL is fine.
void gate_close(struct gate_post *post);

// A message arrived on the connection with this descriptor.  The socket's thread.
void gate_heard(struct gate_post *post, int fd);

void gate_hang_up(struct gate_post *post);
void gate_count(const struct gate_post *post, struct wire_counters *out);

// True if peers need a key.
bool gate_is_guarded(const struct gate_post *post);

#endif
