// Reconnecting connection to one service of a collector (query, live or admin).  The client may
// know several server keys of the collector.  After a failed handshake the link retries with the
// next key.  After a failure with every key it first waits for an exponential back-off (1 to 10 s).
// Internal to client/remote: only remote_collector.c has links, and one thread uses them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct link {
    // Set by the owner, borrowed; the other members begin as zero, and only link.c sets them.
    struct wire_context *context;
    const struct address *address;
    const struct trust *trust;
    enum address_service service;

    struct wire_socket *socket;   // NULL: not created yet, dropped, or in back-off
    unsigned made;                // number of attempts so far to create a socket
    unsigned attempt;             // attempt number, selects the server key (trust_pass)
    unsigned failures;            // failed handshakes since the last that succeeded
    uint64_t retry_ns;            // monotonic: no new socket before the end of the back-off
    char closed[ERROR_TEXT_SIZE]; // if `trouble` is WIRE_HANDSHAKE_CLOSED: why this side closed it
    // Result of the last finished handshake; link_drop keeps it.  link_trouble makes a text of it.
    enum wire_handshake trouble;
};

// Maintains the connection: closes the socket if its handshake failed or the connection was lost,
// and creates a socket if there is none and no back-off.  Call it before each use and while waiting
// (link_patience_ns).  After it, link->socket may be
//   the same socket
//   a new socket  `made` has changed: what was sent and awaited on the old one is lost
//   NULL          in back-off, or there is no ipc folder
// Returns STATUS_DENIED in a back-off because the collector refused this user's key, is not trusted
// or sent too much; an error of trust_connect; else STATUS_OK.
MUST_CHECK enum status link_look(struct link *link, struct error *err);

// Closes the socket; queued messages and pending replies are lost.  The next link_look creates a
// new socket.
void link_drop(struct link *link);

// The longest time that the caller may wait by wire_wait before it calls link_look again: 50 ms
// without a socket, else UINT64_MAX (no limit).
uint64_t link_patience_ns(const struct link *link);

// True if nothing listens at the address: there is no ipc folder, or each attempt to connect was
// refused.  False once a peer has answered.
bool link_is_absent(const struct link *link);

// A text to append to the error message of a timeout: the reason if link->trouble is
// WIRE_HANDSHAKE_BROKEN (the last handshake was aborted), else "".  Static.
const char *link_trouble(const struct link *link);
