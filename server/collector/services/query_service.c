#include "server/collector/services/services.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/store/store.h"
#include "common/sys/thread.h"
#include "common/wire/codec.h"
#include "server/collector/access/files_under.h"
#include "server/collector/access/quota.h"
#include "server/collector/services/query_worker.h"
#include "server/collector/threads/job.h"

enum {
    QUERY_BUDGET_SECONDS = 4,
    ADMIN_TURN = 4, // queries of an admin socket between two waits
};

struct query_service {
    const struct endpoints *endpoints;
    const char *path; // of the store
    const char *files_under;
    struct channels *channels;
    struct thread thread;
    struct admission admission; // query, then admin
    struct store *store;
    struct query_worker *slow, *scans; // for queries of minutes; for scans of all records
    atomic_bool stop; // set by main before it wakes the thread; publishes nothing else
};

// ---- Answers -----------------------------------------------------------------------

static void reply(struct query_service *service, const struct job_return *to, uint64_t id,
                  enum status status, struct result *result, const struct error *why)
{
    answer_send_counted(service->admission.sockets, reply_encode(to, id, status, result, why),
                        service->endpoints->rejects);
}

static void refuse(struct query_service *service, const struct job_return *to, uint64_t id,
                   enum status status, const char *text)
{
    struct error why;
    reply(service, to, id, error_set(&why, status, "%s", text), NULL, &why);
}

// ---- Queries -----------------------------------------------------------------------

static enum status ask_store(struct query_service *service, const struct query *query,
                             struct result **out, struct error *err)
{
    struct reader_gate *gate = &service->channels->gate;
    reader_gate_enter(gate, READER_SHORT);
    const enum status status = store_query(service->store, query, out, err);
    reader_gate_leave(gate, READER_SHORT);
    return status;
}

// The folder that must contain a file named by the query; NULL: not restricted.
static const char *files_below(const struct query_service *service, unsigned socket,
                               const struct query *query)
{
    const bool names_file = query->kind == QUERY_COPY || query->kind == QUERY_IMPORT;
    if (!names_file || admission_address(&service->admission, socket)->is_ipc)
        return NULL;
    return service->files_under;
}

// Administration requires the admin socket of an ipc address, which only the owner can open,
// or of a TCP address with keys.
static enum status check_owner(const struct query_service *service, unsigned socket,
                               const struct query *query, struct error *err)
{
    const struct endpoints *endpoints = service->endpoints;
    if (socket < endpoints->count) { // those of the query service
        reject_counters_count(endpoints->rejects, REFUSAL_DENIED, 1);
        return error_set(err, STATUS_DENIED, "this query requires the admin socket");
    }
    if (!admission_address(&service->admission, socket)->is_ipc && !endpoints->access) {
        reject_counters_count(endpoints->rejects, REFUSAL_DENIED, 1);
        return error_set(err, STATUS_DENIED,
                         "administration over TCP requires keys (use the collector's ipc:// "
                         "address)");
    }
    enum status status = query_check(query, err);
    const char *below = files_below(service, socket, query);
    if (status == STATUS_OK && below)
        status = files_under_check(below, query->file.path, err);
    if (status == STATUS_DENIED)
        reject_counters_count(endpoints->rejects, REFUSAL_DENIED, 1);
    return status;
}

// Who asks, as the list of acts has it, and what.
static struct admin_act begin_act(struct query_service *service, const struct wire_peer *peer,
                                  const struct query *query)
{
    struct admin_act act = {.action = NULL};
    char name[QUERY_KEY_SIZE];
    struct access *access = service->endpoints->access;
    admin_act_of_query(&act, query);
    if (peer->kind == PEER_KEY && access && access_name_of(access, peer->key, name))
        (void)snprintf(act.actor, sizeof act.actor, "key %s", name);
    else if (peer->kind == PEER_USER)
        admin_act_set_user(act.actor, peer->uid, "");
    else
        (void)peer_owner_text(act.actor, peer);
    return act;
}

// Passes a query to the writer.  An owner is in the store by its key, which access has for the
// key's name.
static enum status pass_on(struct query_service *service, const struct job_return *to,
                           const struct message_query *asked, const struct admin_act *act,
                           struct error *err)
{
    const enum query_kind kind = asked->query.kind;
    struct job *job = job_new_query(kind == QUERY_CLEAR        ? JOB_CLEAR
                                    : kind == QUERY_FORGET     ? JOB_FORGET
                                    : kind == QUERY_ALERT_EDIT ? JOB_ALERT_EDIT
                                                               : JOB_BASELINE,
                                    to, asked, NULL);
    unsigned char key[WIRE_KEY_SIZE];
    struct access *access = service->endpoints->access;
    if (job && kind == QUERY_FORGET && access &&
        access_key_named(access, job->query->key.text, key))
        (void)wire_key_text(job->query->key.text, key);
    if (job)
        job->act = *act;
    return job_submit(service->channels->inbox, job, err);
}

static enum status administer_keys(struct query_service *service, const struct query *query,
                                   struct admin_act *act, struct result **result, struct error *err)
{
    struct access *access = service->endpoints->access;
    if (!access)
        return error_set(err, STATUS_INVALID,
                         "this collector has no key, and asks for none "
                         "(inferstat keygen --server makes one)");
    enum status status = access_query(access, query, result, err);
    admin_act_end(act, status, err, status == STATUS_OK);
    job_note(service->channels->inbox, act);
    return status;
}

// Changes of the store are answered by the writer when they are complete, long queries by the
// query worker.
static void administer(struct query_service *service, const struct job_return *to,
                       const struct wire_peer *peer, const struct message_query *asked)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    const enum query_kind kind = asked->query.kind;
    bool is_answered_here = false;
    enum status status = check_owner(service, to->socket, &asked->query, &err);
    struct admin_act act = {.action = NULL};
    if (status == STATUS_OK)
        act = begin_act(service, peer, &asked->query);
    if (status == STATUS_OK && (kind == QUERY_CLEAR || kind == QUERY_FORGET ||
                                kind == QUERY_BASELINE_DELETE || kind == QUERY_ALERT_EDIT)) {
        status = pass_on(service, to, asked, &act, &err);
    } else if (status == STATUS_OK && query_worker_handles(kind)) {
        status = query_worker_ask(service->slow, to, asked,
                                  files_below(service, to->socket, &asked->query), &act, &err);
    } else if (status == STATUS_OK) {
        status = kind == QUERY_ADMIN_LOG
                     ? ask_store(service, &asked->query, &result, &err)
                     : administer_keys(service, &asked->query, &act, &result, &err);
        is_answered_here = true;
    }
    if (status != STATUS_OK || is_answered_here)
        reply(service, to, asked->id, status, result, &err);
    result_free(result);
}

// Adds the writer's error, which the store's file does not have.
static enum status set_write_error(struct query_service *service, struct result *result,
                                   struct error *err)
{
    char why[ERROR_TEXT_SIZE];
    const int column = result_find(result, "store_error");
    const size_t size = column < 0 ? 0 : channels_read_write_error(service->channels, why);
    if (size > 0 && result_set_text(result, (unsigned)column, why, size) != STATUS_OK)
        return error_no_memory(err, "query");
    return STATUS_OK;
}

static void answer_from_store(struct query_service *service, const struct job_return *to,
                              const struct message_query *asked)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    enum status status = ask_store(service, &asked->query, &result, &err);
    if (status == STATUS_OK && asked->query.kind == QUERY_PING)
        channels_add_to_ping(service->channels, service->endpoints->listener, service->path,
                             result);
    if (status == STATUS_OK)
        status = set_write_error(service, result, &err);
    reply(service, to, asked->id, status, result, &err);
    result_free(result);
}

// True if so many answers wait for the asker's owner that another one would not be read either: it
// is not computed.
static bool has_unread(struct query_service *service, const struct job_return *to,
                       const struct wire_peer *peer)
{
    struct quota *quota = service->channels->quota;
    const uint64_t most = quota_most(quota, QUOTA_ANSWERS);
    if (!port_has_unread(service->admission.sockets[to->socket], &to->route,
                         most ? most : UINT64_MAX))
        return false;
    reject_counters_count(service->endpoints->rejects, REFUSAL_QUOTA, 1);
    quota_complain(quota, peer, "asks on without reading its answers: queries are refused", 1);
    return true;
}

static void on_query(struct query_service *service, const struct job_return *to,
                     const struct wire_peer *peer, const struct message_query *asked)
{
    struct error err = {.text = "failed"};
    if (asked->protocol < 1 || asked->protocol > MESSAGE_PROTOCOL + 1) {
        refuse(service, to, asked->id, STATUS_INVALID,
               "this collector does not speak that version of the protocol");
    } else if (query_is_administrative(asked->query.kind)) {
        administer(service, to, peer, asked);
    } else if (has_unread(service, to, peer)) {
        refuse(service, to, asked->id, STATUS_TIMEOUT,
               "too many answers to this key or user are unread");
    } else if (query_worker_handles(asked->query.kind) || query_worker_scans(&asked->query)) {
        struct query_worker *worker =
            query_worker_handles(asked->query.kind) ? service->slow : service->scans;
        enum status status = query_worker_ask(worker, to, asked, NULL, NULL, &err);
        if (status != STATUS_OK) // else the worker answers
            reply(service, to, asked->id, status, NULL, &err);
    } else {
        answer_from_store(service, to, asked);
    }
}

static void on_frame(struct query_service *service, unsigned socket, const struct wire_frame *frame)
{
    const struct job_return to = {.socket = socket, .route = frame->route};
    struct message message;
    struct error err = {.text = "no query"};
    const char *why;
    if (!admission_allows(&service->admission, socket, frame, &why)) {
        refuse(service, &to, 0, STATUS_DENIED, why);
        return;
    }
    enum status status = codec_decode_untrusted(&message, frame->bytes, frame->size, &err);
    if (status != STATUS_OK) {
        reject_counters_count(service->endpoints->rejects, REFUSAL_UNDECODABLE, 1);
        quota_complain(service->channels->quota, &frame->peer,
                       "sends queries that cannot be decoded", 1);
        reply(service, &to, 0, status, NULL, &err);
        return;
    }
    if (message.kind == MESSAGE_QUERY)
        on_query(service, &to, &frame->peer, &message.query);
    else
        refuse(service, &to, 0, STATUS_INVALID, "this message is not for the query socket");
    message_free(&message);
}

static bool receive_one(struct query_service *service, unsigned socket)
{
    struct wire_frame frame;
    if (port_receive(service->admission.sockets[socket], &frame) != STATUS_OK)
        return false;
    on_frame(service, socket, &frame);
    port_release(&frame);
    return true;
}

// Serves a few administrators' queries of each address first, then one query of each socket: no
// asker keeps the others waiting, nor the sockets, which may need a wait to send the answers.
static void receive_ready(struct query_service *service, uint32_t ready)
{
    const unsigned count = service->endpoints->count;
    for (unsigned i = count; i < 2 * count; i++)
        for (unsigned n = 0; n < ADMIN_TURN && ready >> i & 1 && receive_one(service, i); n++) {
            // The next one follows.
        }
    for (unsigned i = 0; i < count; i++)
        if (ready >> i & 1)
            (void)receive_one(service, i);
}

static void run_once(struct query_service *service)
{
    uint32_t ready = 0;
    admission_wait(&service->admission, queue_fd(service->channels->replies), &ready);
    answer_send_queued(service->admission.sockets, service->channels->replies,
                       service->endpoints->rejects);
    receive_ready(service, ready);
}

// ---- The thread -----------------------------------------------------------------------

static enum status open_all(struct query_service *service, const char *path, struct error *err)
{
    enum status status = store_open(&service->store, path, err);
    if (status != STATUS_OK)
        return status;
    store_set_live(service->store);
    store_set_budget(service->store, QUERY_BUDGET_SECONDS * UINT64_C(1000000000));
    store_set_log_limit(service->store,
                        reader_gate_log_limit(&service->channels->gate, READER_SHORT));
    status = query_worker_start(&service->slow, path, 1, service->channels, err);
    if (status == STATUS_OK)
        status = query_worker_start(&service->scans, path, QUERY_WORKER_ROOM_MAX, service->channels,
                                    err);
    if (status == STATUS_OK)
        status = admission_open(&service->admission, service->endpoints, ADDRESS_QUERY, err);
    if (status == STATUS_OK)
        status = admission_open(&service->admission, service->endpoints, ADDRESS_ADMIN, err);
    return status;
}

static void *query_body(void *context)
{
    struct query_service *service = context;
    while (!atomic_load_explicit(&service->stop, memory_order_relaxed))
        run_once(service);
    return NULL;
}

enum status query_service_start(struct query_service **out, const struct endpoints *endpoints,
                                const char *path, const char *files_under,
                                struct channels *channels, struct error *err)
{
    struct query_service *service = calloc(1, sizeof *service);
    if (!service)
        return error_no_memory(err, "query service");
    service->endpoints = endpoints;
    service->path = path;
    service->files_under = files_under;
    service->channels = channels;
    enum status status = open_all(service, path, err);
    if (status == STATUS_OK)
        status = thread_start(&service->thread, "query service", query_body, service, err);
    if (status != STATUS_OK) {
        query_service_stop(service);
        return status;
    }
    *out = service;
    return STATUS_OK;
}

void query_service_stop(struct query_service *service)
{
    if (!service)
        return;
    atomic_store_explicit(&service->stop, true, memory_order_relaxed);
    answer_wake(service->channels->replies); // if that fails, it checks within a second anyway
    thread_join(&service->thread);
    admission_close(&service->admission);
    query_worker_stop(service->slow);
    query_worker_stop(service->scans);
    store_close(service->store);
    free(service);
}
