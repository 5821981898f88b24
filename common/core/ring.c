#include "common/core/ring.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

// Atomics of a ring are shared between processes through a mapped file.
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must be lock-free");

enum { RING_LINE = 64, RING_HEADER_SIZE = 192 };

static const uint64_t ring_magic = UINT64_C(0x31676e6972666e69); // "infring1"
static const uint32_t capacity_max = UINT32_C(1) << 20;

// The header's three cache lines: what never changes, what the producer writes,
// what the consumer writes, so that neither takes the other's line away.
//
// Orderings: the producer fills a slot and then stores `produced` with release;
// the consumer loads it with acquire and so sees the slot whole.  The consumer
// stores `released` with release once it has read a slot for the last time; the
// producer loads it with acquire before it writes there again.
struct ring {
    _Alignas(RING_LINE) uint64_t magic;
    uint32_t capacity;
    uint32_t record_size;

    _Alignas(RING_LINE) _Atomic uint64_t produced;
    _Atomic uint64_t dropped;
    uint64_t released_seen; // the producer's last look at `released`

    _Alignas(RING_LINE) _Atomic uint64_t released;

    _Alignas(RING_LINE) struct record slots[];
};

_Static_assert(offsetof(struct ring, slots) == RING_HEADER_SIZE, "the layout of run files");

static bool is_capacity(uint32_t capacity)
{
    return capacity >= 2 && capacity <= capacity_max && (capacity & (capacity - 1)) == 0;
}

size_t ring_size(uint32_t capacity)
{
    return RING_HEADER_SIZE + (size_t)capacity * sizeof(struct record);
}

enum status ring_init(struct ring **out, void *memory, uint32_t capacity)
{
    if (!is_capacity(capacity))
        return STATUS_INVALID;
    assert((uintptr_t)memory % RING_LINE == 0);

    struct ring *ring = memory;
    ring->capacity = capacity;
    ring->record_size = sizeof(struct record);
    ring->magic = ring_magic;
    *out = ring;
    return STATUS_OK;
}

enum status ring_attach(struct ring **out, void *memory, size_t size)
{
    if (size < RING_HEADER_SIZE || (uintptr_t)memory % RING_LINE != 0)
        return STATUS_CORRUPT;

    struct ring *ring = memory;
    if (ring->magic != ring_magic || ring->record_size != sizeof(struct record) ||
        !is_capacity(ring->capacity) || size < ring_size(ring->capacity))
        return STATUS_CORRUPT;

    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_acquire);
    const uint64_t released = atomic_load_explicit(&ring->released, memory_order_acquire);
    if (released > produced || produced - released > ring->capacity || produced > INT64_MAX)
        return STATUS_CORRUPT;
    ring->released_seen = released;
    *out = ring;
    return STATUS_OK;
}

void ring_skip_to(struct ring *ring, uint64_t number)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    assert(produced == atomic_load_explicit(&ring->released, memory_order_relaxed));
    if (number <= produced)
        return;
    ring->released_seen = number;
    atomic_store_explicit(&ring->released, number, memory_order_relaxed);
    atomic_store_explicit(&ring->produced, number, memory_order_release);
}

uint32_t ring_capacity(const struct ring *ring)
{
    return ring->capacity;
}

static struct record *slot_of(struct ring *ring, uint64_t number)
{
    return &ring->slots[(number - 1) & (ring->capacity - 1)];
}

// Whether `count` more records fit.
static bool has_room(struct ring *ring, uint64_t produced, uint32_t count)
{
    if (produced - ring->released_seen + count <= ring->capacity)
        return true;
    ring->released_seen = atomic_load_explicit(&ring->released, memory_order_acquire);
    return produced - ring->released_seen + count <= ring->capacity;
}

// Only the producer writes the count, so it need not be one atomic step.
static void count_dropped(struct ring *ring, uint32_t count)
{
    const uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
    atomic_store_explicit(&ring->dropped, dropped + count, memory_order_relaxed);
}

struct record *ring_reserve(struct ring *ring)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    if (!has_room(ring, produced, 1)) {
        count_dropped(ring, 1);
        return NULL;
    }
    return slot_of(ring, produced + 1);
}

void ring_commit(struct ring *ring)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    atomic_store_explicit(&ring->produced, produced + 1, memory_order_release);
}

uint64_t ring_push(struct ring *ring, const struct record *records, uint32_t count)
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_relaxed);
    if (!has_room(ring, produced, count)) {
        count_dropped(ring, count);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++)
        memcpy(slot_of(ring, produced + 1 + i), &records[i], sizeof records[i]);
    atomic_store_explicit(&ring->produced, produced + count, memory_order_release);
    return produced + 1;
}

uint64_t ring_next_number(const struct ring *ring)
{
    return atomic_load_explicit(&ring->produced, memory_order_relaxed) + 1;
}

const struct record *ring_at(const struct ring *ring, uint64_t number)
{
    assert(number > atomic_load_explicit(&ring->released, memory_order_relaxed) &&
           number <= atomic_load_explicit(&ring->produced, memory_order_acquire));
    return &ring->slots[(number - 1) & (ring->capacity - 1)];
}

void ring_release(struct ring *ring, uint64_t number)
{
    assert(number <= atomic_load_explicit(&ring->produced, memory_order_relaxed));
    if (number > atomic_load_explicit(&ring->released, memory_order_relaxed))
        atomic_store_explicit(&ring->released, number, memory_order_release);
}

uint64_t ring_released(const struct ring *ring)
{
    return atomic_load_explicit(&ring->released, memory_order_relaxed);
}

void ring_free_parts(const struct ring *ring, struct ring_part parts[2])
{
    const uint64_t produced = atomic_load_explicit(&ring->produced, memory_order_acquire);
    const uint64_t released = atomic_load_explicit(&ring->released, memory_order_relaxed);
    // Free slots follow the last one written and go on, at the end, from the start.
    const size_t first = produced & (ring->capacity - 1);
    const size_t count = ring->capacity - (size_t)(produced - released);
    const size_t to_end = ring->capacity - first;
    const size_t before_end = count < to_end ? count : to_end;
    parts[0] = (struct ring_part){.offset = RING_HEADER_SIZE + first * sizeof(struct record),
                                  .size = before_end * sizeof(struct record)};
    parts[1] = (struct ring_part){.offset = RING_HEADER_SIZE,
                                  .size = (count - before_end) * sizeof(struct record)};
}

uint64_t ring_produced(const struct ring *ring)
{
    return atomic_load_explicit(&ring->produced, memory_order_acquire);
}

uint64_t ring_dropped(const struct ring *ring)
{
    return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}
