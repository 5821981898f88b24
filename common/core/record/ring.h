// Bounded lock-free SPSC (single-producer, single-consumer) ring buffer of records, in memory
// that may be mapped from a file.  Neither side blocks, allocates or makes a system call.
//
// Records are numbered 1, 2, 3, ... over the ring's whole history.  A record occupies one slot
// of 256 bytes, or two consecutive slots if its values and text need more; both are published
// together.  The consumer reads records in place and releases them in order; until then their
// slots stay occupied.
#ifndef INFERSTAT_CORE_RING_H
#define INFERSTAT_CORE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/record/record.h"

struct ring;

// Size in bytes of a ring of `capacity` slots (a power of two, 2 to 2^20).
size_t ring_size(uint32_t capacity);

// Initialises an empty ring in `memory` (ring_size(capacity) bytes, 64-byte aligned, zeroed,
// borrowed until the last use).  STATUS_INVALID: capacity is no power of two in range.
MUST_CHECK enum status ring_init(struct ring **out, void *memory, uint32_t capacity);

// Opens an existing ring in `memory` (`size` bytes), which a dead process may have written, with
// this version of the library or the previous one, which had no two-slot records.
// STATUS_CORRUPT: its header or the positions of its records are invalid.
MUST_CHECK enum status ring_attach(struct ring **out, void *memory, size_t size);

// Makes an empty ring continue after `number`: lower numbers count as produced and released.
// Does nothing if the ring is beyond `number`.  The caller is both producer and consumer.
void ring_skip_to(struct ring *ring, uint64_t number);

uint32_t ring_capacity(const struct ring *ring);

// ---- Producer thread only --------------------------------------------------

// Reserves the slot of the next record (at most RECORD_SLOT_VALUES values), to be filled in
// place and published by ring_commit.  NULL: the ring is full; the record is counted as
// dropped.
struct record *ring_reserve(struct ring *ring);
void ring_commit(struct ring *ring);

// Copies `count` records into the ring, all or none.  Returns the number of the first; 0: they
// do not all fit, and all are counted as dropped.
uint64_t ring_push(struct ring *ring, const struct record *records, uint32_t count);

// The number of the next record.
uint64_t ring_next_number(const struct ring *ring);

// ---- Consumer thread only --------------------------------------------------

// The record `number`, which must be produced and not released.  Only its used bytes may be
// read: others belong to other records.  Constant time for sequential numbers, or if no record
// in the ring has two slots; else linear in the number of records in the ring.
const struct record *ring_at(struct ring *ring, uint64_t number);

// Frees the slots of all records up to and including `number`, which must be produced and may
// be released already.
void ring_release(struct ring *ring, uint64_t number);

// The highest number released.
uint64_t ring_released(const struct ring *ring);

// The slots of all records in the ring; those being pushed may be counted or not.
uint64_t ring_used_slots(const struct ring *ring);

// The unused parts of the ring's memory, each possibly empty.  Their contents may be discarded
// while the producer does not push.
struct ring_part {
    size_t offset, size;
};

void ring_free_parts(struct ring *ring, struct ring_part parts[2]);

// ---- Any thread -------------------------------------------------------------

uint64_t ring_produced(const struct ring *ring); // highest number assigned
uint64_t ring_dropped(const struct ring *ring);  // dropped, unnumbered: ring full

#endif
