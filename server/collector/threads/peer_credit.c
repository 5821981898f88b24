#include "server/collector/threads/peer_credit.h"

#include <sys/random.h>

enum {
    MESSAGE_COST = 16, // cost of a message beside its records
    SLACK = 16384,     // for many small messages, and for those before the first Ack
};

#define CREDIT_HOLDS_NS UINT64_C(5000000000)

void peer_credit_init(struct peer_credit *peer_credit)
{
    (void)!getrandom(&peer_credit->seed, sizeof peer_credit->seed, 0);
}

// FNV-1a, 32 bit.
static uint32_t hash(uint32_t seed, unsigned socket, const struct wire_route *route)
{
    uint32_t value = UINT32_C(2166136261) ^ seed ^ socket;
    for (unsigned shift = 0; shift < 64; shift += 8)
        value = (value ^ (uint32_t)(route->connection >> shift & 0xff)) * UINT32_C(16777619);
    return value ^ value >> 16;
}

struct peer_credit_slot *peer_credit_acquire(struct peer_credit *peer_credit, unsigned socket,
                                             const struct wire_route *route, uint32_t records)
{
    struct peer_credit_slot *slot =
        &peer_credit->slots[hash(peer_credit->seed, socket, route) % PEER_CREDIT_SLOTS];
    const uint64_t cost = (uint64_t)records + MESSAGE_COST;
    const uint64_t credit = atomic_load_explicit(&peer_credit->credit, memory_order_relaxed);
    const uint64_t before = atomic_load_explicit(&slot->in_flight, memory_order_relaxed);
    if (before != 0 && before + cost > 2 * credit + SLACK)
        return NULL;
    (void)atomic_fetch_add_explicit(&slot->in_flight, cost, memory_order_relaxed);
    return slot;
}

void peer_credit_release(struct peer_credit_slot *slot, uint32_t records)
{
    if (slot)
        (void)atomic_fetch_sub_explicit(&slot->in_flight, (uint64_t)records + MESSAGE_COST,
                                        memory_order_relaxed);
}

void peer_credit_set_credit(struct peer_credit *peer_credit, uint32_t credit, uint64_t now_ns)
{
    if (now_ns - peer_credit->since_ns > CREDIT_HOLDS_NS) {
        peer_credit->earlier = peer_credit->latest;
        peer_credit->latest = credit;
        peer_credit->since_ns = now_ns;
    }
    if (credit > peer_credit->latest)
        peer_credit->latest = credit;
    atomic_store_explicit(&peer_credit->credit,
                          peer_credit->latest > peer_credit->earlier ? peer_credit->latest
                                                                     : peer_credit->earlier,
                          memory_order_relaxed);
}
