// Timed operations.
#include "common/monitor/inferstat.h"

#include "common/monitor/trackers/recent_events.h"

// Sets the thread's activity if it is `from`: an operation is shown as the activity only if
// the thread is otherwise idle, and ends only its own.
static void change_activity(struct thread_slot *slot, uint64_t from, enum activity activity,
                            uint32_t name, uint64_t now)
{
    if (slot && slot->stream.header &&
        atomic_load_explicit(&slot->stream.header->activity, memory_order_relaxed) == from)
        thread_slot_set_activity(slot, activity, name, now);
}

void inferstat_timer_begin(struct inferstat_timer *timer, struct inferstat_monitor *monitor,
                           uint32_t operation)
{
    if (!timer)
        return;
    *timer = (struct inferstat_timer){.monitor = monitor, .items = -1, .bytes = -1};
    struct thread_slot *slot = NULL;
    if (monitor_is_live(monitor)) {
        timer->operation = monitor_known_name(monitor, operation);
        slot = thread_slot_current(&monitor->slots);
    }
    timer->started_ns = clock_monotonic_ns();
    change_activity(slot, ACTIVITY_IDLE, ACTIVITY_OPERATION, timer->operation, timer->started_ns);
}

static void record_operation(const struct inferstat_timer *timer, struct thread_slot *slot,
                             uint64_t duration, int64_t memory, enum operation_column column,
                             const char *text)
{
    struct inferstat_monitor *monitor = timer->monitor;
    struct record record;
    record_init(&record, RECORD_KIND_OPERATION, monitor_wall_ns(monitor, timer->started_ns));
    record_set_name(&record, OPERATION_OPERATION, timer->operation);
    if (timer->device)
        record_set_name(&record, OPERATION_DEVICE, monitor_known_name(monitor, timer->device));
    record_set_int(&record, OPERATION_DURATION_NS, (int64_t)duration);
    record_set_int(&record, OPERATION_HOST_MEMORY, memory);
    monitor_set_optional(&record, OPERATION_ITEMS, timer->items);
    monitor_set_optional(&record, OPERATION_BYTES, timer->bytes);
    monitor_set_text(&record, column, text);
    (void)thread_slot_push(&monitor->slots, slot, &record, 1);
}

// `text` is the value of `column`; NULL: none.
static uint64_t end_timer(struct inferstat_timer *timer, enum operation_column column,
                          const char *text)
{
    if (!timer)
        return 0;
    const uint64_t now = clock_monotonic_ns();
    const uint64_t duration = now - timer->started_ns;
    struct inferstat_monitor *monitor = timer->monitor;
    if (!monitor_is_live(monitor))
        return duration;

    struct thread_slot *slot = thread_slot_current(&monitor->slots);
    const int64_t memory =
        atomic_load_explicit(&monitor->sampled.host_memory, memory_order_relaxed);
    record_operation(timer, slot, duration, memory, column, text);
    change_activity(slot, ACTIVITY_OPERATION | (uint64_t)timer->operation << 8, ACTIVITY_IDLE, 0,
                    now);
    timer->monitor = NULL; // a second end does nothing

    struct event_entry entry = {
        .ended_ns = now,
        .started_ns = monitor_wall_ns(monitor, timer->started_ns),
        .duration_ns = duration,
        .host_memory_bytes = memory,
        .name = timer->operation,
    };
    recent_events_add(monitor, slot, INFERSTAT_EVENT_OPERATION, &entry);
    return duration;
}

uint64_t inferstat_timer_end(struct inferstat_timer *timer, const char *extra)
{
    return end_timer(timer, OPERATION_EXTRA, extra);
}

uint64_t inferstat_timer_fail(struct inferstat_timer *timer, const char *error)
{
    // The text alone says that the operation failed.
    return end_timer(timer, OPERATION_ERROR, error && *error ? error : "unknown");
}
