// The local history of one thread: its last events of each kind, written without
// a lock by the thread itself and read by any other.
//
// A reader copies entries and then looks whether the writer has come round to
// them in the meantime; what was overwritten is left out.  The writer never waits.
#ifndef INFERSTAT_MONITOR_EVENT_RING_H
#define INFERSTAT_MONITOR_EVENT_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/status.h"
#include "common/monitor/inferstat.h"

enum {
    HISTORY_KINDS = INFERSTAT_EVENT_OPERATION + 1,
    HISTORY_LIMIT_MAX = 1 << 20, // entries of a kind
};

// One event; its kind is the ring it stands in.
struct history_entry {
    uint64_t ended_ns;         // monotonic: the order among threads
    uint64_t generated_so_far; // by this thread, this event included; filled by history_add
    int64_t started_ns;        // as in struct inferstat_event from here on
    uint64_t duration_ns;
    uint64_t ttft_ns;
    uint64_t decode_ns;
    uint64_t prompt_tokens, generated_tokens;
    int64_t host_memory_bytes;
    uint32_t name;
    int32_t status;
};

enum { HISTORY_ENTRY_WORDS = sizeof(struct history_entry) / sizeof(uint64_t) };

struct history_ring {
    _Atomic uint64_t *words; // `capacity` entries
    uint64_t capacity;       // a power of two above the limit
    _Atomic uint64_t begun;  // entries whose writing has begun
    _Atomic uint64_t done;   // entries that are whole
};

struct history {
    struct history_ring rings[HISTORY_KINDS];
    uint64_t generated; // the writer's own
};

// Room for at least the last `limits[kind]` entries of each kind, and for one
// where the limit is 0 (the totals are read from it).  On failure history_deinit
// may still be called.
MUST_CHECK enum status history_init(struct history *history, const uint32_t limits[HISTORY_KINDS]);
void history_deinit(struct history *history);

// Adds an event.  The thread that owns the history only.
void history_add(struct history *history, enum inferstat_event_kind kind,
                 struct history_entry *entry);

// How many events of a kind there ever were.  Any thread.
uint64_t history_count(const struct history *history, enum inferstat_event_kind kind);

// Copies the last up to `count` entries, oldest first, of those numbered `from`
// (from 0) and later; returns how many.  Any thread.
size_t history_read(const struct history *history, enum inferstat_event_kind kind, uint64_t from,
                    struct history_entry *entries, size_t count);

#endif
