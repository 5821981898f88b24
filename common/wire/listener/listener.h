// Server sockets: accept the connections of ZeroMQ peers over Unix sockets and TCP, and exchange
// messages with them (ZMTP 3, zmtp.h; a peer sees a ROUTER).  A message has one frame.
//
// Threads: a listener has one thread, which accepts connections, receives, sends and closes.  It
// waits for no peer and for no other thread.  A port is one server socket.  Any thread may call its
// functions, but port_receive and port_send only one thread at a time.
//
// Memory has bounds, whatever peers send.  Each service (enum address_service) has a bound on the
// bytes received and one on the bytes unsent, of all its ports together; frame_max is per frame:
//
//   service  frame_max      received  unsent
//   ingest   4 MiB + 64 KiB  16 MiB    4 MiB
//   query    64 KiB           2 MiB   17 MiB
//   live     64 KiB           1 MiB   13 MiB
//   admin    64 KiB           1 MiB    1 MiB
//
// - A frame counts as received, with 128 bytes more, from its header's arrival to port_release.
// - Fair share: an owner (one key or user; peer_is_same_owner) may begin a frame only if the bytes
//   received of the owner, with this frame, are at most the bytes that are free.  So one owner
//   alone can use half of the bound, and the next owner always finds some room.
// - A connection that finds no room, or of which port_receive has yet to take 256 KiB (ingest) or
//   128 KiB, is not read until that has changed; nothing is lost.
// - port_send refuses a message if the connection already has more than 1 MiB (ingest), 5 MiB
//   (live) or 16 MiB (query, admin) unsent.  It also refuses one beyond the owner's fair share of
//   the unsent bytes, unless the service has nothing unsent, or the message has up to 64 KiB and
//   leaves 1/32 of the bound free.
// - The next query of a connection to query or admin is received after its last answer was sent.
// - A connection itself takes about 1 KB, and 2 KB in its handshake.
//
// A connection is closed (enum wire_cut) if its peer
// - breaks ZMTP, sets a routing id or sends a message of several frames;
// - needs more than 5 s for the handshake, or 30 s for a frame (2 s while another owner, which has
//   received less, waits for room);
// - reads nothing for 10 s (2 s while messages are refused), or not the whole of a message within
//   30 s of port_send;
// - or sends more than 1,000 heartbeats and other commands in a second.
// One user, IPv4 address or /64 of IPv6 may make 1,000 handshakes at once, then 1,000 a second
// (with keys 200).  All users together may make 5,000 a second, and so may all addresses (with keys
// 1,000).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/listener/cut.h"
#include "common/wire/peer.h"

struct listener; // one per program
struct port;     // a listening socket

// Reply address: the number of the connection on which a port received a message.  The caller
// passes it to port_send for the reply and may copy it.  A port uses each number only once.
struct wire_route {
    uint64_t connection;
};

// A received message.
struct wire_frame {
    struct wire_route route;
    struct wire_peer peer; // the sender; PEER_KEY: a TCP port with keys has authenticated it
    const void *bytes;     // borrowed until port_release; NULL: empty
    size_t size;
    void *received; // private: owns `bytes`
};

// Guard: the authenticator of a port.  The listener's thread calls `admit` with the peer's public
// key when a connection's handshake is complete, and port_hang_up calls it again; `admit` returns
// true if the peer may connect.  It must be fast and must not use the listener or its ports.  When
// its decisions change, call port_hang_up, which applies them to existing connections.
struct wire_guard {
    struct wire_keypair keys; // the server's own
    bool (*admit)(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE]);
    void *context; // passed to `admit`; borrowed until the port is closed
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
    // Not NULL: called by the listener's thread, as `admit` above, when a peer has completed its
    // handshake (false: its connection is closed), and when a connection that was let in ends.
    bool (*enter)(void *context, const struct wire_peer *peer);
    void (*leave)(void *context, const struct wire_peer *peer);
    void *context; // passed to both; borrowed until the port is closed
};

struct wire_counters {
    uint64_t connections;     // currently open
    uint64_t handshakes;      // closed before any message, though not refused by `admit`: the
                              // handshake failed (no CURVE, a wrong server key, no ZeroMQ, a
                              // timeout), or it was a port scan
    uint64_t cuts[WIRE_CUTS]; // closed or refused by this side, by reason; not by port_hang_up
};

// Connections of one owner and host that were closed or refused for the same reason.
struct wire_complaint {
    struct wire_peer peer;
    enum wire_cut cut;
    uint64_t count;
};

// Creates a listener and starts its thread.
MUST_CHECK enum status listener_new(struct listener **out, struct error *err);
// Ends the thread.  All ports must be closed before.  NULL is fine.
void listener_free(struct listener *listener);

// Bytes that port_send accepted on all ports and that are not sent yet.  Any thread.
size_t listener_unsent_bytes(struct listener *listener);

// Listens on an endpoint (address_endpoint).  Returns STATUS_BUSY if it is in use.
MUST_CHECK enum status port_open(struct port **out, struct listener *listener, const char *endpoint,
                                 const struct wire_listen *listen, struct error *err);
// Closes all connections and removes the file of an ipc socket; discards unsent messages.  All
// frames must be released before.  NULL is fine.
void port_close(struct port *port);

// Receives a message; never blocks.  Returns STATUS_NO_DATA if there is none.  Takes turns among
// owners, by bytes, and among the connections of each.
MUST_CHECK enum status port_receive(struct port *port, struct wire_frame *frame);
void port_release(struct wire_frame *frame);

// Sends a copy of a message (MESSAGE_SIZE_MAX bytes at most); never blocks.  Returns STATUS_FULL if
// too much is unsent, STATUS_UNREACHABLE if the peer of `route` has disconnected.
MUST_CHECK enum status port_send(struct port *port, const struct wire_route *route,
                                 const void *bytes, size_t size);

// Waits until one of `ports` or the descriptor `fd` (-1: none) is readable, or `timeout_ns` has
// elapsed.  `count` is at most 31.  Sets bit i of `*ready` if port_receive has something for
// ports[i], and bit `count` if `fd` is readable.  A signal ends the wait with `*ready` 0.
void port_wait(struct port *const *ports, size_t count, int fd, uint64_t timeout_ns,
               uint32_t *ready);

// True while the connection on which a message came is open.
bool port_is_connected(struct port *port, const struct wire_route *route);

// True if the owner of the connection `route` has more unread bytes (accepted by port_send, but not
// yet sent to its peers) than `most`, or than half of the service's bound that is still free.
bool port_has_unread(struct port *port, const struct wire_route *route, uint64_t most);

// Closes the connections that are open at the call, and keeps listening.  With a guard, it closes
// only connections with a key that `admit` now rejects.  Messages in flight on them may be lost.
void port_hang_up(struct port *port);

void port_count(struct port *port, struct wire_counters *out);

// Moves up to `max` complaints to `out`: whose connections were closed since the last call, and
// why.  Returns their number.  Beyond 64 between two calls peers are counted, but not named.
unsigned port_complaints(struct port *port, struct wire_complaint *out, unsigned max);
