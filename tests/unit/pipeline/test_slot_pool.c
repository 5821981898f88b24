// Slots going round between those who fill and the copies from them.
#include "server/pipeline/slot_pool.h"

#include <pthread.h>
#include <stdatomic.h>

#include "server/device/cpu/cpu_stream.h"
#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

struct bench {
    struct device *device;
    struct device_stream *stream;
    struct slot_pool *pool;
};

static struct bench bench_new(unsigned int slots, bool metrics)
{
    struct bench bench = {.device = rig_device(NULL)};
    assert_int_equal(device_stream_new(bench.device, &bench.stream, "copy", NULL), STATUS_OK);
    assert_int_equal(slot_pool_new(&bench.pool, bench.device, slots, 100, metrics, NULL),
                     STATUS_OK);
    atomic_store(&rig_gate_is_open, false);
    return bench;
}

static void bench_free(struct bench *bench)
{
    slot_pool_free(bench->pool);
    device_stream_free(bench->stream);
    device_close(bench->device);
}

static struct slot *acquire(const struct bench *bench)
{
    struct slot *slot = NULL;
    assert_int_equal(slot_pool_acquire(bench->pool, &slot, NULL), STATUS_OK);
    assert_non_null(slot->memory);
    assert_int_equal(slot->size, 100);
    return slot;
}

// Lends the slot to a copy behind a gate.
static void lend_gated(const struct bench *bench, struct slot *slot)
{
    const int nothing = 0;
    assert_int_equal(cpu_launch(bench->stream, "gate", rig_gate, &nothing, sizeof nothing, NULL),
                     STATUS_OK);
    assert_int_equal(device_event_record(slot->copied, bench->stream, NULL), STATUS_OK);
    slot_pool_lend(bench->pool, slot);
}

struct other {
    const struct bench *bench;
    pthread_t thread;
    enum status status;
    struct slot *slot;
    bool gate_was_open; // when it had the slot
    atomic_bool begun;
};

static void *acquire_there(void *context)
{
    struct other *other = context;
    atomic_store(&other->begun, true);
    other->status = slot_pool_acquire(other->bench->pool, &other->slot, NULL);
    other->gate_was_open = atomic_load(&rig_gate_is_open);
    return NULL;
}

// Starts it and gives it time to wait: what it must not do it has a chance to do.
static void other_begin(struct other *other, const struct bench *bench)
{
    memset(other, 0, sizeof *other);
    other->bench = bench;
    assert_int_equal(pthread_create(&other->thread, NULL, acquire_there, other), 0);
    while (!atomic_load(&other->begun))
        rig_sleep(1, 1000000);
    rig_sleep(3, 20000000);
}

static void other_end(struct other *other)
{
    assert_int_equal(pthread_join(other->thread, NULL), 0);
}

TEST_CASE(sizes_are_checked)
{
    struct device *device = rig_device(NULL);
    struct slot_pool *pool = NULL;
    assert_int_equal(slot_pool_new(&pool, device, 0, 100, true, NULL), STATUS_INVALID);
    assert_int_equal(slot_pool_new(&pool, device, POOL_SLOTS_MAX + 1, 100, true, NULL),
                     STATUS_INVALID);
    assert_int_equal(slot_pool_new(&pool, device, POOL_SLOTS_MAX, 1, true, NULL), STATUS_OK);
    slot_pool_free(pool);
    slot_pool_free(NULL);
    device_close(device);
}

TEST_CASE(slots_are_counted)
{
    struct bench bench = bench_new(3, true);
    struct pool_figures figures;
    slot_pool_figures(bench.pool, &figures);
    assert_int_equal(figures.acquires, 0);
    assert_int_equal(figures.available_min, 0);

    struct slot *slots[3];
    for (int i = 0; i < 2; i++)
        slots[i] = acquire(&bench);
    assert_ptr_not_equal(slots[0], slots[1]);
    slot_pool_figures(bench.pool, &figures);
    assert_int_equal(figures.acquires, 2);
    assert_int_equal(figures.waits, 0);
    assert_int_equal(figures.available_max, 3);
    assert_int_equal(figures.available_min, 2);
    slots[2] = acquire(&bench);
    for (int i = 0; i < 3; i++)
        slot_pool_release(bench.pool, slots[i]);
    slot_pool_figures(bench.pool, &figures);
    assert_int_equal(figures.acquires, 3);
    assert_int_equal(figures.available_min, 1);

    slot_pool_reopen(bench.pool);
    slot_pool_figures(bench.pool, &figures);
    assert_int_equal(figures.acquires, 0);
    bench_free(&bench);
}

// Whoever takes a lent slot has waited for the copy from it.
TEST_CASE(a_lent_slot_is_waited_for)
{
    struct bench bench = bench_new(1, true);
    struct other other;
    struct pool_figures figures;
    lend_gated(&bench, acquire(&bench));
    other_begin(&other, &bench);
    atomic_store(&rig_gate_is_open, true);
    other_end(&other);
    assert_int_equal(other.status, STATUS_OK);
    assert_true(other.gate_was_open);
    slot_pool_release(bench.pool, other.slot);
    slot_pool_figures(bench.pool, &figures);
    assert_int_equal(figures.acquires, 2);
    assert_int_equal(figures.waits, 1);
    assert_true(figures.wait_ns > 0);
    assert_int_equal(figures.available_min, 0);
    uint64_t counted = 0;
    for (int i = 0; i < POOL_WAIT_BINS; i++)
        counted += figures.wait_histogram[i];
    assert_int_equal(counted, 1);
    bench_free(&bench);
}

// Copies that are done are slots one can have at once.
TEST_CASE(a_copy_that_is_done_is_no_wait)
{
    struct bench bench = bench_new(2, true);
    struct pool_figures figures;
    struct slot *first = acquire(&bench);
    struct slot *second = acquire(&bench);
    atomic_store(&rig_gate_is_open, true);
    lend_gated(&bench, first);
    lend_gated(&bench, second);
    assert_int_equal(device_stream_synchronize(bench.stream, NULL), STATUS_OK);
    slot_pool_release(bench.pool, acquire(&bench));
    slot_pool_figures(bench.pool, &figures);
    assert_int_equal(figures.acquires, 3);
    assert_int_equal(figures.waits, 0);
    assert_int_equal(figures.available_max, 2);
    assert_int_equal(figures.available_min, 1);
    bench_free(&bench);
}

TEST_CASE(who_waits_is_woken)
{
    struct bench bench = bench_new(1, true);
    struct other other;
    struct slot *slot = acquire(&bench);
    other_begin(&other, &bench); // all are held: released
    slot_pool_release(bench.pool, slot);
    other_end(&other);
    assert_int_equal(other.status, STATUS_OK);

    slot = other.slot;
    other_begin(&other, &bench); // held, then lent
    lend_gated(&bench, slot);
    atomic_store(&rig_gate_is_open, true);
    other_end(&other);
    assert_int_equal(other.status, STATUS_OK);

    slot = other.slot;
    other_begin(&other, &bench); // held, then closed
    slot_pool_close(bench.pool);
    other_end(&other);
    assert_int_equal(other.status, STATUS_CANCELLED);
    assert_int_equal(slot_pool_acquire(bench.pool, &other.slot, NULL), STATUS_CANCELLED);

    slot_pool_release(bench.pool, slot);
    slot_pool_reopen(bench.pool);
    slot_pool_release(bench.pool, acquire(&bench));
    bench_free(&bench);
}

TEST_CASE(lent_slots_are_drained)
{
    struct bench bench = bench_new(2, true);
    lend_gated(&bench, acquire(&bench));
    lend_gated(&bench, acquire(&bench));
    atomic_store(&rig_gate_is_open, true);
    assert_int_equal(slot_pool_drain(bench.pool, NULL), STATUS_OK);
    slot_pool_release(bench.pool, acquire(&bench));
    bench_free(&bench);
}

// A copy that failed is known to who acquires, and to who drains.
TEST_CASE(a_failed_copy_comes_up)
{
    struct device_fault_options options = {.seed = 1};
    options.fail_at[DEVICE_FAULT_COPY_IN] = 1;
    struct device *device = rig_device(&options);
    struct device_stream *stream = NULL;
    struct slot_pool *pool = NULL;
    struct slot *slot = NULL;
    uint8_t *to = NULL;
    assert_int_equal(device_stream_new(device, &stream, "copy", NULL), STATUS_OK);
    assert_int_equal(device_memory_new(stream, (void **)&to, 100, NULL), STATUS_OK);
    assert_int_equal(slot_pool_new(&pool, device, 1, 100, true, NULL), STATUS_OK);
    assert_int_equal(slot_pool_acquire(pool, &slot, NULL), STATUS_OK);
    (void)!device_copy_in(stream, to, slot->memory, 100, NULL);
    (void)!device_event_record(slot->copied, stream, NULL);
    slot_pool_lend(pool, slot);
    struct error err = {.status = STATUS_OK};
    assert_int_equal(slot_pool_acquire(pool, &slot, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "copy_in"));
    (void)!slot_pool_drain(pool, NULL); // the slot is lent still, or came back with the error
    slot_pool_free(pool);
    device_memory_free(stream, to, 100);
    device_stream_free(stream);
    device_close(device);
}

TEST_CASE(without_metrics_nothing_is_counted)
{
    struct bench bench = bench_new(1, false);
    struct pool_figures figures, none;
    memset(&none, 0, sizeof none);
    struct other other;
    lend_gated(&bench, acquire(&bench));
    other_begin(&other, &bench);
    atomic_store(&rig_gate_is_open, true);
    other_end(&other);
    slot_pool_figures(bench.pool, &figures);
    assert_memory_equal(&figures, &none, sizeof figures);
    bench_free(&bench);
}

// Many threads, each the only one with its slot, on a stream that copies late.
enum { CROWD = 6, ROUNDS = 60 };

struct crowd {
    struct bench bench;
    pthread_mutex_t queue; // a stream has one user at a time
    atomic_int holders[POOL_SLOTS_MAX];
    struct slot *slots[POOL_SLOTS_MAX];
    atomic_int wrong;
};

static enum status look(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    atomic_int *holder = *(atomic_int *const *)arguments;
    rig_sleep((uint64_t)(uintptr_t)holder, 200000);
    (void)atomic_fetch_sub(holder, 1);
    return STATUS_OK;
}

static void *crowd_member(void *context)
{
    struct crowd *crowd = context;
    for (int i = 0; i < ROUNDS; i++) {
        struct slot *slot = NULL;
        if (slot_pool_acquire(crowd->bench.pool, &slot, NULL) != STATUS_OK) {
            (void)atomic_fetch_add(&crowd->wrong, 1);
            return NULL;
        }
        // The slot's own memory says which it is: written when it was first held.
        atomic_int *holder = NULL;
        memcpy(&holder, slot->memory, sizeof(atomic_int *));
        if (!holder) {
            static atomic_uint next;
            holder = &crowd->holders[atomic_fetch_add(&next, 1) % POOL_SLOTS_MAX];
            memcpy(slot->memory, &holder, sizeof(atomic_int *));
        }
        if (atomic_fetch_add(holder, 1) != 0) // nobody holds it, no copy reads it
            (void)atomic_fetch_add(&crowd->wrong, 1);
        (void)pthread_mutex_lock(&crowd->queue);
        (void)!cpu_launch(crowd->bench.stream, "look", look, &holder, sizeof(atomic_int *), NULL);
        (void)!device_event_record(slot->copied, crowd->bench.stream, NULL);
        slot_pool_lend(crowd->bench.pool, slot);
        (void)pthread_mutex_unlock(&crowd->queue);
    }
    return NULL;
}

TEST_CASE(many_threads_share_the_slots)
{
    struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    crowd.bench = bench_new(3, true);
    assert_int_equal(pthread_mutex_init(&crowd.queue, NULL), 0);
    pthread_t threads[CROWD];
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_member, &crowd), 0);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(slot_pool_drain(crowd.bench.pool, NULL), STATUS_OK);
    assert_int_equal(atomic_load(&crowd.wrong), 0);
    struct pool_figures figures;
    slot_pool_figures(crowd.bench.pool, &figures);
    assert_int_equal(figures.acquires, CROWD * ROUNDS);
    assert_true(figures.waits > 0 && figures.waits <= figures.acquires);
    (void)pthread_mutex_destroy(&crowd.queue);
    bench_free(&crowd.bench);
}

// More slots and fewer, and each of them can be had; what is too many, or cannot be had,
// changes nothing.
TEST_CASE(slots_come_and_go)
{
    static const struct {
        unsigned int slots;
        enum status status;
        unsigned int then, pinned; // slots then, and how many were asked for
    } cases[] = {
        {5, STATUS_OK, 5, 3},
        {2, STATUS_OK, 2, 0},
        {POOL_SLOTS_MAX, STATUS_OK, POOL_SLOTS_MAX, POOL_SLOTS_MAX - 2},
        {POOL_SLOTS_MAX + 1, STATUS_INVALID, POOL_SLOTS_MAX, 0},
        {0, STATUS_INVALID, POOL_SLOTS_MAX, 0},
        {1, STATUS_OK, 1, 0},
        {4, STATUS_NOMEM, 1, 2},
        {4, STATUS_OK, 4, 3},
    };
    struct device_fault_options options = {.seed = 1};
    options.fail_at[DEVICE_FAULT_PINNED] = 2 + 3 + (POOL_SLOTS_MAX - 2) + 2;
    struct device *device = rig_device(&options);
    struct slot_pool *pool = NULL;
    assert_int_equal(slot_pool_new(&pool, device, 2, 100, true, NULL), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const uint64_t before = device_fault_calls(device, DEVICE_FAULT_PINNED);
        assert_int_equal(slot_pool_resize(pool, cases[i].slots, NULL), cases[i].status);
        assert_int_equal(device_fault_calls(device, DEVICE_FAULT_PINNED) - before, cases[i].pinned);
        struct slot *slots[POOL_SLOTS_MAX];
        struct pool_figures figures;
        for (unsigned int k = 0; k < cases[i].then; k++) {
            assert_int_equal(slot_pool_acquire(pool, &slots[k], NULL), STATUS_OK);
            assert_non_null(slots[k]->memory);
        }
        slot_pool_figures(pool, &figures);
        assert_int_equal(figures.available_max, cases[i].then);
        assert_int_equal(figures.available_min, 1); // the last one
        for (unsigned int k = 0; k < cases[i].then; k++)
            slot_pool_release(pool, slots[k]);
    }
    slot_pool_free(pool);
    device_close(device);
}

TEST_MAIN(sizes_are_checked, slots_are_counted, a_lent_slot_is_waited_for,
          a_copy_that_is_done_is_no_wait, who_waits_is_woken, lent_slots_are_drained,
          a_failed_copy_comes_up, without_metrics_nothing_is_counted, many_threads_share_the_slots,
          slots_come_and_go)
