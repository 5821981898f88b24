// A collector inside a test: takes what producers send over real sockets and
// keeps the rows in memory.  It follows the rules of proto/inferstat.proto and
// nothing else, so that a producer's faults show.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/delivery/delivery.h"
#include "common/core/record/record.h"

enum { FAKE_TEXT_SIZE = 256, FAKE_STREAMS_MAX = 1024, FAKE_COLUMNS_MAX = 32 };

// One record as it arrived.
struct fake_row {
    enum record_kind kind;
    uint32_t stream;
    uint64_t number;
    int64_t started_ns;
    uint64_t present;
    struct fake_value {
        int64_t i;
        double r;
        size_t size;
        char text[FAKE_TEXT_SIZE]; // NAME as its text, TEXT, BLOB
    } values[FAKE_COLUMNS_MAX];
};

// What happened so far; of one run at a time, the one that spoke last.
struct fake_state {
    // Batches have records; the whole ones tell the states of several streams.
    unsigned hellos, batches, whole_batches, heartbeats, goodbyes;
    unsigned faults;                         // frames and batches that were not as they must be
    char fault[256];                         // the first of them
    bool closed;                             // the run said goodbye and everything was there
    uint32_t names;                          // names known
    uint64_t records;                        // rows of this run, each once
    uint64_t duplicates;                     // rows that came again
    uint64_t unnumbered;                     // losses reported, all streams
    uint64_t no_room;                        // of these, as stream 0 said
    uint64_t dropped[DELIVERY_REASON_COUNT]; // numbers in the ranges that were announced
    bool replay, killed;                     // as Hello and Goodbye said
    int64_t ended_ns;
    char deaths[4 * FAKE_TEXT_SIZE]; // "1: decode x request 7; 2: ...", as Goodbye said
    int64_t clock_offset_ns, clock_error_ns;
    int64_t device_count;
    char host[FAKE_TEXT_SIZE], program[FAKE_TEXT_SIZE], activity[FAKE_TEXT_SIZE];
};

struct fake_collector;

// Listens at ipc://FOLDER/ingest in a thread of its own; ends the test where it
// cannot.
struct fake_collector *fake_collector_open(const char *folder);
// Stops and frees.  NULL is fine.
void fake_collector_close(struct fake_collector *collector);

// While mute it throws away whatever comes.
void fake_collector_set_mute(struct fake_collector *collector, bool mute);
// Rows need not be kept (for benchmarks).
void fake_collector_set_forgetful(struct fake_collector *collector, bool forgetful);
// The next batch that has the record is refused with this reason.
void fake_collector_refuse(struct fake_collector *collector, uint32_t stream, uint64_t number);
// While set, every Hello is answered as one that cannot be read: with an error and
// no run.
void fake_collector_set_baffled(struct fake_collector *collector, bool baffled);
// Of which version of the protocol its answers say that they are.
void fake_collector_set_protocol(struct fake_collector *collector, uint32_t protocol);
// Of every run it says that it has records up to `last` of this stream already.
void fake_collector_claim(struct fake_collector *collector, uint32_t stream, uint64_t last);
// How far its clock is ahead of the host's.
void fake_collector_set_clock(struct fake_collector *collector, int64_t ahead_ns);
// Becomes another store, an empty one.
void fake_collector_swap_store(struct fake_collector *collector);

void fake_collector_state(struct fake_collector *collector, struct fake_state *state);

// Waits until `count` rows of the run are there, 10 seconds at most.
bool fake_collector_wait(struct fake_collector *collector, uint64_t count);

// How many rows of a kind there are, and a copy of one of them, in order of
// arrival.  False when there are not so many.
unsigned fake_collector_count(struct fake_collector *collector, enum record_kind kind);
bool fake_collector_row(struct fake_collector *collector, enum record_kind kind, unsigned index,
                        struct fake_row *row);
