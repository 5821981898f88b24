// ZeroMQ client socket (a DEALER of libzmq): implements the connecting wire_socket, which has one
// server.  Only socket.c uses it; socket.h says which threads may call it.
#ifndef INFERSTAT_WIRE_SOCKET_DEALER_H
#define INFERSTAT_WIRE_SOCKET_DEALER_H

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/frame.h"
#include "common/wire/peer_folder.h"
#include "common/wire/socket_keys.h"

struct dealer;

// Pass: the client's credentials for a connection to a server with a guard.
struct wire_pass {
    struct wire_keypair own; // the client's
    unsigned char server_key[WIRE_KEY_SIZE];
};

// Result of the last handshake of a connecting socket.
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
};

// Creates a DEALER that connects in the background; parameters as of wire_connect.  `context` is
// libzmq's.
MUST_CHECK enum status dealer_open(struct dealer **out, void *context, const char *endpoint,
                                   enum address_service service, const struct wire_pass *pass,
                                   const struct peer_trust *trust, struct error *err);
// Closes the connection and discards unsent messages.  NULL is fine.
void dealer_close(struct dealer *dealer);

// The implementations of the functions of socket.h with these names.
enum wire_handshake dealer_handshake(struct dealer *dealer);
const char *dealer_trouble(const struct dealer *dealer);
void dealer_count_garbage(struct dealer *dealer);
MUST_CHECK enum status dealer_send(struct dealer *dealer, const void *bytes, size_t size);
MUST_CHECK enum status dealer_receive(struct dealer *dealer, struct wire_frame *frame);
void dealer_frame_release(struct wire_frame *frame);

// libzmq's socket, to wait until it is readable; NULL: the connection was closed.
void *dealer_zmq(struct dealer *dealer);

#endif
