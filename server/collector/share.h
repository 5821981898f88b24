// How much of each peer's messages is on its way from ingest to the writer.
//
// A producer keeps to the credit it was given, and then what is under way of all
// producers together is bounded.  One that does not would fill the inbox, and others
// would wait behind it: what it sends far beyond its credit is not taken, as if it
// had been lost on the way.  Among those that keep to it ZeroMQ's ROUTER takes turns.
#ifndef INFERSTAT_COLLECTOR_SHARE_H
#define INFERSTAT_COLLECTOR_SHARE_H

#include <stdint.h>

#include "common/core/error.h"
#include "common/wire/socket.h"

struct share;
struct share_peer;

MUST_CHECK enum status share_new(struct share **out, struct error *err);
// Everything taken has been given back.  NULL is fine.
void share_free(struct share *share);

// Takes room for a message of the peer at a socket, `records` in it.  NULL where it is
// far beyond its credit, or where there is no memory.  Ingest thread only.
struct share_peer *share_take(struct share *share, unsigned socket, const struct wire_route *route,
                              uint32_t records);

// Gives it back, once the message is dealt with.  Any thread; NULL is fine.
void share_give(struct share_peer *peer, uint32_t records);

// The credit that each peer is told from now on.  For some seconds the one of before
// counts, where it was larger, since it was not told otherwise yet.  Writer thread.
void share_set_credit(struct share *share, uint32_t credit, uint64_t now_ns);

#endif
