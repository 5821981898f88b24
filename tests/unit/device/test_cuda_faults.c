// What the CUDA back end does when the runtime fails: every call of it in turn, and a
// device that is lost (emulated: tests/support/cuda).

#include "server/device/network.h"
#include "server/device/properties.h"
#include "server/device/stream.h"
#include "tests/support/cuda/emulation.h"
#include "tests/support/test.h"

enum { NO_MEMORY = 2, NOT_READY = 600, LAUNCH_FAILURE = 719, NOT_SUPPORTED = 801, SIZE = 4096 };

// Runs a network of two steps twice: captures its graph and uses it again.
static enum status use_network(struct device *device, struct error *err)
{
    static const float weights[4] = {1.0F, 2.0F, 3.0F, 4.0F};
    static const struct network_tensor in = {.height = 1, .width = 3, .channels = 2, .pitch = 2},
                                       out = {.height = 1,
                                              .width = 3,
                                              .channels = 2,
                                              .border = {0, 1, 0, 1},
                                              .pitch = 2,
                                              .offset = 6};
    const struct network_step step = {.op = NETWORK_CONV,
                                      .activation = NETWORK_SOFTMAX,
                                      .in = {in},
                                      .out = out,
                                      .inputs = 1,
                                      .kernel = {1, 1},
                                      .stride = {1, 1},
                                      .dilation = {1, 1},
                                      .groups = 1,
                                      .weights = weights,
                                      .name = "conv"};
    const struct network_plan plan = {.steps = &step,
                                      .step_count = 1,
                                      .inputs = &in,
                                      .input_count = 1,
                                      .outputs = &out,
                                      .output_count = 1,
                                      .arena = 16};
    float from[6] = {1.0F}, to[6];
    struct device_network *network = NULL;
    enum status status = device_network_new(device, &network, &plan, 1, err);
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status =
            device_network_run(network, (const float *const[]){from}, (float *const[]){to}, 1, err);
    device_network_free(network);
    return status;
}

// A bit of everything.  Ends with everything freed, whatever fails.
static enum status use_device(struct error *err)
{
    static float host[SIZE / sizeof(float)];
    static const uint32_t ids[] = {1, 0};
    struct device *device = NULL;
    struct device_stream *stream = NULL;
    struct device_event *from = NULL, *to = NULL;
    struct tensor table = {0}, out = {0};
    void *memory = NULL, *pinned = NULL;
    bool done = false;
    double ns = 0.0;
    enum status status = device_open(&device, &(struct device_options){.spec = "cuda"}, err);
    if (status != STATUS_OK)
        return status;
    status = device_tensor_new(device, &table, TENSOR_F32, 2, 16, err);
    if (status == STATUS_OK)
        status = device_tensor_new(device, &out, TENSOR_F32, 2, 16, err);
    if (status == STATUS_OK)
        status = device_upload(device, &table, 0, host, tensor_bytes(&table), err);
    if (status == STATUS_OK)
        status = device_embed(device, &out, &table, ids, 2, err);
    if (status == STATUS_OK)
        status = device_add(device, &out, &table, err);
    if (status == STATUS_OK)
        status = device_synchronize(device, err);
    if (status == STATUS_OK)
        status = device_download(device, host, &out, 0, tensor_bytes(&out), err);
    if (status == STATUS_OK)
        status = use_network(device, err);
    if (status == STATUS_OK)
        status = device_stream_new(device, &stream, "test", err);
    if (status == STATUS_OK)
        status = device_event_new(device, &from, DEVICE_EVENT_TIMED, err);
    if (status == STATUS_OK)
        status = device_event_new(device, &to, DEVICE_EVENT_TIMED, err);
    if (status == STATUS_OK)
        status = device_memory_new(stream, &memory, SIZE, err);
    if (status == STATUS_OK)
        status = device_pinned_new(device, &pinned, SIZE, err);
    if (status == STATUS_OK)
        status = device_event_record(from, stream, err);
    if (status == STATUS_OK)
        status = device_fill(stream, memory, 0, SIZE, err);
    if (status == STATUS_OK)
        status = device_copy_in(stream, memory, pinned, SIZE, err);
    if (status == STATUS_OK)
        status = device_copy_out(stream, pinned, memory, SIZE, err);
    if (status == STATUS_OK)
        status = device_stream_wait(stream, from, err);
    if (status == STATUS_OK)
        status = device_event_record(to, stream, err);
    if (status == STATUS_OK)
        status = device_event_wait(to, err);
    if (status == STATUS_OK)
        status = device_event_query(to, &done, err);
    if (status == STATUS_OK)
        status = device_event_elapsed(from, to, &ns, err);
    if (status == STATUS_OK)
        status = device_stream_synchronize(stream, err);
    if (memory)
        device_memory_free(stream, memory, SIZE);
    device_event_free(from);
    device_event_free(to);
    device_stream_free(stream); // waits: what is queued may read the pinned memory
    device_pinned_free(device, pinned, SIZE);
    device_tensor_free(device, &table);
    device_tensor_free(device, &out);
    device_close(device);
    return status;
}

TEST_CASE(everything_works)
{
    struct error err = {0};
    expect_ok(use_device(&err), &err);
    assert_int_equal(emulation_live(), 0);
}

// The n-th call fails, for every n: said by name, nothing leaks.
TEST_CASE(any_call_may_fail)
{
    unsigned int n = 1, failed = 0;
    for (;; n++) {
        struct error err = {0};
        emulation_fail(NULL, n, LAUNCH_FAILURE);
        const enum status status = use_device(&err);
        const bool reached = !emulation_pending();
        emulation_fail(NULL, 0, 0);
        assert_int_equal(emulation_live(), 0);
        if (!reached)
            break;
        if (status == STATUS_OK)
            continue; // in clearing up: nobody is left to tell
        failed++;
        assert_true(status == STATUS_IO || status == STATUS_NOT_FOUND);
        assert_non_null(strstr(err.text, "device cuda"));
        assert_non_null(strstr(err.text, "unspecified launch failure"));
    }
    assert_true(failed > 20);
}

// The first call that matters: opening the device tries whether its pool gives memory.
static unsigned int first_use(const char *call)
{
    return strcmp(call, "cudaMallocAsync") == 0 ? 2 : 1;
}

// A device that has pools and refuses to use them is used without.
TEST_CASE(pools_that_do_not_work)
{
    static const char *const calls[] = {"cudaDeviceGetDefaultMemPool", "cudaMemPoolSetAttribute",
                                        "cudaMallocAsync"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct error err = {0};
        emulation_fail(calls[i], 1, NOT_SUPPORTED);
        expect_ok(use_device(&err), &err);
        assert_false(emulation_pending());
        emulation_fail("cudaMallocAsync", first_use("cudaMallocAsync"), NO_MEMORY);
        assert_int_equal(use_device(&err), STATUS_NOMEM); // the next device has its own
        assert_int_equal(emulation_live(), 0);
    }
}

TEST_CASE(calls_are_named)
{
    static const char *const calls[] = {
        "cudaMalloc",      "cudaMallocAsync",      "cudaHostAlloc",
        "cudaMemcpyAsync", "cudaMemsetAsync",      "cudaStreamWaitEvent",
        "cudaEventRecord", "cudaEventSynchronize", "cudaEventElapsedTime"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct error err = {0};
        emulation_fail(calls[i], first_use(calls[i]), LAUNCH_FAILURE);
        assert_int_equal(use_device(&err), STATUS_IO);
        assert_non_null(strstr(err.text, calls[i]));
        assert_int_equal(emulation_live(), 0);
    }
}

TEST_CASE(memory_that_is_short_is_said_so)
{
    static const char *const calls[] = {"cudaMalloc", "cudaMallocAsync", "cudaHostAlloc"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct error err = {0};
        emulation_fail(calls[i], first_use(calls[i]), NO_MEMORY);
        assert_int_equal(use_device(&err), STATUS_NOMEM);
        assert_non_null(strstr(err.text, "out of memory"));
        assert_int_equal(emulation_live(), 0);
    }
}

TEST_CASE(times_that_are_not_there_yet_are_said_so)
{
    struct error err = {0};
    emulation_fail("cudaEventElapsedTime", 1, NOT_READY);
    assert_int_equal(use_device(&err), STATUS_BUSY);
    assert_non_null(strstr(err.text, "not done"));
    assert_int_equal(emulation_live(), 0);
}

TEST_CASE(kernels_that_fail_are_named)
{
    struct error err = {0};
    emulation_fail("cudaLaunchKernelEx", 1, LAUNCH_FAILURE);
    assert_int_equal(use_device(&err), STATUS_IO);
    assert_non_null(strstr(err.text, "embed"));
    assert_int_equal(emulation_live(), 0);
}

// What every call says once the device is lost: its own name, and who met it first.
static void expect_lost(enum status status, const struct error *err, const char *call)
{
    assert_int_equal(status, STATUS_IO);
    char text[96];
    (void)snprintf(text, sizeof text, "device cuda:0: %s: unspecified launch failure", call);
    if (!strstr(err->text, text))
        fail_msg("'%s' instead of '%s'", err->text, text);
    const bool first = strcmp(call, "cudaMemsetAsync") == 0;
    assert_int_equal(strstr(err->text, "(first met by cudaMemsetAsync)") == NULL, first);
}

TEST_CASE(a_lost_device_can_be_let_go)
{
    struct error err = {0};
    struct device *device = NULL;
    struct device_stream *stream = NULL;
    struct device_event *event = NULL;
    void *memory = NULL;
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, NULL),
                     STATUS_OK);
    assert_int_equal(device_stream_new(device, &stream, "test", NULL), STATUS_OK);
    assert_int_equal(device_event_new(device, &event, DEVICE_EVENT_ORDER, NULL), STATUS_OK);
    assert_int_equal(device_memory_new(stream, &memory, SIZE, NULL), STATUS_OK);
    emulation_lose(true);
    expect_lost(device_fill(stream, memory, 0, SIZE, &err), &err, "cudaMemsetAsync");
    expect_lost(device_event_record(event, stream, &err), &err, "cudaEventRecord");
    expect_lost(device_event_wait(event, &err), &err, "cudaEventSynchronize");
    bool is_done = false;
    expect_lost(device_event_query(event, &is_done, &err), &err, "cudaEventQuery");
    assert_true(is_done); // who asks until it is does not ask for ever
    expect_lost(device_stream_synchronize(stream, &err), &err, "cudaStreamSynchronize");
    device_memory_free(stream, memory, SIZE);
    device_event_free(event);
    device_stream_free(stream);
    device_close(device);
    emulation_lose(false);
    assert_int_equal(emulation_live(), 0);
}

// Memory that is short is said with the numbers, and does not spoil the device.
TEST_CASE(short_memory_is_no_loss)
{
    struct error err = {0};
    struct device *device = NULL;
    struct tensor tensor = {0};
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, NULL),
                     STATUS_OK);
    emulation_fail("cudaMalloc", 1, NO_MEMORY);
    assert_int_equal(device_tensor_new(device, &tensor, TENSOR_F32, 1, 1000, &err), STATUS_NOMEM);
    assert_non_null(strstr(err.text, "device cuda:0: cudaMalloc of 4000 bytes: out of memory: "));
    assert_int_equal(device_tensor_new(device, &tensor, TENSOR_F32, 1, 1000, &err), STATUS_OK);
    emulation_fail("cudaMemsetAsync", 1, LAUNCH_FAILURE);
    struct tensor other = {0};
    assert_int_equal(device_tensor_new(device, &other, TENSOR_F32, 1, 1000, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "device cuda:0: cudaMemsetAsync: "));
    assert_null(strstr(err.text, "first met"));
    device_tensor_free(device, &tensor);
    device_close(device);
    assert_int_equal(emulation_live(), 0);
}

TEST_CASE(what_to_do_without_a_device_is_said)
{
    static const struct {
        int code;
        const char *says;
    } cases[] = {{35,
                  "insufficient for CUDA runtime version (this build needs NVIDIA driver 580 or "
                  "later; load one, or use --device cpu)"},
                 {100, "(look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu)"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error err = {0};
        struct device *device = NULL;
        struct device_description description;
        emulation_fail("cudaGetDeviceCount", 1, cases[i].code);
        assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, &err),
                         STATUS_NOT_FOUND);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' instead of '%s'", err.text, cases[i].says);
        // Who did not ask for one is told why, not what to do.
        emulation_fail("cudaGetDeviceCount", 1, cases[i].code);
        assert_int_equal(device_open(&device, &(struct device_options){.spec = "auto"}, &err),
                         STATUS_OK);
        device_describe(device, &description);
        assert_non_null(strstr(description.reason, "no device answers"));
        assert_null(strstr(description.reason, "--device cpu"));
        device_close(device);
    }
}

TEST_CASE(properties_are_told)
{
    struct device *device = NULL;
    struct device_properties properties;
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, NULL),
                     STATUS_OK);
    device_properties(device, &properties);
    assert_string_equal(properties.product, "Emulated device 0");
    assert_string_equal(properties.uuid, "GPU-00000000-0000-0000-0000-000000000000");
    assert_int_equal(properties.compute_capability, 90);
    assert_true(properties.memory_bytes > 0);
    assert_true(properties.driver[0]);
    assert_int_equal(device_measure_rates(device, &properties.rates, NULL), STATUS_OK);
    assert_true(properties.rates.memory > 0 && properties.rates.h2d > 0);
    emulation_lose(true); // says what it knows, and does not end
    device_properties(device, &properties);
    emulation_lose(false);
    device_close(device);
    assert_int_equal(emulation_live(), 0);
}

TEST_CASE(auto_falls_back)
{
    struct error err = {0};
    struct device *device = NULL;
    struct device_description description;
    emulation_devices(0);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "auto"}, &err),
                     STATUS_OK);
    device_describe(device, &description);
    assert_string_equal(description.name, "cpu");
    assert_non_null(strstr(description.reason, "no device answers"));
    assert_true(description.fell_back);
    device_close(device);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cpu"}, &err),
                     STATUS_OK);
    device_describe(device, &description);
    assert_false(description.fell_back);
    device_close(device);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda"}, &err),
                     STATUS_NOT_FOUND);
    emulation_devices(2);
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda:2"}, &err),
                     STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "only 2"));
    assert_int_equal(device_open(&device, &(struct device_options){.spec = "cuda:1"}, &err),
                     STATUS_OK);
    device_describe(device, &description);
    assert_string_equal(description.name, "cuda:1");
    device_close(device);
    emulation_devices(1);
}

TEST_MAIN(everything_works, any_call_may_fail, pools_that_do_not_work, calls_are_named,
          memory_that_is_short_is_said_so, times_that_are_not_there_yet_are_said_so,
          kernels_that_fail_are_named, a_lost_device_can_be_let_go, short_memory_is_no_loss,
          what_to_do_without_a_device_is_said, properties_are_told, auto_falls_back)
