#include "common/store/clear.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/filter.h"
#include "common/store/lock.h"
#include "common/store/schema.h"
#include "common/store/store.h"

static enum status run_filtered(sqlite3 *db, sqlite3_str *sql, const struct query_filter *filter,
                                struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = filter_prepare(db, &stmt, sql, filter, err);
    if (status == STATUS_OK)
        status = database_run(db, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status clear_kind(sqlite3 *db, enum record_kind kind, const struct query_filter *filter,
                              uint64_t *cleared, struct error *err)
{
    const char *table = record_kind_info(kind)->name;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "WITH gone AS (SELECT t.run AS run, count(*) AS n FROM \"%w\" t",
                        table);
    filter_where(sql, kind, filter);
    sqlite3_str_appendf(sql,
                        " GROUP BY t.run) UPDATE ledger SET cleared = cleared +"
                        " (SELECT n FROM gone WHERE gone.run = ledger.run)"
                        " WHERE kind = %d AND run IN (SELECT run FROM gone)",
                        (int)kind);
    enum status status = run_filtered(db, sql, filter, err);
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "DELETE FROM \"%w\" AS t", table);
    filter_where(sql, kind, filter);
    status = run_filtered(db, sql, filter, err);
    *cleared += (uint64_t)sqlite3_changes64(db);
    return status;
}

// Kinds from the last to the first: stages know their model by their load, so
// they go before it.
static enum status clear_kinds(sqlite3 *db, const struct query_filter *filter, uint64_t *cleared,
                               struct error *err)
{
    enum status status = STATUS_OK;
    for (int kind = RECORD_KIND_COUNT - 1; kind > RECORD_KIND_RUN && status == STATUS_OK; kind--) {
        enum query_dimension missing;
        if (filter_applies((enum record_kind)kind, filter, &missing))
            status = clear_kind(db, (enum record_kind)kind, filter, cleared, err);
    }
    return status;
}

enum status clear_rows(sqlite3 *db, const struct query_filter *filter, uint64_t *cleared,
                       struct error *err)
{
    *cleared = 0;
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    status = clear_kinds(db, filter, cleared, err);
    if (status == STATUS_OK)
        status = database_exec(db, "COMMIT", err);
    if (status != STATUS_OK) {
        database_rollback(db);
        return status;
    }
    return database_exec(db, "PRAGMA incremental_vacuum", err);
}

enum status store_clear(const char *path, const struct query_filter *filter, uint64_t *cleared,
                        struct error *err)
{
    const struct query query = {.kind = QUERY_CLEAR, .filter = *filter};
    enum status status = query_check(&query, err);
    if (status != STATUS_OK)
        return status;
    // Looks before it locks: no lock file beside what is no store.
    struct store *store = NULL;
    status = store_open(&store, path, err);
    store_close(store);
    if (status != STATUS_OK)
        return status;
    struct lock lock = LOCK_NONE;
    sqlite3 *db = NULL;
    status = lock_take_store(&lock, path, err);
    if (status == STATUS_OK)
        status = database_open_writer(&db, path, err);
    if (status == STATUS_OK)
        status = clear_rows(db, filter, cleared, err);
    database_close(db);
    lock_withdraw(&lock);
    return status;
}
