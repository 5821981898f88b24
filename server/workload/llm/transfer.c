#include "server/workload/llm/transfer.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/monitor/inferstat.h"
#include "common/sys/clock.h"
#include "server/pipeline/autotune.h"

enum { ROUNDING = 4096 };

// A transfer in progress.
struct transfer {
    struct transfer_piece *pieces;
    size_t count;
    const struct byte_source *source;
    size_t chunk_bytes;
    uint64_t chunks_before; // copied already
    pthread_mutex_t lock;
    unsigned int reading; // threads, now
    uint64_t reading_since_ns;
    uint64_t read_ns, bytes;
};

uint64_t transfer_floor_ns(const struct transfer_figures *figures)
{
    const uint64_t copy_ns = figures->pipeline.overlap.busy_ns[OVERLAP_COPY];
    return figures->read_ns > copy_ns ? figures->read_ns : copy_ns;
}

// ---- Chunks ---------------------------------------------------------------

// A part of a piece.
struct part {
    const struct transfer_piece *piece; // NULL: after the last
    uint64_t offset;                    // within it
    size_t size;
};

// Numbers the chunks of all pieces.
static void cut(struct transfer *transfer, size_t chunk_bytes)
{
    uint64_t chunk = 0;
    transfer->chunk_bytes = chunk_bytes;
    for (size_t i = 0; i < transfer->count; i++) {
        transfer->pieces[i].first_chunk = chunk;
        chunk += (transfer->pieces[i].from->bytes + chunk_bytes - 1) / chunk_bytes;
    }
}

static struct part part_of(const struct transfer *transfer, uint64_t chunk)
{
    size_t low = 0;
    size_t high = transfer->count; // the last piece that begins at or before the chunk
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (transfer->pieces[middle].first_chunk <= chunk)
            low = middle;
        else
            high = middle;
    }
    const struct transfer_piece *piece = &transfer->pieces[low];
    uint64_t offset = (chunk - piece->first_chunk) * transfer->chunk_bytes;
    if (offset >= piece->from->bytes)
        return (struct part){0};
    uint64_t left = piece->from->bytes - offset;
    size_t size = left < transfer->chunk_bytes ? (size_t)left : transfer->chunk_bytes;
    return (struct part){.piece = piece, .offset = offset, .size = size};
}

// ---- The pipeline's questions ---------------------------------------------

static size_t chunk_size(void *context, uint64_t chunk)
{
    const struct transfer *transfer = context;
    return part_of(transfer, transfer->chunks_before + chunk).size;
}

static void *place(void *context, uint64_t chunk)
{
    const struct transfer *transfer = context;
    struct part part = part_of(transfer, transfer->chunks_before + chunk);
    assert(part.piece);
    return (unsigned char *)part.piece->to + part.offset;
}

// Counts the time in which at least one thread reads.
static void count_reading(struct transfer *transfer, bool begins, size_t bytes)
{
    uint64_t now_ns = clock_monotonic_ns();
    (void)pthread_mutex_lock(&transfer->lock);
    if (begins && transfer->reading++ == 0)
        transfer->reading_since_ns = now_ns;
    if (!begins && --transfer->reading == 0)
        transfer->read_ns += now_ns - transfer->reading_since_ns;
    transfer->bytes += bytes;
    (void)pthread_mutex_unlock(&transfer->lock);
}

static enum status fill(void *context, uint64_t chunk, void *to, size_t size, struct error *err)
{
    struct transfer *transfer = context;
    struct part part = part_of(transfer, transfer->chunks_before + chunk);
    assert(part.piece); // the pipeline asks for no chunk of size 0
    count_reading(transfer, true, 0);
    const struct gguf_tensor *from = part.piece->from;
    enum status status =
        byte_source_read(transfer->source, from->offset + part.offset, to, size, err);
    count_reading(transfer, false, status == STATUS_OK ? size : 0);
    if (status == STATUS_OK)
        return status;
    return error_prefix(err, status, "tensor '%.*s'", (int)from->name.size, from->name.data);
}

// ---- Running --------------------------------------------------------------

struct wish {
    struct tuning_host host;
    struct tuning_request request;
};

static enum status make_plan(const struct transfer *transfer, struct device *device,
                             struct wish *wish, struct pipeline_plan *plan, struct error *err)
{
    wish->request = (struct tuning_request){.pool_metrics = -1, .overlap_tracking = -1};
    tuning_host_of(&wish->host, device);
    enum status status = tuning_read_environment(&wish->request, err);
    if (status == STATUS_OK)
        status = tuning_plan(plan, &wish->host, &wish->request, err);
    // A slot is at most as large as the largest piece.
    uint64_t largest = 1;
    for (size_t i = 0; i < transfer->count; i++)
        if (transfer->pieces[i].from->bytes > largest)
            largest = transfer->pieces[i].from->bytes;
    if (plan->chunk_bytes > largest)
        plan->chunk_bytes = ((size_t)largest + ROUNDING - 1) / ROUNDING * ROUNDING;
    return status;
}

// A trial with the first chunks determines the number of reading threads.
static enum status run_pipeline(struct transfer *transfer, struct pipeline *pipeline,
                                const struct wish *wish, bool (*cancelled)(void),
                                struct transfer_figures *figures, struct error *err)
{
    const struct pipeline_job job = {
        .name = "model_load",
        .context = transfer,
        .chunk_size = chunk_size,
        .fill = fill,
        .place = place,
        .cancelled = cancelled,
    };
    const uint64_t begun_ns = clock_monotonic_ns();
    struct pipeline_figures rest = {0};
    enum status status = autotune_run(pipeline, &job, &figures->plan, &wish->host, &wish->request,
                                      &figures->pipeline, err);
    if (status == STATUS_OK) {
        transfer->chunks_before = figures->pipeline.chunks;
        status = pipeline_run(pipeline, &job, &rest, err);
        pipeline_figures_add(&figures->pipeline, &rest);
    }
    figures->pipeline.duration_ns = clock_monotonic_ns() - begun_ns;
    return status;
}

enum status transfer_run(struct transfer_piece *pieces, size_t count, struct device *device,
                         const struct byte_source *source, bool (*cancelled)(void),
                         struct transfer_figures *figures, struct error *err)
{
    memset(figures, 0, sizeof *figures);
    figures->started_ns = clock_monotonic_ns();
    if (count == 0)
        return STATUS_OK;
    struct transfer transfer = {
        .pieces = pieces, .count = count, .source = source, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct pipeline *pipeline = NULL;
    struct wish wish;
    enum status status = make_plan(&transfer, device, &wish, &figures->plan, err);
    if (status == STATUS_OK)
        status = pipeline_new(&pipeline, device, &figures->plan, err);
    if (status == STATUS_OK) {
        cut(&transfer, figures->plan.chunk_bytes);
        status = run_pipeline(&transfer, pipeline, &wish, cancelled, figures, err);
    }
    pipeline_free(pipeline);
    figures->bytes = transfer.bytes;
    figures->read_ns = transfer.read_ns;
    return status;
}
