// The delivery producer: inputs and acknowledgements.  delivery_next.c chooses its actions.
#include "common/core/delivery/delivery_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/core/base/array.h"

enum {
    GOODBYES_OF_A_REPLAY = 5,    // unanswered ones after which a replay ends
    PROTOCOL_WITHOUT_DAMAGE = 1, // has no DELIVERY_SPOOL_DAMAGED
};

const char *delivery_reason_text(enum delivery_reason reason)
{
    static const char *const texts[DELIVERY_REASON_COUNT] = {
#define DELIVERY_REASON_TEXT(name, text) [DELIVERY_##name] = text,
        DELIVERY_REASONS(DELIVERY_REASON_TEXT)
#undef DELIVERY_REASON_TEXT
    };
    assert(reason < DELIVERY_REASON_COUNT);
    return texts[reason];
}

// ---- Inputs ----------------------------------------------------------------------

enum status delivery_producer_new(struct delivery_producer **out,
                                  const struct delivery_config *config)
{
    struct delivery_producer *producer = calloc(1, sizeof *producer);
    if (!producer)
        return STATUS_NOMEM;
    producer->drops = calloc(DELIVERY_DROPS_MAX, sizeof *producer->drops);
    if (!producer->drops) {
        free(producer);
        return STATUS_NOMEM;
    }
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
    delivery_dropped_deinit(&producer->dropped);
    free(producer);
}

// Fast path: streams are usually added in order.
size_t delivery_find_stream(const struct delivery_producer *producer, uint32_t stream)
{
    size_t at = stream;
    if (at < producer->stream_count && producer->streams[at].stream == stream)
        return at;
    for (at = 0; at < producer->stream_count; at++)
        if (producer->streams[at].stream == stream)
            break;
    return at;
}

enum status delivery_producer_stream(struct delivery_producer *producer,
                                     const struct delivery_stream *state, uint64_t released)
{
    size_t at = delivery_find_stream(producer, state->stream);
    if (at < producer->stream_count) {
        struct delivery_stream *known = &producer->streams[at];
        known->produced = max_u64(known->produced, state->produced);
        producer->flows[at].told = max_u64(producer->flows[at].told, state->produced);
        known->unnumbered = max_u64(known->unnumbered, state->unnumbered);
        known->no_room = max_u64(known->no_room, state->no_room);
        return STATUS_OK;
    }
    if (released > state->produced)
        return STATUS_INVALID;
    if (producer->stream_count == DELIVERY_STREAMS_MAX)
        return STATUS_FULL;
    if (!ARRAY_RESERVE(&producer->streams, &producer->stream_room, at + 1) ||
        !ARRAY_RESERVE(&producer->flows, &producer->flow_room, at + 1))
        return STATUS_NOMEM;
    producer->streams[at] = *state;
    producer->flows[at] = (struct delivery_flow){.told = state->produced,
                                                 .released = released,
                                                 .spooled = released,
                                                 .acknowledged = released,
                                                 .sent = released,
                                                 .ring_records = producer->config.ring_records};
    producer->stream_count++;
    return STATUS_OK;
}

void delivery_producer_ring_fits(struct delivery_producer *producer, uint32_t stream,
                                 uint32_t records)
{
    const size_t at = delivery_find_stream(producer, stream);
    if (at < producer->stream_count)
        producer->flows[at].ring_records = records;
}

void delivery_producer_spool_holds(struct delivery_producer *producer, uint32_t stream,
                                   uint64_t spooled)
{
    const size_t at = delivery_find_stream(producer, stream);
    if (at == producer->stream_count)
        return;
    struct delivery_flow *flow = &producer->flows[at];
    flow->spooled = min_u64(max_u64(flow->spooled, spooled), producer->streams[at].produced);
}

void delivery_producer_spooled(struct delivery_producer *producer,
                               const struct delivery_action *action, bool done, uint64_t now_ns)
{
    if (!done) {
        producer->spool_held = true;
        producer->spool_held_until_ns = now_ns + producer->config.spool_retry_ns;
        return;
    }
    producer->spool_held = false;
    delivery_producer_spool_holds(producer, action->stream, action->last);
}

enum status delivery_producer_lost(struct delivery_producer *producer,
                                   const struct delivery_range *range)
{
    const size_t at = delivery_find_stream(producer, range->stream);
    if (at == producer->stream_count)
        return STATUS_INVALID;
    const struct delivery_flow *flow = &producer->flows[at];
    struct delivery_range lost = *range;
    lost.first = max_u64(lost.first, flow->released + 1);
    lost.last = min_u64(lost.last, flow->spooled);
    if (lost.first > lost.last ||
        delivery_dropped_count(&producer->dropped, lost.stream, lost.first, lost.last) ==
            lost.last - lost.first + 1)
        return STATUS_OK;
    const enum status status = delivery_dropped_add(&producer->dropped, &lost);
    if (status == STATUS_OK)
        producer->drops_due = delivery_has_drops(producer);
    return status;
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

void delivery_producer_spool_all(struct delivery_producer *producer)
{
    producer->spool_all = true;
}

void delivery_begin_with_hello(struct delivery_producer *producer)
{
    if (producer->phase != DELIVERY_PHASE_CLOSED)
        producer->phase = DELIVERY_PHASE_HELLO_DUE;
    producer->asked = false;
}

void delivery_producer_reconnect(struct delivery_producer *producer)
{
    delivery_begin_with_hello(producer);
    producer->held = false;
}

// ---- Acknowledgements ------------------------------------------------------------

uint64_t delivery_flow_base(const struct delivery_flow *flow)
{
    return max_u64(flow->acknowledged, flow->released);
}

uint64_t delivery_in_flight(const struct delivery_producer *producer)
{
    uint64_t records = 0;
    for (size_t i = 0; i < producer->stream_count; i++) {
        const struct delivery_flow *flow = &producer->flows[i];
        const uint64_t base = delivery_flow_base(flow);
        if (flow->sent <= base)
            continue;
        records += flow->sent - base;
        if (producer->dropped.count)
            records -= delivery_dropped_count(&producer->dropped, producer->streams[i].stream,
                                              base + 1, flow->sent);
    }
    return records;
}

bool delivery_all_acknowledged(const struct delivery_producer *producer)
{
    for (size_t i = 0; i < producer->stream_count; i++)
        if (producer->flows[i].acknowledged < producer->streams[i].produced)
            return false;
    return true;
}

// Adds what the store knows of a dead run beyond what its files contain.
static enum status adopt(struct delivery_producer *producer, const struct delivery_ack *ack)
{
    for (size_t i = 0; i < ack->next_count; i++) {
        const uint64_t stored = ack->next[i].next - 1;
        size_t at = delivery_find_stream(producer, ack->next[i].stream);
        if (ack->next[i].next < 1)
            return STATUS_INVALID;
        if (at == producer->stream_count) {
            const struct delivery_stream unknown = {.stream = ack->next[i].stream};
            const enum status status = delivery_producer_stream(producer, &unknown, 0);
            if (status != STATUS_OK)
                return status;
        }
        producer->streams[at].produced = max_u64(producer->streams[at].produced, stored);
    }
    delivery_producer_names(producer, ack->names_known);
    return STATUS_OK;
}

// Validates an acknowledgement.  Only after Hello may the store have less than it once
// acknowledged.
static bool ack_is_valid(const struct delivery_producer *producer, const struct delivery_ack *ack,
                         bool welcome)
{
    if (ack->names_known > producer->names_count || ack->sequence > producer->sequence)
        return false;
    for (size_t i = 0; i < ack->next_count; i++) {
        size_t at = delivery_find_stream(producer, ack->next[i].stream);
        uint64_t next = ack->next[i].next;
        uint64_t produced = at < producer->stream_count ? producer->streams[at].produced : 0;
        if (next < 1 || next - 1 > produced)
            return false;
        if (!welcome && at < producer->stream_count && next - 1 < producer->flows[at].acknowledged)
            return false;
    }
    return true;
}

// The collector answers: resets the answer timeout.
static void found_contact(struct delivery_producer *producer)
{
    producer->wait_ns = producer->config.resend_after_ns;
    producer->contact = DELIVERY_CONTACT_FOUND;
}

// ---- Dropped ranges --------------------------------------------------------------

// Ranges beyond what a message carries wait until earlier ones are acknowledged.
static void list_drop(struct delivery_producer *producer, const struct delivery_range *range)
{
    if (producer->drop_count == DELIVERY_DROPS_MAX)
        return;
    struct delivery_range *drop = &producer->drops[producer->drop_count++];
    *drop = *range;
    if (producer->protocol == PROTOCOL_WITHOUT_DAMAGE && drop->reason == DELIVERY_SPOOL_DAMAGED)
        drop->reason = DELIVERY_SPOOL_FULL;
}

// Lists the unacknowledged dropped ranges of a stream.
static void list_dropped(struct delivery_producer *producer, size_t at)
{
    size_t count;
    const struct delivery_range *ranges =
        delivery_dropped_of_stream(&producer->dropped, producer->streams[at].stream, &count);
    for (size_t i = 0; i < count; i++) {
        struct delivery_range range = ranges[i];
        range.first = max_u64(range.first, producer->flows[at].acknowledged + 1);
        if (range.first <= range.last)
            list_drop(producer, &range);
    }
}

const struct delivery_range *delivery_producer_drops(struct delivery_producer *producer,
                                                     size_t *count)
{
    producer->drop_count = 0;
    for (size_t i = 0; i < producer->stream_count; i++) {
        const struct delivery_flow *flow = &producer->flows[i];
        if (flow->acknowledged < flow->released)
            list_drop(producer, &(struct delivery_range){.stream = producer->streams[i].stream,
                                                         .first = flow->acknowledged + 1,
                                                         .last = flow->released,
                                                         .reason = DELIVERY_ACKNOWLEDGED_ELSEWHERE,
                                                         .since_ns = flow->forgotten_ns,
                                                         .until_ns = flow->forgotten_ns});
        if (producer->dropped.count)
            list_dropped(producer, i);
    }
    *count = producer->drop_count;
    return producer->drops;
}

bool delivery_has_drops(struct delivery_producer *producer)
{
    size_t count;
    (void)delivery_producer_drops(producer, &count);
    return count > 0;
}

// ---- Answers ---------------------------------------------------------------------

// Handles the answer to Hello: sending restarts from what the store has.
static void on_hello_answer(struct delivery_producer *producer, const struct delivery_ack *ack,
                            int64_t wall_ns)
{
    memcpy(producer->store, ack->store, sizeof producer->store);
    producer->store_known = true;
    producer->protocol = ack->protocol; // later Acks may come from a previous collector
    producer->names_known = ack->names_known;
    for (size_t i = 0; i < producer->stream_count; i++)
        producer->flows[i].acknowledged = 0;
    for (size_t i = 0; i < ack->next_count; i++) {
        size_t at = delivery_find_stream(producer, ack->next[i].stream);
        if (at < producer->stream_count)
            producer->flows[at].acknowledged = ack->next[i].next - 1;
    }
    for (size_t i = 0; i < producer->stream_count; i++) {
        struct delivery_flow *flow = &producer->flows[i];
        flow->sent = delivery_flow_base(flow);
        flow->forgotten_ns = wall_ns;
    }
    producer->drops_due = delivery_has_drops(producer);
    producer->names_asked = false;
    producer->goodbye_sent = false;
    producer->goodbye_not_before_ns = 0;
    producer->goodbyes_refused = 0;
    producer->asked = false;
    producer->phase = DELIVERY_PHASE_FLOWING;

    // After a lost contact, only stored records prove that the collector works: one whose
    // disk is full answers Hello too.
    if (producer->contact == DELIVERY_CONTACT_UNKNOWN || delivery_all_acknowledged(producer))
        found_contact(producer);
}

// Advances one stream.  If its latest batch was answered but not stored, an earlier message
// was lost: goes back to the number that the store expects.
static bool on_next(struct delivery_producer *producer, size_t at, uint64_t next, uint64_t sequence,
                    uint64_t now_ns)
{
    struct delivery_flow *flow = &producer->flows[at];
    bool advanced = next - 1 > flow->acknowledged;
    if (advanced) {
        flow->acknowledged = next - 1;
        flow->since_ns = now_ns;
    }
    uint64_t base = delivery_flow_base(flow);
    if (flow->sent < base || (sequence >= flow->last_sequence && flow->sent > base))
        flow->sent = base;
    return advanced;
}

static void on_answer(struct delivery_producer *producer, const struct delivery_ack *ack,
                      uint64_t now_ns)
{
    bool advanced = false;
    for (size_t i = 0; i < ack->next_count; i++) {
        size_t at = delivery_find_stream(producer, ack->next[i].stream);
        if (at < producer->stream_count)
            advanced |= on_next(producer, at, ack->next[i].next, ack->sequence, now_ns);
    }
    if (ack->names_known > producer->names_known)
        producer->names_known = ack->names_known;
    producer->names_asked = false;
    if (producer->phase == DELIVERY_PHASE_FLOWING && ack->sequence == producer->sequence) {
        producer->asked = false;
        if (producer->goodbye_sent && !ack->closed) {
            producer->goodbyes_refused++;
            producer->goodbye_sent = false;
            producer->goodbye_not_before_ns = now_ns + producer->config.resend_after_ns;
        }
    } else if (producer->phase == DELIVERY_PHASE_FLOWING) {
        producer->asked_since_ns = now_ns;
    }
    if (advanced || delivery_in_flight(producer) == 0)
        found_contact(producer);
}

// Collectors of version 1 wait forever for records that a host crash lost.
static bool is_done_without_an_end(const struct delivery_producer *producer)
{
    return producer->config.replay && producer->goodbyes_refused >= GOODBYES_OF_A_REPLAY;
}

enum status delivery_producer_ack(struct delivery_producer *producer,
                                  const struct delivery_ack *ack, uint64_t now_ns, int64_t wall_ns)
{
    if (producer->phase == DELIVERY_PHASE_CLOSED)
        return STATUS_OK;
    bool same_store =
        producer->store_known && memcmp(producer->store, ack->store, sizeof ack->store) == 0;
    bool welcome =
        ack->sequence == 0 && producer->phase == DELIVERY_PHASE_HELLO_SENT && !ack->hello_wanted;
    if (ack->hello_wanted || (!welcome && !same_store)) {
        // A Hello already on its way is the answer to both.
        if (producer->phase == DELIVERY_PHASE_FLOWING)
            delivery_begin_with_hello(producer);
        return STATUS_OK;
    }
    if ((welcome && producer->config.replay && adopt(producer, ack) != STATUS_OK) ||
        !ack_is_valid(producer, ack, welcome))
        return STATUS_INVALID;
    producer->credit = ack->credit;
    if (welcome)
        on_hello_answer(producer, ack, wall_ns);
    else
        on_answer(producer, ack, now_ns);
    if (producer->closing && delivery_all_acknowledged(producer) &&
        (ack->closed || is_done_without_an_end(producer)))
        producer->phase = DELIVERY_PHASE_CLOSED;
    return STATUS_OK;
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
        records += delivery_flow_base(&producer->flows[i]);
    return records;
}
