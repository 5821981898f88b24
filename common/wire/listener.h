// Listening sockets.  They speak ZMTP 3 (zmtp.h) over Unix sockets and TCP: to their peers they are
// ROUTERs.  One thread per wire_context accepts connections, receives, sends and closes; it waits
// for no peer and for no other thread.  The functions of a port are for any thread; port_receive
// and port_send of one port for one thread at a time.  Only socket.c uses this module.
//
// Memory, whatever peers send.  The sockets of one service share two bounds:
//
//   service  frame_max      received  unsent
//   ingest   4 MiB + 64 KiB  16 MiB    4 MiB
//   query    64 KiB           2 MiB   17 MiB
//   live     64 KiB           1 MiB   13 MiB
//   admin    64 KiB           1 MiB    1 MiB, or one message, if nothing else is unsent
//
// "Received" are the bytes of frames, and 128 more for each, from their announcement until
// wire_frame_release.  An owner (peer_is_same_owner) begins to receive a frame only if it then has
// no more than is left for all: one alone can use half of the bound, and there is always something
// left for the next one.  A connection that finds no room, or has 256 KiB (ingest) or 128 KiB
// unread, is not read until that has changed; nothing is lost.  The same rule holds for unsent
// bytes, where wire_send refuses the message, except that small messages may use all but a 32nd of
// the bound.  A connection has at most 1 MiB (ingest), 5 MiB (live) or 16 MiB unsent when a message
// more is taken for it; one to query or admin has its next query received when all is sent.  A
// connection has about 1 KB more, in its handshake 2 KB.
//
// A connection is closed (enum wire_cut) if its peer breaks ZMTP, needs more than 5 s for the
// handshake or 30 s for a frame (2 s while another owner with less waits for room), reads nothing
// for 10 s (2 s while messages are refused), or sends 1,000 heartbeats or the like a second.  Of
// one user or address 1,000 handshakes may come at once and 1,000 a second, with keys 200.
#ifndef INFERSTAT_WIRE_LISTENER_H
#define INFERSTAT_WIRE_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/cut.h"
#include "common/wire/frame.h"
#include "common/wire/socket_keys.h"

struct listener; // one per wire_context that listens
struct port;     // a listening socket

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
    // Maximum number of connections; 0: 65536.  A connection above the limit closes the oldest
    // one that has sent no message yet, so that idle unknown peers cannot lock out other peers; if
    // there is none, the new connection is closed.  RLIMIT_NOFILE must allow a descriptor for each.
    unsigned connections_max;
    // Not NULL: called by a thread of the wire_context, as `admit` above, when a peer has completed
    // its handshake (false: its connection is closed), and when a connection that was let in ends.
    bool (*enter)(void *context, const struct wire_peer *peer);
    void (*leave)(void *context, const struct wire_peer *peer);
    void *context; // passed to both; borrowed until the socket is closed
};

// Connection counters of a listening socket.
struct wire_counters {
    uint64_t connections;     // currently open
    uint64_t over_limit;      // closed because of connections_max or `enter`
    uint64_t strangers;       // handshakes refused by `admit`
    uint64_t handshakes;      // closed before any message, though not refused by `admit`: the
                              // handshake failed (no CURVE, a wrong server key, no ZeroMQ, a
                              // timeout), or it was a port scan
    uint64_t cuts[WIRE_CUTS]; // closed by this side, by reason
};

// Connections of one peer that were closed for the same reason.
struct wire_complaint {
    struct wire_peer peer;
    enum wire_cut cut;
    uint64_t count;
};

// Creates a listener and starts its thread.
MUST_CHECK enum status listener_new(struct listener **out, struct error *err);
// Ends the thread.  All ports must be closed before.  NULL is fine.
void listener_free(struct listener *listener);

// Listens on an endpoint; see wire_bind.
MUST_CHECK enum status port_open(struct port **out, struct listener *listener, const char *endpoint,
                                 const struct wire_listen *listen, struct error *err);
// Closes all connections.  All frames must be released before.  NULL is fine.
void port_close(struct port *port);

// A descriptor that is readable while port_receive has something.
int port_fd(const struct port *port);

// The implementations of the functions of socket.h with these names.
MUST_CHECK enum status port_receive(struct port *port, struct wire_frame *frame);
void port_frame_release(struct wire_frame *frame);
MUST_CHECK enum status port_send(struct port *port, const struct wire_route *route,
                                 const void *bytes, size_t size);
bool port_is_connected(struct port *port, const struct wire_route *route);
bool port_has_unread(struct port *port, const struct wire_route *route, uint64_t most);
void port_hang_up(struct port *port);
void port_count(struct port *port, struct wire_counters *out);
unsigned port_complaints(struct port *port, struct wire_complaint *out, unsigned max);

#endif
