#include "server/collector/threads/import_request.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/sys/clock.h"
#include "server/collector/threads/job.h"

// Between two looks whether the inbox has room.
static const uint64_t retry_ns = UINT64_C(5000000);

// Lies with the one who waits.
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

enum status import_request_give(struct queue *inbox, struct import_batch *batch, struct error *err)
{
    struct import_request order = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .batch = batch};
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return error_no_memory(err, "import");
    job->kind = JOB_IMPORT;
    job->order = &order;
    push(inbox, job);
    (void)pthread_mutex_lock(&order.lock);
    while (!order.done)
        (void)pthread_cond_wait(&order.changed, &order.lock);
    (void)pthread_mutex_unlock(&order.lock);
    (void)pthread_cond_destroy(&order.changed);
    (void)pthread_mutex_destroy(&order.lock);
    return order.status == STATUS_OK ? STATUS_OK
                                     : error_set(err, order.status, "%s", order.err.text);
}

struct import_batch *import_request_batch(struct import_request *order)
{
    return order->batch;
}

// Signals with the lock held: whoever waits cannot go on, and take the order with it,
// before it is let go of.
void import_request_done(struct import_request *order, enum status status, const struct error *err)
{
    (void)pthread_mutex_lock(&order->lock);
    order->status = status;
    order->err = *err;
    order->done = true;
    (void)pthread_cond_signal(&order->changed);
    (void)pthread_mutex_unlock(&order->lock);
}
