// Reconnecting connection to one service of a collector.  After a failed handshake it retries with
// the next known server key; after a failure with every key it waits for an exponential back-off.
// One thread.  Internal to client/remote.
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

    struct wire_socket *socket;  // NULL: not created yet, or in back-off
    unsigned attempt;            // selects the server key (trust_pass)
    unsigned failures;           // consecutive failed handshakes
    uint64_t retry_ns;           // end of the back-off, monotonic
    enum wire_handshake trouble; // why the last socket was closed
};

// Maintains the connection: closes a socket whose handshake failed, and opens a new one unless in
// back-off.  link->socket may change: to a new socket, on which the caller sends its messages
// again, or to NULL (back-off).  STATUS_DENIED: in back-off, because the collector refused this
// user's key.
MUST_CHECK enum status link_look(struct link *link, struct error *err);

// Closes the socket; queued messages and pending replies are lost.  The next link_look opens a
// new socket.
void link_drop(struct link *link);

// Maximum time between calls of link_look: 50 ms with keys, as handshakes are polled; UINT64_MAX
// for plain connections.
uint64_t link_patience_ns(const struct link *link);

// Text to append to the message of a timeout: the reason if the last handshake was aborted, else
// "".  Static.
const char *link_trouble(const struct link *link);

#endif
