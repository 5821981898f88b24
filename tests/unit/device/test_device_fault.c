// The fault device: what is to fail fails where it is told to.  (That a wait which is left out
// shows as wrong data: test_pipeline_races.  Failing allocations: test_properties.)
#include <math.h>

#include "server/device/encode.h"
#include "tests/support/device_fault.h"
#include "tests/support/test.h"
#include "tests/unit/device/stream_fixture.h"

static struct device *faulty(const struct device_fault_options *options)
{
    struct device *device = NULL;
    struct error err = {0};
    assert_ok(device_fault_open(&device, stream_device(NULL), options, &err), &err);
    return device;
}

static void synchronize(struct device_stream *stream)
{
    struct error err = {0};
    assert_ok(device_stream_synchronize(stream, &err), &err);
}

static void assert_poisoned(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], DEVICE_FAULT_POISON);
}

static enum status noted(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    unsigned char *const *to = arguments;
    **to = 5;
    return STATUS_OK;
}

// One byte becomes 5.
static enum status queue_kind(struct device_stream *stream, enum device_fault_kind kind,
                              unsigned char *to, struct error *err)
{
    static const unsigned char five = 5;
    switch (kind) {
    case DEVICE_FAULT_COPY_IN:
        return device_copy_in(stream, to, &five, 1, err);
    case DEVICE_FAULT_COPY_OUT:
        return device_copy_out(stream, to, &five, 1, err);
    case DEVICE_FAULT_COPY_WITHIN:
        return device_copy_within(stream, to, &five, 1, err);
    case DEVICE_FAULT_FILL:
        return device_fill(stream, to, 5, 1, err);
    case DEVICE_FAULT_KERNEL:
        return cpu_launch(stream, "kernel", noted, &to, sizeof(unsigned char *), err);
    case DEVICE_FAULT_MEMORY:
    case DEVICE_FAULT_PINNED:
    case DEVICE_FAULT_STREAM:
    case DEVICE_FAULT_EVENT:
    case DEVICE_FAULT_COUNT:
        break;
    }
    return error_set(err, STATUS_INVALID, "is not queued");
}

TEST_CASE(the_nth_queued_call_fails)
{
    enum { CALLS = 5, FAILING = 3 };
    static const char *const names[] = {"copy_in", "copy_out", "copy_within", "fill", "kernel"};
    for (enum device_fault_kind kind = 0; kind < COUNT_OF(names); kind++) {
        struct device_fault_options options = {.seed = 1};
        options.fail_at[kind] = FAILING;
        struct error err = {0};
        struct device *device = faulty(&options);
        struct device_stream *stream = stream_named(device, "one");
        struct device_event *event = event_of_kind(device, DEVICE_EVENT_ORDER);
        struct gate *gate = gate_new();
        unsigned char cells[CALLS] = {0};
        if (kind != DEVICE_FAULT_KERNEL) // of which the gate is one
            gate_hold(gate, stream);
        unsigned int queued = 0; // those behind the failing one may be refused at once
        for (size_t i = 0; i < CALLS; i++)
            queued += queue_kind(stream, kind, &cells[i], &err) == STATUS_OK;
        assert_true(queued >= FAILING);
        gate_open(gate);
        (void)!device_event_record(event, stream, &err);
        assert_int_equal(device_event_wait(event, &err), STATUS_IO);
        assert_non_null(strstr(err.text, names[kind]));
        assert_non_null(strstr(err.text, "made to fail"));
        for (size_t i = 0; i < CALLS; i++)
            assert_int_equal(cells[i], i + 1 < FAILING ? 5 : 0);
        assert_int_equal(device_fault_calls(device, kind), CALLS);
        device_event_free(event);
        device_stream_free(stream);
        device_close(device);
        gate_free(gate);
    }
}

// A kernel of the inner device: [3, 4] has the norm 5.
TEST_CASE(encoders_are_kernels)
{
    struct device_fault_options options = {.poison = true};
    options.fail_at[DEVICE_FAULT_KERNEL] = 2;
    struct error err = {0};
    struct device *device = faulty(&options);
    struct device_stream *stream = stream_named(device, "one");
    static const double in[2] = {3.0, 4.0};
    double out[2][4] = {{0}};
    uint8_t faults[2] = {9, 9};
    for (size_t i = 0; i < 2; i++) {
        struct encode_job job = {.encoder = ENCODER_AMPLITUDE,
                                 .type = ENCODE_F64,
                                 .qubits = 1,
                                 .samples = 1,
                                 .inputs = 2,
                                 .in = in,
                                 .out = out[i],
                                 .faults = &faults[i]};
        unsigned char scratch[4096];
        assert_true(encode_scratch_size(device, &job) <= sizeof scratch);
        job.scratch = scratch;
        assert_ok(device_encode(stream, &job, &err), &err);
        assert_int_equal(device_stream_synchronize(stream, &err), i == 0 ? STATUS_OK : STATUS_IO);
    }
    static const double expected[4] = {0.6, 0.0, 0.8, 0.0};
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(out[0][i] - expected[i]) < 1e-14);
    assert_int_equal(faults[0], ENCODE_FAULT_NONE);
    assert_non_null(strstr(err.text, "encode on stream 'one': made to fail"));
    assert_poisoned((const unsigned char *)out[1], sizeof out[1]);
    assert_int_equal(faults[1], DEVICE_FAULT_POISON);
    device_stream_free(stream);
    device_close(device);
}

TEST_CASE(a_tensor_can_fail_too)
{
    struct device_fault_options options = {.fail_at = {[DEVICE_FAULT_MEMORY] = 2}};
    struct error err = {0};
    struct device *device = faulty(&options);
    struct tensor first = {0};
    struct tensor second = {0};
    assert_ok(device_tensor_new(device, &first, TENSOR_F32, 2, 2, &err), &err);
    assert_int_equal(device_tensor_new(device, &second, TENSOR_F32, 2, 2, &err), STATUS_NOMEM);
    float numbers[4] = {1.0F, 2.0F, 3.0F, 4.0F};
    float back[4] = {0};
    assert_ok(device_upload(device, &first, 0, numbers, sizeof numbers, &err), &err);
    assert_ok(device_add(device, &first, &first, &err), &err);
    assert_ok(device_download(device, back, &first, 0, sizeof back, &err), &err);
    assert_true(back[3] == 8.0F);
    device_tensor_free(device, &first);
    device_close(device);
}

TEST_CASE(a_lost_device_fails_everything)
{
    struct error err = {0};
    struct device *device = faulty(&(struct device_fault_options){.lose_at = 3, .poison = true});
    struct device_stream *one = stream_named(device, "one");
    struct device_stream *two = stream_named(device, "two");
    struct device_event *before = event_of_kind(device, DEVICE_EVENT_ORDER);
    struct device_event *after = event_of_kind(device, DEVICE_EVENT_ORDER);
    void *memory = NULL;
    unsigned char cells[4] = {0};
    assert_ok(device_memory_new(one, &memory, 100, &err), &err);
    assert_ok(queue_kind(one, DEVICE_FAULT_FILL, &cells[0], &err), &err);
    assert_ok(queue_kind(two, DEVICE_FAULT_KERNEL, &cells[1], &err), &err);
    synchronize(two);
    assert_ok(device_event_record(before, one, &err), &err);
    assert_ok(device_event_wait(before, &err), &err);
    assert_ok(queue_kind(one, DEVICE_FAULT_COPY_IN, &cells[2], &err), &err);
    (void)!device_event_record(after, one, &err);
    assert_int_equal(device_event_wait(after, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "the device was lost"));

    // The other stream learns of it, work or not.
    (void)!device_event_record(after, two, &err);
    assert_int_equal(device_event_wait(after, &err), STATUS_IO);
    assert_int_equal(device_stream_synchronize(two, &err), STATUS_IO);
    assert_int_equal(device_synchronize(device, &err), STATUS_IO);
    assert_ok(device_event_wait(before, &err), &err);
    void *more = NULL;
    assert_int_equal(device_memory_new(two, &more, 100, &err), STATUS_IO);
    assert_int_equal(cells[0], 5);
    assert_int_equal(cells[1], 5);
    assert_int_equal(cells[2], DEVICE_FAULT_POISON); // begun, and not finished
    device_memory_free(one, memory, 100);
    device_event_free(before);
    device_event_free(after);
    device_stream_free(one);
    device_stream_free(two);
    device_close(device);
}

TEST_CASE(memory_is_poisoned)
{
    enum { SIZE = 300 };
    struct error err = {0};
    struct device *device = faulty(&(struct device_fault_options){.poison = true});
    struct device_stream *stream = stream_named(device, "one");
    unsigned char seen[SIZE] = {0};
    void *memory = NULL;
    void *pinned = NULL;
    assert_ok(device_pinned_new(device, &pinned, SIZE, &err), &err);
    assert_poisoned(pinned, SIZE);
    device_pinned_free(device, pinned, SIZE);
    assert_ok(device_memory_new(stream, &memory, SIZE, &err), &err);
    assert_ok(device_copy_out(stream, seen, memory, SIZE, &err), &err);
    synchronize(stream);
    assert_poisoned(seen, SIZE);

    // Freed behind the fill and the copy, and looked at behind that.
    assert_ok(device_fill(stream, memory, 1, SIZE, &err), &err);
    unsigned char before[SIZE] = {0};
    assert_ok(device_copy_out(stream, before, memory, SIZE, &err), &err);
    device_memory_free(stream, memory, SIZE);
    memset(seen, 0, SIZE);
    assert_ok(device_copy_out(stream, seen, memory, SIZE, &err), &err);
    synchronize(stream);
    assert_int_equal(before[0], 1);
    assert_poisoned(seen, SIZE);
    device_stream_free(stream);
    device_close(device);
}

TEST_MAIN(the_nth_queued_call_fails, encoders_are_kernels, a_tensor_can_fail_too,
          a_lost_device_fails_everything, memory_is_poisoned)
