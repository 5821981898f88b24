#include "server/pipeline/pipeline_parts.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/sys/clock.h"
#include "common/sys/thread.h"
#include "server/device/range.h"

// How often a waiting driver polls for cancellation.
enum { ASK_AFTER_MS = 20 };

// A claimed chunk, at its number modulo the prefetch.
struct entry {
    bool ready;
    struct chunk chunk;
    enum status status; // of `fill`
    struct error error;
};

struct fill_workers {
    const struct pipeline_job *job;
    struct slot_pool *pool;
    struct thread threads[PIPELINE_FILLERS_MAX];

    pthread_mutex_t lock; // of all below
    pthread_cond_t ready; // a chunk was filled, or slots cannot be acquired
    pthread_cond_t room;  // the driver took a chunk
    bool stopping;
    uint64_t next_claimed, next_taken; // chunks
    uint64_t reserved;                 // workers that acquire a slot for a chunk to be claimed
    enum status pool_status;           // why slots cannot be acquired
    struct error pool_error;
    uint64_t fill_ns;
    unsigned int prefetch;
    struct entry entries[PIPELINE_PREFETCH_MAX];
};

static struct entry *entry_of(struct fill_workers *workers, uint64_t chunk)
{
    return &workers->entries[chunk % workers->prefetch];
}

// Reserves one of the chunks that are left, so that no slot is acquired in vain; false when all
// are reserved or claimed.
static bool reserve(struct fill_workers *workers)
{
    (void)pthread_mutex_lock(&workers->lock);
    const bool is_left =
        !workers->stopping &&
        pipeline_chunk_size(workers->job, workers->next_claimed + workers->reserved) > 0;
    workers->reserved += is_left;
    (void)pthread_mutex_unlock(&workers->lock);
    return is_left;
}

// Claims the next chunk, after `reserve`, once it is within the prefetch; false when stopping.
static bool claim(struct fill_workers *workers, uint64_t *chunk, size_t *size)
{
    const struct pipeline_job *job = workers->job;
    (void)pthread_mutex_lock(&workers->lock);
    while (!workers->stopping && workers->next_claimed >= workers->next_taken + workers->prefetch)
        (void)pthread_cond_wait(&workers->room, &workers->lock);
    *size = workers->stopping ? 0 : pipeline_chunk_size(job, workers->next_claimed);
    if (*size > 0)
        *chunk = workers->next_claimed++;
    workers->reserved--;
    (void)pthread_mutex_unlock(&workers->lock);
    return *size > 0;
}

// Fills the slot and passes it on; false on failure.  `free_ns`: since when the thread was
// idle.
static bool fill(struct fill_workers *workers, uint64_t chunk, struct slot *slot, size_t size,
                 uint64_t free_ns)
{
    const struct pipeline_job *job = workers->job;
    struct error error = {.status = STATUS_OK};
    const uint64_t begun_ns = clock_monotonic_ns();
    enum status status = STATUS_OK;
    if (size > slot->size) {
        status = error_set(&error, STATUS_INVALID,
                           "%s: chunk %llu has %zu bytes: more than a slot's %zu", job->name,
                           (unsigned long long)chunk, size, slot->size);
    } else {
        range_begin_at("fill", chunk);
        status = job->fill(job->context, chunk, slot->memory, size, &error);
        range_end();
    }
    const uint64_t ready_ns = clock_monotonic_ns();

    (void)pthread_mutex_lock(&workers->lock);
    struct entry *entry = entry_of(workers, chunk);
    entry->chunk = (struct chunk){slot->memory, size, slot, ready_ns, begun_ns - free_ns};
    entry->status = status;
    entry->error = error;
    entry->ready = true;
    workers->fill_ns += ready_ns - begun_ns;
    const bool is_next = chunk == workers->next_taken;
    (void)pthread_mutex_unlock(&workers->lock);
    // The driver waits only for the next chunk.  Signal it after unlocking, since it locks
    // first.
    if (is_next)
        (void)pthread_cond_signal(&workers->ready);
    return status == STATUS_OK;
}

static void give_up(struct fill_workers *workers, enum status status, const struct error *error)
{
    (void)pthread_mutex_lock(&workers->lock);
    if (workers->pool_status == STATUS_OK) {
        workers->pool_status = status;
        workers->pool_error = *error;
    }
    (void)pthread_mutex_unlock(&workers->lock);
    (void)pthread_cond_signal(&workers->ready);
}

static void *run(void *context)
{
    struct fill_workers *workers = context;
    for (;;) {
        struct error error = {.status = STATUS_OK};
        struct slot *slot = NULL;
        uint64_t chunk = 0;
        size_t size = 0;
        const uint64_t free_ns = clock_monotonic_ns();
        if (!reserve(workers))
            return NULL;
        const enum status status = slot_pool_acquire(workers->pool, &slot, &error);
        if (status != STATUS_OK) {
            give_up(workers, status, &error);
            return NULL;
        }
        if (!claim(workers, &chunk, &size)) {
            slot_pool_release(workers->pool, slot);
            return NULL;
        }
        if (!fill(workers, chunk, slot, size, free_ns))
            return NULL;
    }
}

enum status fill_workers_start(struct fill_workers **out, const struct pipeline_job *job,
                               struct slot_pool *pool, unsigned int threads, unsigned int prefetch,
                               struct error *err)
{
    struct fill_workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return error_no_memory(err, "pipeline");
    workers->job = job;
    workers->pool = pool;
    workers->prefetch = prefetch;
    (void)pthread_mutex_init(&workers->lock, NULL); // none of these can fail on Linux
    (void)pthread_cond_init(&workers->room, NULL);
    (void)pthread_cond_init(&workers->ready, NULL);

    enum status status = STATUS_OK;
    for (unsigned int i = 0; i < threads && status == STATUS_OK; i++)
        status = thread_start(&workers->threads[i], "pipeline: fill", run, workers, err);
    if (status != STATUS_OK) {
        (void)fill_workers_end(workers);
        return status;
    }
    *out = workers;
    return STATUS_OK;
}

// Waits for a worker's signal, at most ASK_AFTER_MS.  Holds the lock.
static void wait_a_while(struct fill_workers *workers)
{
    const struct timespec until =
        clock_timespec(clock_monotonic_ns() + ASK_AFTER_MS * UINT64_C(1000000));
    (void)pthread_cond_clockwait(&workers->ready, &workers->lock, CLOCK_MONOTONIC, &until);
}

// Waits for the next chunk.  Holds the lock.
static enum status await(struct fill_workers *workers, struct entry *entry, struct error *err)
{
    const struct pipeline_job *job = workers->job;
    while (!entry->ready) {
        if (workers->pool_status != STATUS_OK)
            return error_set(err, workers->pool_status, "%s", workers->pool_error.text);
        if (job->cancelled && job->cancelled())
            return error_set(err, STATUS_CANCELLED, "%s: cancelled", job->name);
        wait_a_while(workers);
    }
    if (entry->status != STATUS_OK)
        return error_set(err, entry->status, "%s", entry->error.text);
    return STATUS_OK;
}

enum status fill_workers_next(struct fill_workers *workers, struct chunk *out, struct error *err)
{
    const struct pipeline_job *job = workers->job;
    *out = (struct chunk){0};
    bool taken = false;
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&workers->lock);
    if (pipeline_chunk_size(job, workers->next_taken) > 0) {
        struct entry *entry = entry_of(workers, workers->next_taken);
        status = await(workers, entry, err);
        if (status == STATUS_OK) {
            *out = entry->chunk;
            entry->ready = false;
            workers->next_taken++;
            taken = true;
        }
    }
    (void)pthread_mutex_unlock(&workers->lock);
    if (taken)
        (void)pthread_cond_signal(&workers->room);
    return status;
}

uint64_t fill_workers_end(struct fill_workers *workers)
{
    if (!workers)
        return 0;
    (void)pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    (void)pthread_cond_broadcast(&workers->room);
    (void)pthread_mutex_unlock(&workers->lock);
    slot_pool_close(workers->pool);
    for (unsigned int i = 0; i < PIPELINE_FILLERS_MAX; i++)
        thread_join(&workers->threads[i]);
    for (unsigned int i = 0; i < workers->prefetch; i++)
        if (workers->entries[i].ready)
            slot_pool_release(workers->pool, workers->entries[i].chunk.slot);

    const uint64_t fill_ns = workers->fill_ns;
    (void)pthread_cond_destroy(&workers->ready);
    (void)pthread_cond_destroy(&workers->room);
    (void)pthread_mutex_destroy(&workers->lock);
    free(workers);
    return fill_ns;
}
