// The keeper of the sockets of a context that listen: one thread that answers
// libzmq's question who may connect (ZAP, ZeroMQ RFC 27), and counts, limits and
// ends connections by what libzmq's monitors say.  Only socket.c uses it.
//
// As seen with libzmq 4.3.4:
//  * ZAP is asked once a connection, after the peer has proved to own its key.
//    Without an answerer libzmq lets everybody in: it is there before the first
//    socket listens.
//  * A refusal (400) reaches a client as an error: its session ends, and it does
//    not try again by itself.  The same goes for a client with another mechanism,
//    plain to CURVE and CURVE to plain.  One with a wrong server key is cut off
//    without a word and comes again after each reconnect interval, which does not
//    grow.
//  * The user id of the answer comes with every frame that holds a payload, and not
//    with the frame in front that holds the route.
//  * A descriptor is reported as accepted before ZAP is asked, and as disconnected
//    before it is closed: a connection that was admitted is known here.
#ifndef INFERSTAT_WIRE_SOCKET_GATE_H
#define INFERSTAT_WIRE_SOCKET_GATE_H

#include <stdbool.h>

#include "common/wire/socket.h"

struct gate;      // one a context that needs it
struct gate_post; // one a socket that listens

// Starts the thread.  `zmq` is libzmq's context.
MUST_CHECK enum status gate_new(struct gate **out, void *zmq, struct error *err);
// All posts must be closed.
void gate_free(struct gate *gate);

// Watches `socket` (libzmq's, of this thread, not bound yet), and guards it as
// `listen` says.
MUST_CHECK enum status gate_open(struct gate_post **out, struct gate *gate, void *socket,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);
// While the socket is still open.  NULL is fine.
void gate_close(struct gate_post *post);

// A message came over the connection with this descriptor.  The socket's thread.
void gate_heard(struct gate_post *post, int fd);

void gate_hang_up(struct gate_post *post);
void gate_count(const struct gate_post *post, struct wire_counters *out);

// Whether peers have to show a key.
bool gate_is_guarded(const struct gate_post *post);

#endif
