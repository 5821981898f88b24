#include "server/collector/writer/writer.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/alert/alert_table.h"
#include "common/store/compare/baseline.h"
#include "common/store/sqlite/admin_log.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/sys/thread.h"
#include "common/store/schema/database_open.h"
#include "server/collector/maintenance/maintenance.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/threads/job.h"
#include "server/collector/writer/writer_batch.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_runs.h"

#define SECOND_NS INT64_C(1000000000)

enum {
    TICK_NS = 250000000,       // interval of checks for silent runs
    COUNT_NS = 1000000000,     // least time between commits of reject counters alone
    AWAY_NS = 1000000000,      // longer between two checks: the writer was busy or stopped
    GROUP_NS_MAX = 80000000,   // longest time of a group
    GROUP_RECORDS_MAX = 65536, // most records of a group
    LINGER_RECORDS = 2048,     // a group with as many is under load: it waits
    LINGER_NS = 4000000,       // for more messages before it commits
    CACHE_BYTES = 16777216,    // of runs, with their streams and names
    SILENT_SECONDS = 10,       // without a message until a run is silent
    CLOSED_SECONDS = 3,        // the same of a run whose connection is closed; peers that live
                               // reconnect within 2 s
    EVICT_SECONDS = 60,        // until a silent or closed run is evicted
    HEARD_SAVE_SECONDS = 5,    // largest age of heard_ns in the store
};

struct writer {
    struct writer_config config;
    struct thread thread;
    sqlite3 *db;
    struct runs *runs;
    struct inserter *inserter;
    struct batches *batches;
    struct rollups *rollups; // NULL: none are written
    struct maintenance *maintenance;
    unsigned char store[16];
    uint64_t ticked_at_ns;
    uint64_t counted_at_ns;          // last commit of reject counters
    uint64_t group_ns;               // duration of the last group
    uint64_t commits;                // since the start
    int64_t commit_ns[COMMIT_TIMES]; // durations of the last ones
    bool drained;                    // the last group ended with an empty inbox
    int64_t changes;                 // sqlite3_total_changes64 when the transaction began
    bool starved;                    // the last group failed when out of memory
    bool failing;                    // the last group could not be written; logged
    bool unloaded;                   // open runs could not be reloaded after a rollback
    bool stop;
};

// ---- Opening -------------------------------------------------------------------------

static enum status read_identity(struct writer *writer, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(writer->db, &stmt,
                                          "SELECT value FROM meta WHERE key = 'store'", false, err);
    if (status != STATUS_OK)
        return status;
    const char *text = NULL;
    if (sqlite3_step(stmt) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(stmt, 0);
    if (!text || !text_to_uuid(writer->store, text))
        status =
            error_set(err, STATUS_CORRUPT, "store %s: it has no identity", writer->config.path);
    (void)sqlite3_finalize(stmt);
    return status;
}

// A failure is not fatal: without the marker only copies of an open file go undetected.
static void mark_as_open(struct writer *writer)
{
    struct error err;
    if (open_marker_set(writer->db, &err) != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "%s", err.text);
}

static enum status open_rollups(struct writer *writer, struct error *err)
{
    if (writer->config.no_rollups)
        return STATUS_OK;
    enum status status = rollups_new(&writer->rollups, writer->db, err);
    if (status == STATUS_OK)
        inserter_set_rollups(writer->inserter, writer->rollups);
    return status;
}

static enum status open_store(struct writer *writer, struct error *err)
{
    enum status status = database_open_writer(&writer->db, writer->config.path, err);
    if (status == STATUS_OK)
        mark_as_open(writer);
    if (status == STATUS_OK)
        status = read_identity(writer, err);
    if (status == STATUS_OK)
        status = inserter_new(&writer->inserter, writer->db, err);
    if (status == STATUS_OK)
        status = open_rollups(writer, err);
    if (status == STATUS_OK)
        status = runs_new(&writer->runs, writer->db, err);
    if (status == STATUS_OK)
        status = batches_new(&writer->batches, writer->runs, writer->inserter, writer->store,
                             writer->config.channels, err);
    if (status == STATUS_OK) {
        batches_set_rules(writer->batches, writer->config.access, &writer->config.limits);
        status = maintenance_new(&writer->maintenance, writer->db, writer->rollups,
                                 &writer->config.retention, writer->config.channels, err);
    }
    if (status == STATUS_OK)
        status = runs_load_open(writer->runs, clock_monotonic_ns(), err);
    return status;
}

static void close_store(struct writer *writer)
{
    struct error err;
    if (writer->db && open_marker_clear(writer->db, &err) != STATUS_OK)
        log_write(LOG_LEVEL_DEBUG, "%s", err.text);
    maintenance_free(writer->maintenance);
    batches_free(writer->batches);
    runs_free(writer->runs);
    inserter_free(writer->inserter);
    rollups_free(writer->rollups);
    database_close(writer->db);
    writer->db = NULL;
}

// ---- A group -------------------------------------------------------------------------

static void post_ids(struct writer *writer)
{
    struct commit_ids ids = {.last = {[RECORD_KIND_RUN] = runs_last_id(writer->runs)}};
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT; kind++) {
        ids.last[kind] = inserter_last_id(writer->inserter, (enum record_kind)kind);
        atomic_fetch_add_explicit(&writer->config.channels->stored[kind],
                                  inserter_take_count(writer->inserter, (enum record_kind)kind),
                                  memory_order_relaxed);
    }
    channels_post_commit(writer->config.channels, &ids);
}

static void reload_runs(struct writer *writer)
{
    struct error err;
    writer->unloaded = runs_reload(writer->runs, clock_monotonic_ns(), &err) != STATUS_OK;
    if (writer->unloaded)
        log_write(LOG_LEVEL_DEBUG, "%s", err.text);
}

// Rolls the group back without acknowledgements; its producers will send it again.
static void fail_group(struct writer *writer, enum status status, const struct error *err)
{
    writer->starved = status == STATUS_NOMEM;
    database_rollback(writer->db);
    batches_drop_acks(writer->batches);
    if (writer->rollups)
        rollups_forget(writer->rollups);
    if (!writer->failing)
        log_write(LOG_LEVEL_ERROR, "%s (nothing is acknowledged until the store is writable)",
                  err->text);
    writer->failing = true;
    channels_set_write_error(writer->config.channels, err->text);
    struct error again;
    if (inserter_reset(writer->inserter, &again) != STATUS_OK) // some ids are skipped then
        log_write(LOG_LEVEL_DEBUG, "%s", again.text);
    reload_runs(writer);
}

// Loads open runs that could not be read after the last rollback, to detect their silence.
static void retry_load(struct writer *writer, uint64_t now_ns)
{
    struct error err;
    if (writer->unloaded)
        writer->unloaded = runs_load_open(writer->runs, now_ns, &err) != STATUS_OK;
}

// Under constant load groups flush due rollups in their own commit, which saves one.  When the
// inbox was empty, maintenance flushes them after the acknowledgements.
static bool rollups_are_wanted(const struct writer *writer)
{
    return writer->rollups && !writer->drained &&
           rollups_are_due(writer->rollups, clock_monotonic_ns());
}

enum status writer_save_refusals(sqlite3 *db, const uint64_t counts[REFUSAL_COUNT], int64_t now_ns,
                                 struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    for (unsigned i = 0; i < REFUSAL_COUNT; i++)
        if (counts[i] != 0)
            sqlite3_str_appendf(sql,
                                "INSERT INTO refusal VALUES(%Q, %lld, %lld)"
                                " ON CONFLICT(reason) DO UPDATE SET"
                                " count = count + excluded.count, last_ns = excluded.last_ns;",
                                refusal_key((enum refusal)i), (long long)counts[i],
                                (long long)now_ns);
    return database_exec_built(db, sql, err);
}

// Writes the group's changes beside its records, and commits.
static enum status commit_group(struct writer *writer, struct error *err)
{
    bool left = false;
    uint64_t refusals[REFUSAL_COUNT];
    struct reject_counters *rejects = &writer->config.channels->rejects;
    reject_counters_read(rejects, refusals);
    enum status status = runs_flush(writer->runs, err);
    if (status == STATUS_OK && rollups_are_wanted(writer))
        status = rollups_flush(writer->rollups, ROLLUPS_DUE, clock_monotonic_ns(), &left, err);
    if (status == STATUS_OK)
        status = writer_save_refusals(writer->db, refusals, clock_wall_ns(), err);
    const uint64_t began_ns = clock_monotonic_ns();
    if (status == STATUS_OK)
        status = database_exec(writer->db, "COMMIT", err);
    if (status != STATUS_OK)
        return status;
    writer->commit_ns[writer->commits++ % COMMIT_TIMES] =
        (int64_t)(clock_monotonic_ns() - began_ns);
    reject_counters_saved(rejects, refusals);
    return STATUS_OK;
}

static bool in_transaction(const struct writer *writer)
{
    return !sqlite3_get_autocommit(writer->db);
}

static enum status begin(struct writer *writer, struct error *err)
{
    if (in_transaction(writer))
        return STATUS_OK;
    writer->changes = sqlite3_total_changes64(writer->db);
    return database_exec(writer->db, "BEGIN IMMEDIATE", err);
}

// After a commit: only one that changed rows proves that the store is writable again.
static void recover(struct writer *writer)
{
    if (!writer->failing || sqlite3_total_changes64(writer->db) == writer->changes)
        return;
    log_write(LOG_LEVEL_WARNING, "the store is writable again");
    writer->failing = false;
    channels_set_write_error(writer->config.channels, "");
}

// Ends the group: commits if anything changed, then acknowledges.
static void end_group(struct writer *writer, enum status status, struct error *err)
{
    const bool changed = in_transaction(writer) || runs_are_dirty(writer->runs);
    if (status == STATUS_OK && changed)
        status = begin(writer, err);
    if (status == STATUS_OK && changed)
        status = commit_group(writer, err);
    if (status != STATUS_OK) {
        fail_group(writer, status, err);
        return;
    }
    if (changed) {
        writer->starved = false;
        maintenance_committed(writer->maintenance);
        recover(writer);
        post_ids(writer);
    }
    batches_send_acks(writer->batches);
    runs_trim(writer->runs, CACHE_BYTES);
}

// ---- Jobs ------------------------------------------------------------------------------

// True for a batch without records, names and losses, which needs no transaction.
static bool is_heartbeat(const struct job *job)
{
    if (job->message.kind != MESSAGE_BATCH)
        return false;
    const struct message_batch *batch = &job->message.batch;
    return batch->first == 0 && batch->name_count == 0 && batch->drop_count == 0;
}

static enum status process(struct writer *writer, const struct job *job, struct error *err)
{
    writer->stop = job->kind == JOB_STOP;
    if (writer->stop)
        return STATUS_OK;
    enum status status = is_heartbeat(job) ? STATUS_OK : begin(writer, err);
    return status == STATUS_OK ? batches_apply(writer->batches, job, err) : status;
}

// The group's next job.  Under load a group waits briefly for more, so that one commit covers
// many batches.
static struct job *next_job(struct writer *writer, uint64_t began_ns)
{
    struct job *job = queue_pop(writer->config.channels->inbox);
    if (job || batches_records(writer->batches) < LINGER_RECORDS ||
        clock_monotonic_ns() - began_ns > GROUP_NS_MAX)
        return job;
    queue_wait(writer->config.channels->inbox, LINGER_NS);
    return queue_pop(writer->config.channels->inbox);
}

// True for jobs with transactions of their own.
static bool is_apart(const struct job *job)
{
    return job->kind != JOB_MESSAGE && job->kind != JOB_STOP;
}

// Saves or deletes a baseline, or acknowledges or silences alerts.
static void change_and_answer(struct writer *writer, struct job *job)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    enum status status =
        job->kind == JOB_ALERT_EDIT
            ? alert_table_edit(writer->db, job->query, job->act.actor, &result, &err)
            : baseline_write(writer->db, job->query, job->baseline, &result, &err);
    admin_act_end(&job->act, status, &err, status == STATUS_OK);
    admin_log_add(writer->db, &job->act);
    answer_submit(writer->config.channels->replies,
                  reply_encode(&job->from, job->query_id, status, result, &err));
    result_free(result);
}

static void change_alerts(struct writer *writer, struct job *job)
{
    struct error err = {.text = "writer: failed"};
    const struct job_request *request = job->request;
    enum status status = database_exec(writer->db, "BEGIN IMMEDIATE", &err);
    if (status == STATUS_OK) {
        status = request->change(writer->db, request->context, &err);
        status = database_end(writer->db, status, &err);
    }
    job_request_end(job, status, &err);
}

// Import and inserter both assign ids: each continues after the other's last.
static void import(struct writer *writer, struct job *job)
{
    struct error err = {.text = "writer: failed"}, refresh_err;
    struct import_batch *batch = job->request->batch;
    enum status status =
        import_apply(writer->db, batch, inserter_last_id(writer->inserter, batch->kind), &err);
    if (status == STATUS_OK) {
        if (runs_refresh_ids(writer->runs, &refresh_err) != STATUS_OK ||
            inserter_reset(writer->inserter, &refresh_err) != STATUS_OK)
            log_write(LOG_LEVEL_WARNING, "%s", refresh_err.text);
        if (writer->rollups && rollup_has_kind(batch->kind))
            rollups_rows_added(writer->rollups, batch->kind);
    }
    job_request_end(job, status, &err);
    post_ids(writer);
}

// Runs such a job and consumes it.
static void process_apart(struct writer *writer, struct job *job)
{
    if (job->kind == JOB_CLEAR || job->kind == JOB_FORGET) {
        const bool forgets = job->kind == JOB_FORGET;
        maintenance_clear(writer->maintenance, job);
        if (forgets)
            reload_runs(writer);
        return;
    }
    if (job->kind == JOB_IMPORT)
        import(writer, job);
    else if (job->kind == JOB_ALERTS)
        change_alerts(writer, job);
    else if (job->kind == JOB_NOTE)
        admin_log_add(writer->db, &job->act);
    else
        change_and_answer(writer, job);
    maintenance_committed(writer->maintenance);
    job_free(job);
}

static void run_group(struct writer *writer)
{
    struct error err = {.text = "writer: failed"};
    enum status status = STATUS_OK;
    const uint64_t began_ns = clock_monotonic_ns();
    struct job *apart = NULL;
    batches_begin(writer->batches);
    writer->drained = false;
    while (status == STATUS_OK && !writer->stop) {
        struct job *job = next_job(writer, began_ns);
        writer->drained = !job;
        if (!job)
            break;
        if (is_apart(job)) {
            apart = job;
            break;
        }
        status = process(writer, job, &err);
        job_free(job);
        if (batches_records(writer->batches) >= GROUP_RECORDS_MAX ||
            clock_monotonic_ns() - began_ns > GROUP_NS_MAX)
            break;
    }
    end_group(writer, status, &err);
    writer->group_ns = clock_monotonic_ns() - began_ns;
    if (apart)
        process_apart(writer, apart);
}

// ---- Silence ---------------------------------------------------------------------------

// Notes when the run's connection was found closed.  True if that was CLOSED_SECONDS ago, and
// nothing was heard of the run since: then its process has ended.
static bool has_left(const struct writer *writer, struct run *run, uint64_t now_ns,
                     uint64_t away_ns)
{
    const struct channels *channels = writer->config.channels;
    struct run_link *link = &run->link;
    if (!link->is_known || !channels->is_connected ||
        channels->is_connected(channels->connections, &link->at)) {
        link->closed_at_ns = 0;
        return false;
    }
    if (link->closed_at_ns == 0) {
        link->closed_at_ns = now_ns;
        link->closed_ns = clock_wall_ns();
    } else {
        link->closed_at_ns += away_ns;
    }
    const uint64_t since_ns =
        link->closed_at_ns > run->heard_at_ns ? link->closed_at_ns : run->heard_at_ns;
    return now_ns > since_ns + (uint64_t)CLOSED_SECONDS * SECOND_NS;
}

// `away_ns`: time since the last check in which the writer received nothing.
static void check_silence(const struct writer *writer, struct run *run, uint64_t now_ns,
                          uint64_t away_ns)
{
    if (run->delivery.end != RECORD_RUN_END_OPEN)
        return;
    run->heard_at_ns += away_ns;
    if (run->heard_at_ns > now_ns)
        run->heard_at_ns = now_ns;
    const bool left = has_left(writer, run, now_ns, away_ns);
    // Only once all received messages have been processed.
    if (writer->drained &&
        (left || now_ns - run->heard_at_ns > (uint64_t)SILENT_SECONDS * SECOND_NS)) {
        delivery_run_silence(&run->delivery, left ? run->link.closed_ns : 0);
    } else if (run->heard_ns - run->flushed_heard_ns > HEARD_SAVE_SECONDS * SECOND_NS) {
        run->dirty = true;
    }
}

static void publish_times(struct writer *writer)
{
    struct commit_times *times = &writer->config.channels->commit_times;
    int64_t sorted[COMMIT_TIMES];
    const size_t count = writer->commits < COMMIT_TIMES ? (size_t)writer->commits : COMMIT_TIMES;
    if (count == 0 || atomic_load_explicit(&times->count, memory_order_relaxed) == writer->commits)
        return;
    memcpy(sorted, writer->commit_ns, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, array_compare_first);
    atomic_store_explicit(&times->p50_ns, (uint64_t)sorted[(count - 1) / 2], memory_order_relaxed);
    atomic_store_explicit(&times->p99_ns, (uint64_t)sorted[(count * 99 - 1) / 100],
                          memory_order_relaxed);
    atomic_store_explicit(&times->count, writer->commits, memory_order_relaxed);
}

static void tick(struct writer *writer)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - writer->ticked_at_ns < TICK_NS)
        return;
    const uint64_t since_ns = now_ns - writer->ticked_at_ns;
    writer->ticked_at_ns = now_ns;
    retry_load(writer, now_ns);
    publish_times(writer);
    for (struct run *run = NULL; (run = runs_next(writer->runs, run));)
        check_silence(writer, run, now_ns, since_ns > AWAY_NS ? since_ns - TICK_NS : 0);
    const bool count = now_ns - writer->counted_at_ns >= COUNT_NS &&
                       reject_counters_are_unsaved(&writer->config.channels->rejects);
    if (runs_are_dirty(writer->runs) || count) {
        struct error err = {.text = "writer: failed"};
        batches_begin(writer->batches);
        end_group(writer, count ? begin(writer, &err) : STATUS_OK, &err);
        writer->counted_at_ns = now_ns;
    }
    if (!writer->failing && now_ns > (uint64_t)EVICT_SECONDS * SECOND_NS)
        runs_evict(writer->runs, now_ns - (uint64_t)EVICT_SECONDS * SECOND_NS);
}

// Before the store is closed, for a tenth of a second: the next collector reads the other records
// again.
static void flush_rollups(struct writer *writer)
{
    struct error err = {.text = "writer: failed"};
    bool left = false;
    if (!writer->rollups || writer->failing)
        return;
    enum status status = begin(writer, &err);
    if (status == STATUS_OK)
        status = rollups_flush(writer->rollups, ROLLUPS_ALL, clock_monotonic_ns(), &left, &err);
    if (database_end(writer->db, status, &err) != STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "%s (the next collector writes these rollups)", err.text);
}

static struct maintenance_load load_of(const struct writer *writer)
{
    return (struct maintenance_load){
        .group_ns = writer->group_ns, .is_busy = !writer->drained, .is_failing = writer->failing};
}

// How long to wait for jobs: until the next tick or maintenance task.
static int64_t timeout_ns(const struct writer *writer)
{
    const struct maintenance_load load = load_of(writer);
    const uint64_t timeout_ns = maintenance_timeout_ns(writer->maintenance, &load);
    return timeout_ns < TICK_NS ? (int64_t)timeout_ns : TICK_NS;
}

static void *writer_body(void *context)
{
    struct writer *writer = context;
    while (!writer->stop) {
        // If it stays out of memory, the watchdog restarts the process.
        if (!writer->starved && !maintenance_is_starved(writer->maintenance))
            atomic_store_explicit(&writer->config.channels->writer_beat_ns, clock_monotonic_ns(),
                                  memory_order_relaxed);
        queue_wait(writer->config.channels->inbox, timeout_ns(writer));
        run_group(writer);
        const struct maintenance_load load = load_of(writer);
        if (!writer->stop)
            maintenance_run(writer->maintenance, &load);
        if (maintenance_removed_runs(writer->maintenance))
            runs_were_removed(writer->runs);
        tick(writer);
    }
    maintenance_free(writer->maintenance);
    writer->maintenance = NULL;
    flush_rollups(writer);
    return NULL;
}

enum status writer_start(struct writer **out, const struct writer_config *config, struct error *err)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err, "writer");
    writer->config = *config;
    enum status status = open_store(writer, err);
    if (status == STATUS_OK) {
        post_ids(writer);
        writer->ticked_at_ns = clock_monotonic_ns();
        status = thread_start(&writer->thread, "writer", writer_body, writer, err);
    }
    if (status != STATUS_OK) {
        writer_join(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

const unsigned char *writer_store_uuid(const struct writer *writer)
{
    return writer->store;
}

void writer_join(struct writer *writer)
{
    if (!writer)
        return;
    thread_join(&writer->thread);
    close_store(writer);
    free(writer);
}
