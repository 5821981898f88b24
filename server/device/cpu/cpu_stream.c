#include "server/device/cpu/cpu_stream.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/sys/clock.h"

// ---- Commands -------------------------------------------------------------

enum { BLOCK = 32, BLOCKS = 4, COMMANDS = BLOCK * BLOCKS };

// A ring of commands.
struct command_queue {
    struct command commands[COMMANDS];
    // A post releases what was added, a wait acquires it.  Posts acquire nothing, so the
    // adder learns nothing of the taker.
    sem_t added;
    // Blocks the adder may enter: the only thing that comes back.
    sem_t room;
    size_t next_in;  // the adder's
    size_t next_out; // the taker's
};

static enum status command_queue_new(struct command_queue **out, struct error *err)
{
    struct command_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return error_no_memory(err, "stream");
    (void)sem_init(&queue->added, 0, 0);
    (void)sem_init(&queue->room, 0, BLOCKS);
    *out = queue;
    return STATUS_OK;
}

static void command_queue_free(struct command_queue *queue)
{
    if (!queue)
        return;
    (void)sem_destroy(&queue->added);
    (void)sem_destroy(&queue->room);
    free(queue);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) // a signal came between
        continue;
}

static void command_queue_push(struct command_queue *queue, const struct command *command)
{
    if (queue->next_in % BLOCK == 0)
        wait_for(&queue->room);
    queue->commands[queue->next_in % COMMANDS] = *command;
    queue->next_in++;
    (void)sem_post(&queue->added);
}

static void command_queue_pop(struct command_queue *queue, struct command *out)
{
    wait_for(&queue->added);
    *out = queue->commands[queue->next_out % COMMANDS];
    queue->next_out++;
    if (queue->next_out % BLOCK == 0)
        (void)sem_post(&queue->room);
}

// ---- Fences ---------------------------------------------------------------

// Tells threads that a stream has reached a position in its work, once: pending, then done.
struct fence {
    atomic_uint references;
    _Atomic uint32_t state;
    // Written before the fence is done, read only after.
    uint64_t time_ns;
    char failure[CPU_FAILURE_SIZE]; // the stream's; empty: none
};

// States.  Finishing makes a system call only if a thread sleeps.
enum { PENDING, SLEPT_ON, DONE };

// Looks between two offers of the core to others.
enum { SPINS = 1000 };

static void futex(_Atomic uint32_t *word, int operation, uint32_t value)
{
    (void)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static struct fence *fence_new(unsigned int references)
{
    struct fence *fence = calloc(1, sizeof *fence);
    if (fence)
        atomic_init(&fence->references, references);
    return fence;
}

static void fence_retain(struct fence *fence)
{
    // Relaxed: the taker knows the fence through a reference that lives.
    (void)atomic_fetch_add_explicit(&fence->references, 1, memory_order_relaxed);
}

static void fence_drop(struct fence *fence)
{
    if (!fence)
        return;
    // Release: what this holder did with the fence comes before it is freed.
    if (atomic_fetch_sub_explicit(&fence->references, 1, memory_order_release) != 1)
        return;
    // Acquire, the last one only: others' drops come before the free.
    (void)atomic_load_explicit(&fence->references, memory_order_acquire);
    free(fence);
}

static void fence_finish(struct fence *fence, uint64_t time_ns, const char *failure)
{
    fence->time_ns = time_ns;
    if (failure) // else it is empty since fence_new
        (void)snprintf(fence->failure, sizeof fence->failure, "%s", failure);
    // Release: publishes the stream's work up to here to who acquires DONE.
    uint32_t before = atomic_exchange_explicit(&fence->state, DONE, memory_order_release);
    if (before == SLEPT_ON)
        futex(&fence->state, FUTEX_WAKE, INT_MAX);
}

static bool fence_is_done(struct fence *fence)
{
    return atomic_load_explicit(&fence->state, memory_order_acquire) == DONE;
}

static void spin_until_done(struct fence *fence)
{
    for (int spin = 1; !fence_is_done(fence); spin++) {
        if (spin % SPINS == 0)
            (void)sched_yield();
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static void fence_wait(struct fence *fence, bool spin)
{
    if (spin) {
        spin_until_done(fence);
        return;
    }
    while (!fence_is_done(fence)) {
        // Relaxed: only announces a sleeper.  The futex call compares the word again before
        // it sleeps, so that a finish in between is not missed.
        uint32_t seen = PENDING;
        (void)atomic_compare_exchange_strong_explicit(&fence->state, &seen, SLEPT_ON,
                                                      memory_order_relaxed, memory_order_relaxed);
        if (seen != DONE)
            futex(&fence->state, FUTEX_WAIT, SLEPT_ON);
    }
}

// ---- The stream's thread --------------------------------------------------

static struct cpu_stream *stream_of(struct device_stream *stream)
{
    return (struct cpu_stream *)stream;
}

static void fail_stream(struct cpu_stream *stream, const char *call, const struct error *why)
{
    if (atomic_load_explicit(&stream->failed, memory_order_relaxed)) // written by this thread
        return;
    (void)snprintf(stream->failure, sizeof stream->failure, "%.40s on stream '%.40s': %.150s", call,
                   stream->name, why->text);
    atomic_store_explicit(&stream->failed, true, memory_order_release);
}

static void *run_stream(void *argument)
{
    struct cpu_stream *stream = argument;
    struct command command;
    for (;;) {
        command_queue_pop(stream->queue, &command);
        if (!command.run)
            return NULL;
        if (atomic_load_explicit(&stream->failed, memory_order_relaxed) && !command.always)
            continue;
        struct error why = {0};
        if (command.run(stream, command.arguments, &why) != STATUS_OK)
            fail_stream(stream, command.name, &why);
    }
}

enum status cpu_stream_begin(struct cpu_stream *stream, struct device *device, const char *name,
                             unsigned int threads, struct error *err)
{
    stream->base.device = device;
    stream->name = name;
    stream->threads = threads;
    enum status status = command_queue_new(&stream->queue, err);
    if (status != STATUS_OK)
        return status;
    char what[64];
    (void)snprintf(what, sizeof what, "stream '%.40s'", name);
    status = thread_start(&stream->thread, what, run_stream, stream, err);
    if (status != STATUS_OK)
        return status;
    char title[16];
    (void)snprintf(title, sizeof title, "stream-%.8s", name);
    (void)pthread_setname_np(stream->thread.id, title);
    return STATUS_OK;
}

void cpu_stream_end(struct cpu_stream *stream)
{
    if (stream->thread.running) {
        static const struct command last = {.name = "end", .always = true};
        command_queue_push(stream->queue, &last);
        thread_join(&stream->thread);
    }
    command_queue_free(stream->queue);
    thread_pool_free(stream->pool);
}

// The sticky error, if there is one.
static enum status stream_status(struct cpu_stream *stream, struct error *err)
{
    if (!atomic_load_explicit(&stream->failed, memory_order_acquire))
        return STATUS_OK;
    return error_set(err, STATUS_IO, "%s", stream->failure);
}

enum status cpu_stream_add(struct cpu_stream *stream, const struct command *command,
                           const void *arguments, size_t size, struct error *err)
{
    assert(size <= COMMAND_ARGUMENTS_MAX);
    enum status status = stream_status(stream, err);
    if (status == STATUS_OK || command->always) {
        struct command filled = *command;
        memcpy(filled.arguments, arguments, size);
        command_queue_push(stream->queue, &filled);
    }
    return status;
}

enum status cpu_stream_pool(struct cpu_stream *stream, struct error *err)
{
    return stream->pool ? STATUS_OK : thread_pool_new(&stream->pool, stream->threads, err);
}

enum status cpu_stream_new(struct device *device, struct device_stream **out, const char *name,
                           struct error *err)
{
    struct cpu_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return error_set(err, STATUS_NOMEM, "stream '%s': out of memory", name);
    struct device_description description;
    device_describe(device, &description);
    enum status status = cpu_stream_begin(stream, device, name, description.threads, err);
    if (status != STATUS_OK) {
        cpu_stream_free(&stream->base);
        return status;
    }
    *out = &stream->base;
    return STATUS_OK;
}

void cpu_stream_free(struct device_stream *stream)
{
    cpu_stream_end(stream_of(stream));
    free(stream_of(stream));
}

// ---- Events ---------------------------------------------------------------

struct cpu_event {
    struct device_event base; // first: the wrappers see only this
    // Guards `fence`.  Threads of the host only: a stream's thread has references of
    // its own, so that the lock orders no work.
    pthread_mutex_t lock;
    struct fence *fence; // of the newest record; NULL: never recorded
};

static struct cpu_event *event_of(struct device_event *event)
{
    return (struct cpu_event *)event;
}

// The fence of the newest record, with a reference for the caller; NULL: none.
static struct fence *acquire_fence(struct cpu_event *event)
{
    (void)pthread_mutex_lock(&event->lock);
    struct fence *fence = event->fence;
    if (fence)
        fence_retain(fence);
    (void)pthread_mutex_unlock(&event->lock);
    return fence;
}

// The result of a wait for a fence that is done.
static enum status fence_status(const struct fence *fence, struct error *err)
{
    return fence->failure[0] ? error_set(err, STATUS_IO, "%s", fence->failure) : STATUS_OK;
}

enum status cpu_event_new(struct device *device, struct device_event **out,
                          enum device_event_kind kind, struct error *err)
{
    struct cpu_event *event = calloc(1, sizeof *event);
    if (!event)
        return error_no_memory(err, "event");
    event->base = (struct device_event){.device = device, .kind = kind};
    (void)pthread_mutex_init(&event->lock, NULL);
    *out = &event->base;
    return STATUS_OK;
}

void cpu_event_free(struct device_event *event)
{
    struct cpu_event *own = event_of(event);
    fence_drop(own->fence);
    (void)pthread_mutex_destroy(&own->lock);
    free(own);
}

struct record_arguments {
    struct fence *fence;
    struct fence *before; // of the earlier record, dropped here and not by the host, which
                          // would learn from it that the work is done
    bool timed;
};

static enum status run_record(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)err;
    const struct record_arguments *record = arguments;
    bool failed = atomic_load_explicit(&stream->failed, memory_order_relaxed);
    fence_finish(record->fence, record->timed ? clock_monotonic_ns() : 0,
                 failed ? stream->failure : NULL);
    fence_drop(record->fence);
    fence_drop(record->before);
    return STATUS_OK;
}

static const struct command record_command = {.name = "record", .run = run_record, .always = true};

enum status cpu_event_record(struct device_event *event, struct device_stream *stream,
                             struct error *err)
{
    struct fence *fence = fence_new(2); // the event's and the command's
    if (!fence)
        return error_no_memory(err, "event");
    struct cpu_event *own = event_of(event);
    (void)pthread_mutex_lock(&own->lock);
    struct record_arguments record = {
        .fence = fence, .before = own->fence, .timed = event->kind == DEVICE_EVENT_TIMED};
    own->fence = fence;
    (void)pthread_mutex_unlock(&own->lock);
    return cpu_stream_add(stream_of(stream), &record_command, &record, sizeof record, err);
}

static enum status run_wait(struct cpu_stream *stream, void *arguments, struct error *err)
{
    (void)stream;
    struct fence *fence = *(struct fence *const *)arguments;
    fence_wait(fence, false);
    enum status status = fence_status(fence, err);
    fence_drop(fence);
    return status;
}

static const struct command wait_command = {.name = "wait", .run = run_wait, .always = true};

enum status cpu_stream_wait(struct device_stream *stream, struct device_event *event,
                            struct error *err)
{
    struct fence *fence = acquire_fence(event_of(event));
    if (!fence) // never recorded
        return stream_status(stream_of(stream), err);
    return cpu_stream_add(stream_of(stream), &wait_command, &fence, sizeof(struct fence *), err);
}

enum status cpu_event_wait(struct device_event *event, struct error *err)
{
    struct fence *fence = acquire_fence(event_of(event));
    if (!fence)
        return STATUS_OK;
    fence_wait(fence, event->device->spin);
    enum status status = fence_status(fence, err);
    fence_drop(fence);
    return status;
}

enum status cpu_event_query(struct device_event *event, bool *done, struct error *err)
{
    *done = true;
    struct fence *fence = acquire_fence(event_of(event));
    if (!fence)
        return STATUS_OK;
    *done = fence_is_done(fence);
    enum status status = *done ? fence_status(fence, err) : STATUS_OK;
    fence_drop(fence);
    return status;
}

// When the event was reached.
static enum status event_time(struct device_event *event, uint64_t *ns, struct error *err)
{
    struct fence *fence = acquire_fence(event_of(event));
    if (!fence)
        return error_set(err, STATUS_INVALID, "elapsed: an event was never recorded");
    enum status status = STATUS_OK;
    if (fence_is_done(fence))
        *ns = fence->time_ns;
    else
        status = error_set(err, STATUS_BUSY, "elapsed: an event is not done");
    fence_drop(fence);
    return status;
}

enum status cpu_event_elapsed(struct device_event *from, struct device_event *to, double *ns,
                              struct error *err)
{
    uint64_t first = 0;
    uint64_t second = 0;
    enum status status = event_time(from, &first, err);
    if (status == STATUS_OK)
        status = event_time(to, &second, err);
    if (status == STATUS_OK)
        *ns = (double)(int64_t)(second - first);
    return status;
}

enum status cpu_stream_synchronize(struct device_stream *stream, struct error *err)
{
    struct fence *fence = fence_new(2); // ours and the command's
    if (!fence)
        return error_no_memory(err, "stream");
    struct record_arguments record = {.fence = fence};
    enum status status =
        cpu_stream_add(stream_of(stream), &record_command, &record, sizeof record, err);
    fence_wait(fence, stream->device->spin);
    if (status == STATUS_OK)
        status = fence_status(fence, err);
    fence_drop(fence);
    return status;
}

// ---- Kernels --------------------------------------------------------------

struct launch_arguments {
    cpu_kernel *kernel;
    alignas(max_align_t) unsigned char arguments[CPU_KERNEL_ARGUMENTS_MAX];
};

static enum status run_kernel(struct cpu_stream *stream, void *arguments, struct error *err)
{
    struct launch_arguments *launch = arguments;
    return launch->kernel(launch->arguments, stream->pool, err);
}

enum status cpu_stream_launch(struct device_stream *stream, const char *name, cpu_kernel *kernel,
                              const void *arguments, size_t size, struct error *err)
{
    struct cpu_stream *own = stream_of(stream);
    enum status status = cpu_stream_pool(own, err);
    if (status != STATUS_OK)
        return status;
    struct command command = {.name = name, .run = run_kernel};
    struct launch_arguments launch = {.kernel = kernel};
    memcpy(launch.arguments, arguments, size);
    return cpu_stream_add(own, &command, &launch, sizeof launch, err);
}

enum status cpu_launch(struct device_stream *stream, const char *name, cpu_kernel *kernel,
                       const void *arguments, size_t size, struct error *err)
{
    if (size > CPU_KERNEL_ARGUMENTS_MAX)
        return error_set(err, STATUS_INVALID, "%s: %zu bytes of arguments: more than %d", name,
                         size, CPU_KERNEL_ARGUMENTS_MAX);
    const struct device_ops *ops = stream->device->ops;
    if (!ops->launch)
        return error_set(err, STATUS_UNSUPPORTED, "%s: device %s runs no functions of the host",
                         name, ops->name);
    return ops->launch(stream, name, kernel, arguments, size, err);
}
