// The producer's machine from inside: for the files delivery*.c alone.
#ifndef INFERSTAT_CORE_DELIVERY_STATE_H
#define INFERSTAT_CORE_DELIVERY_STATE_H

#include "common/core/delivery/delivery.h"
#include "common/core/delivery/delivery_dropped.h"

// A stream as the protocol sees it.  Records up to `released` are no longer held;
// those up to `spooled` are in the spool, the others in the ring.  Those after
// `acknowledged` are not in the store.  Normally released <= acknowledged <= sent;
// where a store has lost records, or is another one, acknowledged < released, and
// what lies between goes into a dropped range.
struct delivery_flow {
    uint64_t told; // what the owner says was produced; of a replay the store may know more
    uint64_t released;
    uint64_t spooled; // never below `released`
    uint64_t acknowledged;
    uint64_t sent;          // in the current conversation
    uint64_t last_sequence; // of its latest batch
    uint64_t since_ns;      // records have been in flight without progress since then
    uint64_t sweep_to;      // what was produced when the present sweep into the spool began
    int64_t forgotten_ns;   // wall clock when the store was found to lack what is released
};

enum delivery_phase {
    DELIVERY_PHASE_HELLO_DUE,
    DELIVERY_PHASE_HELLO_SENT,
    DELIVERY_PHASE_FLOWING,
    DELIVERY_PHASE_CLOSED,
};

enum delivery_contact {
    DELIVERY_CONTACT_UNKNOWN,
    DELIVERY_CONTACT_LOST,
    DELIVERY_CONTACT_FOUND,
};

struct delivery_producer {
    struct delivery_config config;
    struct delivery_stream *streams;
    struct delivery_flow *flows; // parallel to streams
    size_t stream_count;
    size_t stream_room;
    size_t turn;                     // the stream whose batch may come first
    struct delivery_dropped dropped; // of what is not released
    // For messages: what was acknowledged elsewhere, and what is dropped, of that which
    // is not acknowledged.
    struct delivery_range *drops;
    size_t drop_count;
    size_t drop_room;

    enum delivery_phase phase;
    bool store_known;
    unsigned char store[16];
    uint32_t protocol; // the collector's; 0: not known
    uint32_t names_count;
    uint32_t names_known;
    uint32_t credit;
    uint64_t sequence; // last given out
    bool drops_due;    // ranges the collector has not been told since Hello
    bool names_asked;  // a part of many names is on its way
    bool closing;
    bool goodbye_sent;
    uint64_t goodbye_not_before_ns;
    unsigned goodbyes_refused;

    bool asked; // an answer of any kind is due since then
    uint64_t asked_since_ns;
    uint64_t wait_ns; // how long answers may take
    bool held;        // the last message could not be sent; nothing goes until then
    uint64_t held_until_ns;
    uint64_t last_send_ns;

    size_t spool_turn; // the stream that is spooled next
    bool spool_all;    // the owner is leaving
    bool spool_held;   // it could not be written; not tried again until then
    uint64_t spool_held_until_ns;
    bool swept; // since contact was lost
    uint64_t swept_at_ns;

    enum delivery_contact contact;
    enum delivery_contact contact_told;
    uint64_t contact_lost_ns;
    bool closed_told;
    uint64_t invalid_acks;
};

// The place of a stream, or stream_count.
size_t delivery_find_stream(const struct delivery_producer *producer, uint32_t stream);

// Records up to there are held no more, or not needed.
uint64_t delivery_flow_base(const struct delivery_flow *flow);

// Records under way.
uint64_t delivery_in_flight(const struct delivery_producer *producer);

bool delivery_all_acknowledged(const struct delivery_producer *producer);

// Whatever was under way does not count any longer: Hello comes next.
void delivery_begin_with_hello(struct delivery_producer *producer);

// Rebuilds `drops` after a change of the dropped, released or acknowledged numbers.
void delivery_list_drops(struct delivery_producer *producer);

#endif
