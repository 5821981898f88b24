// What a file from elsewhere says, before any of it is believed.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/core/sketch.h"
#include "common/core/text.h"
#include "common/store/database.h"
#include "common/store/import.h"
#include "common/store/store_file.h"

// ---- The file ------------------------------------------------------------------------------

static bool is_same(const struct stat *file, const char *path)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == file->st_dev && other.st_ino == file->st_ino;
}

// This store's own file is not even opened: closing it would let go of SQLite's locks
// on it (store_file.h).
enum status import_check_file(const char *path, const char *own, struct error *err)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode))
        return error_set(err, STATUS_INVALID, "%s: a link (name the file itself)", path);
    enum status status = store_file_look(path, err);
    if (status != STATUS_OK)
        return status;
    if (stat(path, &about) != 0)
        return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
    if (own && is_same(&about, own))
        return error_set(err, STATUS_INVALID, "%s: this is the store itself", path);
    if (about.st_size > IMPORT_BYTES_MAX)
        return error_set(err, STATUS_FULL, "%s: larger than %lld GB (export a bundle of less)",
                         path, (long long)(IMPORT_BYTES_MAX >> 30));
    return store_file_check(path, err);
}

// ---- Values -------------------------------------------------------------------------------

static enum status fault(enum record_kind kind, const struct record_column *column,
                         const char *what, struct error *err)
{
    return error_set(err, STATUS_INVALID, "%s.%s: %s", record_kind_info(kind)->name, column->name,
                     what);
}

// As on the wire, and the offset of a run's clock, which is no record's.
static bool int_is_sound(const struct record_column *column, int64_t value)
{
    if (column_type_is_enum(column->type))
        return column_enum_text(column->type, value) != NULL;
    switch ((int)column->unit) {
    case UNIT_DURATION:
        return value <= IMPORT_VALUE_MAX &&
               value >= (strcmp(column->name, "clock_offset_ns") == 0 ? -IMPORT_VALUE_MAX : 0);
    case UNIT_BYTES:
    case UNIT_COUNT:
    case UNIT_TOKENS:
        return value >= 0 && value <= IMPORT_VALUE_MAX;
    default:
        return true;
    }
}

static enum status take_int(struct import_piece *piece, struct import_rows *rows,
                            enum record_kind kind, const struct record_column *column,
                            sqlite3_stmt *row, int place, struct error *err)
{
    const int64_t value = sqlite3_column_int64(row, place);
    if (sqlite3_column_type(row, place) != SQLITE_INTEGER || !int_is_sound(column, value))
        return fault(kind, column, "a number that cannot be", err);
    return import_add_int(piece, rows, value, err);
}

static enum status take_real(struct import_piece *piece, struct import_rows *rows,
                             enum record_kind kind, const struct record_column *column,
                             sqlite3_stmt *row, int place, struct error *err)
{
    const double value = sqlite3_column_double(row, place);
    const int type = sqlite3_column_type(row, place);
    if ((type != SQLITE_FLOAT && type != SQLITE_INTEGER) || !isfinite(value))
        return fault(kind, column, "a number that cannot be", err);
    return import_add_real(piece, rows, value, err);
}

// A sketch is merged with others by queries: one that cannot be read stays out.
static bool sketch_is_sound(const void *bytes, size_t size)
{
    struct sketch *sketch = NULL;
    if (sketch_new(&sketch) != STATUS_OK)
        return false;
    const bool is_sound = sketch_decode(sketch, bytes, size) == STATUS_OK;
    sketch_free(sketch);
    return is_sound;
}

static enum status take_blob(struct import_piece *piece, struct import_rows *rows,
                             enum record_kind kind, const struct record_column *column,
                             sqlite3_stmt *row, int place, struct error *err)
{
    const void *bytes = sqlite3_column_blob(row, place);
    const size_t size = (size_t)sqlite3_column_bytes(row, place);
    if (sqlite3_column_type(row, place) != SQLITE_BLOB || size > IMPORT_TEXT_MAX ||
        !sketch_is_sound(bytes, size))
        return fault(kind, column, "no sketch", err);
    return import_add_bytes(piece, rows, IMPORT_BLOB, bytes, size, err);
}

enum status import_take_text(struct import_piece *piece, struct import_rows *rows,
                             sqlite3_stmt *row, int place, struct error *err)
{
    if (sqlite3_column_type(row, place) == SQLITE_NULL)
        return import_add_null(piece, rows, err);
    const char *text = (const char *)sqlite3_column_text(row, place);
    const size_t size = (size_t)sqlite3_column_bytes(row, place);
    if (sqlite3_column_type(row, place) != SQLITE_TEXT || !text || size > IMPORT_TEXT_MAX ||
        !text_is_utf8(text, size))
        return error_set(err, STATUS_INVALID, "a text that is too long, or not UTF-8");
    return import_add_bytes(piece, rows, IMPORT_TEXT, text, size, err);
}

// ---- Names --------------------------------------------------------------------------------

static enum status read_name(struct import_names *names, struct import_name *name, int64_t id)
{
    (void)sqlite3_bind_int64(names->find, 1, id);
    enum status status = STATUS_INVALID;
    if (sqlite3_step(names->find) == SQLITE_ROW &&
        sqlite3_column_type(names->find, 0) == SQLITE_TEXT) {
        const char *text = (const char *)sqlite3_column_text(names->find, 0);
        const size_t size = (size_t)sqlite3_column_bytes(names->find, 0);
        if (text && size >= 1 && size <= IMPORT_NAME_MAX && text_is_utf8(text, size)) {
            name->id = id;
            name->size = size;
            memcpy(name->bytes, text, size);
            status = STATUS_OK;
        }
    }
    (void)sqlite3_reset(names->find);
    return status;
}

enum status import_take_name(struct import_piece *piece, struct import_rows *rows, int64_t id,
                             struct import_names *names, struct error *err)
{
    struct import_name *name =
        &names->list[(uint64_t)id % (sizeof names->list / sizeof *names->list)];
    if ((name->size == 0 || name->id != id) && read_name(names, name, id) != STATUS_OK) {
        name->size = 0;
        return error_set(err, STATUS_INVALID, "a name that is not there, too long, or not UTF-8");
    }
    return import_add_bytes(piece, rows, IMPORT_NAME, name->bytes, name->size, err);
}

static enum status take_name(struct import_piece *piece, struct import_rows *rows,
                             enum record_kind kind, const struct record_column *column,
                             sqlite3_stmt *row, int place, struct import_names *names,
                             struct error *err)
{
    if (sqlite3_column_type(row, place) != SQLITE_INTEGER)
        return fault(kind, column, "no name", err);
    enum status status =
        import_take_name(piece, rows, sqlite3_column_int64(row, place), names, err);
    return status == STATUS_INVALID
               ? error_prefix(err, status, "%s.%s", record_kind_info(kind)->name, column->name)
               : status;
}

// ---- Columns ------------------------------------------------------------------------------

static enum status take_column(struct import_piece *piece, struct import_rows *rows,
                               enum record_kind kind, const struct record_column *column,
                               sqlite3_stmt *row, int place, struct import_names *names,
                               struct error *err)
{
    if (sqlite3_column_type(row, place) == SQLITE_NULL)
        return column->maybe ? import_add_null(piece, rows, err)
                             : fault(kind, column, "missing", err);
    if (column->type == COLUMN_REAL)
        return take_real(piece, rows, kind, column, row, place, err);
    if (column->type == COLUMN_NAME)
        return take_name(piece, rows, kind, column, row, place, names, err);
    if (column->type == COLUMN_BLOB)
        return take_blob(piece, rows, kind, column, row, place, err);
    if (column->type != COLUMN_TEXT)
        return take_int(piece, rows, kind, column, row, place, err);
    enum status status = import_take_text(piece, rows, row, place, err);
    return status == STATUS_INVALID
               ? error_prefix(err, status, "%s.%s", record_kind_info(kind)->name, column->name)
               : status;
}

enum status import_take_columns(struct import_piece *piece, struct import_rows *rows,
                                enum record_kind kind, sqlite3_stmt *row, int place,
                                struct import_names *names, struct error *err)
{
    const struct record_kind_info *info = record_kind_info(kind);
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < info->column_count && status == STATUS_OK; i++)
        status = take_column(piece, rows, kind, &info->columns[i], row, place + (int)i, names, err);
    return status;
}
