// The emulated CUDA runtime (tests/support/cuda) at the pace of a device, and what it does with
// calls that fail although no test made them fail.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/device/stream.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"

enum { SIZE = 1 << 20, CHUNKS = 16, BUFFERS = 2, BAD_VALUE = 1, NO_MEMORY = 2, CALL_NS = 2000 };

// A copy of SIZE takes 100 us, a kernel that copies as much within the device 200 us.
static const struct emulation_rates rates = {CALL_NS, SIZE / 100e-6, SIZE / 100e-6,
                                             2 * SIZE / 200e-6};

static struct device *device;
static struct device_stream *copy, *compute;
static struct device_event *copied[BUFFERS], *computed[BUFFERS], *begun, *done;
static void *in[BUFFERS], *out, *pinned;

static void open_all(void)
{
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, NULL),
                     STATUS_OK);
    assert_int_equal(device_stream_new(device, &copy, "copy", NULL), STATUS_OK);
    assert_int_equal(device_stream_new(device, &compute, "compute", NULL), STATUS_OK);
    assert_int_equal(device_event_new(device, &begun, DEVICE_EVENT_TIMED, NULL), STATUS_OK);
    assert_int_equal(device_event_new(device, &done, DEVICE_EVENT_TIMED, NULL), STATUS_OK);
    for (int i = 0; i < BUFFERS; i++) {
        assert_int_equal(device_event_new(device, &copied[i], DEVICE_EVENT_TIMED, NULL), STATUS_OK);
        assert_int_equal(device_event_new(device, &computed[i], DEVICE_EVENT_ORDER, NULL),
                         STATUS_OK);
        assert_int_equal(device_memory_new(copy, &in[i], SIZE, NULL), STATUS_OK);
    }
    assert_int_equal(device_memory_new(copy, &out, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_pinned_new(device, &pinned, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(copy, NULL), STATUS_OK);
}

static void close_all(void)
{
    for (int i = 0; i < BUFFERS; i++) {
        device_memory_free(copy, in[i], SIZE);
        device_event_free(copied[i]);
        device_event_free(computed[i]);
    }
    device_memory_free(copy, out, SIZE);
    device_event_free(begun);
    device_event_free(done);
    device_stream_free(compute);
    device_stream_free(copy);
    device_pinned_free(device, pinned, SIZE);
    device_close(device);
    assert_int_equal(emulation_live(), 0);
}

// Copies and computes CHUNKS of SIZE, two buffers in turn or each chunk alone; the host takes
// `fill_ns` to fill the slot, which it does when the copy from it is done.  Returns the time from
// the first copy's begin to the last kernel's end.
static double stream_chunks(int64_t fill_ns, bool in_turn)
{
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        const int i = chunk % BUFFERS;
        if (fill_ns > 0) {
            if (chunk > 0)
                assert_int_equal(device_event_wait(copied[(chunk + 1) % BUFFERS], NULL), STATUS_OK);
            emulation_pass(fill_ns);
        }
        if (chunk == 0)
            assert_int_equal(device_event_record(begun, copy, NULL), STATUS_OK);
        assert_int_equal(device_stream_wait(copy, computed[i], NULL), STATUS_OK);
        assert_int_equal(device_copy_in(copy, in[i], pinned, SIZE, NULL), STATUS_OK);
        assert_int_equal(device_event_record(copied[i], copy, NULL), STATUS_OK);
        assert_int_equal(device_stream_wait(compute, copied[i], NULL), STATUS_OK);
        assert_int_equal(device_copy_within(compute, out, in[i], SIZE, NULL), STATUS_OK);
        assert_int_equal(device_event_record(computed[i], compute, NULL), STATUS_OK);
        if (!in_turn)
            assert_int_equal(device_event_wait(computed[i], NULL), STATUS_OK);
    }
    double ns = 0.0;
    assert_int_equal(device_event_record(done, compute, NULL), STATUS_OK);
    assert_int_equal(device_event_wait(done, NULL), STATUS_OK);
    assert_int_equal(device_event_elapsed(begun, done, &ns, NULL), STATUS_OK);
    return ns;
}

// Copies hide behind kernels, kernels behind slow fills, and nothing hides where each chunk is
// waited for; within the host's calls.
TEST_CASE(times_are_those_of_the_rates)
{
    static const struct {
        int64_t fill_ns;
        bool in_turn;
        double least_ns; // without the host's calls
    } cases[] = {
        {0, true, 100e3 + CHUNKS * 200e3},
        {0, false, CHUNKS * 300e3},
        // Starved: a copy begins once the one before has ended and the slot is full again.
        {500000, true, (CHUNKS - 1) * 600e3 + 300e3},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        emulation_clock(&rates);
        open_all();
        const double ns = stream_chunks(cases[i].fill_ns, cases[i].in_turn);
        assert_true(ns >= cases[i].least_ns - 1.0);
        assert_true(ns <= cases[i].least_ns + CHUNKS * 8 * CALL_NS);
        close_all();
        emulation_clock(NULL);
    }
}

// An event is done when the host's time has come to it, not before.
TEST_CASE(events_are_done_in_time)
{
    emulation_clock(&rates);
    open_all();
    const int64_t began = emulation_now();
    bool is_done = false;
    assert_int_equal(device_copy_in(copy, in[0], pinned, SIZE, NULL), STATUS_OK);
    assert_int_equal(device_event_record(copied[0], copy, NULL), STATUS_OK);
    int polls = 0;
    for (; !is_done; polls++)
        assert_int_equal(device_event_query(copied[0], &is_done, NULL), STATUS_OK);
    assert_in_range(polls, 100000 / CALL_NS - 2, 100000 / CALL_NS + 2);
    assert_in_range(emulation_now() - began, 100000, 100000 + 4 * CALL_NS);
    close_all();
    emulation_clock(NULL);
}

// The mistakes that the runtime refuses; `work` is done by a process of its own.
static void ask_for_too_much(void)
{
    void *memory = NULL;
    assert_int_equal(device_memory_new(copy, &memory, (size_t)1 << 60, NULL), STATUS_NOMEM);
}

static void copy_too_much(void)
{
    assert_int_equal(device_copy_within(copy, in[0], out, SIZE + 1, NULL), STATUS_IO);
}

static void fill_the_host(void)
{
    assert_int_equal(device_fill(copy, pinned, 0, SIZE, NULL), STATUS_IO);
}

static int end_of(void (*work)(void), int allowed)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        emulation_allow(allowed);
        work();
        _exit(0);
    }
    int end = 0;
    assert_int_equal(waitpid(child, &end, 0), child);
    return end;
}

TEST_CASE(failures_that_no_test_announced_end_the_program)
{
    static const struct {
        void (*work)(void);
        int code;
    } cases[] = {
        {ask_for_too_much, NO_MEMORY}, {copy_too_much, BAD_VALUE}, {fill_the_host, BAD_VALUE}};
    open_all();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int end = end_of(cases[i].work, 0);
        assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGABRT);
        assert_int_equal(end_of(cases[i].work, cases[i].code), 0);
    }
    close_all();
}

TEST_MAIN(times_are_those_of_the_rates, events_are_done_in_time,
          failures_that_no_test_announced_end_the_program)
