#include "server/device/cpu/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// How often an idle thread polls for work before it sleeps: longer than the
// pause between two operations of a model, short enough not to waste a core.
enum { SPINS = 4000 };

struct worker {
    struct thread_pool *pool;
    pthread_t thread;
    unsigned int number;
};

struct thread_pool {
    unsigned int threads;
    unsigned int started; // threads that must be joined

    // The task: written by the owner before `generation` moves, read by the
    // threads after they have seen it move.
    thread_pool_task *task;
    void *context;
    size_t parts;

    // Odd or even does not matter: it moves once a task, and once to stop.  The
    // owner's release publishes the task; the threads' acquire receives it.
    _Atomic uint64_t generation;
    atomic_bool stop;
    // The next unclaimed part.  Relaxed: it only distributes numbers.
    _Atomic size_t next;
    // Threads still running.  Their release publishes what they computed; the
    // owner's acquire of 0 receives it.
    atomic_uint busy;

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

static void work(struct thread_pool *pool, unsigned int number)
{
    for (;;) {
        size_t part = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (part >= pool->parts)
            return;
        pool->task(pool->context, part, number);
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

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct thread_pool *pool = worker->pool;
    uint64_t seen = 0;
    for (;;) {
        seen = wait_for_task(pool, seen);
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return NULL;
        work(pool, worker->number);
        atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_release);
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
    pool->task = task;
    pool->context = context;
    pool->parts = parts;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->busy, pool->threads - 1, memory_order_relaxed);
    announce(pool);
    work(pool, 0);
    // The others are at their last part: the wait is short, and a sleep would cost
    // more.  Where they have no core to run on, give them ours.
    for (int spin = 0; atomic_load_explicit(&pool->busy, memory_order_acquire) > 0; spin++) {
        if (spin < SPINS)
            relax();
        else
            (void)sched_yield();
    }
}
