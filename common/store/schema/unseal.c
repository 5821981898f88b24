#include "common/store/schema/unseal.h"

#include <stdbool.h>

#include <sqlite3.h>

#include "common/core/base/crc32c.h"
#include "common/core/record/record.h"
#include "common/store/sqlite/database.h"
#include "common/store/schema/seal_decoder.h"
#include "common/sys/log.h"

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
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendf(sql, "DELETE FROM sealed WHERE id = %lld", (long long)segment->id);
    if (status == STATUS_OK)
        status = database_exec_built(db, sql, err);
    else
        sqlite3_free(sqlite3_str_finish(sql));
    return database_end(db, status, err);
}

enum status unseal(sqlite3 *db, struct error *err)
{
    int64_t tables = 0;
    enum status status = database_integer(
        db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'sealed'", &tables,
        err);
    for (struct segment segment = {.id = 1}; status == STATUS_OK && tables > 0 && segment.id;) {
        status = load(&segment, db, err);
        if (status == STATUS_OK && segment.id)
            status = move(&segment, db, err);
        seal_rows_deinit(&segment.rows);
    }
    return status;
}
