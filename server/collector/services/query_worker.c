#include "server/collector/services/query_worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/aggregate/energy.h"
#include "common/store/aggregate/throughput.h"
#include "common/store/compare/baseline.h"
#include "common/store/sqlite/fd_path.h"
#include "common/store/transfer/import.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "common/sys/thread.h"
#include "server/collector/access/files_under.h"

struct request {
    struct job_return to;
    struct message_query asked;
    const char *below; // folder that must contain its file, or NULL
    struct admin_act act;
};

struct query_worker {
    struct thread thread;
    const char *path;
    unsigned room;
    struct channels *channels;
    pthread_mutex_t lock;   // of the members below
    pthread_cond_t changed; // some of them
    bool stop;
    struct request requests[QUERY_WORKER_ROOM_MAX]; // a ring buffer of `count` entries
    unsigned first, count;                          // the first is running, or next
    struct store *store;                            // of the running query, or NULL
};

// The queries that workers run, with their time limit and advice for when it is exceeded.
static const struct slow_query {
    const char *name; // with its article
    int seconds;      // 0: not for workers
    const char *instead;
} slow_queries[QUERY_KIND_COUNT] = {
    [QUERY_AUDIT] = {"an audit", QUERY_WORKER_BUDGET_SECONDS,
                     "audit the file itself, or a copy of it: inferstat --db FILE audit"},
    [QUERY_COMPARE] = {"a comparison", QUERY_WORKER_BUDGET_SECONDS,
                       "narrow it with --since or a filter, or compare baselines"},
    [QUERY_BASELINE_SAVE] = {"a baseline", QUERY_WORKER_BUDGET_SECONDS,
                             "narrow it with --since or a filter"},
    [QUERY_COPY] = {"a copy", QUERY_WORKER_COPY_SECONDS,
                    "copy the file itself: inferstat --db FILE backup"},
    [QUERY_IMPORT] = {"an import", QUERY_WORKER_COPY_SECONDS,
                      "imported records stay; run it again to continue"},
};

static const struct slow_query average = {"an average", QUERY_WORKER_SCAN_SECONDS,
                                          "narrow it with --since or a filter"};

bool query_worker_handles(enum query_kind kind)
{
    return (unsigned)kind < QUERY_KIND_COUNT && slow_queries[kind].seconds > 0;
}

bool query_worker_scans(const struct query *query)
{
    const struct query_metric *metric = NULL;
    enum rollup_grouping grouping;
    struct error err;
    if (query->kind == QUERY_WHY || query->kind == QUERY_ALERT_TRY)
        return query_check(query, &err) == STATUS_OK;
    return query->kind == QUERY_AVERAGE && query_check(query, &err) == STATUS_OK &&
           query_metric_find(&metric, query->metric, NULL) == STATUS_OK &&
           ((rollup_metric_number(metric) < 0 && !throughput_has(metric->name) &&
             !energy_has(metric->name)) ||
            !rollup_grouping_for(&grouping, query));
}

static const struct slow_query *limits_of(const struct request *request)
{
    const enum query_kind kind = request->asked.query.kind;
    return query_worker_handles(kind) ? &slow_queries[kind] : &average;
}

static enum reader_kind reader_of(const struct request *request)
{
    return query_worker_handles(request->asked.query.kind) ? READER_LONG : READER_SCAN;
}

// Publishes the open store so that query_worker_stop can cancel its query.  The store is open
// only during a query: an idle worker holds no memory of it.  Returns false when stopping.
static bool publish_store(struct query_worker *worker, struct store *store)
{
    (void)pthread_mutex_lock(&worker->lock);
    worker->store = store;
    const bool goes_on = !worker->stop;
    (void)pthread_mutex_unlock(&worker->lock);
    return goes_on;
}

// Reads a baseline's records and queues them for the writer, which answers.
static enum status pass_baseline_on(struct query_worker *worker, const struct request *request,
                                    struct store *store, struct error *err)
{
    struct baseline *baseline = NULL;
    enum status status = baseline_prepare(&baseline, store, &request->asked.query, err);
    if (status != STATUS_OK)
        return status;
    struct job *job = job_new_query(JOB_BASELINE, &request->to, &request->asked, baseline);
    if (job)
        job->act = request->act;
    return job_submit(worker->channels->inbox, job, err);
}

static enum status give_batch(void *context, struct import_batch *batch, struct error *err)
{
    struct query_worker *worker = context;
    return job_import(worker->channels->inbox, batch, err);
}

// Leaves `*out` NULL when the writer will answer.  Imports are read here and written there.
static enum status ask(struct query_worker *worker, const struct request *request,
                       const struct query *query, struct store *store, struct result **out,
                       struct error *err)
{
    if (query->kind == QUERY_BASELINE_SAVE)
        return pass_baseline_on(worker, request, store, err);
    if (query->kind == QUERY_IMPORT)
        return import_file(store, query->file.path, &(struct import_sink){give_batch, worker}, out,
                           err);
    return store_query(store, query, out, err);
}

// Replaces the path through the descriptor by the given one in the error text.
static void restore_name(const char *given, const char *reached, struct error *err)
{
    struct error said = {.status = err->status};
    size_t used = 0;
    for (const char *at = err->text; *at && used + 1 < sizeof said.text;) {
        const bool is_it = strncmp(at, reached, strlen(reached)) == 0;
        const int n = snprintf(said.text + used, sizeof said.text - used, "%.*s",
                               is_it ? (int)strlen(given) : 1, is_it ? given : at);
        used += n > 0 ? (size_t)n : 0;
        at += is_it ? strlen(reached) : 1;
    }
    *err = said;
}

// Runs the query with the file's folder held open.
static enum status ask_below(struct query_worker *worker, const struct request *request,
                             struct store *store, struct result **out, struct error *err)
{
    const char *given = request->asked.query.file.path;
    struct query query = request->asked.query;
    struct files_hold hold;
    enum status status = files_under_hold(&hold, request->below, given, err);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", hold.path);
    status = ask(worker, request, &query, store, out, err);
    const int column = status == STATUS_OK && *out ? result_find(*out, "path") : -1;
    if (status != STATUS_OK)
        restore_name(given, hold.path, err);
    else if (column >= 0 &&
             result_set_text(*out, (unsigned)column, given, strlen(given)) != STATUS_OK)
        status = error_no_memory(err, "query");
    files_under_release(&hold);
    return status;
}

static enum status ask_store(struct query_worker *worker, const struct request *request,
                             struct result **out, struct error *err)
{
    struct store *store = NULL;
    enum status status = store_open(&store, worker->path, err);
    if (status != STATUS_OK)
        return status;
    const struct query *query = &request->asked.query;
    if (query->kind != QUERY_IMPORT) // it holds no snapshot of the store
        store_set_log_limit(store,
                            reader_gate_log_limit(&worker->channels->gate, reader_of(request)));
    store_set_live(store);
    store_set_budget(store, (uint64_t)limits_of(request)->seconds * UINT64_C(1000000000));
    if (publish_store(worker, store))
        status = request->below ? ask_below(worker, request, store, out, err)
                                : ask(worker, request, query, store, out, err);
    else
        status = error_set(err, STATUS_CANCELLED, "the collector is stopping");
    (void)publish_store(worker, NULL);
    store_close(store);
    return status;
}

// An import reads another file, and must not keep the log from being reset.
static enum status ask_through_gate(struct query_worker *worker, const struct request *request,
                                    struct result **out, struct error *err)
{
    struct reader_gate *gate = &worker->channels->gate;
    if (request->asked.query.kind == QUERY_IMPORT)
        return ask_store(worker, request, out, err);
    reader_gate_enter(gate, reader_of(request));
    const enum status status = ask_store(worker, request, out, err);
    reader_gate_leave(gate, reader_of(request));
    return status;
}

// Other threads do not access the first request.
static void answer(struct query_worker *worker)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    const struct request *request = &worker->requests[worker->first];
    enum status status = ask_through_gate(worker, request, &result, &err);
    const struct slow_query *slow = limits_of(request);
    if (status == STATUS_TIMEOUT)
        status = error_set(&err, status, "%s of all this takes longer than %d s (%s)", slow->name,
                           slow->seconds, slow->instead);
    const bool is_passed_on = status == STATUS_OK && !result;
    struct admin_act act = request->act;
    admin_act_end(&act, status, &err, result ? result_integer(result, 0, "records", 0) : 0);
    if (!is_passed_on)
        job_note(worker->channels->inbox, &act);
    struct answer *encoded =
        is_passed_on || status == STATUS_CANCELLED
            ? NULL
            : reply_encode(&request->to, request->asked.id, status, result, &err);
    // Before the reply is queued: its client may send the next query at once.
    (void)pthread_mutex_lock(&worker->lock);
    worker->first = (worker->first + 1) % QUERY_WORKER_ROOM_MAX;
    worker->count--;
    (void)pthread_mutex_unlock(&worker->lock);
    answer_submit(worker->channels->replies, encoded);
    result_free(result);
}

// Waits for a query; false when stopping.
static bool wait_for_query(struct query_worker *worker)
{
    (void)pthread_mutex_lock(&worker->lock);
    while (worker->count == 0 && !worker->stop)
        (void)pthread_cond_wait(&worker->changed, &worker->lock);
    const bool goes_on = !worker->stop;
    (void)pthread_mutex_unlock(&worker->lock);
    return goes_on;
}

static void *worker_body(void *context)
{
    struct query_worker *worker = context;
    while (wait_for_query(worker))
        answer(worker);
    return NULL;
}

enum status query_worker_start(struct query_worker **out, const char *path, unsigned room,
                               struct channels *channels, struct error *err)
{
    assert(room >= 1 && room <= QUERY_WORKER_ROOM_MAX);
    struct query_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return error_no_memory(err, "query worker");
    worker->path = path;
    worker->room = room;
    worker->channels = channels;
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_cond_init(&worker->changed, NULL);
    enum status status = fd_path_allow(err);
    if (status == STATUS_OK)
        status = thread_start(&worker->thread, "query worker", worker_body, worker, err);
    if (status != STATUS_OK) {
        query_worker_stop(worker);
        return status;
    }
    *out = worker;
    return STATUS_OK;
}

enum status query_worker_ask(struct query_worker *worker, const struct job_return *to,
                             const struct message_query *asked, const char *below,
                             const struct admin_act *act, struct error *err)
{
    (void)pthread_mutex_lock(&worker->lock);
    const bool is_free = worker->count < worker->room;
    const char *at_work = limits_of(&worker->requests[worker->first])->name; // where it is not free
    if (is_free) {
        worker->requests[(worker->first + worker->count++) % QUERY_WORKER_ROOM_MAX] =
            (struct request){.to = *to,
                             .asked = *asked,
                             .below = below,
                             .act = act ? *act : (struct admin_act){.action = NULL}};
        (void)pthread_cond_signal(&worker->changed);
    }
    (void)pthread_mutex_unlock(&worker->lock);
    if (is_free)
        return STATUS_OK;
    if (worker->room > 1)
        return error_set(err, STATUS_BUSY,
                         "%u others that read all records are under way (try again when one is "
                         "done)",
                         worker->room);
    return error_set(err, STATUS_BUSY, "another%s is under way (try again when it is done)",
                     strchr(at_work, ' '));
}

void query_worker_stop(struct query_worker *worker)
{
    if (!worker)
        return;
    (void)pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    if (worker->store)
        store_cancel(worker->store);
    (void)pthread_cond_signal(&worker->changed);
    (void)pthread_mutex_unlock(&worker->lock);
    reader_gate_end(&worker->channels->gate); // a query that waits there is cancelled
    thread_join(&worker->thread);
    (void)pthread_cond_destroy(&worker->changed);
    (void)pthread_mutex_destroy(&worker->lock);
    free(worker);
}
