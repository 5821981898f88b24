#include "server/collector/services/admission.h"

#include "common/sys/clock.h"
#include "common/sys/log.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    COMPLAINTS_AT_ONCE = 16,
    LAST_WORDS_NS = 700000000, // producers send at least every half second
    LOOK_NS = 250000000,       // interval of checks for revocations
};

// Names the address as the user gave it, not the endpoint derived from it.
static enum status in_use(const struct address *address, enum address_service service,
                          struct error *err)
{
    char text[ADDRESS_TEXT_SIZE];
    (void)address_text(text, address);
    if (address->is_ipc)
        return error_set(err, STATUS_BUSY,
                         "%.300s: its socket %s is in use (another program listens "
                         "there; name another folder)",
                         text, address_service_name(service));
    return error_set(err, STATUS_BUSY,
                     "%.300s: port %u (%s) is in use (name another with --listen)", text,
                     address->port + (unsigned)service, address_service_name(service));
}

// Called by a thread of the sockets, once per connection.
static bool admit(void *context, enum address_service service,
                  const unsigned char key[WIRE_KEY_SIZE])
{
    return access_check(context, service, key) == ACCESS_GRANTED;
}

// Called by a thread of the sockets, as the next.
static bool enter(void *context, const struct wire_peer *peer)
{
    const uint64_t now_ns = clock_monotonic_ns();
    return quota_take(context, quota_owner(context, peer), QUOTA_CONNECTIONS, 1, now_ns);
}

static void leave(void *context, const struct wire_peer *peer)
{
    quota_give(context, quota_owner(context, peer), QUOTA_CONNECTIONS, 1);
}

enum status admission_open(struct admission *admission, const struct endpoints *endpoints,
                           enum address_service service, struct error *err)
{
    enum status status = STATUS_OK;
    const struct wire_guard guard = {
        .keys = endpoints->keys, .admit = admit, .context = endpoints->access};
    const struct wire_listen listen = {.service = service,
                                       .owner_only = service == ADDRESS_ADMIN,
                                       .guard = endpoints->access ? &guard : NULL,
                                       .connections_max = endpoints->connections_max,
                                       .enter = enter,
                                       .leave = leave,
                                       .context = endpoints->quota};
    admission->endpoints = endpoints;
    admission->services[admission->count / endpoints->count] = service;
    if (endpoints->access)
        admission->revocations = access_revocations(endpoints->access);
    for (unsigned i = 0; i < endpoints->count && status == STATUS_OK; i++) {
        char endpoint[ADDRESS_TEXT_SIZE];
        (void)address_endpoint(endpoint, &endpoints->addresses[i], service);
        status = port_open(&admission->sockets[admission->count++], endpoints->listener, endpoint,
                           &listen, err);
        if (status == STATUS_BUSY)
            status = in_use(&endpoints->addresses[i], service, err);
    }
    return status;
}

void admission_close(struct admission *admission)
{
    while (admission->count > 0)
        port_close(admission->sockets[--admission->count]);
}

const struct address *admission_address(const struct admission *admission, unsigned socket)
{
    return &admission->endpoints->addresses[socket % admission->endpoints->count];
}

bool admission_allows(const struct admission *admission, unsigned socket,
                      const struct wire_frame *frame, const char **why)
{
    const struct endpoints *endpoints = admission->endpoints;
    if (frame->peer.kind != PEER_KEY || !endpoints->access) // an ipc peer, or no keys
        return true;
    switch (access_check(endpoints->access, admission->services[socket / endpoints->count],
                         frame->peer.key)) {
    case ACCESS_GRANTED:
        return true;
    case ACCESS_ROLE:
        reject_counters_count(endpoints->rejects, REFUSAL_DENIED, 1);
        *why = "the key lacks the role for this (ask an administrator)";
        return false;
    case ACCESS_UNKNOWN:
        break;
    }
    reject_counters_count(endpoints->rejects, REFUSAL_REVOKED, 1);
    *why = "the key is no longer authorized (ask an administrator)";
    return false;
}

// The increase over the largest value so far: handshakes in progress may lower a count for a
// moment.
static uint64_t grown(uint64_t now, uint64_t *most)
{
    const uint64_t before = *most;
    *most = now > before ? now : before;
    return *most - before;
}

// How connections that the sockets closed are counted and named in the log.
static const struct {
    enum refusal reason; // REFUSAL_COUNT: counted as REFUSAL_HANDSHAKE
    const char *what;
} cuts[WIRE_CUTS] = {
    [WIRE_CUT_NONE] = {REFUSAL_COUNT, "?"},
    [WIRE_CUT_GREETING] = {REFUSAL_COUNT, "connects and does not greet as ZeroMQ 3 does"},
    [WIRE_CUT_KEYS] = {REFUSAL_COUNT, "sends what its keys cannot decrypt"},
    [WIRE_CUT_STRANGER] = {REFUSAL_STRANGER, "connects with a key that is not authorized"},
    [WIRE_CUT_CONNECTIONS] = {REFUSAL_CONNECTIONS, "has too many connections"},
    [WIRE_CUT_GARBAGE] = {REFUSAL_GARBAGE, "breaks the protocol of ZeroMQ"},
    [WIRE_CUT_ROUTING_ID] = {REFUSAL_ROUTING_ID, "sets a routing id"},
    [WIRE_CUT_FRAMES] = {REFUSAL_FRAMES, "sends messages of several frames"},
    [WIRE_CUT_FRAME_SIZE] = {REFUSAL_FRAME_SIZE, "sends frames that are too large"},
    [WIRE_CUT_SLOW_FRAME] = {REFUSAL_SLOW_FRAME, "does not complete its frames"},
    [WIRE_CUT_DEAF] = {REFUSAL_DEAF, "does not read its answers"},
    [WIRE_CUT_PINGS] = {REFUSAL_HEARTBEATS, "sends too many heartbeats"},
    [WIRE_CUT_RATE] = {REFUSAL_CONNECT_RATE, "connects too often"},
};

// Logs whose connections were closed, and why.
static void complain(const struct admission *admission, unsigned socket)
{
    struct wire_complaint complaints[COMPLAINTS_AT_ONCE];
    unsigned found = COMPLAINTS_AT_ONCE;
    while (found == COMPLAINTS_AT_ONCE) {
        found = port_complaints(admission->sockets[socket], complaints, COMPLAINTS_AT_ONCE);
        for (unsigned i = 0; i < found; i++)
            quota_complain(admission->endpoints->quota, &complaints[i].peer,
                           cuts[complaints[i].cut].what, complaints[i].count);
    }
}

static void count(struct admission *admission)
{
    struct reject_counters *rejects = admission->endpoints->rejects;
    for (unsigned i = 0; i < admission->count; i++) {
        struct wire_counters now, *before = &admission->counted[i];
        port_count(admission->sockets[i], &now);
        // ipc peers need no handshake: one that sends nothing was not rejected.
        if (!admission_address(admission, i)->is_ipc)
            reject_counters_count(rejects, REFUSAL_HANDSHAKE,
                                  grown(now.handshakes, &before->handshakes));
        for (unsigned cut = 0; cut < WIRE_CUTS; cut++) {
            const uint64_t more = grown(now.cuts[cut], &before->cuts[cut]);
            if (cuts[cut].reason != REFUSAL_COUNT)
                reject_counters_count(rejects, cuts[cut].reason, more);
        }
    }
}

static void hang_up(struct admission *admission)
{
    for (unsigned i = 0; i < admission->count; i++)
        if (!admission_address(admission, i)->is_ipc)
            port_hang_up(admission->sockets[i]);
    log_write(LOG_LEVEL_INFO, "%s: connections of keys that were removed or lost a role are closed",
              address_service_name(admission->services[0]));
    admission->hang_up_at_ns = 0;
}

void admission_update(struct admission *admission, uint64_t now_ns)
{
    struct access *access = admission->endpoints->access;
    if (access && access_revocations(access) != admission->revocations) {
        admission->revocations = access_revocations(access);
        if (admission->hang_up_at_ns == 0) // else frequent revocations would postpone it
            admission->hang_up_at_ns = now_ns + LAST_WORDS_NS;
    }
    if (admission->hang_up_at_ns && now_ns >= admission->hang_up_at_ns)
        hang_up(admission);
    if (now_ns - admission->counted_at_ns >= SECOND_NS) {
        admission->counted_at_ns = now_ns;
        count(admission);
        for (unsigned i = 0; i < admission->count; i++)
            complain(admission, i);
    }
}

// How long the thread may wait until the next update.
static uint64_t timeout_ns(const struct admission *admission, uint64_t now_ns)
{
    if (!admission->endpoints->access)
        return SECOND_NS;
    if (admission->hang_up_at_ns == 0)
        return LOOK_NS;
    return admission->hang_up_at_ns > now_ns ? admission->hang_up_at_ns - now_ns : 0;
}

void admission_wait(struct admission *admission, int fd, uint32_t *ready)
{
    const uint64_t now_ns = clock_monotonic_ns();
    admission_update(admission, now_ns);
    port_wait(admission->sockets, admission->count, fd, timeout_ns(admission, now_ns), ready);
}
