#include "tests/unit/pipeline/pipeline_rig.h"

#include <time.h>

#include "server/device/cpu/cpu_stream.h"
#include "tests/support/test.h"

uint8_t rig_byte(uint64_t position)
{
    return (uint8_t)((position * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

// Kernels that run anywhere copy; those of the CPU back end change what they read.
static uint8_t result_byte(const struct rig *rig, uint8_t in, uint64_t group)
{
    return rig->anywhere ? in : (uint8_t)(in ^ (0x5a + group));
}

void rig_sleep(uint64_t number, uint64_t most_ns)
{
    if (most_ns == 0)
        return;
    const uint64_t ns = (number * UINT64_C(0xd1342543de82ef95) >> 20) % most_ns;
    const struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    (void)nanosleep(&pause, NULL);
}

static size_t chunk_size(void *context, uint64_t chunk)
{
    const struct rig *rig = context;
    const uint64_t begin = chunk * rig->chunk_bytes;
    if (begin >= rig->total_bytes)
        return 0;
    const uint64_t left = rig->total_bytes - begin;
    return left < rig->chunk_bytes ? (size_t)left : rig->chunk_bytes;
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    struct rig *rig = context;
    const unsigned int now = atomic_fetch_add(&rig->filling, 1) + 1;
    unsigned int seen = atomic_load(&rig->filling_most);
    while (now > seen && !atomic_compare_exchange_weak(&rig->filling_most, &seen, now))
        ;
    for (int i = 0; rig->fillers_meet && i < 20000 && atomic_load(&rig->filling_most) < 2; i++)
        rig_sleep(1, 1000000);
    memcpy(to, rig->source + chunk * rig->chunk_bytes, size);
    rig_sleep(chunk, rig->fill_delay_max_ns);
    (void)atomic_fetch_sub(&rig->filling, 1);
    if ((int64_t)chunk == rig->fill_fails_at)
        return error_set(err, STATUS_CORRUPT, "chunk %d is bad", (int)chunk);
    return STATUS_OK;
}

static const void *borrow(void *context, uint64_t chunk)
{
    const struct rig *rig = context;
    return rig->source + chunk * rig->chunk_bytes;
}

static bool group_ends(void *context, uint64_t chunk)
{
    const struct rig *rig = context;
    return (chunk + 1) % rig->group_chunks == 0;
}

struct arguments {
    struct rig *rig;
    uint64_t group;
    const uint8_t *in;
    uint8_t *out;
    size_t size;
};

static size_t group_bytes(const struct rig *rig)
{
    return (size_t)rig->group_chunks * rig->chunk_bytes;
}

// Checks all it reads; writes the results.
static enum status kernel(const void *arguments, struct thread_pool *pool, struct error *err)
{
    (void)pool;
    (void)err;
    const struct arguments *a = arguments;
    const uint8_t *want = a->rig->source + a->group * group_bytes(a->rig);
    if (memcmp(a->in, want, a->size) != 0)
        (void)atomic_fetch_add(&a->rig->wrong_inputs, 1);
    for (size_t i = 0; i < a->size; i++)
        a->out[i] = result_byte(a->rig, a->in[i], a->group);
    (void)atomic_fetch_add(&a->rig->kernels_done, 1);
    return STATUS_OK;
}

static enum status compute(void *context, uint64_t group, struct device_stream *stream,
                           const void *in, size_t size, void *out, struct error *err)
{
    struct rig *rig = context;
    const struct arguments arguments = {rig, group, in, out, size};
    enum status status =
        rig->anywhere ? device_copy_within(stream, out, in, size, err)
                      : cpu_launch(stream, "check", kernel, &arguments, sizeof arguments, err);
    if (status == STATUS_OK)
        (void)atomic_fetch_add(&rig->kernels_queued, 1);
    if (status == STATUS_OK && (int64_t)group == rig->compute_fails_at)
        return error_set(err, STATUS_NO_DATA, "group %d has no kernel", (int)group);
    return status;
}

static size_t size_of_group(const struct rig *rig, uint64_t group)
{
    const uint64_t begin = group * group_bytes(rig);
    const uint64_t left = rig->total_bytes - begin;
    return left < group_bytes(rig) ? (size_t)left : group_bytes(rig);
}

static size_t result_size(void *context, uint64_t group)
{
    return size_of_group(context, group);
}

static enum status take(void *context, uint64_t group, const void *result, size_t size,
                        struct error *err)
{
    struct rig *rig = context;
    rig->out_of_order = rig->out_of_order || group != rig->taken;
    rig->taken++;
    rig_sleep(group, rig->take_delay_max_ns);
    const uint8_t *bytes = result;
    const uint8_t *source = rig->source + group * group_bytes(rig);
    bool wrong = rig->job.result_size ? size != size_of_group(rig, group) : size != 0 || result;
    for (size_t i = 0; i < size && !wrong; i++)
        wrong = bytes[i] != result_byte(rig, source[i], group);
    if (wrong)
        (void)atomic_fetch_add(&rig->wrong_results, 1);
    if ((int64_t)group == rig->take_fails_at)
        return error_set(err, STATUS_FULL, "no room for group %d", (int)group);
    return STATUS_OK;
}

enum { PAGE = 4096 };

bool rig_on_cuda(void)
{
#ifdef RIG_ON_CUDA
    return true;
#else
    return false;
#endif
}

void rig_init(struct rig *rig, size_t chunk_bytes, size_t total_bytes, uint64_t group_chunks)
{
    memset(rig, 0, sizeof *rig);
    rig->chunk_bytes = chunk_bytes;
    rig->total_bytes = total_bytes;
    rig->group_chunks = group_chunks;
    rig->anywhere = rig_on_cuda();
    rig->fill_fails_at = rig->compute_fails_at = rig->take_fails_at = RIG_NEVER;
    rig->job = (struct pipeline_job){
        .name = "rig",
        .context = rig,
        .chunk_size = chunk_size,
        .fill = fill,
        .group_ends = group_ends,
        .compute = compute,
        .result_size = result_size,
        .take = take,
    };
    rig->source = aligned_alloc(PAGE, (total_bytes / PAGE + 1) * PAGE);
    assert_non_null(rig->source);
    for (size_t i = 0; i < total_bytes; i++)
        rig->source[i] = rig_byte(i);
}

void rig_deinit(struct rig *rig)
{
    free(rig->source);
}

void rig_lends(struct rig *rig)
{
    rig->job.fill = NULL;
    rig->job.borrow = borrow;
}

void rig_keeps_results(struct rig *rig)
{
    rig->job.result_size = NULL;
}

uint64_t rig_chunks(const struct rig *rig)
{
    return (rig->total_bytes + rig->chunk_bytes - 1) / rig->chunk_bytes;
}

uint64_t rig_groups(const struct rig *rig)
{
    return (rig_chunks(rig) + rig->group_chunks - 1) / rig->group_chunks;
}

struct pipeline_plan rig_plan(const struct rig *rig, unsigned int pool, unsigned int fillers,
                              unsigned int prefetch, unsigned int buffers)
{
    return (struct pipeline_plan){
        .chunk_bytes = rig->chunk_bytes,
        .pool_size = pool,
        .fillers = fillers,
        .prefetch = prefetch,
        .buffers = buffers,
        .group_bytes = group_bytes(rig),
        .result_bytes = group_bytes(rig),
        .out_bytes = rig->job.result_size ? group_bytes(rig) : 0,
        .borrows = rig->job.borrow != NULL,
        .pool_metrics = true,
        .overlap_tracking = true,
    };
}

struct device *rig_device(const struct device_fault_options *options)
{
    const struct device_options where = {.spec = rig_on_cuda() ? "cuda" : "cpu", .threads = 1};
    struct device *device = NULL;
    assert_int_equal(device_open(&device, &where, NULL), STATUS_OK);
    struct device *outer = device;
    if (options)
        assert_int_equal(device_fault_open(&outer, device, options, NULL), STATUS_OK);
    return outer;
}

enum status rig_run(struct rig *rig, struct device *device, const struct pipeline_plan *plan,
                    struct pipeline_figures *figures, struct error *err)
{
    struct pipeline *pipeline = NULL;
    memset(figures, 0, sizeof *figures);
    enum status status = pipeline_new(&pipeline, device, plan, err);
    if (status == STATUS_OK)
        status = pipeline_run(pipeline, &rig->job, figures, err);
    pipeline_free(pipeline);
    return status;
}

atomic_bool rig_gate_is_open;

enum status rig_gate(__attribute__((unused)) const void *arguments,
                     __attribute__((unused)) struct thread_pool *pool,
                     __attribute__((unused)) struct error *err)
{
    while (!atomic_load(&rig_gate_is_open))
        rig_sleep(1, 1000000);
    return STATUS_OK;
}
