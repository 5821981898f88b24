#include "common/monitor/seat.h"

#include <stdlib.h>

// The monitors that are open.  Order of locks: this one, then a monitor's
// seats_lock.
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct inferstat_monitor *registry;
static uint64_t last_serial;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool once_done;
static pthread_key_t thread_key; // its value: the thread's list of places

// Where a thread sits in one monitor.  The monitor may be gone: its serial tells.
struct place {
    uint64_t serial;
    struct seat *seat;
    struct place *next;
};

__thread struct seat_cache seat_cache;

// ---- Threads that end, and fork() -------------------------------------------

static struct inferstat_monitor *find_monitor(uint64_t serial)
{
    struct inferstat_monitor *monitor = registry;
    while (monitor && monitor->serial != serial)
        monitor = monitor->next;
    return monitor;
}

static void leave_seat(struct inferstat_monitor *monitor, struct seat *seat)
{
    seat_set_activity(seat, ACTIVITY_IDLE, 0, clock_monotonic_ns());
    (void)pthread_mutex_lock(&monitor->seats_lock);
    seat->taken = false;
    if (seat->stream.ring)
        atomic_fetch_add_explicit(&monitor->streams_freed, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&monitor->seats_lock);
}

static void thread_ends(void *value)
{
    struct place *place = value;
    seat_cache.serial = 0;
    (void)pthread_mutex_lock(&registry_lock);
    while (place) {
        struct inferstat_monitor *monitor = find_monitor(place->serial);
        if (monitor_is_live(monitor))
            leave_seat(monitor, place->seat);
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
    for (struct inferstat_monitor *monitor = registry; monitor; monitor = monitor->next)
        atomic_store_explicit(&monitor->silent, true, memory_order_relaxed);
    (void)pthread_mutex_unlock(&registry_lock);
}

static void set_up_process(void)
{
    once_done = pthread_key_create(&thread_key, thread_ends) == 0 &&
                pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

enum status seat_open(struct inferstat_monitor *monitor, struct error *err)
{
    (void)pthread_once(&once, set_up_process);
    if (!once_done)
        return error_set(err, STATUS_IO, "monitor: the process has no thread key left");
    (void)pthread_mutex_lock(&registry_lock);
    monitor->serial = ++last_serial;
    monitor->next = registry;
    registry = monitor;
    (void)pthread_mutex_unlock(&registry_lock);
    return STATUS_OK;
}

static void free_seat(struct seat *seat)
{
    if (!seat)
        return;
    history_deinit(&seat->history);
    sketch_free(seat->sketch);
    free(seat);
}

void seat_close(struct inferstat_monitor *monitor)
{
    (void)pthread_mutex_lock(&registry_lock);
    struct inferstat_monitor **link = &registry;
    while (*link && *link != monitor)
        link = &(*link)->next;
    if (*link)
        *link = monitor->next;
    (void)pthread_mutex_unlock(&registry_lock);

    while (monitor->seats) {
        struct seat *next = monitor->seats->next;
        free_seat(monitor->seats);
        monitor->seats = next;
    }
}

// ---- Sitting down ---------------------------------------------------------------

static struct seat *new_seat(const struct inferstat_monitor *monitor)
{
    struct seat *seat = calloc(1, sizeof *seat);
    if (!seat || history_init(&seat->history, monitor->limits) != STATUS_OK) {
        free_seat(seat);
        return NULL;
    }
    return seat;
}

// Gives the seat a stream of its own if there is one to be had.
static void ask_for_stream(struct inferstat_monitor *monitor, struct seat *seat)
{
    seat->streams_freed = atomic_load_explicit(&monitor->streams_freed, memory_order_relaxed);
    if (!monitor->file || seat->stream.ring)
        return;
    if (!seat->sketch &&
        (sketch_new(&seat->sketch) != STATUS_OK || sketch_reserve_ns(seat->sketch) != STATUS_OK))
        return;
    if (runfile_add_stream(monitor->file, &seat->stream, NULL) != STATUS_OK)
        seat->stream = (struct runfile_stream){.ring = NULL};
}

// A seat nobody sits on, one with a stream if there is any; else a new one.
static struct seat *take_seat(struct inferstat_monitor *monitor)
{
    struct seat *found = NULL;
    for (struct seat *seat = monitor->seats; seat; seat = seat->next)
        if (!seat->taken && (!found || seat->stream.ring))
            found = seat;
    if (!found) {
        found = new_seat(monitor);
        if (!found)
            return NULL;
        found->next = monitor->seats;
        monitor->seats = found;
    }
    ask_for_stream(monitor, found);
    found->taken = true;
    return found;
}

// The thread's entry for the monitor, made when there is none; entries of
// monitors that are closed are made use of again.
static struct place *place_of_thread(const struct inferstat_monitor *monitor)
{
    struct place *first = pthread_getspecific(thread_key);
    struct place *stale = NULL;
    (void)pthread_mutex_lock(&registry_lock);
    for (struct place *place = first; place; place = place->next) {
        if (place->serial == monitor->serial) {
            (void)pthread_mutex_unlock(&registry_lock);
            return place;
        }
        if (!find_monitor(place->serial))
            stale = place;
    }
    (void)pthread_mutex_unlock(&registry_lock);
    if (stale) {
        stale->serial = monitor->serial;
        stale->seat = NULL;
        return stale;
    }
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    place->serial = monitor->serial;
    place->next = first;
    if (pthread_setspecific(thread_key, place) != 0) {
        free(place);
        return NULL;
    }
    return place;
}

struct seat *seat_find(struct inferstat_monitor *monitor)
{
    struct place *place = place_of_thread(monitor);
    if (!place)
        return NULL;
    (void)pthread_mutex_lock(&monitor->seats_lock);
    // A thread that got no stream changes to a seat that has one.
    if (place->seat && !place->seat->stream.ring && monitor->file)
        place->seat->taken = false;
    if (!place->seat || !place->seat->taken)
        place->seat = take_seat(monitor);
    (void)pthread_mutex_unlock(&monitor->seats_lock);
    seat_cache.serial = place->seat ? monitor->serial : 0;
    seat_cache.seat = place->seat;
    return place->seat;
}

void seat_share_open_requests(struct inferstat_monitor *monitor)
{
    int64_t all = 0;
    (void)pthread_mutex_lock(&monitor->seats_lock);
    for (struct seat *seat = monitor->seats; seat; seat = seat->next)
        all += atomic_load_explicit(&seat->open_requests, memory_order_relaxed);
    for (struct seat *seat = monitor->seats; seat; seat = seat->next)
        atomic_store_explicit(&seat->open_elsewhere,
                              all -
                                  atomic_load_explicit(&seat->open_requests, memory_order_relaxed),
                              memory_order_relaxed);
    (void)pthread_mutex_unlock(&monitor->seats_lock);
}

// ---- Records ------------------------------------------------------------------------

void seat_count_streamless(struct inferstat_monitor *monitor, uint64_t count)
{
    if (monitor->file)
        atomic_fetch_add_explicit(&runfile_state(monitor->file)->streamless, count,
                                  memory_order_relaxed);
}

uint64_t seat_push(struct inferstat_monitor *monitor, struct seat *seat,
                   const struct record *records, uint32_t count)
{
    if (seat && seat->stream.ring)
        return ring_push(seat->stream.ring, records, count);
    seat_count_streamless(monitor, count);
    return 0;
}
