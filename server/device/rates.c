// Measures how fast a device copies, and the CPU computes: the best of its rounds after a warm-up,
// timed by its events.
#include <string.h>

#include "common/sys/clock.h"
#include "server/device/cpu/cpu_stream.h"
#include "server/device/cpu/kernels.h"
#include "server/device/device_ops.h"
#include "server/device/properties.h"
#include "server/device/stream.h"

enum {
    MEBIBYTE = 1024 * 1024,
    // Copies must exceed the caches; a GPU's are larger, and it is faster.  A round within it
    // reads and writes 1 GiB, or what fits.
    HOST_SIZE = 32 * MEBIBYTE,
    GPU_SIZE = 512 * MEBIBYTE,
    PART_SIZE = MEBIBYTE,
    ROUNDS_MAX = 1000,
    // Parts of a round of arithmetic, for each thread: some 4 ms in all, so that queueing and
    // timing a round, up to half a millisecond in virtual machines, take little of it.
    PARTS_OF_THREAD = 16,
    PART_ROUNDS = 1 << 17,
};

// Rounds end here, but for the first two.
#define ROUNDS_NS 50e6

// So long copies run before they are timed: the clocks and the link of an idle device are low.
#define GPU_WARM_UP_NS UINT64_C(150000000)
#define CPU_WARM_UP_NS UINT64_C(20000000)

// Two undisturbed rounds differ by less.
#define STEADY_RATIO 0.9

struct bench {
    struct device_stream *stream;
    struct device_event *before, *after;
    size_t device_size;
    uint64_t warm_up_ns;
    void *from, *to; // device memory of device_size
    void *pinned;    // of HOST_SIZE
    size_t parts;    // of a round of arithmetic
};

static void bench_end(struct bench *bench, struct device *device)
{
    if (bench->stream) {
        device_memory_free(bench->stream, bench->from, bench->device_size);
        device_memory_free(bench->stream, bench->to, bench->device_size);
    }
    device_stream_free(bench->stream);
    device_pinned_free(device, bench->pinned, HOST_SIZE);
    device_event_free(bench->before);
    device_event_free(bench->after);
}

// Allocates `from` and `to`, smaller ones where the device's memory is in use.
static enum status allocate(struct bench *bench, struct error *err)
{
    for (;; bench->device_size /= 2) {
        enum status status =
            device_memory_new(bench->stream, &bench->from, bench->device_size, err);
        if (status == STATUS_OK)
            status = device_memory_new(bench->stream, &bench->to, bench->device_size, err);
        if (status != STATUS_NOMEM || bench->device_size <= HOST_SIZE)
            return status;
        device_memory_free(bench->stream, bench->from, bench->device_size);
        bench->from = NULL;
    }
}

// All memory is touched, so that no round pays for that.
static enum status bench_begin(struct bench *bench, struct device *device, struct error *err)
{
    const bool is_cpu = device->ops->launch != NULL;
    bench->device_size = is_cpu ? HOST_SIZE : GPU_SIZE;
    bench->warm_up_ns = is_cpu ? CPU_WARM_UP_NS : GPU_WARM_UP_NS;
    enum status status = device_stream_new(device, &bench->stream, "calibrate", err);
    if (status == STATUS_OK)
        status = device_event_new(device, &bench->before, DEVICE_EVENT_TIMED, err);
    if (status == STATUS_OK)
        status = device_event_new(device, &bench->after, DEVICE_EVENT_TIMED, err);
    if (status == STATUS_OK)
        status = allocate(bench, err);
    if (status == STATUS_OK)
        status = device_pinned_new(device, &bench->pinned, HOST_SIZE, err);
    if (status == STATUS_OK)
        status = device_fill(bench->stream, bench->from, 1, bench->device_size, err);
    if (status == STATUS_OK)
        status = device_fill(bench->stream, bench->to, 2, bench->device_size, err);
    if (status == STATUS_OK)
        memset(bench->pinned, 3, HOST_SIZE);
    return status;
}

// ---- What is measured -----------------------------------------------------

static enum status copy_in(struct bench *bench, struct error *err)
{
    return device_copy_in(bench->stream, bench->to, bench->pinned, HOST_SIZE, err);
}

static enum status copy_within(struct bench *bench, struct error *err)
{
    return device_copy_within(bench->stream, bench->to, bench->from, bench->device_size, err);
}

struct copy_job {
    unsigned char *to;
    const unsigned char *from;
};

static void copy_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct copy_job *job = context;
    memcpy(job->to + part * PART_SIZE, job->from + part * PART_SIZE, PART_SIZE);
}

static enum status copy_parts(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)err;
    struct copy_job job = *(const struct copy_job *)arguments;
    thread_pool_run(pool, copy_part, &job, HOST_SIZE / PART_SIZE);
    return STATUS_OK;
}

// By all threads: one alone need not reach what the memory gives.
static enum status copy_by_threads(struct bench *bench, struct error *err)
{
    struct copy_job job = {.to = bench->to, .from = bench->from};
    return cpu_launch(bench->stream, "copy", copy_parts, &job, sizeof job, err);
}

static void multiply_add_part(void *context, size_t part, unsigned int thread)
{
    (void)context;
    (void)thread;
    float value = (float)part;
    (void)cpu_kernels_best()->multiply_add(&value, PART_ROUNDS);
}

static enum status multiply_add_parts(const void *arguments, struct thread_pool *pool,
                                      struct error *err)
{
    (void)err;
    thread_pool_run(pool, multiply_add_part, NULL, *(const size_t *)arguments);
    return STATUS_OK;
}

static enum status compute(struct bench *bench, struct error *err)
{
    return cpu_launch(bench->stream, "multiply_add", multiply_add_parts, &bench->parts,
                      sizeof bench->parts, err);
}

// ---- Measuring ------------------------------------------------------------

static enum status time_round(struct bench *bench,
                              enum status (*queue)(struct bench *bench, struct error *err),
                              double *ns, struct error *err)
{
    enum status status = device_event_record(bench->before, bench->stream, err);
    if (status == STATUS_OK)
        status = queue(bench, err);
    if (status == STATUS_OK)
        status = device_event_record(bench->after, bench->stream, err);
    if (status == STATUS_OK)
        status = device_event_wait(bench->after, err);
    if (status == STATUS_OK)
        status = device_event_elapsed(bench->before, bench->after, ns, err);
    return status;
}

static enum status warm_up(struct bench *bench,
                           enum status (*queue)(struct bench *bench, struct error *err),
                           struct error *err)
{
    const uint64_t until_ns = clock_monotonic_ns() + bench->warm_up_ns;
    enum status status = STATUS_OK;
    double ns;
    do
        status = time_round(bench, queue, &ns, err);
    while (status == STATUS_OK && clock_monotonic_ns() < until_ns);
    return status;
}

// The rate of the fastest round of `amount` bytes or operations; `*steady` becomes false where the
// next one was far off.
static enum status measure(struct bench *bench, double *rate, size_t amount, bool *steady,
                           enum status (*queue)(struct bench *bench, struct error *err),
                           struct error *err)
{
    double spent = 0.0;
    double next = 0.0;
    enum status status = warm_up(bench, queue, err);
    for (int round = 0;
         status == STATUS_OK && round < ROUNDS_MAX && (round < 2 || spent < ROUNDS_NS); round++) {
        double ns = 0.0;
        status = time_round(bench, queue, &ns, err);
        if (status != STATUS_OK)
            break;
        spent += ns;
        double found = ns > 0.0 ? (double)(uint64_t)((double)amount * 1e9 / ns) : 0.0;
        if (found > *rate) {
            next = *rate;
            *rate = found;
        } else if (found > next) {
            next = found;
        }
    }
    *steady = *steady && next >= STEADY_RATIO * *rate;
    return status;
}

static enum status measure_flops(struct bench *bench, struct device *device,
                                 struct device_rates *rates, struct error *err)
{
    struct device_description description;
    float value = 1.0F;
    device_describe(device, &description);
    bench->parts = (size_t)PARTS_OF_THREAD * description.threads;
    const double operations =
        cpu_kernels_best()->multiply_add(&value, PART_ROUNDS) * (double)bench->parts;
    return measure(bench, &rates->flops, (size_t)operations, &rates->steady, compute, err);
}

enum status device_measure_rates(struct device *device, struct device_rates *out, struct error *err)
{
    struct bench bench = {0};
    struct device_rates rates = {.steady = true};
    enum status status = bench_begin(&bench, device, err);
    if (status == STATUS_OK)
        status = measure(&bench, &rates.memory, 2 * bench.device_size, &rates.steady,
                         device->ops->launch ? copy_by_threads : copy_within, err);
    if (status == STATUS_OK)
        status = measure(&bench, &rates.h2d, HOST_SIZE, &rates.steady, copy_in, err);
    if (status == STATUS_OK && device->ops->launch)
        status = measure_flops(&bench, device, &rates, err);
    bench_end(&bench, device);
    if (status == STATUS_OK)
        *out = rates;
    return status;
}
