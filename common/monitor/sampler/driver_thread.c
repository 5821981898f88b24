#include "common/monitor/sampler/driver_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/devices/gpu.h"
#include "common/monitor/runfile/fork_safe_lock.h"
#include "common/sys/clock.h"
#include "common/sys/thread.h"

static const uint64_t stop_wait_ns = UINT64_C(500000000);

// The process whose driver thread runs.  A forked child has the value of its parent, but not its
// thread.
static _Atomic pid_t busy_process;

struct driver_thread {
    struct thread thread;
    int lock_fd;
    pthread_mutex_t lock; // guards the members below
    pthread_cond_t changed;
    bool is_requested, slow; // a reading is asked for, or goes on
    bool stopping, ended;
    bool is_left_behind; // the thread frees this structure
    enum status result;  // of the last reading

    // Of the thread while a reading is requested, else of the background thread.
    struct gpu_snapshot snapshot;
};

static void free_driver(struct driver_thread *driver)
{
    (void)pthread_cond_destroy(&driver->changed);
    (void)pthread_mutex_destroy(&driver->lock);
    free(driver);
}

static enum status read_devices(struct gpu_set **set, struct driver_thread *driver, bool slow)
{
    enum status status = *set ? STATUS_OK : gpu_set_open(set, NULL);
    return status == STATUS_OK ? gpu_set_read(*set, &driver->snapshot, slow) : status;
}

static void *run(void *context)
{
    struct driver_thread *driver = context;
    struct gpu_set *set = NULL;
    (void)pthread_mutex_lock(&driver->lock);
    while (!driver->stopping) {
        if (!driver->is_requested) {
            (void)pthread_cond_wait(&driver->changed, &driver->lock);
            continue;
        }
        const bool slow = driver->slow;
        (void)pthread_mutex_unlock(&driver->lock);
        const enum status result = read_devices(&set, driver, slow);
        (void)pthread_mutex_lock(&driver->lock);
        driver->result = result;
        driver->is_requested = false;
    }
    (void)pthread_mutex_unlock(&driver->lock);

    gpu_set_close(set);
    gpu_snapshot_deinit(&driver->snapshot);
    atomic_store_explicit(&busy_process, 0, memory_order_release);
    fork_safe_lock_close(driver->lock_fd);

    (void)pthread_mutex_lock(&driver->lock);
    driver->ended = true;
    const bool is_left_behind = driver->is_left_behind;
    (void)pthread_cond_signal(&driver->changed);
    (void)pthread_mutex_unlock(&driver->lock);
    if (is_left_behind)
        free_driver(driver);
    return NULL;
}

static enum status start(void **out, void *context, int lock_fd, struct error *err)
{
    (void)context;
    pid_t busy = atomic_load_explicit(&busy_process, memory_order_acquire);
    if (busy == getpid() || !atomic_compare_exchange_strong(&busy_process, &busy, getpid()))
        return error_set(err, STATUS_BUSY, "devices: an earlier call of the driver still hangs");
    struct driver_thread *driver = calloc(1, sizeof *driver);
    enum status status = driver ? STATUS_OK : error_no_memory(err, "devices");
    if (driver) {
        (void)pthread_cond_init(&driver->changed, NULL);
        (void)pthread_mutex_init(&driver->lock, NULL);
        driver->lock_fd = lock_fd;
        status = thread_start(&driver->thread, "devices", run, driver, err);
    }
    if (status != STATUS_OK) {
        if (driver)
            free_driver(driver);
        atomic_store_explicit(&busy_process, 0, memory_order_release);
        return status;
    }
    (void)pthread_setname_np(driver->thread.id, "inferstat-gpu");
    *out = driver;
    return STATUS_OK;
}

static void request(void *context, bool slow)
{
    struct driver_thread *driver = context;
    (void)pthread_mutex_lock(&driver->lock);
    driver->is_requested = true;
    driver->slow = slow;
    (void)pthread_cond_signal(&driver->changed);
    (void)pthread_mutex_unlock(&driver->lock);
}

static enum driver_state collect(void *context, struct gpu_snapshot **out)
{
    struct driver_thread *driver = context;
    (void)pthread_mutex_lock(&driver->lock);
    const bool is_requested = driver->is_requested;
    const enum status result = driver->result;
    (void)pthread_mutex_unlock(&driver->lock);
    if (is_requested)
        return DRIVER_BUSY;
    *out = &driver->snapshot;
    return result == STATUS_OK ? DRIVER_READ : DRIVER_FAILED;
}

static void stop(void *context, bool is_hung)
{
    struct driver_thread *driver = context;
    const uint64_t until = clock_monotonic_ns() + (is_hung ? 0 : stop_wait_ns);
    const struct timespec deadline = clock_timespec(until);
    (void)pthread_mutex_lock(&driver->lock);
    driver->stopping = true;
    (void)pthread_cond_signal(&driver->changed);
    while (!driver->ended && pthread_cond_clockwait(&driver->changed, &driver->lock,
                                                    CLOCK_MONOTONIC, &deadline) != ETIMEDOUT)
        ;
    const bool ended = driver->ended;
    driver->is_left_behind = !ended;
    if (!ended) // the thread cannot end before it has the lock
        (void)pthread_detach(driver->thread.id);
    (void)pthread_mutex_unlock(&driver->lock);
    if (!ended)
        return;
    thread_join(&driver->thread);
    free_driver(driver);
}

const struct driver_ops driver_thread_ops = {
    .start = start,
    .request = request,
    .collect = collect,
    .stop = stop,
};
