#include "server/collector/services/admission.h"

#include "common/sys/clock.h"
#include "common/sys/log.h"

#define SECOND_NS UINT64_C(1000000000)

enum {
    LAST_WORDS_NS = 700000000, // producers send at least every half second
    LOOK_NS = 250000000,       // interval of checks for revocations
};

enum status admission_open(struct admission *admission, const struct endpoints *endpoints,
                           enum address_service service, struct wire_socket **sockets,
                           struct error *err)
{
    *admission = (struct admission){.endpoints = endpoints, .service = service, .sockets = sockets};
    if (endpoints->access)
        admission->revocations = access_revocations(endpoints->access);
    return endpoints_bind(sockets, endpoints, service, err);
}

bool admission_allows(struct admission *admission, const struct wire_frame *frame, const char **why)
{
    const struct endpoints *endpoints = admission->endpoints;
    if (!frame->has_key || !endpoints->access) // an ipc peer, or no keys
        return true;
    switch (access_check(endpoints->access, admission->service, frame->key)) {
    case ACCESS_GRANTED:
        return true;
    case ACCESS_ROLE:
        reject_counters_count(endpoints->reject_counters, REFUSAL_DENIED, 1);
        *why = "the key lacks the role for this (ask an administrator)";
        return false;
    case ACCESS_UNKNOWN:
        break;
    }
    reject_counters_count(endpoints->reject_counters, REFUSAL_REVOKED, 1);
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
    struct reject_counters *reject_counters = admission->endpoints->reject_counters;
    for (unsigned i = 0; i < admission->endpoints->count; i++) {
        struct wire_counters now, *before = &admission->counted[i];
        wire_count(admission->sockets[i], &now);
        reject_counters_count(reject_counters, REFUSAL_CONNECTIONS,
                              grown(now.over_limit, &before->over_limit));
        reject_counters_count(reject_counters, REFUSAL_STRANGER,
                              grown(now.strangers, &before->strangers));
        // ipc peers need no handshake: one that sends nothing was not rejected.
        if (!admission->endpoints->addresses[i].is_ipc)
            reject_counters_count(reject_counters, REFUSAL_HANDSHAKE,
                                  grown(now.handshakes, &before->handshakes));
    }
}

static void hang_up(struct admission *admission)
{
    for (unsigned i = 0; i < admission->endpoints->count; i++)
        if (!admission->endpoints->addresses[i].is_ipc)
            wire_hang_up(admission->sockets[i]);
    log_write(LOG_LEVEL_INFO,
              "%s: connections are reopened, since a key was removed or lost a role",
              address_service_name(admission->service));
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

int64_t admission_timeout_ns(const struct admission *admission, uint64_t now_ns)
{
    if (!admission->endpoints->access)
        return (int64_t)SECOND_NS;
    if (admission->hang_up_at_ns == 0)
        return LOOK_NS;
    return admission->hang_up_at_ns > now_ns ? (int64_t)(admission->hang_up_at_ns - now_ns) : 0;
}
