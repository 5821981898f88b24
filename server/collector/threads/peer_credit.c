#include "server/collector/threads/peer_credit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 1024,
    MESSAGE_COST = 16, // cost of a message beside its records
    SLACK = 16384,     // for many small messages, and for those before the first Ack
};

#define CREDIT_HOLDS_NS UINT64_C(5000000000)

// Exists while messages of the peer are in flight, and for some time after.
struct peer_credit_peer {
    struct peer_credit_peer *next;
    unsigned socket;
    struct wire_route route;
    // Incremented by ingest, decremented by the thread that frees the message.  Ingest frees
    // the peer once it reads 0 with acquire order: the thread that released the last message
    // (release order) no longer accesses it.
    atomic_uint_fast64_t in_flight;
};

struct peer_credit {
    struct peer_credit_peer *buckets[BUCKETS]; // ingest thread only
    atomic_uint_fast32_t credit; // the larger of the two below; publishes nothing: relaxed
    uint32_t latest, earlier;    // of the current and the previous period; writer thread
    uint64_t since_ns;
};

enum status peer_credit_new(struct peer_credit **out, struct error *err)
{
    struct peer_credit *peer_credit = calloc(1, sizeof *peer_credit);
    if (!peer_credit)
        return error_no_memory(err, "ingest");
    *out = peer_credit;
    return STATUS_OK;
}

void peer_credit_free(struct peer_credit *peer_credit)
{
    for (unsigned i = 0; peer_credit && i < BUCKETS; i++) {
        while (peer_credit->buckets[i]) {
            struct peer_credit_peer *peer = peer_credit->buckets[i];
            peer_credit->buckets[i] = peer->next;
            free(peer);
        }
    }
    free(peer_credit);
}

// FNV-1a, 32 bit.
static uint32_t hash(unsigned socket, const struct wire_route *route)
{
    uint32_t value = UINT32_C(2166136261) ^ socket;
    for (unsigned i = 0; i < route->size; i++)
        value = (value ^ route->id[i]) * UINT32_C(16777619);
    return value;
}

static bool is_idle(const struct peer_credit_peer *peer)
{
    return atomic_load_explicit(&peer->in_flight, memory_order_acquire) == 0;
}

// Finds or creates the peer, and frees the idle ones of its bucket.
static struct peer_credit_peer *find(struct peer_credit *peer_credit, unsigned socket,
                                     const struct wire_route *route)
{
    struct peer_credit_peer **link = &peer_credit->buckets[hash(socket, route) % BUCKETS],
                            *found = NULL;
    struct peer_credit_peer **first = link;
    while (*link) {
        struct peer_credit_peer *peer = *link;
        if (peer->socket == socket && peer->route.size == route->size &&
            memcmp(peer->route.id, route->id, route->size) == 0) {
            found = peer;
        } else if (is_idle(peer)) {
            *link = peer->next;
            free(peer);
            continue;
        }
        link = &peer->next;
    }
    if (found)
        return found;
    struct peer_credit_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->socket = socket;
    peer->route = *route;
    peer->next = *first;
    *first = peer;
    return peer;
}

struct peer_credit_peer *peer_credit_acquire(struct peer_credit *peer_credit, unsigned socket,
                                             const struct wire_route *route, uint32_t records)
{
    struct peer_credit_peer *peer = find(peer_credit, socket, route);
    if (!peer)
        return NULL;
    const uint64_t cost = (uint64_t)records + MESSAGE_COST;
    const uint64_t credit = atomic_load_explicit(&peer_credit->credit, memory_order_relaxed);
    const uint64_t before = atomic_load_explicit(&peer->in_flight, memory_order_relaxed);
    if (before != 0 && before + cost > 2 * credit + SLACK)
        return NULL;
    (void)atomic_fetch_add_explicit(&peer->in_flight, cost, memory_order_relaxed);
    return peer;
}

void peer_credit_release(struct peer_credit_peer *peer, uint32_t records)
{
    if (peer)
        (void)atomic_fetch_sub_explicit(&peer->in_flight, (uint64_t)records + MESSAGE_COST,
                                        memory_order_release);
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
