// Private state of the delivery protocol's producer (delivery.h: at-least-once delivery of records
// to the collector).  Only delivery.c and delivery_next.c include this header and set the members.
#pragma once

#include "common/core/delivery/delivery.h"
#include "common/core/delivery/delivery_dropped.h"

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Positions in one stream.  A position is a record number.  The records up to `released` are freed,
// those in released + 1..spooled are in the spool, and those in spooled + 1..told in the ring.  The
// collector has committed the records up to `acknowledged` as stored or dropped.  Normally
// released <= acknowledged <= sent.  If the store has lost records, or is another store,
// acknowledged < released, and the records between become a dropped range.
struct delivery_flow {
    // `told` is the highest number that the caller reported (delivery_producer_stream).  In a
    // replay streams[].produced is higher if the store has more records than the files.
    uint64_t told;
    uint64_t released;      // set with each DELIVERY_FREE
    uint64_t spooled;       // never below `released`
    uint64_t acknowledged;  // from the last valid acknowledgement
    uint64_t sent;          // highest number sent since the last Hello
    uint64_t last_sequence; // sequence number of the stream's last batch
    uint64_t since_ns;      // monotonic: records in flight, but none acknowledged, since this time
    uint32_t ring_records;  // records that fit the ring
    uint64_t sweep_to;      // last record that the current sweep (delivery_producer.swept) spools
    int64_t forgotten_ns;   // wall clock at the last answer to Hello: the time of the dropped range
                            // acknowledged + 1..released
};

enum delivery_phase {
    DELIVERY_PHASE_HELLO_DUE,  // Hello is the next message
    DELIVERY_PHASE_HELLO_SENT, // waiting for the answer to Hello
    DELIVERY_PHASE_FLOWING,    // Hello was answered: batches, heartbeats and Goodbye are sent
    DELIVERY_PHASE_CLOSED,     // the end of the run is committed, or a replay gave up on it
};

enum delivery_contact {
    DELIVERY_CONTACT_UNKNOWN, // no answer and no timeout so far
    DELIVERY_CONTACT_LOST,    // the last acknowledgement timed out
    DELIVERY_CONTACT_FOUND,   // the collector answers
};

struct delivery_producer {
    struct delivery_config config;
    struct delivery_stream *streams;
    struct delivery_flow *flows; // parallel to streams
    size_t stream_count;
    size_t stream_room, flow_room;
    size_t turn; // round robin: index of the next stream to send a batch
    // Dropped ranges: `dropped` has those that the spool lost (delivery_producer_lost), until they
    // are released; `drops` has the result of the last call of delivery_producer_drops: the
    // unacknowledged part of `dropped`, and acknowledged + 1..released of each stream.
    struct delivery_dropped dropped;
    struct delivery_range *drops; // room for DELIVERY_DROPS_MAX
    size_t drop_count;

    enum delivery_phase phase;
    bool store_known;               // `store` is set, by the first answer to Hello
    unsigned char store[16];        // UUID of the store that answered the last Hello
    uint32_t protocol;              // the collector's; 0: not known
    uint32_t names_count;           // the run has names 1..names_count
    uint32_t names_known;           // the store has names 1..names_known
    uint32_t credit;                // most records in flight, all streams together
    uint64_t sequence;              // of the last message sent
    bool drops_due;                 // a heartbeat must carry `drops`, unless a batch does first
    bool names_asked;               // a heartbeat with names is in flight
    bool closing;                   // delivery_producer_close was called
    bool goodbye_sent;              // a Goodbye is in flight
    uint64_t goodbye_not_before_ns; // monotonic: when Goodbye may be sent again
    unsigned goodbyes_refused;      // Goodbyes, since Hello, that were answered without `closed`

    // Times are monotonic.
    bool asked; // an acknowledgement is awaited since asked_since_ns
    uint64_t asked_since_ns;
    uint64_t wait_ns; // current acknowledgement timeout
    bool held;        // the last message could not be sent: wait until held_until_ns
    uint64_t held_until_ns;
    uint64_t last_send_ns; // the next heartbeat is due heartbeat_ns later

    size_t spool_turn; // round robin: index of the next stream to spool
    bool spool_all;    // delivery_producer_spool_all was called
    bool spool_held;   // writing failed: wait until spool_held_until_ns
    uint64_t spool_held_until_ns;
    bool swept;           // a sweep (spooling of all records in rings) began since contact was lost
    uint64_t swept_at_ns; // when the sweep began

    enum delivery_contact contact;
    enum delivery_contact contact_told; // the contact that an action reported last
    uint64_t contact_lost_ns;
    bool closed_told; // DELIVERY_CLOSED was returned
};

// The index of a stream, or stream_count.
size_t delivery_find_stream(const struct delivery_producer *producer, uint32_t stream);

// The highest record number that need not be sent: all up to it are acknowledged or released.
uint64_t delivery_flow_base(const struct delivery_flow *flow);

// The count of records in flight (sent, not acknowledged), in all streams; without dropped ones.
uint64_t delivery_in_flight(const struct delivery_producer *producer);

bool delivery_all_acknowledged(const struct delivery_producer *producer);

// Makes Hello the next action.
void delivery_begin_with_hello(struct delivery_producer *producer);

// Updates `drops`.  True if there are dropped ranges to send.
bool delivery_has_drops(struct delivery_producer *producer);
