// A world for the delivery protocol, driven from one seed: a host with a run (rings
// in memory, a spool on its disk), the process that publishes it or the one that
// replays it when it is dead, a network, and a collector with a store.  Both
// machines are the real ones; everything around them is a model that can fail at
// any point.  After every step the whole world is checked by recounting it.
//
//   sim_life.c       seeds, faults, steps, how a life ends
//   sim_host.c       the process: what the publisher does with its machine
//   sim_spool.c      the spool, as spool.h of the monitor promises it
//   sim_network.c    messages on their way
//   sim_collector.c  the collector: what the writer does with its machine
//   sim_check.c      what has to be true
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/delivery/clock_offset.h"
#include "common/core/delivery/delivery.h"
#include "common/core/delivery/delivery_run.h"
#include "tests/support/sim/set.h"

enum {
    SIM_STREAMS = 3,
    SIM_BATCH = 40,    // records of a batch at most
    SIM_RING = 64,     // of a ring at most
    SIM_ENTRIES = 512, // of the spool
    SIM_LOST = 128,    // ranges of the spool
    SIM_DROPS = 32,    // of a message
    SIM_PACKETS = 512,
    SIM_ACKS = 32, // of one transaction
    SIM_NAMES = 200,
    SIM_SPOOL = 400, // records of a spool at most
};

#define SIM_STEP_NS UINT64_C(10000000)

// Chances in a thousand, of a message or a step; what is 0 does not happen.
#define SIM_FAULTS(X)                                                                              \
    X(lose, 100)               /* a message */                                                     \
    X(repeat, 100)             /* a message */                                                     \
    X(reset, 20)               /* the connection */                                                \
    X(late, 500)               /* what a connection carried arrives after its end */               \
    X(partition, 6)            /* nobody can connect for a while */                                \
    X(stall, 100)              /* a message cannot be sent just now */                             \
    X(crash, 15)               /* of the collector */                                              \
    X(crash_before_commit, 40) /* having taken messages */                                         \
    X(crash_after_commit, 40)  /* before it says so */                                             \
    X(swap, 4)                 /* the store is a new one */                                        \
    X(restore, 4)              /* ... an older copy */                                             \
    X(clear, 8)                /* ... cleared of its rows */                                       \
    X(evict, 10)               /* the collector forgets the run, not the store */                  \
    X(disk_full, 8)            /* the collector's fills up, or has room again */                   \
    X(refuse, 4)               /* a record that can never be taken */                              \
    X(upgrade, 300)            /* a collector that starts is another version */                    \
    X(liar, 10)                /* somebody lies about the run: see enum sim_lie */                 \
    X(kill, 3)                 /* of the process */                                                \
    X(strike, 10)              /* of the process, in the midst of something */                     \
    X(host_down, 1)            /* the host, and its memory, */                                     \
    X(leave, 2)                /* the owner closes, with a deadline */                             \
    X(eager, 60)               /* a Goodbye that comes too early */                                \
    X(spool_full, 10)          /* the host's disk fills up, or has room again */                   \
    X(spool_fail, 60)          /* a write to the spool, nothing or a part of which is there */     \
    X(damage, 6)               /* something in the spool cannot be read any longer */              \
    X(host_clock, 5)           /* is set */                                                        \
    X(collector_clock, 5)      /* is set */                                                        \
    X(sleep, 3)                /* time passes and nobody runs */

enum sim_fault {
#define SIM_FAULT_ENUM(name, most) SIM_FAULT_##name,
    SIM_FAULTS(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
        SIM_FAULT_COUNT
};

// Mistakes of a driver, planted to see that they are found.
#define SIM_PLANTS(X)                                                                              \
    X(NONE, "nothing")                                                                             \
    X(ACKNOWLEDGE_EARLY, "acknowledges before the commit")                                         \
    X(ACKNOWLEDGE_ROLLED_BACK, "acknowledges what was rolled back")                                \
    X(ACKNOWLEDGE_ONE_MORE, "acknowledges one record more than there is")                          \
    X(FORGET_SENT, "forgets records when they are sent")                                           \
    X(REPLAY_ORDER, "replays the spool in another order")                                          \
    X(DROP_WINS, "records a dropped range over stored records")                                    \
    X(DROP_UNCLIPPED, "records all of a dropped range of which a part is stored")                  \
    X(DROP_HELD, "gives up records it still has")                                                  \
    X(NO_GO_BACK, "never sends a record again")                                                    \
    X(GOODBYE_EARLY, "leaves when the Goodbye is answered, not when all is acknowledged")          \
    X(STORE_IGNORED, "believes another store to have what the first one had")                      \
    X(COMPLETE_WITHOUT_LAST, "closes a run when all but the last record is there")                 \
    X(SPOOLED_UNWRITTEN, "takes records as spooled before they are written")                       \
    X(RELEASED_UNSPOOLED, "frees the ring before the spool is written")                            \
    X(EVICTION_UNTOLD, "does not tell what a full spool has lost")                                 \
    X(RING_FORGOTTEN, "replays the spool of a dead run, not its rings")                            \
    X(DUPLICATES_STORED, "stores what it has already")                                             \
    X(UNGREETED, "takes batches of runs that have not greeted it")                                 \
    X(STRANGERS_HEARD, "listens to anybody about any run")                                         \
    X(CLAIMS_BELIEVED, "believes that a run has produced any number of records")

// What came of it all.
#define SIM_OUTCOMES(X)                                                                            \
    X(runs)                                                                                        \
    X(replays)                                                                                     \
    X(closed)                                                                                      \
    X(killed)                                                                                      \
    X(stored)                                                                                      \
    X(spooled)                                                                                     \
    X(duplicates)                                                                                  \
    X(spool_full)                                                                                  \
    X(spool_damaged)                                                                               \
    X(acknowledged_elsewhere)                                                                      \
    X(refused)                                                                                     \
    X(host_lost)                                                                                   \
    X(ring_full)

enum sim_outcome {
#define SIM_OUTCOME_ENUM(name) SIM_OUTCOME_##name,
    SIM_OUTCOMES(SIM_OUTCOME_ENUM)
#undef SIM_OUTCOME_ENUM
        SIM_OUTCOME_COUNT
};

enum sim_plant {
#define SIM_PLANT_ENUM(name, text) SIM_PLANT_##name,
    SIM_PLANTS(SIM_PLANT_ENUM)
#undef SIM_PLANT_ENUM
        SIM_PLANT_COUNT
};

struct sim_entry {
    uint32_t stream;
    uint64_t first, last;
    uint32_t segment;
    bool torn;    // written in part
    bool damaged; // cannot be read back
    uint16_t contents[SIM_BATCH];
};

struct sim_spool {
    struct sim_entry entries[SIM_ENTRIES]; // in the order of writing
    size_t count;
    uint64_t records, records_max;
    uint32_t segment, segment_records, segment_max;
    uint64_t spooled[SIM_STREAMS];          // ever
    uint64_t released[SIM_STREAMS];         // as the present process says
    uint32_t names;                         // that its records refer to
    struct delivery_range lost[SIM_LOST];   // held no more, not released
    struct delivery_range untold[SIM_LOST]; // and of them, what the process does not know
    size_t lost_count, untold_count;
    size_t cursor;
    bool disk_full;
};

// What outlives processes.
struct sim_run {
    size_t stream_count;
    bool has_rings; // else all is done, or the host has been down since
    bool host_was_down;
    uint64_t produced[SIM_STREAMS], ring_released[SIM_STREAMS], unnumbered[SIM_STREAMS];
    uint16_t ring[SIM_STREAMS][SIM_RING];
    uint32_t ring_records;
    uint32_t names;
    bool ended;   // it said so
    bool removed; // all is done
    bool has_spool;
    struct sim_spool spool;
    // For checking: what records are.
    uint8_t name_of[SIM_STREAMS][SIM_NUMBERS + 1];
    struct sim_set poison[SIM_STREAMS];
};

struct sim_process {
    bool alive, replays, closing, leaving, old_version;
    struct delivery_producer *producer;
    uint32_t connection;       // 0: none
    uint32_t first_connection; // that it made
    uint64_t leave_at_ns;
    bool contact_known, in_contact, closed_told;
    struct clock_offset offset;
    bool clock_spoiled; // set while an answer was under way for longer than is allowed for
    bool heard_older, heard_newer; // collectors of version 1, and of another
    // What is under way, and how much may be.
    struct sim_set flying[SIM_STREAMS];
    uint64_t last_sequence[SIM_STREAMS];
    uint32_t credit;
    unsigned char first_store[16]; // for plants
    bool first_store_known;
    uint64_t sent_to[SIM_STREAMS], believed[SIM_STREAMS];
};

enum sim_lie {
    SIM_LIE_NONE,
    SIM_LIE_STRANGER, // a message of another user
    SIM_LIE_SECOND,   // of another process of the same user
    SIM_LIE_CLAIM,    // of the process itself: more records than it can have produced
    SIM_LIE_COUNT
};

struct sim_packet {
    uint64_t arrives_ns;
    uint32_t connection;
    bool to_collector;
    // To the collector.
    struct delivery_action message;
    bool replay, killed;
    enum sim_lie lie;
    uint32_t protocol;
    int64_t sent_ns;
    struct delivery_stream streams[SIM_STREAMS];
    size_t stream_count;
    struct delivery_range drops[SIM_DROPS];
    size_t drop_count;
    uint16_t contents[SIM_BATCH];
    // To the process.
    struct delivery_ack ack;
    struct delivery_next next[SIM_STREAMS];
    bool error;
    int64_t answered_ns, echo_ns;
    int64_t ahead_ns; // of the host's clock, when it sent what this is or answers
};

struct sim_network {
    struct sim_packet packets[SIM_PACKETS];
    uint16_t sent[SIM_PACKETS]; // places of packets on their way, in the order of sending
    uint16_t unused[SIM_PACKETS];
    size_t sent_count;
    uint32_t connections;  // ever made
    uint64_t latest_ns[2]; // of the present connection, each way
    uint64_t parted_until_ns;
};

struct sim_lane {
    bool known;
    uint64_t next, produced, unnumbered;
    int64_t stored;               // as the ledger says
    struct sim_set rows, cleared; // of what was stored
    struct sim_set dropped;
};

// What is committed, or about to be.
struct sim_store {
    unsigned char uuid[16];
    bool run_known;
    enum record_run_end end;
    int64_t ended_ns;
    uint32_t names;
    int64_t duplicates;
    struct sim_lane lanes[SIM_STREAMS];
};

struct sim_ack {
    uint32_t connection;
    bool is_hello, hello_wanted, error;
    uint64_t sequence;
    int64_t echo_ns, ahead_ns;
};

struct sim_collector {
    struct sim_store durable, working, copy;
    bool copy_made;
    struct delivery_run run;
    bool cached;         // `run` is what the store has of it, and more
    uint32_t connection; // of the latest Hello; 0: none
    uint32_t protocol;
    uint32_t credit;
    bool disk_full;
    struct sim_ack acks[SIM_ACKS];
    size_t ack_count;
    uint64_t promised[SIM_STREAMS]; // acknowledged by this store
    uint64_t changed_ns;            // when the store became another one
};

struct sim {
    uint64_t seed, random;
    enum sim_plant plant;
    unsigned faults[SIM_FAULT_COUNT]; // chances
    uint64_t happened[SIM_FAULT_COUNT];
    bool quiet;
    uint64_t now_ns, steps;
    uint64_t outcomes[SIM_OUTCOME_COUNT];      // records, runs
    int64_t host_ahead_ns, collector_ahead_ns; // of the true time
    uint64_t host_clock_set_ns;                // when, last
    uint64_t produced_at_end[SIM_STREAMS];     // the most it ever was
    bool ended_elsewhere;                      // committed by a store that is gone
    bool collector_clock_set;
    uint64_t delay_steps;
    uint32_t batch_records;

    struct sim_run run;
    struct sim_process process;
    struct sim_network network;
    struct sim_collector collector;

    // Why a record may be missing from the store.
    struct sim_set excused[SIM_STREAMS]; // a store that is gone had it
    struct sim_set evicted[SIM_STREAMS], damaged[SIM_STREAMS], perished[SIM_STREAMS];

    uint64_t trace_from; // the step from which on everything is told
    jmp_buf failed;
    char failure[200];
};

// A life of `steps` steps with faults, and what it takes to end without.  False
// where something was not true: sim->failure says what.  From `trace_from` steps on
// all that happens is told on stderr.  `sim` may hold anything before.
bool sim_live(struct sim *sim, uint64_t seed, enum sim_plant plant, uint64_t steps,
              uint64_t trace_from);

const char *sim_fault_name(enum sim_fault fault);
const char *sim_outcome_name(enum sim_outcome outcome);
const char *sim_plant_text(enum sim_plant plant);

// `end` is below 2^32.
uint64_t sim_below(struct sim *sim, uint64_t end);
bool sim_chance(struct sim *sim, unsigned per_mille);
// Whether the fault happens now.
bool sim_strikes(struct sim *sim, enum sim_fault fault);
// Ends the life where `truth` is false.
void sim_check(struct sim *sim, bool truth, const char *what);
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The network.  A packet to be filled and sent, or dropped by sending none.
void sim_network_init(struct sim *sim);
struct sim_packet *sim_packet(struct sim *sim);
void sim_send(struct sim *sim, struct sim_packet *packet, uint32_t connection, bool to_collector);
// What arrives now at that side; false: nothing.
bool sim_arrived(struct sim *sim, bool at_collector, struct sim_packet *packet);
void sim_connect(struct sim *sim);
void sim_disconnect(struct sim *sim);

// The spool.
void sim_spool_init(struct sim *sim, uint64_t records_max, uint32_t segment_max);
bool sim_spool_append(struct sim *sim, const struct delivery_action *action);
void sim_spool_release(struct sim *sim, uint32_t stream, uint64_t last);
bool sim_spool_next_lost(struct sim *sim, struct delivery_range *range);
// What was written of the record; -1 where it cannot be read.
int sim_spool_at(struct sim *sim, uint32_t stream, uint64_t number);
// Another process opens it.
void sim_spool_attach(struct sim *sim);
// Adds the numbers that can be read back.
void sim_spool_held(const struct sim *sim, uint32_t stream, struct sim_set *held);
void sim_spool_damage(struct sim *sim);

// The host.
uint16_t sim_content(uint32_t stream, uint64_t number);
void sim_process_start(struct sim *sim, bool replays);
void sim_process_end(struct sim *sim); // however it ends
void sim_host_goes_down(struct sim *sim);
void sim_process_close(struct sim *sim);
void sim_process_step(struct sim *sim);
void sim_produce(struct sim *sim);

// The collector.
void sim_collector_init(struct sim *sim);
void sim_collector_forget(struct sim *sim); // the run, with a new one to come
void sim_collector_deinit(struct sim *sim);
void sim_collector_step(struct sim *sim);
void sim_collector_faults(struct sim *sim);
void sim_collector_mend(struct sim *sim);

// Everything is as it should be, at any time, and when all is over.
void sim_check_all(struct sim *sim);
void sim_check_end(struct sim *sim);
// Whether the end of the run is committed.
bool sim_is_over(const struct sim *sim);
// Whether there is anything that a process could replay.
bool sim_leaves_something(const struct sim *sim);
