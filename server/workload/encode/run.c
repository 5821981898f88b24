#include "server/workload/encode/run.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "common/sys/clock.h"
#include "server/workload/device_record.h"
#include "server/workload/encode/run_parts.h"

size_t encoding_samples(const struct encoding *encoding, uint64_t batch)
{
    uint64_t first = batch * encoding->launch.samples;
    uint64_t left = encoding->description.inputs->samples - first;
    return left < encoding->launch.samples ? (size_t)left : encoding->launch.samples;
}

// ---- Lanes ----------------------------------------------------------------

static void *run_in_thread(void *context)
{
    lane_run(context);
    return NULL;
}

// Starts a thread for each lane but the first; returns how many lanes run then.  Those
// without one fail, and nothing is encoded.
static unsigned int start_lanes(struct encoding *e, pthread_t *threads)
{
    unsigned int started = 1;
    int code = 0;
    while (started < e->lane_count && code == 0) {
        code = pthread_create(&threads[started], NULL, run_in_thread, &e->lanes[started]);
        started += code == 0;
    }
    for (unsigned int i = started; i < e->lane_count; i++) {
        struct lane *lane = &e->lanes[i];
        lane->started_ns = inferstat_clock_ns();
        lane->share.status =
            error_set(&lane->why, STATUS_IO, "encode: cannot start a thread: %s", strerror(code));
        turns_end(e->turns, 0);
    }
    return started;
}

// All of them, the first in this thread.
static void run_lanes(struct encoding *e)
{
    pthread_t threads[DEVICE_LIST_MAX];
    unsigned int started = start_lanes(e, threads);
    lane_run(&e->lanes[0]);
    for (unsigned int i = 1; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

// How all of it went: as the first batch that failed did; where none did but not all was
// done, it was cancelled.
static enum status judge(const struct encoding *e, struct error *err)
{
    const struct lane *first = NULL;
    bool cancelled = false;
    uint64_t first_batch = 0, done = 0;
    for (unsigned int i = 0; i < e->lane_count; i++) {
        const struct lane *lane = &e->lanes[i];
        const uint64_t batch = lane->share.figures.batches * e->lane_count + i;
        done += lane->share.figures.batches;
        if (lane->share.status == STATUS_CANCELLED) {
            cancelled = true;
        } else if (lane->share.status != STATUS_OK && (!first || batch < first_batch)) {
            first = lane;
            first_batch = batch;
        }
    }
    if (first)
        return error_set(err, first->share.status, "%s", first->why.text);
    if (!cancelled)
        return STATUS_OK;
    return error_set(err, STATUS_CANCELLED,
                     "encode: stopped after %" PRIu64 " of %" PRIu64 " batches", done, e->batches);
}

// ---- Sums -----------------------------------------------------------------

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
    if (e->lane_count == 1) {
        *figures = e->lanes[0].share.figures;
        return;
    }
    for (unsigned int i = 0; i < e->lane_count; i++)
        add_share(figures, &e->lanes[i].share.figures);
    figures->pipeline.duration_ns = duration_ns;
}

// ---- The run --------------------------------------------------------------

// The output is of whole runs; one that ended early leaves what was there before.
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
    run_lanes(e);
    add_up(figures, e, clock_monotonic_ns() - begun);
    const enum status ran = judge(e, err);
    enum status status = finish_output(e, ran, err);
    if (ran == STATUS_OK && status != STATUS_OK)
        e->lanes[0].share.status = status; // whose output it is as much as anybody's
    for (unsigned int i = 0; i < e->lane_count; i++)
        lane_record(&e->lanes[i]);
    e->has_run = true;
    return status;
}

void encoding_get_to_know_devices(const struct encoding *e)
{
    for (unsigned int i = 0; i < e->lane_count && e->monitor; i++)
        device_get_to_know(e->lanes[i].device);
}
