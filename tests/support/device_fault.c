#include "tests/support/device_fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"
#include "server/device/cpu/cpu_stream.h"
#include "server/device/device_ops.h"
#include "server/device/encode.h"
#include "server/device/properties.h"

// Memory that was freed, poisoned and kept.
struct remains {
    struct remains *next;
    void *memory;
    size_t size;
};

struct fault {
    struct device base; // first: the wrappers see only this
    struct device *inner;
    struct device_fault_options options;
    // Counts and flags, relaxed: they order nothing, as what they stand for would not.
    _Atomic uint64_t calls[DEVICE_FAULT_COUNT];
    _Atomic uint64_t queued; // copies, fills and kernels together
    atomic_bool lost;
    // Allocation and its end happen on a stream of their own, one caller at a time.
    pthread_mutex_t lock;
    struct device_stream *memory;
    struct remains *remains;
};

static inline struct fault *fault_of(struct device *device)
{
    return (struct fault *)device;
}

static inline bool fault_is_lost(struct fault *fault)
{
    return atomic_load_explicit(&fault->lost, memory_order_relaxed);
}

struct fault_stream {
    struct cpu_stream queue; // first: it is one
    struct device_stream *inner;
};

static const struct kind_line {
    const char *name;
    enum status status;
} kinds[] = {
#define KIND_LINE(name, text, status) {text, STATUS_##status},
    DEVICE_FAULT_TABLE(KIND_LINE)
#undef KIND_LINE
};

static struct fault_stream *stream_of(struct device_stream *stream)
{
    return (struct fault_stream *)stream;
}

// ---- What goes wrong when -------------------------------------------------

// How long the N-th copy, fill or kernel sleeps.
static uint64_t delay_ns(const struct device_fault_options *options, uint64_t number)
{
    if (options->delay_max_ns == 0)
        return 0;
    // splitmix64 of Steele, Lea, Flood 2014, at step `number`.
    uint64_t x = options->seed + number * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % (options->delay_max_ns + 1);
}

uint64_t device_fault_calls(const struct device *device, enum device_fault_kind kind)
{
    const struct fault *fault = (const struct fault *)device;
    return atomic_load_explicit(&fault->calls[kind], memory_order_relaxed);
}

static enum status fault_lost(struct error *err)
{
    return error_set(err, STATUS_IO, "the device was lost");
}

// Counts a call; whether it is to fail.
static bool is_to_fail(struct fault *fault, enum device_fault_kind kind)
{
    uint64_t number = 1 + atomic_fetch_add_explicit(&fault->calls[kind], 1, memory_order_relaxed);
    return number == fault->options.fail_at[kind];
}

static enum status fault_meet(struct fault *fault, enum device_fault_kind kind, struct error *err)
{
    if (is_to_fail(fault, kind))
        return error_set(err, kinds[kind].status, "%s: made to fail", kinds[kind].name);
    return fault_is_lost(fault) ? fault_lost(err) : STATUS_OK;
}

// What a queued call brings along, decided when it was queued.
struct fate {
    uint64_t delay_ns;
    bool fails, loses;
};

static struct fate next_fate(struct fault *fault, enum device_fault_kind kind)
{
    uint64_t number = 1 + atomic_fetch_add_explicit(&fault->queued, 1, memory_order_relaxed);
    return (struct fate){.delay_ns = delay_ns(&fault->options, number),
                         .fails = is_to_fail(fault, kind),
                         .loses = number == fault->options.lose_at};
}

// Meets it, on the stream's thread: sleeps, fails, or lets the work go on.
static enum status meet_fate(struct fault *fault, const struct fate *fate, struct error *err)
{
    if (fate->delay_ns > 0)
        clock_sleep_until_ns(clock_monotonic_ns() + fate->delay_ns);
    if (fate->loses)
        atomic_store_explicit(&fault->lost, true, memory_order_relaxed);
    if (fault_is_lost(fault))
        return fault_lost(err);
    return fate->fails ? error_set(err, STATUS_IO, "made to fail") : STATUS_OK;
}

// ---- Work, on the stream's thread -----------------------------------------

// Until the inner device has done it.
static enum status finish(struct fault_stream *stream, enum status status, struct error *err)
{
    return status == STATUS_OK ? device_stream_synchronize(stream->inner, err) : status;
}

struct copy_work {
    struct fate fate;
    enum device_copy copy;
    void *to;
    const void *from;
    size_t size;
};

// Where the copy writes: to the host itself, or to the inner device.
static enum status poison_target(struct fault_stream *stream, const struct copy_work *work,
                                 struct error *err)
{
    if (work->copy == DEVICE_COPY_OUT) {
        memset(work->to, DEVICE_FAULT_POISON, work->size);
        return STATUS_OK;
    }
    enum status status = device_fill(stream->inner, work->to, DEVICE_FAULT_POISON, work->size, err);
    return finish(stream, status, err);
}

static enum status run_copy(struct cpu_stream *queue, void *arguments, struct error *err)
{
    struct fault_stream *stream = (struct fault_stream *)queue;
    struct fault *fault = fault_of(queue->base.device);
    const struct copy_work *work = arguments;
    enum status status = STATUS_OK;
    if (fault->options.poison && !fault_is_lost(fault))
        status = poison_target(stream, work, err);
    if (status == STATUS_OK)
        status = meet_fate(fault, &work->fate, err);
    if (status == STATUS_OK)
        status = fault->inner->ops->copy(stream->inner, work->copy, work->to, work->from,
                                         work->size, err);
    return finish(stream, status, err);
}

static enum status fault_copy(struct device_stream *stream, enum device_copy copy, void *to,
                              const void *from, size_t size, struct error *err)
{
    static const struct copy_line {
        struct command command;
        enum device_fault_kind kind;
    } lines[] = {
#define COPY_LINE(name_, text) {{.name = (text), .run = run_copy}, DEVICE_FAULT_COPY_##name_},
        DEVICE_COPY_TABLE(COPY_LINE)
#undef COPY_LINE
    };
    struct copy_work work = {
        .fate = next_fate(fault_of(stream->device), lines[copy].kind),
        .copy = copy,
        .to = to,
        .from = from,
        .size = size,
    };
    return cpu_stream_add(&stream_of(stream)->queue, &lines[copy].command, &work, sizeof work, err);
}

struct fill_work {
    struct fate fate;
    void *to;
    int byte;
    size_t size;
};

static enum status run_fill(struct cpu_stream *queue, void *arguments, struct error *err)
{
    struct fault_stream *stream = (struct fault_stream *)queue;
    const struct fill_work *work = arguments;
    enum status status = meet_fate(fault_of(queue->base.device), &work->fate, err);
    if (status == STATUS_OK)
        status = device_fill(stream->inner, work->to, work->byte, work->size, err);
    return finish(stream, status, err);
}

static enum status fault_fill(struct device_stream *stream, void *to, int byte, size_t size,
                              struct error *err)
{
    static const struct command command = {.name = "fill", .run = run_fill};
    struct fill_work work = {
        .fate = next_fate(fault_of(stream->device), DEVICE_FAULT_FILL),
        .to = to,
        .byte = byte,
        .size = size,
    };
    return cpu_stream_add(&stream_of(stream)->queue, &command, &work, sizeof work, err);
}

struct kernel_work {
    struct fate fate;
    cpu_kernel *kernel;
    alignas(max_align_t) unsigned char arguments[CPU_KERNEL_ARGUMENTS_MAX];
};

static enum status run_kernel(struct cpu_stream *queue, void *arguments, struct error *err)
{
    const struct kernel_work *work = arguments;
    enum status status = meet_fate(fault_of(queue->base.device), &work->fate, err);
    return status == STATUS_OK ? work->kernel(work->arguments, queue->pool, err) : status;
}

static enum status fault_launch(struct device_stream *stream, const char *name, cpu_kernel *kernel,
                                const void *arguments, size_t size, struct error *err)
{
    struct cpu_stream *queue = &stream_of(stream)->queue;
    enum status status = cpu_stream_pool(queue, err);
    if (status != STATUS_OK)
        return status;
    struct command command = {.name = name, .run = run_kernel};
    struct kernel_work work = {
        .fate = next_fate(fault_of(stream->device), DEVICE_FAULT_KERNEL),
        .kernel = kernel,
    };
    memcpy(work.arguments, arguments, size);
    return cpu_stream_add(queue, &command, &work, sizeof work, err);
}

struct encode_work {
    struct fate fate;
    struct encode_job job;
};

// What the kernel is about to write.
static enum status poison_states(struct fault_stream *stream, const struct encode_job *job,
                                 struct error *err)
{
    enum status status =
        device_fill(stream->inner, job->out, DEVICE_FAULT_POISON, encode_out_size(job), err);
    if (status == STATUS_OK)
        status = device_fill(stream->inner, job->faults, DEVICE_FAULT_POISON, job->samples, err);
    return finish(stream, status, err);
}

static enum status run_encode(struct cpu_stream *queue, void *arguments, struct error *err)
{
    struct fault_stream *stream = (struct fault_stream *)queue;
    struct fault *fault = fault_of(queue->base.device);
    const struct encode_work *work = arguments;
    enum status status = STATUS_OK;
    if (fault->options.poison && !fault_is_lost(fault))
        status = poison_states(stream, &work->job, err);
    if (status == STATUS_OK)
        status = meet_fate(fault, &work->fate, err);
    if (status == STATUS_OK)
        status = device_encode(stream->inner, &work->job, err);
    return finish(stream, status, err);
}

static enum status fault_encode(struct device_stream *stream, const struct encode_job *job,
                                struct error *err)
{
    static const struct command command = {.name = "encode", .run = run_encode};
    struct encode_work work = {
        .fate = next_fate(fault_of(stream->device), DEVICE_FAULT_KERNEL),
        .job = *job,
    };
    return cpu_stream_add(&stream_of(stream)->queue, &command, &work, sizeof work, err);
}

static size_t fault_encode_scratch(const struct device *device, const struct encode_job *job)
{
    return encode_scratch_size(((const struct fault *)device)->inner, job);
}

// A device that is lost fails every stream.
static enum status run_look(struct cpu_stream *queue, void *arguments, struct error *err)
{
    (void)arguments;
    return fault_is_lost(fault_of(queue->base.device)) ? fault_lost(err) : STATUS_OK;
}

static enum status fault_event_record(struct device_event *event, struct device_stream *stream,
                                      struct error *err)
{
    static const struct command look = {.name = "record", .run = run_look};
    (void)!cpu_stream_add(&stream_of(stream)->queue, &look, "", 0, NULL); // recorded anyway
    return cpu_event_record(event, stream, err);
}

static enum status fault_stream_synchronize(struct device_stream *stream, struct error *err)
{
    static const struct command look = {.name = "synchronize", .run = run_look};
    (void)!cpu_stream_add(&stream_of(stream)->queue, &look, "", 0, NULL);
    return cpu_stream_synchronize(stream, err);
}

static void fault_stream_free(struct device_stream *stream)
{
    cpu_stream_end(&stream_of(stream)->queue);
    device_stream_free(stream_of(stream)->inner);
    free(stream_of(stream));
}

static enum status fault_stream_new(struct device *device, struct device_stream **out,
                                    const char *name, struct error *err)
{
    struct fault *fault = fault_of(device);
    enum status status = fault_meet(fault, DEVICE_FAULT_STREAM, err);
    if (status != STATUS_OK)
        return status;
    struct fault_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return error_set(err, STATUS_NOMEM, "stream '%s': out of memory", name);
    struct device_description description;
    device_describe(fault->inner, &description);
    status = device_stream_new(fault->inner, &stream->inner, name, err);
    if (status == STATUS_OK)
        status = cpu_stream_begin(&stream->queue, device, name, description.threads, err);
    if (status != STATUS_OK) {
        fault_stream_free(&stream->queue.base);
        return status;
    }
    *out = &stream->queue.base;
    return STATUS_OK;
}

static enum status fault_event_new(struct device *device, struct device_event **out,
                                   enum device_event_kind kind, struct error *err)
{
    enum status status = fault_meet(fault_of(device), DEVICE_FAULT_EVENT, err);
    return status == STATUS_OK ? cpu_event_new(device, out, kind, err) : status;
}

// ---- Memory ---------------------------------------------------------------

// Fills device memory and waits for it; under the lock.
static enum status poison(struct fault *fault, void *memory, size_t size, struct error *err)
{
    if (!fault->options.poison)
        return STATUS_OK;
    enum status status = device_fill(fault->memory, memory, DEVICE_FAULT_POISON, size, err);
    return status == STATUS_OK ? device_stream_synchronize(fault->memory, err) : status;
}

static enum status fault_memory_new(struct device_stream *stream, void **out, size_t size,
                                    struct error *err)
{
    struct fault *fault = fault_of(stream->device);
    enum status status = fault_meet(fault, DEVICE_FAULT_MEMORY, err);
    if (status != STATUS_OK)
        return status;
    (void)pthread_mutex_lock(&fault->lock);
    const struct device_ops *ops = fault->inner->ops;
    status = ops->memory_new(fault->memory, out, size, err);
    if (status == STATUS_OK) {
        status = poison(fault, *out, size, err);
        if (status == STATUS_OK)
            status = device_stream_synchronize(fault->memory, err);
        if (status != STATUS_OK)
            ops->memory_free(fault->memory, *out, size);
    }
    (void)pthread_mutex_unlock(&fault->lock);
    return status;
}

struct free_work {
    void *memory;
    size_t size;
};

// Keeps freed memory until the end; false where it is not to be, or nothing can remember
// it.  Under the lock.
static bool keep(struct fault *fault, void *memory, size_t size)
{
    struct remains *remains = fault->options.poison ? malloc(sizeof *remains) : NULL;
    if (!remains)
        return false;
    remains->next = fault->remains;
    remains->memory = memory;
    remains->size = size;
    fault->remains = remains;
    return true;
}

static enum status run_free(struct cpu_stream *queue, void *arguments, struct error *err)
{
    struct fault *fault = fault_of(queue->base.device);
    const struct free_work *work = arguments;
    (void)pthread_mutex_lock(&fault->lock);
    enum status status = poison(fault, work->memory, work->size, err);
    if (!keep(fault, work->memory, work->size))
        fault->inner->ops->memory_free(fault->memory, work->memory, work->size);
    (void)pthread_mutex_unlock(&fault->lock);
    return status;
}

static void fault_memory_free(struct device_stream *stream, void *memory, size_t size)
{
    static const struct command command = {.name = "free", .run = run_free, .always = true};
    struct free_work work = {.memory = memory, .size = size};
    (void)!cpu_stream_add(&stream_of(stream)->queue, &command, &work, sizeof work, NULL);
}

static enum status fault_pinned_new(struct device *device, void **out, size_t size,
                                    struct error *err)
{
    struct fault *fault = fault_of(device);
    enum status status = fault_meet(fault, DEVICE_FAULT_PINNED, err);
    if (status == STATUS_OK)
        status = device_pinned_new(fault->inner, out, size, err);
    if (status == STATUS_OK && fault->options.poison)
        memset(*out, DEVICE_FAULT_POISON, size);
    return status;
}

static void fault_pinned_free(struct device *device, void *memory, size_t size)
{
    device_pinned_free(fault_of(device)->inner, memory, size);
}

// ---- Tensors and their operations: the inner device's ---------------------

static enum status fault_allocate(struct device *device, void **out, size_t size, struct error *err)
{
    struct fault *fault = fault_of(device);
    enum status status = fault_meet(fault, DEVICE_FAULT_MEMORY, err);
    return status == STATUS_OK ? fault->inner->ops->allocate(fault->inner, out, size, err) : status;
}

static void fault_release(struct device *device, void *memory, size_t size)
{
    struct device *inner = fault_of(device)->inner;
    inner->ops->release(inner, memory, size);
}

static enum status fault_synchronize(struct device *device, struct error *err)
{
    return fault_is_lost(fault_of(device)) ? fault_lost(err)
                                           : device_synchronize(fault_of(device)->inner, err);
}

// Defines fault_NAME, which calls the inner device's with `arguments`.
#define FORWARD(name, arguments, ...)                                                              \
    static enum status fault_##name(struct device *device, __VA_ARGS__, struct error *err)         \
    {                                                                                              \
        struct device *inner = fault_of(device)->inner;                                            \
        return inner->ops->name arguments;                                                         \
    }

FORWARD(upload, (inner, to, from, size, err), void *to, const void *from, size_t size)
FORWARD(download, (inner, to, from, size, err), void *to, const void *from, size_t size)
FORWARD(embed, (inner, out, table, ids, err), struct tensor *out, const struct tensor *table,
        const uint32_t *ids)
FORWARD(matmul, (inner, out, in, weight, err), struct tensor *out, const struct tensor *in,
        const struct tensor *weight)
FORWARD(rms_norm, (inner, out, in, weight, epsilon, err), struct tensor *out,
        const struct tensor *in, const struct tensor *weight, float epsilon)
FORWARD(rope, (inner, x, table, position, heads, pairs, err), struct tensor *x,
        const struct tensor *table, size_t position, size_t heads, enum rope_pairs pairs)
FORWARD(attention, (inner, out, query, keys, values, position, heads, kv_heads, window, err),
        struct tensor *out, const struct tensor *query, const struct tensor *keys,
        const struct tensor *values, size_t position, size_t heads, size_t kv_heads, size_t window)
FORWARD(swiglu, (inner, gate, up, err), struct tensor *gate, const struct tensor *up)
FORWARD(add, (inner, x, y, err), struct tensor *x, const struct tensor *y)
FORWARD(scatter_add, (inner, x, y, rows, weights, err), struct tensor *x, const struct tensor *y,
        const uint32_t *rows, const float *weights)

// ---- The device -----------------------------------------------------------

static void fault_describe(const struct device *device, struct device_description *out)
{
    device_describe(((const struct fault *)device)->inner, out);
}

static void fault_properties(const struct device *device, struct device_properties *out)
{
    device_properties(((const struct fault *)device)->inner, out);
}

static void free_remains(struct fault *fault)
{
    while (fault->remains) {
        struct remains *next = fault->remains->next;
        fault->inner->ops->memory_free(fault->memory, fault->remains->memory, fault->remains->size);
        free(fault->remains);
        fault->remains = next;
    }
}

static void fault_close(struct device *device)
{
    struct fault *fault = fault_of(device);
    free_remains(fault);
    device_stream_free(fault->memory);
    device_close(fault->inner);
    (void)pthread_mutex_destroy(&fault->lock);
    free(fault);
}

static const struct device_ops fault_ops = {
    .name = "fault",
    .close = fault_close,
    .describe = fault_describe,
    .properties = fault_properties,
    .synchronize = fault_synchronize,
    .allocate = fault_allocate,
    .release = fault_release,
    .upload = fault_upload,
    .download = fault_download,
    .embed = fault_embed,
    .matmul = fault_matmul,
    .rms_norm = fault_rms_norm,
    .rope = fault_rope,
    .attention = fault_attention,
    .swiglu = fault_swiglu,
    .add = fault_add,
    .scatter_add = fault_scatter_add,
    .memory_new = fault_memory_new,
    .memory_free = fault_memory_free,
    .pinned_new = fault_pinned_new,
    .pinned_free = fault_pinned_free,
    .stream_new = fault_stream_new,
    .stream_free = fault_stream_free,
    .stream_synchronize = fault_stream_synchronize,
    .stream_wait = cpu_stream_wait,
    .event_new = fault_event_new,
    .event_free = cpu_event_free,
    .event_record = fault_event_record,
    .event_wait = cpu_event_wait,
    .event_query = cpu_event_query,
    .event_elapsed = cpu_event_elapsed,
    .copy = fault_copy,
    .fill = fault_fill,
    .launch = fault_launch,
    .encode = fault_encode,
    .encode_scratch = fault_encode_scratch,
};

enum status device_fault_open(struct device **out, struct device *inner,
                              const struct device_fault_options *options, struct error *err)
{
    struct fault *fault = calloc(1, sizeof *fault);
    if (!fault)
        return error_set(err, STATUS_NOMEM, "fault device: out of memory");
    enum status status = device_stream_new(inner, &fault->memory, "memory", err);
    if (status != STATUS_OK) {
        free(fault);
        return status;
    }
    fault->base.ops = &fault_ops;
    fault->base.spin = inner->spin;
    (void)snprintf(fault->base.reason, sizeof fault->base.reason, "%.*s",
                   (int)sizeof fault->base.reason - 1, inner->reason);
    fault->inner = inner;
    fault->options = *options;
    (void)pthread_mutex_init(&fault->lock, NULL);
    *out = &fault->base;
    return STATUS_OK;
}
