#include "server/pipeline/pipeline_parts.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/core/stats/sketch.h"
#include "common/sys/clock.h"
#include "common/sys/thread.h"
#include "server/device/range.h"

struct result_drain {
    struct device *device;
    size_t out_bytes;
    result_drain_consumer *consume;
    void *context;
    struct thread thread;
    struct sketch *times; // of the drain's thread during a run

    pthread_mutex_t lock; // of all below
    pthread_cond_t freed, added;
    uint64_t submitted, drained; // slots so far; they form a ring
    bool ending;
    enum status status;
    struct error error;

    unsigned int slot_count;
    struct result_slot slots[];
};

enum status result_drain_new(struct result_drain **out, struct device *device, unsigned int slots,
                             size_t out_bytes, struct error *err)
{
    assert(slots >= 1);
    struct result_drain *drain = calloc(1, sizeof *drain + slots * sizeof *drain->slots);
    if (!drain)
        return error_no_memory(err, "pipeline");
    drain->device = device;
    drain->out_bytes = out_bytes;
    (void)pthread_mutex_init(&drain->lock, NULL); // none of these can fail on Linux
    (void)pthread_cond_init(&drain->freed, NULL);
    (void)pthread_cond_init(&drain->added, NULL);

    enum status status = STATUS_OK;
    if (sketch_new(&drain->times) != STATUS_OK || sketch_reserve_ns(drain->times) != STATUS_OK)
        status = error_no_memory(err, "pipeline");
    while (status == STATUS_OK && drain->slot_count < slots) {
        struct result_slot *slot = &drain->slots[drain->slot_count++];
        status = device_event_new(device, &slot->done, DEVICE_EVENT_ORDER, err);
        if (status == STATUS_OK && out_bytes > 0)
            status = device_pinned_new(device, &slot->memory, out_bytes, err);
    }
    if (status != STATUS_OK) {
        result_drain_free(drain);
        return status;
    }
    *out = drain;
    return STATUS_OK;
}

void result_drain_free(struct result_drain *drain)
{
    if (!drain)
        return;
    for (unsigned int i = 0; i < drain->slot_count; i++) {
        device_event_free(drain->slots[i].done);
        device_pinned_free(drain->device, drain->slots[i].memory, drain->out_bytes);
    }
    sketch_free(drain->times);
    (void)pthread_cond_destroy(&drain->added);
    (void)pthread_cond_destroy(&drain->freed);
    (void)pthread_mutex_destroy(&drain->lock);
    free(drain);
}

// ---- The drain's thread ---------------------------------------------------

// Waits for the oldest submitted slot; NULL at the end.
static struct result_slot *next_submitted(struct result_drain *drain)
{
    struct result_slot *slot = NULL;
    (void)pthread_mutex_lock(&drain->lock);
    while (drain->drained == drain->submitted && !drain->ending)
        (void)pthread_cond_wait(&drain->added, &drain->lock);
    if (drain->drained < drain->submitted)
        slot = &drain->slots[drain->drained % drain->slot_count];
    (void)pthread_mutex_unlock(&drain->lock);
    return slot;
}

static void finish(struct result_drain *drain, enum status status, const struct error *error)
{
    (void)pthread_mutex_lock(&drain->lock);
    if (status != STATUS_OK && drain->status == STATUS_OK) {
        drain->status = status;
        drain->error = *error;
    }
    drain->drained++;
    (void)pthread_mutex_unlock(&drain->lock);
    (void)pthread_cond_signal(&drain->freed);
}

// After a failure it still waits for events, in order, but consumes nothing more.
static void *run(void *context)
{
    struct result_drain *drain = context;
    bool failed = false;
    for (struct result_slot *slot = next_submitted(drain); slot; slot = next_submitted(drain)) {
        struct error error = {.status = STATUS_OK};
        enum status status = device_event_wait(slot->done, &error);
        const uint64_t now_ns = clock_monotonic_ns();
        if (status == STATUS_OK && !failed) {
            sketch_add_bucket(drain->times,
                              SKETCH_NS_OFFSET + sketch_ns_bucket(now_ns - slot->begun_ns), 1);
            range_begin_at("take", slot->group);
            if (drain->consume)
                status = drain->consume(drain->context, slot->group,
                                        slot->size ? slot->memory : NULL, slot->size, &error);
            range_end();
        }
        failed = failed || status != STATUS_OK;
        finish(drain, status, &error);
    }
    return NULL;
}

// ---- The driver's side ----------------------------------------------------

enum status result_drain_begin(struct result_drain *drain, result_drain_consumer *consume,
                               void *context, struct error *err)
{
    drain->consume = consume;
    drain->context = context;
    drain->submitted = drain->drained = 0;
    drain->ending = false;
    drain->status = STATUS_OK;
    sketch_reset(drain->times);
    return thread_start(&drain->thread, "pipeline: results", run, drain, err);
}

enum status result_drain_acquire(struct result_drain *drain, struct result_slot **out,
                                 struct error *err)
{
    (void)pthread_mutex_lock(&drain->lock);
    while (drain->status == STATUS_OK && drain->submitted - drain->drained == drain->slot_count)
        (void)pthread_cond_wait(&drain->freed, &drain->lock);
    const enum status status = drain->status;
    if (status != STATUS_OK)
        (void)error_set(err, status, "%s", drain->error.text);
    *out = &drain->slots[drain->submitted % drain->slot_count];
    (void)pthread_mutex_unlock(&drain->lock);
    return status;
}

void result_drain_submit(struct result_drain *drain, struct result_slot *slot)
{
    (void)pthread_mutex_lock(&drain->lock);
    assert(slot == &drain->slots[drain->submitted % drain->slot_count]);
    drain->submitted++;
    (void)pthread_mutex_unlock(&drain->lock);
    (void)pthread_cond_signal(&drain->added);
}

enum status result_drain_end(struct result_drain *drain, struct error *err)
{
    (void)pthread_mutex_lock(&drain->lock);
    drain->ending = true;
    (void)pthread_mutex_unlock(&drain->lock);
    (void)pthread_cond_signal(&drain->added);
    thread_join(&drain->thread);
    if (drain->status != STATUS_OK)
        return error_set(err, drain->status, "%s", drain->error.text);
    return STATUS_OK;
}

uint64_t result_drain_latency_ns(const struct result_drain *drain, double q)
{
    double value = 0;
    return sketch_quantile(drain->times, q, &value) ? (uint64_t)value : 0;
}
