// A connection to one service of a collector, created on first use.  After a failed
// handshake it reconnects with the next known key of the server and, once all were tried,
// after a back-off.  One thread.  Internal to client/remote.
#ifndef INFERSTAT_CLIENT_REMOTE_LINK_H
#define INFERSTAT_CLIENT_REMOTE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct link {
    // Set by the owner, borrowed.
    struct wire_context *context;
    const struct address *address;
    const struct trust *trust;
    enum address_service service;

    struct wire_socket *socket;  // NULL: not connected, or waiting for retry_ns
    unsigned attempt;            // index of the pass
    unsigned failures;           // in a row
    uint64_t retry_ns;           // monotonic: no retry before
    enum wire_handshake trouble; // why the last socket was closed
};

// Maintains the connection: closes a socket whose handshake failed, and opens one when
// due.  Afterwards link->socket is the one to use: possibly a new one, on which nothing
// was sent, or NULL.  STATUS_DENIED: the collector refused this user's key with every
// known server key.
MUST_CHECK enum status link_look(struct link *link, struct error *err);

// Closes the socket and discards queued messages and pending replies; the next link_look
// opens another.
void link_drop(struct link *link);

// Maximum time until the next link_look, while the connection or its handshake is pending.
// UINT64_MAX: none, wait for messages.
uint64_t link_patience_ns(const struct link *link);

// The connection's last problem as text, "" if none is known; completes the error of a
// timeout.  Static.
const char *link_trouble(const struct link *link);

#endif
