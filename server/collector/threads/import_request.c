#include "server/collector/threads/import_request.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/sys/clock.h"
#include "server/collector/threads/job.h"

// Retry interval while the inbox is full.
static const uint64_t retry_ns = UINT64_C(5000000);

// On the stack of the waiting thread.
struct import_request {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct import_batch *batch;
    bool done;
    enum status status;
    struct error err;
};

static void push(struct queue *inbox, struct job *job)
{
    while (!queue_push(inbox, job, sizeof *job))
        clock_sleep_until_ns(clock_monotonic_ns() + retry_ns);
}

enum status import_request_send(struct queue *inbox, struct import_batch *batch, struct error *err)
{
    struct import_request request = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .batch = batch};
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return error_no_memory(err, "import");
    job->kind = JOB_IMPORT;
    job->import = &request;
    push(inbox, job);
    (void)pthread_mutex_lock(&request.lock);
    while (!request.done)
        (void)pthread_cond_wait(&request.changed, &request.lock);
    (void)pthread_mutex_unlock(&request.lock);
    (void)pthread_cond_destroy(&request.changed);
    (void)pthread_mutex_destroy(&request.lock);
    return request.status == STATUS_OK ? STATUS_OK
                                       : error_set(err, request.status, "%s", request.err.text);
}

struct import_batch *import_request_batch(struct import_request *request)
{
    return request->batch;
}

// Signals with the lock held: the waiting thread cannot return, and destroy the request,
// before the lock is released.
void import_request_done(struct import_request *request, enum status status,
                         const struct error *err)
{
    (void)pthread_mutex_lock(&request->lock);
    request->status = status;
    request->err = *err;
    request->done = true;
    (void)pthread_cond_signal(&request->changed);
    (void)pthread_mutex_unlock(&request->lock);
}
