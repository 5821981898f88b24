// The delivery producer: chooses the next action.
#include <stddef.h>

#include "common/core/delivery/delivery_state.h"

enum {
    UNSENT_PART = 10, // an unsent message is retried after 1/10 of resend_after_ns
    RING_PART = 2,    // a ring with half of its records waiting is spooled
};

static bool elapsed(uint64_t since_ns, uint64_t now_ns, uint64_t wait_ns)
{
    return now_ns >= since_ns && now_ns - since_ns >= wait_ns;
}

static bool answer_overdue(const struct delivery_producer *producer, uint64_t now_ns)
{
    if (producer->asked && elapsed(producer->asked_since_ns, now_ns, producer->wait_ns))
        return true;
    if (producer->phase != DELIVERY_PHASE_FLOWING)
        return false;
    for (size_t i = 0; i < producer->stream_count; i++) {
        const struct delivery_flow *flow = &producer->flows[i];
        if (flow->sent > delivery_flow_base(flow) &&
            elapsed(flow->since_ns, now_ns, producer->wait_ns))
            return true;
    }
    return false;
}

// Answer timeout: restarts with Hello, and doubles the timeout unless the message could not be
// sent.
static void on_timeout(struct delivery_producer *producer, uint64_t now_ns)
{
    if (producer->contact != DELIVERY_CONTACT_LOST) {
        producer->contact_lost_ns = now_ns;
        producer->swept = false;
    }
    producer->contact = DELIVERY_CONTACT_LOST;
    if (!producer->held)
        producer->wait_ns = min_u64(producer->wait_ns * 2, producer->config.resend_max_ns);
    delivery_begin_with_hello(producer);
}

// Fills the action of a message about to be sent and starts the answer timeout.
static bool emit(struct delivery_producer *producer, struct delivery_action *action,
                 enum delivery_action_kind kind, uint64_t now_ns)
{
    *action = (struct delivery_action){.kind = kind, .names_first = 1};
    if (kind != DELIVERY_SEND_HELLO)
        action->sequence = ++producer->sequence;
    if (!producer->asked) {
        producer->asked = true;
        producer->asked_since_ns = now_ns;
    }
    producer->last_send_ns = now_ns;
    producer->held = false;
    return true;
}

// Adds the names that the store does not know: every batch carries them, so that no record
// depends on an earlier message.
static void add_names(struct delivery_producer *producer, struct delivery_action *action)
{
    action->names_first = producer->names_known + 1;
    action->names_last = (uint32_t)min_u64(producer->names_count,
                                           (uint64_t)producer->names_known + DELIVERY_NAMES_MAX);
    producer->drops_due = false; // dropped ranges are sent too
}

static bool send_heartbeat(struct delivery_producer *producer, struct delivery_action *action,
                           uint64_t now_ns)
{
    (void)emit(producer, action, DELIVERY_SEND_HEARTBEAT, now_ns);
    add_names(producer, action);
    return true;
}

// The number of records of a stream to send now, without dropped ones.  0 while the remaining
// credit covers only a part of a batch and records are in flight: their acknowledgement
// brings more credit.
static uint64_t batch_size(const struct delivery_producer *producer, size_t at, uint64_t flying,
                           uint64_t *first)
{
    const uint32_t stream = producer->streams[at].stream;
    uint64_t last = producer->streams[at].produced;
    *first = producer->flows[at].sent + 1;
    if (producer->dropped.count) {
        *first = delivery_dropped_skip(&producer->dropped, stream, *first);
        last = min_u64(last, delivery_dropped_next(&producer->dropped, stream, *first) - 1);
    }
    if (*first > last)
        return 0;
    const uint64_t records = min_u64(last - *first + 1, producer->config.batch_records);
    const uint64_t room = producer->credit > flying ? producer->credit - flying : 0;
    if (records <= room)
        return records;
    return flying == 0 ? room : 0;
}

// Sends a batch of the next stream that has records (round robin).
static bool send_batch(struct delivery_producer *producer, struct delivery_action *action,
                       uint64_t now_ns)
{
    const uint64_t flying = delivery_in_flight(producer);
    for (size_t i = 0; i < producer->stream_count; i++) {
        const size_t at = (producer->turn + i) % producer->stream_count;
        uint64_t first;
        const uint64_t records = batch_size(producer, at, flying, &first);
        if (records == 0)
            continue;
        struct delivery_flow *flow = &producer->flows[at];
        (void)emit(producer, action, DELIVERY_SEND_BATCH, now_ns);
        add_names(producer, action);
        action->stream = producer->streams[at].stream;
        action->first = first;
        action->last = first + records - 1;
        if (flow->sent == delivery_flow_base(flow))
            flow->since_ns = now_ns;
        flow->sent = action->last;
        flow->last_sequence = action->sequence;
        producer->turn = at + 1;
        return true;
    }
    return false;
}

static bool send_goodbye(struct delivery_producer *producer, struct delivery_action *action,
                         uint64_t now_ns)
{
    if (!producer->closing || producer->goodbye_sent || !delivery_all_acknowledged(producer) ||
        now_ns < producer->goodbye_not_before_ns)
        return false;
    producer->goodbye_sent = true;
    return emit(producer, action, DELIVERY_SEND_GOODBYE, now_ns);
}

static bool next_flowing(struct delivery_producer *producer, uint64_t now_ns,
                         struct delivery_action *action)
{
    // Too many new names for one message: heartbeats send them first, in parts.
    if (producer->names_count - producer->names_known > DELIVERY_NAMES_MAX) {
        if (producer->names_asked)
            return false;
        producer->names_asked = true;
        return send_heartbeat(producer, action, now_ns);
    }
    if (send_batch(producer, action, now_ns) || send_goodbye(producer, action, now_ns))
        return true;
    if (producer->drops_due ||
        elapsed(producer->last_send_ns, now_ns, producer->config.heartbeat_ns))
        return send_heartbeat(producer, action, now_ns);
    return false;
}

static bool next_free(struct delivery_producer *producer, struct delivery_action *action)
{
    for (size_t i = 0; i < producer->stream_count; i++) {
        struct delivery_flow *flow = &producer->flows[i];
        if (flow->acknowledged <= flow->released)
            continue;
        *action = (struct delivery_action){.kind = DELIVERY_FREE,
                                           .stream = producer->streams[i].stream,
                                           .first = flow->released + 1,
                                           .last = min_u64(flow->acknowledged, flow->told),
                                           .names_first = 1};
        flow->released = flow->acknowledged;
        flow->spooled = max_u64(flow->spooled, flow->released);
        if (producer->dropped.count)
            delivery_dropped_settle(&producer->dropped, action->stream, flow->released);
        if (action->first <= action->last)
            return true;
    }
    return false;
}

// ---- Spool -------------------------------------------------------------------------

// While the collector does not answer, the contents of all rings go to the spool every
// spool_after_ns.
static void begin_sweep(struct delivery_producer *producer, uint64_t now_ns)
{
    const uint64_t since_ns = producer->swept ? producer->swept_at_ns : producer->contact_lost_ns;
    if (producer->contact != DELIVERY_CONTACT_LOST ||
        !elapsed(since_ns, now_ns, producer->config.spool_after_ns))
        return;
    producer->swept = true;
    producer->swept_at_ns = now_ns;
    for (size_t i = 0; i < producer->stream_count; i++)
        producer->flows[i].sweep_to = producer->streams[i].produced;
}

static bool spool_is_due(const struct delivery_producer *producer, size_t at)
{
    const struct delivery_flow *flow = &producer->flows[at];
    const uint64_t waiting = producer->streams[at].produced - flow->spooled;
    if (waiting == 0)
        return false;
    return producer->spool_all || waiting >= flow->ring_records / RING_PART ||
           (producer->contact == DELIVERY_CONTACT_LOST && flow->spooled < flow->sweep_to);
}

static bool next_spool(struct delivery_producer *producer, uint64_t now_ns,
                       struct delivery_action *action)
{
    if (producer->config.spool_after_ns == 0 || producer->phase == DELIVERY_PHASE_CLOSED ||
        (producer->spool_held && now_ns < producer->spool_held_until_ns))
        return false;
    begin_sweep(producer, now_ns);
    for (size_t i = 0; i < producer->stream_count; i++) {
        const size_t at = (producer->spool_turn + i) % producer->stream_count;
        if (!spool_is_due(producer, at))
            continue;
        const uint64_t spooled = producer->flows[at].spooled;
        *action = (struct delivery_action){
            .kind = DELIVERY_SPOOL,
            .stream = producer->streams[at].stream,
            .first = spooled + 1,
            .last = spooled + min_u64(producer->streams[at].produced - spooled,
                                      producer->config.batch_records),
            .names_first = 1,
        };
        producer->spool_turn = at + 1;
        return true;
    }
    return false;
}

// ---- Next action -------------------------------------------------------------------

static bool next_notice(struct delivery_producer *producer, struct delivery_action *action)
{
    *action = (struct delivery_action){.names_first = 1};
    if (producer->contact != producer->contact_told) {
        producer->contact_told = producer->contact;
        action->kind =
            producer->contact == DELIVERY_CONTACT_FOUND ? DELIVERY_CONTACT : DELIVERY_LOST_CONTACT;
        return true;
    }
    if (producer->phase == DELIVERY_PHASE_CLOSED && !producer->closed_told) {
        producer->closed_told = true;
        action->kind = DELIVERY_CLOSED;
        return true;
    }
    return false;
}

bool delivery_producer_next(struct delivery_producer *producer, uint64_t now_ns,
                            struct delivery_action *action)
{
    if (next_free(producer, action))
        return true;
    if (producer->phase != DELIVERY_PHASE_CLOSED && answer_overdue(producer, now_ns))
        on_timeout(producer, now_ns);
    if (next_notice(producer, action) || next_spool(producer, now_ns, action))
        return true;
    if (producer->held && now_ns < producer->held_until_ns)
        return false;
    switch (producer->phase) {
    case DELIVERY_PHASE_HELLO_DUE:
        producer->phase = DELIVERY_PHASE_HELLO_SENT;
        return emit(producer, action, DELIVERY_SEND_HELLO, now_ns);
    case DELIVERY_PHASE_FLOWING:
        return next_flowing(producer, now_ns, action);
    case DELIVERY_PHASE_HELLO_SENT:
    case DELIVERY_PHASE_CLOSED:
        break;
    }
    return false;
}

// Reverts the state change of delivery_producer_next.  The answer timeout continues.
void delivery_producer_unsent(struct delivery_producer *producer,
                              const struct delivery_action *action, uint64_t now_ns)
{
    producer->held = true;
    producer->held_until_ns = now_ns + producer->config.resend_after_ns / UNSENT_PART;
    if (action->sequence && action->sequence == producer->sequence)
        producer->sequence--; // it was never sent
    switch (action->kind) {
    case DELIVERY_SEND_HELLO:
        if (producer->phase == DELIVERY_PHASE_HELLO_SENT)
            producer->phase = DELIVERY_PHASE_HELLO_DUE;
        break;
    case DELIVERY_SEND_BATCH: {
        size_t at = delivery_find_stream(producer, action->stream);
        if (at < producer->stream_count && producer->flows[at].sent == action->last)
            producer->flows[at].sent = action->first - 1;
        break;
    }
    case DELIVERY_SEND_HEARTBEAT:
        producer->names_asked = false;
        break;
    case DELIVERY_SEND_GOODBYE:
        producer->goodbye_sent = false;
        break;
    case DELIVERY_SPOOL:
    case DELIVERY_FREE:
    case DELIVERY_LOST_CONTACT:
    case DELIVERY_CONTACT:
    case DELIVERY_CLOSED:
        break;
    }
    producer->drops_due = delivery_has_drops(producer);
}
