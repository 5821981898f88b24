// Message sockets (ZeroMQ's protocol ZMTP, optionally with CURVE keys for authentication and
// encryption).  A message has one frame.  Two kinds of sockets:
// - a listening socket serves any number of peers (listener.h, with the bounds of its memory);
// - a connecting socket has one server (socket_dealer.h, by libzmq).
//
// One thread at a time may use a socket; the thread that creates it may pass it to a thread that it
// starts afterwards.  Exceptions: any thread may call wire_is_connected, wire_has_unread,
// wire_count and wire_complaints while the socket is open.
#ifndef INFERSTAT_WIRE_SOCKET_H
#define INFERSTAT_WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/frame.h"
#include "common/wire/listener.h"
#include "common/wire/socket_dealer.h"
#include "common/wire/socket_keys.h"

struct wire_context; // threads that send and receive; one per program or library handle; any thread
struct wire_socket;

MUST_CHECK enum status wire_context_new(struct wire_context **out, struct error *err);
// All sockets of the context must be closed before.  NULL is fine.
void wire_context_free(struct wire_context *context);

// ---- Listening -------------------------------------------------------------------

// Listens on an endpoint (address_endpoint).  Peers must complete their handshake within 5 s; those
// that set a routing id are refused.  Returns STATUS_BUSY if the endpoint is in use.
MUST_CHECK enum status wire_bind(struct wire_socket **out, struct wire_context *context,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);

// Closes the connections of a listening socket that are open at the call, and keeps listening.
// With a guard, it closes only connections that have sent no message, and connections with a key
// that `admit` now rejects.  Peers that `admit` accepts reconnect; messages in flight may be lost.
void wire_hang_up(struct wire_socket *socket);

// True while the connection on which a message came to a listening socket is open.
bool wire_is_connected(const struct wire_socket *socket, const struct wire_route *route);

// True if the owner of the connection `route` has more unread bytes (accepted by wire_send, but not
// yet sent to its peers) than `most`, or than half of the service's bound that is still free.
bool wire_has_unread(const struct wire_socket *socket, const struct wire_route *route,
                     uint64_t most);

// Returns the bytes that wire_send accepted on all listening sockets of the context and that are
// not sent yet.
size_t wire_unsent_bytes(struct wire_context *context);

// Reads the counters of a listening socket.
void wire_count(const struct wire_socket *socket, struct wire_counters *out);

// Moves up to `max` complaints to `out`: whose connections were closed since the last call, and
// why.  Returns their number.  Beyond 64 between two calls peers are counted, but not named.
unsigned wire_complaints(const struct wire_socket *socket, struct wire_complaint *out,
                         unsigned max);

// ---- Connecting ------------------------------------------------------------------

// Creates a DEALER that connects to an endpoint in the background, with retries.  TCP: with the
// credentials `pass` (copied; NULL: no keys).  ipc: only if no other users than those of `trust`
// (copied; NULL: not checked) can listen in the folder, else returns the errors of
// peer_open_folder; connects to that folder even if another one replaces it later, and closes the
// connection if a message comes from another user.
//
// The queue of received messages has no limit: with a limit libzmq would stop its input, and a peer
// could then end the program (an assertion in libzmq 4.3.5).  So the caller must call wire_receive
// often, on all its sockets.  Instead, the rate is limited: the socket closes its connection
// (WIRE_HANDSHAKE_CLOSED) and frees the queue if it receives more in a second than the table says,
// or 64 unreadable messages in 10 s.  If a peer announces a frame larger than the table says,
// libzmq closes the connection and does not connect again: open a new socket after some silence.
// A message of endless frames has no bound.
//
//   service  frame    messages a second  bytes a second
//   ingest   1 MiB    8192               16 MiB
//   other    16 MiB   65536              512 MiB
MUST_CHECK enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                                    const char *endpoint, enum address_service service,
                                    const struct wire_pass *pass, const struct peer_trust *trust,
                                    struct error *err);

// Returns the result of the last handshake over TCP, with or without a pass.  For ipc
// WIRE_HANDSHAKE_NONE, _CLOSED or _MOVED.
enum wire_handshake wire_handshake(struct wire_socket *socket);

// Why the connection was closed, after WIRE_HANDSHAKE_CLOSED: who the peer is and what it did.
// Valid until wire_close.
const char *wire_trouble(const struct wire_socket *socket);

// Counts a received message that the caller could not decode.
void wire_count_garbage(struct wire_socket *socket);

// ---- Both ------------------------------------------------------------------------

// Closes the socket, whose frames must be released; discards unsent messages and removes the file
// of a listening ipc socket.  NULL is fine.
void wire_close(struct wire_socket *socket);

// Sends one frame; never blocks.  `route` is NULL on a connecting socket.  Returns STATUS_FULL if
// too much is unsent or no server is connected, STATUS_UNREACHABLE if the peer of `route` has
// disconnected.
MUST_CHECK enum status wire_send(struct wire_socket *socket, const struct wire_route *route,
                                 const void *bytes, size_t size);

// Receives one frame; never blocks.  Returns STATUS_NO_DATA if there is none.  A listening socket
// takes turns among owners and their connections, by bytes.
MUST_CHECK enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame);
void wire_frame_release(struct wire_frame *frame);

// Waits until one of `sockets` (NULL entries are skipped) or the descriptor `fd` (-1: none) is
// readable, or `timeout_ns` has elapsed (negative: no timeout).  `count` is at most 31.  Sets bit i
// of `*ready` if sockets[i] is readable, and bit `count` if `fd` is.  A signal ends the wait with
// `*ready` 0.
void wire_wait(struct wire_socket *const *sockets, size_t count, int fd, int64_t timeout_ns,
               uint32_t *ready);

#endif
