// The local API: history, summary and listeners, over the events of all threads.
#include "common/monitor/trackers/recent_events.h"

#include <stdlib.h>

#include "common/core/base/array.h"

// Entries of all threads, oldest first.
struct merged {
    struct event_entry *entries;
    size_t count;
};

// Reads the events of a kind from all slots.  The caller holds their lock.
static size_t read_slots(const struct inferstat_monitor *monitor, enum inferstat_event_kind kind,
                         struct event_entry *entries, size_t room)
{
    const size_t limit = monitor->slots.limits[kind];
    size_t count = 0;
    for (const struct thread_slot *slot = monitor->slots.first; slot && count < room;
         slot = slot->next) {
        const size_t wanted = room - count < limit ? room - count : limit;
        count +=
            event_ring_read(&slot->events, kind, slot->mark.counts[kind], entries + count, wanted);
    }
    return count;
}

// Merges the last `limit` events of a kind from all threads; none when out of memory.  The
// caller frees `entries`.
static struct merged merge(struct inferstat_monitor *monitor, enum inferstat_event_kind kind)
{
    struct merged merged = {.entries = NULL};
    const uint64_t limit = monitor->slots.limits[kind];
    (void)pthread_mutex_lock(&monitor->slots.lock);
    uint64_t room = 0;
    for (const struct thread_slot *slot = monitor->slots.first; slot; slot = slot->next) {
        const uint64_t there = event_ring_count(&slot->events, kind) - slot->mark.counts[kind];
        room += there < limit ? there : limit;
    }
    if (room > 0)
        merged.entries = calloc(room, sizeof *merged.entries);
    if (merged.entries)
        merged.count = read_slots(monitor, kind, merged.entries, room);
    (void)pthread_mutex_unlock(&monitor->slots.lock);

    if (merged.count > 1)
        qsort(merged.entries, merged.count, sizeof *merged.entries, array_compare_first);
    if (merged.count > limit) {
        memmove(merged.entries, merged.entries + (merged.count - limit),
                limit * sizeof *merged.entries);
        merged.count = limit;
    }
    return merged;
}

// Converts an entry to the public struct.
static void fill_event(const struct inferstat_monitor *monitor, enum inferstat_event_kind kind,
                       const struct event_entry *entry, struct inferstat_event *event)
{
    *event = (struct inferstat_event){
        .kind = kind,
        .name = names_text(monitor->names, entry->name, NULL),
        .started_ns = entry->started_ns,
        .duration_ns = entry->duration_ns,
        .ttft_ns = entry->ttft_ns,
        .decode_ns = entry->decode_ns,
        .prompt_tokens = entry->prompt_tokens,
        .generated_tokens = entry->generated_tokens,
        .items = entry->items,
        .tokens_per_second = -1,
        .host_memory_bytes = entry->host_memory_bytes,
        .status = entry->status,
    };
    if (entry->decode_ns > 0 && entry->generated_tokens > 1)
        event->tokens_per_second =
            (double)(entry->generated_tokens - 1) * 1e9 / (double)entry->decode_ns;
}

// ---- Listeners ------------------------------------------------------------------

// A listener's handle is its slot in the low bits and the slot's serial above them.
enum { PLACE_BITS = 4, SERIAL_MAX = INT32_MAX >> PLACE_BITS };

_Static_assert(LISTENERS_MAX == 1 << PLACE_BITS, "a place fits its bits");

// Listener calls in progress on this thread, innermost first.
struct call {
    const struct listener *listener;
    const struct call *outer;
};

static __thread const struct call *calls;

static void finish_call(struct listeners *listeners, struct listener *listener)
{
    listener->running--;
    if (!listener->leaving)
        return;
    if (listener->running == 0)
        listener->function = NULL;
    (void)pthread_cond_broadcast(&listeners->returned);
}

// Calls every listener once, on the calling thread.
static void call_listeners(struct listeners *listeners, const struct inferstat_event *event)
{
    (void)pthread_mutex_lock(&listeners->lock);
    for (int i = 0; i < LISTENERS_MAX; i++) {
        struct listener *listener = &listeners->places[i];
        if (!listener->function || listener->leaving)
            continue;
        listener->running++;
        inferstat_listener *const function = listener->function;
        void *const context = listener->context;
        (void)pthread_mutex_unlock(&listeners->lock);

        const struct call call = {.listener = listener, .outer = calls};
        calls = &call;
        function(context, event);
        calls = call.outer;

        (void)pthread_mutex_lock(&listeners->lock);
        finish_call(listeners, listener);
    }
    (void)pthread_mutex_unlock(&listeners->lock);
}

void recent_events_add(struct inferstat_monitor *monitor, struct thread_slot *slot,
                       enum inferstat_event_kind kind, struct event_entry *entry)
{
    if (slot)
        event_ring_add(&slot->events, kind, entry);
    if (atomic_load_explicit(&monitor->listeners.count, memory_order_relaxed) == 0)
        return;
    struct inferstat_event event;
    fill_event(monitor, kind, entry, &event);
    call_listeners(&monitor->listeners, &event);
}

int inferstat_listen(struct inferstat_monitor *monitor, inferstat_listener *function, void *context)
{
    if (!function || !monitor_is_live(monitor))
        return 0;
    struct listeners *listeners = &monitor->listeners;
    int handle = 0;
    (void)pthread_mutex_lock(&listeners->lock);
    for (int i = 0; i < LISTENERS_MAX && handle == 0; i++) {
        struct listener *listener = &listeners->places[i];
        if (listener->function)
            continue;
        listeners->next_serial = listeners->next_serial % SERIAL_MAX + 1;
        *listener = (struct listener){
            .function = function, .context = context, .serial = listeners->next_serial};
        handle = (int)(listener->serial << PLACE_BITS) | i;
        atomic_fetch_add_explicit(&listeners->count, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&listeners->lock);
    return handle;
}

static uint32_t own_calls(const struct listener *listener)
{
    uint32_t count = 0;
    for (const struct call *call = calls; call; call = call->outer)
        count += call->listener == listener;
    return count;
}

// Waits for the listener's calls on other threads, not for those on the calling thread: a listener
// may remove itself.
void inferstat_unlisten(struct inferstat_monitor *monitor, int handle)
{
    if (handle <= 0 || !monitor_is_live(monitor))
        return;
    struct listeners *listeners = &monitor->listeners;
    struct listener *listener = &listeners->places[handle & (LISTENERS_MAX - 1)];
    const uint32_t serial = (uint32_t)handle >> PLACE_BITS;

    (void)pthread_mutex_lock(&listeners->lock);
    if (listener->function && listener->serial == serial && !listener->leaving) {
        listener->leaving = 1;
        atomic_fetch_sub_explicit(&listeners->count, 1, memory_order_relaxed);
    }
    // The last call to return frees the slot; a concurrent unlisten waits too.
    const uint32_t own = own_calls(listener);
    while (listener->serial == serial && listener->function && listener->running > own)
        (void)pthread_cond_wait(&listeners->returned, &listeners->lock);
    if (listener->serial == serial && listener->running == 0)
        listener->function = NULL;
    (void)pthread_mutex_unlock(&listeners->lock);
}

// ---- History --------------------------------------------------------------------

size_t inferstat_history(struct inferstat_monitor *monitor, enum inferstat_event_kind kind,
                         struct inferstat_event *events, size_t count)
{
    if (!events || (unsigned)kind >= EVENT_KINDS || !monitor_is_live(monitor))
        return 0;
    struct merged merged = merge(monitor, kind);
    const size_t given = merged.count < count ? merged.count : count;
    for (size_t i = 0; i < given; i++)
        fill_event(monitor, kind, &merged.entries[merged.count - given + i], &events[i]);
    free(merged.entries);
    return given;
}

int inferstat_operation_mean(struct inferstat_monitor *monitor, const char *operation,
                             double *mean_ns)
{
    if (!mean_ns || !monitor_is_live(monitor))
        return 0;
    const uint32_t name = names_find(monitor->names, operation);
    if (name == 0)
        return 0;
    struct merged merged = merge(monitor, INFERSTAT_EVENT_OPERATION);
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < merged.count; i++) {
        if (merged.entries[i].name != name)
            continue;
        sum += (double)merged.entries[i].duration_ns;
        count++;
    }
    free(merged.entries);
    if (count == 0)
        return 0;
    *mean_ns = sum / (double)count;
    return 1;
}

// ---- Summary --------------------------------------------------------------------

// A slot's counters since its creation: events of each kind, and tokens generated.
static struct thread_slot_mark count_slot(const struct thread_slot *slot)
{
    struct thread_slot_mark mark = {.generated = 0};
    for (unsigned kind = 0; kind < EVENT_KINDS; kind++)
        mark.counts[kind] = event_ring_count(&slot->events, kind);
    // The last entry holds the running token count; retry if it was overwritten by a newer
    // one.
    struct event_entry last;
    for (;;) {
        const uint64_t count = event_ring_count(&slot->events, INFERSTAT_EVENT_INFERENCE);
        mark.counts[INFERSTAT_EVENT_INFERENCE] = count;
        if (count == 0)
            return mark;
        if (event_ring_read(&slot->events, INFERSTAT_EVENT_INFERENCE, count - 1, &last, 1) == 1 &&
            event_ring_count(&slot->events, INFERSTAT_EVENT_INFERENCE) == count)
            break;
    }
    mark.generated = last.generated_so_far;
    return mark;
}

static void sum_counts(struct inferstat_monitor *monitor, struct inferstat_summary *summary)
{
    (void)pthread_mutex_lock(&monitor->slots.lock);
    for (const struct thread_slot *slot = monitor->slots.first; slot; slot = slot->next) {
        const struct thread_slot_mark now = count_slot(slot);
        const struct thread_slot_mark *then = &slot->mark;
        summary->generated_tokens += now.generated - then->generated;
        summary->inferences +=
            now.counts[INFERSTAT_EVENT_INFERENCE] - then->counts[INFERSTAT_EVENT_INFERENCE];
        summary->loads += now.counts[INFERSTAT_EVENT_LOAD] - then->counts[INFERSTAT_EVENT_LOAD];
        summary->operations +=
            now.counts[INFERSTAT_EVENT_OPERATION] - then->counts[INFERSTAT_EVENT_OPERATION];
    }
    (void)pthread_mutex_unlock(&monitor->slots.lock);
    const double seconds =
        (double)(clock_monotonic_ns() -
                 atomic_load_explicit(&monitor->counted_since_ns, memory_order_relaxed)) /
        1e9;
    if (seconds > 0) {
        summary->request_rate = (double)summary->inferences / seconds;
        summary->output_token_rate = (double)summary->generated_tokens / seconds;
    }
}

static void sum_inferences(struct inferstat_monitor *monitor, struct inferstat_summary *summary)
{
    struct merged merged = merge(monitor, INFERSTAT_EVENT_INFERENCE);
    double tokens = 0, decode_ns = 0;
    for (size_t i = 0; i < merged.count; i++) {
        const struct event_entry *entry = &merged.entries[i];
        if (entry->decode_ns == 0)
            continue;
        tokens += (double)(entry->generated_tokens - 1);
        decode_ns += (double)entry->decode_ns;
    }
    if (decode_ns > 0)
        summary->mean_tokens_per_second = tokens * 1e9 / decode_ns;
    if (merged.count > 0) {
        summary->has_inference = 1;
        fill_event(monitor, INFERSTAT_EVENT_INFERENCE, &merged.entries[merged.count - 1],
                   &summary->last_inference);
    }
    free(merged.entries);
}

void inferstat_get_summary(struct inferstat_monitor *monitor, struct inferstat_summary *summary)
{
    if (!summary)
        return;
    *summary = (struct inferstat_summary){
        .device_memory_bytes = -1, .cpu_ratio = -1, .mean_tokens_per_second = -1};
    if (!monitor_is_live(monitor))
        return;
    const int64_t memory = process_memory_bytes();
    summary->host_memory_bytes =
        memory >= 0 ? memory
                    : atomic_load_explicit(&monitor->sampled.host_memory, memory_order_relaxed);
    summary->device_memory_bytes =
        atomic_load_explicit(&monitor->sampled.device_memory, memory_order_relaxed);
    summary->cpu_ratio = atomic_load_explicit(&monitor->sampled.cpu_ratio, memory_order_relaxed);
    const uint64_t startup = atomic_load_explicit(&monitor->startup_ns, memory_order_relaxed);
    summary->has_startup = startup > 0;
    summary->startup_ns = startup > 0 ? startup - 1 : 0;
    sum_counts(monitor, summary);
    sum_inferences(monitor, summary);

    struct merged loads = merge(monitor, INFERSTAT_EVENT_LOAD);
    if (loads.count > 0) {
        summary->has_load = 1;
        fill_event(monitor, INFERSTAT_EVENT_LOAD, &loads.entries[loads.count - 1],
                   &summary->last_load);
    }
    free(loads.entries);
}

int64_t inferstat_process_memory(void)
{
    return process_memory_bytes();
}

void inferstat_clear(struct inferstat_monitor *monitor)
{
    if (!monitor_is_live(monitor))
        return;
    (void)pthread_mutex_lock(&monitor->slots.lock);
    for (struct thread_slot *slot = monitor->slots.first; slot; slot = slot->next)
        slot->mark = count_slot(slot);
    (void)pthread_mutex_unlock(&monitor->slots.lock);
    atomic_store_explicit(&monitor->counted_since_ns, clock_monotonic_ns(), memory_order_relaxed);
    atomic_store_explicit(&monitor->startup_ns, 0, memory_order_relaxed);
}
