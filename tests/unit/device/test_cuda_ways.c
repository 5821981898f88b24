// Which way the CUDA back end encodes, by what the device can and which calls of the runtime
// fail (emulated: tests/support/cuda).

#include "server/device/cuda/encode_ways.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"

enum {
    QUBITS = 15,
    STATES = 1 << QUBITS,
    INVALID_CLUSTER = 912,
    NO_RESOURCES = 701,
    FAILURE = 719
};

static struct device *device;
static struct device_stream *stream;
static struct encode_job job; // amplitudes for four blocks of a cluster
static double *input, *states;
static size_t in_size, out_size, scratch_size;

static void *new_memory(size_t size)
{
    void *memory = NULL;
    assert_int_equal(device_memory_new(stream, &memory, size, NULL), STATUS_OK);
    return memory;
}

static void open_device(int capability)
{
    emulation_capability(capability);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, NULL),
                     STATUS_OK);
    assert_int_equal(device_stream_new(device, &stream, "ways", NULL), STATUS_OK);
    job = (struct encode_job){.encoder = ENCODER_AMPLITUDE,
                              .type = ENCODE_F64,
                              .qubits = QUBITS,
                              .samples = 1,
                              .inputs = STATES};
    in_size = encode_in_size(&job);
    out_size = encode_out_size(&job);
    scratch_size = encode_scratch_size(device, &job);
    input = malloc(in_size);
    states = malloc(out_size);
    assert_non_null(input);
    assert_non_null(states);
    for (size_t i = 0; i < STATES; i++)
        input[i] = 1.0 + (double)(i % 7);
    void *in = new_memory(in_size);
    assert_int_equal(device_copy_in(stream, in, input, in_size, NULL), STATUS_OK);
    job.in = in;
    job.out = new_memory(out_size);
    job.faults = new_memory(1);
    job.scratch = new_memory(scratch_size);
}

static void close_device(void)
{
    union {
        const void *borrowed;
        void *own;
    } in = {job.in};
    device_memory_free(stream, in.own, in_size);
    device_memory_free(stream, job.out, out_size);
    device_memory_free(stream, job.faults, 1);
    device_memory_free(stream, job.scratch, scratch_size);
    device_stream_free(stream);
    device_close(device);
    free(input);
    free(states);
    emulation_capability(9);
    assert_int_equal(emulation_live(), 0);
}

static enum status encode(enum cuda_encode_way way, struct error *err)
{
    memset(states, 0, out_size);
    const enum status status = cuda_encode_by(stream, &job, way, err);
    assert_int_equal(device_copy_out(stream, states, job.out, out_size, NULL), STATUS_OK);
    assert_int_equal(device_stream_synchronize(stream, NULL), STATUS_OK);
    return status;
}

// Before clusters a block keeps a state alone, or it is encoded in passes.
TEST_CASE(devices_without_clusters_take_what_they_can)
{
    struct error err = {0};
    open_device(9);
    assert_int_equal(encode(CUDA_ENCODE_RESIDENT, &err), STATUS_OK);
    double *kept = malloc(out_size);
    assert_non_null(kept);
    memcpy(kept, states, out_size);
    close_device();
    open_device(8);
    assert_int_equal(encode(CUDA_ENCODE_RESIDENT, &err), STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "device cuda:0: no room"));
    err = (struct error){0};
    assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_OK);
    assert_memory_equal(states, kept, out_size);
    job.qubits = 13;
    job.inputs = (size_t)1 << 13;
    assert_int_equal(encode(CUDA_ENCODE_RESIDENT, &err), STATUS_OK);
    free(kept);
    close_device();
}

// A cluster that the device has no room for is no error: there is another way.
TEST_CASE(clusters_there_is_no_room_for)
{
    static const int codes[] = {INVALID_CLUSTER, NO_RESOURCES};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct error err = {0};
        open_device(9);
        emulation_fail("cudaLaunchKernelEx", 1, codes[i]);
        assert_int_equal(encode(CUDA_ENCODE_RESIDENT, &err), STATUS_UNSUPPORTED);
        assert_int_equal(err.status, STATUS_UNSUPPORTED);
        assert_non_null(strstr(err.text, "encode_resident: no room for a cluster of 4"));
        // Not tried again: what fails next is a kernel of the other way.
        emulation_fail("cudaLaunchKernelEx", 1, FAILURE);
        assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_IO);
        assert_null(strstr(err.text, "encode_resident"));
        assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_OK);
        assert_true(states[0] > 0.0 && states[2] > states[0]);
        close_device();
    }
}

// Clusters whose blocks have little shared memory.
TEST_CASE(clusters_of_small_blocks)
{
    struct error err = {0};
    open_device(12);
    assert_false(cuda_encode_has_clusters(device));
    assert_int_equal(encode(CUDA_ENCODE_RESIDENT, &err), STATUS_OK); // four blocks of 64 KB
    job.type = ENCODE_F64;
    job.qubits = 17; // eight of 128 KB
    assert_int_equal(cuda_encode_by(stream, &job, CUDA_ENCODE_RESIDENT, &err), STATUS_UNSUPPORTED);
    close_device();
}

// Any other error is said, and nothing else is tried.
TEST_CASE(other_errors_are_said)
{
    static const char *const calls[] = {"cudaFuncGetAttributes", "cudaLaunchKernelEx"};
    open_device(9);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct error err = {0};
        emulation_fail(calls[i], 1, FAILURE);
        assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_IO);
        assert_non_null(strstr(err.text, i == 0 ? calls[i] : "encode_resident"));
    }
    close_device();
}

// Shared memory is asked for once, by the first launch that needs more than the usual.
TEST_CASE(shared_memory_that_is_not_given)
{
    struct error err = {0};
    open_device(9);
    emulation_fail("cudaFuncSetAttribute", 1, FAILURE);
    assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "cudaFuncSetAttribute"));
    assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_OK);
    emulation_fail("cudaFuncSetAttribute", 1, FAILURE);
    assert_int_equal(encode(CUDA_ENCODE_CHOSEN, &err), STATUS_OK);
    assert_true(emulation_pending());
    emulation_fail(NULL, 0, 0);
    close_device();
}

TEST_MAIN(shared_memory_that_is_not_given, devices_without_clusters_take_what_they_can,
          clusters_there_is_no_room_for, clusters_of_small_blocks, other_errors_are_said)
