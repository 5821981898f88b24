#include "common/monitor/local/event_ring.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct event_entry) % sizeof(uint64_t) == 0, "an entry is whole words");

enum status event_ring_init(struct event_rings *events, const uint32_t limits[EVENT_KINDS])
{
    for (unsigned kind = 0; kind < EVENT_KINDS; kind++) {
        struct event_ring *ring = &events->rings[kind];
        // One more than the limit, because readers cannot use the entry being written.
        uint64_t capacity = 2;
        while (capacity < (uint64_t)limits[kind] + 1)
            capacity *= 2;
        ring->words = calloc(capacity * EVENT_ENTRY_WORDS, sizeof *ring->words);
        if (!ring->words)
            return STATUS_NOMEM;
        ring->capacity = capacity;
    }
    return STATUS_OK;
}

void event_ring_deinit(struct event_rings *events)
{
    for (unsigned kind = 0; kind < EVENT_KINDS; kind++)
        free(events->rings[kind].words);
}

// A seqlock: `begun` is advanced before an entry changes, `done` after.  Every store is a
// release, so that none is visible before those above it.
void event_ring_add(struct event_rings *events, enum inferstat_event_kind kind,
                    struct event_entry *entry)
{
    struct event_ring *ring = &events->rings[kind];
    events->generated += entry->generated_tokens;
    entry->generated_so_far = events->generated;

    const uint64_t number = atomic_load_explicit(&ring->done, memory_order_relaxed);
    _Atomic uint64_t *slot = ring->words + (number & (ring->capacity - 1)) * EVENT_ENTRY_WORDS;
    atomic_store_explicit(&ring->begun, number + 1, memory_order_relaxed);
    for (unsigned i = 0; i < EVENT_ENTRY_WORDS; i++) {
        uint64_t word;
        memcpy(&word, (const char *)entry + i * sizeof word, sizeof word);
        atomic_store_explicit(&slot[i], word, memory_order_release);
    }
    atomic_store_explicit(&ring->done, number + 1, memory_order_release);
}

uint64_t event_ring_count(const struct event_rings *events, enum inferstat_event_kind kind)
{
    return atomic_load_explicit(&events->rings[kind].done, memory_order_acquire);
}

// Acquire loads: `begun` is read after the entry was copied.
static void copy_entry(const struct event_ring *ring, uint64_t number, struct event_entry *entry)
{
    uint64_t words[EVENT_ENTRY_WORDS];
    _Atomic uint64_t *slot = ring->words + (number & (ring->capacity - 1)) * EVENT_ENTRY_WORDS;
    for (unsigned i = 0; i < EVENT_ENTRY_WORDS; i++)
        words[i] = atomic_load_explicit(&slot[i], memory_order_acquire);
    memcpy(entry, words, sizeof *entry);
}

size_t event_ring_read(const struct event_rings *events, enum inferstat_event_kind kind,
                       uint64_t from, struct event_entry *entries, size_t count)
{
    const struct event_ring *ring = &events->rings[kind];
    const uint64_t done = event_ring_count(events, kind);
    uint64_t first = from;
    if (done - first > ring->capacity - 1)
        first = done - (ring->capacity - 1);
    if (done - first > count)
        first = done - count;

    for (uint64_t number = first; number < done; number++)
        copy_entry(ring, number, &entries[number - first]);

    // Slot n is overwritten by entry n + capacity.
    const uint64_t begun = atomic_load_explicit(&ring->begun, memory_order_acquire);
    const uint64_t whole = begun > ring->capacity ? begun - ring->capacity : 0;
    const uint64_t lost = whole > first ? whole - first : 0;
    if (lost >= done - first)
        return 0;
    const size_t kept = (size_t)(done - first - lost);
    memmove(entries, entries + lost, kept * sizeof *entries);
    return kept;
}
