// Authentication and connection limits for the listening sockets of a wire_context.  A gate is one
// thread with two tasks: it answers libzmq's authentication requests (ZAP, ZeroMQ RFC 27), and it
// counts, limits and closes connections as libzmq's socket monitors report them.  Only socket.c
// uses it.
//
// Observed behaviour of libzmq 4.3.4:
//  * libzmq sends one ZAP request per connection, after the peer has proved that it owns its key.
//    Without a ZAP handler libzmq admits every peer, so the thread starts before the first socket
//    listens.
//  * A refusal (ZAP status 400) reaches the client as an error: the client's session ends, and
//    libzmq does not retry.  The same holds if only one side uses CURVE.  A client with a wrong
//    server key is disconnected without an error and reconnects after a constant interval.
//  * The user id of the ZAP reply is attached to every payload frame, not to the routing
//    frame before it.
//  * The monitor reports a descriptor as accepted before the ZAP request, and as disconnected
//    before libzmq closes it: so the gate knows every admitted connection.
#ifndef INFERSTAT_WIRE_SOCKET_GATE_H
#define INFERSTAT_WIRE_SOCKET_GATE_H

#include <stdbool.h>

#include "common/wire/socket.h"

struct gate;      // one per wire_context
struct gate_post; // the gate's state of one listening socket with a guard or a limit

// Creates a gate and starts its thread.  `zmq` is libzmq's context.
MUST_CHECK enum status gate_new(struct gate **out, void *zmq, struct error *err);
// Ends the thread.  All posts must be closed before.  NULL is fine.
void gate_free(struct gate *gate);

// Creates the post of `socket` and monitors its connections under the rules of `listen`.  `socket`
// is a libzmq socket that is not bound yet; the calling thread owns it.
MUST_CHECK enum status gate_open(struct gate_post **out, struct gate *gate, void *socket,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);
// Ends the monitoring, while the socket is still open.  NULL is fine.
void gate_close(struct gate_post *post);

// Call it, on the socket's thread, when a message arrived on the connection with descriptor `fd`;
// `key` is the sender's public key, NULL: none.
void gate_heard(struct gate_post *post, int fd, const unsigned char *key);

// The implementations of wire_hang_up and wire_count (socket.h) for the post's socket.
void gate_hang_up(struct gate_post *post);
void gate_count(const struct gate_post *post, struct wire_counters *out);

// True if peers of the socket need a key: it has a guard and listens on TCP.
bool gate_is_guarded(const struct gate_post *post);

#endif
