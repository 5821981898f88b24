#include "common/store/schema/schema_rebuild.h"

#include <stdio.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/schema/schema_select.h"
#include "common/core/base/crc32c.h"
#include "common/core/base/unit.h"
#include "common/store/schema/seal_decoder.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"

enum { SLICE_ROWS = 20000 };
#define PROGRESS_NS UINT64_C(2000000000) // between two messages

// Keeps the statements that made the table's indexes and triggers in a table of this connection.
// Of a trigger the table's name is as whoever made it wrote it.
static enum status keep_extras(sqlite3 *db, const char *table, struct error *err)
{
    return database_execf(
        db, err,
        "CREATE TEMP TABLE extra AS SELECT type, name, sql FROM main.sqlite_schema"
        " WHERE tbl_name = %Q COLLATE NOCASE AND type IN ('index', 'trigger')"
        " AND sql IS NOT NULL ORDER BY rowid",
        table);
}

// Runs what an expression gives for each of them.  One statement each: what else a text of the
// file might hold is not run.
static enum status run_extras(sqlite3 *db, const char *expression, struct error *err)
{
    int64_t count = 0;
    enum status status = database_integer(db, "SELECT count(*) FROM temp.extra", &count, err);
    for (int64_t i = 1; i <= count && status == STATUS_OK; i++) {
        sqlite3_stmt *ask = NULL, *stmt = NULL;
        sqlite3_str *sql = sqlite3_str_new(db);
        sqlite3_str_appendf(sql, "SELECT %s FROM temp.extra WHERE rowid = %lld", expression,
                            (long long)i);
        status = database_prepare_built(db, &ask, sql, false, err);
        if (status == STATUS_OK && sqlite3_step(ask) != SQLITE_ROW)
            status = database_error(db, "store", err);
        if (status == STATUS_OK)
            status =
                database_prepare(db, &stmt, (const char *)sqlite3_column_text(ask, 0), false, err);
        (void)sqlite3_finalize(ask); // a change of the schema waits for no reader
        if (status == STATUS_OK)
            status = database_run(db, stmt, err);
        (void)sqlite3_finalize(stmt);
    }
    return status;
}

// Foreign columns would be lost, with their contents: then the store stays unchanged.
// Versions 5 to 8 stored some columns as differences, in these.
#define DIFFERENCES "'received_after_ns', 'prefill_excess_ns', 'decode_excess_ns'"

static enum status refuse_columns(sqlite3 *db, const char *table, const char *made,
                                  struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(db, &stmt,
                         "SELECT name FROM pragma_table_xinfo(?1) WHERE lower(name) NOT IN"
                         " (SELECT lower(name) FROM pragma_table_xinfo(?2)) AND name NOT IN"
                         " (" DIFFERENCES ") LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(stmt, 2, made, -1, SQLITE_STATIC);
    if (database_step(db, stmt, &status, err))
        status = error_set(err, STATUS_UNSUPPORTED,
                           "table %s has a column \"%.100s\" that is not inferstat's and would be"
                           " lost (keep it in a table of its own and drop it from this one)",
                           table, (const char *)sqlite3_column_text(stmt, 0));
    (void)sqlite3_finalize(stmt);
    return status;
}

// The rows of a table that are moved.
struct moving {
    int64_t done, all;
    uint64_t began_ns, told_ns; // 0: not yet
};

// Tells every two seconds how many are moved, and the time left.
static void tell_progress(struct moving *moving, int rows)
{
    char done[UNIT_TEXT_SIZE], all[UNIT_TEXT_SIZE], rate[UNIT_TEXT_SIZE], left[UNIT_TEXT_SIZE];
    const uint64_t now_ns = clock_monotonic_ns();
    moving->done += rows;
    if (moving->done >= moving->all || now_ns - moving->told_ns < PROGRESS_NS)
        return;
    const double per_ns = (double)moving->done / (double)(now_ns - moving->began_ns);
    moving->told_ns = now_ns;
    log_write(LOG_LEVEL_INFO, "store: %s of %s records, %s/s, %s left",
              unit_format_int(done, UNIT_COUNT, moving->done),
              unit_format_int(all, UNIT_COUNT, moving->all),
              unit_format_int(rate, UNIT_COUNT, (int64_t)(per_ns * 1e9)),
              unit_format(left, UNIT_DURATION, (double)(moving->all - moving->done) / per_ns));
}

// Copies slices of rows and deletes them from the old table, whose free pages the next slice
// uses: the file does not grow.
static enum status move_rows(sqlite3 *db, enum record_kind kind, const char *from, const char *to,
                             struct error *err)
{
    sqlite3_stmt *add = NULL, *drop = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "INSERT ");
    schema_append_copy(sql, kind, to);
    sqlite3_str_appendf(sql, " FROM \"%w\" ORDER BY id LIMIT %d", from, SLICE_ROWS);
    enum status status = database_prepare_built(db, &add, sql, true, err);
    sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "DELETE FROM \"%w\" WHERE id <= (SELECT max(id) FROM \"%w\")", from,
                        to);
    if (status == STATUS_OK)
        status = database_prepare_built(db, &drop, sql, true, err);
    else
        sqlite3_free(sqlite3_str_finish(sql));
    struct moving moving = {.began_ns = clock_monotonic_ns()};
    if (status == STATUS_OK)
        status = database_integerf(db, &moving.all, err, "SELECT count(*) FROM \"%w\"", from);
    for (int moved = 1; status == STATUS_OK && moved > 0;) {
        status = database_run(db, add, err);
        moved = sqlite3_changes(db);
        tell_progress(&moving, moved);
        if (status == STATUS_OK && moved > 0)
            status = database_run(db, drop, err);
    }
    (void)sqlite3_finalize(add);
    (void)sqlite3_finalize(drop);
    return status;
}

// Renamed as before SQLite 3.26, which leaves views alone: they find the new table by
// its name.
static enum status replace_table(sqlite3 *db, const char *table, const char *made,
                                 struct error *err)
{
    return database_execf(db, err,
                          "DROP TABLE \"%w\"; PRAGMA legacy_alter_table=ON;"
                          "ALTER TABLE \"%w\" RENAME TO \"%w\"; PRAGMA legacy_alter_table=OFF",
                          table, made, table);
}

static enum status replace(sqlite3 *db, enum record_kind kind, const char *table, struct error *err)
{
    char made[64];
    (void)snprintf(made, sizeof made, "%s_rebuilt", table);
    sqlite3_str *sql = sqlite3_str_new(db);
    schema_append_table(sql, kind, made);
    enum status status = database_exec_built(db, sql, err);
    if (status == STATUS_OK)
        status = refuse_columns(db, table, made, err);
    if (status == STATUS_OK)
        status = move_rows(db, kind, table, made, err);
    return status == STATUS_OK ? replace_table(db, table, made, err) : status;
}

enum status schema_rebuild(sqlite3 *db, enum record_kind kind, struct error *err)
{
    const char *table = record_kind_info(kind)->name;
    enum status status = keep_extras(db, table, err);
    if (status == STATUS_OK) // else each deleted row would update the indexes
        status = run_extras(db, "printf('DROP %s \"%w\"', type, name)", err);
    if (status == STATUS_OK)
        status = replace(db, kind, table, err);
    if (status == STATUS_OK)
        status = run_extras(db, "sql", err);
    return status == STATUS_OK ? database_exec(db, "DROP TABLE temp.extra", err) : status;
}

// ---- Columns that may be absent ----------------------------------------------------------

static enum status allow_nulls_of(sqlite3 *db, enum record_kind kind, struct error *err)
{
    const struct record_kind_info *info = record_kind_info(kind);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < info->column_count && status == STATUS_OK; i++)
        if (info->columns[i].maybe)
            status = database_execf(
                db, err,
                "UPDATE main.sqlite_schema SET sql = replace(sql, '\"%w\" %s NOT NULL',"
                " '\"%w\" %s') WHERE type = 'table' AND name = %Q",
                info->columns[i].name, schema_column_type(kind, i), info->columns[i].name,
                schema_column_type(kind, i), info->name);
    return status;
}

// Only the table's statement changes, as the procedure in SQLite's ALTER TABLE page has it: whether
// a column may be NULL has no part in how rows are stored.
enum status schema_allow_nulls(sqlite3 *db, struct error *err)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
    enum status status = database_exec(db, "PRAGMA writable_schema=ON", err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT && status == STATUS_OK; kind++)
        status = allow_nulls_of(db, (enum record_kind)kind, err);
    // Reads the schema again.  Other connections do so too, since the views are made again.
    if (status == STATUS_OK)
        status = database_exec(db, "PRAGMA writable_schema=RESET", err);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL); // nothing is writable in it
    return status;
}

// ---- Sealed segments ---------------------------------------------------------------------

enum { KIND, FIRST_ID, LAST_ID, FIRST_NS, LAST_NS, ROWS, NUMBERS };

struct segment {
    int64_t id; // 0: none
    int64_t numbers[NUMBERS];
    bool is_damaged;
    struct seal_rows rows; // where it is not
};

// CRC-32C of a segment's numbers (lowest byte first) and of its data.
static uint32_t checksum_of(const struct segment *segment, const void *bytes, size_t size)
{
    unsigned char numbers[NUMBERS * 8];
    for (unsigned i = 0; i < sizeof numbers; i++)
        numbers[i] = (unsigned char)((uint64_t)segment->numbers[i / 8] >> i % 8 * 8);
    return crc32c(crc32c(0, numbers, sizeof numbers), bytes, size);
}

static enum status decode(struct segment *segment, const void *bytes, size_t size, int64_t checksum,
                          struct error *err)
{
    enum status status = STATUS_CORRUPT;
    if (bytes && segment->numbers[KIND] == RECORD_KIND_INFERENCE &&
        checksum == checksum_of(segment, bytes, size))
        status = seal_decode(&segment->rows, bytes, size);
    if (status == STATUS_NOMEM)
        return error_no_memory(err, "store");
    if (status == STATUS_UNSUPPORTED)
        return error_set(err, status, "store: sealed segment %lld is of an unknown format",
                         (long long)segment->id);
    segment->is_damaged =
        status != STATUS_OK || segment->rows.count != (uint64_t)segment->numbers[ROWS];
    return STATUS_OK;
}

static enum status load(struct segment *segment, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    *segment = (struct segment){0};
    enum status status =
        database_prepare(db, &stmt,
                         "SELECT id, kind, first_id, last_id, first_started_ns, last_started_ns,"
                         " rows, checksum, data FROM sealed ORDER BY id LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        segment->id = sqlite3_column_int64(stmt, 0);
        for (int i = 0; i < NUMBERS; i++)
            segment->numbers[i] = sqlite3_column_int64(stmt, 1 + i);
        const void *bytes = sqlite3_column_blob(stmt, NUMBERS + 2);
        rc = sqlite3_errcode(db);
        status = decode(segment, bytes, (size_t)sqlite3_column_bytes(stmt, NUMBERS + 2),
                        sqlite3_column_int64(stmt, NUMBERS + 1), err);
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) // the file itself cannot be read
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status prepare_insert(sqlite3 *db, const struct seal_rows *rows, sqlite3_stmt **out,
                                  struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    for (unsigned i = 0; i < rows->columns; i++)
        sqlite3_str_appendf(sql, "%s\"%w\"", i ? ", " : "INSERT INTO inference(", rows->names[i]);
    for (unsigned i = 0; i < rows->columns; i++)
        sqlite3_str_appendall(sql, i ? ", ?" : ") VALUES(?");
    sqlite3_str_appendall(sql, ")");
    return database_prepare_built(db, out, sql, false, err);
}

// A row that violates a constraint (such as an id that exists) makes the segment a damaged one.
static enum status insert(struct segment *segment, sqlite3 *db, struct error *err)
{
    const struct seal_rows *rows = &segment->rows;
    sqlite3_stmt *stmt = NULL;
    enum status status = prepare_insert(db, rows, &stmt, err);
    for (uint32_t row = 0; row < rows->count && status == STATUS_OK && !segment->is_damaged;
         row++) {
        for (unsigned i = 0; i < rows->columns; i++)
            if (rows->is_absent[i] && rows->is_absent[i][row])
                (void)sqlite3_bind_null(stmt, (int)i + 1);
            else
                (void)sqlite3_bind_int64(stmt, (int)i + 1, rows->values[i][row]);
        const int rc = sqlite3_step(stmt);
        segment->is_damaged = (rc & 0xff) == SQLITE_CONSTRAINT;
        if (rc != SQLITE_DONE && !segment->is_damaged)
            status = database_error(db, "store", err);
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

static void say_damaged(const struct segment *segment)
{
    log_write(LOG_LEVEL_ERROR,
              "store: %lld sealed records with ids %lld to %lld, started from %lld to %lld ns, are"
              " damaged and lost (inferstat audit names their runs)",
              (long long)segment->numbers[ROWS], (long long)segment->numbers[FIRST_ID],
              (long long)segment->numbers[LAST_ID], (long long)segment->numbers[FIRST_NS],
              (long long)segment->numbers[LAST_NS]);
}

static enum status move(struct segment *segment, sqlite3 *db, struct error *err)
{
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK && !segment->is_damaged)
        status = insert(segment, db, err);
    if (status == STATUS_OK && segment->is_damaged) { // nothing of it is kept
        say_damaged(segment);
        status = database_exec(db, "ROLLBACK; BEGIN IMMEDIATE", err);
    }
    if (status == STATUS_OK)
        status =
            database_execf(db, err, "DELETE FROM sealed WHERE id = %lld", (long long)segment->id);
    return database_end(db, status, err);
}

enum status unseal(sqlite3 *db, struct error *err)
{
    int64_t tables = 0;
    enum status status = database_integer(
        db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'sealed'", &tables,
        err);
    if (status == STATUS_OK && tables > 0)
        log_write(LOG_LEVEL_INFO, "store: its sealed records are unpacked");
    for (struct segment segment = {.id = 1}; status == STATUS_OK && tables > 0 && segment.id;) {
        status = load(&segment, db, err);
        if (status == STATUS_OK && segment.id)
            status = move(&segment, db, err);
        seal_rows_deinit(&segment.rows);
    }
    return status;
}
