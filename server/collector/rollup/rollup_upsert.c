#include "server/collector/rollup/rollup_upsert.h"

#include <stdio.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/database.h"

struct rollup_upsert {
    sqlite3 *db;
    sqlite3_stmt *newest, *find, *insert, *update;
    struct ratio cell; // the row at work
    // The latest buckets there were: rows behind them are new, and not looked for.
    int64_t last_ns[ROLLUP_LEVEL_COUNT];
    bool has_last[ROLLUP_LEVEL_COUNT];
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

static enum status prepare(struct rollup_upsert *rows, struct error *err)
{
    static const char key[] =
        " WHERE metric = ?1 AND grouping = ?2 AND level = ?3 AND started_ns = ?4 AND series = ?5";
    char find[256], update[512];
    (void)snprintf(find, sizeof find, "SELECT " CELL_COLUMNS " FROM rollup%s", key);
    (void)snprintf(update, sizeof update,
                   "UPDATE rollup SET (" CELL_COLUMNS ") = (?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)%s",
                   key);
    enum status status = database_prepare(rows->db, &rows->newest,
                                          "SELECT max(started_ns) FROM rollup WHERE metric = ?"
                                          " AND grouping = ? AND level = ?",
                                          true, err);
    if (status == STATUS_OK)
        status = database_prepare(rows->db, &rows->find, find, true, err);
    if (status == STATUS_OK)
        status =
            database_prepare(rows->db, &rows->insert,
                             "INSERT INTO rollup(metric, grouping, level, started_ns, series,"
                             " " CELL_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             true, err);
    if (status == STATUS_OK)
        status = database_prepare(rows->db, &rows->update, update, true, err);
    return status;
}

enum status rollup_upsert_new(struct rollup_upsert **out, sqlite3 *db, struct error *err)
{
    struct rollup_upsert *rows = calloc(1, sizeof *rows);
    if (!rows)
        return out_of_memory(err);
    rows->db = db;
    enum status status = STATUS_OK;
    if (aggregate_want_quantiles(&rows->cell.values, NULL) != STATUS_OK)
        status = out_of_memory(err);
    if (status == STATUS_OK)
        status = prepare(rows, err);
    if (status != STATUS_OK) {
        rollup_upsert_free(rows);
        return status;
    }
    *out = rows;
    return STATUS_OK;
}

void rollup_upsert_free(struct rollup_upsert *rows)
{
    if (!rows)
        return;
    (void)sqlite3_finalize(rows->newest);
    (void)sqlite3_finalize(rows->find);
    (void)sqlite3_finalize(rows->insert);
    (void)sqlite3_finalize(rows->update);
    aggregate_deinit(&rows->cell.values);
    free(rows);
}

enum status rollup_upsert_begin(struct rollup_upsert *rows, int metric,
                                enum rollup_grouping grouping, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned level = 0; level < ROLLUP_LEVEL_COUNT && status == STATUS_OK; level++) {
        (void)sqlite3_bind_int(rows->newest, 1, metric);
        (void)sqlite3_bind_int(rows->newest, 2, (int)grouping);
        (void)sqlite3_bind_int(rows->newest, 3, (int)level);
        if (sqlite3_step(rows->newest) == SQLITE_ROW) {
            rows->has_last[level] = sqlite3_column_type(rows->newest, 0) != SQLITE_NULL;
            rows->last_ns[level] = sqlite3_column_int64(rows->newest, 0);
        } else {
            status = database_error(rows->db, "rollups", err);
        }
        (void)sqlite3_reset(rows->newest);
    }
    return status;
}

static void bind_key(sqlite3_stmt *stmt, const struct cell_key *key)
{
    (void)sqlite3_bind_int(stmt, 1, key->metric);
    (void)sqlite3_bind_int(stmt, 2, (int)key->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)key->level);
    (void)sqlite3_bind_int64(stmt, 4, key->started_ns);
    (void)sqlite3_bind_int64(stmt, 5, key->series);
}

// Adds what the row has already to the cell at work.
static enum status read_row(struct rollup_upsert *rows, const struct cell_key *key, bool *found,
                            struct error *err)
{
    *found = false;
    if (!rows->has_last[key->level] || key->started_ns > rows->last_ns[key->level])
        return STATUS_OK;
    bind_key(rows->find, key);
    const int rc = sqlite3_step(rows->find);
    *found = rc == SQLITE_ROW;
    enum status status = STATUS_OK;
    if (*found)
        status = cell_add(&rows->cell, key, rows->find, 0, err);
    else if (rc != SQLITE_DONE)
        status = database_error(rows->db, "rollups", err);
    (void)sqlite3_reset(rows->find);
    return status;
}

enum status rollup_upsert_add(struct rollup_upsert *rows, const struct cell_key *key,
                              const struct accumulator *tally, const struct accumulator_pool *pool,
                              enum rollup_source source, struct error *err)
{
    bool found = false;
    accumulator_to_ratio(tally, pool, source != ROLLUP_INTEGERS, &rows->cell);
    enum status status = read_row(rows, key, &found, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *stmt = found ? rows->update : rows->insert;
    bind_key(stmt, key);
    status = cell_bind(stmt, 6, key, &rows->cell, source == ROLLUP_RATIOS, err);
    return status == STATUS_OK ? database_run(rows->db, stmt, err) : status;
}
