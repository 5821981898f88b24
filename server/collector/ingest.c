#include "server/collector/ingest.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "common/wire/codec.h"
#include "server/collector/door.h"
#include "server/collector/limits.h"
#include "server/collector/service.h"
#include "server/collector/work.h"

enum {
    FRAMES_PER_TURN = 32,      // of one socket before the others and the Acks have theirs
    ROOM_WAIT_NS = 2000000,    // how long to wait for the writer to make room
    IDLE_WAIT_NS = 1000000000, // longest sleep
};

// What main wants of the thread; it is told through the queue of Acks.
enum wish { WISH_RUN, WISH_DRAIN, WISH_END };

struct ingest {
    struct ingest_config config;
    struct service service;
    struct wire_socket *sockets[ENDPOINTS_MAX];
    struct door door;
    struct work *pending; // decoded, and no room in the inbox yet
    size_t pending_bytes;
    struct work *stop; // WORK_STOP, until it is passed on
    // Set by main, read by the thread after it was woken; nothing else is
    // published by it, so relaxed order is enough.
    atomic_int wish;
};

// ---- Answers -----------------------------------------------------------------------

static void send_answers(struct ingest *ingest)
{
    struct answer *answer;
    while ((answer = queue_pop(ingest->config.acks)) != NULL) {
        // Lost where the producer is gone or does not read: it asks again.
        if (answer->size)
            (void)!wire_send(ingest->sockets[answer->to.socket], &answer->to.route, answer->bytes,
                             answer->size);
        answer_free(answer);
    }
}

static void answer_error(struct ingest *ingest, unsigned socket, const struct wire_route *route,
                         const unsigned char run[MESSAGE_RUN_SIZE], const char *text)
{
    struct message message = {.kind = MESSAGE_ACK};
    message.ack.protocol = MESSAGE_PROTOCOL;
    memcpy(message.ack.run, run, MESSAGE_RUN_SIZE);
    memcpy(message.ack.delivery.store, ingest->config.store, 16);
    message.ack.error = (struct wire_bytes){strlen(text), text};
    message.ack.sent_ns = clock_wall_ns();
    const struct work_return to = {.socket = socket, .route = *route};
    struct answer *answer = answer_encode(&to, &message);
    if (answer)
        (void)!wire_send(ingest->sockets[socket], route, answer->bytes, answer->size);
    answer_free(answer);
}

// ---- Frames ------------------------------------------------------------------------

static void hand_over(struct ingest *ingest, struct work *work, size_t bytes)
{
    if (queue_push(ingest->config.inbox, work, bytes))
        return;
    ingest->pending = work;
    ingest->pending_bytes = bytes;
}

static bool is_for_ingest(const struct message *message)
{
    return message->kind == MESSAGE_HELLO || message->kind == MESSAGE_BATCH ||
           message->kind == MESSAGE_GOODBYE;
}

static enum status decode(struct work *work, const struct wire_frame *frame, struct error *err)
{
    enum status status = codec_decode_untrusted(&work->message, frame->bytes, frame->size, err);
    if (status != STATUS_OK || is_for_ingest(&work->message))
        return status;
    message_free(&work->message);
    memset(&work->message, 0, sizeof work->message);
    return error_set(err, STATUS_INVALID, "this message is not for the ingest socket");
}

// A batch that is too large will be so each time it comes: its records are given up.
static void check_size(struct ingest *ingest, struct work *work, const struct wire_frame *frame)
{
    if (frame->size <= LIMITS_BATCH_BYTES || work->message.kind != MESSAGE_BATCH)
        return;
    refusals_count(ingest->config.refusals, REFUSAL_MESSAGE_SIZE, 1);
    work->message.batch.fault = "the batch is larger than 4 MiB";
}

static const unsigned char *run_of(const struct message *message)
{
    if (message->kind == MESSAGE_HELLO)
        return message->hello.run;
    return message->kind == MESSAGE_BATCH ? message->batch.run : message->goodbye.run;
}

// Whether the message is taken; else it was answered.
static bool is_taken(struct ingest *ingest, unsigned socket, const struct wire_frame *frame,
                     struct work *work)
{
    struct error err = {0};
    const char *why;
    enum status status = decode(work, frame, &err);
    if (status == STATUS_NOMEM)
        return false; // as if it had been lost on the way
    if (status != STATUS_OK) {
        refusals_count(ingest->config.refusals, REFUSAL_UNDECODABLE, 1);
        answer_error(ingest, socket, &frame->route, work->message.failed_run, err.text);
        return false;
    }
    if (!door_lets_in(&ingest->door, frame, &why)) {
        answer_error(ingest, socket, &frame->route, run_of(&work->message), why);
        message_free(&work->message);
        return false;
    }
    return true;
}

// False where its sender is far beyond its credit: it will ask again.
static bool take_share(struct ingest *ingest, struct work *work)
{
    const struct message_batch *batch = &work->message.batch;
    if (work->message.kind == MESSAGE_BATCH && batch->first != 0)
        work->records = (uint32_t)(batch->last - batch->first + 1);
    work->peer =
        share_take(ingest->config.share, work->from.socket, &work->from.route, work->records);
    if (!work->peer)
        refusals_count(ingest->config.refusals, REFUSAL_OVER_CREDIT, 1);
    return work->peer != NULL;
}

static void take_frame(struct ingest *ingest, unsigned socket, const struct wire_frame *frame)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return; // as if it had been lost on the way
    work->from = (struct work_return){.socket = socket, .route = frame->route};
    work->has_key = frame->has_key;
    memcpy(work->key, frame->key, sizeof work->key);
    work->received_ns = clock_wall_ns();
    if (!is_taken(ingest, socket, frame, work)) {
        free(work);
        return;
    }
    check_size(ingest, work, frame);
    if (!take_share(ingest, work)) {
        work_free(work);
        return;
    }
    hand_over(ingest, work, sizeof *work + message_memory(&work->message));
}

static void receive(struct ingest *ingest, unsigned socket)
{
    for (unsigned i = 0; i < FRAMES_PER_TURN && !ingest->pending; i++) {
        struct wire_frame frame;
        enum status status = wire_receive(ingest->sockets[socket], &frame);
        if (status == STATUS_INVALID) {
            refusals_count(ingest->config.refusals, REFUSAL_UNDECODABLE, 1);
            continue;
        }
        if (status != STATUS_OK)
            return;
        take_frame(ingest, socket, &frame);
        wire_frame_release(&frame);
    }
}

// Hands over what had no room; true when nothing is left.
static bool flush_pending(struct ingest *ingest)
{
    if (ingest->pending && queue_push(ingest->config.inbox, ingest->pending, ingest->pending_bytes))
        ingest->pending = NULL;
    return !ingest->pending;
}

static void wait_and_receive(struct ingest *ingest, int64_t wait_ns)
{
    uint32_t ready = 0;
    const unsigned count = ingest->config.endpoints->count;
    if (!flush_pending(ingest)) {
        wire_wait(ingest->sockets, 0, queue_fd(ingest->config.acks), ROOM_WAIT_NS, &ready);
        return;
    }
    wire_wait(ingest->sockets, count, queue_fd(ingest->config.acks), wait_ns, &ready);
    for (unsigned i = 0; i < count && !ingest->pending; i++)
        if (ready >> i & 1)
            receive(ingest, i);
}

// ---- The end -------------------------------------------------------------------------

static void pass_stop(struct ingest *ingest)
{
    uint32_t ready = 0;
    while (!flush_pending(ingest))
        wire_wait(ingest->sockets, 0, -1, ROOM_WAIT_NS, &ready);
    struct work *stop = ingest->stop;
    ingest->stop = NULL;
    hand_over(ingest, stop, sizeof *stop);
    while (!flush_pending(ingest))
        wire_wait(ingest->sockets, 0, -1, ROOM_WAIT_NS, &ready);
}

static void *ingest_body(void *context)
{
    struct ingest *ingest = context;
    struct error err = {0};
    enum status status =
        door_open(&ingest->door, ingest->config.endpoints, ADDRESS_INGEST, ingest->sockets, &err);
    service_report(&ingest->service, status, &err);
    if (status == STATUS_OK) {
        while (atomic_load_explicit(&ingest->wish, memory_order_relaxed) == WISH_RUN) {
            const uint64_t now_ns = clock_monotonic_ns();
            service_beat(&ingest->service, now_ns);
            door_keep(&ingest->door, now_ns);
            wait_and_receive(ingest, door_wait(&ingest->door, now_ns));
            send_answers(ingest);
        }
        pass_stop(ingest);
        while (atomic_load_explicit(&ingest->wish, memory_order_relaxed) != WISH_END) {
            queue_wait(ingest->config.acks, IDLE_WAIT_NS);
            send_answers(ingest);
        }
        send_answers(ingest);
    }
    endpoints_close(ingest->sockets);
    return NULL;
}

// ---- Any thread ------------------------------------------------------------------------

// Sets the wish and wakes the thread with an empty answer.
static void tell(struct ingest *ingest, enum wish wish)
{
    atomic_store_explicit(&ingest->wish, (int)wish, memory_order_relaxed);
    struct answer *wake = calloc(1, sizeof *wake);
    // A full queue, or no memory: the thread looks within a second anyway.
    if (wake && !queue_push(ingest->config.acks, wake, sizeof *wake))
        answer_free(wake);
}

enum status ingest_start(struct ingest **out, const struct ingest_config *config, struct error *err)
{
    struct ingest *ingest = calloc(1, sizeof *ingest);
    if (!ingest)
        return error_set(err, STATUS_NOMEM, "ingest: out of memory");
    ingest->config = *config;
    ingest->stop = calloc(1, sizeof *ingest->stop);
    enum status status = STATUS_OK;
    if (!ingest->stop)
        status = error_set(err, STATUS_NOMEM, "ingest: out of memory");
    else
        ingest->stop->kind = WORK_STOP;
    if (status == STATUS_OK)
        status = service_start(&ingest->service, ingest_body, ingest, err);
    if (status != STATUS_OK) {
        work_free(ingest->stop);
        free(ingest);
        return status;
    }
    *out = ingest;
    return STATUS_OK;
}

uint64_t ingest_beaten_ns(struct ingest *ingest)
{
    return service_beaten_ns(&ingest->service);
}

void ingest_stop(struct ingest *ingest)
{
    tell(ingest, WISH_DRAIN);
}

void ingest_join(struct ingest *ingest)
{
    if (!ingest)
        return;
    tell(ingest, WISH_END);
    service_join(&ingest->service);
    work_free(ingest->pending);
    work_free(ingest->stop);
    free(ingest);
}
