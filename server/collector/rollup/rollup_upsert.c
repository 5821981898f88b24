#include "server/collector/rollup/rollup_upsert.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

struct rollup_upsert {
    sqlite3 *db;
    sqlite3_stmt *newest, *find, *insert, *update, *find_series, *insert_series;
    struct ratio cell; // the current row
    // The latest buckets there were: rows behind them are new, and not looked for.
    int64_t last_ns[ROLLUP_LEVEL_COUNT];
    bool has_last[ROLLUP_LEVEL_COUNT];
};

static enum status prepare(struct rollup_upsert *upsert, struct error *err)
{
    static const char key[] =
        " WHERE metric = ?1 AND grouping = ?2 AND level = ?3 AND started_ns = ?4 AND series = ?5";
    char find[256], update[512];
    (void)snprintf(find, sizeof find, "SELECT " ROLLUP_ROW_COLUMNS " FROM rollup%s", key);
    (void)snprintf(
        update, sizeof update,
        "UPDATE rollup SET (" ROLLUP_ROW_COLUMNS ") = (?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)%s", key);
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } all[] = {
        {&upsert->newest, "SELECT max(started_ns) FROM rollup WHERE metric = ? AND grouping = ?"
                          " AND level = ?"},
        {&upsert->find, find},
        {&upsert->insert, "INSERT INTO rollup(metric, grouping, level, started_ns, series,"
                          " " ROLLUP_ROW_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
        {&upsert->update, update},
        {&upsert->find_series, "SELECT id FROM series WHERE grouping = ? AND model = ?"
                               " AND host = ? AND device = ? AND operation = ?"},
        {&upsert->insert_series, "INSERT INTO series(grouping, model, host, device, operation)"
                                 " VALUES(?, ?, ?, ?, ?)"},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == STATUS_OK; i++)
        status = database_prepare(upsert->db, all[i].stmt, all[i].sql, true, err);
    return status;
}

enum status rollup_upsert_new(struct rollup_upsert **out, sqlite3 *db, struct error *err)
{
    struct rollup_upsert *upsert = calloc(1, sizeof *upsert);
    if (!upsert)
        return error_no_memory(err, "rollups");
    upsert->db = db;
    enum status status = STATUS_OK;
    if (aggregate_want_quantiles(&upsert->cell.values, NULL) != STATUS_OK)
        status = error_no_memory(err, "rollups");
    if (status == STATUS_OK)
        status = prepare(upsert, err);
    if (status != STATUS_OK) {
        rollup_upsert_free(upsert);
        return status;
    }
    *out = upsert;
    return STATUS_OK;
}

void rollup_upsert_free(struct rollup_upsert *upsert)
{
    if (!upsert)
        return;
    (void)sqlite3_finalize(upsert->newest);
    (void)sqlite3_finalize(upsert->find);
    (void)sqlite3_finalize(upsert->insert);
    (void)sqlite3_finalize(upsert->update);
    (void)sqlite3_finalize(upsert->find_series);
    (void)sqlite3_finalize(upsert->insert_series);
    aggregate_deinit(&upsert->cell.values);
    free(upsert);
}

static void bind_series(sqlite3_stmt *stmt, enum rollup_grouping grouping,
                        const struct rollup_series *series)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)grouping);
    (void)sqlite3_bind_int64(stmt, 2, series->model);
    (void)sqlite3_bind_int64(stmt, 3, series->host);
    (void)sqlite3_bind_int64(stmt, 4, series->device);
    (void)sqlite3_bind_int64(stmt, 5, series->operation);
}

enum status rollup_upsert_series(struct rollup_upsert *upsert, enum rollup_grouping grouping,
                                 struct rollup_series full, int64_t *id, struct error *err)
{
    const struct rollup_series series = rollup_series_in(grouping, full);
    bind_series(upsert->find_series, grouping, &series);
    const int rc = sqlite3_step(upsert->find_series);
    if (rc == SQLITE_ROW)
        *id = sqlite3_column_int64(upsert->find_series, 0);
    enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                             ? STATUS_OK
                             : database_error(upsert->db, "rollups", err);
    (void)sqlite3_reset(upsert->find_series);
    if (rc != SQLITE_DONE)
        return status;
    bind_series(upsert->insert_series, grouping, &series);
    status = database_run(upsert->db, upsert->insert_series, err);
    *id = sqlite3_last_insert_rowid(upsert->db);
    return status;
}

enum status rollup_upsert_begin(struct rollup_upsert *upsert, int metric,
                                enum rollup_grouping grouping, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++) {
        (void)sqlite3_bind_int(upsert->newest, 1, metric);
        (void)sqlite3_bind_int(upsert->newest, 2, (int)grouping);
        (void)sqlite3_bind_int(upsert->newest, 3, (int)level);
        if (sqlite3_step(upsert->newest) == SQLITE_ROW) {
            upsert->has_last[level] = sqlite3_column_type(upsert->newest, 0) != SQLITE_NULL;
            upsert->last_ns[level] = sqlite3_column_int64(upsert->newest, 0);
        } else {
            status = database_error(upsert->db, "rollups", err);
        }
        (void)sqlite3_reset(upsert->newest);
    }
    return status;
}

static void bind_key(sqlite3_stmt *stmt, const struct rollup_row_key *key)
{
    (void)sqlite3_bind_int(stmt, 1, key->metric);
    (void)sqlite3_bind_int(stmt, 2, (int)key->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)key->level);
    (void)sqlite3_bind_int64(stmt, 4, key->started_ns);
    (void)sqlite3_bind_int64(stmt, 5, key->series);
}

// Adds the existing row to the current cell.
static enum status read_row(struct rollup_upsert *upsert, const struct rollup_row_key *key,
                            bool *found, struct error *err)
{
    *found = false;
    if (!upsert->has_last[key->level] || key->started_ns > upsert->last_ns[key->level])
        return STATUS_OK;
    bind_key(upsert->find, key);
    const int rc = sqlite3_step(upsert->find);
    *found = rc == SQLITE_ROW;
    enum status status = STATUS_OK;
    if (*found)
        status = rollup_row_add(&upsert->cell, key, upsert->find, 0, err);
    else if (rc != SQLITE_DONE)
        status = database_error(upsert->db, "rollups", err);
    (void)sqlite3_reset(upsert->find);
    return status;
}

enum status rollup_upsert_add(struct rollup_upsert *upsert, const struct rollup_row_key *key,
                              const struct accumulator *accumulator,
                              const struct accumulator_pool *pool, enum rollup_source source,
                              struct error *err)
{
    bool found = false;
    accumulator_to_ratio(accumulator, pool, &upsert->cell);
    enum status status = read_row(upsert, key, &found, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *stmt = found ? upsert->update : upsert->insert;
    bind_key(stmt, key);
    status = rollup_row_bind(stmt, 6, key, &upsert->cell, source == ROLLUP_RATIOS, err);
    return status == STATUS_OK ? database_run(upsert->db, stmt, err) : status;
}
