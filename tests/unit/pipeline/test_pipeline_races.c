// Order between the host and streams, on any back end: a slot is not written while a copy
// from it is pending, a buffer of the device not while a kernel reads it.  On the CPU; on a
// CUDA device (RIG_ON_CUDA), where this was built for one, else on the emulated runtime
// (RIG_EMULATED), which does everything as late as it may, or when a device would.

#include "server/device/stream.h"
#ifdef RIG_EMULATED
#include "tests/support/cuda/emulation.h"
#endif
#include "tests/support/test.h"
#include "tests/unit/pipeline/pipeline_rig.h"

static unsigned int pick(uint64_t *random, unsigned int first, unsigned int last)
{
    return first + (unsigned int)(test_random(random) % (last - first + 1));
}

// Everything by the seed.  Chunks are large enough for a copy to take a while.
static void random_run(struct device *device, uint64_t seed)
{
    uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    struct rig rig;
    struct pipeline_figures figures;
    struct error err = {0};
    const size_t chunk_bytes = pick(&random, 1, 300000);
    const size_t total = (size_t)pick(&random, 1, 30) * chunk_bytes + pick(&random, 0, 2) - 1;
    rig_init(&rig, chunk_bytes, total, pick(&random, 1, 4));
    rig.anywhere = true;
    if (pick(&random, 0, 3) == 0)
        rig_lends(&rig);
    struct pipeline_plan plan = rig_plan(&rig, pick(&random, 1, 5), pick(&random, 1, 4),
                                         pick(&random, 1, 6), pick(&random, 2, 4));
    plan.sync = pick(&random, 0, 3) == 0 ? PIPELINE_SYNC_PERIODIC : PIPELINE_SYNC_EVENTS;
    plan.overlap_tracking = pick(&random, 0, 1);
    if (rig_run(&rig, device, &plan, &figures, &err) != STATUS_OK)
        fail_msg("seed %d: %s", (int)seed, err.text);
    assert_int_equal(atomic_load(&rig.wrong_results), 0);
    assert_false(rig.out_of_order);
    assert_int_equal(rig.taken, rig_groups(&rig));
    assert_int_equal(figures.bytes_d2h, rig.total_bytes);
    assert_int_equal(device_memory_used(device), 0);
    rig_deinit(&rig);
}

TEST_CASE(data_is_right_whatever_is_late)
{
    struct device *device = rig_device(NULL);
    for (uint64_t seed = 1; seed <= 60; seed++)
        random_run(device, seed);
    device_close(device);
}

// What a pipeline must not do, in a few lines: with one wait left out, the data is wrong.
// The stream that the missing wait lets run ahead has an easy life; the other one is kept
// busy in front of every step, so that it comes too late.
enum omission {
    OMIT_NOTHING,
    OMIT_SLOT_WAIT, // the slot is written under the copy from it
    OMIT_HOST_WAIT, // likewise: a wait queued on the copy stream itself holds nobody
    OMIT_FILLED,    // the kernel reads before the copy has come
    OMIT_COMPUTED,  // the buffer is written under the kernel that reads it
    OMIT_MADE,      // the results are taken out before the kernel has made them
    OMIT_FETCHED,   // the results are written under the copy that takes them out
    OMIT_RESULTS,   // the host reads results that are still being copied
    OMISSIONS,
};

enum { BYTES = 1 << 16, CHUNKS = 8, ATTEMPTS = 50, ROUNDS = 32 };

// What the delay copies: on a device more than its last-level cache.
#if defined(RIG_ON_CUDA) && !defined(RIG_EMULATED)
enum { BALLAST = 512 << 20 };
#elif defined(RIG_ON_CUDA)
enum { BALLAST = 4 << 20 };
#else
enum { BALLAST = 32 << 20 };
#endif
#define DELAY_NS 2e6 // much more than the host needs for the calls of a chunk

struct bench {
    struct device *device;
    struct device_stream *copy, *compute, *out;
    struct device_event *copied, *computed, *fetched;
    uint8_t *slot, *results; // pinned
    uint8_t *in, *made;      // the device's
    uint8_t *ballast;
    unsigned int delay_copies;
};

static void *memory_of(struct bench *bench, size_t size)
{
    void *memory = NULL;
    assert_int_equal(device_memory_new(bench->copy, &memory, size, NULL), STATUS_OK);
    assert_int_equal(device_fill(bench->copy, memory, 0, size, NULL), STATUS_OK);
    return memory;
}

// Keeps a stream busy for a while.
static void delay(const struct bench *bench, struct device_stream *stream)
{
    const size_t half = BALLAST / 2;
    for (unsigned int i = 0; i < bench->delay_copies; i++)
        assert_int_equal(
            device_copy_within(stream, bench->ballast, bench->ballast + half, half, NULL),
            STATUS_OK);
}

// Finds how many copies take DELAY_NS, also once the device has left its idle clocks.
static void calibrate(struct bench *bench)
{
    struct device_event *begun = NULL, *done = NULL;
    assert_int_equal(device_event_new(bench->device, &begun, DEVICE_EVENT_TIMED, NULL), STATUS_OK);
    assert_int_equal(device_event_new(bench->device, &done, DEVICE_EVENT_TIMED, NULL), STATUS_OK);
    bench->delay_copies = 1;
    for (int round = 0; round < ROUNDS; round++) {
        double ns = 0.0;
        assert_int_equal(device_event_record(begun, bench->copy, NULL), STATUS_OK);
        delay(bench, bench->copy);
        assert_int_equal(device_event_record(done, bench->copy, NULL), STATUS_OK);
        assert_int_equal(device_event_wait(done, NULL), STATUS_OK);
        assert_int_equal(device_event_elapsed(begun, done, &ns, NULL), STATUS_OK);
        if (ns < DELAY_NS) {
            bench->delay_copies *= 2;
            round = -1;
        }
    }
    device_event_free(begun);
    device_event_free(done);
}

static void bench_init(struct bench *bench, const struct device_fault_options *options)
{
    *bench = (struct bench){.device = rig_device(options)};
    struct device *device = bench->device;
    struct device_stream **const streams[] = {&bench->copy, &bench->compute, &bench->out};
    struct device_event **const events[] = {&bench->copied, &bench->computed, &bench->fetched};
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        assert_int_equal(device_stream_new(device, streams[i], "race", NULL), STATUS_OK);
        assert_int_equal(device_event_new(device, events[i], DEVICE_EVENT_ORDER, NULL), STATUS_OK);
    }
    assert_int_equal(device_pinned_new(device, (void **)&bench->slot, BYTES, NULL), STATUS_OK);
    assert_int_equal(device_pinned_new(device, (void **)&bench->results, BYTES * CHUNKS, NULL),
                     STATUS_OK);
    bench->in = memory_of(bench, BYTES);
    bench->made = memory_of(bench, BYTES);
    bench->ballast = memory_of(bench, BALLAST);
    assert_int_equal(device_stream_synchronize(bench->copy, NULL), STATUS_OK);
    calibrate(bench);
}

static void bench_deinit(struct bench *bench)
{
    device_memory_free(bench->copy, bench->in, BYTES);
    device_memory_free(bench->copy, bench->made, BYTES);
    device_memory_free(bench->copy, bench->ballast, BALLAST);
    device_stream_free(bench->out);
    device_stream_free(bench->compute);
    device_stream_free(bench->copy);
    device_event_free(bench->copied);
    device_event_free(bench->computed);
    device_event_free(bench->fetched);
    device_pinned_free(bench->device, bench->slot, BYTES);
    device_pinned_free(bench->device, bench->results, BYTES * CHUNKS);
    device_close(bench->device);
}

// One slot, one buffer; each chunk is a byte all over.
static void stream_chunk(const struct bench *bench, int chunk, enum omission omission)
{
    if (omission == OMIT_HOST_WAIT)
        assert_int_equal(device_stream_wait(bench->copy, bench->copied, NULL), STATUS_OK);
    else if (omission != OMIT_SLOT_WAIT)
        assert_int_equal(device_event_wait(bench->copied, NULL), STATUS_OK);
    memset(bench->slot, chunk + 1, BYTES);

    if (omission != OMIT_COMPUTED)
        assert_int_equal(device_stream_wait(bench->copy, bench->computed, NULL), STATUS_OK);
    if (omission == OMIT_SLOT_WAIT || omission == OMIT_HOST_WAIT || omission == OMIT_FILLED)
        delay(bench, bench->copy);
    assert_int_equal(device_copy_in(bench->copy, bench->in, bench->slot, BYTES, NULL), STATUS_OK);
    assert_int_equal(device_event_record(bench->copied, bench->copy, NULL), STATUS_OK);

    if (omission != OMIT_FILLED)
        assert_int_equal(device_stream_wait(bench->compute, bench->copied, NULL), STATUS_OK);
    if (omission != OMIT_FETCHED)
        assert_int_equal(device_stream_wait(bench->compute, bench->fetched, NULL), STATUS_OK);
    if (omission == OMIT_COMPUTED || omission == OMIT_MADE)
        delay(bench, bench->compute);
    assert_int_equal(device_copy_within(bench->compute, bench->made, bench->in, BYTES, NULL),
                     STATUS_OK);
    assert_int_equal(device_event_record(bench->computed, bench->compute, NULL), STATUS_OK);

    if (omission != OMIT_MADE)
        assert_int_equal(device_stream_wait(bench->out, bench->computed, NULL), STATUS_OK);
    if (omission == OMIT_FETCHED || omission == OMIT_RESULTS)
        delay(bench, bench->out);
    assert_int_equal(device_copy_out(bench->out, bench->results + (size_t)chunk * BYTES,
                                     bench->made, BYTES, NULL),
                     STATUS_OK);
    assert_int_equal(device_event_record(bench->fetched, bench->out, NULL), STATUS_OK);
}

static bool is_right(const struct bench *bench)
{
    bool right = true;
    for (size_t i = 0; i < (size_t)BYTES * CHUNKS; i++)
        right = right && bench->results[i] == i / BYTES + 1;
    return right;
}

// Whether the results are right.  The streams are waited for in the order that lets the one
// run ahead that nothing holds.
static bool run_chunks(const struct bench *bench, enum omission omission)
{
    memset(bench->results, 0, (size_t)BYTES * CHUNKS);
    for (int chunk = 0; chunk < CHUNKS; chunk++)
        stream_chunk(bench, chunk, omission);
    struct device_stream *const ahead[] = {[OMIT_FILLED] = bench->compute,
                                           [OMIT_COMPUTED] = bench->copy,
                                           [OMIT_MADE] = bench->out,
                                           [OMIT_FETCHED] = bench->compute,
                                           [OMISSIONS] = NULL};
    bool right = omission != OMIT_RESULTS || is_right(bench);
    if (ahead[omission])
        assert_int_equal(device_stream_synchronize(ahead[omission], NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(bench->out, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(bench->compute, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(bench->copy, NULL), STATUS_OK);
    return right && is_right(bench);
}

static void assert_missing_waits_show(const struct device_fault_options *options)
{
    struct bench bench;
    bench_init(&bench, options);
    for (int i = 0; i < 3; i++)
        assert_true(run_chunks(&bench, OMIT_NOTHING));
#if !defined(__SANITIZE_THREAD__) // which says so itself, and ends the test
    for (enum omission omission = OMIT_SLOT_WAIT; omission < OMISSIONS; omission++) {
        bool seen = false;
        for (int i = 0; i < ATTEMPTS && !seen; i++)
            seen = !run_chunks(&bench, omission);
        if (!seen)
            fail_msg("omission %d: the data is right", (int)omission);
    }
#endif
    bench_deinit(&bench);
}

TEST_CASE(a_missing_wait_shows)
{
    assert_missing_waits_show(NULL);
}

// A device that is late by itself: what the tests of the pipeline rest on.
TEST_CASE(a_missing_wait_shows_on_a_late_device)
{
    if (!rig_on_cuda())
        assert_missing_waits_show(
            &(struct device_fault_options){.seed = 1, .delay_max_ns = 1000000});
}

#ifdef RIG_EMULATED
// An H200 on PCIe 5; its memory as much slower as BALLAST is smaller here.
static struct emulation_rates rates_of(int64_t call_ns)
{
    return (struct emulation_rates){call_ns, 55e9, 55e9, 4.8e12 / 128};
}
#endif

// By the times of a device: with hosts that need 2 us for a call, and 20 us as under a tool that
// follows the calls.  A delay of some 27 us, which the host outlasts, would show nothing.
TEST_CASE(a_missing_wait_shows_at_the_pace_of_a_device)
{
#ifdef RIG_EMULATED
    for (int64_t call_ns = 2000; call_ns <= 20000; call_ns *= 10) {
        const struct emulation_rates rates = rates_of(call_ns);
        emulation_clock(&rates);
        assert_missing_waits_show(NULL);
    }
    struct emulation_rates rates = rates_of(5000);
    emulation_clock(&rates);
    struct bench bench;
    bench_init(&bench, NULL);
    rates.memory *= DELAY_NS / 27e3;
    emulation_clock(&rates);
    assert_true(run_chunks(&bench, OMIT_SLOT_WAIT));
    assert_true(run_chunks(&bench, OMIT_HOST_WAIT));
    assert_true(run_chunks(&bench, OMIT_COMPUTED));
    bench_deinit(&bench);
    emulation_clock(NULL);
#endif
}

int main(void)
{
    struct error err = {0};
    struct device *probe = NULL;
    if (device_open(&probe, &(struct device_options){.spec = rig_on_cuda() ? "cuda" : "cpu"},
                    &err) != STATUS_OK) {
        print_message("skipped: %s\n", err.text);
        return 77;
    }
    device_close(probe);
    return TEST_RUN(data_is_right_whatever_is_late, a_missing_wait_shows,
                    a_missing_wait_shows_on_a_late_device,
                    a_missing_wait_shows_at_the_pace_of_a_device);
}
