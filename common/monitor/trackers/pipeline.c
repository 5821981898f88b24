// Records pipeline runs.
#include "common/monitor/inferstat.h"

#include "common/monitor/monitor.h"
#include "common/monitor/thread_slot.h"

void inferstat_pipeline_init(struct inferstat_pipeline *pipeline)
{
    if (pipeline)
        *pipeline = (struct inferstat_pipeline){
            .batch_items = -1,
            .copy_busy_ns = -1,
            .compute_busy_ns = -1,
            .both_busy_ns = -1,
            .exposed_copy_ns = -1,
            .copy_starved_ns = -1,
            .idle_ns = -1,
            .pool_acquires = -1,
            .pool_waits = -1,
            .pool_wait_ns = -1,
            .pool_waits_below_64us = -1,
            .pool_waits_below_4096us = -1,
            .pool_available_min = -1,
            .pool_available_max = -1,
            .item_p50_ns = -1,
            .item_p95_ns = -1,
            .item_p99_ns = -1,
            .unmeasured_chunks = -1,
        };
}

static int64_t clamp(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

// Sets settings and measurements; negative ones were not measured and stay absent.
static void set_figures(struct record *record, const struct inferstat_pipeline *pipeline)
{
    const struct figure {
        unsigned column;
        int64_t value;
    } figures[] = {
        {PIPELINE_DURATION_NS, clamp(pipeline->duration_ns)},
        {PIPELINE_CHUNK_BYTES, clamp(pipeline->chunk_bytes)},
        {PIPELINE_POOL_SIZE, clamp(pipeline->pool_size)},
        {PIPELINE_PREFETCH, clamp(pipeline->prefetch)},
        {PIPELINE_BYTES_H2D, clamp(pipeline->bytes_h2d)},
        {PIPELINE_BATCH_ITEMS, pipeline->batch_items},
        {PIPELINE_COPY_BUSY_NS, pipeline->copy_busy_ns},
        {PIPELINE_COMPUTE_BUSY_NS, pipeline->compute_busy_ns},
        {PIPELINE_BOTH_BUSY_NS, pipeline->both_busy_ns},
        {PIPELINE_EXPOSED_COPY_NS, pipeline->exposed_copy_ns},
        {PIPELINE_COPY_STARVED_NS, pipeline->copy_starved_ns},
        {PIPELINE_IDLE_NS, pipeline->idle_ns},
        {PIPELINE_POOL_ACQUIRES, pipeline->pool_acquires},
        {PIPELINE_POOL_WAITS, pipeline->pool_waits},
        {PIPELINE_POOL_WAIT_NS, pipeline->pool_wait_ns},
        {PIPELINE_WAITS_64US, pipeline->pool_waits_below_64us},
        {PIPELINE_WAITS_4096US, pipeline->pool_waits_below_4096us},
        {PIPELINE_POOL_AVAILABLE_MIN, pipeline->pool_available_min},
        {PIPELINE_POOL_AVAILABLE_MAX, pipeline->pool_available_max},
        {PIPELINE_ITEM_P50_NS, pipeline->item_p50_ns},
        {PIPELINE_ITEM_P95_NS, pipeline->item_p95_ns},
        {PIPELINE_ITEM_P99_NS, pipeline->item_p99_ns},
        {PIPELINE_UNMEASURED_CHUNKS, pipeline->unmeasured_chunks},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        monitor_set_optional(record, figures[i].column, figures[i].value);
}

void inferstat_add_pipeline(struct inferstat_monitor *monitor,
                            const struct inferstat_pipeline *pipeline)
{
    if (!pipeline || !monitor_is_live(monitor) || !monitor->file)
        return;
    const uint64_t now = clock_monotonic_ns();
    uint64_t started = pipeline->started_ns;
    if (started == 0 || started > now)
        started = pipeline->duration_ns < now ? now - pipeline->duration_ns : now;

    struct record record;
    record_init(&record, RECORD_KIND_PIPELINE, monitor_wall_ns(monitor, started));
    record_set_name(&record, PIPELINE_WORKLOAD, monitor_known_name(monitor, pipeline->workload));
    record_set_name(&record, PIPELINE_DEVICE, monitor_known_name(monitor, pipeline->device));
    if (pipeline->model > 0)
        record_set_name(&record, PIPELINE_MODEL, monitor_known_name(monitor, pipeline->model));
    if (pipeline->source > 0)
        record_set_name(&record, PIPELINE_SOURCE, monitor_known_name(monitor, pipeline->source));
    // Values of a newer caller become known ones.
    const bool known = (unsigned)pipeline->result <= INFERSTAT_RESULT_CANCELLED;
    record_set_int(&record, PIPELINE_STATUS, known ? pipeline->result : INFERSTAT_RESULT_ERROR);
    record_set_int(&record, PIPELINE_SYNC,
                   pipeline->sync == INFERSTAT_SYNC_EVENTS ? INFERSTAT_SYNC_EVENTS
                                                           : INFERSTAT_SYNC_PERIODIC);
    record_set_int(&record, PIPELINE_ITEMS,
                   monitor_plausible(pipeline->items < 0 ? 0 : pipeline->items));
    set_figures(&record, pipeline);
    (void)thread_slot_push(&monitor->slots, thread_slot_current(&monitor->slots), &record, 1);
}
