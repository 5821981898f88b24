// A seat: what one thread of the application has of a monitor.  Its ring, its
// history, its sums of gaps: all of them written by this thread alone.
//
// A thread takes a seat with its first record and leaves it when it ends; the
// next new thread sits down there and carries the stream on, so that threads
// that come and go do not use up streams.
#ifndef INFERSTAT_MONITOR_THREAD_SLOT_H
#define INFERSTAT_MONITOR_THREAD_SLOT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/error.h"
#include "common/monitor/local/itl_histogram.h"
#include "common/monitor/local/event_ring.h"
#include "common/monitor/runfile/runfile.h"

// From where on readers look at a seat's history: moved by inferstat_clear.
struct seat_mark {
    uint64_t counts[HISTORY_KINDS];
    uint64_t generated;
};

struct seat {
    struct runfile_stream stream; // NULLs: nothing is reported, or there was no room
    uint32_t streams_freed;       // that of all seats, when a stream was last asked for
    // Requests begun less requests ended by this thread, below zero where it ends
    // what others began; and those of all other threads, as the background thread
    // last saw them.
    _Atomic int64_t open_requests;
    _Atomic int64_t open_elsewhere;
    struct history history;
    struct gaps_sums sums;
    struct sketch *sketch; // for writing sums; NULL without a stream

    struct seat *next; // guarded by the lock of all seats from here on
    bool taken;
    struct seat_mark mark;
};

// All seats of a monitor.
struct seats {
    // Read by every call and seldom written.
    _Atomic bool silent;            // after fork(), in the child: do nothing
    uint64_t serial;                // among all that the process ever opened
    struct runfile *file;           // of the streams, borrowed; NULL: nothing is reported
    _Atomic uint32_t streams_freed; // counts up when a thread leaves its stream

    pthread_mutex_t lock; // guards the list and its marks
    struct seat *first;
    uint32_t limits[HISTORY_KINDS]; // of each seat's history
    struct seats *next;             // in the list of all that are open (thread_slot.c)
};

// `seats` is all zero; each seat's history keeps `limits` events of each kind.
void seats_init(struct seats *seats, const uint32_t limits[HISTORY_KINDS]);

// Makes the seats known to threads that end and to fork(); streams are had from `file`
// (borrowed; NULL: nothing is reported).  STATUS_IO: the process has no room for
// another key or handler.
MUST_CHECK enum status seats_open(struct seats *seats, struct runfile *file, struct error *err);

// Undoes both and frees all seats.
void seats_deinit(struct seats *seats);

// The seat the calling thread asked for last, of the seats with that serial.  In
// static storage of the thread: no call is needed to find it.
extern __thread struct seat_cache {
    uint64_t serial;
    struct seat *seat;
} seat_cache __attribute__((tls_model("initial-exec")));

// Finds the thread's seat, or a better one, under a lock.
struct seat *seat_find(struct seats *seats);

// Whether a stream that could not be had before may be had now.
static inline bool seat_may_get_stream(const struct seats *seats, const struct seat *seat)
{
    return !seat->stream.ring && seats->file &&
           seat->streams_freed != atomic_load_explicit(&seats->streams_freed, memory_order_relaxed);
}

// The calling thread's seat.  NULL when out of memory.  Takes a lock the first
// time a thread asks, none after that.
static inline struct seat *seat_of_thread(struct seats *seats)
{
    if (seat_cache.serial == seats->serial && !seat_may_get_stream(seats, seat_cache.seat))
        return seat_cache.seat;
    return seat_find(seats);
}

// Pushes records, all or none, into the seat's ring.  Returns the number of the
// first; 0 when they were lost, which is counted, or nothing is reported.
uint64_t seat_push(struct seats *seats, struct seat *seat, const struct record *records,
                   uint32_t count);

// Counts records lost by a thread that has no stream.
void seat_count_streamless(const struct seats *seats, uint64_t count);

// Brings every seat's open_elsewhere up to date.  Background thread.
void seats_share_open_requests(struct seats *seats);

// Only the seat's own thread writes open_requests, so it need not be one step.  No
// counter is shared by all threads: they would take turns at its cache line.
static inline void seat_begin_request(struct seat *seat)
{
    if (!seat)
        return;
    const int64_t open = atomic_load_explicit(&seat->open_requests, memory_order_relaxed);
    atomic_store_explicit(&seat->open_requests, open + 1, memory_order_relaxed);
}

// Returns how many requests were in progress, the one that ends included: this
// thread's as they are, the others' as last seen.
static inline int64_t seat_end_request(struct seat *seat)
{
    if (!seat)
        return 1;
    const int64_t open = atomic_load_explicit(&seat->open_requests, memory_order_relaxed);
    atomic_store_explicit(&seat->open_requests, open - 1, memory_order_relaxed);
    const int64_t all = open + atomic_load_explicit(&seat->open_elsewhere, memory_order_relaxed);
    return all > 0 ? all : 1;
}

// Says which request the thread is at, before seat_set_activity says what it does
// with it.
static inline void seat_set_request(struct seat *seat, uint64_t request)
{
    struct runfile_stream_header *header = seat ? seat->stream.header : NULL;
    if (header)
        atomic_store_explicit(&header->request, request, memory_order_relaxed);
}

// Says what the thread is doing now, for who reads the run file after its death.
static inline void seat_set_activity(struct seat *seat, enum activity activity, uint32_t name,
                                     uint64_t now_ns)
{
    struct runfile_stream_header *header = seat ? seat->stream.header : NULL;
    if (!header)
        return;
    atomic_store_explicit(&header->activity_since_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&header->activity, (uint64_t)activity | (uint64_t)name << 8,
                          memory_order_relaxed);
}

#endif
