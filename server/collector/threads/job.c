#include "server/collector/threads/job.h"

#include <stdlib.h>
#include <string.h>

#include "common/core/base/text.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/store/compare/baseline.h"
#include "common/wire/codec.h"
#include "server/collector/threads/queue.h"
#include "server/collector/threads/reject_counters.h"

enum { NOTE_TRIES = 400, RETRY_NS = 5000000 };

struct job *job_new(enum job_kind kind)
{
    struct job *job = calloc(1, sizeof *job);
    if (job)
        job->kind = kind;
    return job;
}

void job_free(void *item)
{
    struct job *job = item;
    if (!job)
        return;
    if (job->kind == JOB_MESSAGE)
        message_free(&job->message);
    if (job->request) // it was never applied
        job_request_end(job, STATUS_CANCELLED,
                        &(struct error){.text = "the collector is stopping"});
    peer_credit_release(job->credit, job->records);
    baseline_free(job->baseline);
    free(job->query);
    free(job);
}

struct job *job_new_query(enum job_kind kind, const struct job_return *from,
                          const struct message_query *asked, struct baseline *baseline)
{
    struct job *job = job_new(kind);
    struct query *query = malloc(sizeof *query);
    if (!job || !query) {
        free(job);
        free(query);
        baseline_free(baseline);
        return NULL;
    }
    *query = asked->query;
    job->from = *from;
    job->query_id = asked->id;
    job->query = query;
    job->baseline = baseline;
    return job;
}

enum status job_submit(struct queue *inbox, struct job *job, struct error *err)
{
    if (!job)
        return error_no_memory(err, "query");
    if (queue_push(inbox, job, sizeof *job))
        return STATUS_OK;
    job_free(job);
    return error_set(err, STATUS_BUSY, "the writer is behind (try again)");
}

bool job_return_is_same(const struct job_return *a, const struct job_return *b)
{
    return a->socket == b->socket && a->route.connection == b->route.connection;
}

void job_note(struct queue *inbox, const struct admin_act *act)
{
    struct job *job = act->action ? job_new(JOB_NOTE) : NULL;
    bool is_queued = false;
    if (job)
        job->act = *act;
    for (unsigned tries = 0; job && !is_queued && tries < NOTE_TRIES; tries++) {
        if (tries > 0)
            clock_sleep_until_ns(clock_monotonic_ns() + RETRY_NS);
        is_queued = queue_push(inbox, job, sizeof *job);
    }
    if (is_queued || !act->action)
        return;
    job_free(job);
    log_write(LOG_LEVEL_ERROR,
              "%s: %s: %s (the writer is behind: the store's list of acts lacks it)", act->actor,
              act->action, act->outcome);
}

static enum status wait_for(struct queue *inbox, enum job_kind kind, struct job_request *request,
                            struct error *err)
{
    struct job *job = job_new(kind);
    if (!job)
        return error_no_memory(err, "writer");
    job->request = request;
    (void)sem_init(&request->done, 0, 0);
    while (!queue_push(inbox, job, sizeof *job))
        clock_sleep_until_ns(clock_monotonic_ns() + RETRY_NS);
    while (sem_wait(&request->done) != 0) {
        // Interrupted by a signal.
    }
    (void)sem_destroy(&request->done);
    return request->status == STATUS_OK ? STATUS_OK
                                        : error_set(err, request->status, "%s", request->err.text);
}

enum status job_import(struct queue *inbox, struct import_batch *batch, struct error *err)
{
    return wait_for(inbox, JOB_IMPORT, &(struct job_request){.batch = batch}, err);
}

enum status job_change_alerts(struct queue *inbox, job_change *change, const void *context,
                              struct error *err)
{
    return wait_for(inbox, JOB_ALERTS, &(struct job_request){.change = change, .context = context},
                    err);
}

void job_request_end(struct job *job, enum status status, const struct error *err)
{
    struct job_request *request = job->request;
    job->request = NULL;
    request->status = status;
    request->err = *err;
    (void)sem_post(&request->done);
}

void answer_free(void *item)
{
    struct answer *answer = item;
    if (!answer)
        return;
    free(answer->bytes);
    free(answer);
}

struct answer *answer_encode(const struct job_return *to, const struct message *message)
{
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return NULL;
    answer->to = *to;
    if (codec_encode(&answer->bytes, &answer->size, message, NULL) != STATUS_OK) {
        answer_free(answer);
        return NULL;
    }
    return answer;
}

enum status answer_send(struct port *const *sockets, struct answer *answer)
{
    enum status status = answer ? STATUS_OK : STATUS_NOMEM;
    if (answer && answer->size)
        status =
            port_send(sockets[answer->to.socket], &answer->to.route, answer->bytes, answer->size);
    answer_free(answer);
    return status;
}

void answer_send_counted(struct port *const *sockets, struct answer *answer,
                         struct reject_counters *rejects)
{
    const enum status status = answer_send(sockets, answer);
    if (status != STATUS_OK && status != STATUS_UNREACHABLE)
        reject_counters_count(rejects, REFUSAL_UNANSWERED, 1);
}

void answer_send_queued(struct port *const *sockets, struct queue *queue,
                        struct reject_counters *rejects)
{
    struct answer *answer;
    while ((answer = queue_pop(queue)) != NULL)
        answer_send_counted(sockets, answer, rejects);
}

void answer_submit(struct queue *queue, struct answer *answer)
{
    if (answer && !queue_push(queue, answer, answer->size))
        answer_free(answer);
}

void answer_wake(struct queue *queue)
{
    answer_submit(queue, calloc(1, sizeof(struct answer)));
}

static enum reply_status reply_status(enum status status)
{
    switch ((int)status) {
    case STATUS_OK:
        return REPLY_OK;
    case STATUS_INVALID:
        return REPLY_INVALID;
    case STATUS_NO_DATA:
        return REPLY_NO_DATA;
    case STATUS_DENIED:
        return REPLY_DENIED;
    case STATUS_TIMEOUT:
    case STATUS_FULL:
        return REPLY_TOO_LARGE;
    default:
        return REPLY_FAILED;
    }
}

struct answer *reply_encode(const struct job_return *to, uint64_t id, enum status status,
                            struct result *result, const struct error *why)
{
    char text[ERROR_TEXT_SIZE];
    struct message message = {.kind = MESSAGE_REPLY,
                              .reply = {.id = id, .status = reply_status(status)}};
    if (status == STATUS_OK) {
        message.reply.result = result;
    } else {
        // May quote bytes that are not UTF-8, such as a path, which the message cannot hold.
        (void)text_escape(text, sizeof text, why->text, strlen(why->text));
        message.reply.error = (struct wire_bytes){strlen(text), text};
        message.reply.expired_ns = status == STATUS_NO_DATA ? why->expired_ns : 0;
    }
    struct answer *answer = answer_encode(to, &message);
    if (answer || status != STATUS_OK)
        return answer;
    static const char too_large[] = "the answer is too large (ask for fewer rows)";
    message.reply = (struct message_reply){
        .id = id, .status = REPLY_TOO_LARGE, .error = {sizeof too_large - 1, too_large}};
    return answer_encode(to, &message);
}
