#include "server/collector/rollup/rollup_series.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"

// What was asked for last is kept: a table of places, each for whatever came to it last.
enum { PLACES = 4096 };

struct known {
    struct rollup_series series;
    enum rollup_grouping grouping;
    int64_t id; // 0: none
};

struct series_ids {
    sqlite3 *db;
    sqlite3_stmt *find, *insert;
    struct known places[PLACES];
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

void series_ids_forget(struct series_ids *ids)
{
    for (size_t i = 0; i < PLACES; i++)
        ids->places[i].id = 0;
}

static struct known *place_of(struct series_ids *ids, enum rollup_grouping grouping,
                              const struct rollup_series *series)
{
    const int64_t names[] = {(int64_t)grouping, series->model, series->host, series->device,
                             series->operation};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hash = (hash ^ (uint64_t)names[i]) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 33; // as the finaliser of MurmurHash3
    }
    return &ids->places[hash % PLACES];
}

static void bind(sqlite3_stmt *stmt, const struct known *known)
{
    (void)sqlite3_bind_int64(stmt, 1, (int64_t)known->grouping);
    (void)sqlite3_bind_int64(stmt, 2, known->series.model);
    (void)sqlite3_bind_int64(stmt, 3, known->series.host);
    (void)sqlite3_bind_int64(stmt, 4, known->series.device);
    (void)sqlite3_bind_int64(stmt, 5, known->series.operation);
}

static enum status look_up(struct series_ids *ids, struct known *wanted, struct error *err)
{
    bind(ids->find, wanted);
    const int rc = sqlite3_step(ids->find);
    if (rc == SQLITE_ROW)
        wanted->id = sqlite3_column_int64(ids->find, 0);
    enum status status =
        rc == SQLITE_ROW || rc == SQLITE_DONE ? STATUS_OK : database_error(ids->db, "rollups", err);
    (void)sqlite3_reset(ids->find);
    if (status != STATUS_OK || wanted->id != 0)
        return status;
    bind(ids->insert, wanted);
    status = database_run(ids->db, ids->insert, err);
    if (status == STATUS_OK)
        wanted->id = sqlite3_last_insert_rowid(ids->db);
    return status;
}

enum status series_ids_find(struct series_ids *ids, enum rollup_grouping grouping,
                            struct rollup_series full, int64_t *id, struct error *err)
{
    struct known wanted = {.series = rollup_series_in(grouping, full), .grouping = grouping};
    struct known *known = place_of(ids, grouping, &wanted.series);
    if (known->id != 0 && known->grouping == grouping &&
        known->series.model == wanted.series.model && known->series.host == wanted.series.host &&
        known->series.device == wanted.series.device &&
        known->series.operation == wanted.series.operation) {
        *id = known->id;
        return STATUS_OK;
    }
    enum status status = look_up(ids, &wanted, err);
    if (status != STATUS_OK)
        return status;
    *known = wanted;
    *id = wanted.id;
    return STATUS_OK;
}
