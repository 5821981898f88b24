#include "common/store/bundle_cells.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/reader.h"

// What a record's sketch may count, as queries have it.
#define SPAN_COUNT_MAX (UINT64_C(1) << 40)

enum { KEY_COLUMNS = 5 };

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// ---- Making -----------------------------------------------------------------------------

enum status bundle_cells_init(struct bundle_cells *cells, sqlite3 *db, struct error *err)
{
#define CELL_OF(database)                                                                          \
    "SELECT " CELL_COLUMNS " FROM " database ".rollup WHERE metric = ? AND grouping = ?"           \
    " AND level = ? AND started_ns = ? AND series = ?"
    cells->db = db;
    enum status status =
        database_prepare(db, &cells->insert,
                         "INSERT INTO bundle.rollup(metric, grouping, level, started_ns, series,"
                         " " CELL_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         false, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &cells->stored, CELL_OF("main"), false, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &cells->made, CELL_OF("bundle"), false, err);
    return status;
#undef CELL_OF
}

void bundle_cells_deinit(struct bundle_cells *cells)
{
    (void)sqlite3_finalize(cells->insert);
    (void)sqlite3_finalize(cells->stored);
    (void)sqlite3_finalize(cells->made);
    (void)sqlite3_finalize(cells->record);
    sketch_free(cells->spans);
    aggregate_deinit(&cells->cell.values);
    free(cells->parts);
}

enum status bundle_cells_begin(struct bundle_cells *cells, const struct query_metric *metric,
                               struct error *err)
{
    const struct record_kind_info *info = record_kind_info(metric->kind);
    (void)sqlite3_finalize(cells->record);
    cells->record = NULL;
    cells->metric = metric;
    sqlite3_str *sql = sqlite3_str_new(cells->db);
    sqlite3_str_appendall(sql, "SELECT ");
    if (metric->derived)
        append_derived(sql, metric->derived);
    else
        sqlite3_str_appendf(sql, "t.\"%w\"", info->columns[metric->column].name);
    sqlite3_str_appendf(sql, " FROM bundle.\"%w\" t WHERE t.id = ?", info->name);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(cells->db, &cells->record, text, false, err) : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

// ---- Parts ------------------------------------------------------------------------------

enum status bundle_cells_part(struct bundle_cells *cells, const struct bundle_part *part,
                              struct error *err)
{
    if (cells->part_count == cells->part_room) {
        const size_t room = cells->part_room ? 2 * cells->part_room : 64;
        struct bundle_part *bigger = realloc(cells->parts, room * sizeof *bigger);
        if (!bigger)
            return out_of_memory(err);
        cells->parts = bigger;
        cells->part_room = room;
    }
    cells->parts[cells->part_count++] = *part;
    return STATUS_OK;
}

void bundle_cells_forget(struct bundle_cells *cells)
{
    cells->part_count = 0;
}

static int compare_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_row(const void *a, const void *b)
{
    const struct bundle_part *left = a, *right = b;
    if (left->to != right->to)
        return compare_int(left->to, right->to);
    if (left->record != right->record)
        return compare_int(left->record, right->record);
    if (left->started_ns != right->started_ns)
        return compare_int(left->started_ns, right->started_ns);
    return compare_int(left->series, right->series);
}

// ---- Rows -------------------------------------------------------------------------------

static void bind_key(sqlite3_stmt *stmt, const struct cell_key *key)
{
    const int64_t place[KEY_COLUMNS] = {key->metric, key->grouping, key->level, key->started_ns,
                                        key->series};
    for (int i = 0; i < KEY_COLUMNS; i++)
        (void)sqlite3_bind_int64(stmt, i + 1, place[i]);
}

static void clear_row(struct bundle_cells *cells)
{
    aggregate_deinit(&cells->cell.values);
    cells->cell = (struct ratio){0};
}

static enum status write_row(struct bundle_cells *cells, struct error *err)
{
    if (cells->cell.values.count == 0)
        return STATUS_OK;
    bind_key(cells->insert, &cells->key);
    enum status status = cell_bind(cells->insert, KEY_COLUMNS + 1, &cells->key, &cells->cell,
                                   cells->metric->derived != NULL, err);
    if (status == STATUS_OK)
        status = database_run(cells->db, cells->insert, err);
    clear_row(cells);
    return status;
}

// Goes on with the row of that key; parts of one come one behind another.
static enum status turn_to(struct bundle_cells *cells, const struct cell_key *to, struct error *err)
{
    enum status status = STATUS_OK;
    if (to->started_ns != cells->key.started_ns || to->series != cells->key.series)
        status = write_row(cells, err);
    cells->key = *to;
    if (status == STATUS_OK && !cells->cell.values.sketch &&
        aggregate_want_quantiles(&cells->cell.values, NULL) != STATUS_OK)
        status = out_of_memory(err);
    return status;
}

static enum status add_cell(struct bundle_cells *cells, const struct cell_key *key, bool made,
                            struct error *err)
{
    sqlite3_stmt *cell = made ? cells->made : cells->stored;
    bind_key(cell, key);
    const int rc = sqlite3_step(cell);
    enum status status = STATUS_OK;
    if (rc == SQLITE_ROW)
        status = cell_add(&cells->cell, key, cell, 0, err);
    else if (rc == SQLITE_DONE)
        status = error_set(err, STATUS_CORRUPT, "store: a rollup is not where its index has it");
    else
        status = database_error(cells->db, "store", err);
    (void)sqlite3_reset(cell);
    return status;
}

static void take_bucket(void *context, double value, uint64_t count)
{
    struct aggregate *values = context;
    aggregate_add_many(values, value, count);
}

// What is no sketch, or could not be of one span, has no values.
static enum status add_sketch(struct bundle_cells *cells, struct error *err)
{
    if (!cells->spans && sketch_new(&cells->spans) != STATUS_OK)
        return out_of_memory(err);
    sketch_reset(cells->spans);
    const void *bytes = sqlite3_column_blob(cells->record, 0);
    const int size = sqlite3_column_bytes(cells->record, 0);
    if (sketch_decode(cells->spans, bytes, (size_t)size) == STATUS_OK &&
        sketch_count(cells->spans) <= SPAN_COUNT_MAX)
        sketch_each(cells->spans, take_bucket, &cells->cell.values);
    return STATUS_OK;
}

static enum status add_value(struct bundle_cells *cells, struct error *err)
{
    sqlite3_stmt *row = cells->record;
    if (cells->metric->derived)
        ratio_add_columns(&cells->cell, row, 0);
    else if (sqlite3_column_type(row, 0) == SQLITE_INTEGER)
        aggregate_add_int(&cells->cell.values, sqlite3_column_int64(row, 0));
    else if (sqlite3_column_type(row, 0) == SQLITE_FLOAT)
        aggregate_add_real(&cells->cell.values, sqlite3_column_double(row, 0));
    else if (sqlite3_column_type(row, 0) == SQLITE_BLOB)
        return add_sketch(cells, err);
    return STATUS_OK;
}

static enum status add_record(struct bundle_cells *cells, int64_t id, struct error *err)
{
    (void)sqlite3_bind_int64(cells->record, 1, id);
    const int rc = sqlite3_step(cells->record);
    enum status status = STATUS_OK;
    if (rc == SQLITE_ROW)
        status = add_value(cells, err);
    else if (rc == SQLITE_DONE)
        status = error_set(err, STATUS_CORRUPT, "store: a record is not where its index has it");
    else
        status = database_error(cells->db, "store", err);
    (void)sqlite3_reset(cells->record);
    return status;
}

enum status bundle_cells_write(struct bundle_cells *cells, const struct cell_key *to,
                               const struct cell_key *from, bool made, struct error *err)
{
    enum status status = STATUS_OK;
    if (cells->part_count > 1)
        qsort(cells->parts, cells->part_count, sizeof *cells->parts, by_row);
    for (size_t i = 0; i < cells->part_count && status == STATUS_OK; i++) {
        const struct bundle_part *part = &cells->parts[i];
        struct cell_key into = *to, key = *from;
        into.series = part->to;
        key.started_ns = part->started_ns;
        key.series = part->series;
        status = turn_to(cells, &into, err);
        if (status == STATUS_OK)
            status = part->record ? add_record(cells, part->record, err)
                                  : add_cell(cells, &key, made, err);
    }
    bundle_cells_forget(cells);
    if (status == STATUS_OK)
        status = write_row(cells, err);
    clear_row(cells);
    return status;
}

enum status bundle_cells_copy(struct bundle_cells *cells, const struct cell_key *key,
                              sqlite3_stmt *row, int first, struct error *err)
{
    struct ratio whole = {0}; // looked at only
    enum status status = cell_add(&whole, key, row, first, err);
    if (status != STATUS_OK)
        return status;
    bind_key(cells->insert, key);
    for (int i = 0; i < CELL_COLUMN_COUNT; i++)
        (void)sqlite3_bind_value(cells->insert, KEY_COLUMNS + 1 + i,
                                 sqlite3_column_value(row, first + i));
    return database_run(cells->db, cells->insert, err);
}
