#include "server/collector/share.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 1024,
    MESSAGE_COST = 16, // a message without records counts as so many
    SLACK = 16384,     // many small messages, and what was sent before the first Ack
};

#define CREDIT_HOLDS_NS UINT64_C(5000000000)

// Lives as long as something of it is under way, and some time longer.
struct share_peer {
    struct share_peer *next;
    unsigned socket;
    struct wire_route route;
    // Rises in the ingest thread, falls wherever a message ends.  The peer is freed
    // by ingest once it reads 0, with acquire: whoever gave back the last (release)
    // touches it no more.
    atomic_uint_fast64_t under_way;
};

struct share {
    struct share_peer *buckets[BUCKETS]; // ingest
    atomic_uint_fast32_t credit;         // the larger of the two; a figure only: relaxed
    uint32_t latest, earlier;            // of the last seconds, and of those before; writer
    uint64_t since_ns;
};

enum status share_new(struct share **out, struct error *err)
{
    struct share *share = calloc(1, sizeof *share);
    if (!share)
        return error_set(err, STATUS_NOMEM, "ingest: out of memory");
    *out = share;
    return STATUS_OK;
}

void share_free(struct share *share)
{
    for (unsigned i = 0; share && i < BUCKETS; i++) {
        while (share->buckets[i]) {
            struct share_peer *peer = share->buckets[i];
            share->buckets[i] = peer->next;
            free(peer);
        }
    }
    free(share);
}

// FNV-1a, 32 bit.
static uint32_t hash(unsigned socket, const struct wire_route *route)
{
    uint32_t value = UINT32_C(2166136261) ^ socket;
    for (unsigned i = 0; i < route->size; i++)
        value = (value ^ route->id[i]) * UINT32_C(16777619);
    return value;
}

static bool is_idle(const struct share_peer *peer)
{
    return atomic_load_explicit(&peer->under_way, memory_order_acquire) == 0;
}

// The peer, made where it is not there; those of its bucket that have nothing under way
// go.
static struct share_peer *find(struct share *share, unsigned socket, const struct wire_route *route)
{
    struct share_peer **link = &share->buckets[hash(socket, route) % BUCKETS], *found = NULL;
    struct share_peer **first = link;
    while (*link) {
        struct share_peer *peer = *link;
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
    struct share_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->socket = socket;
    peer->route = *route;
    peer->next = *first;
    *first = peer;
    return peer;
}

struct share_peer *share_take(struct share *share, unsigned socket, const struct wire_route *route,
                              uint32_t records)
{
    struct share_peer *peer = find(share, socket, route);
    if (!peer)
        return NULL;
    const uint64_t cost = (uint64_t)records + MESSAGE_COST;
    const uint64_t credit = atomic_load_explicit(&share->credit, memory_order_relaxed);
    const uint64_t before = atomic_load_explicit(&peer->under_way, memory_order_relaxed);
    if (before != 0 && before + cost > 2 * credit + SLACK)
        return NULL;
    (void)atomic_fetch_add_explicit(&peer->under_way, cost, memory_order_relaxed);
    return peer;
}

void share_give(struct share_peer *peer, uint32_t records)
{
    if (peer)
        (void)atomic_fetch_sub_explicit(&peer->under_way, (uint64_t)records + MESSAGE_COST,
                                        memory_order_release);
}

void share_set_credit(struct share *share, uint32_t credit, uint64_t now_ns)
{
    if (now_ns - share->since_ns > CREDIT_HOLDS_NS) {
        share->earlier = share->latest;
        share->latest = credit;
        share->since_ns = now_ns;
    }
    if (credit > share->latest)
        share->latest = credit;
    atomic_store_explicit(&share->credit,
                          share->latest > share->earlier ? share->latest : share->earlier,
                          memory_order_relaxed);
}
