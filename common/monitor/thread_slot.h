// Thread slot: the state that a monitor keeps for one application thread.  It has the thread's ring
// (buffer of records), recent events and sums of inter-token latencies (ITL).  Only this thread
// writes it, except where noted.
//
// A thread acquires a slot at its first call and releases it when it exits.  The next new
// thread reuses the slot and continues its stream (the sequence of records in the slot's ring),
// so that short-lived threads do not exhaust the streams of the run.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/monitor/local/event_ring.h"
#include "common/monitor/local/itl_histogram.h"
#include "common/monitor/runfile/runfile.h"

// Start of the visible history of a slot's events; advanced by inferstat_clear.
struct thread_slot_mark {
    uint64_t counts[EVENT_KINDS]; // events before the start, by kind
    uint64_t generated;           // tokens generated before the start
};

// Requests are counted by place: each of the first models of a process has one, and the others
// share place 0.
enum { MODEL_PLACES = 65 };

// Requests of a place in progress, and of those the ones not yet computed on.
struct model_requests {
    _Atomic int64_t running, waiting;
};

struct thread_slot {
    struct runfile_stream stream; // NULL members: nothing is reported, or no stream was free
    uint32_t streams_freed;       // thread_slots.streams_freed at the last attempt to get a stream
    // open_requests: requests begun minus requests ended by this thread; negative if it ends
    // requests of other threads.  open_elsewhere: the sum of open_requests of all other threads;
    // the background thread updates it.  models: open_requests by place, and likewise of those the
    // ones on which no computation has started.
    _Atomic int64_t open_requests;
    _Atomic int64_t open_elsewhere;
    struct model_requests models[MODEL_PLACES];
    struct event_rings events;
    struct itl_sums sums;
    struct sketch *sketch; // to encode `sums`; NULL without a stream

    struct thread_slot *next; // from here on guarded by thread_slots.lock
    bool taken;               // by a live thread
    struct thread_slot_mark mark;
};

// All slots of a monitor.
struct thread_slots {
    // Read by every call and rarely written.
    _Atomic bool silent;            // in a fork()ed child: do nothing
    uint64_t serial;                // identifies these slots; unique in the process
    struct runfile *file;           // holds the streams, borrowed; NULL: nothing is reported
    _Atomic uint32_t streams_freed; // incremented when a thread releases its stream
    // By place: the id of the model's name, 0 until a model takes the place; and its requests in
    // the application's own queue, as it set them.
    _Atomic uint32_t models[MODEL_PLACES];
    _Atomic int64_t queued[MODEL_PLACES];

    pthread_mutex_t lock; // guards the list of slots and their marks
    struct thread_slot *first;
    uint32_t limits[EVENT_KINDS]; // events kept of each kind
    struct thread_slots *next;    // in the list of all monitors' slots (thread_slot.c)
};

// Initialises `slots`, which is zeroed; a slot keeps the last `limits[kind]` events of each kind.
void thread_slots_init(struct thread_slots *slots, const uint32_t limits[EVENT_KINDS]);

// Registers the slots for thread exit and fork().  Streams are added to `file` (borrowed; NULL:
// nothing is reported).  Returns STATUS_IO if the process has no free thread-specific key or
// fork handler.
MUST_CHECK enum status thread_slots_open(struct thread_slots *slots, struct runfile *file,
                                         struct error *err);

// Undoes thread_slots_init and thread_slots_open, and frees all slots.
void thread_slots_deinit(struct thread_slots *slots);

// Thread-local cache: the calling thread's slot in the thread_slots whose serial is `serial`.
extern __thread struct thread_slot_cache {
    uint64_t serial;
    struct thread_slot *slot;
} thread_slot_cache __attribute__((tls_model("initial-exec")));

// Slow path of thread_slot_current: under a lock, finds the thread's slot, creates one, or
// replaces one without a stream if a stream became free.
struct thread_slot *thread_slot_find(struct thread_slots *slots);

// Returns the calling thread's slot, or NULL when out of memory.  Takes a lock only at a thread's
// first call, and when the slot has no stream and another thread has released one since.
static inline struct thread_slot *thread_slot_current(struct thread_slots *slots)
{
    struct thread_slot *slot = thread_slot_cache.slot;
    if (thread_slot_cache.serial == slots->serial &&
        (slot->stream.ring || !slots->file ||
         slot->streams_freed == atomic_load_explicit(&slots->streams_freed, memory_order_relaxed)))
        return slot;
    return thread_slot_find(slots);
}

// Pushes `count` records to the slot's ring, all or none.  Returns the record number of the
// first; 0: they were dropped and counted, or nothing is reported.
uint64_t thread_slot_push(struct thread_slots *slots, struct thread_slot *slot,
                          const struct record *records, uint32_t count);

// Counts `count` records as dropped by a thread without a stream.
void thread_slots_count_streamless(const struct thread_slots *slots, uint64_t count);

// Updates open_elsewhere of every slot.  Background thread.
void thread_slots_share_open_requests(struct thread_slots *slots);

// Requests in progress, and of those the ones not computed on yet.
struct request_counts {
    int64_t running, waiting;
};

// Counts the requests of all threads and of the application's own queues by place.
void thread_slots_count_requests(struct thread_slots *slots,
                                 struct request_counts counts[MODEL_PLACES]);

// Returns the place of the model whose name has the id `model` > 0, which takes the next free one
// at its first call; 0 once all are taken.  Any thread; lock-free.
unsigned int thread_slots_place(struct thread_slots *slots, uint32_t model);

// Adds to a counter that only the slot's own thread writes: one shared by all threads would cause
// contention for its cache line.
static inline int64_t thread_slot_add(_Atomic int64_t *counter, int64_t more)
{
    const int64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + more, memory_order_relaxed);
    return before;
}

// Counts a request that begins, of the model at `place`.
static inline void thread_slot_begin_request(struct thread_slot *slot, unsigned int place)
{
    if (!slot)
        return;
    (void)thread_slot_add(&slot->open_requests, 1);
    (void)thread_slot_add(&slot->models[place].running, 1);
    (void)thread_slot_add(&slot->models[place].waiting, 1);
}

// Counts a request whose computation starts.
static inline void thread_slot_start_request(struct thread_slot *slot, unsigned int place)
{
    if (slot)
        (void)thread_slot_add(&slot->models[place].waiting, -1);
}

// Counts a request that ends, after thread_slot_start_request if it was computed on at all.
// Returns the number of requests in progress on all threads, with the one that ends; other threads
// are counted as of the last thread_slots_share_open_requests.
static inline int64_t thread_slot_end_request(struct thread_slot *slot, unsigned int place,
                                              bool is_computed)
{
    if (!slot)
        return 1;
    if (!is_computed)
        (void)thread_slot_add(&slot->models[place].waiting, -1);
    (void)thread_slot_add(&slot->models[place].running, -1);
    const int64_t open = thread_slot_add(&slot->open_requests, -1);
    const int64_t all = open + atomic_load_explicit(&slot->open_elsewhere, memory_order_relaxed);
    return all > 0 ? all : 1;
}

// Stores the thread's current request; call it before thread_slot_set_activity.
static inline void thread_slot_set_request(struct thread_slot *slot, uint64_t request)
{
    struct runfile_stream_header *header = slot ? slot->stream.header : NULL;
    if (header)
        atomic_store_explicit(&header->request, request, memory_order_relaxed);
}

// Stores the thread's activity, since `now_ns`, in the run file, for a replay after a crash.
// `name` is the id of a model, operation or stage.
static inline void thread_slot_set_activity(struct thread_slot *slot, enum activity activity,
                                            uint32_t name, uint64_t now_ns)
{
    struct runfile_stream_header *header = slot ? slot->stream.header : NULL;
    if (!header)
        return;
    atomic_store_explicit(&header->activity_since_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&header->activity, (uint64_t)activity | (uint64_t)name << 8,
                          memory_order_relaxed);
}
