// A publisher from inside: for publisher*.c alone.
#ifndef INFERSTAT_MONITOR_PUBLISHER_PARTS_H
#define INFERSTAT_MONITOR_PUBLISHER_PARTS_H

#include <stdatomic.h>

#include "common/core/delivery/clock_offset.h"
#include "common/core/delivery/delivery.h"
#include "common/monitor/delivery/publisher.h"
#include "common/monitor/delivery/uplink.h"
#include "common/wire/codec.h"

enum { PUBLISHER_ACTIVITY_SIZE = 320 };

// How often the states of all streams, what the run is doing and the clock's offset
// are told at least.
#define PUBLISHER_HEARTBEAT_NS UINT64_C(500000000)

// What of a run's threads its Goodbye tells, when it was killed.
struct publisher_death {
    struct wire_activity *activities;
    char (*texts)[PUBLISHER_ACTIVITY_SIZE];
    size_t count;
};

struct publisher {
    struct publisher_settings settings;
    struct uplink *uplink;
    struct delivery_producer *producer;
    struct clock_offset clock;
    struct table_builder *builder;
    struct wire_bytes *names; // of the message being built
    size_t names_room;
    struct wire_drop drops[DELIVERY_DROPS_MAX];
    char activity[PUBLISHER_ACTIVITY_SIZE]; // as of this step
    struct publisher_death death;           // of a run that was killed
    uint64_t states_sent_ns;                // when the states of all streams last went out
    uint64_t answered_ns;                   // when the last sound acknowledgement was taken
    uint64_t news_at_ns;                    // when the machine is next told what is new
    bool busy;                              // the engine records so fast that it is told at once
    bool ending;                            // likewise: nothing more will be recorded
    char error[256];                        // what the collector last had against us
    unsigned refusals_logged;
    bool had_contact, has_contact;
    bool unsound_logged;
    bool spool_failed;    // the last append did
    bool spool_full_told; // that it gives up its oldest records
    bool finished;
    _Atomic uint64_t acknowledged;
};

// Sends the message of a SEND action.
MUST_CHECK enum status publisher_send(struct publisher *publisher,
                                      const struct delivery_action *action);

// Notes for the Goodbye of a run that was killed what its threads were doing.
MUST_CHECK enum status publisher_note_death(struct publisher *publisher);

#endif
