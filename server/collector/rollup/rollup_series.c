#include "server/collector/rollup/rollup_series.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

struct series_ids {
    sqlite3 *db;
    sqlite3_stmt *find, *insert;
};

enum status series_ids_new(struct series_ids **out, sqlite3 *db, struct error *err)
{
    struct series_ids *ids = calloc(1, sizeof *ids);
    if (!ids)
        return error_no_memory(err, "rollups");
    ids->db = db;
    enum status status = database_prepare(db, &ids->find,
                                          "SELECT id FROM series WHERE grouping = ? AND model = ?"
                                          " AND host = ? AND device = ? AND operation = ?",
                                          true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &ids->insert,
                                  "INSERT INTO series(grouping, model, host, device, operation)"
                                  " VALUES(?, ?, ?, ?, ?)",
                                  true, err);
    if (status != STATUS_OK) {
        series_ids_free(ids);
        return status;
    }
    *out = ids;
    return STATUS_OK;
}

void series_ids_free(struct series_ids *ids)
{
    if (!ids)
        return;
    (void)sqlite3_finalize(ids->find);
    (void)sqlite3_finalize(ids->insert);
    free(ids);
}

static void bind(sqlite3_stmt *stmt, enum rollup_grouping grouping,
                 const struct rollup_series *series)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)grouping);
    (void)sqlite3_bind_int64(stmt, 2, series->model);
    (void)sqlite3_bind_int64(stmt, 3, series->host);
    (void)sqlite3_bind_int64(stmt, 4, series->device);
    (void)sqlite3_bind_int64(stmt, 5, series->operation);
}

enum status series_ids_find(struct series_ids *ids, enum rollup_grouping grouping,
                            struct rollup_series full, int64_t *id, struct error *err)
{
    const struct rollup_series series = rollup_series_in(grouping, full);
    bind(ids->find, grouping, &series);
    const int rc = sqlite3_step(ids->find);
    if (rc == SQLITE_ROW)
        *id = sqlite3_column_int64(ids->find, 0);
    enum status status =
        rc == SQLITE_ROW || rc == SQLITE_DONE ? STATUS_OK : database_error(ids->db, "rollups", err);
    (void)sqlite3_reset(ids->find);
    if (rc != SQLITE_DONE)
        return status;
    bind(ids->insert, grouping, &series);
    status = database_run(ids->db, ids->insert, err);
    *id = sqlite3_last_insert_rowid(ids->db);
    return status;
}
