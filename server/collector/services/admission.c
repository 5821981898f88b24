#include "server/collector/services/admission.h"

#include "common/sys/clock.h"
#include "common/sys/log.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
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

enum status admission_open(struct admission *admission, const struct endpoints *endpoints,
                           enum address_service service, struct error *err)
{
    enum status status = STATUS_OK;
    const struct wire_guard guard = {
        .keys = endpoints->keys, .admit = admit, .context = endpoints->access};
    const struct wire_listen listen = {.service = service,
                                       .owner_only = service == ADDRESS_ADMIN,
                                       .guard = endpoints->access ? &guard : NULL,
                                       .connections_max = endpoints->connections_max};
    admission->endpoints = endpoints;
    admission->services[admission->count / endpoints->count] = service;
    if (endpoints->access)
        admission->revocations = access_revocations(endpoints->access);
    for (unsigned i = 0; i < endpoints->count && status == STATUS_OK; i++) {
        char endpoint[ADDRESS_TEXT_SIZE];
        (void)address_endpoint(endpoint, &endpoints->addresses[i], service);
        status = wire_bind(&admission->sockets[admission->count++], endpoints->context, endpoint,
                           &listen, err);
        if (status == STATUS_BUSY)
            status = in_use(&endpoints->addresses[i], service, err);
    }
    return status;
}

void admission_close(struct admission *admission)
{
    while (admission->count > 0)
        wire_close(admission->sockets[--admission->count]);
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

static void count(struct admission *admission)
{
    struct reject_counters *rejects = admission->endpoints->rejects;
    for (unsigned i = 0; i < admission->count; i++) {
        struct wire_counters now, *before = &admission->counted[i];
        wire_count(admission->sockets[i], &now);
        reject_counters_count(rejects, REFUSAL_CONNECTIONS,
                              grown(now.over_limit, &before->over_limit));
        reject_counters_count(rejects, REFUSAL_STRANGER, grown(now.strangers, &before->strangers));
        // ipc peers need no handshake: one that sends nothing was not rejected.
        if (!admission_address(admission, i)->is_ipc)
            reject_counters_count(rejects, REFUSAL_HANDSHAKE,
                                  grown(now.handshakes, &before->handshakes));
    }
}

static void hang_up(struct admission *admission)
{
    for (unsigned i = 0; i < admission->count; i++)
        if (!admission_address(admission, i)->is_ipc)
            wire_hang_up(admission->sockets[i]);
    log_write(LOG_LEVEL_INFO, "%s: connections are closed, since a key was removed or lost a role",
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
    }
}

// How long the thread may wait until the next update.
static int64_t timeout_ns(const struct admission *admission, uint64_t now_ns)
{
    if (!admission->endpoints->access)
        return (int64_t)SECOND_NS;
    if (admission->hang_up_at_ns == 0)
        return LOOK_NS;
    return admission->hang_up_at_ns > now_ns ? (int64_t)(admission->hang_up_at_ns - now_ns) : 0;
}

void admission_wait(struct admission *admission, int fd, uint32_t *ready)
{
    const uint64_t now_ns = clock_monotonic_ns();
    admission_update(admission, now_ns);
    wire_wait(admission->sockets, admission->count, fd, timeout_ns(admission, now_ns), ready);
}
