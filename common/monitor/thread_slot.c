#include "common/monitor/thread_slot.h"

#include <stdlib.h>

#include "common/sys/clock.h"

// All open slots.  Lock order: this lock, then theirs.
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread_slots *registry;
static uint64_t last_serial;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool once_done;
static pthread_key_t thread_key; // its value: the thread's list of places

// A thread's slot in one monitor, identified by serial because it may be closed.
struct place {
    uint64_t serial;
    struct thread_slot *slot;
    struct place *next;
};

__thread struct thread_slot_cache thread_slot_cache;

// ---- Threads that end, and fork() -------------------------------------------

static struct thread_slots *find_slots(uint64_t serial)
{
    struct thread_slots *slots = registry;
    while (slots && slots->serial != serial)
        slots = slots->next;
    return slots;
}

static void release_slot(struct thread_slots *slots, struct thread_slot *slot)
{
    thread_slot_set_activity(slot, ACTIVITY_IDLE, 0, clock_monotonic_ns());
    (void)pthread_mutex_lock(&slots->lock);
    slot->taken = false;
    if (slot->stream.ring)
        atomic_fetch_add_explicit(&slots->streams_freed, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&slots->lock);
}

static void thread_ends(void *value)
{
    struct place *place = value;
    thread_slot_cache.serial = 0;
    (void)pthread_mutex_lock(&registry_lock);
    while (place) {
        struct thread_slots *slots = find_slots(place->serial);
        if (slots && !atomic_load_explicit(&slots->silent, memory_order_relaxed))
            release_slot(slots, place->slot);
        struct place *next = place->next;
        free(place);
        place = next;
    }
    (void)pthread_mutex_unlock(&registry_lock);
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&registry_lock);
}

static void after_fork_in_parent(void)
{
    (void)pthread_mutex_unlock(&registry_lock);
}

static void after_fork_in_child(void)
{
    for (struct thread_slots *slots = registry; slots; slots = slots->next)
        atomic_store_explicit(&slots->silent, true, memory_order_relaxed);
    (void)pthread_mutex_unlock(&registry_lock);
}

static void set_up_process(void)
{
    once_done = pthread_key_create(&thread_key, thread_ends) == 0 &&
                pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

void thread_slots_init(struct thread_slots *slots, const uint32_t limits[EVENT_KINDS])
{
    (void)pthread_mutex_init(&slots->lock, NULL);
    memcpy(slots->limits, limits, sizeof slots->limits);
}

enum status thread_slots_open(struct thread_slots *slots, struct runfile *file, struct error *err)
{
    slots->file = file;
    (void)pthread_once(&once, set_up_process);
    if (!once_done)
        return error_set(err, STATUS_IO, "monitor: the process has no thread key left");
    (void)pthread_mutex_lock(&registry_lock);
    slots->serial = ++last_serial;
    slots->next = registry;
    registry = slots;
    (void)pthread_mutex_unlock(&registry_lock);
    return STATUS_OK;
}

static void free_slot(struct thread_slot *slot)
{
    if (!slot)
        return;
    event_ring_deinit(&slot->events);
    sketch_free(slot->sketch);
    free(slot);
}

void thread_slots_deinit(struct thread_slots *slots)
{
    (void)pthread_mutex_lock(&registry_lock);
    struct thread_slots **link = &registry;
    while (*link && *link != slots)
        link = &(*link)->next;
    if (*link)
        *link = slots->next;
    (void)pthread_mutex_unlock(&registry_lock);

    while (slots->first) {
        struct thread_slot *next = slots->first->next;
        free_slot(slots->first);
        slots->first = next;
    }
    (void)pthread_mutex_destroy(&slots->lock);
}

// ---- Acquiring a slot ---------------------------------------------------------------

static struct thread_slot *new_slot(const struct thread_slots *slots)
{
    struct thread_slot *slot = calloc(1, sizeof *slot);
    if (!slot || event_ring_init(&slot->events, slots->limits) != STATUS_OK) {
        free_slot(slot);
        return NULL;
    }
    return slot;
}

// Gives the slot a stream if there is a free one.
static void ask_for_stream(struct thread_slots *slots, struct thread_slot *slot)
{
    slot->streams_freed = atomic_load_explicit(&slots->streams_freed, memory_order_relaxed);
    if (!slots->file || slot->stream.ring)
        return;
    if (!slot->sketch &&
        (sketch_new(&slot->sketch) != STATUS_OK || sketch_reserve_ns(slot->sketch) != STATUS_OK))
        return;
    if (runfile_add_stream(slots->file, &slot->stream, NULL) != STATUS_OK)
        slot->stream = (struct runfile_stream){.ring = NULL};
}

// Returns a free slot, preferably one with a stream, or a new one.
static struct thread_slot *acquire_slot(struct thread_slots *slots)
{
    struct thread_slot *found = NULL;
    for (struct thread_slot *slot = slots->first; slot; slot = slot->next)
        if (!slot->taken && (!found || slot->stream.ring))
            found = slot;
    if (!found) {
        found = new_slot(slots);
        if (!found)
            return NULL;
        found->next = slots->first;
        slots->first = found;
    }
    ask_for_stream(slots, found);
    found->taken = true;
    return found;
}

// Returns the thread's entry for the monitor, creating one or reusing that of a closed
// monitor.
static struct place *place_of_thread(const struct thread_slots *slots)
{
    struct place *first = pthread_getspecific(thread_key);
    struct place *stale = NULL;
    (void)pthread_mutex_lock(&registry_lock);
    for (struct place *place = first; place; place = place->next) {
        if (place->serial == slots->serial) {
            (void)pthread_mutex_unlock(&registry_lock);
            return place;
        }
        if (!find_slots(place->serial))
            stale = place;
    }
    (void)pthread_mutex_unlock(&registry_lock);
    if (stale) {
        stale->serial = slots->serial;
        stale->slot = NULL;
        return stale;
    }
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    place->serial = slots->serial;
    place->next = first;
    if (pthread_setspecific(thread_key, place) != 0) {
        free(place);
        return NULL;
    }
    return place;
}

struct thread_slot *thread_slot_find(struct thread_slots *slots)
{
    struct place *place = place_of_thread(slots);
    if (!place)
        return NULL;
    (void)pthread_mutex_lock(&slots->lock);
    // A thread that got no stream changes to a slot that has one.
    if (place->slot && !place->slot->stream.ring && slots->file)
        place->slot->taken = false;
    if (!place->slot || !place->slot->taken)
        place->slot = acquire_slot(slots);
    (void)pthread_mutex_unlock(&slots->lock);
    thread_slot_cache.serial = place->slot ? slots->serial : 0;
    thread_slot_cache.slot = place->slot;
    return place->slot;
}

void thread_slots_share_open_requests(struct thread_slots *slots)
{
    int64_t all = 0;
    (void)pthread_mutex_lock(&slots->lock);
    for (struct thread_slot *slot = slots->first; slot; slot = slot->next)
        all += atomic_load_explicit(&slot->open_requests, memory_order_relaxed);
    for (struct thread_slot *slot = slots->first; slot; slot = slot->next)
        atomic_store_explicit(&slot->open_elsewhere,
                              all -
                                  atomic_load_explicit(&slot->open_requests, memory_order_relaxed),
                              memory_order_relaxed);
    (void)pthread_mutex_unlock(&slots->lock);
}

unsigned int thread_slots_place(struct thread_slots *slots, uint32_t model)
{
    for (unsigned int place = 1; place < MODEL_PLACES; place++) {
        uint32_t of = atomic_load_explicit(&slots->models[place], memory_order_relaxed);
        if (of == 0 &&
            atomic_compare_exchange_strong_explicit(&slots->models[place], &of, model,
                                                    memory_order_relaxed, memory_order_relaxed))
            return place;
        if (of == model)
            return place;
    }
    return 0;
}

void thread_slots_count_requests(struct thread_slots *slots,
                                 struct request_counts counts[MODEL_PLACES])
{
    memset(counts, 0, MODEL_PLACES * sizeof *counts);
    (void)pthread_mutex_lock(&slots->lock);
    for (const struct thread_slot *slot = slots->first; slot; slot = slot->next) {
        for (unsigned int i = 0; i < MODEL_PLACES; i++) {
            counts[i].running +=
                atomic_load_explicit(&slot->models[i].running, memory_order_relaxed);
            counts[i].waiting +=
                atomic_load_explicit(&slot->models[i].waiting, memory_order_relaxed);
        }
    }
    (void)pthread_mutex_unlock(&slots->lock);
    for (unsigned int i = 0; i < MODEL_PLACES; i++) {
        // A request that moves from thread to thread meanwhile may be counted on neither, or on
        // both.
        struct request_counts *of = &counts[i];
        of->running = of->running < 0 ? 0 : of->running;
        of->waiting = of->waiting < 0 ? 0 : of->waiting;
        of->waiting = of->waiting > of->running ? of->running : of->waiting;
        const int64_t queued = atomic_load_explicit(&slots->queued[i], memory_order_relaxed);
        of->running += queued;
        of->waiting += queued;
    }
}

// ---- Records ------------------------------------------------------------------------

void thread_slots_count_streamless(const struct thread_slots *slots, uint64_t count)
{
    if (slots->file)
        atomic_fetch_add_explicit(&runfile_state(slots->file)->streamless, count,
                                  memory_order_relaxed);
}

uint64_t thread_slot_push(struct thread_slots *slots, struct thread_slot *slot,
                          const struct record *records, uint32_t count)
{
    if (slot && slot->stream.ring)
        return ring_push(slot->stream.ring, records, count);
    thread_slots_count_streamless(slots, count);
    return 0;
}
