#include "common/monitor/background.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/monitor/sampler/sampler.h"
#include "common/sys/clock.h"
#include "common/sys/thread.h"

static const uint64_t second_ns = UINT64_C(1000000000);
static const uint64_t closing_step_ns = UINT64_C(2000000); // between two steps while closing
static const uint64_t loss_log_ns = UINT64_C(10000000000);

struct background {
    struct background_settings settings;
    struct thread thread;
    int wake_fd;
    _Atomic bool stopping;
    _Atomic uint64_t deadline_ns;
    struct publisher *publisher; // NULL: nothing is reported; others only read its counter
    struct background_end end;

    // Background thread only.
    struct ring *ring;       // stream 0
    struct sampler *sampler; // of devices and host; NULL: none
    uint64_t sampled_ns;     // monotonic, of the last sample
    uint64_t cpu_ns;         // CPU time of the process at `sampled_ns`
    struct sketch *sketch;
    uint64_t sample_at_ns, second_at_ns, loss_log_at_ns;
    uint64_t losses_logged;
    bool draining; // some thread's sums were in use at the last drain
};

// ---- Samples --------------------------------------------------------------------

static void set_wall_offset(struct sampled *sampled)
{
    const uint64_t before = clock_monotonic_ns();
    const int64_t wall = clock_wall_ns();
    const uint64_t after = clock_monotonic_ns();
    const int64_t middle = (int64_t)(before + (after - before) / 2);
    atomic_store_explicit(&sampled->wall_offset_ns, wall - middle, memory_order_relaxed);
}

// Does not change device_memory.
static void take_first_sample(struct background *background)
{
    struct sampled *sampled = background->settings.sampled;
    const int64_t memory = process_memory_bytes();
    set_wall_offset(sampled);
    atomic_store_explicit(&sampled->cpu_ratio, -1, memory_order_relaxed);
    atomic_store_explicit(&sampled->host_memory, memory < 0 ? 0 : memory, memory_order_relaxed);
    background->sampled_ns = clock_monotonic_ns();
    background->cpu_ns = process_cpu_ns();
}

// Records `sample` with the requests of all models in progress, and a copy of it for each model
// that has any.  The copies come last and together: where there is no room for them, the process
// keeps its own.
static void record_requests(struct background *background, struct record *sample)
{
    struct thread_slots *slots = background->settings.slots;
    struct request_counts counts[MODEL_PLACES], all = {0};
    struct record copies[MODEL_PLACES];
    uint32_t copied = 0;
    thread_slots_count_requests(slots, counts);
    for (unsigned int i = 0; i < MODEL_PLACES; i++) {
        all.running += counts[i].running;
        all.waiting += counts[i].waiting;
        if (i == 0 || counts[i].running == 0)
            continue;
        struct record *copy = &copies[copied++];
        *copy = *sample;
        record_set_name(copy, PROCESS_SAMPLE_MODEL,
                        atomic_load_explicit(&slots->models[i], memory_order_relaxed));
        record_set_int(copy, PROCESS_SAMPLE_RUNNING, counts[i].running);
        record_set_int(copy, PROCESS_SAMPLE_WAITING, counts[i].waiting);
    }
    record_set_int(sample, PROCESS_SAMPLE_RUNNING, all.running);
    record_set_int(sample, PROCESS_SAMPLE_WAITING, all.waiting);
    (void)ring_push(background->ring, sample, 1);
    if (copied > 0)
        (void)ring_push(background->ring, copies, copied);
}

// The record's time is that of reading the memory, the end of the period of `cpu_ratio`.
static void record_sample(struct background *background, uint64_t now, double cpu_ratio)
{
    const struct sampled *sampled = background->settings.sampled;
    struct record record;
    record_init(&record, RECORD_KIND_PROCESS_SAMPLE,
                (int64_t)now +
                    atomic_load_explicit(&sampled->wall_offset_ns, memory_order_relaxed));
    record_set_real(&record, PROCESS_SAMPLE_CPU, cpu_ratio);
    record_set_int(&record, PROCESS_SAMPLE_HOST_MEMORY,
                   atomic_load_explicit(&sampled->host_memory, memory_order_relaxed));
    const int64_t device = atomic_load_explicit(&sampled->device_memory, memory_order_relaxed);
    if (device >= 0)
        record_set_int(&record, PROCESS_SAMPLE_DEVICE_MEMORY, device);
    record_requests(background, &record);
}

// The application's own value of its device memory comes first, also one set meanwhile.
static void sample_devices(struct background *background, uint64_t now)
{
    struct sampled *sampled = background->settings.sampled;
    int64_t before = atomic_load_explicit(&sampled->device_memory, memory_order_acquire);
    sampler_step(background->sampler, now,
                 (int64_t)now +
                     atomic_load_explicit(&sampled->wall_offset_ns, memory_order_relaxed));
    if (!atomic_load_explicit(&sampled->device_memory_set, memory_order_relaxed))
        (void)atomic_compare_exchange_strong_explicit(&sampled->device_memory, &before,
                                                      sampler_own_memory(background->sampler),
                                                      memory_order_relaxed, memory_order_relaxed);
}

static void take_sample(struct background *background)
{
    struct sampled *sampled = background->settings.sampled;
    const uint64_t now = clock_monotonic_ns();
    const uint64_t cpu = process_cpu_ns();
    const int64_t memory = process_memory_bytes();
    if (now <= background->sampled_ns)
        return;
    const uint64_t busy = cpu > background->cpu_ns ? cpu - background->cpu_ns : 0;
    const double ratio = (double)busy / (double)(now - background->sampled_ns);
    atomic_store_explicit(&sampled->cpu_ratio, ratio, memory_order_relaxed);
    if (memory >= 0)
        atomic_store_explicit(&sampled->host_memory, memory, memory_order_relaxed);
    if (background->ring)
        record_sample(background, now, ratio);
    background->sampled_ns = now;
    background->cpu_ns = cpu;
}

// ---- Periodic tasks -----------------------------------------------------------

// Drains the sums of all threads or, while draining, of those that were in use last time.
static void drain_gaps(struct background *background)
{
    struct thread_slots *slots = background->settings.slots;
    const bool again = background->draining;
    const int64_t offset =
        atomic_load_explicit(&background->settings.sampled->wall_offset_ns, memory_order_relaxed);
    background->draining = false;
    (void)pthread_mutex_lock(&slots->lock);
    for (struct thread_slot *slot = slots->first; slot; slot = slot->next) {
        if (!slot->stream.ring || (again && !slot->sums.waiting))
            continue;
        if (!itl_histogram_drain(&slot->sums, offset, background->ring, background->sketch))
            background->draining = true;
    }
    (void)pthread_mutex_unlock(&slots->lock);
}

static void log_losses(struct background *background, uint64_t now)
{
    const struct publisher_settings *settings = &background->settings.publisher;
    const struct runfile_counts counts = runfile_counts(settings->file);
    if (counts.dropped == background->losses_logged || now < background->loss_log_at_ns)
        return;
    if (counts.dropped > counts.no_room)
        log_sink_write(&settings->log, INFERSTAT_LOG_WARNING,
                       "%" PRIu64 " records dropped so far: ring full",
                       counts.dropped - counts.no_room);
    if (counts.no_room > 0)
        log_sink_write(&settings->log, INFERSTAT_LOG_WARNING,
                       "%" PRIu64 " records dropped so far: their threads have no ring, as %s has "
                       "no room for more (enlarge its file system, in a container with --shm-size; "
                       "or record with fewer threads)",
                       counts.no_room, runfile_path(settings->file));
    background->losses_logged = counts.dropped;
    background->loss_log_at_ns = now + loss_log_ns;
}

static void tick(struct background *background)
{
    const struct background_settings *settings = &background->settings;
    const uint64_t now = clock_monotonic_ns();
    if (settings->sample_ms > 0 && now >= background->sample_at_ns) {
        take_sample(background);
        background->sample_at_ns = now + settings->sample_ms * UINT64_C(1000000);
    }
    if (background->sampler)
        sample_devices(background, now);
    if (now >= background->second_at_ns) {
        set_wall_offset(settings->sampled);
        if (background->ring) {
            drain_gaps(background);
            log_losses(background, now);
        }
        background->second_at_ns = now + second_ns;
    } else if (background->draining) {
        drain_gaps(background);
    }
}

// ---- The thread -----------------------------------------------------------------

static void wait_a_step(const struct background *background, uint64_t ns)
{
    if (background->publisher) {
        publisher_wait(background->publisher, background->wake_fd, (int64_t)ns);
        return;
    }
    struct pollfd wake = {.fd = background->wake_fd, .events = POLLIN};
    (void)poll(&wake, 1, (int)(ns / 1000000));
}

static uint64_t until(uint64_t at_ns, uint64_t now)
{
    return at_ns > now ? at_ns - now + 1000000 : 1000000;
}

// Without a publisher: the time until the next task is due.
static uint64_t idle_ns(const struct background *background)
{
    const uint64_t now = clock_monotonic_ns();
    uint64_t wait = until(background->second_at_ns, now);
    if (background->settings.sample_ms > 0 && until(background->sample_at_ns, now) < wait)
        wait = until(background->sample_at_ns, now);
    return wait;
}

static void finish(struct background *background)
{
    struct publisher *publisher = background->publisher;
    eventfd_t count;
    (void)eventfd_read(background->wake_fd, &count); // the wake-up by background_stop
    for (int bank = 0; bank < 2; bank++) {           // the threads have stopped recording
        background->draining = false;
        drain_gaps(background);
    }
    sampler_close(background->sampler);
    background->sampler = NULL;
    publisher_finish(publisher);
    const uint64_t deadline = atomic_load_explicit(&background->deadline_ns, memory_order_acquire);
    for (;;) {
        background->end.finished = publisher_step(publisher)->finished;
        const uint64_t now = clock_monotonic_ns();
        if (background->end.finished || now >= deadline)
            break;
        const uint64_t left = deadline - now;
        wait_a_step(background, left < closing_step_ns ? left : closing_step_ns);
    }
    if (!background->end.finished)
        background->end.in_rings = publisher_spool_all(publisher);
    background->end.acknowledged = publisher_acknowledged(publisher);
}

static void *run(void *context)
{
    struct background *background = context;
    while (!atomic_load_explicit(&background->stopping, memory_order_acquire)) {
        tick(background);
        uint64_t wait_ns = 0;
        if (background->publisher) {
            thread_slots_share_open_requests(background->settings.slots);
            wait_ns = publisher_step(background->publisher)->pause_ns;
        } else {
            wait_ns = idle_ns(background);
        }
        wait_a_step(background, wait_ns);
    }
    background->end.finished = !background->publisher;
    if (background->publisher)
        finish(background);
    publisher_close(background->publisher);
    return NULL;
}

// ---- Starting and stopping -----------------------------------------------------

static void free_background(struct background *background)
{
    if (background->wake_fd >= 0)
        (void)close(background->wake_fd);
    sampler_close(background->sampler);
    sketch_free(background->sketch);
    free(background);
}

static enum status open_sampler(struct background *background, struct error *err)
{
    const struct background_settings *settings = &background->settings;
    struct runfile *file = settings->publisher.file;
    const struct sampler_settings sampler = {
        .output = {.ring = background->ring,
                   .names = runfile_names(file),
                   .registry = settings->registry,
                   .device_count = &runfile_state(file)->devices,
                   .log = settings->publisher.log},
        .interval_ms = settings->device_ms,
        .host = runfile_run(file)->host.host,
        .collector = runfile_run(file)->collector,
        .driver = &driver_thread_ops,
    };
    return settings->device_ms > 0 ? sampler_open(&background->sampler, &sampler, err) : STATUS_OK;
}

static enum status prepare(struct background *background, struct error *err)
{
    const struct background_settings *settings = &background->settings;
    background->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (background->wake_fd < 0)
        return error_set(err, STATUS_IO, "monitor: no event descriptor: %s", strerror(errno));
    take_first_sample(background);
    const uint64_t now = clock_monotonic_ns();
    background->sample_at_ns = now + settings->sample_ms * UINT64_C(1000000);
    background->second_at_ns = now + second_ns;
    if (!settings->publisher.file)
        return STATUS_OK;
    struct runfile_stream stream;
    enum status status = runfile_add_stream(settings->publisher.file, &stream, err);
    if (status != STATUS_OK)
        return status;
    background->ring = stream.ring;
    status = sketch_new(&background->sketch);
    if (status == STATUS_OK)
        status = sketch_reserve_ns(background->sketch);
    if (status != STATUS_OK)
        return error_set(err, status, "monitor: out of memory");
    status = open_sampler(background, err);
    return status == STATUS_OK ? publisher_open(&background->publisher, &settings->publisher, err)
                               : status;
}

enum status background_start(struct background **out, const struct background_settings *settings,
                             struct error *err)
{
    struct background *background = calloc(1, sizeof *background);
    if (!background)
        return error_no_memory(err, "monitor");
    background->settings = *settings;

    enum status status = prepare(background, err);
    if (status == STATUS_OK)
        status = thread_start(&background->thread, "monitor", run, background, err);
    if (status != STATUS_OK) {
        publisher_close(background->publisher);
        free_background(background);
        return status;
    }
    (void)pthread_setname_np(background->thread.id, "inferstat");
    *out = background;
    return STATUS_OK;
}

struct background_end background_stop(struct background *background, uint64_t timeout_ns)
{
    const uint64_t now = clock_monotonic_ns();
    const uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    atomic_store_explicit(&background->deadline_ns, deadline, memory_order_release);
    atomic_store_explicit(&background->stopping, true, memory_order_release);
    (void)eventfd_write(background->wake_fd, 1);
    thread_join(&background->thread);
    const struct background_end end = background->end;
    free_background(background);
    return end;
}

uint64_t background_acknowledged(const struct background *background)
{
    return background->publisher ? publisher_acknowledged(background->publisher) : 0;
}
