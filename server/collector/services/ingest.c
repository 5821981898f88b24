#include "server/collector/services/services.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "common/sys/thread.h"
#include "common/wire/codec.h"
#include "server/collector/access/quota.h"
#include "server/collector/threads/limits.h"
#include "server/collector/threads/job.h"

enum {
    FRAMES_PER_TURN = 32,      // from one socket before others and Acks are served
    ROOM_WAIT_NS = 2000000,    // retry interval while the inbox is full
    IDLE_WAIT_NS = 1000000000, // longest sleep
    HELLO_COST = 1024,         // of credit, in records: the writer looks a run up
};

// The requested state of the thread; a wake-up follows through the queue of Acks.
enum state { STATE_RUN, STATE_DRAIN, STATE_END };

struct ingest {
    const unsigned char *store;
    struct channels *channels;
    struct thread thread;
    struct admission admission;
    struct job *pending; // decoded, waiting for room in the inbox
    size_t pending_bytes;
    // Set by main, read by the thread after it was woken; publishes nothing else: relaxed.
    atomic_int state;
};

static bool is_connected(void *connections, const struct job_return *at)
{
    const struct admission *admission = connections;
    return port_is_connected(admission->sockets[at->socket], &at->route);
}

// ---- Answers -----------------------------------------------------------------------

static void answer_error(struct ingest *ingest, unsigned socket, const struct wire_route *route,
                         const unsigned char run[MESSAGE_RUN_SIZE], const char *text)
{
    struct message message = {.kind = MESSAGE_ACK};
    message.ack.protocol = MESSAGE_PROTOCOL;
    memcpy(message.ack.run, run, MESSAGE_RUN_SIZE);
    memcpy(message.ack.delivery.store, ingest->store, 16);
    message.ack.error = (struct wire_bytes){strlen(text), text};
    message.ack.sent_ns = clock_wall_ns();
    const struct job_return to = {.socket = socket, .route = *route};
    answer_send_counted(ingest->admission.sockets, answer_encode(&to, &message),
                        &ingest->channels->rejects);
}

static void send_acks(struct ingest *ingest)
{
    answer_send_queued(ingest->admission.sockets, ingest->channels->acks,
                       &ingest->channels->rejects);
}

// ---- Frames ------------------------------------------------------------------------

static void hand_over(struct ingest *ingest, struct job *job, size_t bytes)
{
    if (queue_push(ingest->channels->inbox, job, bytes))
        return;
    ingest->pending = job;
    ingest->pending_bytes = bytes;
}

static enum status decode(struct job *job, const struct wire_frame *frame, struct error *err)
{
    enum status status = codec_decode_untrusted(&job->message, frame->bytes, frame->size, err);
    if (status != STATUS_OK || message_run(&job->message))
        return status;
    message_free(&job->message);
    return error_set(err, STATUS_INVALID, "this message is not for the ingest socket");
}

// Decodes and checks the message; if false, it was answered or dropped.
static bool is_accepted(struct ingest *ingest, unsigned socket, const struct wire_frame *frame,
                        struct job *job)
{
    struct error err = {0};
    const char *why;
    enum status status = decode(job, frame, &err);
    if (status == STATUS_NOMEM)
        return false; // as if it had been lost on the way
    if (status != STATUS_OK) {
        reject_counters_count(&ingest->channels->rejects, REFUSAL_UNDECODABLE, 1);
        quota_complain(ingest->channels->quota, &frame->peer,
                       "sends messages that cannot be decoded", 1);
        answer_error(ingest, socket, &frame->route, job->message.failed_run, err.text);
        return false;
    }
    if (!admission_allows(&ingest->admission, socket, frame, &why)) {
        answer_error(ingest, socket, &frame->route, message_run(&job->message), why);
        message_free(&job->message);
        return false;
    }
    return true;
}

// False when the sender is far beyond its credit; it will send again.
static bool acquire_credit(struct ingest *ingest, struct job *job)
{
    job->credit = peer_credit_acquire(&ingest->channels->credit, job->from.socket, &job->from.route,
                                      job->records);
    if (job->credit)
        return true;
    reject_counters_count(&ingest->channels->rejects, REFUSAL_OVER_CREDIT, 1);
    quota_complain(ingest->channels->quota, &job->peer, "sends far more than its credit", 1);
    return false;
}

// False when the sender's owner has exceeded a quota; it will send again.
static bool is_within_quota(struct ingest *ingest, struct job *job, const struct wire_frame *frame)
{
    struct quota *quota = ingest->channels->quota;
    const uint64_t now_ns = clock_monotonic_ns();
    const struct message *message = &job->message;
    struct quota_message about = {.bytes = frame->size, .records = job->records};
    if (message->kind == MESSAGE_HELLO)
        about.rows = 1 + message->hello.stream_count;
    else if (message->kind == MESSAGE_BATCH)
        about.rows = job->records + message->batch.name_count + message->batch.drop_count;
    else
        about.rows = message->goodbye.drop_count;
    const bool is_admitted = quota_admit(quota, &job->peer, &about, now_ns, &job->owner);
    if (!is_admitted)
        reject_counters_count(&ingest->channels->rejects, REFUSAL_QUOTA, 1);
    return is_admitted;
}

static void on_frame(struct ingest *ingest, unsigned socket, const struct wire_frame *frame)
{
    struct job *job = job_new(JOB_MESSAGE);
    if (!job)
        return; // as if it had been lost on the way
    job->from = (struct job_return){.socket = socket, .route = frame->route};
    job->peer = frame->peer;
    job->received_ns = clock_wall_ns();
    if (!is_accepted(ingest, socket, frame, job)) {
        free(job);
        return;
    }
    struct message_batch *batch = &job->message.batch;
    const bool is_batch = job->message.kind == MESSAGE_BATCH;
    if (is_batch && frame->size > LIMITS_BATCH_BYTES) { // its records are dropped, for good
        reject_counters_count(&ingest->channels->rejects, REFUSAL_MESSAGE_SIZE, 1);
        batch->fault = "the batch is larger than 4 MiB";
    }
    if (is_batch && batch->first != 0)
        job->records = (uint32_t)(batch->last - batch->first + 1);
    const bool is_admitted = is_within_quota(ingest, job, frame);
    if (job->message.kind == MESSAGE_HELLO)
        job->records = HELLO_COST;
    if (!is_admitted || !acquire_credit(ingest, job)) {
        job_free(job);
        return;
    }
    hand_over(ingest, job, sizeof *job + message_memory(&job->message));
}

static void receive(struct ingest *ingest, unsigned socket)
{
    for (unsigned i = 0; i < FRAMES_PER_TURN && !ingest->pending; i++) {
        struct wire_frame frame;
        if (port_receive(ingest->admission.sockets[socket], &frame) != STATUS_OK)
            return;
        on_frame(ingest, socket, &frame);
        port_release(&frame);
    }
}

// Retries the pending job; true when none is left.
static bool flush_pending(struct ingest *ingest)
{
    if (ingest->pending &&
        queue_push(ingest->channels->inbox, ingest->pending, ingest->pending_bytes))
        ingest->pending = NULL;
    return !ingest->pending;
}

static void wait_and_receive(struct ingest *ingest)
{
    uint32_t ready = 0;
    if (!flush_pending(ingest)) {
        admission_update(&ingest->admission, clock_monotonic_ns());
        port_wait(NULL, 0, queue_fd(ingest->channels->acks), ROOM_WAIT_NS, &ready);
        return;
    }
    admission_wait(&ingest->admission, queue_fd(ingest->channels->acks), &ready);
    for (unsigned i = 0; i < ingest->admission.count && !ingest->pending; i++)
        if (ready >> i & 1)
            receive(ingest, i);
}

// ---- The end -------------------------------------------------------------------------

static void pass_stop(struct ingest *ingest)
{
    uint32_t ready = 0;
    while (!flush_pending(ingest))
        port_wait(ingest->admission.sockets, 0, -1, ROOM_WAIT_NS, &ready);
    struct job *stop = ingest->channels->stop;
    ingest->channels->stop = NULL;
    hand_over(ingest, stop, sizeof *stop);
    while (!flush_pending(ingest))
        port_wait(ingest->admission.sockets, 0, -1, ROOM_WAIT_NS, &ready);
}

static void *ingest_body(void *context)
{
    struct ingest *ingest = context;
    while (atomic_load_explicit(&ingest->state, memory_order_relaxed) == STATE_RUN) {
        atomic_store_explicit(&ingest->channels->ingest_beat_ns, clock_monotonic_ns(),
                              memory_order_relaxed);
        wait_and_receive(ingest);
        send_acks(ingest);
    }
    pass_stop(ingest);
    while (atomic_load_explicit(&ingest->state, memory_order_relaxed) != STATE_END) {
        queue_wait(ingest->channels->acks, IDLE_WAIT_NS);
        send_acks(ingest);
    }
    send_acks(ingest);
    return NULL;
}

// ---- Any thread ------------------------------------------------------------------------

// Sets the state and wakes the thread with an empty answer.
static void set_state(struct ingest *ingest, enum state state)
{
    atomic_store_explicit(&ingest->state, (int)state, memory_order_relaxed);
    answer_wake(ingest->channels->acks); // if that fails, the thread checks within a second anyway
}

enum status ingest_start(struct ingest **out, const struct endpoints *endpoints,
                         const unsigned char *store, struct channels *channels, struct error *err)
{
    struct ingest *ingest = calloc(1, sizeof *ingest);
    if (!ingest)
        return error_no_memory(err, "ingest");
    ingest->store = store;
    ingest->channels = channels;
    channels->is_connected = is_connected;
    channels->connections = &ingest->admission;
    enum status status = admission_open(&ingest->admission, endpoints, ADDRESS_INGEST, err);
    if (status == STATUS_OK)
        status = thread_start(&ingest->thread, "ingest", ingest_body, ingest, err);
    if (status != STATUS_OK) {
        ingest_join(ingest);
        return status;
    }
    *out = ingest;
    return STATUS_OK;
}

void ingest_stop(struct ingest *ingest)
{
    set_state(ingest, STATE_DRAIN);
}

void ingest_join(struct ingest *ingest)
{
    if (!ingest)
        return;
    set_state(ingest, STATE_END);
    thread_join(&ingest->thread);
    admission_close(&ingest->admission);
    job_free(ingest->pending);
    free(ingest);
}
