// Imports the records of the runs that import_validate.c accepted.
#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/read/filter.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/transfer/import_reading.h"
#include "common/store/read/session.h"

static enum status send_records(struct importing *importing, struct error *err)
{
    const size_t count = importing->rows.count;
    if (count == 0)
        return STATUS_OK;
    enum status status = import_send(importing, err);
    if (status == STATUS_OK)
        importing->records += (int64_t)count;
    return status;
}

enum { COLUMN_STREAM = IMPORT_FIRST_COLUMN, COLUMN_NUMBER, COLUMN_STARTED };

// Finds out whether this store has the record, or had it until it expired.
static enum status find_known(struct importing *importing, enum record_kind kind,
                              const struct coming *coming, sqlite3_stmt *row, bool *is_known,
                              struct error *err)
{
    sqlite3_stmt *here = importing->here;
    (void)sqlite3_bind_int64(here, 1, coming->to);
    (void)sqlite3_bind_int64(here, 2, sqlite3_column_int64(row, COLUMN_STREAM));
    (void)sqlite3_bind_int64(here, 3, sqlite3_column_int64(row, COLUMN_NUMBER));
    (void)sqlite3_bind_int(here, 4, (int)kind);
    (void)sqlite3_bind_int64(here, 5, sqlite3_column_int64(row, COLUMN_STARTED));
    const int rc = sqlite3_step(here);
    *is_known = rc == SQLITE_ROW;
    enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                             ? STATUS_OK
                             : database_error(importing->store->db, "store", err);
    (void)sqlite3_reset(here);
    return status;
}

// A record with an invalid value is refused and stays counted as cleared.
static enum status add_record(struct importing *importing, struct coming *coming, sqlite3_stmt *row,
                              struct error *err)
{
    const char *fault = (const char *)sqlite3_column_text(row, IMPORT_COLUMN_FAULT);
    if (fault) {
        import_note(importing, "a record", fault);
        importing->refused++;
        return STATUS_OK;
    }
    enum status status = import_add(importing, IMPORT_RECORD, coming->to, row, err);
    coming->taken += status == STATUS_OK;
    return status;
}

// Prepares the check whether this store has a record of a run that is here already, or had it
// until it expired: rollups still count expired records.  A record is known by its number
// alone, wherever the file says that it started.
static enum status prepare_here(struct importing *importing, enum record_kind kind,
                                struct error *err)
{
    sqlite3 *db = importing->store->db;
    sqlite3_str *sql = sqlite3_str_new(db);
    // What an import left that was cancelled goes first.
    sqlite3_str_appendf(
        sql,
        "CREATE TEMP TABLE IF NOT EXISTS import_here(run INTEGER, stream INTEGER,"
        " number INTEGER, PRIMARY KEY(run, stream, number)) WITHOUT ROWID;"
        "DELETE FROM import_here; INSERT INTO import_here SELECT run, stream,"
        " number FROM \"%w\" NOT INDEXED WHERE run IN (SELECT value FROM json_each('[0",
        record_kind_info(kind)->name);
    for (size_t i = 0; i < importing->run_count; i++)
        if (importing->runs[i].is_here)
            sqlite3_str_appendf(sql, ", %lld", (long long)importing->runs[i].to);
    sqlite3_str_appendall(sql, "]'))");
    struct gap_kept kept;
    enum status status = database_exec_built(db, sql, err);
    if (status == STATUS_OK)
        status = gap_read_kept(db, kind, &kept, err);
    if (status != STATUS_OK)
        return status;
    sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql,
                        "SELECT 1 FROM import_here WHERE run = ?1 AND stream = ?2 AND number = ?3"
                        " UNION ALL SELECT 1 FROM ledger WHERE kind = ?4 AND ?5 < %lld AND run = ?1"
                        " AND expired > 0",
                        (long long)kept.until_ns);
    return database_prepare_built(db, &importing->here, sql, true, err);
}

static enum status send_kind(struct importing *importing, enum record_kind kind, struct error *err)
{
    sqlite3_stmt *row = NULL;
    sqlite3_str *sql = sqlite3_str_new(importing->from->db);
    import_append_select(sql, IMPORT_RECORD, kind);
    sqlite3_str_appendall(sql, " NOT INDEXED ORDER BY t.id");
    enum status status = filter_prepare(importing->from->db, &row, sql, NULL, err);
    (void)sqlite3_finalize(importing->here);
    importing->here = NULL;
    importing->batch.kind = kind;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct coming *coming =
            import_find_run(importing, sqlite3_column_int64(row, IMPORT_COLUMN_RUN));
        if (!coming || coming->to == 0)
            continue;
        if (coming->is_here && !importing->here)
            status = prepare_here(importing, kind, err);
        bool is_known = false;
        if (status == STATUS_OK && coming->is_here)
            status = find_known(importing, kind, coming, row, &is_known, err);
        if (status == STATUS_OK && !is_known)
            status = add_record(importing, coming, row, err);
        if (status == STATUS_OK && importing->rows.count == IMPORT_ROWS_MAX)
            status = send_records(importing, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_finalize(row);
    return status == STATUS_OK ? send_records(importing, err) : status;
}

// In the order of the kinds: stages find their model by their load.
enum status import_send_records(struct importing *importing, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = send_kind(importing, (enum record_kind)kind, err);
    return status;
}
