#include "common/core/delivery.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    STREAMS_ROOM_MIN = 8,
    UNSENT_PART = 10, // what could not be sent waits for 1/10 of resend_after_ns
};

// A stream as the protocol sees it.  Records up to `released` are no longer
// held; those after `acknowledged` are not in the store.  Normally released <=
// acknowledged <= sent; where a store has lost records, or is another one,
// acknowledged < released, and what lies between goes into a dropped range.
struct flow {
    uint64_t released;
    uint64_t acknowledged;
    uint64_t sent;          // in the current conversation
    uint64_t last_sequence; // of its latest batch
    uint64_t since_ns;      // records have been in flight without progress since then
};

enum phase {
    PHASE_HELLO_DUE,
    PHASE_HELLO_SENT,
    PHASE_FLOWING,
    PHASE_CLOSED,
};

enum contact { CONTACT_UNKNOWN, CONTACT_LOST, CONTACT_FOUND };

struct delivery_producer {
    struct delivery_config config;
    struct delivery_stream *streams;
    struct flow *flows; // parallel to streams
    size_t stream_count;
    size_t stream_room;
    size_t turn; // the stream whose batch may come first
    struct delivery_range *drops;
    size_t drop_count;

    enum phase phase;
    bool store_known;
    unsigned char store[16];
    uint32_t names_count;
    uint32_t names_known;
    uint32_t credit;
    uint64_t sequence; // last given out
    bool drops_due;    // ranges the collector has not been told since Hello
    bool names_asked;  // a part of many names is on its way
    bool closing;
    bool goodbye_sent;
    uint64_t goodbye_not_before_ns;

    bool asked; // an answer of any kind is due since then
    uint64_t asked_since_ns;
    uint64_t wait_ns; // how long answers may take
    bool held;        // the last message could not be sent; nothing goes until then
    uint64_t held_until_ns;
    uint64_t last_send_ns;

    enum contact contact;
    enum contact contact_told;
    bool closed_told;
    uint64_t invalid_acks;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// ---- Making and telling ----------------------------------------------------------

enum status delivery_producer_new(struct delivery_producer **out,
                                  const struct delivery_config *config)
{
    if (config->batch_records < 1 || config->batch_records > DELIVERY_BATCH_MAX ||
        config->resend_after_ns == 0 || config->resend_max_ns < config->resend_after_ns ||
        config->heartbeat_ns == 0)
        return STATUS_INVALID;
    struct delivery_producer *producer = calloc(1, sizeof *producer);
    if (!producer)
        return STATUS_NOMEM;
    producer->config = *config;
    producer->wait_ns = config->resend_after_ns;
    *out = producer;
    return STATUS_OK;
}

void delivery_producer_free(struct delivery_producer *producer)
{
    if (!producer)
        return;
    free(producer->streams);
    free(producer->flows);
    free(producer->drops);
    free(producer);
}

// The place of a stream, or stream_count.  Streams are mostly told in order.
static size_t find_stream(const struct delivery_producer *producer, uint32_t stream)
{
    size_t at = stream;
    if (at < producer->stream_count && producer->streams[at].stream == stream)
        return at;
    for (at = 0; at < producer->stream_count; at++)
        if (producer->streams[at].stream == stream)
            break;
    return at;
}

// Room for one more stream, and for one dropped range a stream, which is as many
// as there can be.
static bool make_room(struct delivery_producer *producer)
{
    if (producer->stream_count < producer->stream_room)
        return true;
    size_t room = producer->stream_room ? producer->stream_room * 2 : STREAMS_ROOM_MIN;
    struct delivery_stream *streams = realloc(producer->streams, room * sizeof *producer->streams);
    if (streams)
        producer->streams = streams;
    struct flow *flows = realloc(producer->flows, room * sizeof *producer->flows);
    if (flows)
        producer->flows = flows;
    struct delivery_range *drops = realloc(producer->drops, room * sizeof *producer->drops);
    if (drops)
        producer->drops = drops;
    if (!streams || !flows || !drops)
        return false;
    producer->stream_room = room;
    return true;
}

enum status delivery_producer_stream(struct delivery_producer *producer,
                                     const struct delivery_stream *state, uint64_t released)
{
    size_t at = find_stream(producer, state->stream);
    if (at < producer->stream_count) {
        struct delivery_stream *known = &producer->streams[at];
        known->produced = max_u64(known->produced, state->produced);
        known->unnumbered = max_u64(known->unnumbered, state->unnumbered);
        return STATUS_OK;
    }
    if (released > state->produced)
        return STATUS_INVALID;
    if (producer->stream_count == DELIVERY_STREAMS_MAX)
        return STATUS_FULL;
    if (!make_room(producer))
        return STATUS_NOMEM;
    producer->streams[at] = *state;
    producer->flows[at] =
        (struct flow){.released = released, .acknowledged = released, .sent = released};
    producer->stream_count++;
    return STATUS_OK;
}

void delivery_producer_names(struct delivery_producer *producer, uint32_t count)
{
    if (count > producer->names_count)
        producer->names_count = count;
}

void delivery_producer_close(struct delivery_producer *producer)
{
    producer->closing = true;
}

static void begin_with_hello(struct delivery_producer *producer)
{
    if (producer->phase != PHASE_CLOSED)
        producer->phase = PHASE_HELLO_DUE;
    producer->asked = false;
}

void delivery_producer_reconnect(struct delivery_producer *producer)
{
    begin_with_hello(producer);
    producer->held = false;
}

// ---- Acknowledgements ------------------------------------------------------------

// The first record that is still held.
static uint64_t flow_base(const struct flow *flow)
{
    return max_u64(flow->acknowledged, flow->released);
}

static uint64_t in_flight(const struct delivery_producer *producer)
{
    uint64_t records = 0;
    for (size_t i = 0; i < producer->stream_count; i++)
        records += producer->flows[i].sent - flow_base(&producer->flows[i]);
    return records;
}

static bool all_acknowledged(const struct delivery_producer *producer)
{
    for (size_t i = 0; i < producer->stream_count; i++)
        if (producer->flows[i].acknowledged < producer->streams[i].produced)
            return false;
    return true;
}

// Whether what the acknowledgement says can be true.  After Hello the store may
// have less than it once acknowledged; otherwise never.
static bool ack_is_possible(const struct delivery_producer *producer,
                            const struct delivery_ack *ack, bool welcome)
{
    if (ack->names_known > producer->names_count || ack->sequence > producer->sequence)
        return false;
    for (size_t i = 0; i < ack->next_count; i++) {
        size_t at = find_stream(producer, ack->next[i].stream);
        uint64_t next = ack->next[i].next;
        uint64_t produced = at < producer->stream_count ? producer->streams[at].produced : 0;
        if (next < 1 || next - 1 > produced)
            return false;
        if (!welcome && at < producer->stream_count && next - 1 < producer->flows[at].acknowledged)
            return false;
    }
    return true;
}

// Answers come as they should: the next wait is a short one again.
static void found_contact(struct delivery_producer *producer)
{
    producer->wait_ns = producer->config.resend_after_ns;
    producer->contact = CONTACT_FOUND;
}

// The range of a stream that was acknowledged once and is not in the store.
static void add_elsewhere(struct delivery_range *drops, size_t *count,
                          const struct delivery_producer *producer, size_t at, int64_t wall_ns)
{
    struct delivery_range range = {.stream = producer->streams[at].stream,
                                   .first = producer->flows[at].acknowledged + 1,
                                   .last = producer->flows[at].released,
                                   .reason = DELIVERY_ACKNOWLEDGED_ELSEWHERE,
                                   .since_ns = wall_ns,
                                   .until_ns = wall_ns};
    drops[(*count)++] = range;
}

// The answer to Hello: everything starts from what the store has.
static void take_welcome(struct delivery_producer *producer, const struct delivery_ack *ack,
                         int64_t wall_ns)
{
    memcpy(producer->store, ack->store, sizeof producer->store);
    producer->store_known = true;
    producer->names_known = ack->names_known;
    for (size_t i = 0; i < producer->stream_count; i++)
        producer->flows[i].acknowledged = 0;
    for (size_t i = 0; i < ack->next_count; i++) {
        size_t at = find_stream(producer, ack->next[i].stream);
        if (at < producer->stream_count)
            producer->flows[at].acknowledged = ack->next[i].next - 1;
    }
    producer->drop_count = 0;
    for (size_t i = 0; i < producer->stream_count; i++) {
        struct flow *flow = &producer->flows[i];
        flow->sent = flow_base(flow);
        if (flow->acknowledged < flow->released)
            add_elsewhere(producer->drops, &producer->drop_count, producer, i, wall_ns);
    }
    producer->drops_due = producer->drop_count > 0;
    producer->names_asked = false;
    producer->goodbye_sent = false;
    producer->goodbye_not_before_ns = 0;
    producer->asked = false;
    producer->phase = PHASE_FLOWING;

    // After a lost contact, what proves that all is well is records taken, not
    // kind words: a collector whose disk is full welcomes too.
    if (producer->contact == CONTACT_UNKNOWN || all_acknowledged(producer))
        found_contact(producer);
}

// Forgets the part of the dropped ranges that the store now knows.
static void settle_drops(struct delivery_producer *producer, uint32_t stream, uint64_t next)
{
    size_t kept = 0;
    for (size_t i = 0; i < producer->drop_count; i++) {
        struct delivery_range range = producer->drops[i];
        if (range.stream == stream && range.last < next)
            continue;
        if (range.stream == stream)
            range.first = max_u64(range.first, next);
        producer->drops[kept++] = range;
    }
    producer->drop_count = kept;
}

// Moves one stream.  When its latest batch was answered and is still not stored,
// something before it was lost: back to what is wanted.
static bool take_next(struct delivery_producer *producer, size_t at, uint64_t next,
                      uint64_t sequence, uint64_t now_ns)
{
    struct flow *flow = &producer->flows[at];
    bool advanced = next - 1 > flow->acknowledged;
    if (advanced) {
        flow->acknowledged = next - 1;
        flow->since_ns = now_ns;
        settle_drops(producer, producer->streams[at].stream, next);
    }
    uint64_t base = flow_base(flow);
    if (flow->sent < base || (sequence >= flow->last_sequence && flow->sent > base))
        flow->sent = base;
    return advanced;
}

static void take_answer(struct delivery_producer *producer, const struct delivery_ack *ack,
                        uint64_t now_ns)
{
    bool advanced = false;
    for (size_t i = 0; i < ack->next_count; i++) {
        size_t at = find_stream(producer, ack->next[i].stream);
        if (at < producer->stream_count)
            advanced |= take_next(producer, at, ack->next[i].next, ack->sequence, now_ns);
    }
    if (ack->names_known > producer->names_known)
        producer->names_known = ack->names_known;
    producer->names_asked = false;
    if (producer->phase == PHASE_FLOWING && ack->sequence == producer->sequence) {
        producer->asked = false;
        if (producer->goodbye_sent && !ack->closed) {
            producer->goodbye_sent = false;
            producer->goodbye_not_before_ns = now_ns + producer->config.resend_after_ns;
        }
    } else if (producer->phase == PHASE_FLOWING) {
        producer->asked_since_ns = now_ns;
    }
    if (advanced || in_flight(producer) == 0)
        found_contact(producer);
}

enum status delivery_producer_ack(struct delivery_producer *producer,
                                  const struct delivery_ack *ack, uint64_t now_ns, int64_t wall_ns)
{
    if (producer->phase == PHASE_CLOSED)
        return STATUS_OK;
    bool same_store =
        producer->store_known && memcmp(producer->store, ack->store, sizeof ack->store) == 0;
    bool welcome = ack->sequence == 0 && producer->phase == PHASE_HELLO_SENT && !ack->hello_wanted;
    if (ack->hello_wanted || (!welcome && !same_store)) {
        // A Hello already on its way is the answer to both.
        if (producer->phase == PHASE_FLOWING)
            begin_with_hello(producer);
        return STATUS_OK;
    }
    if (!ack_is_possible(producer, ack, welcome)) {
        producer->invalid_acks++;
        return STATUS_INVALID;
    }
    producer->credit = ack->credit;
    if (welcome)
        take_welcome(producer, ack, wall_ns);
    else
        take_answer(producer, ack, now_ns);
    if (ack->closed && producer->closing && all_acknowledged(producer))
        producer->phase = PHASE_CLOSED;
    return STATUS_OK;
}

// ---- What to do next -------------------------------------------------------------

static bool elapsed(uint64_t since_ns, uint64_t now_ns, uint64_t wait_ns)
{
    return now_ns >= since_ns && now_ns - since_ns >= wait_ns;
}

static bool answer_overdue(const struct delivery_producer *producer, uint64_t now_ns)
{
    if (producer->asked && elapsed(producer->asked_since_ns, now_ns, producer->wait_ns))
        return true;
    if (producer->phase != PHASE_FLOWING)
        return false;
    for (size_t i = 0; i < producer->stream_count; i++) {
        const struct flow *flow = &producer->flows[i];
        if (flow->sent > flow_base(flow) && elapsed(flow->since_ns, now_ns, producer->wait_ns))
            return true;
    }
    return false;
}

// No answer in time: start over, and be more patient, unless nothing could be
// sent in the first place.
static void give_up_waiting(struct delivery_producer *producer)
{
    producer->contact = CONTACT_LOST;
    if (!producer->held)
        producer->wait_ns = min_u64(producer->wait_ns * 2, producer->config.resend_max_ns);
    begin_with_hello(producer);
}

// Fills the action of a message about to be sent and notes that an answer is due.
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

// Names not known to the store go along with every batch, so that no record
// depends on an earlier message.
static void add_names(struct delivery_producer *producer, struct delivery_action *action)
{
    action->names_first = producer->names_known + 1;
    action->names_last = (uint32_t)min_u64(producer->names_count,
                                           (uint64_t)producer->names_known + DELIVERY_NAMES_MAX);
    producer->drops_due = false; // those go along too
}

static bool send_heartbeat(struct delivery_producer *producer, struct delivery_action *action,
                           uint64_t now_ns)
{
    (void)emit(producer, action, DELIVERY_SEND_HEARTBEAT, now_ns);
    add_names(producer, action);
    return true;
}

// Records of one stream to be sent now: none while the credit left would only
// do for a part of a batch and more is to come with the next acknowledgement.
static uint64_t batch_size(const struct delivery_producer *producer, size_t at, uint64_t flying)
{
    uint64_t records = min_u64(producer->streams[at].produced - producer->flows[at].sent,
                               producer->config.batch_records);
    uint64_t room = producer->credit > flying ? producer->credit - flying : 0;
    if (records <= room)
        return records;
    return flying == 0 ? room : 0;
}

// A batch of the next stream in turn that has something.
static bool send_batch(struct delivery_producer *producer, struct delivery_action *action,
                       uint64_t now_ns)
{
    uint64_t flying = in_flight(producer);
    for (size_t i = 0; i < producer->stream_count; i++) {
        size_t at = (producer->turn + i) % producer->stream_count;
        uint64_t records = batch_size(producer, at, flying);
        if (records == 0)
            continue;
        struct flow *flow = &producer->flows[at];
        (void)emit(producer, action, DELIVERY_SEND_BATCH, now_ns);
        add_names(producer, action);
        action->stream = producer->streams[at].stream;
        action->first = flow->sent + 1;
        action->last = flow->sent + records;
        if (flow->sent == flow_base(flow))
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
    if (!producer->closing || producer->goodbye_sent || !all_acknowledged(producer) ||
        now_ns < producer->goodbye_not_before_ns)
        return false;
    producer->goodbye_sent = true;
    return emit(producer, action, DELIVERY_SEND_GOODBYE, now_ns);
}

static bool next_flowing(struct delivery_producer *producer, uint64_t now_ns,
                         struct delivery_action *action)
{
    // Too many new names for one message: they go ahead, part by part.
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
        struct flow *flow = &producer->flows[i];
        if (flow->acknowledged <= flow->released)
            continue;
        *action = (struct delivery_action){.kind = DELIVERY_FREE,
                                           .stream = producer->streams[i].stream,
                                           .first = flow->released + 1,
                                           .last = flow->acknowledged,
                                           .names_first = 1};
        flow->released = flow->acknowledged;
        return true;
    }
    return false;
}

static bool next_notice(struct delivery_producer *producer, struct delivery_action *action)
{
    *action = (struct delivery_action){.names_first = 1};
    if (producer->contact != producer->contact_told) {
        producer->contact_told = producer->contact;
        action->kind =
            producer->contact == CONTACT_FOUND ? DELIVERY_CONTACT : DELIVERY_LOST_CONTACT;
        return true;
    }
    if (producer->phase == PHASE_CLOSED && !producer->closed_told) {
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
    if (producer->phase != PHASE_CLOSED && answer_overdue(producer, now_ns))
        give_up_waiting(producer);
    if (next_notice(producer, action))
        return true;
    if (producer->held && now_ns < producer->held_until_ns)
        return false;
    switch (producer->phase) {
    case PHASE_HELLO_DUE:
        producer->phase = PHASE_HELLO_SENT;
        return emit(producer, action, DELIVERY_SEND_HELLO, now_ns);
    case PHASE_FLOWING:
        return next_flowing(producer, now_ns, action);
    case PHASE_HELLO_SENT:
    case PHASE_CLOSED:
        break;
    }
    return false;
}

// Takes back what `next` took as done.  The wait for an answer goes on: it cannot
// even be asked for.
void delivery_producer_unsent(struct delivery_producer *producer,
                              const struct delivery_action *action, uint64_t now_ns)
{
    producer->held = true;
    producer->held_until_ns = now_ns + producer->config.resend_after_ns / UNSENT_PART;
    if (action->sequence && action->sequence == producer->sequence)
        producer->sequence--; // nobody will ever answer it
    switch (action->kind) {
    case DELIVERY_SEND_HELLO:
        if (producer->phase == PHASE_HELLO_SENT)
            producer->phase = PHASE_HELLO_DUE;
        break;
    case DELIVERY_SEND_BATCH: {
        size_t at = find_stream(producer, action->stream);
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
    producer->drops_due = producer->drop_count > 0;
}

const struct delivery_range *delivery_producer_drops(const struct delivery_producer *producer,
                                                     size_t *count)
{
    *count = producer->drop_count;
    return producer->drops;
}

const struct delivery_stream *delivery_producer_streams(const struct delivery_producer *producer,
                                                        size_t *count)
{
    *count = producer->stream_count;
    return producer->streams;
}

uint64_t delivery_producer_acknowledged(const struct delivery_producer *producer)
{
    uint64_t records = 0;
    for (size_t i = 0; i < producer->stream_count; i++)
        records += flow_base(&producer->flows[i]);
    return records;
}

uint64_t delivery_producer_invalid_acks(const struct delivery_producer *producer)
{
    return producer->invalid_acks;
}
