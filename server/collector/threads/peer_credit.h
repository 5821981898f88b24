// Backpressure by credit: limits the records of each producer that are in flight between
// ingest and the writer.
//
// Acknowledgements grant producers credit, which bounds what they have in flight together.  A
// producer that ignores it would fill the inbox and block the others, so a message far beyond
// its credit is dropped, as if lost on the network.  Among producers that obey, ZeroMQ's
// ROUTER receives round-robin.
#ifndef INFERSTAT_COLLECTOR_THREADS_PEER_CREDIT_H
#define INFERSTAT_COLLECTOR_THREADS_PEER_CREDIT_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/wire/socket.h"

struct peer_credit;
struct peer_credit_peer;

MUST_CHECK enum status peer_credit_new(struct peer_credit **out, struct error *err);
// All credit must have been released.  Accepts NULL.
void peer_credit_free(struct peer_credit *peer_credit);

// Counts a message with `records` records as in flight.  Returns NULL when the peer is far
// beyond its credit, or when out of memory.  Ingest thread only.
struct peer_credit_peer *peer_credit_acquire(struct peer_credit *peer_credit, unsigned socket,
                                             const struct wire_route *route, uint32_t records);

// Ends the count of a message that was processed or discarded.  Any thread; accepts NULL.
void peer_credit_release(struct peer_credit_peer *peer, uint32_t records);

// Sets the credit that peers are granted from now on.  A larger earlier one stays in force
// for some seconds, until the peers have received the new one.  Writer thread.
void peer_credit_set_credit(struct peer_credit *peer_credit, uint32_t credit, uint64_t now_ns);

#endif
