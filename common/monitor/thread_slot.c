#include "common/monitor/thread_slot.h"

#include <stdlib.h>
#include <string.h>

#include "common/sys/clock.h"

// The seats that are open.  Order of locks: this one, then one of theirs.
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct seats *registry;
static uint64_t last_serial;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool once_done;
static pthread_key_t thread_key; // its value: the thread's list of places

// Where a thread sits in one monitor, which may be gone: its serial tells.
struct place {
    uint64_t serial;
    struct seat *seat;
    struct place *next;
};

__thread struct seat_cache seat_cache;

// ---- Threads that end, and fork() -------------------------------------------

static struct seats *find_seats(uint64_t serial)
{
    struct seats *seats = registry;
    while (seats && seats->serial != serial)
        seats = seats->next;
    return seats;
}

static bool is_live(const struct seats *seats)
{
    return seats && !atomic_load_explicit(&seats->silent, memory_order_relaxed);
}

static void leave_seat(struct seats *seats, struct seat *seat)
{
    seat_set_activity(seat, ACTIVITY_IDLE, 0, clock_monotonic_ns());
    (void)pthread_mutex_lock(&seats->lock);
    seat->taken = false;
    if (seat->stream.ring)
        atomic_fetch_add_explicit(&seats->streams_freed, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&seats->lock);
}

static void thread_ends(void *value)
{
    struct place *place = value;
    seat_cache.serial = 0;
    (void)pthread_mutex_lock(&registry_lock);
    while (place) {
        struct seats *seats = find_seats(place->serial);
        if (is_live(seats))
            leave_seat(seats, place->seat);
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
    for (struct seats *seats = registry; seats; seats = seats->next)
        atomic_store_explicit(&seats->silent, true, memory_order_relaxed);
    (void)pthread_mutex_unlock(&registry_lock);
}

static void set_up_process(void)
{
    once_done = pthread_key_create(&thread_key, thread_ends) == 0 &&
                pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

void seats_init(struct seats *seats, const uint32_t limits[HISTORY_KINDS])
{
    (void)pthread_mutex_init(&seats->lock, NULL);
    memcpy(seats->limits, limits, sizeof seats->limits);
}

enum status seats_open(struct seats *seats, struct runfile *file, struct error *err)
{
    seats->file = file;
    (void)pthread_once(&once, set_up_process);
    if (!once_done)
        return error_set(err, STATUS_IO, "monitor: the process has no thread key left");
    (void)pthread_mutex_lock(&registry_lock);
    seats->serial = ++last_serial;
    seats->next = registry;
    registry = seats;
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

void seats_deinit(struct seats *seats)
{
    (void)pthread_mutex_lock(&registry_lock);
    struct seats **link = &registry;
    while (*link && *link != seats)
        link = &(*link)->next;
    if (*link)
        *link = seats->next;
    (void)pthread_mutex_unlock(&registry_lock);

    while (seats->first) {
        struct seat *next = seats->first->next;
        free_seat(seats->first);
        seats->first = next;
    }
    (void)pthread_mutex_destroy(&seats->lock);
}

// ---- Sitting down ---------------------------------------------------------------

static struct seat *new_seat(const struct seats *seats)
{
    struct seat *seat = calloc(1, sizeof *seat);
    if (!seat || history_init(&seat->history, seats->limits) != STATUS_OK) {
        free_seat(seat);
        return NULL;
    }
    return seat;
}

// Gives the seat a stream of its own if there is one to be had.
static void ask_for_stream(struct seats *seats, struct seat *seat)
{
    seat->streams_freed = atomic_load_explicit(&seats->streams_freed, memory_order_relaxed);
    if (!seats->file || seat->stream.ring)
        return;
    if (!seat->sketch &&
        (sketch_new(&seat->sketch) != STATUS_OK || sketch_reserve_ns(seat->sketch) != STATUS_OK))
        return;
    if (runfile_add_stream(seats->file, &seat->stream, NULL) != STATUS_OK)
        seat->stream = (struct runfile_stream){.ring = NULL};
}

// A seat nobody sits on, one with a stream if there is any; else a new one.
static struct seat *take_seat(struct seats *seats)
{
    struct seat *found = NULL;
    for (struct seat *seat = seats->first; seat; seat = seat->next)
        if (!seat->taken && (!found || seat->stream.ring))
            found = seat;
    if (!found) {
        found = new_seat(seats);
        if (!found)
            return NULL;
        found->next = seats->first;
        seats->first = found;
    }
    ask_for_stream(seats, found);
    found->taken = true;
    return found;
}

// The thread's entry for the monitor, made when there is none; entries of
// monitors that are closed are made use of again.
static struct place *place_of_thread(const struct seats *seats)
{
    struct place *first = pthread_getspecific(thread_key);
    struct place *stale = NULL;
    (void)pthread_mutex_lock(&registry_lock);
    for (struct place *place = first; place; place = place->next) {
        if (place->serial == seats->serial) {
            (void)pthread_mutex_unlock(&registry_lock);
            return place;
        }
        if (!find_seats(place->serial))
            stale = place;
    }
    (void)pthread_mutex_unlock(&registry_lock);
    if (stale) {
        stale->serial = seats->serial;
        stale->seat = NULL;
        return stale;
    }
    struct place *place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    place->serial = seats->serial;
    place->next = first;
    if (pthread_setspecific(thread_key, place) != 0) {
        free(place);
        return NULL;
    }
    return place;
}

struct seat *seat_find(struct seats *seats)
{
    struct place *place = place_of_thread(seats);
    if (!place)
        return NULL;
    (void)pthread_mutex_lock(&seats->lock);
    // A thread that got no stream changes to a seat that has one.
    if (place->seat && !place->seat->stream.ring && seats->file)
        place->seat->taken = false;
    if (!place->seat || !place->seat->taken)
        place->seat = take_seat(seats);
    (void)pthread_mutex_unlock(&seats->lock);
    seat_cache.serial = place->seat ? seats->serial : 0;
    seat_cache.seat = place->seat;
    return place->seat;
}

void seats_share_open_requests(struct seats *seats)
{
    int64_t all = 0;
    (void)pthread_mutex_lock(&seats->lock);
    for (struct seat *seat = seats->first; seat; seat = seat->next)
        all += atomic_load_explicit(&seat->open_requests, memory_order_relaxed);
    for (struct seat *seat = seats->first; seat; seat = seat->next)
        atomic_store_explicit(&seat->open_elsewhere,
                              all -
                                  atomic_load_explicit(&seat->open_requests, memory_order_relaxed),
                              memory_order_relaxed);
    (void)pthread_mutex_unlock(&seats->lock);
}

// ---- Records ------------------------------------------------------------------------

void seat_count_streamless(const struct seats *seats, uint64_t count)
{
    if (seats->file)
        atomic_fetch_add_explicit(&runfile_state(seats->file)->streamless, count,
                                  memory_order_relaxed);
}

uint64_t seat_push(struct seats *seats, struct seat *seat, const struct record *records,
                   uint32_t count)
{
    if (seat && seat->stream.ring)
        return ring_push(seat->stream.ring, records, count);
    seat_count_streamless(seats, count);
    return 0;
}
