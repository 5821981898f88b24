#include "server/collector/threads/import_request.h"

#include <stdlib.h>

#include "common/sys/clock.h"
#include "server/collector/threads/job.h"

// Retry interval while the inbox is full.
static const uint64_t retry_ns = UINT64_C(5000000);

enum status import_request_send(struct queue *inbox, struct import_batch *batch, struct error *err)
{
    struct import_request request = {.batch = batch};
    struct job *job = job_new(JOB_IMPORT);
    if (!job)
        return error_no_memory(err, "import");
    job->import = &request;
    (void)sem_init(&request.done, 0, 0);
    while (!queue_push(inbox, job, sizeof *job))
        clock_sleep_until_ns(clock_monotonic_ns() + retry_ns);
    while (sem_wait(&request.done) != 0) {
        // Interrupted by a signal.
    }
    (void)sem_destroy(&request.done);
    return request.status == STATUS_OK ? STATUS_OK
                                       : error_set(err, request.status, "%s", request.err.text);
}

void import_request_done(struct import_request *request, enum status status,
                         const struct error *err)
{
    request->status = status;
    request->err = *err;
    (void)sem_post(&request->done);
}
