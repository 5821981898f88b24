// Private definition of struct publisher (publisher.h), the producer of the at-least-once delivery
// protocol: it sends a run's records and keeps them until the collector acknowledges them.  Only
// publisher.c and publisher_send.c include this header.
#pragma once

#include <stdatomic.h>

#include "common/core/delivery/clock_offset.h"
#include "common/core/delivery/delivery.h"
#include "common/monitor/delivery/publisher.h"
#include "common/monitor/delivery/uplink.h"
#include "common/wire/codec.h"

enum { PUBLISHER_ACTIVITY_SIZE = 320 };

// Longest interval between messages with the states of all streams (per stream: how many records
// were produced and dropped).  Other messages have the state of one stream.
#define PUBLISHER_HEARTBEAT_NS UINT64_C(500000000)

struct publisher {
    struct publisher_settings settings;
    struct uplink *uplink;
    struct delivery_producer *producer; // state machine of the protocol: what to send next
    struct clock_offset clock;          // estimate of this host's clock minus the collector's
    // Parts of the message being built: encoder of its records, its names, and its ranges of lost
    // records.
    struct table_builder *builder;
    struct wire_bytes *names;
    size_t names_room; // items allocated for `names`
    struct wire_drop drops[DELIVERY_DROPS_MAX];
    char activity[PUBLISHER_ACTIVITY_SIZE]; // what the run's threads do, at this step
    uint64_t states_sent_ns;                // when the states of all streams were last sent
    uint64_t answered_ns;                   // when the last valid acknowledgement arrived
    uint64_t poll_at_ns;                    // when the rings are next polled
    bool busy;                              // the rings fill fast: poll every 2 ms, not 25
    bool ending;                            // publisher_finish was called: poll every 2 ms
    char error[256];                        // why the collector rejects this run; "": it does not
    unsigned refusals_logged;               // times it refused records; the first are logged
    bool had_contact;                       // the collector has answered once
    bool unsound_logged;                    // an invalid acknowledgement was logged
    bool spool_failed;                      // the last append failed
    bool spool_full_told;                   // it was logged that the oldest records are evicted
    bool spool_damage_told;                 // it was logged that records are damaged
    uint64_t losses_reported;               // spool_losses at the last report of the spool's losses
    struct publisher_state state;
    _Atomic uint64_t acknowledged; // number of records
};

// Returns record `number` of `stream` from the stream's ring or, if the ring has released it,
// from the spool.  It is borrowed until the next call.  NULL: the record is lost, or the spool
// cannot be read now.
const struct record *publisher_record(const struct publisher *publisher, uint32_t stream,
                                      uint64_t number);

// Sends the message of a DELIVERY_SEND_... action.  Returns STATUS_NO_DATA if publisher_record is
// NULL for some of its records.
MUST_CHECK enum status publisher_send(struct publisher *publisher,
                                      const struct delivery_action *action);
