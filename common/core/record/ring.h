// Ring buffer of records: bounded, lock-free, SPSC (single-producer, single-consumer), in memory
// that may be mapped from a file.  The library has a ring for each thread that records.  That
// thread is the producer; the library's background thread is the consumer.  Neither side blocks,
// allocates or makes a system call.
//
// Records are numbered 1, 2, 3, ... over the ring's whole history.  A record occupies one slot
// of 256 bytes, or two consecutive slots if its values and text need more; the producer publishes
// both slots together.  The consumer reads records in place and releases them in order; slots stay
// occupied until the release.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/record/record.h"

struct ring;

// Size in bytes of a ring of `capacity` slots (a power of two, 2 to 2^20).
size_t ring_size(uint32_t capacity);

// Initialises an empty ring of `capacity` slots in `memory` (ring_size(capacity) bytes, 64-byte
// aligned, zeroed, borrowed until the last use).  Returns STATUS_INVALID if ring_size does not
// permit `capacity`.
MUST_CHECK enum status ring_init(struct ring **out, void *memory, uint32_t capacity);

// Opens an existing ring in `memory` (`size` bytes), such as the ring of a dead process.  It may
// come from this version of the library or from the previous one, which had no two-slot records.
// Returns STATUS_CORRUPT if the ring's header or the positions of its records are invalid.
MUST_CHECK enum status ring_attach(struct ring **out, void *memory, size_t size);

// Makes an empty ring continue after record `number`: the records up to it count as produced and
// released.  Does nothing if the ring is beyond `number`.  The caller is both producer and
// consumer.
void ring_skip_to(struct ring *ring, uint64_t number);

uint32_t ring_capacity(const struct ring *ring);

// ---- Producer thread only --------------------------------------------------

// Reserves a slot for the next record, of at most RECORD_SLOT_VALUES values.  The caller fills it
// in place and publishes it with ring_commit; until then, another call returns the same slot.
// Returns NULL if the ring is full, and counts the record as dropped.
struct record *ring_reserve(struct ring *ring);
void ring_commit(struct ring *ring);

// Pushes `count` records: copies and publishes them, all or none.  Returns the number of the first
// record.  If they do not all fit, returns 0 and counts all of them as dropped.
uint64_t ring_push(struct ring *ring, const struct record *records, uint32_t count);

// ---- Consumer thread only --------------------------------------------------

// The record `number`, which must be produced and not released.  The caller must read only its used
// bytes: the bytes after them belong to other records.  Takes constant time if calls have
// sequential numbers or no record in the ring has two slots, else time linear in the count of
// records in it.
const struct record *ring_at(struct ring *ring, uint64_t number);

// Frees the slots of all records up to and including `number`.  Record `number` must be produced;
// it may have been released already.
void ring_release(struct ring *ring, uint64_t number);

// The highest number released.
uint64_t ring_released(const struct ring *ring);

// The count of occupied slots; may or may not include a record that is being pushed.
uint64_t ring_used_slots(const struct ring *ring);

// Two parts of the ring's memory that no record occupies; a part may be empty.  While the producer
// does not push, the caller may discard their contents.
struct ring_part {
    size_t offset, size; // bytes; offset: from the start of `memory`
};

void ring_free_parts(struct ring *ring, struct ring_part parts[2]);

// ---- Any thread -------------------------------------------------------------

uint64_t ring_produced(const struct ring *ring); // highest number assigned
uint64_t ring_dropped(const struct ring *ring);  // dropped because full: they got no number
