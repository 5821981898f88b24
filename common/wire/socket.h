// Message sockets: a wrapper of ZeroMQ's ROUTER (server) and DEALER (client) sockets, with CURVE
// keys for authentication and encryption.  Only socket*.c include zmq.h.  Only one thread may use a
// socket at a time; the thread that creates it may leave it to a thread that it starts afterwards.
//
// Our messages have one frame.  libzmq limits the queues of each peer in messages, not in bytes.
// For received messages of one frame a peer occupies at most `queue_in` frames of `frame_max`
// bytes, one frame that is being received, and a few hundred kilobytes of libzmq's buffers.  For
// sending, `queue_out` messages wait at most.  libzmq closes the connection of a peer that
// announces a frame larger than `frame_max`, before it receives that frame.
//
//   service  frame_max  queue_in  queue_out   received, at most
//   ingest   8 MiB      8         64          72 MiB
//   query    64 KiB     16        8           1.1 MiB
//   live     64 KiB     16        64          1.1 MiB
//   admin    64 KiB     16        8           1.1 MiB
//
// Three weaknesses of libzmq 4.3.4 remain.  If the socket has a guard (wire_guard, below), only
// peers that it admits can exploit them:
// - A peer may send a message of any number of frames: the memory bound above does not hold then.
// - A peer that fills its queue, then sends a ZeroMQ heartbeat (PING) and disconnects can
//   crash the program.
// - A peer that sets the routing id which the ROUTER would assign next (a NUL and a 32-bit
//   counter) crashes the program.  The counter starts at a random value, so that a peer cannot
//   predict the next id; but a peer that holds a thousand ids spread over the range hits the next
//   id after some million connections.
#ifndef INFERSTAT_WIRE_SOCKET_H
#define INFERSTAT_WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/frame.h"
#include "common/wire/socket_dealer.h"
#include "common/wire/socket_keys.h"

struct wire_context; // libzmq's context; one per program or library handle; any thread
struct wire_socket;

MUST_CHECK enum status wire_context_new(struct wire_context **out, struct error *err);
// All sockets of the context must be closed before.  NULL is fine.
void wire_context_free(struct wire_context *context);

// ---- Listening -------------------------------------------------------------------

// Guard: the authenticator of a listening socket.  A thread of the wire_context calls `admit` with
// the peer's public key, once per connection and again in wire_hang_up; `admit` returns true if the
// peer may connect.  `admit` must be fast and must not use the wire_context or its sockets.  When
// its decisions change, call wire_hang_up, which applies them to existing connections.
struct wire_guard {
    struct wire_keypair keys; // the server's own
    bool (*admit)(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE]);
    void *context; // passed to `admit`; borrowed until the socket is closed
};

struct wire_listen {
    enum address_service service;   // selects a row of the table above; passed to `admit`
    bool owner_only;                // ipc: mode 0600 instead of 0660
    const struct wire_guard *guard; // TCP: admits CURVE peers by this guard (copied).  NULL: no
                                    // keys.  Ignored for ipc, which uses file permissions.
    // Maximum number of connections; 0: no limit.  A connection above the limit closes the oldest
    // one that has sent no message yet, so that idle unknown peers cannot lock out other peers; if
    // there is none, the new connection is closed.  RLIMIT_NOFILE must allow a descriptor for each.
    unsigned connections_max;
};

// Creates a ROUTER bound to an endpoint (address_endpoint).  Peers must complete their handshake
// within 5 s.  Returns STATUS_BUSY if the endpoint is in use.
MUST_CHECK enum status wire_bind(struct wire_socket **out, struct wire_context *context,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);

// Closes the connections of a listening socket that are open at the call, and keeps listening.
// With a guard, it closes only connections that have sent no message, and connections whose last
// message has a key that `admit` now rejects.  Peers that `admit` accepts reconnect; messages in
// flight may be lost.  Does nothing for a socket without a guard and without a connection limit.
void wire_hang_up(struct wire_socket *socket);

// Connection counters of a socket that was bound with a guard or a limit; zero for other sockets.
struct wire_counters {
    uint64_t connections; // currently open
    uint64_t over_limit;  // closed because of connections_max
    uint64_t strangers;   // handshakes refused by `admit`
    uint64_t handshakes;  // closed before any message, though not refused by `admit`: the
                          // handshake failed (no CURVE, a wrong server key, no ZeroMQ, a
                          // timeout), or it was a port scan
};

// Reads the counters.  Any thread, while the socket is open.
void wire_count(const struct wire_socket *socket, struct wire_counters *out);

// ---- Connecting ------------------------------------------------------------------

// Creates a DEALER that connects to an endpoint in the background, with retries.  `pass` is copied;
// NULL: no keys.  An ipc endpoint ignores it.
//
// Received messages wait without a limit until wire_receive: a limit would stop libzmq's input, and
// a peer could then end the program (an assertion in libzmq 4.3.5).  So the caller receives from
// all its sockets, and often.  The socket closes its connection (WIRE_HANDSHAKE_CLOSED), which
// frees what waits, if more is received in a second than the table says, or in 10 s 64 messages
// that cannot be read.  libzmq closes the connection of a peer that announces a larger frame, and
// connects again.  A message of endless frames has no bound.
//
//   service  frame    messages a second  bytes a second
//   ingest   1 MiB    8192               16 MiB
//   other    16 MiB   65536              512 MiB
MUST_CHECK enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                                    const char *endpoint, enum address_service service,
                                    const struct wire_pass *pass, struct error *err);

// Creates a DEALER that connects to a service of an ipc address, if only users that `trust`
// (copied) names can listen there: returns the errors of peer_open_folder.  It connects to that
// folder even if another one replaces it later.  Closes the connection if a message comes from
// another user.
MUST_CHECK enum status wire_connect_ipc(struct wire_socket **out, struct wire_context *context,
                                        const struct address *address, enum address_service service,
                                        const struct peer_trust *trust, struct error *err);

// Returns the result of the last handshake over TCP, with or without a pass.  For ipc
// WIRE_HANDSHAKE_NONE, _CLOSED or _MOVED.
enum wire_handshake wire_handshake(struct wire_socket *socket);

// Why the connection was closed, after WIRE_HANDSHAKE_CLOSED: who the peer is and what it did.
// Valid until wire_close.
const char *wire_trouble(const struct wire_socket *socket);

// Counts a received message that the caller could not decode.
void wire_count_garbage(struct wire_socket *socket);

// ---- Both ------------------------------------------------------------------------

// Closes the socket; discards unsent messages and removes the file of a bound ipc socket.  NULL is
// fine.  libzmq closes in the background: the endpoint may stay in use for a moment.
void wire_close(struct wire_socket *socket);

// Sends one frame; never blocks.  `route` is NULL on a DEALER.  Returns STATUS_FULL if the queue is
// full or no peer is connected, STATUS_UNREACHABLE if the peer of `route` has disconnected.
MUST_CHECK enum status wire_send(struct wire_socket *socket, const struct wire_route *route,
                                 const void *bytes, size_t size);

// Receives one frame; never blocks.  Returns STATUS_NO_DATA if there is none, STATUS_INVALID if it
// discarded a message with a wrong number of frames (the caller counts such messages).
MUST_CHECK enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame);
void wire_frame_release(struct wire_frame *frame);

// Waits until one of `sockets` (NULL entries are skipped) or the descriptor `fd` (-1: none) is
// readable, or `timeout_ns` has elapsed (negative: no timeout).  `count` is at most 31.  Sets bit i
// of `*ready` if sockets[i] is readable, and bit `count` if `fd` is.  A signal ends the wait with
// `*ready` 0.
void wire_wait(struct wire_socket *const *sockets, size_t count, int fd, int64_t timeout_ns,
               uint32_t *ready);

#endif
