#include "server/pipeline/taker.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/core/sketch.h"
#include "common/sys/clock.h"
#include "server/device/range.h"

struct taker {
    struct device *device;
    size_t out_bytes;
    unsigned int flight_count;
    struct flight flights[TAKER_FLIGHTS_MAX];
    const struct pipeline_job *job;
    pthread_t thread;
    struct sketch *times; // the taker's thread while a run is

    pthread_mutex_t lock; // of all below
    pthread_cond_t freed, departed;
    uint64_t gone, landed; // flights, in a ring
    bool ending;
    enum status status;
    struct error error;
};

enum status taker_new(struct taker **out, struct device *device, unsigned int flights,
                      size_t out_bytes, struct error *err)
{
    assert(flights >= 1 && flights <= TAKER_FLIGHTS_MAX);
    struct taker *taker = calloc(1, sizeof *taker);
    if (!taker)
        return error_no_memory(err, "pipeline");
    taker->device = device;
    taker->out_bytes = out_bytes;
    (void)pthread_mutex_init(&taker->lock, NULL); // none of these can fail on Linux
    (void)pthread_cond_init(&taker->freed, NULL);
    (void)pthread_cond_init(&taker->departed, NULL);

    enum status status = STATUS_OK;
    if (sketch_new(&taker->times) != STATUS_OK || sketch_reserve_ns(taker->times) != STATUS_OK)
        status = error_no_memory(err, "pipeline");
    while (status == STATUS_OK && taker->flight_count < flights) {
        struct flight *flight = &taker->flights[taker->flight_count++];
        status = device_event_new(device, &flight->done, DEVICE_EVENT_ORDER, err);
        if (status == STATUS_OK && out_bytes > 0)
            status = device_pinned_new(device, &flight->memory, out_bytes, err);
    }
    if (status != STATUS_OK) {
        taker_free(taker);
        return status;
    }
    *out = taker;
    return STATUS_OK;
}

void taker_free(struct taker *taker)
{
    if (!taker)
        return;
    for (unsigned int i = 0; i < taker->flight_count; i++) {
        device_event_free(taker->flights[i].done);
        device_pinned_free(taker->device, taker->flights[i].memory, taker->out_bytes);
    }
    sketch_free(taker->times);
    (void)pthread_cond_destroy(&taker->departed);
    (void)pthread_cond_destroy(&taker->freed);
    (void)pthread_mutex_destroy(&taker->lock);
    free(taker);
}

// ---- The taker's thread ---------------------------------------------------

// The oldest flight that departed, waiting for one; NULL at the end.
static struct flight *next_flight(struct taker *taker)
{
    struct flight *flight = NULL;
    (void)pthread_mutex_lock(&taker->lock);
    while (taker->landed == taker->gone && !taker->ending)
        (void)pthread_cond_wait(&taker->departed, &taker->lock);
    if (taker->landed < taker->gone)
        flight = &taker->flights[taker->landed % taker->flight_count];
    (void)pthread_mutex_unlock(&taker->lock);
    return flight;
}

static void land(struct taker *taker, enum status status, const struct error *error)
{
    (void)pthread_mutex_lock(&taker->lock);
    if (status != STATUS_OK && taker->status == STATUS_OK) {
        taker->status = status;
        taker->error = *error;
    }
    taker->landed++;
    (void)pthread_mutex_unlock(&taker->lock);
    (void)pthread_cond_signal(&taker->freed);
}

// After a failure events are still waited for, in order; nothing is taken any more.
static void *run(void *context)
{
    struct taker *taker = context;
    const struct pipeline_job *job = taker->job;
    bool failed = false;
    for (struct flight *flight = next_flight(taker); flight; flight = next_flight(taker)) {
        struct error error = {.status = STATUS_OK};
        enum status status = device_event_wait(flight->done, &error);
        const uint64_t now_ns = clock_monotonic_ns();
        if (status == STATUS_OK && !failed) {
            sketch_add_bucket(taker->times,
                              SKETCH_NS_OFFSET + sketch_ns_bucket(now_ns - flight->begun_ns), 1);
            range_begin_at("take", flight->group);
            if (job->take)
                status = job->take(job->context, flight->group,
                                   flight->size ? flight->memory : NULL, flight->size, &error);
            range_end();
        }
        failed = failed || status != STATUS_OK;
        land(taker, status, &error);
    }
    return NULL;
}

// ---- The driver's side ----------------------------------------------------

enum status taker_begin(struct taker *taker, const struct pipeline_job *job, struct error *err)
{
    taker->job = job;
    taker->gone = taker->landed = 0;
    taker->ending = false;
    taker->status = STATUS_OK;
    sketch_reset(taker->times);
    if (pthread_create(&taker->thread, NULL, run, taker) != 0)
        return error_set(err, STATUS_NOMEM, "pipeline: no thread to take results with");
    return STATUS_OK;
}

enum status taker_board(struct taker *taker, struct flight **out, struct error *err)
{
    (void)pthread_mutex_lock(&taker->lock);
    while (taker->status == STATUS_OK && taker->gone - taker->landed == taker->flight_count)
        (void)pthread_cond_wait(&taker->freed, &taker->lock);
    const enum status status = taker->status;
    if (status != STATUS_OK)
        (void)error_set(err, status, "%s", taker->error.text);
    *out = &taker->flights[taker->gone % taker->flight_count];
    (void)pthread_mutex_unlock(&taker->lock);
    return status;
}

void taker_depart(struct taker *taker, struct flight *flight)
{
    (void)pthread_mutex_lock(&taker->lock);
    assert(flight == &taker->flights[taker->gone % taker->flight_count]);
    taker->gone++;
    (void)pthread_mutex_unlock(&taker->lock);
    (void)pthread_cond_signal(&taker->departed);
}

static uint64_t quantile(const struct sketch *times, double q)
{
    double value = 0;
    return sketch_quantile(times, q, &value) ? (uint64_t)value : 0;
}

enum status taker_end(struct taker *taker, struct taker_figures *figures, struct error *err)
{
    (void)pthread_mutex_lock(&taker->lock);
    taker->ending = true;
    (void)pthread_mutex_unlock(&taker->lock);
    (void)pthread_cond_signal(&taker->departed);
    (void)pthread_join(taker->thread, NULL);
    *figures = (struct taker_figures){
        .p50_ns = quantile(taker->times, 0.50),
        .p95_ns = quantile(taker->times, 0.95),
        .p99_ns = quantile(taker->times, 0.99),
    };
    if (taker->status != STATUS_OK)
        return error_set(err, taker->status, "%s", taker->error.text);
    return STATUS_OK;
}
