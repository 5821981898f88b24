// Gaps between tokens: percentiles of a request, sums of many, and the two
// threads that meet at them.
#include <pthread.h>
#include <stdatomic.h>

#include "common/monitor/local/itl_histogram.h"
#include "tests/support/test.h"

// What the cases count with, made anew for each.
static void *memory;
static struct ring *ring;
static struct itl_sums *sums;
static struct itl_histogram *gaps;
static struct sketch *sketch, *sum;

static struct ring *make_ring(void **in, uint32_t capacity)
{
    struct ring *made;
    *in = aligned_alloc(64, ring_size(capacity));
    assert_non_null(*in);
    memset(*in, 0, ring_size(capacity));
    assert_int_equal(ring_init(&made, *in, capacity), STATUS_OK);
    return made;
}

TEST_FIXTURE(set_up)
{
    ring = make_ring(&memory, 64);
    sums = calloc(1, sizeof *sums);
    gaps = calloc(1, sizeof *gaps);
    assert_true(sums && gaps);
    assert_int_equal(sketch_new(&sketch), STATUS_OK);
    return sketch_new(&sum);
}

TEST_FIXTURE(tear_down)
{
    sketch_free(sketch);
    sketch_free(sum);
    free(gaps);
    free(sums);
    free(memory);
    return 0;
}

static int by_value(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

// The 99th percentile is within 1 % of the exact one, whatever the gaps are.
TEST_CASE(test_percentile)
{
    static uint64_t values[5000];
    uint64_t random = 99;
    static const unsigned counts[] = {1, 2, 3, 50, 99, 100, 101, 102, 200, 201, 1000, 5000};
    for (unsigned round = 0; round < 200; round++) {
        const unsigned count = counts[round % COUNT_OF(counts)];
        const unsigned bits = 1 + (unsigned)(test_random(&random) % 40);
        for (unsigned i = 0; i < count; i++) {
            values[i] = 1 + test_random(&random) % (UINT64_C(1) << bits);
            itl_histogram_add(gaps, values[i]);
        }
        assert_int_equal(itl_histogram_total(gaps), count);
        qsort(values, count, sizeof *values, by_value);
        uint64_t max;
        const uint64_t p99 = itl_histogram_finish(gaps, NULL, NULL, &max);
        const uint64_t exact = values[sketch_rank(0.99, count)];
        const uint64_t error = p99 > exact ? p99 - exact : exact - p99;
        assert_int_equal(max, values[count - 1]);
        assert_true(error * 100 <= exact + 99);
        assert_int_equal(itl_histogram_total(gaps), 0);
    }
    // Empty again, to the last bit.
    const struct itl_histogram *zero = calloc(1, sizeof *zero);
    assert_memory_equal(gaps, zero, sizeof *gaps);
    uint64_t max = 7;
    assert_int_equal(itl_histogram_finish(gaps, NULL, NULL, &max), 0);
    assert_int_equal(max, 0);

    // No time at all, and more than there are buckets for.
    itl_histogram_add(gaps, 0);
    assert_int_equal(itl_histogram_finish(gaps, NULL, NULL, &max), 1);
    assert_int_equal(max, 1);
    itl_histogram_add(gaps, UINT64_C(1) << 50);
    assert_true(itl_histogram_finish(gaps, NULL, NULL, &max) > UINT64_C(1) << 43);
    assert_int_equal(max, UINT64_C(1) << 50);
    void *freed = (void *)(uintptr_t)zero;
    free(freed);
}

static uint64_t count_in(struct ring *from)
{
    for (uint64_t number = 1; number <= ring_produced(from); number++) {
        const struct record *record = ring_at(from, number);
        assert_int_equal(record->kind, RECORD_KIND_ITL);
        size_t size;
        const char *bytes = record_get_text(record, ITL_SKETCH, &size);
        assert_int_equal(sketch_decode(sum, bytes, size), STATUS_OK);
    }
    return ring_produced(from);
}

// Gaps that were shared while the request went on count once in the sums, and in the request's own
// percentile as if they had not been.
TEST_CASE(test_gaps_are_shared)
{
    const struct itl_place place = {.model = 1, .device = 2, .ring = ring, .sketch = sketch};
    struct itl_histogram *whole = calloc(1, sizeof *whole);
    uint64_t random = 3, all = 0;
    for (unsigned round = 0; round < 100; round++) {
        const uint64_t count = test_random(&random) % 400;
        const uint64_t often = 1 + test_random(&random) % 200;
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t ns = test_random(&random) % (UINT64_C(1) << round % 40);
            itl_histogram_add(gaps, ns);
            itl_histogram_add(whole, ns);
            if (test_random(&random) % often == 0)
                itl_histogram_share(gaps, sums, &place);
        }
        itl_histogram_share(gaps, sums, &place);
        assert_int_equal(itl_histogram_total(gaps), count);
        uint64_t max[2];
        assert_int_equal(itl_histogram_finish(gaps, sums, &place, &max[0]),
                         itl_histogram_finish(whole, NULL, NULL, &max[1]));
        assert_int_equal(max[0], max[1]);
        assert_int_equal(itl_histogram_total(gaps), 0);
        all += count;
    }
    assert_memory_equal(gaps, whole, sizeof *gaps); // empty again, to the last bit
    assert_true(itl_histogram_drain(sums, 0, ring, sketch));
    (void)count_in(ring);
    assert_int_equal(sketch_count(sum), all);
    free(whole);
}

struct meeting {
    struct ring *engine_ring;
    _Atomic bool done;
    uint64_t gaps;
};

static void *be_engine(void *context)
{
    struct meeting *meeting = context;
    struct sketch *own;
    if (sketch_new(&own) != STATUS_OK)
        abort();
    uint64_t random = 5;
    for (unsigned request = 0; request < 20000; request++) {
        const unsigned count = (unsigned)(test_random(&random) % 20);
        for (unsigned i = 0; i < count; i++)
            itl_histogram_add(gaps, 1000 + test_random(&random) % 50000);
        meeting->gaps += count;
        const struct itl_place place = {.model = 1 + request / 8 % (ITL_KEYS + 3),
                                        .device = 3,
                                        .first_ns = request,
                                        .last_ns = request + 10,
                                        .ring = meeting->engine_ring,
                                        .sketch = own};
        uint64_t max;
        (void)itl_histogram_finish(gaps, sums, &place, &max);
    }
    sketch_free(own);
    atomic_store(&meeting->done, true);
    return NULL;
}

// An engine that never waits and a publisher that keeps taking: no gap is lost,
// none counted twice.
TEST_CASE(test_engine_and_publisher)
{
    void *memories[2];
    struct meeting meeting = {.engine_ring = make_ring(&memories[0], UINT32_C(1) << 16)};
    struct ring *taken = make_ring(&memories[1], UINT32_C(1) << 16);
    pthread_t engine;
    assert_int_equal(pthread_create(&engine, NULL, be_engine, &meeting), 0);
    while (!atomic_load(&meeting.done) && ring_produced(taken) < 60000)
        (void)itl_histogram_drain(sums, 0, taken, sketch);
    assert_int_equal(pthread_join(engine, NULL), 0);
    for (int i = 0; i < 3; i++)
        (void)itl_histogram_drain(sums, 0, taken, sketch);
    assert_true(count_in(taken) > 0);
    (void)count_in(meeting.engine_ring);
    assert_int_equal(ring_dropped(taken) + ring_dropped(meeting.engine_ring), 0);
    assert_int_equal(sketch_count(sum), meeting.gaps);
    free(memories[0]);
    free(memories[1]);
}

// While the engine is at its span, the publisher leaves it alone and comes back.
TEST_CASE(test_publisher_waits)
{
    const struct itl_place place = {.model = 1, .device = 2, .ring = ring, .sketch = sketch};
    uint64_t max;
    itl_histogram_add(gaps, 1000);
    (void)itl_histogram_finish(gaps, sums, &place, &max);

    // The engine has come in again and is stopped there.
    const uint64_t outside = atomic_load(&sums->busy);
    atomic_store(&sums->busy, outside + 1);
    assert_false(itl_histogram_drain(sums, 0, ring, sketch));
    assert_false(itl_histogram_drain(sums, 0, ring, sketch));
    assert_int_equal(ring_produced(ring), 0);
    // It goes on, and leaves.
    struct itl_span *span = &sums->banks[0][0];
    span->counts[64] += 5;
    span->touched[1] |= 1;
    span->count += 5;
    atomic_store(&sums->busy, outside + 2);
    assert_true(itl_histogram_drain(sums, 0, ring, sketch));
    assert_int_equal(count_in(ring), 1);
    assert_int_equal(sketch_count(sum), 6);
    // What comes now goes to the other span, and with the next turn is taken.
    itl_histogram_add(gaps, 7);
    (void)itl_histogram_finish(gaps, sums, &place, &max);
    assert_true(itl_histogram_drain(sums, 0, ring, sketch));
    assert_int_equal(ring_produced(ring), 2);
}

// As many models and devices as there are spans take turns without a record; one
// more puts out the span that was used least lately, and that one only.
TEST_CASE(test_keys_take_turns)
{
    uint64_t max, now = 100;
    for (unsigned round = 0; round < 10; round++) {
        for (uint32_t key = 0; key < ITL_KEYS; key++, now += 10) {
            const struct itl_place place = {.model = 1 + key / 2,
                                            .device = 1 + key % 2,
                                            .first_ns = now,
                                            .last_ns = now + 5,
                                            .ring = ring,
                                            .sketch = sketch};
            itl_histogram_add(gaps, 1000 * (key + 1));
            (void)itl_histogram_finish(gaps, sums, &place, &max);
        }
    }
    assert_int_equal(ring_produced(ring), 0);

    // The first is used once more, which leaves the second the oldest.
    const struct itl_place again = {.model = 1,
                                    .device = 1,
                                    .first_ns = now,
                                    .last_ns = now + 5,
                                    .ring = ring,
                                    .sketch = sketch};
    itl_histogram_add(gaps, 1000);
    (void)itl_histogram_finish(gaps, sums, &again, &max);
    const struct itl_place late = {.model = 99,
                                   .device = 1,
                                   .first_ns = now + 10,
                                   .last_ns = now + 15,
                                   .ring = ring,
                                   .sketch = sketch};
    itl_histogram_add(gaps, 7);
    (void)itl_histogram_finish(gaps, sums, &late, &max);
    assert_int_equal(ring_produced(ring), 1);
    const struct record *record = ring_at(ring, 1);
    assert_int_equal(record->values[ITL_MODEL].name, 1);
    assert_int_equal(record->values[ITL_DEVICE].name, 2);
    assert_int_equal(record->started_ns, 110);

    // The publisher takes all.
    assert_true(itl_histogram_drain(sums, 0, ring, sketch));
    assert_int_equal(ring_produced(ring), 1 + ITL_KEYS);
    (void)count_in(ring);
    assert_int_equal(sketch_count(sum), 10 * ITL_KEYS + 2);
}

// What a bucket of a span can count is never passed.
TEST_CASE(test_span_is_full)
{
    const struct itl_place place = {.model = 1, .device = 2, .ring = ring, .sketch = sketch};
    uint64_t max;
    itl_histogram_add(gaps, 1);
    (void)itl_histogram_finish(gaps, sums, &place, &max);
    sums->banks[0][0].counts[0] = UINT32_MAX;
    sums->banks[0][0].count = UINT32_MAX;
    itl_histogram_add(gaps, 1);
    (void)itl_histogram_finish(gaps, sums, &place, &max);
    assert_int_equal(ring_produced(ring), 1);
    assert_true(itl_histogram_drain(sums, 0, ring, sketch));
    assert_int_equal(count_in(ring), 2);
    assert_int_equal(sketch_count(sum), UINT64_C(1) << 32);
}

TEST_MAIN_EACH(set_up, tear_down, test_percentile, test_gaps_are_shared, test_publisher_waits,
               test_keys_take_turns, test_span_is_full, test_engine_and_publisher)
