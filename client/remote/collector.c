// A collector as a source: queries over its query and admin sockets.
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/remote/source.h"
#include "common/core/text.h"
#include "common/core/unit.h"
#include "common/sys/clock.h"
#include "common/wire/address.h"
#include "common/wire/codec.h"
#include "common/wire/socket.h"

static const uint64_t default_timeout_ns = UINT64_C(3000000000);

// Between two tries to send while nobody is connected.
static const uint64_t retry_first_ns = UINT64_C(1000000);
static const uint64_t retry_most_ns = UINT64_C(20000000);

struct collector {
    struct wire_context *context;
    struct wire_socket *sockets[ADDRESS_SERVICES]; // made when first needed
    struct address address;
    char name[ADDRESS_TEXT_SIZE];
    uint64_t timeout_ns;
    uint64_t last_id; // of queries
    int wake_fd;      // ends waiting when readable; -1: none
};

enum status collector_address(struct address *out, const struct remote_target *target,
                              struct error *err)
{
    if (target->collector)
        return address_parse(out, target->collector, err);
    return address_default(out, getenv("INFERSTAT_COLLECTOR"), getenv("XDG_RUNTIME_DIR"), err);
}

// A folder that this user may not enter is not a collector that does not answer.
static enum status check_permission(const struct address *address, struct error *err)
{
    if (!address->is_ipc || eaccess(address->place, X_OK) == 0 || errno != EACCES)
        return STATUS_OK;
    return error_set(err, STATUS_DENIED,
                     "collector ipc://%.300s: permission denied (its user or group may ask it)",
                     address->place);
}

static void collector_close(void *source)
{
    struct collector *collector = source;
    if (!collector)
        return;
    for (int i = 0; i < (int)ADDRESS_SERVICES; i++)
        wire_close(collector->sockets[i]);
    wire_context_free(collector->context);
    free(collector);
}

static enum status collector_open(void **source, const struct remote_target *target,
                                  struct error *err)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return error_set(err, STATUS_NOMEM, "remote: out of memory");
    collector->wake_fd = -1;
    collector->timeout_ns = target->timeout_ns ? target->timeout_ns : default_timeout_ns;
    enum status status = collector_address(&collector->address, target, err);
    if (status == STATUS_OK)
        status = check_permission(&collector->address, err);
    if (status == STATUS_OK)
        status = wire_context_new(&collector->context, err);
    if (status != STATUS_OK) {
        collector_close(collector);
        return status;
    }
    (void)address_text(collector->name, &collector->address);
    *source = collector;
    return STATUS_OK;
}

static void collector_wake_on(void *source, int wake_fd)
{
    struct collector *collector = source;
    collector->wake_fd = wake_fd;
}

static const char *collector_name(const void *source)
{
    const struct collector *collector = source;
    return collector->name;
}

// ---- Asking -----------------------------------------------------------------------

static enum status unreachable(const struct collector *collector, struct error *err)
{
    char waited[UNIT_TEXT_SIZE];
    return error_set(err, STATUS_UNREACHABLE,
                     "collector %.300s: no answer within %s (is inferstatd running there? name "
                     "another with --collector, or a store file with --db)",
                     collector->name,
                     unit_format_int(waited, UNIT_DURATION, (int64_t)collector->timeout_ns));
}

static enum status socket_of(struct collector *collector, enum address_service service,
                             struct wire_socket **out, struct error *err)
{
    enum status status = STATUS_OK;
    if (!collector->sockets[service]) {
        char endpoint[ADDRESS_TEXT_SIZE];
        status = wire_connect(&collector->sockets[service], collector->context,
                              address_endpoint(endpoint, &collector->address, service), NULL, err);
    }
    *out = collector->sockets[service];
    return status;
}

// A socket that has not answered starts afresh with the next query: what it had
// queued, and answers still on their way, go with it.
static void forget_socket(struct collector *collector, enum address_service service)
{
    wire_close(collector->sockets[service]);
    collector->sockets[service] = NULL;
}

// Whether the wait is to end early.
static bool is_woken(int wake_fd)
{
    struct pollfd waited = {.fd = wake_fd, .events = POLLIN};
    return wake_fd >= 0 && poll(&waited, 1, 0) > 0;
}

// Whether waiting may go on: STATUS_OK, and the time now.
static enum status may_wait(uint64_t deadline_ns, int wake_fd, uint64_t *now_ns)
{
    *now_ns = clock_monotonic_ns();
    if (*now_ns >= deadline_ns)
        return STATUS_TIMEOUT;
    return is_woken(wake_fd) ? STATUS_CANCELLED : STATUS_OK;
}

// Sends as soon as somebody is connected.
static enum status send_until(struct wire_socket *socket, const void *bytes, size_t size,
                              uint64_t deadline_ns, int wake_fd)
{
    uint64_t pause_ns = retry_first_ns;
    for (;;) {
        enum status status = wire_send(socket, NULL, bytes, size);
        if (status != STATUS_FULL)
            return status;
        uint64_t now_ns;
        status = may_wait(deadline_ns, wake_fd, &now_ns);
        if (status != STATUS_OK)
            return status;
        uint64_t wake_ns = now_ns + pause_ns;
        clock_sleep_until_ns(wake_ns < deadline_ns ? wake_ns : deadline_ns);
        pause_ns = pause_ns * 2 < retry_most_ns ? pause_ns * 2 : retry_most_ns;
    }
}

// Receives until the reply with that id is there; others are of queries that
// nobody waits for any more, and signs of life.
static enum status receive_until(struct wire_socket *socket, uint64_t id, uint64_t deadline_ns,
                                 int wake_fd, struct message *reply, uint64_t *heard_ns)
{
    for (;;) {
        struct wire_frame frame;
        enum status status = wire_receive(socket, &frame);
        if (status == STATUS_OK) {
            status = codec_decode(reply, frame.bytes, frame.size, NULL);
            wire_frame_release(&frame);
            if (status != STATUS_OK)
                continue;
            if (reply->kind == MESSAGE_REPLY && reply->reply.id == id)
                return STATUS_OK;
            message_free(reply);
            *heard_ns = clock_monotonic_ns();
            continue;
        }
        if (status == STATUS_INVALID)
            continue;
        if (status != STATUS_NO_DATA)
            return status;
        uint64_t now_ns;
        status = may_wait(deadline_ns, wake_fd, &now_ns);
        if (status != STATUS_OK)
            return status;
        uint32_t ready;
        wire_wait(&socket, 1, wake_fd, (int64_t)(deadline_ns - now_ns), &ready);
    }
}

static enum status status_of(enum reply_status status)
{
    switch (status) {
    case REPLY_OK:
        return STATUS_OK;
    case REPLY_INVALID:
        return STATUS_INVALID;
    case REPLY_NO_DATA:
        return STATUS_NO_DATA;
    case REPLY_DENIED:
        return STATUS_DENIED;
    case REPLY_TOO_LARGE:
        return STATUS_FULL;
    case REPLY_FAILED:
        break;
    }
    return STATUS_IO;
}

// Takes the answer out of a reply.
static enum status take_answer(struct message *reply, struct result **out, struct error *err)
{
    enum status status = status_of(reply->reply.status);
    if (status != STATUS_OK) {
        const struct wire_bytes *why = &reply->reply.error;
        char text[ERROR_TEXT_SIZE];
        return error_set(err, status, "%s",
                         why->size ? text_escape(text, sizeof text, why->bytes, why->size)
                                   : status_text(status));
    }
    if (!reply->reply.result)
        return error_set(err, STATUS_CORRUPT, "the collector's answer has no table");
    *out = reply->reply.result;
    reply->reply.result = NULL;
    return STATUS_OK;
}

// How long answers may take whose work grows with the store; the one who asked can
// give up.  0: as any other.
static uint64_t slow_ns(enum query_kind kind)
{
    static const uint64_t second_ns = UINT64_C(1000000000);
    if (kind == QUERY_CLEAR)
        return 600 * second_ns;
    return kind == QUERY_AUDIT ? 130 * second_ns : 0; // it has 120 itself
}

// While it works on something slow a collector answers other queries.
static void ping(struct collector *collector, struct wire_socket *socket)
{
    const struct message query = {.kind = MESSAGE_QUERY,
                                  .query = {.id = ++collector->last_id,
                                            .protocol = MESSAGE_PROTOCOL,
                                            .query.kind = QUERY_PING}};
    unsigned char *bytes;
    size_t size;
    if (codec_encode(&bytes, &size, &query, NULL) != STATUS_OK)
        return;
    (void)!wire_send(socket, NULL, bytes, size); // what is lost is not answered
    free(bytes);
}

// Waits for a slow answer as long as the collector is alive.
static enum status receive_slowly(struct collector *collector, struct wire_socket *socket,
                                  uint64_t id, uint64_t deadline_ns, struct message *reply)
{
    uint64_t heard_ns = clock_monotonic_ns();
    for (;;) {
        const uint64_t look_ns = clock_monotonic_ns() + collector->timeout_ns / 2;
        enum status status =
            receive_until(socket, id, look_ns < deadline_ns ? look_ns : deadline_ns,
                          collector->wake_fd, reply, &heard_ns);
        if (status != STATUS_TIMEOUT)
            return status;
        const uint64_t now_ns = clock_monotonic_ns();
        if (now_ns >= deadline_ns || now_ns - heard_ns >= collector->timeout_ns)
            return STATUS_TIMEOUT;
        ping(collector, socket);
    }
}

// Asks and waits.  A question that only reads is asked again at half-time: the
// first may have gone to a collector that was just being restarted.
static enum status ask(struct wire_socket *socket, const void *bytes, size_t size,
                       const struct message *query, struct collector *collector,
                       struct message *reply)
{
    const enum query_kind kind = query->query.query.kind;
    const uint64_t slow = slow_ns(kind), now_ns = clock_monotonic_ns();
    const bool once = query_is_administrative(kind) || slow != 0;
    const uint64_t deadlines_ns[] = {now_ns + collector->timeout_ns / 2,
                                     now_ns + collector->timeout_ns};
    enum status status = STATUS_TIMEOUT;
    uint64_t heard_ns = now_ns;
    for (int i = once ? 1 : 0; i < 2 && status == STATUS_TIMEOUT; i++) {
        status = send_until(socket, bytes, size, deadlines_ns[i], collector->wake_fd);
        if (status == STATUS_OK && slow != 0)
            status = receive_slowly(collector, socket, query->query.id, now_ns + slow, reply);
        else if (status == STATUS_OK)
            status = receive_until(socket, query->query.id, deadlines_ns[i], collector->wake_fd,
                                   reply, &heard_ns);
    }
    return status;
}

static enum status exchange(struct wire_socket *socket, const struct message *query,
                            struct collector *collector, struct result **out, struct error *err)
{
    unsigned char *bytes;
    size_t size;
    enum status status = codec_encode(&bytes, &size, query, err);
    if (status != STATUS_OK)
        return status;
    struct message reply;
    status = ask(socket, bytes, size, query, collector, &reply);
    free(bytes);
    if (status != STATUS_OK)
        return error_set(err, status, "%s", status_text(status));
    status = take_answer(&reply, out, err);
    message_free(&reply);
    return status;
}

static enum status collector_query(void *source, const struct query *query, struct result **out,
                                   struct error *err)
{
    struct collector *collector = source;
    enum address_service service =
        query_is_administrative(query->kind) ? ADDRESS_ADMIN : ADDRESS_QUERY;
    struct wire_socket *socket;
    enum status status = socket_of(collector, service, &socket, err);
    if (status != STATUS_OK)
        return status;
    struct message *message = calloc(1, sizeof *message);
    if (!message)
        return error_set(err, STATUS_NOMEM, "remote: out of memory");
    message->kind = MESSAGE_QUERY;
    message->query = (struct message_query){
        .id = ++collector->last_id, .protocol = MESSAGE_PROTOCOL, .query = *query};
    status = exchange(socket, message, collector, out, err);
    free(message);
    if (status == STATUS_TIMEOUT) {
        forget_socket(collector, service);
        return unreachable(collector, err);
    }
    return status;
}

const struct source_ops source_collector = {
    .open = collector_open,
    .close = collector_close,
    .query = collector_query,
    .wake_on = collector_wake_on,
    .name = collector_name,
    .live_open = collector_live_open,
    .live_close = collector_live_close,
    .live_next = collector_live_next,
};
