#include "server/collector/writer/writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/core/base/text.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/open_marker.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "common/store/schema/database_open.h"
#include "server/collector/maintenance/maintenance.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/threads/job.h"
#include "server/collector/threads/service.h"
#include "server/collector/writer/writer_baseline.h"
#include "server/collector/writer/writer_batch.h"
#include "server/collector/writer/writer_import.h"
#include "server/collector/writer/writer_insert.h"
#include "server/collector/writer/writer_refusals.h"
#include "server/collector/writer/writer_runs.h"

#define SECOND_NS INT64_C(1000000000)

enum {
    TICK_NS = 250000000,       // how often silence is looked for
    COUNT_NS = 1000000000,     // refusals alone are worth a commit no more often
    AWAY_NS = 1000000000,      // longer between two looks: the writer was kept elsewhere
    GROUP_NS_MAX = 80000000,   // a group's transaction is not held open longer
    GROUP_RECORDS_MAX = 65536, // nor made larger
    LINGER_RECORDS = 2048,     // a group of so many is under load: it waits
    LINGER_NS = 4000000,       // so long for more before it commits
    CACHE_BYTES = 16777216,    // of runs, with their streams and names
    SILENT_SECONDS = 10,       // without a message: the run is silent
    EVICT_SECONDS = 60,        // a silent or closed run leaves the cache
    HEARD_SAVE_SECONDS = 5,    // how old heard_ns may be in the store
};

struct writer {
    struct writer_config config;
    struct service service;
    sqlite3 *db;
    struct runs *runs;
    struct inserter *inserter;
    struct batches *batches;
    struct rollups *rollups; // NULL: none are made
    struct maintenance *maintenance;
    unsigned char store[16];
    uint64_t ticked_at_ns;
    uint64_t counted_at_ns;       // when refusals were saved last
    uint64_t group_ns;            // what the last group took
    bool drained;                 // it ended because nothing was queued any longer
    int64_t changes;              // rows changed by this connection when its transaction began
    struct writer_import *import; // created by the first batch of an import
    bool starved;                 // the last group failed: memory is short
    bool failing;                 // the last group could not be written, and that was logged
    bool unloaded;                // the open runs could not all be read after a rollback
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

// Without the mark all goes on: only copies of the file are not told from whole stores.
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
        inserter_tell(writer->inserter, writer->rollups);
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
                             writer->config.acks, err);
    if (status == STATUS_OK)
        batches_set_rules(writer->batches, &(struct batches_rules){
                                               .access = writer->config.access,
                                               .reject_counters = writer->config.reject_counters,
                                               .peer_credit = writer->config.peer_credit,
                                               .limits = writer->config.limits,
                                           });
    if (status == STATUS_OK)
        status = maintenance_new(&writer->maintenance,
                                 &(struct maintenance_parts){.db = writer->db,
                                                             .rollups = writer->rollups,
                                                             .retention = &writer->config.retention,
                                                             .inbox = writer->config.inbox,
                                                             .replies = writer->config.replies},
                                 err);
    if (status == STATUS_OK)
        status = runs_load_open(writer->runs, clock_monotonic_ns(), err);
    return status;
}

static void close_store(struct writer *writer)
{
    struct error err;
    if (writer->db && open_marker_clear(writer->db, &err) != STATUS_OK)
        log_write(LOG_LEVEL_DEBUG, "%s", err.text);
    batches_free(writer->batches);
    runs_free(writer->runs);
    inserter_free(writer->inserter);
    rollups_free(writer->rollups);
    writer_import_free(writer->import);
    database_close(writer->db);
    writer->db = NULL;
}

// ---- A group -------------------------------------------------------------------------

static void post_ids(struct writer *writer)
{
    struct commit_notifier_ids ids;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        ids.last[kind] = kind == RECORD_KIND_RUN
                             ? runs_last_id(writer->runs)
                             : inserter_last_id(writer->inserter, (enum record_kind)kind);
    commit_notifier_post(writer->config.commit_notifier, &ids);
}

// Forgets the group: nothing of it is acknowledged, and its producers will send
// it again.
static void fail_group(struct writer *writer, enum status status, const struct error *err)
{
    writer->starved = status == STATUS_NOMEM;
    database_rollback(writer->db);
    batches_drop_acks(writer->batches);
    if (writer->rollups)
        rollups_forget(writer->rollups);
    if (!writer->failing)
        log_write(LOG_LEVEL_ERROR, "%s (nothing is acknowledged until the store can be written)",
                  err->text);
    writer->failing = true;
    if (writer->config.write_error)
        write_error_tell(writer->config.write_error, err->text);
    struct error again;
    if (inserter_reset(writer->inserter, &again) != STATUS_OK) // ids are left out
        log_write(LOG_LEVEL_DEBUG, "%s", again.text);
    writer->unloaded = runs_reload(writer->runs, clock_monotonic_ns(), &again) != STATUS_OK;
    if (writer->unloaded)
        log_write(LOG_LEVEL_DEBUG, "%s", again.text);
}

// Loads the open runs that could not be read after the last rollback, so that their silence
// is noticed.
static void load_again(struct writer *writer, uint64_t now_ns)
{
    struct error err;
    if (writer->unloaded)
        writer->unloaded = runs_load_open(writer->runs, now_ns, &err) != STATUS_OK;
}

// Groups without a pause fold some rollups as they end, which saves a commit; where there
// are pauses, those who wait for this group need not wait for that too.
static bool rollups_want(const struct writer *writer)
{
    return writer->rollups && !writer->drained &&
           rollups_are_due(writer->rollups, clock_monotonic_ns());
}

// Writes what the group changed beside its records, and commits.
static enum status commit_group(struct writer *writer, struct error *err)
{
    bool left = false;
    enum status status = runs_flush(writer->runs, err);
    if (status == STATUS_OK && rollups_want(writer))
        status = rollups_flush(writer->rollups, ROLLUPS_DUE, clock_monotonic_ns(), &left, err);
    if (status == STATUS_OK)
        status =
            writer_save_refusals(writer->config.reject_counters, writer->db, clock_wall_ns(), err);
    if (status == STATUS_OK)
        status = database_exec(writer->db, "COMMIT", err);
    reject_counters_saved(writer->config.reject_counters, status == STATUS_OK);
    return status;
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

// After a commit: only one that wrote something shows that the store can be
// written again.
static void recover(struct writer *writer)
{
    if (!writer->failing || sqlite3_total_changes64(writer->db) == writer->changes)
        return;
    log_write(LOG_LEVEL_WARNING, "the store can be written again");
    writer->failing = false;
    if (writer->config.write_error)
        write_error_tell(writer->config.write_error, "");
}

// Ends the group: commits where there is something to, then acknowledges.
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
        maintenance_committed(writer->maintenance, batches_records(writer->batches) > 0);
        recover(writer);
        post_ids(writer);
    }
    batches_send_acks(writer->batches);
    runs_trim(writer->runs, CACHE_BYTES);
}

// ---- Work ------------------------------------------------------------------------------

static enum status take_message(struct writer *writer, const struct job *job, struct error *err)
{
    enum status status = begin(writer, err);
    if (status == STATUS_OK)
        status = batches_take(writer->batches, job, err);
    return status;
}

// Whether taking the message may touch the store at once: a heartbeat that says
// nothing new needs no transaction.
static bool is_heartbeat(const struct job *job)
{
    if (job->message.kind != MESSAGE_BATCH)
        return false;
    const struct message_batch *batch = &job->message.batch;
    return batch->first == 0 && batch->name_count == 0 && batch->drop_count == 0;
}

static enum status take(struct writer *writer, const struct job *job, struct error *err)
{
    switch (job->kind) {
    case JOB_MESSAGE:
        if (is_heartbeat(job))
            return batches_take(writer->batches, job, err);
        return take_message(writer, job, err);
    case JOB_STOP:
        writer->stop = true;
        return STATUS_OK;
    case JOB_CLEAR:
    case JOB_BASELINE:
    case JOB_IMPORT:
        break; // not inside of a group
    }
    return STATUS_OK;
}

// The next job of a group.  Under load a group waits a moment for more, so that one commit
// serves many batches; without load it does not wait.
static struct job *next_work(struct writer *writer, uint64_t began_ns)
{
    struct job *job = queue_pop(writer->config.inbox);
    if (job || batches_records(writer->batches) < LINGER_RECORDS ||
        clock_monotonic_ns() - began_ns > GROUP_NS_MAX)
        return job;
    queue_wait(writer->config.inbox, LINGER_NS);
    return queue_pop(writer->config.inbox);
}

// Whether the work has transactions of its own.
static bool is_apart(const struct job *job)
{
    return job->kind == JOB_CLEAR || job->kind == JOB_BASELINE || job->kind == JOB_IMPORT;
}

// Applies one import batch, then notifies live readers.
static void import_some(struct writer *writer, struct job *job)
{
    const struct writer_import_parts parts = {.db = writer->db,
                                              .inserter = writer->inserter,
                                              .runs = writer->runs,
                                              .rollups = writer->rollups};
    writer_import_take(&writer->import, &parts, job->order);
    job->order = NULL;
    post_ids(writer);
}

// Takes over such work.
static void take_apart(struct writer *writer, struct job *job)
{
    if (job->kind == JOB_CLEAR) {
        maintenance_clear(writer->maintenance, job);
        return;
    }
    if (job->kind == JOB_IMPORT)
        import_some(writer, job);
    else
        writer_baseline(writer->db, job, writer->config.replies);
    maintenance_committed(writer->maintenance, true);
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
        struct job *job = next_work(writer, began_ns);
        writer->drained = !job;
        if (!job)
            break;
        if (is_apart(job)) {
            apart = job;
            break;
        }
        status = take(writer, job, &err);
        job_free(job);
        if (batches_records(writer->batches) >= GROUP_RECORDS_MAX ||
            clock_monotonic_ns() - began_ns > GROUP_NS_MAX)
            break;
    }
    end_group(writer, status, &err);
    writer->group_ns = clock_monotonic_ns() - began_ns;
    if (apart)
        take_apart(writer, apart);
}

// ---- Silence ---------------------------------------------------------------------------

// What a run's silence is judged by.
struct look {
    uint64_t now_ns;
    uint64_t away_ns; // time since the last check in which the writer received nothing
    bool drained;     // all received messages have been processed
};

static void look_at_run(void *context, struct run *run)
{
    const struct look *look = context;
    if (run->delivery.end != RECORD_RUN_END_OPEN)
        return;
    run->heard_at_ns += look->away_ns;
    if (run->heard_at_ns > look->now_ns)
        run->heard_at_ns = look->now_ns;
    if (look->drained && look->now_ns - run->heard_at_ns > (uint64_t)SILENT_SECONDS * SECOND_NS) {
        delivery_run_silence(&run->delivery);
    } else if (run->heard_ns - run->flushed_heard_ns > HEARD_SAVE_SECONDS * SECOND_NS) {
        run->dirty = true;
    }
}

static void tick(struct writer *writer)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (now_ns - writer->ticked_at_ns < TICK_NS)
        return;
    const uint64_t since_ns = now_ns - writer->ticked_at_ns;
    struct look look = {.now_ns = now_ns,
                        .away_ns = since_ns > AWAY_NS ? since_ns - TICK_NS : 0,
                        .drained = writer->drained};
    writer->ticked_at_ns = now_ns;
    load_again(writer, now_ns);
    runs_each(writer->runs, look_at_run, &look);
    const bool count = now_ns - writer->counted_at_ns >= COUNT_NS &&
                       reject_counters_are_waiting(writer->config.reject_counters);
    if (runs_are_dirty(writer->runs) || count) {
        struct error err = {.text = "writer: failed"};
        batches_begin(writer->batches);
        end_group(writer, count ? begin(writer, &err) : STATUS_OK, &err);
        writer->counted_at_ns = now_ns;
    }
    if (!writer->failing && now_ns > (uint64_t)EVICT_SECONDS * SECOND_NS)
        runs_evict(writer->runs, now_ns - (uint64_t)EVICT_SECONDS * SECOND_NS);
}

// At the end of a life: what is in memory need not be read again in the next.
static void fold_all(struct writer *writer)
{
    struct error err = {.text = "writer: failed"};
    bool left = writer->rollups != NULL && !writer->failing;
    while (left) {
        enum status status = begin(writer, &err);
        if (status == STATUS_OK)
            status = rollups_flush(writer->rollups, ROLLUPS_ALL, clock_monotonic_ns(), &left, &err);
        if (status == STATUS_OK)
            status = database_exec(writer->db, "COMMIT", &err);
        if (status == STATUS_OK)
            continue;
        log_write(LOG_LEVEL_WARNING, "%s (rollups are made by the next collector)", err.text);
        database_rollback(writer->db);
        return;
    }
}

static struct maintenance_load load_of(const struct writer *writer)
{
    return (struct maintenance_load){
        .group_ns = writer->group_ns, .is_busy = !writer->drained, .is_failing = writer->failing};
}

// How long to wait for messages: until the next tick, or something else is to be done.
static int64_t patience_ns(const struct writer *writer)
{
    const struct maintenance_load load = load_of(writer);
    const uint64_t patience_ns = maintenance_patience_ns(writer->maintenance, &load);
    return patience_ns < TICK_NS ? (int64_t)patience_ns : TICK_NS;
}

static void *writer_body(void *context)
{
    struct writer *writer = context;
    struct error err = {0};
    enum status status = open_store(writer, &err);
    if (status == STATUS_OK)
        post_ids(writer);
    writer->ticked_at_ns = clock_monotonic_ns();
    service_report(&writer->service, status, &err);
    while (status == STATUS_OK && !writer->stop) {
        // Memory that does not come back takes a new process, which a watchdog starts.
        if (!writer->starved && !maintenance_is_starved(writer->maintenance))
            service_beat(&writer->service, clock_monotonic_ns());
        queue_wait(writer->config.inbox, patience_ns(writer));
        run_group(writer);
        const struct maintenance_load load = load_of(writer);
        if (!writer->stop)
            maintenance_run(writer->maintenance, &load);
        tick(writer);
    }
    maintenance_free(writer->maintenance);
    writer->maintenance = NULL;
    if (status == STATUS_OK)
        fold_all(writer);
    close_store(writer);
    return NULL;
}

enum status writer_start(struct writer **out, const struct writer_config *config, struct error *err)
{
    struct writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err, "writer");
    writer->config = *config;
    enum status status = service_start(&writer->service, writer_body, writer, err);
    if (status != STATUS_OK) {
        free(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

const unsigned char *writer_store_uuid(const struct writer *writer)
{
    return writer->store;
}

uint64_t writer_beaten_ns(struct writer *writer)
{
    return service_beaten_ns(&writer->service);
}

void writer_join(struct writer *writer)
{
    if (!writer)
        return;
    service_join(&writer->service);
    free(writer);
}
