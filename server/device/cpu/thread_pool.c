#include "server/device/cpu/thread_pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/sys/clock.h"

// How often an idle thread polls for work before it sleeps: longer than the
// pause between two operations of a model, short enough not to waste a core.
enum { SPINS = 4000 };

// A thread leaves the owner's core at most so often: on a machine with more work than cores it
// would else give up its turn again and again, and the owner would wait for it.
static const uint64_t leave_interval_ns = 1000000000;

struct worker {
    struct thread_pool *pool;
    pthread_t thread;
    unsigned int number;
};

struct thread_pool {
    unsigned int threads;
    unsigned int started; // threads that must be joined

    // The task: written by the owner when all parts of the one before are done, read by threads
    // that have claimed a part.
    thread_pool_task *task;
    void *context;
    atomic_uint parts;

    // Odd or even does not matter: it moves once a task, and once to stop.  The
    // owner's release publishes the task; the threads' acquire receives it.
    _Atomic uint64_t generation;
    atomic_bool stop;
    atomic_int core; // the owner's, when it announced the task
    // The task's number (upper 32 bits) and its next unclaimed part.  A thread that comes late
    // finds another number and claims nothing, so that the owner need not wait for threads that the
    // system has not let run.
    _Atomic uint64_t claims;
    // Parts done.  Its release publishes what they computed; the owner's acquire of all of them
    // receives it.
    atomic_uint done;

    pthread_mutex_t lock; // for sleeping only
    pthread_cond_t wake;
    atomic_uint sleepers;

    struct worker workers[]; // one per thread
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Claims a part of the task that is current when the call begins; false when none is left.
static bool claim(struct thread_pool *pool, size_t *part)
{
    uint64_t seen = atomic_load_explicit(&pool->claims, memory_order_acquire);
    do {
        // Whoever sees the number of parts of a later task sees that this one is closed.
        if ((uint32_t)seen >= atomic_load_explicit(&pool->parts, memory_order_acquire))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&pool->claims, &seen, seen + 1,
                                                    memory_order_acquire, memory_order_acquire));
    *part = (uint32_t)seen;
    return true;
}

static void work(struct thread_pool *pool, unsigned int number)
{
    size_t part;
    while (claim(pool, &part)) {
        pool->task(pool->context, part, number);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
    }
}

// Waits until the generation is no longer `seen`; returns the new one.
static uint64_t wait_for_task(struct thread_pool *pool, uint64_t seen)
{
    for (int spin = 0; spin < SPINS; spin++) {
        uint64_t now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen)
            return now;
        relax();
    }

    (void)pthread_mutex_lock(&pool->lock);
    // Sequentially consistent with the owner's store of the generation and load
    // of `sleepers`: one of the two sees the other, so no wake-up is lost.
    atomic_fetch_add(&pool->sleepers, 1);
    uint64_t now = atomic_load(&pool->generation);
    while (now == seen) {
        (void)pthread_cond_wait(&pool->wake, &pool->lock);
        now = atomic_load(&pool->generation);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    (void)pthread_mutex_unlock(&pool->lock);
    return now;
}

// Moves the calling thread off `core`, where it may run elsewhere; `*left_ns` is when it last did.
// On a busy machine the system often wakes a thread on the waker's core and leaves both there for
// seconds: they take turns, and a task takes longer than on one thread.
static void leave_core(int core, uint64_t *left_ns)
{
    cpu_set_t allowed, others;
    const uint64_t now = clock_monotonic_ns();
    if (core < 0 || (*left_ns > 0 && now - *left_ns < leave_interval_ns) ||
        sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    others = allowed;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
        return;
    (void)sched_setaffinity(0, sizeof allowed, &allowed); // later moves are the system's
    *left_ns = now;
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct thread_pool *pool = worker->pool;
    uint64_t seen = 0, left_ns = 0;
    for (;;) {
        seen = wait_for_task(pool, seen);
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return NULL;
        const int core = atomic_load_explicit(&pool->core, memory_order_relaxed);
        if (core == sched_getcpu())
            leave_core(core, &left_ns);
        work(pool, worker->number);
    }
}

// Moves the generation and wakes who sleeps.
static void announce(struct thread_pool *pool)
{
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers) == 0)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
}

enum status thread_pool_new(struct thread_pool **out, unsigned int threads, struct error *err)
{
    struct thread_pool *pool = calloc(1, sizeof *pool + threads * sizeof *pool->workers);
    if (!pool)
        return error_no_memory(err, "threads");
    pool->threads = threads;
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);

    for (unsigned int i = 1; i < threads; i++) {
        struct worker *worker = &pool->workers[i];
        *worker = (struct worker){.pool = pool, .number = i};
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) {
            thread_pool_free(pool);
            return error_set(err, STATUS_IO,
                             "threads: cannot start number %u of %u (use fewer with --threads)",
                             i + 1, threads);
        }
        pool->started++;
    }
    *out = pool;
    return STATUS_OK;
}

void thread_pool_free(struct thread_pool *pool)
{
    if (!pool)
        return;
    atomic_store(&pool->stop, true);
    announce(pool);
    for (unsigned int i = 1; i <= pool->started; i++)
        (void)pthread_join(pool->workers[i].thread, NULL);
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

unsigned int thread_pool_threads(const struct thread_pool *pool)
{
    return pool->threads;
}

void thread_pool_run(struct thread_pool *pool, thread_pool_task *task, void *context, size_t parts)
{
    if (pool->threads == 1 || parts < 2) {
        for (size_t part = 0; part < parts; part++)
            task(context, part, 0);
        return;
    }
    assert(parts < UINT32_MAX);
    const uint64_t number = (atomic_load_explicit(&pool->claims, memory_order_relaxed) >> 32) + 1;
    // No claim succeeds from here on until the task is written: this part is none.
    atomic_store_explicit(&pool->claims, number << 32 | UINT32_MAX, memory_order_relaxed);
    pool->task = task;
    pool->context = context;
    atomic_store_explicit(&pool->core, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->parts, (unsigned int)parts, memory_order_release);
    atomic_store_explicit(&pool->claims, (number + 1) << 32, memory_order_release);
    announce(pool);
    work(pool, 0);
    // The others are at their last part: the wait is short, and a sleep would cost
    // more.  Where they have no core to run on, give them ours.
    for (int spin = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < parts; spin++) {
        if (spin < SPINS)
            relax();
        else
            (void)sched_yield();
    }
}
