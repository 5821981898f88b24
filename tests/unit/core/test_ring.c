// The ring: order, numbers, fullness, headers that lie, two threads at once.
#include <pthread.h>
#include <sched.h>

#include "common/core/record/ring.h"
#include "tests/support/test.h"

static void *ring_memory(uint32_t capacity)
{
    void *memory = aligned_alloc(64, ring_size(capacity));
    assert_non_null(memory);
    memset(memory, 0, ring_size(capacity));
    return memory;
}

// A new ring, which begins at its memory.
static struct ring *new_ring(uint32_t capacity)
{
    struct ring *ring = NULL;
    assert_int_equal(ring_init(&ring, ring_memory(capacity), capacity), STATUS_OK);
    return ring;
}

static void fill(struct record *record, int64_t value)
{
    record_init(record, RECORD_KIND_STARTUP, value);
    record_set_int(record, STARTUP_DURATION_NS, value);
}

static struct record record_of(int64_t value)
{
    struct record record;
    fill(&record, value);
    return record;
}

// A record of two slots: a failed load whose reason is `value`, again and again.
static struct record wide_record_of(int64_t value)
{
    char text[255];
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, value);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + (value + (int64_t)i) % 26);
    assert_int_equal(record_set_text(&record, LOAD_ERROR, text, sizeof text), sizeof text);
    assert_int_equal(record_slots(&record), 2);
    return record;
}

static void expect_record(const struct record *record, int64_t value, bool wide)
{
    const struct record wanted = wide ? wide_record_of(value) : record_of(value);
    assert_int_equal(record->used, wanted.used);
    assert_memory_equal(record, &wanted, offsetof(struct record, values) + wanted.used);
}

TEST_CASE(test_capacities)
{
    static const struct {
        uint32_t capacity;
        enum status status;
    } cases[] = {
        {0, STATUS_INVALID},
        {1, STATUS_INVALID},
        {2, STATUS_OK},
        {3, STATUS_INVALID},
        {4, STATUS_OK},
        {4096, STATUS_OK},
        {4097, STATUS_INVALID},
        {UINT32_C(1) << 20, STATUS_OK},
        {UINT32_C(1) << 21, STATUS_INVALID},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        void *memory = ring_memory(UINT32_C(1) << 20);
        struct ring *ring = NULL;
        assert_int_equal(ring_init(&ring, memory, cases[i].capacity), cases[i].status);
        if (cases[i].status == STATUS_OK)
            assert_int_equal(ring_capacity(ring), cases[i].capacity);
        free(memory);
    }
}

TEST_CASE(test_numbers_and_wrap)
{
    struct ring *ring = new_ring(4);
    assert_int_equal(ring_produced(ring), 0);
    for (int64_t i = 1; i <= 100; i++) {
        const struct record record = record_of(i);
        assert_int_equal(ring_push(ring, &record, 1), i);
        assert_int_equal(ring_at(ring, (uint64_t)i)->started_ns, i);
        ring_release(ring, (uint64_t)i);
        ring_release(ring, (uint64_t)i); // again is no error
        ring_release(ring, 1);           // nor is what was released before
        assert_int_equal(ring_released(ring), i);
    }
    assert_int_equal(ring_dropped(ring), 0);
    free(ring);
}

TEST_CASE(test_full_ring_counts_and_takes_no_number)
{
    struct ring *ring = new_ring(4);
    const struct record records[5] = {record_of(1), record_of(2), record_of(3), record_of(4),
                                      record_of(5)};
    assert_int_equal(ring_push(ring, records, 3), 1);

    assert_int_equal(ring_push(ring, records, 2), 0); // all or none
    assert_int_equal(ring_dropped(ring), 2);
    assert_int_equal(ring_produced(ring), 3);

    struct record *slot = ring_reserve(ring);
    assert_non_null(slot);
    assert_int_equal(ring_produced(ring), 3); // not before the commit
    fill(slot, 4);
    ring_commit(ring);
    assert_int_equal(ring_produced(ring), 4);
    assert_null(ring_reserve(ring));
    assert_int_equal(ring_dropped(ring), 3);

    ring_release(ring, 2);
    assert_int_equal(ring_push(ring, records, 2), 5);
    assert_int_equal(ring_at(ring, 6)->started_ns, 2);
    assert_int_equal(ring_at(ring, 3)->started_ns, 3);
    assert_int_equal(ring_push(ring, records, 5), 0); // more than could ever fit
    assert_int_equal(ring_dropped(ring), 8);
    free(ring);
}

TEST_CASE(test_attach_carries_on)
{
    struct ring *ring = new_ring(8);
    const struct record record = record_of(7);
    for (int i = 0; i < 11; i++) {
        (void)ring_push(ring, &record, 1);
        if (i < 5)
            ring_release(ring, (uint64_t)i + 1);
    }
    struct ring *again;
    assert_int_equal(ring_attach(&again, ring, ring_size(8)), STATUS_OK);
    assert_int_equal(ring_produced(again), 11);
    assert_int_equal(ring_released(again), 5);
    assert_int_equal(ring_at(again, 11)->started_ns, 7);
    assert_int_equal(ring_push(again, &record, 1), 12);
    free(ring);
}

// Every word of the header, set to what it cannot be.
TEST_CASE(test_attach_refuses_lies)
{
    enum { CAPACITY = 8, FIXED = 0, PRODUCED = 8, RELEASED = 18, WHICH = 20 }; // words
    static const struct {
        const char *what;
        size_t word;
        uint64_t value;
    } lies[] = {
        {"magic", FIXED, 0},
        {"capacity 0", FIXED + 1, (uint64_t)RECORD_SLOT_SIZE << 32},
        {"capacity no power of two", FIXED + 1, (uint64_t)RECORD_SLOT_SIZE << 32 | 7},
        {"capacity beyond the memory", FIXED + 1, (uint64_t)RECORD_SLOT_SIZE << 32 | 16},
        {"capacity absurd", FIXED + 1, (uint64_t)RECORD_SLOT_SIZE << 32 | 0x80000000},
        {"record size", FIXED + 1, (uint64_t)128 << 32 | CAPACITY},
        {"produced below released", PRODUCED, 1},
        {"produced too far ahead", PRODUCED, 2 + CAPACITY + 1},
        {"produced absurd", PRODUCED, UINT64_MAX},
        {"released beyond produced", RELEASED, 5},
        {"released absurd", RELEASED, UINT64_MAX},
        {"more second slots than records", RELEASED + 1, 3},
        {"which of two", WHICH, 2},
    };
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        struct ring *ring = new_ring(CAPACITY);
        uint64_t *memory = (uint64_t *)ring;
        const struct record record = record_of(1);
        for (int n = 0; n < 4; n++)
            (void)ring_push(ring, &record, 1);
        ring_release(ring, 2);
        assert_int_equal(ring_attach(&ring, memory, ring_size(CAPACITY)), STATUS_OK);
        assert_int_not_equal(memory[lies[i].word], lies[i].value);
        memory[lies[i].word] = lies[i].value;
        if (ring_attach(&ring, memory, ring_size(CAPACITY)) != STATUS_CORRUPT)
            fail_msg("attached in spite of: %s", lies[i].what);
        free(memory);
    }
    struct ring *ring = new_ring(CAPACITY);
    uint64_t *memory = (uint64_t *)ring;
    assert_int_equal(ring_attach(&ring, memory, ring_size(CAPACITY) - 1), STATUS_CORRUPT);
    assert_int_equal(ring_attach(&ring, memory, 64), STATUS_CORRUPT);
    assert_int_equal(ring_attach(&ring, memory, 0), STATUS_CORRUPT);
    // Records that take more slots than there are.
    const struct record wide = wide_record_of(1);
    for (uint32_t slot = 0; slot < CAPACITY; slot++)
        memcpy((char *)memory + ring_size(slot) - RECORD_SLOT_SIZE, &wide, RECORD_SLOT_SIZE);
    memory[PRODUCED] = 5;
    assert_int_equal(ring_attach(&ring, memory, ring_size(CAPACITY)), STATUS_CORRUPT);
    assert_int_equal(ring_attach(&ring, (char *)memory + 8, ring_size(4)), STATUS_CORRUPT);
    free(memory);
}

// Records of one and of two slots, pushed and released at random: numbers have no
// holes, each record is what was pushed, also after the other side was killed, and
// none is lost while there are slots.
TEST_CASE(test_two_slots)
{
    enum { CAPACITY = 8, ROUNDS = 20000 };
    struct ring *ring = new_ring(CAPACITY);
    static bool wide[4 * ROUNDS];
    uint64_t random = 3, produced = 0, released = 0, dropped = 0;
    uint32_t taken = 0;
    bool wrapped = false;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct record records[3];
        const uint32_t count = 1 + (uint32_t)(test_random(&random) % COUNT_OF(records));
        uint32_t slots = 0;
        for (uint32_t i = 0; i < count; i++) {
            const int64_t value = (int64_t)(produced + i + 1);
            wide[value] = test_random(&random) % 3 == 0;
            records[i] = wide[value] ? wide_record_of(value) : record_of(value);
            slots += record_slots(&records[i]);
        }
        if (taken + slots <= CAPACITY) {
            assert_int_equal(ring_push(ring, records, count), produced + 1);
            produced += count;
            taken += slots;
        } else {
            assert_int_equal(ring_push(ring, records, count), 0);
            dropped += count;
        }
        assert_int_equal(ring_produced(ring), produced);
        assert_int_equal(ring_dropped(ring), dropped);
        assert_int_equal(ring_used_slots(ring), taken);
        if (test_random(&random) % 16 == 0)
            assert_int_equal(ring_attach(&ring, ring, ring_size(CAPACITY)), STATUS_OK);

        for (uint64_t i = 0; i < produced - released; i++) {
            // In order, and from anywhere.
            const uint64_t number =
                round % 2 ? released + 1 + i
                          : released + 1 + test_random(&random) % (produced - released);
            const struct record *record = ring_at(ring, number);
            expect_record(record, (int64_t)number, wide[number]);
            const size_t end = (size_t)((const char *)record - (const char *)ring) +
                               record_slots(record) * RECORD_SLOT_SIZE;
            assert_true(end <= ring_size(CAPACITY));
            wrapped = wrapped || end == ring_size(CAPACITY);
        }
        const uint64_t until = released + test_random(&random) % (produced - released + 1);
        while (released < until)
            taken -= wide[++released] ? 2 : 1;
        ring_release(ring, until);
        assert_int_equal(ring_released(ring), released);

        struct ring_part parts[2];
        ring_free_parts(ring, parts);
        assert_int_equal(parts[0].size + parts[1].size, (CAPACITY - taken) * RECORD_SLOT_SIZE);
    }
    assert_true(wrapped && dropped > 0 && produced > ROUNDS);
    free(ring);
}

// A process may be killed between any two stores: the second slot is counted, and the
// record is not yet produced; a position is written, and not yet in use.
TEST_CASE(test_killed_between_stores)
{
    enum { CAPACITY = 8, SECOND_SLOTS = 11, POSITIONS = 16, FREED = 21 }; // words
    struct ring *ring = new_ring(CAPACITY);
    uint64_t *memory = (uint64_t *)ring;
    const struct record records[] = {record_of(1), wide_record_of(2), record_of(3)};
    assert_int_equal(ring_push(ring, records, COUNT_OF(records)), 1);
    ring_release(ring, 1);
    memory[SECOND_SLOTS]++;
    memory[POSITIONS] = 3; // the first of the two is not in use
    memory[POSITIONS + 1] = 77;
    memory[FREED] = 0;
    assert_int_equal(ring_attach(&ring, memory, ring_size(CAPACITY)), STATUS_OK);
    assert_int_equal(ring_released(ring), 1);
    expect_record(ring_at(ring, 2), 2, true);
    expect_record(ring_at(ring, 3), 3, false);
    assert_int_equal(ring_push(ring, records, 1), 4);
    expect_record(ring_at(ring, 4), 1, false);
    ring_release(ring, 4);
    assert_int_equal(ring_released(ring), 4);
    free(memory);
}

enum { STRESS_RECORDS = 50000 };

static void *produce(void *context)
{
    struct ring *ring = context;
    uint64_t random = 42;
    for (int64_t value = 1; value <= STRESS_RECORDS;) {
        if (test_random(&random) % 3 == 0 && value + 2 <= STRESS_RECORDS) {
            const struct record three[3] = {record_of(value), wide_record_of(value + 1),
                                            record_of(value + 2)};
            if (ring_push(ring, three, 3))
                value += 3;
            else
                (void)sched_yield();
            continue;
        }
        struct record *slot = ring_reserve(ring);
        if (!slot) {
            (void)sched_yield();
            continue;
        }
        fill(slot, value++);
        ring_commit(ring);
    }
    return NULL;
}

// Two threads: every record arrives once, in order, whole.
TEST_CASE(test_two_threads)
{
    struct ring *ring = new_ring(64);
    pthread_t producer;
    assert_int_equal(pthread_create(&producer, NULL, produce, ring), 0);
    uint64_t read = 0;
    while (read < STRESS_RECORDS) {
        const uint64_t produced = ring_produced(ring);
        for (uint64_t number = read + 1; number <= produced; number++) {
            const struct record *record = ring_at(ring, number);
            expect_record(record, (int64_t)number, record->kind == RECORD_KIND_LOAD);
        }
        ring_release(ring, produced);
        if (read == produced)
            (void)sched_yield();
        read = produced;
    }
    assert_int_equal(pthread_join(producer, NULL), 0);
    assert_int_equal(ring_produced(ring), STRESS_RECORDS);
    free(ring);
}

// What holds no record is said to, in whichever state the ring is, and not a byte
// of what does.
TEST_CASE(test_free_parts)
{
    enum { CAPACITY = 16 };
    struct ring *ring = new_ring(CAPACITY);
    const struct record record = record_of(1);
    uint64_t random = 7;
    for (unsigned round = 0; round < 2000; round++) {
        for (uint64_t i = test_random(&random) % CAPACITY; i > 0; i--)
            (void)ring_push(ring, &record, 1);
        const uint64_t held = ring_produced(ring) - ring_released(ring);
        ring_release(ring, ring_released(ring) + test_random(&random) % (held + 1));

        struct ring_part parts[2];
        ring_free_parts(ring, parts);
        size_t free_size = 0;
        for (unsigned i = 0; i < COUNT_OF(parts); i++) {
            const size_t end = parts[i].offset + parts[i].size;
            assert_true(end <= ring_size(CAPACITY));
            free_size += parts[i].size;
            assert_true(parts[i].size == 0 ||
                        parts[i].offset >= ring_size(CAPACITY) - (CAPACITY + 1) * RECORD_SLOT_SIZE);
            for (uint64_t number = ring_released(ring) + 1; number <= ring_produced(ring);
                 number++) {
                const size_t slot =
                    (size_t)((const char *)ring_at(ring, number) - (const char *)ring);
                assert_true(slot + RECORD_SLOT_SIZE <= parts[i].offset || slot >= end);
            }
        }
        const uint64_t left = ring_produced(ring) - ring_released(ring);
        assert_int_equal(free_size, (CAPACITY - left) * RECORD_SLOT_SIZE);
    }
    free(ring);
}

TEST_MAIN(test_capacities, test_numbers_and_wrap, test_full_ring_counts_and_takes_no_number,
          test_attach_carries_on, test_attach_refuses_lies, test_free_parts, test_two_slots,
          test_killed_between_stores, test_two_threads)
