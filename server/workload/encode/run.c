#include "server/workload/encode/run.h"

#include <assert.h>
#include <inttypes.h>

#include "common/sys/clock.h"
#include "common/sys/thread.h"
#include "server/workload/telemetry.h"
#include "server/workload/encode/run_parts.h"

size_t encoding_samples(const struct encoding *encoding, uint64_t batch)
{
    uint64_t first = batch * encoding->launch.samples;
    uint64_t left = encoding->description.inputs->samples - first;
    return left < encoding->launch.samples ? (size_t)left : encoding->launch.samples;
}

void output_order_init(struct output_order *order)
{
    *order = (struct output_order){.end = UINT64_MAX};
    (void)pthread_mutex_init(&order->lock, NULL); // neither can fail without attributes
    (void)pthread_cond_init(&order->changed, NULL);
}

void output_order_deinit(struct output_order *order)
{
    (void)pthread_cond_destroy(&order->changed);
    (void)pthread_mutex_destroy(&order->lock);
}

bool output_order_wait(struct output_order *order, uint64_t batch)
{
    (void)pthread_mutex_lock(&order->lock);
    while (order->next < batch && batch < order->end)
        (void)pthread_cond_wait(&order->changed, &order->lock);
    bool reached = batch < order->end;
    (void)pthread_mutex_unlock(&order->lock);
    return reached;
}

void output_order_advance(struct output_order *order)
{
    (void)pthread_mutex_lock(&order->lock);
    order->next++;
    (void)pthread_cond_broadcast(&order->changed);
    (void)pthread_mutex_unlock(&order->lock);
}

void output_order_end(struct output_order *order, uint64_t batch)
{
    (void)pthread_mutex_lock(&order->lock);
    if (batch < order->end)
        order->end = batch;
    (void)pthread_cond_broadcast(&order->changed);
    (void)pthread_mutex_unlock(&order->lock);
}

bool output_order_reaches(struct output_order *order, uint64_t batch)
{
    (void)pthread_mutex_lock(&order->lock);
    bool reached = batch < order->end;
    (void)pthread_mutex_unlock(&order->lock);
    return reached;
}

static void *run_in_thread(void *context)
{
    device_share_run(context);
    return NULL;
}

// Runs all shares, the first in this thread.  If a thread cannot be started, nothing is encoded.
static void run_shares(struct encoding *e)
{
    struct thread threads[DEVICE_LIST_MAX] = {0};
    for (unsigned int i = 1; i < e->share_count; i++) {
        struct device_share *share = &e->shares[i];
        struct error why;
        const enum status status = thread_start(&threads[i], "encode", run_in_thread, share, &why);
        if (status == STATUS_OK)
            continue;
        share->started_ns = inferstat_clock_ns();
        share->report.status = status;
        share->why = why;
        output_order_end(&e->order, 0);
    }
    device_share_run(&e->shares[0]);
    for (unsigned int i = 1; i < e->share_count; i++)
        thread_join(&threads[i]);
}

// The run's status: that of the first failed batch; cancelled when none failed but not all are
// done.
static enum status judge(const struct encoding *e, struct error *err)
{
    const struct device_share *first = NULL;
    bool cancelled = false;
    uint64_t first_batch = 0, done = 0;
    for (unsigned int i = 0; i < e->share_count; i++) {
        const struct device_share *share = &e->shares[i];
        const uint64_t batch = share->report.figures.batches * e->share_count + i;
        done += share->report.figures.batches;
        if (share->report.status == STATUS_CANCELLED) {
            cancelled = true;
        } else if (share->report.status != STATUS_OK && (!first || batch < first_batch)) {
            first = share;
            first_batch = batch;
        }
    }
    if (first)
        return error_set(err, first->report.status, "%s", first->why.text);
    if (!cancelled)
        return STATUS_OK;
    return error_set(err, STATUS_CANCELLED,
                     "encode: stopped after %" PRIu64 " of %" PRIu64 " batches", done, e->batches);
}

static void add_share(struct encoding_figures *sum, const struct encoding_figures *more)
{
    pipeline_figures_add(&sum->pipeline, &more->pipeline);
    sum->items += more->items;
    sum->batches += more->batches;
    sum->take_ns += more->take_ns;
    sum->checked += more->checked;
    sum->differing += more->differing;
    if (more->worst.largest > sum->worst.largest)
        sum->worst.largest = more->worst.largest;
    if (more->worst.fidelity < sum->worst.fidelity)
        sum->worst.fidelity = more->worst.fidelity;
}

static void add_up(struct encoding_figures *figures, const struct encoding *e, uint64_t duration_ns)
{
    *figures = (struct encoding_figures){.worst = {.fidelity = 1.0}};
    if (e->share_count == 1) {
        *figures = e->shares[0].report.figures;
        return;
    }
    for (unsigned int i = 0; i < e->share_count; i++)
        add_share(figures, &e->shares[i].report.figures);
    figures->pipeline.duration_ns = duration_ns;
}

// Only a complete run replaces the output.
static enum status finish_output(struct encoding *e, enum status status, struct error *err)
{
    struct npy_writer *writer = e->writer;
    e->writer = NULL;
    if (status == STATUS_OK && writer)
        return npy_finish(writer, err);
    npy_abandon(writer);
    return status;
}

enum status encoding_run(struct encoding *e, struct encoding_figures *figures, struct error *err)
{
    assert(!e->has_run || !e->options.output);
    uint64_t begun = clock_monotonic_ns();
    run_shares(e);
    add_up(figures, e, clock_monotonic_ns() - begun);
    const enum status ran = judge(e, err);
    enum status status = finish_output(e, ran, err);
    if (ran == STATUS_OK && status != STATUS_OK)
        e->shares[0].report.status = status; // the output is shared, so any share may report it
    for (unsigned int i = 0; i < e->share_count; i++)
        device_share_record(&e->shares[i]);
    e->has_run = true;
    return status;
}

void encoding_calibrate_devices(const struct encoding *e)
{
    for (unsigned int i = 0; i < e->share_count && e->monitor; i++)
        device_calibrate_for_later(e->shares[i].device);
}
