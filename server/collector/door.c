#include "server/collector/door.h"

#include "common/sys/clock.h"
#include "common/sys/log.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    LAST_WORDS_NS = 700000000, // a producer speaks every half second
    LOOK_NS = 250000000,       // how soon a revocation is noticed
};

enum status door_open(struct door *door, const struct endpoints *endpoints,
                      enum address_service service, struct wire_socket **sockets, struct error *err)
{
    *door = (struct door){.endpoints = endpoints, .service = service, .sockets = sockets};
    if (endpoints->access)
        door->revocations = access_revocations(endpoints->access);
    return endpoints_bind(sockets, endpoints, service, err);
}

bool door_lets_in(struct door *door, const struct wire_frame *frame, const char **why)
{
    const struct endpoints *endpoints = door->endpoints;
    if (!frame->has_key || !endpoints->access) // by permission, or without keys
        return true;
    switch (access_check(endpoints->access, door->service, frame->key)) {
    case ACCESS_GRANTED:
        return true;
    case ACCESS_ROLE:
        refusals_count(endpoints->refusals, REFUSAL_DENIED, 1);
        *why = "the key has not the role for this (ask an administrator)";
        return false;
    case ACCESS_UNKNOWN:
        break;
    }
    refusals_count(endpoints->refusals, REFUSAL_REVOKED, 1);
    *why = "the key is not authorized any longer (ask an administrator)";
    return false;
}

// What has been added since the most so far: handshakes that are under way move a
// count down for a moment.
static uint64_t grown(uint64_t now, uint64_t *most)
{
    const uint64_t before = *most;
    *most = now > before ? now : before;
    return *most - before;
}

static void count(struct door *door)
{
    struct refusals *refusals = door->endpoints->refusals;
    for (unsigned i = 0; i < door->endpoints->count; i++) {
        struct wire_counters now, *before = &door->counted[i];
        wire_count(door->sockets[i], &now);
        refusals_count(refusals, REFUSAL_CONNECTIONS, grown(now.over_limit, &before->over_limit));
        refusals_count(refusals, REFUSAL_STRANGER, grown(now.strangers, &before->strangers));
        // Whoever may open the folder's sockets needs no handshake: one that says nothing
        // has been there, and was not turned away.
        if (!door->endpoints->addresses[i].is_ipc)
            refusals_count(refusals, REFUSAL_HANDSHAKE, grown(now.handshakes, &before->handshakes));
    }
}

static void hang_up(struct door *door)
{
    for (unsigned i = 0; i < door->endpoints->count; i++)
        if (!door->endpoints->addresses[i].is_ipc)
            wire_hang_up(door->sockets[i]);
    log_write(LOG_LEVEL_INFO, "%s: connections are made anew, since a key may do less than before",
              address_service_name(door->service));
    door->hang_up_at_ns = 0;
}

void door_keep(struct door *door, uint64_t now_ns)
{
    struct access *access = door->endpoints->access;
    if (access && access_revocations(access) != door->revocations) {
        door->revocations = access_revocations(access);
        if (door->hang_up_at_ns == 0) // else a stream of revocations would put it off
            door->hang_up_at_ns = now_ns + LAST_WORDS_NS;
    }
    if (door->hang_up_at_ns && now_ns >= door->hang_up_at_ns)
        hang_up(door);
    if (now_ns - door->counted_at_ns >= SECOND_NS) {
        door->counted_at_ns = now_ns;
        count(door);
    }
}

int64_t door_wait(const struct door *door, uint64_t now_ns)
{
    if (!door->endpoints->access)
        return (int64_t)SECOND_NS;
    if (door->hang_up_at_ns == 0)
        return LOOK_NS;
    return door->hang_up_at_ns > now_ns ? (int64_t)(door->hang_up_at_ns - now_ns) : 0;
}
