// Tracks model loads and the process's startup.
#include "common/monitor/inferstat.h"

#include <math.h>
#include <stdlib.h>

#include "common/core/base/text.h"
#include "common/core/base/unit.h"
#include "common/monitor/trackers/recent_events.h"
#include "common/sys/process.h"

enum { STAGES_MAX = 32 };

// What is measured of a load or a startup: its begin, and its stages, which are disjoint intervals
// in order.
struct phase {
    struct inferstat_monitor *monitor;
    enum activity activity;
    uint64_t begun_ns;
    int64_t memory_before;
    bool running;              // a stage is running: the last one
    uint64_t stage_started_ns; // when start_stage was last called, monotonic
    uint32_t stage_count;
    struct stage {
        uint32_t name;        // id of the name
        uint64_t duration_ns; // 0 until the stage has ended
        uint64_t start_ns;    // monotonic
    } stages[STAGES_MAX];
};

struct inferstat_load {
    struct phase phase; // first: begin_phase allocates the whole
    uint32_t model, device;
    int64_t device_memory_before;
    int64_t model_bytes;
    double page_cache_ratio, storage_rate, h2d_rate; // negative: absent
};

struct inferstat_startup {
    struct phase phase;
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

// ---- Phases and their stages ----------------------------------------------------

// Shows the last stage as the thread's activity.
static void set_activity(const struct phase *phase, uint64_t now)
{
    const uint32_t stage = phase->stage_count ? phase->stages[phase->stage_count - 1].name : 0;
    thread_slot_set_activity(thread_slot_current(&phase->monitor->slots), phase->activity, stage,
                             now);
}

// Allocates `size` bytes that begin with a phase, and starts it.  NULL: out of memory, or nothing
// is recorded.
static void *begin_phase(struct inferstat_monitor *monitor, size_t size, enum activity activity)
{
    if (!monitor_is_live(monitor))
        return NULL;
    struct phase *phase = calloc(1, size);
    if (!phase)
        return NULL;
    (void)thread_slot_current(&monitor->slots); // created before the clock starts
    phase->monitor = monitor;
    phase->activity = activity;
    phase->memory_before = memory_now(monitor);
    phase->begun_ns = clock_monotonic_ns();
    set_activity(phase, phase->begun_ns);
    return phase;
}

static void end_stage(struct phase *phase, uint64_t now)
{
    if (!phase->running)
        return;
    phase->running = false;
    phase->stages[phase->stage_count - 1].duration_ns += now - phase->stage_started_ns;
}

// The running stage, if any, ends.  After STAGES_MAX stages, the time of further ones is added to
// the last.
static void start_stage(struct phase *phase, const char *name)
{
    struct inferstat_monitor *monitor = phase->monitor;
    if (!monitor_is_live(monitor))
        return;
    const uint64_t now = clock_monotonic_ns();
    end_stage(phase, now);
    if (phase->stage_count < STAGES_MAX) {
        struct stage *stage = &phase->stages[phase->stage_count++];
        stage->name = monitor_known_name(monitor, inferstat_name(monitor, name));
        stage->start_ns = now;
    }
    phase->stage_started_ns = now;
    phase->running = true;
    set_activity(phase, now);
}

// Pushes the record `parent` (the load or startup) and a record for each stage, all or none.
static void push_records(const struct phase *phase, struct thread_slot *slot,
                         const struct record *parent)
{
    struct inferstat_monitor *monitor = phase->monitor;
    struct record records[1 + STAGES_MAX];
    records[0] = *parent;
    const struct ring *ring = slot ? slot->stream.ring : NULL;
    const int64_t number = ring ? (int64_t)ring_produced(ring) + 1 : 0;
    for (uint32_t i = 0; i < phase->stage_count; i++) {
        const struct stage *stage = &phase->stages[i];
        struct record *record = &records[1 + i];
        record_init(record, RECORD_KIND_LOAD_STAGE, monitor_wall_ns(monitor, stage->start_ns));
        record_set_int(record, LOAD_STAGE_PARENT, number);
        record_set_int(record, LOAD_STAGE_ORDINAL, i);
        record_set_name(record, LOAD_STAGE_STAGE, stage->name);
        record_set_int(record, LOAD_STAGE_DURATION_NS, (int64_t)stage->duration_ns);
    }
    (void)thread_slot_push(&monitor->slots, slot, records, 1 + phase->stage_count);
}

// The stages as the log has them: "device_selection=1.2ms, file_opening=30us".
static char *stages_text(char *text, size_t size, const struct phase *phase)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < phase->stage_count; i++) {
        char duration[UNIT_TEXT_SIZE];
        const struct stage *stage = &phase->stages[i];
        (void)text_append(text, size, ", ", "%s=%s",
                          names_text(phase->monitor->names, stage->name, NULL),
                          unit_format_int(duration, UNIT_DURATION, (int64_t)stage->duration_ns));
    }
    return text;
}

// ---- Loads --------------------------------------------------------------------

struct inferstat_load *inferstat_load_begin(struct inferstat_monitor *monitor, uint32_t model,
                                            uint32_t device)
{
    struct inferstat_load *load =
        begin_phase(monitor, sizeof(struct inferstat_load), ACTIVITY_LOAD);
    if (!load)
        return NULL;
    load->model = monitor_known_name(monitor, model);
    load->device = monitor_known_name(monitor, device);
    load->page_cache_ratio = load->storage_rate = load->h2d_rate = -1;
    load->device_memory_before = device_memory_now(monitor);
    return load;
}

void inferstat_load_start_stage(struct inferstat_load *load, const char *stage)
{
    if (load)
        start_stage(&load->phase, stage);
}

void inferstat_load_end_stage(struct inferstat_load *load)
{
    if (load)
        end_stage(&load->phase, clock_monotonic_ns());
}

void inferstat_load_set_model(struct inferstat_load *load, uint32_t model)
{
    if (load && monitor_is_live(load->phase.monitor))
        load->model = monitor_known_name(load->phase.monitor, model);
}

void inferstat_load_set_device(struct inferstat_load *load, uint32_t device)
{
    if (load && monitor_is_live(load->phase.monitor))
        load->device = monitor_known_name(load->phase.monitor, device);
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
    log_sink_write(&load->phase.monitor->log, INFERSTAT_LOG_INFO,
                   "[LOAD] model=%s total=%s size=%s memory_delta=%s stages=[%s]%s%s",
                   names_text(load->phase.monitor->names, load->model, NULL),
                   unit_format_int(total, UNIT_DURATION, (int64_t)duration),
                   unit_format_int(size, UNIT_BYTES, load->model_bytes),
                   unit_format_int(delta, UNIT_BYTES, memory_after - load->phase.memory_before),
                   stages_text(stages, sizeof stages, &load->phase),
                   error && *error ? " error=" : "", error ? error : "");
}

static void record_load(const struct inferstat_load *load, struct thread_slot *slot,
                        uint64_t duration, int64_t memory_after, enum inferstat_result result,
                        const char *error)
{
    struct inferstat_monitor *monitor = load->phase.monitor;
    struct record record;
    record_init(&record, RECORD_KIND_LOAD, monitor_wall_ns(monitor, load->phase.begun_ns));
    record_set_name(&record, LOAD_MODEL, load->model);
    record_set_name(&record, LOAD_DEVICE, load->device);
    record_set_int(&record, LOAD_DURATION_NS, (int64_t)duration);
    record_set_int(&record, LOAD_STATUS, (int64_t)result);
    record_set_int(&record, LOAD_MODEL_BYTES, load->model_bytes);
    record_set_int(&record, LOAD_HOST_MEMORY_BEFORE, load->phase.memory_before);
    record_set_int(&record, LOAD_HOST_MEMORY_AFTER, memory_after);
    monitor_set_optional(&record, LOAD_DEVICE_MEMORY_BEFORE, load->device_memory_before);
    monitor_set_optional(&record, LOAD_DEVICE_MEMORY_AFTER, device_memory_now(monitor));
    monitor_set_optional_real(&record, LOAD_STORAGE_RATE, load->storage_rate);
    monitor_set_optional_real(&record, LOAD_H2D_RATE, load->h2d_rate);
    monitor_set_optional_real(&record, LOAD_PAGE_CACHE_RATIO, load->page_cache_ratio);
    monitor_set_text(&record, LOAD_ERROR, error);
    push_records(&load->phase, slot, &record);
}

void inferstat_load_end(struct inferstat_load *load, enum inferstat_result result,
                        const char *error)
{
    if (!load)
        return;
    struct inferstat_monitor *monitor = load->phase.monitor;
    if (!monitor_is_live(monitor)) {
        free(load);
        return;
    }
    if ((unsigned)result > INFERSTAT_RESULT_CANCELLED)
        result = INFERSTAT_RESULT_ERROR;
    const uint64_t now = clock_monotonic_ns();
    end_stage(&load->phase, now);
    const uint64_t duration = now - load->phase.begun_ns;
    const int64_t memory_after = memory_now(monitor);
    struct thread_slot *slot = thread_slot_current(&monitor->slots);
    record_load(load, slot, duration, memory_after, result, error);
    thread_slot_set_activity(slot, ACTIVITY_IDLE, 0, now);
    if (monitor->logging)
        log_load(load, duration, memory_after, error);

    struct event_entry entry = {
        .ended_ns = now,
        .started_ns = monitor_wall_ns(monitor, load->phase.begun_ns),
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
    return begin_phase(monitor, sizeof(struct inferstat_startup), ACTIVITY_STARTUP);
}

void inferstat_startup_start_stage(struct inferstat_startup *startup, const char *stage)
{
    if (startup)
        start_stage(&startup->phase, stage);
}

void inferstat_startup_end(struct inferstat_startup *startup)
{
    if (!startup)
        return;
    struct phase *phase = &startup->phase;
    struct inferstat_monitor *monitor = phase->monitor;
    if (monitor_is_live(monitor)) {
        const uint64_t now = clock_monotonic_ns();
        end_stage(phase, now);
        const uint64_t duration = now - phase->begun_ns;
        struct thread_slot *slot = thread_slot_current(&monitor->slots);
        struct record record;
        record_init(&record, RECORD_KIND_STARTUP, monitor_wall_ns(monitor, phase->begun_ns));
        record_set_int(&record, STARTUP_DURATION_NS, (int64_t)duration);
        record_set_int(&record, STARTUP_MEMORY_START_BYTES, phase->memory_before);
        record_set_int(&record, STARTUP_MEMORY_READY_BYTES, memory_now(monitor));
        push_records(phase, slot, &record);
        thread_slot_set_activity(slot, ACTIVITY_IDLE, 0, now);
        atomic_store_explicit(&monitor->startup_ns, duration + 1, memory_order_relaxed);
    }
    free(startup);
}

void inferstat_startup_abandon(struct inferstat_startup *startup)
{
    if (!startup)
        return;
    struct inferstat_monitor *monitor = startup->phase.monitor;
    if (monitor_is_live(monitor))
        thread_slot_set_activity(thread_slot_current(&monitor->slots), ACTIVITY_IDLE, 0,
                                 clock_monotonic_ns());
    free(startup);
}
