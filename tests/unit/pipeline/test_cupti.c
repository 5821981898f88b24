// The overlap timeline of a run beside the activity records that CUPTI took of it: within
// 1 %.  On a CUDA device; the last line says how far apart they are, as JSON.
#include <math.h>

#include "server/device/encode.h"
#include "server/pipeline/pipeline.h"
#include "tests/support/gpu/cupti_trace.h"
#include "tests/support/test.h"

#define MB ((size_t)1024 * 1024)

// Long copies and long kernels: what an event takes longer than the work it stands behind,
// a microsecond or two, is to be little beside them.
enum { QUBITS = 16, CHUNKS = 40, SOURCE_CHUNKS = 2, CHUNK_MB = 64, BUFFERS = 2 };

static const double error_max = 0.01;

static struct {
    struct device *device;
    struct device_stream *stream;
    uint8_t *source;
    size_t source_size;
    struct encode_job job; // of a group: the first inputs of its chunk
    size_t scratch_size;
} rig;

static size_t chunk_size(void *context, uint64_t chunk)
{
    (void)context;
    return chunk < CHUNKS ? CHUNK_MB * MB : 0;
}

static const void *borrow(void *context, uint64_t chunk)
{
    (void)context;
    return rig.source + chunk % SOURCE_CHUNKS * CHUNK_MB * MB;
}

static enum status compute(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err)
{
    (void)context;
    (void)group;
    (void)size;
    struct encode_job job = rig.job;
    job.in = in;
    job.out = out;
    return device_encode(stream, &job, err);
}

static void prepare(void)
{
    struct error err = {.status = STATUS_OK};
    struct device_description description;
    device_describe(rig.device, &description);
    expect_ok(device_stream_new(rig.device, &rig.stream, "test", &err), &err);
    rig.job = (struct encode_job){.encoder = ENCODER_IQP,
                                  .type = ENCODE_F64,
                                  .qubits = QUBITS,
                                  .inputs = encoder_inputs(ENCODER_IQP, QUBITS)};
    // 1 MB a state, BUFFERS times, and a copy of the inputs.
    rig.job.samples = description.memory_available_bytes > (int64_t)(8192 * MB) ? 1024 : 128;
    rig.scratch_size = encode_scratch_size(rig.device, &rig.job);
    if (rig.scratch_size > 0)
        expect_ok(device_memory_new(rig.stream, &rig.job.scratch, rig.scratch_size, &err), &err);
    void *faults = NULL;
    expect_ok(device_memory_new(rig.stream, &faults, rig.job.samples, &err), &err);
    rig.job.faults = faults;
    rig.source_size = SOURCE_CHUNKS * CHUNK_MB * MB;
    expect_ok(device_pinned_new(rig.device, (void **)&rig.source, rig.source_size, &err), &err);
    double *numbers = (double *)(void *)rig.source;
    for (size_t i = 0; i < rig.source_size / sizeof *numbers; i++)
        numbers[i] = (double)(i % 997) / 160.0;
    expect_ok(device_stream_synchronize(rig.stream, &err), &err);
}

static void put_away(void)
{
    device_pinned_free(rig.device, rig.source, rig.source_size);
    device_memory_free(rig.stream, rig.job.faults, rig.job.samples);
    device_memory_free(rig.stream, rig.job.scratch, rig.scratch_size);
    device_stream_free(rig.stream);
}

TEST_CASE(within_a_hundredth)
{
    static struct activity list[ACTIVITY_MAX];
    struct error err = {.status = STATUS_OK};
    struct pipeline *pipeline = NULL;
    struct pipeline_figures figures;
    size_t count = 0;
    prepare();
    const struct pipeline_plan plan = {
        .chunk_bytes = CHUNK_MB * MB,
        .pool_size = 4,
        .fillers = 1,
        .prefetch = 4,
        .buffers = BUFFERS,
        .group_bytes = CHUNK_MB * MB,
        .result_bytes = rig.job.samples * 2 * sizeof(double) << QUBITS,
        .sync = PIPELINE_SYNC_EVENTS,
        .borrows = true,
        .overlap_tracking = true,
    };
    const struct pipeline_job job = {
        .name = "cupti", .chunk_size = chunk_size, .borrow = borrow, .compute = compute};
    expect_ok(pipeline_new(&pipeline, rig.device, &plan, &err), &err);
    expect_ok(pipeline_run(pipeline, &job, &figures, &err), &err); // warm

    expect_ok(cupti_trace_start(&err), &err);
    expect_ok(pipeline_run(pipeline, &job, &figures, &err), &err);
    expect_ok(cupti_trace_stop(list, ACTIVITY_MAX, &count, &err), &err);
    pipeline_free(pipeline);
    put_away();

    struct activity_figures trace;
    activity_sum(list, count, &trace);
    const double error = activity_error(&trace, &figures.overlap);
    print_message("{\"timeline_to_cupti_error\": %.5f, \"records\": %zu, "
                  "\"copy_busy_ns\": [%llu, %llu], \"compute_busy_ns\": [%llu, %llu], "
                  "\"both_ns\": [%llu, %llu]}\n",
                  fmin(error, 1e6), count,
                  (unsigned long long)figures.overlap.busy_ns[OVERLAP_COPY],
                  (unsigned long long)trace.busy_ns[OVERLAP_COPY],
                  (unsigned long long)figures.overlap.busy_ns[OVERLAP_COMPUTE],
                  (unsigned long long)trace.busy_ns[OVERLAP_COMPUTE],
                  (unsigned long long)figures.overlap.both_ns, (unsigned long long)trace.both_ns);
    assert_int_equal(figures.overlap.unmeasured, 0);
    assert_true(count >= 2 * CHUNKS);
    assert_true(error <= error_max);
}

// Whether there is a device, and CUPTI may trace it.
static enum status open_device(struct error *err)
{
    static struct activity list[ACTIVITY_MAX];
    size_t count = 0;
    enum status status = device_open(&rig.device, &(struct device_options){.spec = "cuda"}, err);
    if (status == STATUS_OK)
        status = cupti_trace_start(err);
    if (status == STATUS_OK)
        status = cupti_trace_stop(list, ACTIVITY_MAX, &count, err);
    return status;
}

int main(void)
{
    struct error err = {.status = STATUS_OK};
    if (open_device(&err) != STATUS_OK) {
        print_message("skipped: %s\n", err.text);
        device_close(rig.device);
        return 77;
    }
    const int failed = TEST_RUN(within_a_hundredth);
    device_close(rig.device);
    return failed;
}
