// Private state of the producer's state machine in delivery.h, which sends records until the
// collector acknowledges them.  Only delivery.c and delivery_next.c use it.
#ifndef INFERSTAT_CORE_DELIVERY_STATE_H
#define INFERSTAT_CORE_DELIVERY_STATE_H

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

// Positions in one stream, all of them record numbers.  Records up to `released` are freed, later
// records up to `spooled` are in the spool, and later ones in the ring.  The store has the records
// up to `acknowledged`.  Normally released <= acknowledged <= sent.  If the store has lost records,
// or is another store, acknowledged < released, and the records between become a dropped range.
struct delivery_flow {
    uint64_t told; // produced, as reported by the caller; in a replay the store may have more
    uint64_t released;
    uint64_t spooled; // never below `released`
    uint64_t acknowledged;
    uint64_t sent;          // highest number sent since the last Hello
    uint64_t last_sequence; // sequence number of the stream's last batch
    uint64_t since_ns;      // records have been in flight without progress since this time
    uint32_t ring_records;  // records that fit the ring
    uint64_t sweep_to;      // `produced` when the current sweep (delivery_producer.swept) began
    int64_t forgotten_ns;   // wall clock when the store was found to lack released records
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
    size_t stream_room, flow_room;
    size_t turn;                     // round robin: index of the next stream to send a batch
    struct delivery_dropped dropped; // dropped ranges among unreleased records
    // The ranges that delivery_producer_drops returned last: records dropped here, and records that
    // only another store acknowledged.  Room for DELIVERY_DROPS_MAX.
    struct delivery_range *drops;
    size_t drop_count;

    enum delivery_phase phase;
    bool store_known;
    unsigned char store[16];
    uint32_t protocol; // the collector's; 0: not known
    uint32_t names_count;
    uint32_t names_known;
    uint32_t credit;
    uint64_t sequence; // of the last message sent
    bool drops_due;    // some dropped ranges were not sent since Hello
    bool names_asked;  // a heartbeat with names is in flight
    bool closing;
    bool goodbye_sent;
    uint64_t goodbye_not_before_ns;
    unsigned goodbyes_refused;

    bool asked; // an acknowledgement is awaited since asked_since_ns
    uint64_t asked_since_ns;
    uint64_t wait_ns; // current acknowledgement timeout
    bool held;        // the last message could not be sent: wait until held_until_ns
    uint64_t held_until_ns;
    uint64_t last_send_ns;

    size_t spool_turn; // round robin: index of the next stream to spool
    bool spool_all;    // the process is closing
    bool spool_held;   // writing failed: wait until spool_held_until_ns
    uint64_t spool_held_until_ns;
    bool swept; // a sweep (spooling of all records in rings) began since contact was lost
    uint64_t swept_at_ns;

    enum delivery_contact contact;
    enum delivery_contact contact_told; // the contact that an action reported last
    uint64_t contact_lost_ns;
    bool closed_told;
    uint64_t invalid_acks;
};

// The index of a stream, or stream_count.
size_t delivery_find_stream(const struct delivery_producer *producer, uint32_t stream);

// The highest record number that need not be sent: all up to it are acknowledged or released.
uint64_t delivery_flow_base(const struct delivery_flow *flow);

// The count of records in flight (sent, not acknowledged).
uint64_t delivery_in_flight(const struct delivery_producer *producer);

bool delivery_all_acknowledged(const struct delivery_producer *producer);

// Makes Hello the next action.
void delivery_begin_with_hello(struct delivery_producer *producer);

// True if there are dropped ranges to send.
bool delivery_has_drops(struct delivery_producer *producer);

#endif
