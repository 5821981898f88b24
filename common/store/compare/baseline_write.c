// The queries that change baselines: what they answer, and all of them on a file.
#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/database.h"
#include "common/store/read/answer_cells.h"
#include "common/store/read/session.h"

static enum status answer_saved(struct result **out, const struct baseline *baseline,
                                struct error *err)
{
    static const struct answer_column columns[] = {
        {"baseline", UNIT_NONE},   {"values", UNIT_COUNT},  {"runs", UNIT_COUNT},
        {"since_ns", UNIT_TIME},   {"until_ns", UNIT_TIME}, {"coverage_ratio", UNIT_RATIO},
        {"expired_ns", UNIT_TIME}, // records before are gone; null: none
    };
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    answer_row(*out);
    answer_text(*out, "baseline", baseline->name);
    size_t values = 0;
    for (size_t i = 0; i < samples_count(&baseline->samples); i++)
        for (unsigned place = 0; place < SAMPLED_MAX; place++)
            values += samples_at(&baseline->samples, i)->samples[place].kept;
    answer_int(*out, "values", (int64_t)values);
    answer_int(*out, "runs", baseline->environment.runs);
    answer_int(*out, "since_ns", baseline->since_ns);
    answer_int(*out, "until_ns", baseline->until_ns);
    answer_real(*out, "coverage_ratio", baseline->coverage_ratio);
    if (baseline_expired_ns(baseline))
        answer_int(*out, "expired_ns", baseline_expired_ns(baseline));
    return answer_check(*out, err);
}

static enum status answer_deleted(struct result **out, const char *name, struct error *err)
{
    static const struct answer_column columns[] = {{"baseline", UNIT_NONE},
                                                   {"deleted", UNIT_COUNT}};
    enum status status = answer_new(out, columns, sizeof columns / sizeof *columns, err);
    if (status != STATUS_OK)
        return status;
    answer_row(*out);
    answer_text(*out, "baseline", name);
    answer_int(*out, "deleted", 1);
    return answer_check(*out, err);
}

enum status baseline_write(struct sqlite3 *db, const struct query *query,
                           const struct baseline *baseline, struct result **out, struct error *err)
{
    const bool saves = query->kind == QUERY_BASELINE_SAVE;
    struct result *answer = NULL;
    // What can fail comes before what cannot be taken back.
    enum status status = saves ? answer_saved(&answer, baseline, err)
                               : answer_deleted(&answer, query->baseline.name, err);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK) {
        status = saves ? baseline_insert(db, baseline, query->baseline.force, err)
                       : baseline_delete(db, query->baseline.name, err);
        status = database_end(db, status, err);
    }
    if (status != STATUS_OK) {
        result_free(answer);
        return status;
    }
    *out = answer;
    return STATUS_OK;
}

struct change {
    const struct query *query;
    struct result **out;
};

static enum status change_file(void *context, struct store *store, struct sqlite3 *db,
                               int64_t *rows, struct error *err)
{
    const struct change *change = context;
    struct baseline *baseline = NULL;
    enum status status = change->query->kind == QUERY_BASELINE_SAVE
                             ? baseline_prepare(&baseline, store, change->query, err)
                             : STATUS_OK;
    if (status == STATUS_OK)
        status = baseline_write(db, change->query, baseline, change->out, err);
    *rows = status == STATUS_OK;
    baseline_free(baseline);
    return status;
}

enum status baseline_write_file(const char *path, const struct query *query, struct result **out,
                                struct error *err)
{
    return session_change_file(path, query, change_file, &(struct change){query, out}, err);
}
