// Client sockets: each connects to one service of a collector, over ipc or TCP.  A socket is a
// ZeroMQ DEALER, implemented by libzmq.  Over TCP it can authenticate and encrypt with CURVE keys.
// A message has one frame.  The collector's side is listener.h.
//
// One thread at a time may use a socket.  The thread that creates it may pass it to a thread that
// it starts afterwards.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/message.h"
#include "common/wire/peer_folder.h"
#include "common/wire/socket_keys.h"

struct wire_context; // libzmq's threads; one per program or library handle; any thread
struct wire_socket;

// Pass: a client's credentials for a connection to a collector that has keys.
struct wire_pass {
    struct wire_keypair own; // the client's
    unsigned char server_key[WIRE_KEY_SIZE];
};

// Result of the last handshake.
enum wire_handshake {
    WIRE_HANDSHAKE_NONE,    // no peer answered so far
    WIRE_HANDSHAKE_DONE,    // succeeded
    WIRE_HANDSHAKE_REFUSED, // the server does not admit our key.  libzmq does not
                            // retry: create a new socket after a delay
    WIRE_HANDSHAKE_BROKEN,  // aborted: the server's key is not pass->server_key, only
                            // one side uses keys, or the server is full.  libzmq retries
                            // endlessly or never: create a new socket after a delay
    WIRE_HANDSHAKE_CLOSED,  // this side closed the connection: the peer is not trusted or
                            // sends too much (wire_trouble).  Create a new socket after a delay
    WIRE_HANDSHAKE_MOVED,   // ipc: the folder was replaced or removed: create a new socket
    WIRE_HANDSHAKE_LOST,    // a connection ended, and with it what was sent or awaited.  libzmq
                            // retries, unless the peer broke ZMTP: create a new socket
};

MUST_CHECK enum status wire_context_new(struct wire_context **out, struct error *err);
// All sockets of the context must be closed before.  NULL is fine.
void wire_context_free(struct wire_context *context);

// Creates a socket that connects to an endpoint (address_endpoint) in the background, with retries.
// TCP: with the credentials `pass` (copied; NULL: no keys).  ipc: only if no other users than those
// of `trust` (copied; NULL: not checked) can listen in the folder, else returns the errors of
// peer_open_folder; connects to that folder even if another one replaces it later, and closes the
// connection if a message comes from another user.
//
// The queue of received messages has no limit: with a limit libzmq would stop its input, and a peer
// could then end the program (an assertion in libzmq 4.3.5).  So the caller must call wire_receive
// often, on all its sockets.  Instead, the rate is limited: the socket closes its connection
// (WIRE_HANDSHAKE_CLOSED) and frees the queue if it receives more in a second than the table says,
// a message of several frames, or 64 unreadable messages in 10 s.  If a peer announces a frame
// larger than the table says, libzmq closes the connection and does not connect again: open a new
// socket after some silence.  A message of endless frames has no bound.
//
//   service  frame    messages a second  bytes a second
//   ingest   1 MiB    8192               16 MiB
//   other    16 MiB   65536              512 MiB
MUST_CHECK enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                                    const char *endpoint, enum address_service service,
                                    const struct wire_pass *pass, const struct peer_trust *trust,
                                    struct error *err);

// Closes the connection and discards unsent messages.  NULL is fine.
void wire_close(struct wire_socket *socket);

// Returns the result of the last handshake.  For ipc never WIRE_HANDSHAKE_REFUSED or _BROKEN.
enum wire_handshake wire_handshake(struct wire_socket *socket);

// True if two attempts to connect failed in a row, and none succeeded so far: nothing listens
// there.
bool wire_is_unanswered(struct wire_socket *socket);

// Why the connection was closed, after WIRE_HANDSHAKE_CLOSED: who the peer is and what it did.
// Valid until wire_close.
const char *wire_trouble(const struct wire_socket *socket);

// Counts a received message that the caller could not decode, as an unreadable message.
void wire_count_garbage(struct wire_socket *socket);

// Sends a message; never blocks.  Returns STATUS_FULL if too much is unsent or no server is
// connected.
MUST_CHECK enum status wire_send(struct wire_socket *socket, const void *bytes, size_t size);

// Receives a message; never blocks.  Returns STATUS_NO_DATA if there is none.  `*out` is borrowed
// until the next call, or wire_close.
MUST_CHECK enum status wire_receive(struct wire_socket *socket, struct wire_bytes *out);

// Waits until one of `sockets` (NULL entries are skipped) or the descriptor `fd` (-1: none) is
// readable, or `timeout_ns` has elapsed (negative: no timeout).  `count` is at most 31.  Sets bit i
// of `*ready` if sockets[i] is readable, and bit `count` if `fd` is.  A signal, or the end of a
// connection (wire_handshake), ends the wait with `*ready` 0.
void wire_wait(struct wire_socket *const *sockets, size_t count, int fd, int64_t timeout_ns,
               uint32_t *ready);
