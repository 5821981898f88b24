// The queries that change baselines: what they answer, and all of them on a file.
#include <sqlite3.h>

#include "common/store/compare/baseline.h"
#include "common/store/sqlite/admin_log.h"
#include "common/store/sqlite/database.h"
#include "common/store/sqlite/lock.h"
#include "common/store/schema/database_open.h"
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

// Reads what is to be kept with a connection of its own, which also finds out whether
// the file is a store before a lock is put beside it.
static enum status read_file(struct baseline **out, const char *path, const struct query *query,
                             struct error *err)
{
    struct store *store = NULL;
    enum status status = store_open(&store, path, err);
    if (status == STATUS_OK && query->kind == QUERY_BASELINE_SAVE)
        status = baseline_prepare(out, store, query, err);
    store_close(store);
    return status;
}

enum status baseline_write_file(const char *path, const struct query *query, struct result **out,
                                struct error *err)
{
    struct baseline *baseline = NULL;
    struct lock lock = LOCK_NONE;
    struct admin_act act = {.action = NULL};
    sqlite3 *db = NULL;
    enum status status = query_check(query, err);
    if (status == STATUS_OK)
        status = read_file(&baseline, path, query, err);
    if (status == STATUS_OK)
        status = lock_acquire_store(&lock, path, err);
    if (status == STATUS_OK)
        status = database_open_writer(&db, path, err);
    if (status == STATUS_OK)
        status = baseline_write(db, query, baseline, out, err);
    if (db) {
        admin_act_of_query(&act, query);
        admin_log_add_own(db, &act, status, err, status == STATUS_OK);
    }
    database_close(db);
    lock_withdraw(&lock);
    baseline_free(baseline);
    return status;
}
