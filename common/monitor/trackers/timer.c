// Timed operations.
#include "common/monitor/inferstat.h"

#include "common/monitor/trackers/recent_events.h"

// An operation shows as the thread's activity only when nothing larger does.
static void show_activity(struct seat *seat, uint32_t operation, uint64_t now)
{
    if (!seat || !seat->stream.header)
        return;
    const uint64_t activity =
        atomic_load_explicit(&seat->stream.header->activity, memory_order_relaxed);
    if (activity == ACTIVITY_IDLE)
        seat_set_activity(seat, ACTIVITY_OPERATION, operation, now);
}

static void hide_activity(struct seat *seat, uint32_t operation, uint64_t now)
{
    if (!seat || !seat->stream.header)
        return;
    const uint64_t activity =
        atomic_load_explicit(&seat->stream.header->activity, memory_order_relaxed);
    if (activity == ((uint64_t)ACTIVITY_OPERATION | (uint64_t)operation << 8))
        seat_set_activity(seat, ACTIVITY_IDLE, 0, now);
}

void inferstat_timer_begin(struct inferstat_timer *timer, struct inferstat_monitor *monitor,
                           uint32_t operation)
{
    if (!timer)
        return;
    *timer = (struct inferstat_timer){.monitor = monitor, .items = -1, .bytes = -1};
    struct seat *seat = NULL;
    if (monitor_is_live(monitor)) {
        timer->operation = monitor_known_name(monitor, operation);
        seat = seat_of_thread(&monitor->seats);
    }
    timer->started_ns = clock_monotonic_ns();
    show_activity(seat, timer->operation, timer->started_ns);
}

static void record_operation(const struct inferstat_timer *timer, struct seat *seat,
                             uint64_t duration, int64_t memory, const char *extra)
{
    struct inferstat_monitor *monitor = timer->monitor;
    struct record record;
    record_init(&record, RECORD_KIND_OPERATION, monitor_wall_ns(monitor, timer->started_ns));
    record_set_name(&record, OPERATION_OPERATION, timer->operation);
    if (timer->device)
        record_set_name(&record, OPERATION_DEVICE, monitor_known_name(monitor, timer->device));
    record_set_int(&record, OPERATION_DURATION_NS, (int64_t)duration);
    record_set_int(&record, OPERATION_HOST_MEMORY, memory);
    if (timer->items >= 0)
        record_set_int(&record, OPERATION_ITEMS, monitor_plausible(timer->items));
    if (timer->bytes >= 0)
        record_set_int(&record, OPERATION_BYTES, monitor_plausible(timer->bytes));
    monitor_set_text(&record, OPERATION_EXTRA, extra);
    (void)seat_push(&monitor->seats, seat, &record, 1);
}

uint64_t inferstat_timer_end(struct inferstat_timer *timer, const char *extra)
{
    if (!timer)
        return 0;
    const uint64_t now = clock_monotonic_ns();
    const uint64_t duration = now - timer->started_ns;
    struct inferstat_monitor *monitor = timer->monitor;
    if (!monitor_is_live(monitor))
        return duration;

    struct seat *seat = seat_of_thread(&monitor->seats);
    const int64_t memory =
        atomic_load_explicit(&monitor->sampled.host_memory, memory_order_relaxed);
    record_operation(timer, seat, duration, memory, extra);
    hide_activity(seat, timer->operation, now);
    timer->monitor = NULL; // one end, one record

    struct history_entry entry = {
        .ended_ns = now,
        .started_ns = monitor_wall_ns(monitor, timer->started_ns),
        .duration_ns = duration,
        .host_memory_bytes = memory,
        .name = timer->operation,
    };
    recent_events_add(monitor, seat, INFERSTAT_EVENT_OPERATION, &entry);
    return duration;
}
