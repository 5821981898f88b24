#include "server/collector/maintenance/writer_clear.h"

#include "common/store/retention/expire.h"
#include "common/sys/clock.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/threads/job.h"

static void reply(struct writer_clear *clear, const struct job *job, enum status status,
                  const struct error *err)
{
    struct result *result = NULL;
    struct error why = *err;
    if (status == STATUS_OK)
        status = clear_answer(&result, &clear->clearing, &why);
    // Any other failure is the collector's, not the query's.
    const enum status told = status == STATUS_OK || status == STATUS_NO_DATA ? status : STATUS_IO;
    answer_submit(clear->replies, reply_encode(&job->from, job->query_id, told, result, &why));
    result_free(result);
}

static void end(struct writer_clear *clear, enum status status, const struct error *err)
{
    struct admin_act *act = &clear->job->act;
    admin_act_end(act, status, err, (int64_t)clear->clearing.cleared);
    admin_log_add(clear->db, act);
    reply(clear, clear->job, status, err);
    job_free(clear->job);
    clear->job = NULL;
}

void writer_clear_begin(struct writer_clear *clear, struct job *job)
{
    struct error err = {.text = "out of memory"};
    if (clear->job) {
        const enum status busy =
            error_set(&err, STATUS_BUSY, "the collector is clearing already (try again)");
        reply(clear, job, busy, &err);
        job_free(job);
        return;
    }
    clear->job = job;
    enum status status = job->kind == JOB_FORGET
                             ? clear_begin_forget(&clear->clearing, clear->db, job->query, &err)
                             : clear_begin(&clear->clearing, clear->db, &job->query->filter, &err);
    if (status != STATUS_OK)
        end(clear, status, &err);
}

bool writer_clear_is_busy(const struct writer_clear *clear)
{
    return clear->job != NULL;
}

// Records that are not in the rollups yet may be in memory, to be flushed.
static void tell_rollups(struct writer_clear *clear, enum record_kind kind, int64_t last_id)
{
    struct error err;
    int64_t held_id = 0;
    if (expire_last_id(clear->db, kind, &held_id, &err) == STATUS_OK && last_id <= held_id)
        rollups_cleared(clear->rollups);
    else
        rollups_rows_removed(clear->rollups, kind);
}

void writer_clear_step(struct writer_clear *clear)
{
    struct error err = {.text = "out of memory"};
    bool done = false;
    const uint64_t began_ns = clock_monotonic_ns();
    const int kind = clear->clearing.kind;
    const uint64_t before = clear->clearing.cleared;
    const int64_t last_id = clear->clearing.after + clear->clearing.slice.now;
    enum status status = clear_slice(&clear->clearing, clear->db, &done, &err);
    if (clear->rollups && clear->clearing.cleared > before)
        tell_rollups(clear, (enum record_kind)kind, last_id);
    clear_took(&clear->clearing, clock_monotonic_ns() - began_ns);
    if (status != STATUS_OK || done)
        end(clear, status, &err);
}

void writer_clear_cancel(struct writer_clear *clear)
{
    struct error err = {0};
    if (clear->job)
        end(clear, error_set(&err, STATUS_CANCELLED, "the collector ended before all was cleared"),
            &err);
}
