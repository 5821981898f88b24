#include "server/collector/rollup_merge.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/base/slice_size.h"
#include "common/store/aggregate.h"
#include "common/store/database.h"
#include "common/sys/clock.h"

enum {
    STEP_NS = 5000000,
    IDS_LEAST = 4,
    IDS_FIRST = 16,
    IDS_MOST = 65536,
    FIRST_CHILD = 6, // where the times of children are bound
};

struct rollup_merge {
    sqlite3 *db;
    sqlite3_stmt *erase, *children, *insert;
    struct slice_size ids; // of series, in a step
    int64_t next, last;    // series: the next one; the last there is
    struct ratio cell;     // the row at work
};

static enum status prepare_children(struct rollup_merge *merge, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(merge->db);
    sqlite3_str_appendall(sql, "SELECT started_ns, series, " CELL_COLUMNS " FROM rollup"
                               " WHERE metric = ?1 AND grouping = ?2 AND level = ?3"
                               " AND series BETWEEN ?4 AND ?5 AND started_ns IN (?6");
    for (int i = 1; i < ROLLUP_CHILDREN_MAX; i++)
        sqlite3_str_appendf(sql, ", ?%d", FIRST_CHILD + i);
    sqlite3_str_appendall(sql, ") ORDER BY series");
    char *text = sqlite3_str_finish(sql);
    enum status status = text ? database_prepare(merge->db, &merge->children, text, true, err)
                              : error_set(err, STATUS_NOMEM, "rollups: out of memory");
    sqlite3_free(text);
    return status;
}

enum status rollup_merge_new(struct rollup_merge **out, sqlite3 *db, struct error *err)
{
    struct rollup_merge *merge = calloc(1, sizeof *merge);
    if (!merge)
        return error_set(err, STATUS_NOMEM, "rollups: out of memory");
    merge->db = db;
    merge->ids = (struct slice_size){IDS_FIRST, IDS_LEAST, IDS_MOST};
    enum status status =
        database_prepare(db, &merge->erase,
                         "DELETE FROM rollup WHERE metric = ? AND grouping = ?"
                         " AND level = ? AND started_ns = ? AND series BETWEEN ? AND ?",
                         true, err);
    if (status == STATUS_OK)
        status = prepare_children(merge, err);
    if (status == STATUS_OK)
        status =
            database_prepare(db, &merge->insert,
                             "INSERT INTO rollup(metric, grouping, level, started_ns, series,"
                             " " CELL_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             true, err);
    if (status == STATUS_OK && aggregate_want_quantiles(&merge->cell.values, NULL) != STATUS_OK)
        status = error_set(err, STATUS_NOMEM, "rollups: out of memory");
    if (status != STATUS_OK) {
        rollup_merge_free(merge);
        return status;
    }
    *out = merge;
    return STATUS_OK;
}

void rollup_merge_free(struct rollup_merge *merge)
{
    if (!merge)
        return;
    (void)sqlite3_finalize(merge->erase);
    (void)sqlite3_finalize(merge->children);
    (void)sqlite3_finalize(merge->insert);
    aggregate_deinit(&merge->cell.values);
    free(merge);
}

enum status rollup_merge_begin(struct rollup_merge *merge, struct error *err)
{
    merge->next = INT64_MIN;
    return database_integer(merge->db, "SELECT coalesce(max(id), 0) FROM series", &merge->last,
                            err);
}

// ---- Rows ----------------------------------------------------------------------------------

static void empty_cell(struct ratio *cell)
{
    struct sketch *sketch = cell->values.sketch;
    sketch_reset(sketch);
    *cell = (struct ratio){.values.sketch = sketch};
}

static enum status write_cell(struct rollup_merge *merge, const struct rollup_merge_job *job,
                              int64_t series, struct error *err)
{
    const struct cell_key key = {job->metric, job->grouping, job->level, job->started_ns, series};
    sqlite3_stmt *stmt = merge->insert;
    if (merge->cell.values.count == 0)
        return STATUS_OK;
    (void)sqlite3_bind_int(stmt, 1, key.metric);
    (void)sqlite3_bind_int(stmt, 2, (int)key.grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)key.level);
    (void)sqlite3_bind_int64(stmt, 4, key.started_ns);
    (void)sqlite3_bind_int64(stmt, 5, key.series);
    enum status status = cell_bind(stmt, 6, &key, &merge->cell, job->is_derived, err);
    if (status == STATUS_OK)
        status = database_run(merge->db, stmt, err);
    empty_cell(&merge->cell);
    return status;
}

static enum status erase_rows(struct rollup_merge *merge, const struct rollup_merge_job *job,
                              int64_t last, struct error *err)
{
    (void)sqlite3_bind_int(merge->erase, 1, job->metric);
    (void)sqlite3_bind_int(merge->erase, 2, (int)job->grouping);
    (void)sqlite3_bind_int(merge->erase, 3, (int)job->level);
    (void)sqlite3_bind_int64(merge->erase, 4, job->started_ns);
    (void)sqlite3_bind_int64(merge->erase, 5, merge->next);
    (void)sqlite3_bind_int64(merge->erase, 6, last);
    return database_run(merge->db, merge->erase, err);
}

static void bind_children(struct rollup_merge *merge, const struct rollup_merge_job *job,
                          int64_t last)
{
    sqlite3_stmt *row = merge->children;
    (void)sqlite3_bind_int(row, 1, job->metric);
    (void)sqlite3_bind_int(row, 2, (int)job->grouping);
    (void)sqlite3_bind_int(row, 3, (int)job->level - 1);
    (void)sqlite3_bind_int64(row, 4, merge->next);
    (void)sqlite3_bind_int64(row, 5, last);
    for (unsigned i = 0; i < ROLLUP_CHILDREN_MAX; i++) {
        if (i < job->child_count)
            (void)sqlite3_bind_int64(row, FIRST_CHILD + (int)i, job->children[i]);
        else
            (void)sqlite3_bind_null(row, FIRST_CHILD + (int)i);
    }
}

// Adds up the children's rows, series by series.
static enum status add_children(struct rollup_merge *merge, const struct rollup_merge_job *job,
                                struct cell_key *damaged, struct error *err)
{
    const enum rollup_level level = (enum rollup_level)(job->level - 1);
    sqlite3_stmt *row = merge->children;
    enum status status = STATUS_OK;
    int64_t series = 0;
    int rc = SQLITE_DONE;
    empty_cell(&merge->cell);
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const struct cell_key child = {job->metric, job->grouping, level,
                                       sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1)};
        if (child.series != series)
            status = write_cell(merge, job, series, err);
        series = child.series;
        if (status == STATUS_OK)
            status = cell_add(&merge->cell, &child, row, 2, err);
        *damaged = child;
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(merge->db, "rollups", err);
    (void)sqlite3_reset(row);
    return status == STATUS_OK ? write_cell(merge, job, series, err) : status;
}

// The bucket's rows of series up to that one.
static enum status merge_series(struct rollup_merge *merge, const struct rollup_merge_job *job,
                                int64_t last, struct cell_key *damaged, struct error *err)
{
    enum status status = erase_rows(merge, job, last, err);
    if (status != STATUS_OK)
        return status;
    bind_children(merge, job, last);
    return add_children(merge, job, damaged, err);
}

// The same, or nothing.
static enum status merge_or_undo(struct rollup_merge *merge, const struct rollup_merge_job *job,
                                 int64_t last, struct cell_key *damaged, struct error *err)
{
    struct error again;
    enum status status = database_exec(merge->db, "SAVEPOINT merge", err);
    if (status != STATUS_OK)
        return status;
    status = merge_series(merge, job, last, damaged, err);
    if (status == STATUS_OK)
        return database_exec(merge->db, "RELEASE merge", err);
    if (status == STATUS_CORRUPT &&
        (damaged->metric == 0 || sqlite3_get_autocommit(merge->db) ||
         database_exec(merge->db, "ROLLBACK TO merge; RELEASE merge", &again) != STATUS_OK))
        damaged->metric = 0; // the transaction is lost, or the store's structure
    return status;
}

// The ids of the series there are may lie far apart.
enum status rollup_merge_step(struct rollup_merge *merge, const struct rollup_merge_job *job,
                              bool *left, struct cell_key *damaged, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns();
    const int64_t first = merge->next < 0 ? 0 : merge->next;
    const int64_t last = first + (int64_t)merge->ids.now - 1;
    *damaged = (struct cell_key){0};
    *left = last < merge->last;
    enum status status = merge_or_undo(merge, job, *left ? last : INT64_MAX, damaged, err);
    if (status != STATUS_OK)
        return status;
    slice_size_adapt(&merge->ids, clock_monotonic_ns() - began_ns, STEP_NS);
    merge->next = *left ? last + 1 : INT64_MIN;
    return STATUS_OK;
}
