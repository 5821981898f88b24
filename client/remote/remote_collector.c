#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/remote/remote_collector.h"

#include "client/remote/link.h"
#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "common/wire/codec.h"

static const uint64_t default_timeout_ns = UINT64_C(3000000000);

// Interval of retries to send while no collector is connected.
static const uint64_t retry_ns = UINT64_C(10000000);

enum { CREDIT = 64 }; // live messages on their way at most

// Without a live message for so long the subscription is renewed: the collector ends
// one after 30 seconds of silence, and one that was restarted knows of none.
static const uint64_t renew_after_ns = UINT64_C(2000000000);

// The same for credit, for which no query waits.
static const uint64_t credit_retry_ns = UINT64_C(50000000);

// The subscription to live records.
struct live {
    uint32_t kinds;
    bool ids_only;
    unsigned subscribed;    // link->made with which credit was given last
    unsigned connected;     // link->made of the last that connected; 0: none has
    uint32_t owed;          // credit to give with the next message of ours
    uint64_t renew_ns;      // monotonic: when to renew the credit
    uint64_t missed_before; // by ended subscriptions
    uint64_t missed;        // by this one
    // Records that came while a query was under way, in order.
    struct held {
        enum record_kind kind;
        struct result *records;
    } held[CREDIT];
    unsigned held_count;
};

struct collector {
    struct wire_context *context;
    struct link links[ADDRESS_SERVICES];
    struct address address;
    struct trust trust;
    char name[ADDRESS_TEXT_SIZE];
    uint64_t timeout_ns;
    bool at_once;     // of struct remote_target
    uint64_t last_id; // of queries
    int wake_fd;      // ends waiting when readable; -1: none
    struct live live;
};

// A folder that this user may not enter is not a collector that does not answer.
static enum status check_permission(const struct address *address, struct error *err)
{
    if (!address->is_ipc || eaccess(address->place, X_OK) == 0 || errno != EACCES)
        return STATUS_OK;
    return error_set(err, STATUS_DENIED,
                     "collector ipc://%.300s: permission denied (its user or group may ask it)",
                     address->place);
}

static void free_held(struct live *live)
{
    for (unsigned i = 0; i < live->held_count; i++)
        result_free(live->held[i].records);
}

void collector_close(struct collector *collector)
{
    if (!collector)
        return;
    free_held(&collector->live);
    for (int i = 0; i < (int)ADDRESS_SERVICES; i++)
        link_drop(&collector->links[i]);
    wire_context_free(collector->context);
    free(collector);
}

enum status collector_open(struct collector **out, const struct remote_target *target,
                           struct error *err)
{
    struct trust_source source;
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return error_no_memory(err, "remote");
    collector->wake_fd = -1;
    collector->timeout_ns = target->timeout_ns ? target->timeout_ns : default_timeout_ns;
    collector->at_once = target->at_once;
    enum status status = peer_address(&collector->address, target->collector, err);
    if (status == STATUS_OK)
        status = check_permission(&collector->address, err);
    if (status == STATUS_OK)
        status = trust_source_read(&source, &target->trust, err);
    if (status == STATUS_OK)
        status = trust_decide(&collector->trust, &collector->address, &source, err);
    if (status == STATUS_OK)
        status = wire_context_new(&collector->context, err);
    if (status != STATUS_OK) {
        collector_close(collector);
        return status;
    }
    for (int i = 0; i < (int)ADDRESS_SERVICES; i++)
        collector->links[i] = (struct link){.context = collector->context,
                                            .address = &collector->address,
                                            .trust = &collector->trust,
                                            .service = (enum address_service)i};
    (void)address_text(collector->name, &collector->address);
    *out = collector;
    return STATUS_OK;
}

void collector_wake_on(struct collector *collector, int wake_fd)
{
    collector->wake_fd = wake_fd;
}

const char *collector_name(const struct collector *collector)
{
    return collector->name;
}

const char *collector_warning(const struct collector *collector)
{
    return collector->trust.warning;
}

static enum status send_message(const struct link *link, const struct message *message,
                                struct error *err)
{
    unsigned char *bytes;
    size_t size;
    enum status status = codec_encode(&bytes, &size, message, err);
    if (status != STATUS_OK)
        return status;
    status = wire_send(link->socket, bytes, size);
    free(bytes);
    return status;
}

// ---- All links --------------------------------------------------------------------

// Takes the records out of a frame; STATUS_NO_DATA when it holds none.
static enum status on_records(struct live *live, const struct link *link,
                              const struct wire_bytes *frame, enum record_kind *kind,
                              struct result **out)
{
    struct message message;
    enum status status = STATUS_NO_DATA;
    if (codec_decode(&message, frame->bytes, frame->size, NULL) != STATUS_OK) {
        wire_count_garbage(link->socket);
        return status;
    }
    if (message.kind == MESSAGE_LIVE_RECORDS) {
        if (message.live_records.missed < live->missed) // a new subscription counts from 0
            live->missed_before += live->missed;
        live->missed = message.live_records.missed;
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

static enum status receive_records(struct collector *collector, enum record_kind *kind,
                                   struct result **out)
{
    const struct link *link = &collector->links[ADDRESS_LIVE];
    for (;;) {
        struct wire_bytes frame;
        enum status status = wire_receive(link->socket, &frame);
        if (status != STATUS_OK)
            return status;
        status = on_records(&collector->live, link, &frame, kind, out);
        collector->live.renew_ns = clock_monotonic_ns() + renew_after_ns;
        if (status == STATUS_OK)
            return status;
    }
}

// Waits until a message arrives on any link, `wake_fd` is readable or the time has passed.  Returns
// whether `wake_fd` is.
static bool wait_on_links(const struct collector *collector, int wake_fd, uint64_t wait_ns)
{
    struct wire_socket *sockets[ADDRESS_SERVICES];
    uint32_t ready;
    for (int i = 0; i < (int)ADDRESS_SERVICES; i++)
        sockets[i] = collector->links[i].socket;
    wire_wait(sockets, ADDRESS_SERVICES, wake_fd, (int64_t)wait_ns, &ready);
    return ready >> ADDRESS_SERVICES & 1;
}

// Keeps live records that came during a query; those beyond the room count as missed.
static void hold_records(struct collector *collector)
{
    struct live *live = &collector->live;
    struct held held;
    while (receive_records(collector, &held.kind, &held.records) == STATUS_OK) {
        bool is_known = false; // news of this kind
        for (unsigned i = 0; i < live->held_count; i++)
            is_known = is_known || (!held.records && live->held[i].kind == held.kind);
        if (!is_known && live->held_count < CREDIT) {
            live->held[live->held_count++] = held;
        } else if (held.records) {
            live->missed_before += result_row_count(held.records);
            result_free(held.records);
        }
    }
}

// Receives from the links that the caller does not use, where messages would wait without a limit:
// holds live records, and drops replies to abandoned queries.
static void receive_others(struct collector *collector, const struct link *used)
{
    for (int i = 0; i < (int)ADDRESS_SERVICES; i++) {
        const struct link *link = &collector->links[i];
        struct wire_bytes frame;
        enum status status = link->socket && link != used ? STATUS_OK : STATUS_NO_DATA;
        if (i == ADDRESS_LIVE && status == STATUS_OK)
            hold_records(collector);
        while (i != ADDRESS_LIVE && status == STATUS_OK)
            status = wire_receive(link->socket, &frame);
    }
}

// ---- Asking -----------------------------------------------------------------------

static enum status unreachable(const struct collector *collector, const struct link *link,
                               struct error *err)
{
    char waited[UNIT_TEXT_SIZE];
    (void)unit_format_int(waited, UNIT_DURATION, (int64_t)collector->timeout_ns);
    const bool is_absent = collector->at_once && link_is_absent(link);
    const char *trouble = link_trouble(link);
    if (!trouble[0])
        trouble = collector->address.is_ipc
                      ? " (is inferstatd running there? name another with --collector, or a store "
                        "file with --db)"
                      : " (is inferstatd running there? if it wants keys: inferstat keygen and "
                        "trust here, authorize there)";
    return error_set(err, STATUS_UNREACHABLE, "collector %.200s: %s%s%s", collector->name,
                     is_absent ? "nothing listens there" : "no answer within ",
                     is_absent ? "" : waited, trouble);
}

// How long answers may take whose work grows with the store; the one who asked can
// give up.  0: as any other.
static uint64_t slow_ns(enum query_kind kind)
{
    static const uint64_t second_ns = UINT64_C(1000000000);
    if (kind == QUERY_CLEAR || kind == QUERY_FORGET)
        return 600 * second_ns;
    if (kind == QUERY_COPY || kind == QUERY_IMPORT)
        return 3610 * second_ns; // it has an hour itself
    const bool is_slow =
        kind == QUERY_AUDIT || kind == QUERY_COMPARE || kind == QUERY_BASELINE_SAVE;
    return is_slow ? 130 * second_ns : 0; // they have 120 themselves
}

// A question under way.
struct asking {
    struct collector *collector;
    struct link *link;
    const struct message *query;
    uint64_t slow_ns;     // of slow_ns()
    uint64_t deadline_ns; // monotonic, as all below
    unsigned sent;        // link->made with which it was sent; 0: it has to be
    unsigned losses;      // connections that ended before the answer
    uint64_t heard_ns;    // the last sign of life, and where it is slow
    uint64_t ping_ns;     // when to ask for the next
    bool is_cancelled;    // `wake_fd` was readable
};

static enum status send_now(struct asking *asking, uint64_t now_ns, struct error *err)
{
    enum status status = send_message(asking->link, asking->query, err);
    if (status != STATUS_OK)
        return status == STATUS_FULL ? STATUS_OK : status;
    asking->sent = asking->link->made;
    asking->heard_ns = now_ns;
    asking->ping_ns = now_ns + asking->collector->timeout_ns / 2;
    if (asking->slow_ns)
        asking->deadline_ns = now_ns + asking->slow_ns;
    return STATUS_OK;
}

// Receives messages until the reply with the query's id.  Other replies belong to abandoned
// queries, but show that the collector is alive.  A message that cannot be decoded may be the
// reply: no further one would follow.
static enum status receive_now(struct asking *asking, struct message *reply, struct error *err)
{
    for (;;) {
        struct wire_bytes frame;
        enum status status = wire_receive(asking->link->socket, &frame);
        if (status != STATUS_OK)
            return status;
        if (codec_decode(reply, frame.bytes, frame.size, NULL) != STATUS_OK) {
            wire_count_garbage(asking->link->socket);
            return error_set(err, STATUS_CORRUPT, "collector %.200s: its answer cannot be read",
                             asking->collector->name);
        }
        if (reply->kind == MESSAGE_REPLY && reply->reply.id == asking->query->query.id)
            return STATUS_OK;
        message_free(reply);
        asking->heard_ns = clock_monotonic_ns();
    }
}

// While it works on something slow a collector answers other queries.
static void ping(struct asking *asking, uint64_t now_ns)
{
    struct collector *collector = asking->collector;
    const struct message query = {.kind = MESSAGE_QUERY,
                                  .query = {.id = ++collector->last_id,
                                            .protocol = MESSAGE_PROTOCOL,
                                            .query.kind = QUERY_PING}};
    asking->ping_ns = now_ns + collector->timeout_ns / 2;
    (void)!send_message(asking->link, &query, NULL); // what is lost is not answered
}

// Whether to go on, and what the time asks for.
static enum status keep_time(struct asking *asking, uint64_t now_ns)
{
    if (asking->is_cancelled)
        return STATUS_CANCELLED;
    if (now_ns >= asking->deadline_ns ||
        (asking->collector->at_once && !asking->sent && link_is_absent(asking->link)))
        return STATUS_TIMEOUT;
    if (!asking->slow_ns || !asking->sent)
        return STATUS_OK;
    if (now_ns >= asking->heard_ns + asking->collector->timeout_ns)
        return STATUS_TIMEOUT;
    if (now_ns >= asking->ping_ns)
        ping(asking, now_ns);
    return STATUS_OK;
}

// Until something comes, or there is something to do.
static void wait_for_more(struct asking *asking, uint64_t now_ns)
{
    const struct link *link = asking->link;
    uint64_t until_ns = asking->deadline_ns;
    if (asking->slow_ns && asking->sent && asking->ping_ns < until_ns)
        until_ns = asking->ping_ns;
    uint64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const uint64_t patience_ns = asking->sent ? link_patience_ns(link) : retry_ns;
    if (patience_ns < wait_ns)
        wait_ns = patience_ns;
    asking->is_cancelled = wait_on_links(asking->collector, asking->collector->wake_fd, wait_ns);
    receive_others(asking->collector, link);
}

// The connection is gone on which the query was sent: sends it once more on the next, if it may be.
static enum status on_lost(struct asking *asking, uint64_t now_ns, struct error *err)
{
    const uint64_t until_ns = now_ns + asking->collector->timeout_ns;
    asking->sent = 0;
    if (asking->deadline_ns > until_ns)
        asking->deadline_ns = until_ns;
    // Asked twice, these do what they do once, and have the same answer (but for lost roles).
    const enum query_kind kind = asking->query->query.query.kind;
    const bool may_repeat =
        !query_is_administrative(kind) || kind == QUERY_KEYS || kind == QUERY_AUTHORIZE;
    if (may_repeat && asking->losses++ == 0)
        return STATUS_OK;
    return error_set(err, STATUS_UNREACHABLE,
                     "collector %.200s: the connection was lost before the answer came (a change "
                     "may have been made)",
                     asking->collector->name);
}

static enum status ask(struct asking *asking, struct message *reply, struct error *err)
{
    const struct link *link = asking->link;
    for (;;) {
        // First what came before the connection ended.
        enum status status = asking->sent ? receive_now(asking, reply, err) : STATUS_NO_DATA;
        if (status != STATUS_NO_DATA)
            return status;
        status = link_look(asking->link, err);
        const uint64_t now_ns = clock_monotonic_ns();
        if (status == STATUS_OK && asking->sent && (!link->socket || asking->sent != link->made))
            status = on_lost(asking, now_ns, err);
        if (status == STATUS_OK && link->socket && !asking->sent)
            status = send_now(asking, now_ns, err);
        if (status == STATUS_OK)
            status = keep_time(asking, now_ns);
        if (status != STATUS_OK)
            return status;
        wait_for_more(asking, now_ns);
    }
}

static enum status status_of(enum reply_status status)
{
    static const enum status statuses[] = {
        [REPLY_OK] = STATUS_OK,           [REPLY_INVALID] = STATUS_INVALID,
        [REPLY_NO_DATA] = STATUS_NO_DATA, [REPLY_DENIED] = STATUS_DENIED,
        [REPLY_FAILED] = STATUS_IO,       [REPLY_TOO_LARGE] = STATUS_FULL,
    };
    return statuses[status]; // the codec lets no other pass
}

// Takes the answer out of a reply, which it frees.
static enum status parse_answer(struct message *reply, struct result **out, struct error *err)
{
    enum status status = status_of(reply->reply.status);
    if (status != STATUS_OK) {
        const struct wire_bytes *why = &reply->reply.error;
        char text[ERROR_TEXT_SIZE];
        (void)error_set(err, status, "%s",
                        why->size ? text_escape(text, sizeof text, why->bytes, why->size)
                                  : status_text(status));
        if (err)
            err->expired_ns = reply->reply.expired_ns;
    } else if (!reply->reply.result) {
        status = error_set(err, STATUS_CORRUPT, "the collector's answer has no table");
    } else {
        *out = reply->reply.result;
        reply->reply.result = NULL;
    }
    message_free(reply);
    return status;
}

enum status collector_query(struct collector *collector, const struct query *query,
                            struct result **out, struct error *err)
{
    struct message *message = calloc(1, sizeof *message);
    if (!message)
        return error_no_memory(err, "remote");
    message->kind = MESSAGE_QUERY;
    message->query = (struct message_query){
        .id = ++collector->last_id, .protocol = MESSAGE_PROTOCOL, .query = *query};
    const bool is_admin = query_is_administrative(query->kind);
    struct asking asking = {
        .collector = collector,
        .link = &collector->links[is_admin ? ADDRESS_ADMIN : ADDRESS_QUERY],
        .query = message,
        .slow_ns = slow_ns(query->kind),
        .deadline_ns = clock_monotonic_ns() + collector->timeout_ns,
    };
    struct message reply;
    struct error why = {0};
    enum status status = ask(&asking, &reply, &why);
    free(message);
    if (status == STATUS_OK)
        return parse_answer(&reply, out, err);
    if (status == STATUS_TIMEOUT) {
        // With it goes what it had queued, and answers still on their way.
        status = unreachable(collector, asking.link, err);
        link_drop(asking.link);
        return status;
    }
    return error_set(err, status, "%s", why.text[0] ? why.text : status_text(status));
}

// ---- Live records -----------------------------------------------------------------

void collector_subscribe(struct collector *collector, uint32_t kinds, enum remote_live_mode mode)
{
    free_held(&collector->live);
    collector->live = (struct live){
        .kinds = kinds, .ids_only = mode == REMOTE_LIVE_NOTIFICATIONS, .owed = CREDIT};
}

// Sends the outstanding credit; on failure, as without a connection, retries soon.
static void give_credit(struct collector *collector)
{
    struct live *live = &collector->live;
    const struct message message = {
        .kind = MESSAGE_LIVE_CREDIT,
        .live_credit = {.protocol = MESSAGE_PROTOCOL,
                        .messages = live->owed,
                        .kinds = live->kinds,
                        .ids_only = live->ids_only},
    };
    const bool sent = send_message(&collector->links[ADDRESS_LIVE], &message, NULL) == STATUS_OK;
    live->renew_ns = clock_monotonic_ns() + (sent ? renew_after_ns : credit_retry_ns);
    if (sent)
        live->owed = 0;
}

// Maintains the connection.  A new one must subscribe again.  After a refusal it waits for
// the back-off: records are missed until then, and a query of the same user reports why.  Returns
// STATUS_UNREACHABLE where the connection was lost and is there again, else STATUS_NO_DATA.
static enum status look_after_link(struct collector *collector)
{
    struct link *link = &collector->links[ADDRESS_LIVE];
    struct live *live = &collector->live;
    struct error refused;
    (void)!link_look(link, &refused);
    if (link->socket && link->made != live->subscribed) {
        live->subscribed = link->made;
        live->owed = CREDIT;
        live->renew_ns = 0;
    }
    if (!link->socket || link->made == live->connected ||
        wire_handshake(link->socket) != WIRE_HANDSHAKE_DONE)
        return STATUS_NO_DATA;
    const bool is_first = live->connected == 0;
    live->connected = link->made;
    return is_first ? STATUS_NO_DATA : STATUS_UNREACHABLE;
}

// Waits for records, or until it is time to renew or to give up.
static enum status wait_for_records(struct collector *collector, uint64_t deadline_ns, int wake_fd)
{
    const struct link *link = &collector->links[ADDRESS_LIVE];
    const uint64_t now_ns = clock_monotonic_ns(), renew_ns = collector->live.renew_ns;
    if (now_ns >= deadline_ns)
        return STATUS_TIMEOUT;
    uint64_t wait_ns = deadline_ns - now_ns;
    if (link->socket && renew_ns < deadline_ns)
        wait_ns = renew_ns > now_ns ? renew_ns - now_ns : 0;
    const uint64_t patience_ns = link_patience_ns(link);
    const bool is_cancelled =
        wait_on_links(collector, wake_fd, patience_ns < wait_ns ? patience_ns : wait_ns);
    receive_others(collector, link);
    return is_cancelled ? STATUS_CANCELLED : STATUS_OK;
}

// Takes the records that came first.
static enum status next_records(struct collector *collector, enum record_kind *kind,
                                struct result **out)
{
    struct live *live = &collector->live;
    enum status status = STATUS_OK;
    if (live->held_count > 0) {
        *kind = live->held[0].kind;
        *out = live->held[0].records;
        live->held_count--;
        memmove(live->held, live->held + 1, live->held_count * sizeof *live->held);
    } else {
        status = collector->links[ADDRESS_LIVE].socket ? receive_records(collector, kind, out)
                                                       : STATUS_NO_DATA;
    }
    if (status == STATUS_OK)
        live->owed++;
    return status;
}

enum status collector_live_next(struct collector *collector, uint64_t timeout_ns, int wake_fd,
                                enum record_kind *kind, struct result **out, uint64_t *missed)
{
    struct live *live = &collector->live;
    const struct link *link = &collector->links[ADDRESS_LIVE];
    const uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    for (;;) {
        enum status status = next_records(collector, kind, out);
        if (status == STATUS_NO_DATA) // else the end of the connection would discard the rest
            status = look_after_link(collector);
        *missed = live->missed_before + live->missed;
        const bool renew = clock_monotonic_ns() >= live->renew_ns;
        if (renew && status != STATUS_OK)
            live->owed = CREDIT;
        if (link->socket && (renew || live->owed >= CREDIT / 2))
            give_credit(collector);
        if (status != STATUS_NO_DATA)
            return status;
        status = wait_for_records(collector, deadline_ns, wake_fd);
        if (status != STATUS_OK)
            return status;
    }
}
