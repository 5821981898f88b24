#include "common/store/structure.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/database.h"
#include "common/store/reader.h"
#include "common/store/seal_columns.h"
#include "common/store/sealed.h"
#include "common/store/store_file.h"

enum { FINDING_SIZE = 200 };

// The first line of what SQLite found; it begins with "*** in database main ***".
static enum status report(const struct store *store, const char *text, struct error *err)
{
    char finding[FINDING_SIZE];
    if (strncmp(text, "***", 3) == 0 && strchr(text, '\n'))
        text = strchr(text, '\n') + 1;
    (void)snprintf(finding, sizeof finding, "%.*s", (int)strcspn(text, "\n"), text);
    return store_file_is_damaged(store->path, finding, err);
}

static enum status check_file(struct store *store, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(store->db, &stmt, "PRAGMA integrity_check(1)", false, err);
    if (status != STATUS_OK)
        return status;
    const int rc = sqlite3_step(stmt);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (rc != SQLITE_ROW)
        status = database_error(store->db, "store", err);
    else if (!text)
        status = error_set(err, STATUS_NOMEM, "store: out of memory");
    else if (strcmp(text, "ok") != 0)
        status = report(store, text, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status check_rollup(void *context, sqlite3_stmt *row, struct error *err)
{
    (void)context;
    struct ratio cell = {0};
    const struct cell_key key = {
        .metric = sqlite3_column_int(row, 0),
        .grouping = (enum rollup_grouping)sqlite3_column_int(row, 1),
        .level = (enum rollup_level)sqlite3_column_int(row, 2),
        .started_ns = sqlite3_column_int64(row, 3),
        .series = sqlite3_column_int64(row, 4),
    };
    return cell_add(&cell, &key, row, 5, err);
}

// Reads all columns of a segment.
static enum status check_columns(const struct sealed_segment *segment, struct seal_reader *reader,
                                 struct error *err)
{
    const char *names[SEAL_COLUMNS_MAX];
    const unsigned count = seal_columns((enum record_kind)segment->kind, names);
    struct seal_column column;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        const int place = seal_reader_find(reader, names[i]);
        if (place >= 0)
            status = seal_reader_column(reader, (unsigned)place, &column);
    }
    if (status == STATUS_OK)
        return STATUS_OK;
    return error_set(err, status, "sealed rows %lld to %lld are damaged",
                     (long long)segment->first_id, (long long)segment->last_id);
}

static enum status check_segment(void *context, sqlite3_stmt *row, struct error *err)
{
    const struct store *store = context;
    struct sealed_segment segment;
    struct seal_reader *reader = NULL;
    enum status status =
        sealed_load(store->db, sqlite3_column_int64(row, 0), &segment, &reader, err);
    if (status == STATUS_OK && (segment.kind < 0 || segment.kind >= RECORD_KIND_COUNT ||
                                !seal_has_kind((enum record_kind)segment.kind)))
        status = error_set(err, STATUS_CORRUPT, "sealed rows of no kind");
    if (status == STATUS_OK)
        status = check_columns(&segment, reader, err);
    seal_reader_free(reader);
    return status;
}

static enum status check_sealed(struct store *store, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT id FROM sealed");
    return reader_scan(store, sql, NULL, check_segment, store, err);
}

enum status structure_check(struct store *store, struct error *err)
{
    enum status status = check_file(store, err);
    if (status != STATUS_OK)
        return status;
    sqlite3_str *sql = sqlite3_str_new(store->db);
    sqlite3_str_appendall(sql, "SELECT metric, grouping, level, started_ns, series, " CELL_COLUMNS
                               " FROM rollup");
    status = reader_scan(store, sql, &(struct query_filter){0}, check_rollup, NULL, err);
    if (status == STATUS_OK)
        status = check_sealed(store, err);
    return status == STATUS_CORRUPT ? error_prefix(err, status, "store %s", store->path) : status;
}
