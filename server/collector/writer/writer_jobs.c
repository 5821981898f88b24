#include "server/collector/writer/writer_jobs.h"

#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/rollup/rollup.h"
#include "common/store/sqlite/database.h"
#include "common/store/transfer/import.h"
#include "common/sys/log.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/threads/job.h"

// ---- Baselines --------------------------------------------------------------------------

void writer_baseline(sqlite3 *db, struct job *job, struct queue *replies)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    enum status status = baseline_write(db, job->query, job->baseline, &result, &err);
    admin_act_end(&job->act, status, &err, status == STATUS_OK);
    admin_log_add(db, &job->act);
    answer_submit(replies, reply_encode(&job->from, job->query_id, status, result, &err));
    result_free(result);
}

// ---- Imports ----------------------------------------------------------------------------

// Import and inserter both assign ids: each continues after the other's last.
void writer_import(sqlite3 *db, struct inserter *inserter, struct runs *runs,
                   struct rollups *rollups, struct import_request *request)
{
    struct error err = {.text = "writer: failed"}, refresh_err;
    struct import_batch *batch = request->batch;
    enum status status = import_apply(db, batch, inserter_last_id(inserter, batch->kind), &err);
    if (status == STATUS_OK) {
        if (runs_refresh_ids(runs, &refresh_err) != STATUS_OK ||
            inserter_reset(inserter, &refresh_err) != STATUS_OK)
            log_write(LOG_LEVEL_WARNING, "%s", refresh_err.text);
        if (rollups && rollup_has_kind(batch->kind))
            rollups_rows_added(rollups, batch->kind);
    }
    import_request_done(request, status, &err);
}

// ---- Refusals ---------------------------------------------------------------------------

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
