#include "common/store/schema/migration_space.h"

#include <sqlite3.h>

#include "common/core/base/unit.h"
#include "common/store/sqlite/database.h"

// Of a row that was sealed, with its entry in the index on started_ns, rounded up.
enum { ROW_BYTES = 160 };

// A segment whose count of rows is damaged counts nothing.
static enum status count_sealed(sqlite3 *db, int64_t *rows, struct error *err)
{
    int64_t tables = 0;
    enum status status = database_integer(
        db, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'sealed'", &tables,
        err);
    *rows = 0;
    if (status == STATUS_OK && tables > 0)
        status = database_integer(db, "SELECT sum(rows) FROM sealed WHERE rows BETWEEN 1 AND 16384",
                                  rows, err);
    return status;
}

// The bytes of the file where tables have columns that versions 5 to 8 computed, else 0.
static enum status measure_rewritten(sqlite3 *db, int64_t *bytes, struct error *err)
{
    int64_t columns = 0;
    enum status status = database_integer(db,
                                          "SELECT count(*) FROM pragma_table_xinfo('inference')"
                                          " WHERE name = 'received_after_ns'",
                                          &columns, err);
    *bytes = 0;
    if (status == STATUS_OK && columns > 0)
        status = database_integer(
            db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", bytes,
            err);
    return status;
}

enum status migration_check_space(sqlite3 *db, int64_t free_bytes, int64_t *needed,
                                  struct error *err)
{
    char needs[UNIT_TEXT_SIZE], has[UNIT_TEXT_SIZE];
    int64_t rows = 0, rewritten = 0;
    enum status status = count_sealed(db, &rows, err);
    if (status == STATUS_OK)
        status = measure_rewritten(db, &rewritten, err);
    *needed = rewritten + 2 * rows * ROW_BYTES; // in the file, and in the log
    if (status == STATUS_OK && *needed > free_bytes)
        status =
            error_set(err, STATUS_FULL, "migrating it needs %s of free disk space, there are %s",
                      unit_format_int(needs, UNIT_BYTES, *needed),
                      unit_format_int(has, UNIT_BYTES, free_bytes));
    return status;
}
