#include "server/collector/writer/writer_baseline.h"

#include "common/store/compare/baseline.h"
#include "common/sys/log.h"
#include "server/collector/threads/reply.h"

static void note(const struct query *query, enum status status, const struct error *err)
{
    const bool saves = query->kind == QUERY_BASELINE_SAVE;
    if (status == STATUS_OK)
        log_write(LOG_LEVEL_INFO, "the baseline %.63s was %s", query->baseline.name,
                  saves ? "saved" : "deleted");
    else if (status != STATUS_INVALID && status != STATUS_NO_DATA && status != STATUS_BUSY)
        log_write(LOG_LEVEL_ERROR, "cannot %s the baseline %.63s: %s", saves ? "save" : "delete",
                  query->baseline.name, err->text);
}

void writer_baseline(struct sqlite3 *db, const struct job *job, struct queue *replies)
{
    struct error err = {.text = "failed"};
    struct result *result = NULL;
    enum status status = baseline_write(db, job->query, job->baseline, &result, &err);
    note(job->query, status, &err);
    answer_submit(replies, reply_encode(&job->from, job->query_id, status, result, &err));
    result_free(result);
}
