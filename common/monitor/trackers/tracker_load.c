// Tracks model loads and the process's startup.
#include "common/monitor/inferstat.h"

#include <math.h>
#include <stdlib.h>

#include "common/core/base/unit.h"
#include "common/monitor/trackers/load_stages.h"
#include "common/monitor/trackers/recent_events.h"
#include "common/sys/process.h"

struct inferstat_load {
    struct inferstat_monitor *monitor;
    uint32_t model, device;
    uint64_t begun_ns;
    int64_t memory_before, device_memory_before;
    int64_t model_bytes;
    double page_cache_ratio, storage_rate, h2d_rate; // negative: absent
    struct load_stages stages;
};

struct inferstat_startup {
    struct inferstat_monitor *monitor;
    uint64_t begun_ns;
    int64_t memory_before;
    struct load_stages stages;
};

// Reads the resident memory; the last sample if that fails.
static int64_t memory_now(struct inferstat_monitor *monitor)
{
    const int64_t memory = process_memory_bytes();
    if (memory < 0)
        return atomic_load_explicit(&monitor->sampled.host_memory, memory_order_relaxed);
    atomic_store_explicit(&monitor->sampled.host_memory, memory, memory_order_relaxed);
    return memory;
}

static int64_t device_memory_now(const struct inferstat_monitor *monitor)
{
    return atomic_load_explicit(&monitor->sampled.device_memory, memory_order_relaxed);
}

static void set_activity(struct inferstat_monitor *monitor, enum activity activity,
                         const struct load_stages *stages, uint64_t now)
{
    const uint32_t stage = stages && stages->count ? stages->items[stages->count - 1].name : 0;
    if (monitor->file)
        thread_slot_set_activity(thread_slot_current(&monitor->slots), activity, stage, now);
}

// ---- Loads --------------------------------------------------------------------

struct inferstat_load *inferstat_load_begin(struct inferstat_monitor *monitor, uint32_t model,
                                            uint32_t device)
{
    if (!monitor_is_live(monitor))
        return NULL;
    struct inferstat_load *load = calloc(1, sizeof *load);
    if (!load)
        return NULL;
    (void)thread_slot_current(&monitor->slots); // created before the clock starts
    load->monitor = monitor;
    load->model = monitor_known_name(monitor, model);
    load->device = monitor_known_name(monitor, device);
    load->page_cache_ratio = load->storage_rate = load->h2d_rate = -1;
    load->memory_before = memory_now(monitor);
    load->device_memory_before = device_memory_now(monitor);
    load->begun_ns = clock_monotonic_ns();
    set_activity(monitor, ACTIVITY_LOAD, NULL, load->begun_ns);
    return load;
}

void inferstat_load_start_stage(struct inferstat_load *load, const char *stage)
{
    if (!load || !monitor_is_live(load->monitor))
        return;
    const uint64_t now = clock_monotonic_ns();
    load_stages_start(&load->stages, load->monitor, stage, now);
    set_activity(load->monitor, ACTIVITY_LOAD, &load->stages, now);
}

void inferstat_load_end_stage(struct inferstat_load *load)
{
    if (load)
        load_stages_end(&load->stages, clock_monotonic_ns());
}

void inferstat_load_set_model(struct inferstat_load *load, uint32_t model)
{
    if (load && monitor_is_live(load->monitor))
        load->model = monitor_known_name(load->monitor, model);
}

void inferstat_load_set_device(struct inferstat_load *load, uint32_t device)
{
    if (load && monitor_is_live(load->monitor))
        load->device = monitor_known_name(load->monitor, device);
}

void inferstat_load_set_model_bytes(struct inferstat_load *load, int64_t bytes)
{
    if (load)
        load->model_bytes = monitor_plausible(bytes);
}

void inferstat_load_set_page_cache_ratio(struct inferstat_load *load, double ratio)
{
    if (load && ratio >= 0 && ratio <= 1)
        load->page_cache_ratio = ratio;
}

void inferstat_load_set_storage_rate(struct inferstat_load *load, double bytes_per_second)
{
    if (load && isfinite(bytes_per_second))
        load->storage_rate = bytes_per_second;
}

void inferstat_load_set_h2d_rate(struct inferstat_load *load, double bytes_per_second)
{
    if (load && isfinite(bytes_per_second))
        load->h2d_rate = bytes_per_second;
}

static void log_load(const struct inferstat_load *load, uint64_t duration, int64_t memory_after,
                     const char *error)
{
    char total[UNIT_TEXT_SIZE], size[UNIT_TEXT_SIZE], delta[UNIT_TEXT_SIZE], stages[1024];
    log_sink_write(&load->monitor->log, INFERSTAT_LOG_INFO,
                   "[LOAD] model=%s total=%s size=%s memory_delta=%s stages=[%s]%s%s",
                   names_text(load->monitor->names, load->model, NULL),
                   unit_format_int(total, UNIT_DURATION, (int64_t)duration),
                   unit_format_int(size, UNIT_BYTES, load->model_bytes),
                   unit_format_int(delta, UNIT_BYTES, memory_after - load->memory_before),
                   load_stages_text(stages, sizeof stages, &load->stages, load->monitor),
                   error && *error ? " error=" : "", error ? error : "");
}

static void record_load(const struct inferstat_load *load, struct thread_slot *slot,
                        uint64_t duration, int64_t memory_after, enum inferstat_result result,
                        const char *error)
{
    struct inferstat_monitor *monitor = load->monitor;
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, monitor_wall_ns(monitor, load->begun_ns));
    record_set_name(&record, LOAD_MODEL, load->model);
    record_set_name(&record, LOAD_DEVICE, load->device);
    record_set_int(&record, LOAD_DURATION_NS, (int64_t)duration);
    record_set_int(&record, LOAD_STATUS, (int64_t)result);
    record_set_int(&record, LOAD_MODEL_BYTES, load->model_bytes);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, load->memory_before);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, memory_after);
    monitor_set_optional(&record, LOAD_DEVICE_MEMORY_BEFORE, load->device_memory_before);
    monitor_set_optional(&record, LOAD_DEVICE_MEMORY_AFTER, device_memory_now(monitor));
    monitor_set_optional_real(&record, LOAD_STORAGE_RATE, load->storage_rate);
    monitor_set_optional_real(&record, LOAD_H2D_RATE, load->h2d_rate);
    monitor_set_optional_real(&record, LOAD_PAGE_CACHE_RATIO, load->page_cache_ratio);
    monitor_set_text(&record, LOAD_ERROR, error);
    load_stages_push(&load->stages, monitor, slot, &record);
}

void inferstat_load_end(struct inferstat_load *load, enum inferstat_result result,
                        const char *error)
{
    if (!load)
        return;
    struct inferstat_monitor *monitor = load->monitor;
    if (!monitor_is_live(monitor)) {
        free(load);
        return;
    }
    if ((unsigned)result > INFERSTAT_RESULT_CANCELLED)
        result = INFERSTAT_RESULT_ERROR;
    const uint64_t now = clock_monotonic_ns();
    load_stages_end(&load->stages, now);
    const uint64_t duration = now - load->begun_ns;
    const int64_t memory_after = memory_now(monitor);
    struct thread_slot *slot = thread_slot_current(&monitor->slots);
    record_load(load, slot, duration, memory_after, result, error);
    thread_slot_set_activity(slot, ACTIVITY_IDLE, 0, now);
    if (monitor->logging)
        log_load(load, duration, memory_after, error);

    struct event_entry entry = {
        .ended_ns = now,
        .started_ns = monitor_wall_ns(monitor, load->begun_ns),
        .duration_ns = duration,
        .host_memory_bytes = memory_after,
        .name = load->model,
        .status = (int32_t)result,
    };
    free(load);
    recent_events_add(monitor, slot, INFERSTAT_EVENT_LOAD, &entry);
}

// ---- Startup ------------------------------------------------------------------

struct inferstat_startup *inferstat_startup_begin(struct inferstat_monitor *monitor)
{
    if (!monitor_is_live(monitor))
        return NULL;
    struct inferstat_startup *startup = calloc(1, sizeof *startup);
    if (!startup)
        return NULL;
    (void)thread_slot_current(&monitor->slots); // created before the clock starts
    startup->monitor = monitor;
    startup->memory_before = memory_now(monitor);
    startup->begun_ns = clock_monotonic_ns();
    set_activity(monitor, ACTIVITY_STARTUP, NULL, startup->begun_ns);
    return startup;
}

void inferstat_startup_start_stage(struct inferstat_startup *startup, const char *stage)
{
    if (!startup || !monitor_is_live(startup->monitor))
        return;
    const uint64_t now = clock_monotonic_ns();
    load_stages_start(&startup->stages, startup->monitor, stage, now);
    set_activity(startup->monitor, ACTIVITY_STARTUP, &startup->stages, now);
}

void inferstat_startup_end(struct inferstat_startup *startup)
{
    if (!startup)
        return;
    struct inferstat_monitor *monitor = startup->monitor;
    if (monitor_is_live(monitor)) {
        const uint64_t now = clock_monotonic_ns();
        load_stages_end(&startup->stages, now);
        const uint64_t duration = now - startup->begun_ns;
        struct thread_slot *slot = thread_slot_current(&monitor->slots);
        struct record record;
        record_init(&record, RECORD_KIND_STARTUP, monitor_wall_ns(monitor, startup->begun_ns));
        record_set_int(&record, STARTUP_DURATION_NS, (int64_t)duration);
        record_set_int(&record, STARTUP_MEMORY_START_BYTES, startup->memory_before);
        record_set_int(&record, STARTUP_MEMORY_READY_BYTES, memory_now(monitor));
        load_stages_push(&startup->stages, monitor, slot, &record);
        thread_slot_set_activity(slot, ACTIVITY_IDLE, 0, now);
        atomic_store_explicit(&monitor->startup_ns, duration + 1, memory_order_relaxed);
    }
    free(startup);
}

void inferstat_startup_abandon(struct inferstat_startup *startup)
{
    if (!startup)
        return;
    if (monitor_is_live(startup->monitor))
        set_activity(startup->monitor, ACTIVITY_IDLE, NULL, clock_monotonic_ns());
    free(startup);
}
