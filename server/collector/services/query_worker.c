#include "server/collector/services/query_worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/fd_path.h"
#include "common/store/transfer/import.h"
#include "common/store/rollup/rollup.h"
#include "common/store/store.h"
#include "server/collector/access/files_under.h"
#include "server/collector/threads/import_request.h"
#include "server/collector/threads/reply.h"
#include "server/collector/threads/service.h"

struct order {
    struct job_return to;
    struct message_query asked;
    const char *below; // where a file it names must be, or NULL
};

struct query_worker {
    struct service service; // its lock guards what follows, its condition tells of changes
    const char *path;
    unsigned room;
    struct queue *inbox, *replies;
    bool stop;
    struct order orders[QUERY_WORKER_ROOM_MAX]; // a ring, of which `count` are there
    unsigned first, count;                      // the first is running, or next
    struct store *store;                        // of the running query, or NULL
};

// The queries that belong here: what to call one, how long it may take, and what else
// to do where that is not enough.
static const struct slow_query {
    const char *name; // with its article
    int seconds;      // 0: not of this lane
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
                      "what is there stays; import it again to go on"},
};

static const struct slow_query average = {"an average", QUERY_WORKER_SCAN_SECONDS,
                                          "narrow it with --since or a filter"};

bool query_worker_takes(enum query_kind kind)
{
    return (unsigned)kind < QUERY_KIND_COUNT && slow_queries[kind].seconds > 0;
}

bool query_worker_scans(const struct query *query)
{
    const struct query_metric *metric = NULL;
    enum rollup_grouping grouping;
    return query->kind == QUERY_AVERAGE &&
           query_metric_find(&metric, query->metric, NULL) == STATUS_OK &&
           (rollup_metric_number(metric) < 0 || !rollup_grouping_for(&grouping, query));
}

static const struct slow_query *about(const struct order *order)
{
    const enum query_kind kind = order->asked.query.kind;
    return query_worker_takes(kind) ? &slow_queries[kind] : &average;
}

// The store is open while there is something to ask: an idle lane holds no memory
// of it.  False when the lane is to stop.
static bool show_store(struct query_worker *lane, struct store *store)
{
    (void)pthread_mutex_lock(&lane->service.lock);
    lane->store = store;
    const bool goes_on = !lane->stop;
    (void)pthread_mutex_unlock(&lane->service.lock);
    return goes_on;
}

// Reads what is to be kept and passes it on to the writer, which answers.
static enum status pass_baseline_on(struct query_worker *lane, const struct order *order,
                                    struct store *store, struct error *err)
{
    struct baseline *baseline = NULL;
    enum status status = baseline_prepare(&baseline, store, &order->asked.query, err);
    if (status != STATUS_OK)
        return status;
    return job_hand(lane->inbox, job_of_baseline(&order->to, &order->asked, baseline), err);
}

static enum status give_batch(void *context, struct import_batch *batch, struct error *err)
{
    struct query_worker *lane = context;
    return import_request_give(lane->inbox, batch, err);
}

// Without an answer, the writer gives it.  An import is read here and written there.
static enum status ask(struct query_worker *lane, const struct order *order,
                       const struct query *query, struct store *store, struct result **out,
                       struct error *err)
{
    if (query->kind == QUERY_BASELINE_SAVE)
        return pass_baseline_on(lane, order, store, err);
    if (query->kind == QUERY_IMPORT)
        return import_file(store, query->file.path, &(struct import_sink){give_batch, lane}, out,
                           err);
    return store_query(store, query, out, err);
}

// Says the file by the name it was given instead of the one it was reached by.
static void say_name(const char *given, const char *reached, struct error *err)
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

static enum status answer_name(struct result *result, const char *given, struct error *err)
{
    const int column = result ? result_find(result, "path") : -1;
    if (column < 0 || result_set_text(result, (unsigned)column, given, strlen(given)) == STATUS_OK)
        return STATUS_OK;
    return error_no_memory(err, "query");
}

// Asks with the file's folder held.
static enum status ask_below(struct query_worker *lane, const struct order *order,
                             struct store *store, struct result **out, struct error *err)
{
    const char *given = order->asked.query.file.path;
    struct query query = order->asked.query;
    struct files_hold hold;
    enum status status = files_under_hold(&hold, order->below, given, err);
    if (status != STATUS_OK)
        return status;
    (void)snprintf(query.file.path, sizeof query.file.path, "%s", hold.path);
    status = ask(lane, order, &query, store, out, err);
    if (status == STATUS_OK)
        status = answer_name(*out, given, err);
    else
        say_name(given, hold.path, err);
    files_under_release(&hold);
    return status;
}

static enum status ask_store(struct query_worker *lane, const struct order *order,
                             struct result **out, struct error *err)
{
    struct store *store = NULL;
    enum status status = store_open(&store, lane->path, err);
    if (status != STATUS_OK)
        return status;
    const struct query *query = &order->asked.query;
    store_set_log_limit(store, query->kind == QUERY_COPY ? QUERY_WORKER_COPY_LOG_BYTES
                                                         : QUERY_WORKER_LOG_BYTES);
    store_set_budget(store, (uint64_t)about(order)->seconds * UINT64_C(1000000000));
    if (show_store(lane, store))
        status = order->below ? ask_below(lane, order, store, out, err)
                              : ask(lane, order, query, store, out, err);
    else
        status = error_set(err, STATUS_CANCELLED, "the collector is ending");
    (void)show_store(lane, NULL);
    store_close(store);
    return status;
}

// The order is not touched by others while it is the first.
static void answer(struct query_worker *lane)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    const struct order *order = &lane->orders[lane->first];
    enum status status = ask_store(lane, order, &result, &err);
    const struct slow_query *slow = about(order);
    if (status == STATUS_TIMEOUT)
        status = error_set(&err, status, "%s of all this takes longer than %d s (%s)", slow->name,
                           slow->seconds, slow->instead);
    const bool is_passed_on = status == STATUS_OK && !result;
    struct answer *encoded = is_passed_on || status == STATUS_CANCELLED
                                 ? NULL
                                 : reply_encode(&order->to, order->asked.id, status, result, &err);
    // Whoever has the answer may ask again.
    (void)pthread_mutex_lock(&lane->service.lock);
    lane->first = (lane->first + 1) % QUERY_WORKER_ROOM_MAX;
    lane->count--;
    (void)pthread_mutex_unlock(&lane->service.lock);
    if (encoded && !queue_push(lane->replies, encoded, encoded->size))
        answer_free(encoded); // the queue is closed: the client times out
    result_free(result);
}

// Waits for a query; false when there will be none.
static bool wait_for_query(struct query_worker *lane)
{
    (void)pthread_mutex_lock(&lane->service.lock);
    while (lane->count == 0 && !lane->stop)
        (void)pthread_cond_wait(&lane->service.changed, &lane->service.lock);
    const bool goes_on = !lane->stop;
    (void)pthread_mutex_unlock(&lane->service.lock);
    return goes_on;
}

static void *lane_body(void *context)
{
    struct query_worker *lane = context;
    service_report(&lane->service, STATUS_OK, NULL);
    while (wait_for_query(lane))
        answer(lane);
    return NULL;
}

enum status query_worker_start(struct query_worker **out, const char *path, unsigned room,
                               struct queue *inbox, struct queue *replies, struct error *err)
{
    assert(room >= 1 && room <= QUERY_WORKER_ROOM_MAX);
    struct query_worker *lane = calloc(1, sizeof *lane);
    if (!lane)
        return error_no_memory(err, "slow lane");
    lane->path = path;
    lane->room = room;
    lane->inbox = inbox;
    lane->replies = replies;
    enum status status = fd_path_allow(err);
    if (status == STATUS_OK)
        status = service_start(&lane->service, lane_body, lane, err);
    if (status != STATUS_OK) {
        free(lane);
        return status;
    }
    *out = lane;
    return STATUS_OK;
}

enum status query_worker_ask(struct query_worker *lane, const struct job_return *to,
                             const struct message_query *asked, const char *below,
                             struct error *err)
{
    (void)pthread_mutex_lock(&lane->service.lock);
    const bool is_free = lane->count < lane->room;
    const char *at_work = about(&lane->orders[lane->first])->name; // where it is not free
    if (is_free) {
        lane->orders[(lane->first + lane->count++) % QUERY_WORKER_ROOM_MAX] =
            (struct order){.to = *to, .asked = *asked, .below = below};
        (void)pthread_cond_signal(&lane->service.changed);
    }
    (void)pthread_mutex_unlock(&lane->service.lock);
    if (is_free)
        return STATUS_OK;
    if (lane->room > 1)
        return error_set(err, STATUS_BUSY,
                         "%u others that read all records are under way (try again when one is "
                         "done)",
                         lane->room);
    return error_set(err, STATUS_BUSY, "another%s is under way (try again when it is done)",
                     strchr(at_work, ' '));
}

void query_worker_stop(struct query_worker *lane)
{
    if (!lane)
        return;
    (void)pthread_mutex_lock(&lane->service.lock);
    lane->stop = true;
    if (lane->store)
        store_cancel(lane->store);
    (void)pthread_cond_signal(&lane->service.changed);
    (void)pthread_mutex_unlock(&lane->service.lock);
    service_join(&lane->service);
    free(lane);
}
