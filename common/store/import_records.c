// Records of a file on their way into this store.
#include <stdio.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/fingerprint.h"
#include "common/store/import_reading.h"
#include "common/store/reader.h"

static enum status send_records(struct importing *importing, enum record_kind kind,
                                struct error *err)
{
    struct import_piece *piece = &importing->piece;
    if (piece->records.count == 0)
        return STATUS_OK;
    piece->kind = kind;
    enum status status = importing->sink->apply(importing->sink->context, piece, err);
    if (status == STATUS_OK)
        importing->records += (int64_t)piece->records.count;
    import_piece_clear(piece);
    return status;
}

// Whether this store has the record, or had it until it expired: its rollups count that
// still, and would count it again.
static bool is_known(struct importing *importing, enum record_kind kind,
                     const struct coming *coming, sqlite3_stmt *row)
{
    (void)sqlite3_bind_int64(importing->here, 1, coming->to);
    (void)sqlite3_bind_int64(importing->here, 2, sqlite3_column_int64(row, 1));
    (void)sqlite3_bind_int64(importing->here, 3, sqlite3_column_int64(row, 2));
    (void)sqlite3_bind_int(importing->here, 4, (int)kind);
    (void)sqlite3_bind_int64(importing->here, 5, sqlite3_column_int64(row, 3));
    const bool is = sqlite3_step(importing->here) == SQLITE_ROW;
    (void)sqlite3_reset(importing->here);
    return is;
}

// A record that cannot be stays out, and is a cleared one.
static enum status take_record(struct importing *importing, enum record_kind kind,
                               struct coming *coming, sqlite3_stmt *row, struct error *err)
{
    struct import_piece *piece = &importing->piece;
    struct import_rows *rows = &piece->records;
    const size_t values = piece->value_count, bytes = piece->byte_count;
    enum status status = import_begin_row(piece, rows, coming->to, err);
    if (status != STATUS_OK)
        return status;
    rows->list[rows->count - 1].mix =
        fingerprint_of(sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2));
    status = import_take_ints(importing, rows, row, 1, 4, INT64_MIN, INT64_MAX, err);
    if (status == STATUS_OK)
        status = import_take_columns(piece, rows, kind, row, 5, &importing->names, err);
    coming->taken += status == STATUS_OK;
    if (status != STATUS_INVALID)
        return status;
    import_note(importing, "a record", err->text);
    importing->refused++;
    rows->count--;
    piece->value_count = values;
    piece->byte_count = bytes;
    return STATUS_OK;
}

static enum status ask_bound(sqlite3 *db, enum record_kind kind, bool is_last, int64_t *out,
                             struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "SELECT %s(started_ns) FROM main.\"%w\"", is_last ? "max" : "min",
                        record_kind_info(kind)->name);
    char *text = sqlite3_str_finish(sql);
    enum status status = text ? database_integer(db, text, out, err)
                              : error_set(err, STATUS_NOMEM, "store: out of memory");
    sqlite3_free(text);
    return status;
}

// Those of the kind that are here, of the runs that are, in the time that the file's
// are of.
static enum status look_here(struct importing *importing, enum record_kind kind, struct error *err)
{
    if (!importing->any_here)
        return STATUS_OK;
    int64_t first = 0, last = 0;
    enum status status = ask_bound(importing->from->db, kind, false, &first, err);
    if (status == STATUS_OK)
        status = ask_bound(importing->from->db, kind, true, &last, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(importing->store->db);
    sqlite3_str_appendf(sql,
                        "DELETE FROM temp.here;INSERT INTO temp.here SELECT t.run, t.stream,"
                        " t.number FROM main.\"%w\" t WHERE t.started_ns BETWEEN %lld AND %lld"
                        " AND t.run IN (SELECT run FROM temp.coming)",
                        record_kind_info(kind)->name, (long long)first, (long long)last);
    return database_exec_built(importing->store->db, sql, err);
}

static enum status list_here(struct importing *importing, struct error *err)
{
    if (!importing->any_here)
        return STATUS_OK;
    enum status status =
        database_exec(importing->store->db,
                      "CREATE TEMP TABLE coming(run INTEGER PRIMARY KEY);"
                      "CREATE TEMP TABLE here(run INTEGER NOT NULL, stream INTEGER NOT NULL,"
                      " number INTEGER NOT NULL, PRIMARY KEY(run, stream, number)) WITHOUT ROWID",
                      err);
    for (size_t i = 0; i < importing->run_count && status == STATUS_OK; i++) {
        char sql[96];
        if (!importing->runs[i].is_here)
            continue;
        (void)snprintf(sql, sizeof sql, "INSERT INTO temp.coming VALUES(%lld)",
                       (long long)importing->runs[i].to);
        status = database_exec(importing->store->db, sql, err);
    }
    if (status == STATUS_OK)
        status = database_prepare(
            importing->store->db, &importing->here,
            "SELECT 1 FROM temp.here WHERE run = ?1 AND stream = ?2 AND number = ?3"
            " UNION ALL SELECT 1 FROM main.expiry e JOIN main.ledger l ON l.kind = e.kind"
            " WHERE e.kind = ?4 AND e.until_ns > ?5 AND l.run = ?1 AND l.expired > 0",
            true, err);
    return status;
}

static char *records_sql(enum record_kind kind)
{
    const struct record_kind_info *info = record_kind_info(kind);
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendall(sql, "SELECT run, stream, number, started_ns, received_ns");
    for (unsigned i = 0; i < info->column_count; i++)
        sqlite3_str_appendf(sql, ", \"%w\"", info->columns[i].name);
    sqlite3_str_appendf(sql, " FROM main.\"%w\" NOT INDEXED ORDER BY id", info->name);
    return sqlite3_str_finish(sql);
}

static enum status send_kind(struct importing *importing, enum record_kind kind, struct error *err)
{
    char *sql = records_sql(kind);
    sqlite3_stmt *row = NULL;
    enum status status = sql ? database_prepare(importing->from->db, &row, sql, false, err)
                             : error_set(err, STATUS_NOMEM, "store: out of memory");
    sqlite3_free(sql);
    if (status == STATUS_OK)
        status = look_here(importing, kind, err);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct coming *coming = import_find_run(importing, sqlite3_column_int64(row, 0));
        if (!coming || coming->to == 0 ||
            (coming->is_here && is_known(importing, kind, coming, row)))
            continue;
        status = take_record(importing, kind, coming, row, err);
        if (status == STATUS_OK && importing->piece.records.count == IMPORT_ROWS_MAX)
            status = send_records(importing, kind, err);
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(importing->from->db, "store", err);
    (void)sqlite3_finalize(row);
    return status == STATUS_OK ? send_records(importing, kind, err) : status;
}

// Stages know their model by their load: so loads come first, as the kinds are.
enum status import_send_records(struct importing *importing, struct error *err)
{
    enum status status = list_here(importing, err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = send_kind(importing, (enum record_kind)kind, err);
    return status;
}
