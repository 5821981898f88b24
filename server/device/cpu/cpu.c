// The CPU back end: memory of this process, kernels chosen when it is opened, and
// a pool of threads.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/sys/process.h"
#include "server/device/cpu/encode_parts.h"
#include "server/device/cpu/blas.h"
#include "server/device/cpu/cpu_stream.h"
#include "server/device/cpu/kernels.h"
#include "server/device/cpu/network/network_cpu.h"
#include "server/device/cpu/thread_pool.h"
#include "server/device/device_ops.h"
#include "server/device/properties.h"

struct cpu {
    struct device base; // first: the wrappers see only this
    const struct cpu_kernels *kernels;
    struct thread_pool *pool;
    // Attention's scores, one stretch of `scores_stride` a thread; grows with the
    // longest context seen.
    float *scores;
    size_t scores_stride;
    // Rows rounded for a product, which grow with the largest one seen.
    struct cpu_rounded rounded;
    size_t rounded_room; // groups
};

enum {
    THREADS_MAX = 1024,
    // Multiply-adds below which waking the other threads costs more than it saves.
    PARALLEL_MIN = 64 * 1024,
    // Weight rows of one part of a product: a multiple of every kernel's tile.
    PART_ROWS = 48,
    ALIGNMENT = 256, // of memory
    // Bytes from which on memory gets pages of its own.
    MAPPED_MIN = 1024 * 1024,
};

static struct cpu *cpu_of(struct device *device)
{
    return (struct cpu *)device;
}

struct thread_pool *cpu_thread_pool(struct device *device)
{
    return cpu_of(device)->pool;
}

// ---- Opening --------------------------------------------------------------

static void cpu_close(struct device *device)
{
    struct cpu *cpu = cpu_of(device);
    thread_pool_free(cpu->pool);
    free(cpu->scores);
    free(cpu->rounded.values);
    free(cpu->rounded.scales);
    free(cpu);
}

static enum status cpu_open(struct device **out, const struct device_options *options,
                            unsigned int ordinal, struct error *err)
{
    // All of them are this machine, each with threads of its own.
    if (ordinal >= DEVICE_CPU_MAX)
        return error_set(err, STATUS_INVALID, "device cpu:%u: there are %d (numbered from 0)",
                         ordinal, DEVICE_CPU_MAX);
    if (options->threads > THREADS_MAX)
        return error_set(err, STATUS_INVALID, "device cpu: %u threads: more than %d",
                         options->threads, THREADS_MAX);
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return error_no_memory(err, "device cpu");
    cpu->kernels = cpu_kernels_best();

    struct process_host host;
    process_host_read(&host);
    unsigned int threads = options->threads ? options->threads : (unsigned int)host.cpu_count;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    enum status status = thread_pool_new(&cpu->pool, threads, err);
    if (status != STATUS_OK) {
        cpu_close(&cpu->base);
        return status;
    }
    *out = &cpu->base;
    return STATUS_OK;
}

static void cpu_describe(const struct device *device, struct device_description *out)
{
    const struct cpu *cpu = (const struct cpu *)device;
    (void)snprintf(out->kernels, sizeof out->kernels, "%s", cpu->kernels->name);
    out->threads = thread_pool_threads(cpu->pool);
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_size = sysconf(_SC_PAGESIZE);
    out->memory_bytes = pages > 0 && page_size > 0 ? (int64_t)pages * page_size : 0;
    struct process_limits limits;
    process_limits_read(&limits, NULL);
    out->memory_available_bytes = limits.memory_available_bytes;
    (void)snprintf(out->memory_cgroup, sizeof out->memory_cgroup, "%s", limits.memory_cgroup);
}

static void cpu_properties(const struct device *device, struct device_properties *out)
{
    (void)device;
    struct process_host host;
    process_host_read(&host);
    (void)snprintf(out->product, sizeof out->product, "%.90s", host.cpu);
    (void)snprintf(out->driver, sizeof out->driver, "Linux %.64s", host.kernel);
}

static enum status cpu_synchronize(struct device *device, struct error *err)
{
    (void)device; // every operation has finished when its call returns
    (void)err;
    return STATUS_OK;
}

// ---- Memory ---------------------------------------------------------------

static enum status cpu_copy(struct device *device, void *to, const void *from, size_t size,
                            struct error *err)
{
    (void)device;
    (void)err;
    memcpy(to, from, size);
    return STATUS_OK;
}

// Large pieces are mapped: zeroed by the system when first touched, in huge pages
// where it has them, and given back at once when freed.
static void *map_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, size, MADV_HUGEPAGE); // only a wish
    return memory;
}

static void *heap_memory(size_t size)
{
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return aligned_alloc(ALIGNMENT, rounded);
}

static enum status cpu_memory_new(struct device_stream *stream, void **out, size_t size,
                                  struct error *err)
{
    (void)stream;
    void *memory = size >= MAPPED_MIN ? map_memory(size) : heap_memory(size);
    if (!memory)
        return error_set(err, STATUS_NOMEM, "device cpu: no memory for %zu bytes", size);
    *out = memory;
    return STATUS_OK;
}

static enum status cpu_allocate(struct device *device, void **out, size_t size, struct error *err)
{
    (void)device;
    enum status status = cpu_memory_new(NULL, out, size, err);
    if (status == STATUS_OK && size < MAPPED_MIN)
        memset(*out, 0, size);
    return status;
}

static void cpu_release(struct device *device, void *memory, size_t size)
{
    (void)device;
    if (size >= MAPPED_MIN)
        (void)munmap(memory, size);
    else
        free(memory);
}

struct free_arguments {
    void *memory;
    size_t size;
};

static enum status run_free(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)err;
    const struct free_arguments *freed = arguments;
    cpu_release(stream->base.device, freed->memory, freed->size);
    return STATUS_OK;
}

static void cpu_memory_free(struct device_stream *stream, void *memory, size_t size)
{
    static const struct command command = {.name = "free", .run = run_free, .always = true};
    struct free_arguments freed = {.memory = memory, .size = size};
    // A failure of the stream is told by others: the memory is freed all the same.
    (void)!cpu_stream_add((struct cpu_stream *)stream, &command, &freed, sizeof freed, NULL);
}

static enum status cpu_pinned_new(struct device *device, void **out, size_t size, struct error *err)
{
    (void)device;
    void *memory = map_memory(size);
    if (!memory)
        return error_set(err, STATUS_NOMEM, "device cpu: no pinned memory for %zu bytes", size);
    (void)mlock(memory, size); // only a wish
    *out = memory;
    return STATUS_OK;
}

static void cpu_pinned_free(struct device *device, void *memory, size_t size)
{
    (void)device;
    (void)munmap(memory, size);
}

// ---- Copies ---------------------------------------------------------------

struct copy_arguments {
    void *to;
    const void *from;
    size_t size;
};

static enum status run_copy(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)stream;
    (void)err;
    const struct copy_arguments *copy = arguments;
    memcpy(copy->to, copy->from, copy->size);
    return STATUS_OK;
}

static enum status cpu_stream_copy(struct device_stream *stream, enum device_copy copy, void *to,
                                   const void *from, size_t size, struct error *err)
{
    static const struct command commands[] = {
#define COPY_COMMAND(name_, text) {.name = (text), .run = run_copy},
        DEVICE_COPY_TABLE(COPY_COMMAND)
#undef COPY_COMMAND
    };
    struct copy_arguments arguments = {.to = to, .from = from, .size = size};
    return cpu_stream_add((struct cpu_stream *)stream, &commands[copy], &arguments,
                          sizeof arguments, err);
}

struct fill_arguments {
    void *to;
    int byte;
    size_t size;
};

static enum status run_fill(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)stream;
    (void)err;
    const struct fill_arguments *fill = arguments;
    memset(fill->to, fill->byte, fill->size);
    return STATUS_OK;
}

static enum status cpu_stream_fill(struct device_stream *stream, void *to, int byte, size_t size,
                                   struct error *err)
{
    static const struct command command = {.name = "fill", .run = run_fill};
    struct fill_arguments arguments = {.to = to, .byte = byte, .size = size};
    return cpu_stream_add((struct cpu_stream *)stream, &command, &arguments, sizeof arguments, err);
}

// ---- Operations -----------------------------------------------------------

static float *row_of(const struct tensor *tensor, size_t row)
{
    return (float *)tensor->data + row * tensor->columns;
}

static enum status cpu_embed(struct device *device, struct tensor *out, const struct tensor *table,
                             const uint32_t *ids, struct error *err)
{
    (void)device;
    (void)err;
    const size_t row_bytes = tensor_row_bytes(table->type, table->columns);
    for (size_t r = 0; r < out->rows; r++)
        tensor_widen(table->type, row_of(out, r),
                     (const unsigned char *)table->data + ids[r] * row_bytes, out->columns);
    return STATUS_OK;
}

struct matmul_task {
    struct cpu_product product;
    cpu_matmul_kernel *kernel;
    size_t outputs;
};

static void matmul_part(void *context, size_t part, unsigned int thread)
{
    (void)thread;
    const struct matmul_task *task = context;
    size_t first = part * PART_ROWS;
    size_t last = first + PART_ROWS < task->outputs ? first + PART_ROWS : task->outputs;
    task->kernel(&task->product, first, last);
}

// Rounds all rows of `in`; sums share the memory of the scales.
static enum status round_rows(struct cpu *cpu, const struct tensor *in, struct error *err)
{
    enum { STRIP = 8 }; // groups
    struct cpu_rounded *rounded = &cpu->rounded;
    rounded->groups = (in->columns / CPU_GROUP + STRIP - 1) / STRIP * STRIP;
    const size_t groups = in->rows * rounded->groups;
    if (groups > cpu->rounded_room) {
        free(rounded->values);
        free(rounded->scales);
        rounded->values = aligned_alloc(ALIGNMENT, groups * CPU_GROUP);
        rounded->scales = calloc(2 * groups, sizeof *rounded->scales);
        cpu->rounded_room = rounded->values && rounded->scales ? groups : 0;
        if (cpu->rounded_room == 0)
            return error_no_memory(err, "matmul");
    }
    rounded->sums = rounded->scales + groups;
    for (size_t r = 0; r < in->rows; r++)
        cpu->kernels->round(rounded, r, row_of(in, r), in->columns);
    return STATUS_OK;
}

static enum status cpu_matmul(struct device *device, struct tensor *out, const struct tensor *in,
                              const struct tensor *weight, struct error *err)
{
    struct cpu *cpu = cpu_of(device);
    const bool has_blocks = tensor_formats[weight->type].group > 0;
    enum status status = has_blocks ? round_rows(cpu, in, err) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    struct matmul_task task = {
        .product = {.out = out->data,
                    .out_stride = out->columns,
                    .in = in->data,
                    .rounded = cpu->rounded,
                    .rows = in->rows,
                    .k = in->columns,
                    .weight = weight->data,
                    .type = weight->type},
        .kernel = has_blocks ? cpu->kernels->matmul_blocks : cpu->kernels->matmul[weight->type],
        .outputs = weight->rows,
    };
    if (in->rows * in->columns * weight->rows < PARALLEL_MIN)
        task.kernel(&task.product, 0, task.outputs);
    else
        thread_pool_run(cpu->pool, matmul_part, &task, (task.outputs + PART_ROWS - 1) / PART_ROWS);
    return STATUS_OK;
}

static enum status cpu_rms_norm(struct device *device, struct tensor *out, const struct tensor *in,
                                const struct tensor *weight, float epsilon, struct error *err)
{
    (void)err;
    const struct cpu *cpu = cpu_of(device);
    size_t n = in->columns;
    const float *w = weight->data;
    for (size_t r = 0; r < in->rows; r++) {
        const float *x = row_of(in, r);
        float *y = row_of(out, r);
        float scale = 1.0F / sqrtf(cpu->kernels->dot(x, x, n) / (float)n + epsilon);
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * scale * w[i];
    }
    return STATUS_OK;
}

static enum status cpu_rope(struct device *device, struct tensor *x, const struct tensor *table,
                            size_t position, size_t heads, enum rope_pairs pairs, struct error *err)
{
    (void)device;
    (void)err;
    size_t head_size = x->columns / heads;
    // From the first element of a pair to the second, and to the next pair's first.
    const size_t apart = pairs == ROPE_HALVES ? table->columns / 2 : 1;
    const size_t step = pairs == ROPE_HALVES ? 1 : 2;
    for (size_t r = 0; r < x->rows; r++) {
        const float *turn = row_of(table, position + r);
        for (size_t head = 0; head < heads; head++) {
            float *pair = row_of(x, r) + head * head_size;
            for (size_t i = 0; i < table->columns; i += 2, pair += step) {
                float a = pair[0];
                float b = pair[apart];
                pair[0] = a * turn[i] - b * turn[i + 1];
                pair[apart] = a * turn[i + 1] + b * turn[i];
            }
        }
    }
    return STATUS_OK;
}

struct attention_task {
    const struct cpu *cpu;
    struct tensor out, query, keys, values;
    size_t position, window, heads, group, head_size;
};

// One head of one row.
static void attention_part(void *context, size_t part, unsigned int thread)
{
    const struct attention_task *task = context;
    const struct cpu *cpu = task->cpu;
    size_t row = part / task->heads;
    size_t head = part % task->heads;
    size_t size = task->head_size;
    size_t kv_offset = head / task->group * size;
    size_t end = task->position + row + 1;
    size_t first = end > task->window ? end - task->window : 0;
    float *scores = cpu->scores + thread * cpu->scores_stride;
    struct cpu_heads heads = {.first = row_of(&task->keys, first) + kv_offset,
                              .stride = task->keys.columns,
                              .count = end - first,
                              .size = size};

    const float *query = row_of(&task->query, row) + head * size;
    cpu->kernels->scores(scores, &heads, query, 1.0F / sqrtf((float)size));
    cpu->kernels->softmax(scores, heads.count);
    heads.first = row_of(&task->values, first) + kv_offset;
    cpu->kernels->mix(row_of(&task->out, row) + head * size, &heads, scores);
}

// Room for `capacity` scores a thread.
static enum status reserve_scores(struct cpu *cpu, size_t capacity, struct error *err)
{
    if (capacity <= cpu->scores_stride)
        return STATUS_OK;
    size_t stride = (capacity + 15) & ~(size_t)15; // threads do not share a cache line
    float *scores = calloc(stride, thread_pool_threads(cpu->pool) * sizeof *scores);
    if (!scores)
        return error_set(err, STATUS_NOMEM, "attention: no memory for a context of %zu", capacity);
    free(cpu->scores);
    cpu->scores = scores;
    cpu->scores_stride = stride;
    return STATUS_OK;
}

static enum status cpu_attention(struct device *device, struct tensor *out,
                                 const struct tensor *query, const struct tensor *keys,
                                 const struct tensor *values, size_t position, size_t heads,
                                 size_t kv_heads, size_t window, struct error *err)
{
    struct cpu *cpu = cpu_of(device);
    enum status status = reserve_scores(cpu, keys->rows, err);
    if (status != STATUS_OK)
        return status;
    struct attention_task task = {
        .cpu = cpu,
        .out = *out,
        .query = *query,
        .keys = *keys,
        .values = *values,
        .position = position,
        .window = window ? window : SIZE_MAX,
        .heads = heads,
        .group = heads / kv_heads,
        .head_size = query->columns / heads,
    };
    size_t parts = query->rows * heads;
    size_t work = 2 * query->rows * query->columns * (position + query->rows);
    if (work >= PARALLEL_MIN) {
        thread_pool_run(cpu->pool, attention_part, &task, parts);
    } else {
        for (size_t part = 0; part < parts; part++)
            attention_part(&task, part, 0);
    }
    return STATUS_OK;
}

static enum status cpu_swiglu(struct device *device, struct tensor *gate, const struct tensor *up,
                              struct error *err)
{
    (void)err;
    for (size_t r = 0; r < gate->rows; r++)
        cpu_of(device)->kernels->swiglu(row_of(gate, r), row_of(up, r), gate->columns);
    return STATUS_OK;
}

static enum status cpu_add(struct device *device, struct tensor *x, const struct tensor *y,
                           struct error *err)
{
    (void)device;
    (void)err;
    for (size_t r = 0; r < x->rows; r++) {
        float *a = row_of(x, r);
        const float *b = row_of(y, y->rows == 1 ? 0 : r);
        for (size_t i = 0; i < x->columns; i++)
            a[i] += b[i];
    }
    return STATUS_OK;
}

static enum status cpu_scatter_add(struct device *device, struct tensor *x, const struct tensor *y,
                                   const uint32_t *rows, const float *weights, struct error *err)
{
    (void)err;
    const struct cpu *cpu = cpu_of(device);
    for (size_t r = 0; r < y->rows; r++)
        cpu->kernels->accumulate(row_of(x, rows[r]), weights[r], row_of(y, r), y->columns);
    return STATUS_OK;
}

const struct device_ops device_cpu_ops = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .properties = cpu_properties,
    .synchronize = cpu_synchronize,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .upload = cpu_copy,
    .download = cpu_copy,
    .weight_types = (1U << TENSOR_TYPE_COUNT) - 1,
    .embed = cpu_embed,
    .matmul = cpu_matmul,
    .rms_norm = cpu_rms_norm,
    .rope = cpu_rope,
    .attention = cpu_attention,
    .swiglu = cpu_swiglu,
    .add = cpu_add,
    .scatter_add = cpu_scatter_add,
    .memory_new = cpu_memory_new,
    .memory_free = cpu_memory_free,
    .pinned_new = cpu_pinned_new,
    .pinned_free = cpu_pinned_free,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .stream_synchronize = cpu_stream_synchronize,
    .stream_wait = cpu_stream_wait,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_query = cpu_event_query,
    .event_elapsed = cpu_event_elapsed,
    .copy = cpu_stream_copy,
    .fill = cpu_stream_fill,
    .launch = cpu_stream_launch,
    .gemm_open = cpu_gemm_open,
    .encode = cpu_encode,
    .encode_scratch = cpu_encode_scratch,
    .network_new = cpu_network_new,
    .network_run = cpu_network_run,
    .network_memory = cpu_network_memory,
    .network_free = cpu_network_free,
};
