// Server sockets: accept the connections of ZeroMQ peers over Unix sockets and TCP, and exchange
// messages with them (ZMTP 3, zmtp.h; a peer sees a ROUTER).  Only socket.c uses this module.
//
// Threads: each wire_context has one listener thread, which accepts connections, receives, sends
// and closes.  It waits for no peer and for no other thread.  Any thread may call the functions of
// a port (one server socket), but only one thread at a time port_receive and port_send.
//
// Memory has bounds, whatever peers send.  The sockets of one service share two:
//
//   service  frame_max      received  unsent
//   ingest   4 MiB + 64 KiB  16 MiB    4 MiB
//   query    64 KiB           2 MiB   17 MiB
//   live     64 KiB           1 MiB   13 MiB
//   admin    64 KiB           1 MiB    1 MiB, or one message, if nothing else is unsent
//
// - A frame counts as received, with 128 bytes more, from its announcement to wire_frame_release.
// - Fair share: an owner (peer_is_same_owner) may begin a frame only if the owner's received bytes,
//   with this frame, are at most the bytes that are free.  So one owner alone can use half of the
//   bound, and the next owner always finds some room.
// - A connection that finds no room, or has 256 KiB (ingest) or 128 KiB unread, is not read until
//   that has changed; nothing is lost.
// - wire_send refuses a message that exceeds the owner's fair share of the unsent bytes (messages
//   up to 64 KiB may use all but 1/32 of the bound), or if the connection already has more than
//   1 MiB (ingest), 5 MiB (live) or 16 MiB (query, admin) unsent.
// - The next query of a connection to query or admin is received after its last answer was sent.
// - A connection itself takes about 1 KB, and 2 KB in its handshake.
//
// A connection is closed (enum wire_cut) if its peer
// - breaks ZMTP;
// - needs more than 5 s for the handshake, or 30 s for a frame (2 s while another owner, which has
//   received less, waits for room);
// - reads nothing for 10 s (2 s while messages are refused), or not the whole of a message within
//   30 s of wire_send;
// - or sends more than 1,000 heartbeats and other commands in a second.
// One user or address may make 1,000 handshakes at once, then 1,000 a second (with keys 200).
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

// Guard: the authenticator of a server socket.  A thread of the wire_context calls `admit` with
// the peer's public key, once per connection and again in wire_hang_up (socket.h); `admit` returns
// true if the peer may connect.  `admit` must be fast and must not use the wire_context or its
// sockets.  When its decisions change, call wire_hang_up, which applies them to existing
// connections.
struct wire_guard {
    struct wire_keypair keys; // the server's own
    bool (*admit)(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE]);
    void *context; // passed to `admit`; borrowed until the socket is closed
};

struct wire_listen {
    enum address_service service;   // selects a line of the table above; passed to `admit`
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

// See wire_unsent_bytes.
size_t listener_unsent_bytes(struct listener *listener);

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
