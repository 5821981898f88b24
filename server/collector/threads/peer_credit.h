// Backpressure by credit: limits the records of each producer that are in flight between
// ingest and the writer.
//
// Acknowledgements grant each producer credit: the number of records that it may have in flight.
// A producer that ignored its credit would fill the inbox and block the others.  A message far
// beyond its sender's credit (see the limit below) is therefore dropped, as if lost on the network.
//
// Peers are counted in PEER_CREDIT_SLOTS slots.  A hash of its route, with a random key, selects a
// peer's slot.  A slot's limit is twice the credit plus 16384, so that two peers that share it and
// respect their credit fit.  A message costs its number of records plus 16.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "common/wire/listener/listener.h"

enum { PEER_CREDIT_SLOTS = 65536 };

// Cost of the messages in flight of this slot's peers.  Relaxed, as it publishes no other data.
struct peer_credit_slot {
    atomic_uint_fast64_t in_flight;
};

struct peer_credit {
    struct peer_credit_slot slots[PEER_CREDIT_SLOTS];
    uint32_t seed;               // of the hash
    atomic_uint_fast32_t credit; // the larger of the two below, in records; relaxed
    uint32_t latest, earlier;    // largest credit of this and of the previous 5 s; writer thread
    uint64_t since_ns;           // start of this period of 5 s; writer thread
};

// `peer_credit` is zeroed.
void peer_credit_init(struct peer_credit *peer_credit);

// Counts a message with `records` records as in flight.  Returns NULL, and counts nothing, if the
// message exceeds the limit of the peer's slot; an empty slot accepts any message.  Ingest thread
// only.
struct peer_credit_slot *peer_credit_acquire(struct peer_credit *peer_credit, unsigned socket,
                                             const struct wire_route *route, uint32_t records);

// Subtracts a message that was processed or discarded; `records` as in peer_credit_acquire.  Any
// thread; accepts NULL.
void peer_credit_release(struct peer_credit_slot *slot, uint32_t records);

// Sets the credit that peers are granted from now on.  A larger earlier one stays in force
// for some seconds, until the peers have received the new one.  Writer thread.
void peer_credit_set_credit(struct peer_credit *peer_credit, uint32_t credit, uint64_t now_ns);
