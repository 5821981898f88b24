// A bounded queue of records between one producer thread and one consumer
// thread, in memory that may be mapped from a file.  Neither side blocks,
// allocates or makes a system call.
//
// A record's number is its position in the ring's whole history: 1, 2, 3, ...
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
// no power of two in range.
MUST_CHECK enum status ring_init(struct ring **out, void *memory, uint32_t capacity);

// Opens a ring that already lies in `memory` (`size` bytes, perhaps written by
// another process that has ended, with this version of the library or the one
// before, which knew no records of two slots): checks every figure in its header, and
// where its records begin.  STATUS_CORRUPT where they cannot be true.
MUST_CHECK enum status ring_attach(struct ring **out, void *memory, size_t size);

// Makes an empty ring go on after `number`, which with all before it counts as
// produced and released; nothing where it is beyond that.  For who owns both ends.
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

// The record of that number: it must have been produced and not released.  Of what
// follows the bytes that it uses nothing may be read: they are other records'.  Takes
// constant time where no record in the ring has two slots, or from one number to the
// next; else time in proportion to the records in the ring.
const struct record *ring_at(struct ring *ring, uint64_t number);

// Frees the slots of all records up to and including `number`, which must have
// been produced.  Numbers released before are no error.
void ring_release(struct ring *ring, uint64_t number);

// The highest number released.
uint64_t ring_released(const struct ring *ring);

// Where in the ring's memory there is no record: two parts, of which either may
// have no size.  Their bytes need not be kept while the producer rests.
struct ring_part {
    size_t offset, size;
};

void ring_free_parts(struct ring *ring, struct ring_part parts[2]);

// ---- Any thread -------------------------------------------------------------

uint64_t ring_produced(const struct ring *ring); // highest number given out
uint64_t ring_dropped(const struct ring *ring);  // dropped, unnumbered: ring full

#endif
