// Streams and events of the CPU back end: what orders work, and what does not.
#include <pthread.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "tests/unit/device/stream_fixture.h"

struct rig {
    struct device *device;
    struct device_stream *one, *two;
    struct device_event *event, *other;
    struct gate *gate;
    struct error err;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    rig->device = stream_device(NULL);
    rig->one = stream_named(rig->device, "one");
    rig->two = stream_named(rig->device, "two");
    rig->event = event_of_kind(rig->device, DEVICE_EVENT_TIMED);
    rig->other = event_of_kind(rig->device, DEVICE_EVENT_TIMED);
    rig->gate = gate_new();
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    gate_open(rig->gate);
    device_stream_free(rig->one);
    device_stream_free(rig->two);
    device_event_free(rig->event);
    device_event_free(rig->other);
    gate_free(rig->gate);
    assert_int_equal(device_memory_used(rig->device), 0);
    device_close(rig->device);
    free(rig);
    return 0;
}

static void record(struct rig *rig, struct device_event *event, struct device_stream *stream)
{
    assert_ok(device_event_record(event, stream, &rig->err), &rig->err);
}

static void wait(struct rig *rig, struct device_stream *stream, struct device_event *event)
{
    assert_ok(device_stream_wait(stream, event, &rig->err), &rig->err);
}

static void finish(struct rig *rig, struct device_stream *stream)
{
    assert_ok(device_stream_synchronize(stream, &rig->err), &rig->err);
}

static void copy(struct rig *rig, struct device_stream *stream, void *to, const void *from,
                 size_t size)
{
    assert_ok(device_copy_in(stream, to, from, size, &rig->err), &rig->err);
}

// More work than a queue holds, each step on what the last one left.
STATE_CASE(a_stream_keeps_its_order, struct rig *rig)
{
    enum { STEPS = 1000 };
    unsigned char cells[STEPS + 1] = {7};
    for (size_t i = 0; i < STEPS; i++)
        copy(rig, rig->one, cells + i + 1, cells + i, 1);
    finish(rig, rig->one);
    assert_int_equal(cells[STEPS], 7);
}

STATE_CASE(streams_run_beside_each_other, struct rig *rig)
{
    int from = 5;
    int to = 0;
    gate_hold(rig->gate, rig->one);
    record(rig, rig->event, rig->one);
    copy(rig, rig->two, &to, &from, sizeof to);
    finish(rig, rig->two); // while the other one is held
    assert_int_equal(to, 5);
    assert_false(event_is_done(rig->event));
}

STATE_CASE(a_wait_holds_the_stream_not_the_host, struct rig *rig)
{
    int from = 5;
    int middle = 0;
    int to = 0;
    gate_hold(rig->gate, rig->one);
    copy(rig, rig->one, &middle, &from, sizeof middle);
    record(rig, rig->event, rig->one);
    wait(rig, rig->two, rig->event);
    copy(rig, rig->two, &to, &middle, sizeof to);
    record(rig, rig->other, rig->two);
    assert_false(event_is_done(rig->other));
    gate_open(rig->gate);
    assert_ok(device_event_wait(rig->other, &rig->err), &rig->err);
    assert_int_equal(to, 5);
    assert_true(event_is_done(rig->event));
}

STATE_CASE(an_event_never_recorded_is_done, struct rig *rig)
{
    assert_true(event_is_done(rig->event));
    assert_ok(device_event_wait(rig->event, &rig->err), &rig->err);
    wait(rig, rig->one, rig->event);
    finish(rig, rig->one);
}

// A wait queued means the place recorded then, whatever is recorded later and wherever.
STATE_CASE(waits_mean_the_earlier_place, struct rig *rig)
{
    struct gate *later = gate_new();
    int from = 5;
    int to = 0;
    record(rig, rig->event, rig->one);
    wait(rig, rig->two, rig->event);
    gate_hold(later, rig->one);
    record(rig, rig->event, rig->one); // not reached until the gate opens
    copy(rig, rig->two, &to, &from, sizeof to);
    finish(rig, rig->two);
    assert_int_equal(to, 5);
    assert_false(event_is_done(rig->event));
    gate_open(later);
    assert_ok(device_event_wait(rig->event, &rig->err), &rig->err);
    finish(rig, rig->one);
    gate_free(later);
}

// Recorded again on another stream and done there: who waits for the first place still
// waits.
STATE_CASE(a_later_place_does_not_stand_for_an_earlier, struct rig *rig)
{
    gate_hold(rig->gate, rig->one);
    record(rig, rig->event, rig->one);
    struct device_stream *three = stream_named(rig->device, "three");
    wait(rig, three, rig->event);
    record(rig, rig->other, three);
    record(rig, rig->event, rig->two);
    assert_ok(device_event_wait(rig->event, &rig->err), &rig->err);
    assert_false(event_is_done(rig->other));
    gate_open(rig->gate);
    assert_ok(device_event_wait(rig->other, &rig->err), &rig->err);
    device_stream_free(three);
}

static void *wait_for_event(void *event)
{
    struct error err = {0};
    assert_ok(device_event_wait(event, &err), &err);
    return NULL;
}

STATE_CASE(any_thread_waits, struct rig *rig)
{
    pthread_t threads[3];
    gate_hold(rig->gate, rig->one);
    record(rig, rig->event, rig->one);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_event, rig->event), 0);
    gate_arrived(rig->gate);
    gate_open(rig->gate);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

TEST_CASE(a_spinning_host_waits_too)
{
    struct error err = {0};
    struct device *device =
        stream_device(&(struct device_options){.spec = "cpu", .threads = 1, .spin = true});
    struct device_stream *stream = stream_named(device, "spin");
    struct device_event *event = event_of_kind(device, DEVICE_EVENT_ORDER);
    int from = 5;
    int to = 0;
    for (int i = 0; i < 100; i++) {
        to = 0;
        assert_ok(device_copy_out(stream, &to, &from, sizeof to, &err), &err);
        assert_ok(device_event_record(event, stream, &err), &err);
        assert_ok(device_event_wait(event, &err), &err);
        assert_int_equal(to, 5);
    }
    device_event_free(event);
    device_stream_free(stream);
    device_close(device);
}

STATE_CASE(times_are_on_one_clock, struct rig *rig)
{
    double ns = -1.0;
    record(rig, rig->event, rig->one);
    gate_hold(rig->gate, rig->one);
    wait(rig, rig->two, rig->event);
    gate_arrived(rig->gate);
    gate_open(rig->gate);
    finish(rig, rig->two);
    record(rig, rig->other, rig->two);
    finish(rig, rig->two);
    assert_ok(device_event_elapsed(rig->event, rig->other, &ns, &rig->err), &rig->err);
    assert_true(ns > 0.0 && ns < 60e9);
    double back = 0.0;
    assert_ok(device_event_elapsed(rig->other, rig->event, &back, &rig->err), &rig->err);
    assert_true(back == -ns);
}

STATE_CASE(elapsed_is_refused, struct rig *rig)
{
    struct device_event *untimed = event_of_kind(rig->device, DEVICE_EVENT_ORDER);
    double ns = 0.0;
    record(rig, rig->event, rig->one);
    record(rig, untimed, rig->one);
    finish(rig, rig->one);
    assert_int_equal(device_event_elapsed(rig->event, untimed, &ns, &rig->err), STATUS_INVALID);
    assert_int_equal(device_event_elapsed(rig->event, rig->other, &ns, &rig->err), STATUS_INVALID);
    gate_hold(rig->gate, rig->one);
    record(rig, rig->other, rig->one);
    assert_int_equal(device_event_elapsed(rig->event, rig->other, &ns, &rig->err), STATUS_BUSY);
    gate_open(rig->gate);
    finish(rig, rig->one);
    device_event_free(untimed);
}

static void assert_failed(enum status status, const struct error *err)
{
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(err->text, "fail on stream 'one': the words"));
}

STATE_CASE(a_failure_is_sticky, struct rig *rig)
{
    int from = 5;
    int to = 0;
    record(rig, rig->event, rig->one);
    gate_hold(rig->gate, rig->one);
    assert_ok(queue_failure(rig->one, &rig->err), &rig->err);
    copy(rig, rig->one, &to, &from, sizeof to); // queued behind it: not done
    record(rig, rig->other, rig->one);
    gate_open(rig->gate);
    assert_failed(device_event_wait(rig->other, &rig->err), &rig->err);
    assert_int_equal(to, 0);

    bool done = false;
    assert_failed(device_event_query(rig->other, &done, &rig->err), &rig->err);
    assert_true(done);
    assert_ok(device_event_wait(rig->event, &rig->err), &rig->err); // recorded before

    struct error *err = &rig->err;
    assert_failed(device_copy_in(rig->one, &to, &from, sizeof to, err), err);
    assert_failed(device_fill(rig->one, &to, 1, sizeof to, err), err);
    assert_failed(queue_failure(rig->one, err), err);
    assert_failed(device_stream_wait(rig->one, rig->event, err), err);
    assert_failed(device_stream_synchronize(rig->one, err), err);
    assert_failed(device_event_record(rig->event, rig->one, err), err);
    assert_failed(device_event_wait(rig->event, err), err); // done all the same
    assert_int_equal(to, 0);

    finish(rig, rig->two); // others go on
}

STATE_CASE(a_failure_spreads_along_waits, struct rig *rig)
{
    int from = 5;
    int to = 0;
    gate_hold(rig->gate, rig->one);
    assert_ok(queue_failure(rig->one, &rig->err), &rig->err);
    record(rig, rig->event, rig->one);
    wait(rig, rig->two, rig->event);
    copy(rig, rig->two, &to, &from, sizeof to); // of what is not there
    record(rig, rig->other, rig->two);
    gate_open(rig->gate);
    assert_failed(device_event_wait(rig->other, &rig->err), &rig->err);
    assert_non_null(strstr(rig->err.text, "wait on stream 'two'"));
    assert_int_equal(to, 0);
}

STATE_CASE(memory_is_freed_behind_its_use, struct rig *rig)
{
    enum { SIZES = 2, SMALL = 300, LARGE = 3 * 1024 * 1024 };
    static const size_t sizes[SIZES] = {SMALL, LARGE}; // from the heap, and mapped
    for (size_t i = 0; i < SIZES; i++) {
        struct gate *gate = gate_new();
        void *memory = NULL;
        unsigned char out[SMALL] = {0};
        assert_ok(device_memory_new(rig->one, &memory, sizes[i], &rig->err), &rig->err);
        assert_int_equal((uintptr_t)memory % 256, 0);
        assert_int_equal(device_memory_used(rig->device), sizes[i]);
        gate_hold(gate, rig->one);
        assert_ok(device_fill(rig->one, memory, 9, sizes[i], &rig->err), &rig->err);
        assert_ok(
            device_copy_out(rig->one, out, (char *)memory + sizes[i] - SMALL, SMALL, &rig->err),
            &rig->err);
        device_memory_free(rig->one, memory, sizes[i]);
        assert_int_equal(device_memory_used(rig->device), 0);
        gate_open(gate);
        finish(rig, rig->one);
        assert_int_equal(out[0], 9);
        assert_int_equal(out[SMALL - 1], 9);
        gate_free(gate);
    }
}

STATE_CASE(a_failed_stream_frees_its_memory, struct rig *rig)
{
    void *memory = NULL;
    assert_ok(device_memory_new(rig->one, &memory, 100, &rig->err), &rig->err);
    assert_ok(queue_failure(rig->one, &rig->err), &rig->err);
    assert_failed(device_stream_synchronize(rig->one, &rig->err), &rig->err);
    device_memory_free(rig->one, memory, 100); // seen by the leak checker
}

STATE_CASE(pinned_memory_is_whole_pages, struct rig *rig)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = NULL;
    assert_ok(device_pinned_new(rig->device, &memory, 100, &rig->err), &rig->err);
    assert_int_equal((uintptr_t)memory % page, 0);
    assert_int_equal(((unsigned char *)memory)[99], 0);
    device_pinned_free(rig->device, memory, 100);
    device_pinned_free(rig->device, NULL, 0);
}

STATE_CASE(what_makes_no_sense_is_refused, struct rig *rig)
{
    struct error *err = &rig->err;
    void *memory = NULL;
    char cells[8] = {0};
    assert_int_equal(device_memory_new(rig->one, &memory, 0, err), STATUS_INVALID);
    assert_int_equal(device_memory_new(rig->one, &memory, SIZE_MAX, err), STATUS_INVALID);
    assert_int_equal(device_memory_new(rig->one, &memory, PTRDIFF_MAX - 4096, err), STATUS_NOMEM);
    assert_int_equal(device_pinned_new(rig->device, &memory, 0, err), STATUS_INVALID);
    assert_int_equal(device_pinned_new(rig->device, &memory, PTRDIFF_MAX - 4096, err),
                     STATUS_NOMEM);
    assert_int_equal(device_copy_in(rig->one, NULL, cells, 8, err), STATUS_INVALID);
    assert_int_equal(device_copy_out(rig->one, cells, NULL, 8, err), STATUS_INVALID);
    assert_int_equal(device_copy_in(rig->one, cells, cells + 4, SIZE_MAX, err), STATUS_INVALID);
    assert_int_equal(device_copy_within(rig->one, cells, cells + 3, 4, err), STATUS_INVALID);
    assert_int_equal(device_copy_within(rig->one, cells + 3, cells, 4, err), STATUS_INVALID);
    assert_int_equal(device_fill(rig->one, NULL, 0, 8, err), STATUS_INVALID);
    assert_ok(device_copy_within(rig->one, cells + 4, cells, 4, err), err);
    assert_ok(device_copy_in(rig->one, NULL, NULL, 0, err), err);
    device_memory_free(rig->one, NULL, 0);
    assert_ok(device_stream_synchronize(rig->one, err), err); // before the cells go

    struct device *second = stream_device(NULL);
    struct device_event *event = event_of_kind(second, DEVICE_EVENT_TIMED);
    double ns = 0.0;
    assert_int_equal(device_event_record(event, rig->one, err), STATUS_INVALID);
    assert_int_equal(device_stream_wait(rig->one, event, err), STATUS_INVALID);
    assert_int_equal(device_event_elapsed(event, rig->event, &ns, err), STATUS_INVALID);
    device_event_free(event);
    device_close(second);

    static const char arguments[CPU_KERNEL_ARGUMENTS_MAX + 1];
    assert_int_equal(cpu_launch(rig->one, "large", NULL, arguments, sizeof arguments, err),
                     STATUS_INVALID);
    device_stream_free(NULL);
    device_event_free(NULL);
}

STATE_CASE(a_stream_ends_behind_its_work, struct rig *rig)
{
    struct device_stream *stream = stream_named(rig->device, "short");
    unsigned char cells[100] = {3};
    for (size_t i = 1; i < sizeof cells; i++)
        copy(rig, stream, cells + i, cells + i - 1, 1);
    record(rig, rig->event, stream);
    device_stream_free(stream);
    assert_int_equal(cells[99], 3);
    assert_true(event_is_done(rig->event)); // events outlive their stream
}

struct sum_job {
    const uint32_t *from;
    uint64_t *sums; // one a part
    size_t parts, each;
};

static void sum_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct sum_job *job = context;
    uint64_t sum = 0;
    for (size_t i = 0; i < job->each; i++)
        sum += job->from[part * job->each + i];
    job->sums[part] = sum;
}

static enum status sum_kernel(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)err;
    struct sum_job job = *(const struct sum_job *)arguments;
    thread_pool_run(pool, sum_part, &job, job.parts);
    return STATUS_OK;
}

// Two streams' kernels share their parts out at once, each on threads of its own.
STATE_CASE(kernels_run_in_parts, struct rig *rig)
{
    enum { PARTS = 64, EACH = 1000, ROUNDS = 20 };
    static uint32_t numbers[PARTS * EACH];
    static uint64_t sums[2][PARTS];
    for (uint32_t i = 0; i < COUNT_OF(numbers); i++)
        numbers[i] = i;
    struct device_stream *streams[2] = {rig->one, rig->two};
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t s = 0; s < 2; s++) {
            struct sum_job job = {.from = numbers, .sums = sums[s], .parts = PARTS, .each = EACH};
            assert_ok(cpu_launch(streams[s], "sum", sum_kernel, &job, sizeof job, &rig->err),
                      &rig->err);
        }
    }
    finish(rig, rig->one);
    finish(rig, rig->two);
    for (uint64_t part = 0; part < PARTS; part++) {
        uint64_t expected = EACH * (EACH * part) + EACH * (EACH - 1) / 2;
        assert_int_equal(sums[0][part], expected);
        assert_int_equal(sums[1][part], expected);
    }
}

TEST_MAIN_EACH(set_up, tear_down, a_stream_keeps_its_order, streams_run_beside_each_other,
               a_wait_holds_the_stream_not_the_host, an_event_never_recorded_is_done,
               waits_mean_the_earlier_place, a_later_place_does_not_stand_for_an_earlier,
               any_thread_waits, a_spinning_host_waits_too, times_are_on_one_clock,
               elapsed_is_refused, a_failure_is_sticky, a_failure_spreads_along_waits,
               memory_is_freed_behind_its_use, a_failed_stream_frees_its_memory,
               pinned_memory_is_whole_pages, what_makes_no_sense_is_refused,
               a_stream_ends_behind_its_work, kernels_run_in_parts)
