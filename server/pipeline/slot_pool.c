#include "server/pipeline/slot_pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/sys/clock.h"

struct slot_pool {
    struct device *device;
    size_t slot_bytes;
    bool metrics;
    // Read when the run is over, which joining the threads orders.  Acquires and free slots are
    // counted under the lock, waits atomically.
    struct pool_figures figures;

    // The lists are changed under the lock; events are waited for outside of it.
    pthread_mutex_t lock;
    pthread_cond_t back; // a slot came back or was lent, or the pool was closed
    bool closed;
    unsigned int slot_count;
    unsigned int free_count;
    unsigned int lent_first, lent_count; // a ring, the oldest first
    struct slot *free[POOL_SLOTS_MAX];
    struct slot *lent[POOL_SLOTS_MAX];
    struct slot slots[POOL_SLOTS_MAX];
};

// ---- Counting -------------------------------------------------------------

static void count_acquire(struct pool_figures *figures, unsigned int available)
{
    if (figures->acquires++ == 0 || available < figures->available_min)
        figures->available_min = available;
    if (available > figures->available_max)
        figures->available_max = available;
}

static void count_wait(struct pool_figures *figures, uint64_t ns)
{
    unsigned int bin = 0;
    for (uint64_t us = ns / 1000; us >= 2 && bin < POOL_WAIT_BINS - 1; us /= 2)
        bin++;
    (void)__atomic_fetch_add(&figures->waits, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&figures->wait_ns, ns, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&figures->wait_histogram[bin], 1, __ATOMIC_RELAXED);
}

void slot_pool_figures(const struct slot_pool *pool, struct pool_figures *out)
{
    *out = pool->figures;
}

// ---- Building -------------------------------------------------------------

static enum status check_count(unsigned int slots, struct error *err)
{
    if (slots >= 1 && slots <= POOL_SLOTS_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "pool: %u slots: not from 1 to %d", slots,
                     POOL_SLOTS_MAX);
}

static void remove_slots(struct slot_pool *pool, unsigned int slots)
{
    while (pool->slot_count > slots) {
        struct slot *slot = &pool->slots[--pool->slot_count];
        device_event_free(slot->copied);
        device_pinned_free(pool->device, slot->memory, slot->size);
        *slot = (struct slot){.memory = NULL};
    }
}

static enum status add_slots(struct slot_pool *pool, unsigned int slots, struct error *err)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && pool->slot_count < slots) {
        struct slot *slot = &pool->slots[pool->slot_count++];
        slot->size = pool->slot_bytes;
        if (slot->size > 0)
            status = device_pinned_new(pool->device, &slot->memory, slot->size, err);
        if (status == STATUS_OK)
            status = device_event_new(pool->device, &slot->copied, DEVICE_EVENT_ORDER, err);
    }
    return status;
}

enum status slot_pool_new(struct slot_pool **out, struct device *device, unsigned int slots,
                          size_t slot_bytes, bool metrics, struct error *err)
{
    enum status status = check_count(slots, err);
    if (status != STATUS_OK)
        return status;
    struct slot_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return error_no_memory(err, "pool");
    pool->device = device;
    pool->slot_bytes = slot_bytes;
    pool->metrics = metrics;
    (void)pthread_mutex_init(&pool->lock, NULL); // neither can fail on Linux
    (void)pthread_cond_init(&pool->back, NULL);
    status = add_slots(pool, slots, err);
    if (status != STATUS_OK) {
        slot_pool_free(pool);
        return status;
    }
    slot_pool_reopen(pool);
    *out = pool;
    return STATUS_OK;
}

enum status slot_pool_resize(struct slot_pool *pool, unsigned int slots, struct error *err)
{
    const unsigned int before = pool->slot_count;
    enum status status = check_count(slots, err);
    if (status != STATUS_OK)
        return status;
    remove_slots(pool, slots);
    status = add_slots(pool, slots, err);
    if (status != STATUS_OK)
        remove_slots(pool, before);
    slot_pool_reopen(pool);
    return status;
}

void slot_pool_free(struct slot_pool *pool)
{
    if (!pool)
        return;
    remove_slots(pool, 0);
    (void)pthread_cond_destroy(&pool->back);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void slot_pool_reopen(struct slot_pool *pool)
{
    pool->closed = false;
    pool->lent_first = 0;
    pool->lent_count = 0;
    // The last is taken first: let that be slot 0.
    pool->free_count = pool->slot_count;
    for (unsigned int i = 0; i < pool->slot_count; i++)
        pool->free[i] = &pool->slots[pool->slot_count - 1 - i];
    pool->figures = (struct pool_figures){0};
}

// ---- Slots going round ----------------------------------------------------

static struct slot *pop_oldest_lent(struct slot_pool *pool)
{
    struct slot *slot = pool->lent[pool->lent_first];
    pool->lent_first = (pool->lent_first + 1) % POOL_SLOTS_MAX;
    pool->lent_count--;
    return slot;
}

// Frees the lent slots whose copies are done, up to the first that is not.
static enum status collect(struct slot_pool *pool, struct error *err)
{
    while (pool->lent_count > 0) {
        bool done = false;
        const enum status status =
            device_event_query(pool->lent[pool->lent_first]->copied, &done, err);
        if (status != STATUS_OK)
            return status;
        if (!done)
            return STATUS_OK;
        pool->free[pool->free_count++] = pop_oldest_lent(pool);
    }
    return STATUS_OK;
}

// Takes a slot off the lists, sleeping until there is one; `*pending` where the copy from it
// may still run.  Holds the lock.
static enum status take(struct slot_pool *pool, struct slot **out, bool *pending, struct error *err)
{
    while (!pool->closed) {
        *pending = pool->free_count == 0;
        if (pool->free_count > 0) {
            *out = pool->free[--pool->free_count];
            return STATUS_OK;
        }
        if (pool->lent_count > 0) {
            *out = pop_oldest_lent(pool);
            return STATUS_OK;
        }
        (void)pthread_cond_wait(&pool->back, &pool->lock);
        const enum status status = collect(pool, err);
        if (status != STATUS_OK)
            return status;
    }
    return error_set(err, STATUS_CANCELLED, "pool: closed");
}

enum status slot_pool_acquire(struct slot_pool *pool, struct slot **out, struct error *err)
{
    const bool metrics = pool->metrics;
    bool pending = false;
    struct slot *slot = NULL;
    (void)pthread_mutex_lock(&pool->lock);
    enum status status = collect(pool, err);
    const unsigned int available = pool->free_count;
    const uint64_t begun_ns = metrics && available == 0 ? clock_monotonic_ns() : 0;
    if (status == STATUS_OK)
        status = take(pool, &slot, &pending, err);
    if (slot && metrics)
        count_acquire(&pool->figures, available);
    (void)pthread_mutex_unlock(&pool->lock);
    if (!slot)
        return status;

    // The host waits here, before the slot is written: a wait queued on the copy stream would
    // delay the next copy, not the filling thread.
    if (pending)
        status = device_event_wait(slot->copied, err);
    if (metrics && available == 0)
        count_wait(&pool->figures, clock_monotonic_ns() - begun_ns);
    if (status != STATUS_OK) {
        slot_pool_release(pool, slot); // a failed wait means that nothing reads it any more
        return status;
    }
    *out = slot;
    return STATUS_OK;
}

void slot_pool_lend(struct slot_pool *pool, struct slot *slot)
{
    (void)pthread_mutex_lock(&pool->lock);
    assert(pool->lent_count < pool->slot_count);
    pool->lent[(pool->lent_first + pool->lent_count++) % POOL_SLOTS_MAX] = slot;
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_cond_signal(&pool->back);
}

void slot_pool_release(struct slot_pool *pool, struct slot *slot)
{
    (void)pthread_mutex_lock(&pool->lock);
    assert(pool->free_count < pool->slot_count);
    pool->free[pool->free_count++] = slot;
    (void)pthread_mutex_unlock(&pool->lock);
    (void)pthread_cond_signal(&pool->back);
}

void slot_pool_close(struct slot_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    (void)pthread_cond_broadcast(&pool->back);
    (void)pthread_mutex_unlock(&pool->lock);
}

enum status slot_pool_drain(struct slot_pool *pool, struct error *err)
{
    enum status status = STATUS_OK;
    (void)pthread_mutex_lock(&pool->lock);
    while (pool->lent_count > 0) {
        struct slot *slot = pop_oldest_lent(pool);
        const enum status waited =
            device_event_wait(slot->copied, status == STATUS_OK ? err : NULL);
        if (status == STATUS_OK)
            status = waited;
        pool->free[pool->free_count++] = slot;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return status;
}
