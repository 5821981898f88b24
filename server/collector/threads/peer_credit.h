// How much of each peer's messages is on its way from ingest to the writer.
//
// A producer keeps to the credit it was given, and then what is under way of all
// producers together is bounded.  One that does not would fill the inbox, and others
// would wait behind it: what it sends far beyond its credit is not taken, as if it
// had been lost on the way.  Among those that keep to it ZeroMQ's ROUTER takes turns.
#ifndef INFERSTAT_COLLECTOR_THREADS_PEER_CREDIT_H
#define INFERSTAT_COLLECTOR_THREADS_PEER_CREDIT_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/socket.h"

struct peer_credit;
struct peer_credit_peer;

MUST_CHECK enum status peer_credit_new(struct peer_credit **out, struct error *err);
// Everything taken has been given back.  NULL is fine.
void peer_credit_free(struct peer_credit *peer_credit);

// Takes room for a message of the peer at a socket, `records` in it.  NULL where it is
// far beyond its credit, or where there is no memory.  Ingest thread only.
struct peer_credit_peer *peer_credit_take(struct peer_credit *peer_credit, unsigned socket,
                                          const struct wire_route *route, uint32_t records);

// Gives it back, once the message is dealt with.  Any thread; NULL is fine.
void peer_credit_give(struct peer_credit_peer *peer, uint32_t records);

// The credit that each peer is told from now on.  For some seconds the one of before
// counts, where it was larger, since it was not told otherwise yet.  Writer thread.
void peer_credit_set_credit(struct peer_credit *peer_credit, uint32_t credit, uint64_t now_ns);

#endif
