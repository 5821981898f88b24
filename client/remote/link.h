// A connection to one service of a collector: made when it is first needed, and
// made anew where its handshake failed, with the next of the server's keys known
// here and, when all have been tried, after a wait.  One thread.  Inside
// client/remote only.
#ifndef INFERSTAT_CLIENT_REMOTE_LINK_H
#define INFERSTAT_CLIENT_REMOTE_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/wire/address.h"
#include "common/wire/socket.h"
#include "common/wire/trust.h"

struct link {
    // Set by the owner, borrowed.
    struct wire_context *context;
    const struct address *address;
    const struct trust *trust;
    enum address_service service;

    struct wire_socket *socket;  // NULL: not made, or waiting for retry_ns
    unsigned attempt;            // which of the passes
    unsigned failures;           // in a row
    uint64_t retry_ns;           // monotonic: not before
    enum wire_handshake trouble; // why the last socket was given up
};

// Looks after the connection: gives up a socket whose handshake has failed, makes
// one where it is time.  Afterwards link->socket is the one to use; it may be
// another one than before, on which nothing was sent, or NULL.  STATUS_DENIED: the
// collector has refused our key with all of its own.
MUST_CHECK enum status link_look(struct link *link, struct error *err);

// Gives the socket up, with what it has queued and answers on their way; the next
// link_look makes another.
void link_drop(struct link *link);

// How long to wait until the next link_look at most: while nothing is connected
// yet, or a handshake may yet fail.  UINT64_MAX: until something comes.
uint64_t link_patience_ns(const struct link *link);

// What is wrong with the connection, in words, "" where nothing is known; for an
// error that says nobody has answered.  Static.
const char *link_trouble(const struct link *link);

#endif
