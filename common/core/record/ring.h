// A bounded SPSC (single-producer, single-consumer) ring buffer of records, lock-free, in
// memory that may be mapped from a file.  Neither side blocks, allocates or makes a system
// call.
//
// Records are numbered 1, 2, 3, ... over the ring's whole history.
// It takes one slot of 256 bytes or, with more values and text than fit there, two
// consecutive ones, published together: the consumer sees both or neither.  The
// consumer reads records in place and releases them, in order, once they are no longer
// needed; until then their slots stay occupied.
#ifndef INFERSTAT_CORE_RING_H
#define INFERSTAT_CORE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/status.h"
#include "common/core/record/record.h"

struct ring;

// Bytes that a ring of `capacity` slots (a power of two, 2 to 2^20) takes.
size_t ring_size(uint32_t capacity);

// Lays an empty ring over `memory` (ring_size(capacity) bytes, 64-byte aligned,
// zeroed, borrowed until the last use).  STATUS_INVALID for a capacity that is
// not a power of two in range.
MUST_CHECK enum status ring_init(struct ring **out, void *memory, uint32_t capacity);

// Opens an existing ring in `memory` (`size` bytes, perhaps written by a process that has
// ended, with this version of the library or the previous one, which had no records of two
// slots).  Validates its header and the positions of its records: STATUS_CORRUPT.
MUST_CHECK enum status ring_attach(struct ring **out, void *memory, size_t size);

// Makes an empty ring continue after `number`: lower numbers count as produced and released.
// Does nothing if the ring is beyond that.  The caller owns both ends.
void ring_skip_to(struct ring *ring, uint64_t number);

uint32_t ring_capacity(const struct ring *ring);

// ---- Producer thread only --------------------------------------------------

// The slot for the next record, of no more than RECORD_SLOT_VALUES values, to be
// filled in place and published by ring_commit.  NULL when the ring is full: the
// record is lost and counted.
struct record *ring_reserve(struct ring *ring);
void ring_commit(struct ring *ring);

// Copies `count` records into the ring, all or none.  Returns the number of the
// first, or 0 when there was no room for all: then all are lost and counted.
uint64_t ring_push(struct ring *ring, const struct record *records, uint32_t count);

// The number the next record will get.
uint64_t ring_next_number(const struct ring *ring);

// ---- Consumer thread only --------------------------------------------------

// The record of that number, which must have been produced and not released.  Only the bytes
// that it uses may be read: others belong to other records.  Constant time if no record in
// the ring has two slots, or for sequential numbers; otherwise linear in the number of
// records in the ring.
const struct record *ring_at(struct ring *ring, uint64_t number);

// Frees the slots of all records up to and including `number`, which must have
// been produced.  Numbers released before are no error.
void ring_release(struct ring *ring, uint64_t number);

// The highest number released.
uint64_t ring_released(const struct ring *ring);

// The parts of the ring's memory without records, each possibly empty.  Their contents need
// not be kept while the producer does not push.
struct ring_part {
    size_t offset, size;
};

void ring_free_parts(struct ring *ring, struct ring_part parts[2]);

// ---- Any thread -------------------------------------------------------------

uint64_t ring_produced(const struct ring *ring); // highest number assigned
uint64_t ring_dropped(const struct ring *ring);  // dropped, unnumbered: ring full

#endif
