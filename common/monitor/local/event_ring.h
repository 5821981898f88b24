// Lock-free overwriting ring buffers of one thread's most recent events, one per kind of
// event, readable by any thread.
//
// A reader copies entries, then discards those that the writer has overwritten meanwhile
// (as with a seqlock).  The writer never waits.
#ifndef INFERSTAT_MONITOR_EVENT_RING_H
#define INFERSTAT_MONITOR_EVENT_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/monitor/inferstat.h"

enum {
    EVENT_KINDS = INFERSTAT_EVENT_OPERATION + 1,
    EVENT_RING_LIMIT_MAX = 1 << 20, // most entries per kind
};

// One event; its kind is that of its ring.
struct event_entry {
    uint64_t ended_ns;         // monotonic; orders the events of all threads
    uint64_t generated_so_far; // tokens of this thread up to this event; set by event_ring_add
    int64_t started_ns;        // from here on as in struct inferstat_event
    uint64_t duration_ns;
    uint64_t ttft_ns;
    uint64_t decode_ns;
    uint64_t prompt_tokens, generated_tokens;
    int64_t host_memory_bytes;
    uint32_t name;
    int32_t status;
};

enum { EVENT_ENTRY_WORDS = sizeof(struct event_entry) / sizeof(uint64_t) };

struct event_ring {
    _Atomic uint64_t *words; // `capacity` entries
    uint64_t capacity;       // a power of two above the limit
    _Atomic uint64_t begun;  // entries started
    _Atomic uint64_t done;   // entries complete
};

struct event_rings {
    struct event_ring rings[EVENT_KINDS];
    uint64_t generated; // tokens; writer thread only
};

// Allocates rings for at least the last `limits[kind]` entries of each kind, and for one if
// the limit is 0 (totals are read from the last entry).  After a failure event_ring_deinit
// may be called too.
MUST_CHECK enum status event_ring_init(struct event_rings *events,
                                       const uint32_t limits[EVENT_KINDS]);
void event_ring_deinit(struct event_rings *events);

// Adds an event.  Owner thread only.
void event_ring_add(struct event_rings *events, enum inferstat_event_kind kind,
                    struct event_entry *entry);

// The number of events of a kind so far.  Any thread.
uint64_t event_ring_count(const struct event_rings *events, enum inferstat_event_kind kind);

// Copies at most the last `count` entries, oldest first, whose index (from 0) is at least
// `from`; returns how many.  Any thread.
size_t event_ring_read(const struct event_rings *events, enum inferstat_event_kind kind,
                       uint64_t from, struct event_entry *entries, size_t count);

#endif
