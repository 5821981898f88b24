#include "server/pipeline/fillers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/sys/clock.h"
#include "server/device/range.h"

// How often a waiting driver asks whether the job is cancelled.
enum { ASK_AFTER_MS = 20 };

// A chunk on its way; its place is its number modulo the prefetch.
struct entry {
    bool ready;
    struct filled filled;
    enum status status; // of `fill`
    struct error error;
};

struct fillers {
    const struct pipeline_job *job;
    struct slot_pool *pool;
    unsigned int started;
    pthread_t threads[PIPELINE_FILLERS_MAX];

    pthread_mutex_t lock; // of all below
    pthread_cond_t ready; // a chunk is, or no slot can be had
    pthread_cond_t room;  // the driver took a chunk
    bool stopping;
    uint64_t next_claimed, next_taken; // chunks
    enum status pool_status;           // why no slot can be had
    struct error pool_error;
    uint64_t fill_ns;
    unsigned int prefetch;
    struct entry entries[PIPELINE_PREFETCH_MAX];
};

static struct entry *entry_of(struct fillers *fillers, uint64_t chunk)
{
    return &fillers->entries[chunk % fillers->prefetch];
}

// Takes the next chunk once it is near enough; false when there is none.
static bool claim(struct fillers *fillers, uint64_t *chunk, size_t *size)
{
    const struct pipeline_job *job = fillers->job;
    (void)pthread_mutex_lock(&fillers->lock);
    while (!fillers->stopping && fillers->next_claimed >= fillers->next_taken + fillers->prefetch)
        (void)pthread_cond_wait(&fillers->room, &fillers->lock);
    *size = fillers->stopping ? 0 : job->chunk_size(job->context, fillers->next_claimed);
    if (*size > 0)
        *chunk = fillers->next_claimed++;
    (void)pthread_mutex_unlock(&fillers->lock);
    return *size > 0;
}

// Fills the slot and hands it over; false where it could not.  `free_ns`: since when the
// thread had nothing else to do.
static bool fill(struct fillers *fillers, uint64_t chunk, struct slot *slot, size_t size,
                 uint64_t free_ns)
{
    const struct pipeline_job *job = fillers->job;
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

    (void)pthread_mutex_lock(&fillers->lock);
    struct entry *entry = entry_of(fillers, chunk);
    entry->filled = (struct filled){slot, size, ready_ns, begun_ns - free_ns};
    entry->status = status;
    entry->error = error;
    entry->ready = true;
    fillers->fill_ns += ready_ns - begun_ns;
    const bool is_next = chunk == fillers->next_taken;
    (void)pthread_mutex_unlock(&fillers->lock);
    // The driver waits for the next chunk alone.  It is woken outside of the lock, which it
    // takes first of all.
    if (is_next)
        (void)pthread_cond_signal(&fillers->ready);
    return status == STATUS_OK;
}

static void give_up(struct fillers *fillers, enum status status, const struct error *error)
{
    (void)pthread_mutex_lock(&fillers->lock);
    if (fillers->pool_status == STATUS_OK) {
        fillers->pool_status = status;
        fillers->pool_error = *error;
    }
    (void)pthread_mutex_unlock(&fillers->lock);
    (void)pthread_cond_signal(&fillers->ready);
}

static void *run(void *context)
{
    struct fillers *fillers = context;
    for (;;) {
        struct error error = {.status = STATUS_OK};
        struct slot *slot = NULL;
        uint64_t chunk = 0;
        size_t size = 0;
        const uint64_t free_ns = clock_monotonic_ns();
        const enum status status = slot_pool_acquire(fillers->pool, &slot, &error);
        if (status != STATUS_OK) {
            give_up(fillers, status, &error);
            return NULL;
        }
        if (!claim(fillers, &chunk, &size)) {
            slot_pool_release(fillers->pool, slot);
            return NULL;
        }
        if (!fill(fillers, chunk, slot, size, free_ns))
            return NULL;
    }
}

enum status fillers_start(struct fillers **out, const struct pipeline_job *job,
                          struct slot_pool *pool, unsigned int threads, unsigned int prefetch,
                          struct error *err)
{
    struct fillers *fillers = calloc(1, sizeof *fillers);
    if (!fillers)
        return error_no_memory(err, "pipeline");
    fillers->job = job;
    fillers->pool = pool;
    fillers->prefetch = prefetch;
    (void)pthread_mutex_init(&fillers->lock, NULL); // none of these can fail on Linux
    (void)pthread_cond_init(&fillers->room, NULL);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&fillers->ready, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);

    while (fillers->started < threads) {
        if (pthread_create(&fillers->threads[fillers->started], NULL, run, fillers) != 0) {
            (void)fillers_end(fillers);
            return error_set(err, STATUS_NOMEM, "pipeline: no thread to fill with");
        }
        fillers->started++;
    }
    *out = fillers;
    return STATUS_OK;
}

// Sleeps until a filler has something to say, or a while.  Holds the lock.
static void wait_a_while(struct fillers *fillers)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ASK_AFTER_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    (void)pthread_cond_timedwait(&fillers->ready, &fillers->lock, &until);
}

// Waits for the next chunk.  Holds the lock.
static enum status await(struct fillers *fillers, struct entry *entry, struct error *err)
{
    const struct pipeline_job *job = fillers->job;
    while (!entry->ready) {
        if (fillers->pool_status != STATUS_OK)
            return error_set(err, fillers->pool_status, "%s", fillers->pool_error.text);
        if (job->cancelled && job->cancelled())
            return error_set(err, STATUS_CANCELLED, "%s: cancelled", job->name);
        wait_a_while(fillers);
    }
    if (entry->status != STATUS_OK)
        return error_set(err, entry->status, "%s", entry->error.text);
    return STATUS_OK;
}

enum status fillers_next(struct fillers *fillers, struct filled *out, struct error *err)
{
    const struct pipeline_job *job = fillers->job;
    *out = (struct filled){0};
    bool taken = false;
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&fillers->lock);
    if (job->chunk_size(job->context, fillers->next_taken) > 0) {
        struct entry *entry = entry_of(fillers, fillers->next_taken);
        status = await(fillers, entry, err);
        if (status == STATUS_OK) {
            *out = entry->filled;
            entry->ready = false;
            fillers->next_taken++;
            taken = true;
        }
    }
    (void)pthread_mutex_unlock(&fillers->lock);
    if (taken)
        (void)pthread_cond_signal(&fillers->room);
    return status;
}

uint64_t fillers_end(struct fillers *fillers)
{
    if (!fillers)
        return 0;
    (void)pthread_mutex_lock(&fillers->lock);
    fillers->stopping = true;
    (void)pthread_cond_broadcast(&fillers->room);
    (void)pthread_mutex_unlock(&fillers->lock);
    slot_pool_close(fillers->pool);
    for (unsigned int i = 0; i < fillers->started; i++)
        (void)pthread_join(fillers->threads[i], NULL);
    for (unsigned int i = 0; i < fillers->prefetch; i++)
        if (fillers->entries[i].ready)
            slot_pool_release(fillers->pool, fillers->entries[i].filled.slot);

    const uint64_t fill_ns = fillers->fill_ns;
    (void)pthread_cond_destroy(&fillers->ready);
    (void)pthread_cond_destroy(&fillers->room);
    (void)pthread_mutex_destroy(&fillers->lock);
    free(fillers);
    return fill_ns;
}
