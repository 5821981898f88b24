// All of ZeroMQ.  A socket never leaves the thread that made it.
//
// What libzmq may hold of one peer is bounded by messages, not bytes.  Receiving:
// `queue_in` messages of at most `frame_max` bytes each, of the service's line
// below, the one being assembled, and a few hundred kilobytes of its own.
// Sending: `queue_out` messages of what was given to wire_send.  A frame of more
// than `frame_max` ends the connection, unseen.
//
//   service  frame_max  queue_in  queue_out   received, at most
//   ingest   8 MiB      8         64          72 MiB
//   query    64 KiB     16        8           1.1 MiB
//   live     64 KiB     16        64          1.1 MiB
//   admin    64 KiB     16        8           1.1 MiB
//
// Three holes stay (libzmq 4.3.4), and with a guard only a peer that was admitted gets
// to them:
// - A message of endless frames is assembled without looking at any limit.
// - One that fills its queue, sends a ZeroMQ heartbeat (PING) behind and breaks the
//   connection can end the program.
// - One that brings the id which the ROUTER would give out next (a NUL and 32 bits,
//   counted) ends the program.  The count begins at random, so that it cannot be
//   foretold; but one that holds a thousand ids spread over all of them hits it
//   after some million connections.
#ifndef INFERSTAT_WIRE_SOCKET_H
#define INFERSTAT_WIRE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/wire/address.h"

struct wire_context; // one a program or monitor; any thread
struct wire_socket;

MUST_CHECK enum status wire_context_new(struct wire_context **out, struct error *err);
// All its sockets must be closed.
void wire_context_free(struct wire_context *context);

// ---- Keys ------------------------------------------------------------------------

enum {
    WIRE_KEY_SIZE = 32,
    WIRE_KEY_TEXT_SIZE = 41, // in Z85, terminating NUL included
};

// Keys of CURVE (ZeroMQ RFC 26), Curve25519.
struct wire_keypair {
    unsigned char public_key[WIRE_KEY_SIZE], secret_key[WIRE_KEY_SIZE];
};

// A new pair, from the system's randomness.  Its public key begins with a letter or
// digit when written in Z85, so that nobody takes it for an option.
MUST_CHECK enum status wire_keypair_new(struct wire_keypair *out, struct error *err);

// Whether the public key is the one of the secret key.
bool wire_keypair_fits(const struct wire_keypair *pair);

// Writes a key in Z85 (40 printable characters without space and quotation marks)
// to WIRE_KEY_TEXT_SIZE bytes.  Returns `text`.
char *wire_key_text(char *text, const unsigned char key[WIRE_KEY_SIZE]);

// Reads a key in Z85, exactly 40 characters; false when it is none.  A key of
// zeroes is none.
bool wire_key_parse(unsigned char key[WIRE_KEY_SIZE], const char *text);

// ---- Listening -------------------------------------------------------------------

// Who may connect.  `admit` decides by the peer's public key, in a thread of the
// context's: it must be quick and must not use the context.  It is asked once a
// connection, so that what it says later does not end those that are there
// (wire_hang_up does), and every frame tells its sender's key.
struct wire_guard {
    struct wire_keypair keys; // the server's own
    bool (*admit)(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE]);
    void *context; // borrowed until the socket is closed
};

struct wire_listen {
    enum address_service service;   // the bounds above, and what `admit` is told
    bool owner_only;                // ipc: mode 0600 instead of 0660
    const struct wire_guard *guard; // TCP: CURVE only, by these rules; copied.  NULL: plain.
                                    // Ignored for ipc, which goes by permission.
    // Connections at one time; 0: no limit.  One more ends the oldest of those
    // that have not sent a message yet, so that strangers cannot keep others
    // out, or itself where there is none.  Each takes a file descriptor: the
    // process's limit has to allow all.
    unsigned connections_max;
};

// A ROUTER bound to an endpoint (address_endpoint).  STATUS_BUSY when the endpoint
// is taken.  A peer that has not finished its handshake within 5 s is cut off.
MUST_CHECK enum status wire_bind(struct wire_socket **out, struct wire_context *context,
                                 const char *endpoint, const struct wire_listen *listen,
                                 struct error *err);

// Ends all connections of a socket that was bound with a guard or a limit, and goes
// on listening: peers that are still admitted connect anew by themselves, what they
// had sent may be lost.  Nobody whom `admit` let in before the call stays.
void wire_hang_up(struct wire_socket *socket);

// What has come to a socket that was bound with a guard or a limit; else zeroes.
struct wire_counters {
    uint64_t connections; // there now
    uint64_t over_limit;  // ended because of connections_max
    uint64_t strangers;   // handshakes refused by `admit`
    uint64_t handshakes;  // ended without a message though `admit` said nothing against
                          // them: another mechanism, a wrong server key, no ZeroMQ, too
                          // slow, or only looking
};

// Any thread, while the socket is open.
void wire_count(const struct wire_socket *socket, struct wire_counters *out);

// ---- Connecting ------------------------------------------------------------------

// What a connection to a server with a guard needs.
struct wire_pass {
    struct wire_keypair own;
    unsigned char server_key[WIRE_KEY_SIZE];
};

// A DEALER connected (or connecting, for as long as it takes) to an endpoint, with
// `pass` (copied; NULL: plain).
MUST_CHECK enum status wire_connect(struct wire_socket **out, struct wire_context *context,
                                    const char *endpoint, const struct wire_pass *pass,
                                    struct error *err);

// How the handshakes of a connecting socket have gone.
enum wire_handshake {
    WIRE_HANDSHAKE_NONE,    // nobody was there so far
    WIRE_HANDSHAKE_DONE,    // the last one was done
    WIRE_HANDSHAKE_REFUSED, // the server does not admit our key.  libzmq does not try
                            // again: the socket has to be made anew, later
    WIRE_HANDSHAKE_BROKEN,  // it broke off: the server has another key than the pass
                            // says, or it wants a pass and there is none, or the other
                            // way round, or it has no room.  libzmq tries again for
                            // ever or never: better make it anew, later
};

// Over TCP, with or without a pass; ipc always says NONE.
enum wire_handshake wire_handshake(struct wire_socket *socket);

// ---- Both ------------------------------------------------------------------------

// Drops what is unsent, and removes the file of an ipc socket that was bound.
// NULL is fine.  libzmq closes in the background: the
// endpoint may be taken for a moment longer.
void wire_close(struct wire_socket *socket);

// The peer a ROUTER received from, to answer to; copied freely.
struct wire_route {
    unsigned char size;
    unsigned char id[255];
};

// Sends one frame without waiting.  `route` is NULL on a DEALER.  STATUS_FULL:
// the queue is full or nobody is connected; STATUS_UNREACHABLE: a route that is
// gone.  Never blocks.
MUST_CHECK enum status wire_send(struct wire_socket *socket, const struct wire_route *route,
                                 const void *bytes, size_t size);

// A received frame: `bytes` is borrowed until wire_frame_release.
struct wire_frame {
    struct wire_route route;          // ROUTER only
    bool has_key;                     // a guard admitted the sender: always, where there is one
    unsigned char key[WIRE_KEY_SIZE]; // with which public key
    const void *bytes;
    size_t size;
    void *handle;
};

// Receives one frame without waiting.  STATUS_NO_DATA: there is none.
// STATUS_INVALID: a message of a wrong shape was thrown away (count it).
MUST_CHECK enum status wire_receive(struct wire_socket *socket, struct wire_frame *frame);
void wire_frame_release(struct wire_frame *frame);

// Waits until one of `sockets` (NULL entries are skipped) can be received from,
// or `fd` (-1: none) can be read, or `timeout_ns` is over (negative: for ever).
// Sets bit i of `*ready` for sockets[i] and bit `count` for the fd.  count <= 31.
// A signal ends the wait early with nothing ready.
void wire_wait(struct wire_socket *const *sockets, size_t count, int fd, int64_t timeout_ns,
               uint32_t *ready);

#endif
