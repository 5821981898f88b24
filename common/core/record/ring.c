#include "common/core/record/ring.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

// Atomics of a ring are shared between processes through a mapped file.
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must be lock-free");

enum { RING_LINE = 64, RING_HEADER_SIZE = 192 };

static const uint64_t ring_magic = UINT64_C(0x32676e6972666e69);          // "infring2"
static const uint64_t one_slot_ring_magic = UINT64_C(0x31676e6972666e69); // "infring1"
static const uint32_t capacity_max = UINT32_C(1) << 20;

// Positions count slots over the ring's whole history: a record's position is the number of
// records before it plus the number of their second slots.
struct ring_position {
    _Atomic uint64_t records;
    _Atomic uint64_t second_slots;
};

// The header has a cache line each for constants, the producer's fields and the consumer's,
// which avoids false sharing.
//
// Orderings: the producer fills the slots of a record, counts its second slot, and
// then stores `produced` with release; the consumer loads it with acquire and so sees
// the whole record.  The consumer stores `freed` with release once it has read slots
// for the last time; the producer loads it with acquire before it writes there again.
//
// The consumer may be killed at any instruction, and ring_attach then needs a consistent
// position: the consumer writes the unused one of two, and then switches to it.
//
// An extra slot after the last holds the second slot of a record that begins in the last
// one, so that every record is contiguous.  The slot at the start, which it would
// otherwise use, counts as occupied.
//
// A ring of one-slot records differs only in this slot; its unknown fields are 0.
struct ring {
    _Alignas(RING_LINE) uint64_t magic;
    uint32_t capacity;
    uint32_t slot_size;

    _Alignas(RING_LINE) _Atomic uint64_t produced;
    _Atomic uint64_t dropped;
    uint64_t freed_seen; // the producer's cached copy of `freed`
    _Atomic uint64_t second_slots;

    _Alignas(RING_LINE) struct ring_position released[2];
    _Atomic uint64_t released_which; // of the two: 0 or 1
    _Atomic uint64_t freed;          // slots: the sum of that position's numbers
    uint64_t found_number;           // the last record that ring_at returned,
    uint64_t found_at;               // and its position

    _Alignas(RING_LINE) unsigned char slots[];
};

_Static_assert(offsetof(struct ring, slots) == RING_HEADER_SIZE, "the layout of run files");

static bool is_capacity(uint32_t capacity)
{
    return capacity >= 2 && capacity <= capacity_max && (capacity & (capacity - 1)) == 0;
}

size_t ring_size(uint32_t capacity)
{
    return RING_HEADER_SIZE + ((size_t)capacity + 1) * RECORD_SLOT_SIZE;
}

enum status ring_init(struct ring **out, void *memory, uint32_t capacity)
{
    if (!is_capacity(capacity))
        return STATUS_INVALID;
    assert((uintptr_t)memory % RING_LINE == 0);

    struct ring *ring = memory;
    ring->capacity = capacity;
    ring->slot_size = RECORD_SLOT_SIZE;
    ring->magic = ring_magic;
    *out = ring;
    return STATUS_OK;
}

// ---- Positions --------------------------------------------------------------

static struct record *slot_at(struct ring *ring, uint64_t position)
{
    void *slot = ring->slots + (position & (ring->capacity - 1)) * RECORD_SLOT_SIZE;
    return slot;
}

static const struct ring_position *released_position(const struct ring *ring)
{
    return &ring->released[atomic_load_explicit(&ring->released_which, memory_order_relaxed)];
}

// Where the record of that number begins, or, for the highest number produced and 1,
// where the next one will.  Consumer thread.
static uint64_t find_position(struct ring *ring, uint64_t number)
{
    const struct ring_position *from = released_position(ring);
    const uint64_t released = atomic_load_explicit(&from->records, memory_order_relaxed);
    const uint64_t second = atomic_load_explicit(&from->second_slots, memory_order_relaxed);
    if (atomic_load_explicit(&ring->second_slots, memory_order_relaxed) == second)
        return number - 1 + second; // none in the ring has two slots
    if (ring->found_number <= released || ring->found_number > number) {
        ring->found_number = released + 1;
        ring->found_at = released + second;
    }
    for (; ring->found_number < number; ring->found_number++)
        ring->found_at += record_slots(slot_at(ring, ring->found_at));
    return ring->found_at;
}

static void set_released(struct ring *ring, uint64_t number, uint64_t second_slots)
{
    const uint64_t which = !atomic_load_explicit(&ring->released_which, memory_order_relaxed);
    struct ring_position *position = &ring->released[which];
    atomic_store_explicit(&position->records, number, memory_order_relaxed);
    atomic_store_explicit(&position->second_slots, second_slots, memory_order_relaxed);
    atomic_store_explicit(&ring->released_which, which, memory_order_release);
    atomic_store_explicit(&ring->freed, number + second_slots, memory_order_release);
}

// Counts the second slots of the records `released` to `produced`.  False where they take
// more slots than there are, or two where no record may.
static bool count_second_slots(struct ring *ring, uint64_t released, uint64_t produced,
                               uint64_t *second_slots)
{
    const uint64_t freed = released + *second_slots;
    uint64_t at = freed;
    for (uint64_t number = released + 1; number <= produced; number++) {
        const uint32_t slots = record_slots(slot_at(ring, at));
        if (slots > 1 && ring->magic == one_slot_ring_magic)
            return false;
        at += slots;
    }
    *second_slots = at - produced;
    return at - freed <= ring->capacity;
}

// ---- Attaching ----------------------------------------------------------------

static bool header_is_sound(const struct ring *ring, size_t size)
{
    if (ring->slot_size != RECORD_SLOT_SIZE || !is_capacity(ring->capacity) ||
        atomic_load_explicit(&ring->released_which, memory_order_acquire) > 1)
        return false;
    if (ring->magic == one_slot_ring_magic)
        return size >= ring_size(ring->capacity) - RECORD_SLOT_SIZE;
    return ring->magic == ring_magic && size >= ring_size(ring->capacity);
}

enum status ring_attach(struct ring **out, void *memory, size_t size)
{
    if (size < RING_HEADER_SIZE || (uintptr_t)memory % RING_LINE != 0)
        return STATUS_CORRUPT;

    struct ring *ring = memory;
    if (!header_is_sound(ring, size))
        return STATUS_CORRUPT;
    const struct ring_position *from = released_position(ring);
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_acquire);
    const uint64_t released = atomic_load_explicit(&from->records, memory_order_acquire);
    const uint64_t freed_second = atomic_load_explicit(&from->second_slots, memory_order_relaxed);
    if (released > produced || produced - released > ring->capacity || produced > INT64_MAX ||
        freed_second > released)
        return STATUS_CORRUPT;
    uint64_t second_slots = freed_second;
    if (!count_second_slots(ring, released, produced, &second_slots))
        return STATUS_CORRUPT;

    // What is not as it follows from this was being written when the process died.
    atomic_store_explicit(&ring->second_slots, second_slots, memory_order_relaxed);
    atomic_store_explicit(&ring->freed, released + freed_second, memory_order_relaxed);
    ring->freed_seen = released + freed_second;
    ring->found_number = 0;
    *out = ring;
    return STATUS_OK;
}

void ring_skip_to(struct ring *ring, uint64_t number)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    const uint64_t second_slots = atomic_load_explicit(&ring->second_slots, memory_order_relaxed);
    assert(produced == ring_released(ring));
    if (number <= produced)
        return;
    set_released(ring, number, second_slots);
    ring->freed_seen = number + second_slots;
    atomic_store_explicit(&ring->produced, number, memory_order_release);
}

uint32_t ring_capacity(const struct ring *ring)
{
    return ring->capacity;
}

// ---- Producer -----------------------------------------------------------------

// Whether `count` more slots are free behind `position`.
static bool has_room(struct ring *ring, uint64_t position, uint32_t count)
{
    if (position - ring->freed_seen + count <= ring->capacity)
        return true;
    ring->freed_seen = atomic_load_explicit(&ring->freed, memory_order_acquire);
    return position - ring->freed_seen + count <= ring->capacity;
}

// Only the producer writes the count, so it need not be one atomic step.
static void count_dropped(struct ring *ring, uint32_t count)
{
    const uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
    atomic_store_explicit(&ring->dropped, dropped + count, memory_order_relaxed);
}

// Where the next record will begin.
static uint64_t next_position(const struct ring *ring, uint64_t produced)
{
    return produced + atomic_load_explicit(&ring->second_slots, memory_order_relaxed);
}

struct record *ring_reserve(struct ring *ring)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    const uint64_t position = next_position(ring, produced);
    if (!has_room(ring, position, 1)) {
        count_dropped(ring, 1);
        return NULL;
    }
    return slot_at(ring, position);
}

void ring_commit(struct ring *ring)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    atomic_store_explicit(&ring->produced, produced + 1, memory_order_release);
}

uint64_t ring_push(struct ring *ring, const struct record *records, uint32_t count)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    uint64_t position = next_position(ring, produced);
    uint32_t slots = 0;
    for (uint32_t i = 0; i < count; i++)
        slots += record_slots(&records[i]);
    if (!has_room(ring, position, slots)) {
        count_dropped(ring, count);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t taken = record_slots(&records[i]);
        memcpy(slot_at(ring, position), &records[i], taken * RECORD_SLOT_SIZE);
        position += taken;
    }
    atomic_store_explicit(&ring->second_slots, position - (produced + count), memory_order_relaxed);
    atomic_store_explicit(&ring->produced, produced + count, memory_order_release);
    return produced + 1;
}

// ---- Consumer -----------------------------------------------------------------

const struct record *ring_at(struct ring *ring, uint64_t number)
{
    assert(number > ring_released(ring) &&
           number <= atomic_load_explicit(&ring->produced, memory_order_acquire));
    return slot_at(ring, find_position(ring, number));
}

void ring_release(struct ring *ring, uint64_t number)
{
    assert(number <= atomic_load_explicit(&ring->produced, memory_order_acquire));
    if (number > ring_released(ring))
        set_released(ring, number, find_position(ring, number + 1) - number);
}

uint64_t ring_released(const struct ring *ring)
{
    return atomic_load_explicit(&released_position(ring)->records, memory_order_relaxed);
}

uint64_t ring_used_slots(const struct ring *ring)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_acquire);
    return next_position(ring, produced) - atomic_load_explicit(&ring->freed, memory_order_relaxed);
}

void ring_free_parts(struct ring *ring, struct ring_part parts[2])
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_acquire);
    const uint64_t freed = atomic_load_explicit(&ring->freed, memory_order_relaxed);
    // Free slots follow the last one taken and go on, at the end, from the start.
    const uint64_t next = find_position(ring, produced + 1);
    const size_t first = next & (ring->capacity - 1);
    const size_t count = ring->capacity - (size_t)(next - freed);
    const size_t to_end = ring->capacity - first;
    const size_t before_end = count < to_end ? count : to_end;
    parts[0] = (struct ring_part){.offset = RING_HEADER_SIZE + first * RECORD_SLOT_SIZE,
                                  .size = before_end * RECORD_SLOT_SIZE};
    parts[1] = (struct ring_part){.offset = RING_HEADER_SIZE,
                                  .size = (count - before_end) * RECORD_SLOT_SIZE};
}

uint64_t ring_produced(const struct ring *ring)
{
    return atomic_load_explicit(&ring->produced, memory_order_acquire);
}

uint64_t ring_dropped(const struct ring *ring)
{
    return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}
