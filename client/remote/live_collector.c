// Reads a collector's live feed: records as they are committed, with credit-based flow
// control, so that a slow reader misses records and delays no other peer.
#include <stdlib.h>

#include "client/remote/link.h"
#include "client/remote/source.h"
#include "common/sys/clock.h"
#include "common/wire/address.h"
#include "common/wire/codec.h"
#include "common/wire/socket.h"

enum { CREDIT = 64 }; // messages on their way at most

// Without a message for so long the subscription is renewed: the collector ends
// one after 30 seconds of silence, and one that was restarted knows of none.
static const uint64_t renew_after_ns = UINT64_C(2000000000);

// Interval of retries to send while no collector is connected.
static const uint64_t retry_ns = UINT64_C(50000000);

struct collector_live {
    struct wire_context *context;
    struct address address;
    struct trust trust;
    struct link link;
    const struct wire_socket *subscribed; // with which credit was given last
    uint32_t kinds;
    bool ids_only;
    uint32_t owed;          // credit to give with the next message of ours
    uint64_t renew_ns;      // monotonic: when to renew the credit
    uint64_t missed_before; // by ended subscriptions
    uint64_t missed;        // by this one
};

void collector_live_close(void *source)
{
    struct collector_live *live = source;
    if (!live)
        return;
    link_drop(&live->link);
    wire_context_free(live->context);
    free(live);
}

enum status collector_live_open(void **out, const struct remote_target *target, uint32_t kinds,
                                enum remote_live_mode mode, struct error *err)
{
    struct collector_live *live = calloc(1, sizeof *live);
    if (!live)
        return error_no_memory(err, "remote");
    live->kinds = kinds;
    live->ids_only = mode == REMOTE_LIVE_IDS;
    live->owed = CREDIT;
    enum status status = collector_address(&live->address, target, err);
    if (status == STATUS_OK)
        status = trust_resolve(&live->trust, &live->address, &target->trust, err);
    if (status == STATUS_OK)
        status = wire_context_new(&live->context, err);
    if (status != STATUS_OK) {
        collector_live_close(live);
        return status;
    }
    live->link = (struct link){.context = live->context,
                               .address = &live->address,
                               .trust = &live->trust,
                               .service = ADDRESS_LIVE};
    *out = live;
    return STATUS_OK;
}

// Sends the outstanding credit; on failure, as without a connection, retries soon.
static void give_credit(struct collector_live *live)
{
    struct message message = {
        .kind = MESSAGE_LIVE_CREDIT,
        .live_credit = {.protocol = MESSAGE_PROTOCOL,
                        .messages = live->owed,
                        .kinds = live->kinds,
                        .ids_only = live->ids_only},
    };
    unsigned char *bytes = NULL;
    size_t size;
    enum status status = codec_encode(&bytes, &size, &message, NULL);
    if (status == STATUS_OK)
        status = wire_send(live->link.socket, NULL, bytes, size);
    free(bytes);
    uint64_t now_ns = clock_monotonic_ns();
    live->renew_ns = now_ns + (status == STATUS_OK ? renew_after_ns : retry_ns);
    if (status == STATUS_OK)
        live->owed = 0;
}

// Takes the records out of a frame; STATUS_NO_DATA when it holds none.
static enum status take_records(struct collector_live *live, const struct wire_frame *frame,
                                enum record_kind *kind, struct result **out)
{
    struct message message;
    if (codec_decode(&message, frame->bytes, frame->size, NULL) != STATUS_OK)
        return STATUS_NO_DATA;
    enum status status = STATUS_NO_DATA;
    if (message.kind == MESSAGE_LIVE_RECORDS) {
        if (message.live_records.missed < live->missed) // a new subscription counts from 0
            live->missed_before += live->missed;
        live->missed = message.live_records.missed;
        live->owed++;
        *kind = message.live_records.kind;
        status = STATUS_OK;
        if (live->ids_only) { // records come all the same from a collector of before
            *out = NULL;
        } else {
            *out = message.live_records.result;
            message.live_records.result = NULL;
        }
    }
    message_free(&message);
    return status;
}

static enum status receive(struct collector_live *live, enum record_kind *kind, struct result **out)
{
    for (;;) {
        struct wire_frame frame;
        enum status status = wire_receive(live->link.socket, &frame);
        if (status == STATUS_INVALID)
            continue;
        if (status != STATUS_OK)
            return status;
        status = take_records(live, &frame, kind, out);
        wire_frame_release(&frame);
        live->renew_ns = clock_monotonic_ns() + renew_after_ns;
        if (status == STATUS_OK)
            return status;
    }
}

// Maintains the connection.  A new one must subscribe again.  After a refusal it waits for
// the back-off: records are missed until then, and a query of the same user reports why.
static void look_after_link(struct collector_live *live)
{
    struct error refused;
    (void)!link_look(&live->link, &refused);
    if (live->link.socket && live->link.socket != live->subscribed) {
        live->subscribed = live->link.socket;
        live->owed = CREDIT;
        live->renew_ns = 0;
    }
}

// Waits for records, or until it is time to renew or to give up.
static enum status wait_for_records(struct collector_live *live, uint64_t deadline_ns, int wake_fd)
{
    const uint64_t now_ns = clock_monotonic_ns();
    if (now_ns >= deadline_ns)
        return STATUS_TIMEOUT;
    uint64_t wait_ns = deadline_ns - now_ns;
    if (live->link.socket && live->renew_ns < deadline_ns)
        wait_ns = live->renew_ns > now_ns ? live->renew_ns - now_ns : 0;
    const uint64_t patience_ns = link_patience_ns(&live->link);
    uint32_t ready;
    wire_wait(&live->link.socket, 1, wake_fd,
              (int64_t)(patience_ns < wait_ns ? patience_ns : wait_ns), &ready);
    return ready & 2 ? STATUS_CANCELLED : STATUS_OK;
}

enum status collector_live_next(void *source, uint64_t timeout_ns, int wake_fd,
                                enum record_kind *kind, struct result **out, uint64_t *missed,
                                struct error *err)
{
    (void)err;
    struct collector_live *live = source;
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    for (;;) {
        look_after_link(live);
        enum status status = live->link.socket ? receive(live, kind, out) : STATUS_NO_DATA;
        *missed = live->missed_before + live->missed;
        bool renew = clock_monotonic_ns() >= live->renew_ns;
        if (renew && status == STATUS_NO_DATA)
            live->owed = CREDIT;
        if (live->link.socket && (renew || live->owed >= CREDIT / 2))
            give_credit(live);
        if (status == STATUS_NO_DATA)
            status = wait_for_records(live, deadline_ns, wake_fd);
        else
            return status;
        if (status != STATUS_OK)
            return status;
    }
}
