#include "common/store/sealed.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "common/core/crc32c.h"
#include "common/store/database.h"
#include "common/store/schema_tables.h"
#include "common/store/seal_columns.h"
#include "common/store/sealed_runs.h"

#define SECOND_NS INT64_C(1000000000)

// What segments are looked for by stands in indexes of its own: the bytes are on pages
// that only the reading of them touches.
const char sealed_tables[] =
    "CREATE TABLE IF NOT EXISTS sealed(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL,"
    " first_id INTEGER NOT NULL, last_id INTEGER NOT NULL, first_started_ns INTEGER NOT NULL,"
    " last_started_ns INTEGER NOT NULL, rows INTEGER NOT NULL, runs BLOB NOT NULL,"
    " checksum INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE UNIQUE INDEX IF NOT EXISTS sealed_ids ON sealed(kind, last_id, first_id,"
    " first_started_ns, last_started_ns, rows);"
    "CREATE INDEX IF NOT EXISTS sealed_first ON sealed(kind, first_started_ns);"
    "CREATE INDEX IF NOT EXISTS sealed_last ON sealed(kind, last_started_ns);";

#define COLUMNS "id, kind, first_id, last_id, first_started_ns, last_started_ns, rows"

enum { COLUMN_COUNT = 7, NUMBERS = 6, NUMBER_BYTES = 8 };

static void take_segment(sqlite3_stmt *row, struct sealed_segment *out)
{
    *out = (struct sealed_segment){
        .id = sqlite3_column_int64(row, 0),
        .kind = sqlite3_column_int64(row, 1),
        .first_id = sqlite3_column_int64(row, 2),
        .last_id = sqlite3_column_int64(row, 3),
        .first_started_ns = sqlite3_column_int64(row, 4),
        .last_started_ns = sqlite3_column_int64(row, 5),
        .rows = sqlite3_column_int64(row, 6),
    };
}

bool sealed_is_same(const struct sealed_segment *a, const struct sealed_segment *b)
{
    return a->id == b->id && a->kind == b->kind && a->first_id == b->first_id &&
           a->last_id == b->last_id && a->first_started_ns == b->first_started_ns &&
           a->last_started_ns == b->last_started_ns && a->rows == b->rows;
}

uint32_t sealed_checksum(const struct sealed_segment *segment, const void *bytes, size_t size)
{
    const int64_t numbers[NUMBERS] = {segment->kind,
                                      segment->first_id,
                                      segment->last_id,
                                      segment->first_started_ns,
                                      segment->last_started_ns,
                                      segment->rows};
    unsigned char text[NUMBERS * NUMBER_BYTES]; // lowest byte first, on every machine
    for (unsigned i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)((uint64_t)numbers[i / NUMBER_BYTES] >> i % NUMBER_BYTES * 8);
    return crc32c(crc32c(0, text, sizeof text), bytes, size);
}

static enum status add(sqlite3 *db, const struct sealed_segment *segment,
                       const struct byte_sink *runs, const void *bytes, size_t size,
                       struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(
        db, &stmt,
        "INSERT INTO sealed(kind, first_id, last_id, first_started_ns,"
        " last_started_ns, rows, checksum, data, runs) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, segment->kind);
    (void)sqlite3_bind_int64(stmt, 2, segment->first_id);
    (void)sqlite3_bind_int64(stmt, 3, segment->last_id);
    (void)sqlite3_bind_int64(stmt, 4, segment->first_started_ns);
    (void)sqlite3_bind_int64(stmt, 5, segment->last_started_ns);
    (void)sqlite3_bind_int64(stmt, 6, segment->rows);
    (void)sqlite3_bind_int64(stmt, 7, sealed_checksum(segment, bytes, size));
    (void)sqlite3_bind_blob64(stmt, 8, bytes, size, SQLITE_STATIC);
    (void)sqlite3_bind_blob64(stmt, 9, runs->bytes, runs->size, SQLITE_STATIC);
    status = database_run(db, stmt, err);
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status sealed_add(sqlite3 *db, const struct sealed_segment *segment,
                       const struct seal_rows *rows, const void *bytes, size_t size,
                       struct error *err)
{
    struct byte_sink runs = {NULL, 0, 0, false};
    enum status status = sealed_runs_pack(segment, rows, &runs);
    status = status == STATUS_OK ? add(db, segment, &runs, bytes, size, err)
                                 : error_set(err, status, "store: out of memory");
    byte_sink_deinit(&runs);
    return status;
}

// ---- Reading --------------------------------------------------------------------------

enum { TIME_SIZE = 40 };

// A time, and some seconds, as --since and --until take it.
static const char *time_text(char text[TIME_SIZE], int64_t ns, int more)
{
    const time_t seconds = (time_t)(ns / SECOND_NS - (ns % SECOND_NS < 0) + more);
    struct tm utc;
    if (!gmtime_r(&seconds, &utc) || strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        (void)snprintf(text, TIME_SIZE, "%lld", (long long)seconds);
    return text;
}

enum status sealed_is_damaged(const struct sealed_segment *segment, const char *what,
                              struct error *err)
{
    char since[TIME_SIZE], until[TIME_SIZE];
    const bool has_kind = segment->kind >= 0 && segment->kind < RECORD_KIND_COUNT;
    return error_set(err, STATUS_CORRUPT,
                     "sealed rows %lld to %lld of %s are damaged: %s (restore a backup, or let"
                     " them go: inferstat clear --since %s --until %s)",
                     (long long)segment->first_id, (long long)segment->last_id,
                     has_kind ? record_kind_info((enum record_kind)segment->kind)->name : "no kind",
                     what, time_text(since, segment->first_started_ns, 0),
                     time_text(until, segment->last_started_ns, 1));
}

static enum status open_bytes(sqlite3_stmt *row, const struct sealed_segment *known,
                              struct seal_reader **reader, struct error *err)
{
    struct sealed_segment segment;
    take_segment(row, &segment);
    const void *bytes = sqlite3_column_blob(row, COLUMN_COUNT + 1);
    const size_t size = (size_t)sqlite3_column_bytes(row, COLUMN_COUNT + 1);
    const int64_t checksum = sqlite3_column_int64(row, COLUMN_COUNT);
    if (!bytes || checksum != (int64_t)sealed_checksum(&segment, bytes, size))
        return sealed_is_damaged(known, "their checksum differs", err);
    if (!sealed_is_same(&segment, known))
        return sealed_is_damaged(known, "an index says something else of them", err);
    enum status status = seal_reader_new(reader, bytes, size);
    if (status == STATUS_NOMEM)
        return error_set(err, status, "store: out of memory");
    if (status == STATUS_UNSUPPORTED)
        return error_set(err, status, "sealed rows are of a newer format (update this program)");
    if (status != STATUS_OK)
        return sealed_is_damaged(known, "their bytes make no sense", err);
    if (segment.rows == (int64_t)seal_reader_count(*reader))
        return STATUS_OK;
    seal_reader_free(*reader);
    *reader = NULL;
    return sealed_is_damaged(known, "their count differs", err);
}

enum status sealed_load(sqlite3 *db, const struct sealed_segment *segment,
                        struct seal_reader **reader, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(
        db, &stmt, "SELECT " COLUMNS ", checksum, data FROM main.sealed WHERE id = ?", false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, segment->id);
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        status = open_bytes(stmt, segment, reader, err);
    else if (rc == SQLITE_DONE)
        status = error_set(err, STATUS_NO_DATA, "store: no such sealed rows");
    else
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// The segment that a statement over a kind and two numbers finds.
static enum status find(sqlite3 *db, const char *sql, int64_t kind, const int64_t numbers[2],
                        struct sealed_segment *out, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    *out = (struct sealed_segment){0};
    enum status status = database_prepare(db, &stmt, sql, false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, kind);
    for (int i = 0; i < 2 && i + 2 <= sqlite3_bind_parameter_count(stmt); i++)
        (void)sqlite3_bind_int64(stmt, i + 2, numbers[i]);
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        take_segment(stmt, out);
    else if (rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

enum status sealed_next(sqlite3 *db, enum record_kind kind, int64_t after_id,
                        struct sealed_segment *out, struct error *err)
{
    return find(db,
                "SELECT " COLUMNS " FROM main.sealed WHERE kind = ?1 AND last_id > ?2"
                " ORDER BY last_id LIMIT 1",
                (int64_t)kind, (int64_t[]){after_id, 0}, out, err);
}

enum status sealed_oldest(sqlite3 *db, enum record_kind kind, const struct sealed_segment *after,
                          struct sealed_segment *out, struct error *err)
{
    const int64_t numbers[] = {after ? after->first_started_ns : INT64_MIN, after ? after->id : 0};
    return find(db,
                "SELECT " COLUMNS " FROM main.sealed WHERE kind = ?1"
                " AND (first_started_ns, id) > (?2, ?3) ORDER BY first_started_ns, id LIMIT 1",
                (int64_t)kind, numbers, out, err);
}

enum status sealed_last(sqlite3 *db, enum record_kind kind, int64_t *last_id, int64_t *last_ns,
                        struct error *err)
{
    struct sealed_segment segment;
    *last_id = 0;
    *last_ns = INT64_MIN;
    enum status status = find(db,
                              "SELECT " COLUMNS " FROM main.sealed WHERE kind = ?1"
                              " ORDER BY last_id DESC LIMIT 1",
                              (int64_t)kind, (int64_t[]){0, 0}, &segment, err);
    if (status != STATUS_OK || segment.id == 0)
        return status;
    *last_id = segment.last_id;
    status = find(db,
                  "SELECT " COLUMNS " FROM main.sealed WHERE kind = ?1"
                  " ORDER BY last_started_ns DESC LIMIT 1",
                  (int64_t)kind, (int64_t[]){0, 0}, &segment, err);
    *last_ns = segment.last_started_ns;
    return status;
}

// A wrong number counts nothing.
enum status sealed_room(sqlite3 *db, int64_t *rows, int64_t *bytes, struct error *err)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT sum(rows) FROM main.sealed WHERE rows BETWEEN 1 AND %d",
                   (int)SEAL_ROWS_MAX);
    *bytes = 0;
    enum status status = database_integer(db, sql, rows, err);
    if (status == STATUS_OK && *rows > 0)
        status = database_integer(db, "SELECT sum(length(data) + length(runs)) FROM main.sealed",
                                  bytes, err);
    return status;
}

// ---- Changes --------------------------------------------------------------------------

enum status sealed_remove(sqlite3 *db, const struct sealed_segment *segment, struct error *err)
{
    char sql[64];
    (void)snprintf(sql, sizeof sql, "DELETE FROM sealed WHERE id = %lld", (long long)segment->id);
    return database_exec(db, sql, err);
}

// ---- Sources --------------------------------------------------------------------------

void sealed_append_from(sqlite3_str *sql, enum record_kind kind, unsigned source)
{
    const char *name = record_kind_info(kind)->name;
    const char *unindexed = source & SEALED_UNINDEXED ? " NOT INDEXED" : "";
    if (!(source & SEALED_TOO) || !seal_has_kind(kind)) {
        sqlite3_str_appendf(sql, "main.\"%w\" t%s", name, unindexed);
        return;
    }
    sqlite3_str_appendall(sql, "(SELECT ");
    schema_append_all(sql, kind);
    sqlite3_str_appendf(sql, " FROM main.\"%w\"%s UNION ALL SELECT ", name, unindexed);
    schema_append_all(sql, kind);
    sqlite3_str_appendf(sql, " FROM \"sealed_%w\") t", name);
}

void sealed_append_bound(sqlite3_str *sql, enum record_kind kind, bool is_last, bool with_sealed)
{
    const char *name = record_kind_info(kind)->name, *extreme = is_last ? "max" : "min";
    if (!with_sealed || !seal_has_kind(kind))
        sqlite3_str_appendf(sql, "(SELECT %s(started_ns) FROM main.\"%w\")", extreme, name);
    else
        sqlite3_str_appendf(sql,
                            "(SELECT %s(at) FROM (SELECT %s(started_ns) AS at FROM main.\"%w\""
                            " UNION ALL SELECT %s(%s_started_ns) FROM main.sealed"
                            " WHERE kind = %d))",
                            extreme, extreme, name, extreme, is_last ? "last" : "first", (int)kind);
}

enum status sealed_find_from(sqlite3 *db, sqlite3_str *sql, enum record_kind kind, int64_t since_ns,
                             unsigned flags, struct error *err)
{
    int64_t last_id = 0, last_ns = INT64_MIN;
    enum status status = STATUS_OK;
    if (seal_has_kind(kind))
        status = sealed_last(db, kind, &last_id, &last_ns, err);
    const bool has = last_id != 0 && last_ns >= since_ns;
    sealed_append_from(sql, kind, flags | (has ? SEALED_TOO : SEALED_NOT));
    return status;
}
