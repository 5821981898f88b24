// Imports runs and their records: decides by their audit which runs of a file are imported, sends
// the new ones with their streams, ranges, ledgers and names, then the records, kind by kind.
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/transfer/import_reading.h"
#include "common/core/base/array.h"
#include "common/core/base/text.h"
#include "common/store/audit/audit.h"
#include "common/store/read/session.h"
#include "common/core/delivery/delivery.h"
#include "common/store/read/filter.h"
#include "common/store/rollup/gap_table.h"

// ---- Batches ----------------------------------------------------------------------------

static enum status open_rows(struct import_rows *rows, enum record_kind kind, struct error *err)
{
    if (rows->db)
        return STATUS_OK;
    if (sqlite3_open_v2(":memory:", &rows->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        return database_error(rows->db, "store", err);
    sqlite3_str *sql = sqlite3_str_new(rows->db);
    for (unsigned i = 0; i < IMPORT_TABLES; i++)
        if ((i == IMPORT_RECORD) == (kind != RECORD_KIND_RUN))
            import_append_create(sql, (enum import_table)i, kind);
    return database_exec_built(rows->db, sql, err);
}

void import_rows_close(struct import_rows *rows)
{
    for (unsigned i = 0; i < IMPORT_TABLES; i++)
        (void)sqlite3_finalize(rows->insert[i]);
    (void)sqlite3_close_v2(rows->db);
    *rows = (struct import_rows){0};
}

static enum status prepare_insert(struct import_rows *rows, enum import_table table, int count,
                                  struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(rows->db);
    sqlite3_str_appendf(sql, "INSERT OR IGNORE INTO \"%w\" VALUES(?", import_table_name(table));
    for (int i = 1; i < count; i++)
        sqlite3_str_appendall(sql, ", ?");
    sqlite3_str_appendall(sql, ")");
    return database_prepare_built(rows->db, &rows->insert[table], sql, true, err);
}

enum status import_add(struct importing *importing, enum import_table table, int64_t run,
                       sqlite3_stmt *from, struct error *err)
{
    struct import_rows *rows = &importing->rows;
    const int count = sqlite3_column_count(from) - IMPORT_COLUMN_RUN;
    enum status status = open_rows(rows, importing->batch.kind, err);
    if (status == STATUS_OK && !rows->insert[table])
        status = prepare_insert(rows, table, count, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *insert = rows->insert[table];
    (void)sqlite3_bind_int64(insert, 1, run);
    for (int i = 1; i < count; i++)
        (void)sqlite3_bind_value(insert, i + 1, sqlite3_column_value(from, IMPORT_COLUMN_RUN + i));
    rows->count++;
    return database_run(rows->db, insert, err);
}

enum status import_send(struct importing *importing, struct error *err)
{
    struct import_batch *batch = &importing->batch;
    sqlite3_int64 size = 0;
    enum status status = open_rows(&importing->rows, batch->kind, err); // a batch may have none
    if (status == STATUS_OK) {
        batch->rows = sqlite3_serialize(importing->rows.db, "main", &size, 0);
        batch->size = size;
        status = batch->rows ? importing->sink->apply(importing->sink->context, batch, err)
                             : error_no_memory(err, "store");
    }
    sqlite3_free(batch->rows);
    batch->rows = NULL;
    import_rows_close(&importing->rows);
    return status;
}

// ---- Which runs -------------------------------------------------------------------------

static enum status add_coming(struct importing *importing, struct coming coming, struct error *err)
{
    if (!ARRAY_RESERVE(&importing->runs, &importing->run_room, importing->run_count + 1))
        return error_no_memory(err, "store");
    importing->runs[importing->run_count++] = coming;
    return STATUS_OK;
}

// Finds a run by its id in the file; NULL if that run is not imported.
static struct coming *find_run(struct importing *importing, int64_t from)
{
    if (importing->at_run && importing->at_run->from == from)
        return importing->at_run;
    struct coming *run =
        array_find(importing->runs, importing->run_count, sizeof *importing->runs, from);
    if (run)
        importing->at_run = run;
    return run;
}

// Whether this store has all ranges that the file has stored of the run.
static enum status is_covered(struct importing *importing, int64_t from, int64_t to, bool *covered,
                              struct error *err)
{
    sqlite3_stmt *row = NULL;
    enum status status = database_prepare(
        importing->from->db, &row,
        "SELECT stream, first, last FROM range WHERE run = ? AND state = 0", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(row, 1, from);
    *covered = true;
    while (*covered && database_step(importing->from->db, row, &status, err)) {
        (void)sqlite3_bind_int64(importing->covered, 1, to);
        for (int i = 0; i < 3; i++)
            (void)sqlite3_bind_int64(importing->covered, 2 + i, sqlite3_column_int64(row, i));
        *covered = sqlite3_step(importing->covered) == SQLITE_ROW;
        (void)sqlite3_reset(importing->covered);
    }
    (void)sqlite3_finalize(row);
    return status;
}

// A run whose UUID is here already.
static enum status validate_known(struct importing *importing, const char *uuid, int64_t from,
                                  int64_t to, int64_t gone, struct error *err)
{
    bool covered = false;
    enum status status = STATUS_OK;
    if (gone > 0)
        status = is_covered(importing, from, to, &covered, err);
    if (status != STATUS_OK)
        return status;
    if (gone > 0 && covered)
        return add_coming(importing, (struct coming){.from = from, .to = to, .is_here = true}, err);
    importing->there++;
    if (gone > 0)
        import_note(importing->note, uuid,
                    "this store knows less of this run: it was left as it is");
    return STATUS_OK;
}

static enum status validate_run(struct importing *importing, const struct audit_run *run,
                                struct error *err)
{
    struct store *from = importing->from;
    unsigned char bytes[16];
    char uuid[37];
    (void)sqlite3_bind_int64(from->uuid, 1, run->run);
    const char *text = sqlite3_step(from->uuid) == SQLITE_ROW
                           ? (const char *)sqlite3_column_text(from->uuid, 0)
                           : NULL;
    const bool has_uuid = text && text_to_uuid(bytes, text);
    (void)sqlite3_reset(from->uuid);
    char number[32];
    (void)snprintf(number, sizeof number, "run number %lld", (long long)run->run);
    if (!has_uuid || audit_verdict(run) == AUDIT_UNBALANCED || run->is_gone_unknown) {
        importing->refused++;
        import_note(importing->note, number,
                    !has_uuid           ? "it has no UUID"
                    : run->findings > 0 ? (run->finding ? run->finding : "unbalanced")
                                        : "it is unknown which of its records are missing");
        return STATUS_OK;
    }
    text_from_uuid(uuid, bytes);
    (void)sqlite3_bind_text(importing->find, 1, uuid, -1, SQLITE_STATIC);
    enum status status = STATUS_OK;
    const bool is_here = database_step(importing->store->db, importing->find, &status, err);
    const int64_t to = is_here ? sqlite3_column_int64(importing->find, 0) : 0;
    const int64_t gone = is_here ? sqlite3_column_int64(importing->find, 1) : 0;
    (void)sqlite3_reset(importing->find);
    if (status != STATUS_OK)
        return status;
    if (is_here)
        return validate_known(importing, uuid, run->run, to, gone, err);
    struct coming coming = {.from = run->run};
    memcpy(coming.hashes, run->hashes, sizeof coming.hashes);
    return add_coming(importing, coming, err);
}

static enum status validate_runs(struct importing *importing, struct error *err)
{
    static const struct query_filter all;
    enum status status = STATUS_OK;
    bool more = true;
    for (int64_t after = 0; more && status == STATUS_OK;) {
        struct audit audit;
        status = audit_page(&audit, importing->from, &all, after, AUDIT_RUNS_MAX, err);
        for (size_t i = 0; i < audit.run_count && status == STATUS_OK; i++)
            status = validate_run(importing, &audit.runs[i], err);
        for (size_t i = 0; i < audit.orphan_count; i++) {
            importing->refused++;
            import_note(importing->note, "a run that is not there",
                        audit.orphans[i].finding ? audit.orphans[i].finding : "");
        }
        more = audit.more && audit.last > after;
        after = audit.last;
        audit_deinit(&audit);
    }
    return status;
}

// ---- Runs -------------------------------------------------------------------------------

// How many rows of a table one run may have.
static const size_t rows_max[IMPORT_RECORD] = {
    [IMPORT_RUN] = 1,
    [IMPORT_STREAM] = DELIVERY_STREAMS_MAX,
    [IMPORT_RANGE] = 100000,
    [IMPORT_UNNUMBERED] = 100000,
    [IMPORT_LEDGER] = RECORD_KIND_COUNT,
    [IMPORT_RUN_NAME] = 65535, // as on the wire
};

// Adds the current run's rows of a table.  An invalid name is left out, and so will be the records
// that use it.
static enum status add_rows(struct importing *importing, enum import_table table, struct error *err)
{
    sqlite3_stmt *row = importing->select[table];
    const int64_t run = importing->at_run->from;
    size_t count = 0;
    enum status status = STATUS_OK;
    (void)sqlite3_bind_int64(row, 1, run);
    while (database_step(importing->from->db, row, &status, err)) {
        const char *fault = (const char *)sqlite3_column_text(row, IMPORT_COLUMN_FAULT);
        if (fault && table == IMPORT_RUN_NAME)
            continue;
        if (fault)
            status = error_set(err, STATUS_INVALID, "%s", fault);
        else if (count++ == rows_max[table])
            status = error_set(err, STATUS_INVALID,
                               "it has more streams, ranges, losses or names than a run can");
        else
            status = import_add(importing, table, run, row, err);
    }
    (void)sqlite3_reset(row);
    return status;
}

static enum status send_runs(struct importing *importing, size_t *count, struct error *err)
{
    const struct import_batch *batch = &importing->batch;
    if (*count == 0) {
        import_rows_close(&importing->rows);
        return STATUS_OK;
    }
    enum status status = import_send(importing, err);
    for (size_t i = 0; i < batch->new_run_count && status == STATUS_OK; i++) {
        struct coming *run = find_run(importing, batch->new_runs[i].from);
        if (run)
            run->to = batch->new_runs[i].to;
    }
    importing->new_runs += (int64_t)batch->new_run_count;
    importing->there += (int64_t)(*count - batch->new_run_count);
    *count = 0;
    return status;
}

static enum status prepare(struct importing *importing, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < IMPORT_RECORD && status == STATUS_OK; i++) {
        sqlite3_str *sql = sqlite3_str_new(importing->from->db);
        import_append_select(sql, (enum import_table)i, RECORD_KIND_RUN);
        sqlite3_str_appendall(sql, " WHERE t.run = ?");
        status = database_prepare_built(importing->from->db, &importing->select[i], sql, true, err);
    }
    return status;
}

// The ledgers of new runs count all records as cleared, until the records follow (import.h).
static enum status send_new_runs(struct importing *importing, struct error *err)
{
    size_t count = 0; // in the batch
    enum status status = prepare(importing, err);
    for (size_t i = 0; i < importing->run_count && status == STATUS_OK; i++) {
        importing->at_run = &importing->runs[i];
        if (importing->at_run->is_here)
            continue;
        // Its own row last: rows without it are of a run that was refused.
        for (unsigned table = IMPORT_RECORD; table-- > 0 && status == STATUS_OK;)
            status = add_rows(importing, (enum import_table)table, err);
        count += status == STATUS_OK;
        if (status == STATUS_INVALID) {
            importing->refused++;
            import_note(importing->note, "a run", err->text);
            status = STATUS_OK;
        }
        const bool is_full = count == IMPORT_RUNS_MAX || importing->rows.count > IMPORT_ROWS_MAX;
        if (status == STATUS_OK && is_full)
            status = send_runs(importing, &count, err);
    }
    return status == STATUS_OK ? send_runs(importing, &count, err) : status;
}

// ---- Records ----------------------------------------------------------------------------

static enum status send_records(struct importing *importing, struct error *err)
{
    const size_t count = importing->rows.count;
    if (count == 0)
        return STATUS_OK;
    enum status status = import_send(importing, err);
    importing->records += status == STATUS_OK ? (int64_t)count : 0;
    return status;
}

enum { COLUMN_STREAM = IMPORT_FIRST_COLUMN, COLUMN_NUMBER, COLUMN_STARTED };

// Finds out whether this store has the record, or had it until it expired.
static enum status find_known(struct importing *importing, enum record_kind kind,
                              const struct coming *coming, sqlite3_stmt *row, bool *is_known,
                              struct error *err)
{
    sqlite3_stmt *here = importing->here;
    const int64_t numbers[] = {coming->to, sqlite3_column_int64(row, COLUMN_STREAM),
                               sqlite3_column_int64(row, COLUMN_NUMBER), kind,
                               sqlite3_column_int64(row, COLUMN_STARTED)};
    database_bind(here, numbers, sizeof numbers / sizeof *numbers);
    enum status status = STATUS_OK;
    *is_known = database_step(importing->store->db, here, &status, err);
    (void)sqlite3_reset(here);
    return status;
}

// A record with an invalid value is refused and stays counted as cleared.
static enum status add_record(struct importing *importing, struct coming *coming, sqlite3_stmt *row,
                              struct error *err)
{
    const char *fault = (const char *)sqlite3_column_text(row, IMPORT_COLUMN_FAULT);
    if (fault) {
        import_note(importing->note, "a record", fault);
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
    while (database_step(importing->from->db, row, &status, err)) {
        struct coming *coming = find_run(importing, sqlite3_column_int64(row, IMPORT_COLUMN_RUN));
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
    (void)sqlite3_finalize(row);
    return status == STATUS_OK ? send_records(importing, err) : status;
}

// Records in the order of the kinds: stages find their model by their load.
enum status import_send_runs(struct importing *importing, struct error *err)
{
    enum status status = validate_runs(importing, err);
    if (status == STATUS_OK)
        status = send_new_runs(importing, err);
    for (unsigned kind = RECORD_KIND_RUN + 1; kind < RECORD_KIND_COUNT && status == STATUS_OK;
         kind++)
        status = send_kind(importing, (enum record_kind)kind, err);
    return status;
}
