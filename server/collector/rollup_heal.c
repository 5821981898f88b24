#include "server/collector/rollup_heal.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/sys/log.h"

// Rows looked at in one step.
enum { ROWS = 512 };

enum status rollup_heal_span(sqlite3 *db, enum record_kind kind, const struct gap_span *span,
                             struct error *err)
{
    const int64_t last_hour = rollup_bucket(ROLLUP_HOUR, span->until_ns - 1);
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_add(db,
                         &(struct gap){.kind = kind,
                                       .grouping = (enum rollup_grouping)g,
                                       .level = ROLLUP_MONTH,
                                       .since_ns = rollup_bucket(ROLLUP_HOUR, span->since_ns),
                                       .until_ns = rollup_next(ROLLUP_HOUR, last_hour),
                                       .why = ROLLUP_CLEARED},
                         err);
    return status;
}

static enum status delete_row(sqlite3 *db, const struct cell_key *key, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(db, &stmt,
                         "DELETE FROM rollup WHERE metric = ? AND grouping = ? AND level = ?"
                         " AND started_ns = ? AND series = ?",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int(stmt, 1, key->metric);
    (void)sqlite3_bind_int(stmt, 2, (int)key->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)key->level);
    (void)sqlite3_bind_int64(stmt, 4, key->started_ns);
    (void)sqlite3_bind_int64(stmt, 5, key->series);
    status = database_run(db, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status give_up(struct rollup_patient *patient, const struct cell_key *key,
                           struct error *err)
{
    if (!patient->told)
        log_write(
            LOG_LEVEL_WARNING,
            "rollups: a damaged row of a %s is given up: its records have expired (the store's"
            " disk may be failing)",
            rollup_level_name(key->level));
    patient->told = true;
    enum status status = delete_row(patient->db, key, err);
    if (status != STATUS_OK)
        return status;
    return gap_add(patient->db,
                   &(struct gap){.kind = patient->kind,
                                 .grouping = key->grouping,
                                 .level = key->level,
                                 .since_ns = key->started_ns,
                                 .until_ns = rollup_next(key->level, key->started_ns),
                                 .why = ROLLUP_OLD},
                   err);
}

enum status rollup_heal_row(struct rollup_patient *patient, const struct cell_key *key,
                            struct error *err)
{
    if (key->started_ns < patient->expired_ns)
        return give_up(patient, key, err);
    return rollup_heal_span(
        patient->db, patient->kind,
        &(struct gap_span){key->started_ns, rollup_next(key->level, key->started_ns)}, err);
}

static enum status look_at(struct rollup_patient *patient, sqlite3_stmt *row,
                           const struct cell_key *key, struct error *err)
{
    struct ratio cell = {0};
    if (aggregate_want_quantiles(&cell.values, NULL) != STATUS_OK)
        return error_set(err, STATUS_NOMEM, "rollups: out of memory");
    enum status status = cell_add(&cell, key, row, 2, err);
    aggregate_deinit(&cell.values);
    return status == STATUS_CORRUPT ? give_up(patient, key, err) : status;
}

enum status rollup_heal_some(struct rollup_patient *patient, struct cell_key *key,
                             const struct gap_span *span, bool *left, struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        patient->db, &row,
        "SELECT started_ns, series, " CELL_COLUMNS " FROM rollup WHERE metric = ? AND grouping = ?"
        " AND level = ? AND (started_ns, series) > (?, ?) AND started_ns < ? LIMIT ?",
        false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int(row, 1, key->metric);
    (void)sqlite3_bind_int(row, 2, (int)key->grouping);
    (void)sqlite3_bind_int(row, 3, (int)key->level);
    (void)sqlite3_bind_int64(row, 4, key->started_ns);
    (void)sqlite3_bind_int64(row, 5, key->series);
    (void)sqlite3_bind_int64(row, 6, span->until_ns);
    (void)sqlite3_bind_int(row, 7, ROWS);
    unsigned count = 0;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        key->started_ns = sqlite3_column_int64(row, 0);
        key->series = sqlite3_column_int64(row, 1);
        status = look_at(patient, row, key, err);
        count++;
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(patient->db, "rollups", err);
    (void)sqlite3_finalize(row);
    *left = count == ROWS;
    return status;
}
