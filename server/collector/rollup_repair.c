#include "server/collector/rollup_repair.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/cell.h"
#include "common/store/database.h"
#include "common/store/gap_table.h"
#include "server/collector/rollup_fold.h"
#include "server/collector/rollup_heal.h"

// A step is a few milliseconds of work.
enum { CHUNK_ROWS = 4096, ERASE_ROWS = 1024, CHILDREN_MAX = 31 };

// A slice does one step of a phase; each phase ends by going on to the next.
enum phase {
    PHASE_NONE,
    PHASE_HEAL,   // of a span that has expired: rows that are damaged are given up
    PHASE_DELETE, // the span's rollups, some rows of a metric, grouping and level at a time
    PHASE_READ,   // its records: a chunk is read, then folded a metric at a time
    PHASE_MERGE,  // the parent from its children, a metric and grouping at a time
    PHASE_FILL,   // the children that are not kept, from records
    PHASE_END,
};

// A day or month that the span touches.
struct parent {
    enum rollup_level level;
    struct gap_span span;
    // By child: the groupings in which it is not kept, and is read as records.
    unsigned missing[CHILDREN_MAX];
    unsigned groupings; // to be made again
};

struct rollup_repair {
    sqlite3 *db;
    struct rollup_fold *fold;
    struct rollup_sheet sheet;
    sqlite3_stmt *erase, *children, *insert;
    sqlite3_stmt *read;                               // of the kind at work
    struct gap_set kept_apart[ROLLUP_GROUPING_COUNT]; // gaps, but those of what was cleared

    enum phase phase;
    enum record_kind kind;
    const struct rollup_metrics *metrics;
    int64_t watermark, expired_ns;
    struct gap_span span;
    struct rollup_patient patient;
    struct cell_key healed; // rows up to here were looked at
    unsigned metric, grouping, level, child;
    int64_t read_ns, read_id; // records up to here are done
    bool folding;             // the chunk that was read, from `metric` on
    bool at_end;              // it was the last one
    struct parent parents[4];
    unsigned parent, parent_count;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

// A span whose end is that of 64 bits has it in.
static int64_t last_of(const struct gap_span *span)
{
    return span->until_ns == INT64_MAX ? INT64_MAX : span->until_ns - 1;
}

enum status rollup_repair_new(struct rollup_repair **out, sqlite3 *db, struct error *err)
{
    struct rollup_repair *repair = calloc(1, sizeof *repair);
    if (!repair)
        return out_of_memory(err);
    repair->db = db;
    repair->kind = RECORD_KIND_COUNT;
    enum status status = rollup_fold_new(&repair->fold, db, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &repair->erase,
                                  "DELETE FROM rollup WHERE (metric, grouping, level,"
                                  " started_ns, series) IN (SELECT metric, grouping, level,"
                                  " started_ns, series FROM rollup WHERE metric = ?"
                                  " AND grouping = ? AND level = ? AND started_ns BETWEEN ?"
                                  " AND ? LIMIT ?)",
                                  true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &repair->children,
                                  "SELECT started_ns, series, " CELL_COLUMNS " FROM rollup"
                                  " WHERE metric = ? AND grouping = ? AND level = ?"
                                  " AND started_ns BETWEEN ? AND ? ORDER BY series",
                                  true, err);
    if (status == STATUS_OK)
        status =
            database_prepare(db, &repair->insert,
                             "INSERT INTO rollup(metric, grouping, level, started_ns, series,"
                             " " CELL_COLUMNS ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             true, err);
    if (status != STATUS_OK) {
        rollup_repair_free(repair);
        return status;
    }
    *out = repair;
    return STATUS_OK;
}

void rollup_repair_stop(struct rollup_repair *repair)
{
    rollup_fold_forget(repair->fold);
    rollup_sheet_deinit(&repair->sheet);
    (void)sqlite3_finalize(repair->read);
    repair->read = NULL;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        gap_set_deinit(&repair->kept_apart[g]);
    repair->phase = PHASE_NONE;
    repair->kind = RECORD_KIND_COUNT;
    repair->folding = false;
}

void rollup_repair_free(struct rollup_repair *repair)
{
    if (!repair)
        return;
    if (repair->fold)
        rollup_repair_stop(repair);
    rollup_fold_free(repair->fold);
    (void)sqlite3_finalize(repair->erase);
    (void)sqlite3_finalize(repair->children);
    (void)sqlite3_finalize(repair->insert);
    free(repair);
}

enum record_kind rollup_repair_kind(const struct rollup_repair *repair)
{
    return repair->kind;
}

// ---- What to do --------------------------------------------------------------------------

// The last gap of the kind; all groupings have the same ones.
static enum status find_gap(struct rollup_repair *repair, bool *found, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(repair->db, &stmt,
                         "SELECT since_ns, until_ns FROM rollup_gap WHERE kind = ? AND grouping = 0"
                         " AND level = ? AND why = ? ORDER BY since_ns DESC LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int(stmt, 1, (int)repair->kind);
    (void)sqlite3_bind_int(stmt, 2, (int)ROLLUP_MONTH);
    (void)sqlite3_bind_int(stmt, 3, (int)ROLLUP_CLEARED);
    const int rc = sqlite3_step(stmt);
    *found = rc == SQLITE_ROW;
    if (*found)
        repair->span =
            (struct gap_span){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1)};
    else if (rc != SQLITE_DONE)
        status = database_error(repair->db, "rollups", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// Cuts the span to its last part that is an hour with records, or has none at all.
static enum status cut_span(struct rollup_repair *repair, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *sql = sqlite3_str_new(repair->db);
    sqlite3_str_appendf(sql, "SELECT max(started_ns) FROM \"%w\" WHERE started_ns BETWEEN ? AND ?",
                        record_kind_info(repair->kind)->name);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(repair->db, &stmt, text, false, err) : out_of_memory(err);
    sqlite3_free(text);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int64(stmt, 1, repair->span.since_ns);
    (void)sqlite3_bind_int64(stmt, 2, last_of(&repair->span));
    const int rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW) {
        status = database_error(repair->db, "rollups", err);
    } else if (sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        const int64_t hour = rollup_bucket(ROLLUP_HOUR, sqlite3_column_int64(stmt, 0));
        const int64_t next = rollup_next(ROLLUP_HOUR, hour);
        if (next < repair->span.until_ns)
            repair->span.since_ns = next;
        else if (hour > repair->span.since_ns)
            repair->span.since_ns = hour;
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status read_expiry(struct rollup_repair *repair, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(repair->db);
    sqlite3_str_appendf(sql,
                        "SELECT coalesce((SELECT until_ns FROM expiry WHERE kind = %d), ~%lld)",
                        (int)repair->kind, (long long)INT64_MAX);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_integer(repair->db, text, &repair->expired_ns, err) : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

static enum status read_gaps(struct rollup_repair *repair, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_set_read(&repair->kept_apart[g], repair->db, repair->kind,
                              (enum rollup_grouping)g, true, err);
    return status;
}

static enum status prepare_read(struct rollup_repair *repair, struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(repair->db);
    sqlite3_str_appendall(sql, "SELECT ");
    rollup_sheet_select(sql, repair->kind);
    sqlite3_str_appendf(sql,
                        " FROM \"%w\" t WHERE (t.started_ns, t.id) > (?, ?) AND t.started_ns <= ?"
                        " AND t.id <= ? ORDER BY t.started_ns, t.id LIMIT %d",
                        record_kind_info(repair->kind)->name, CHUNK_ROWS);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(repair->db, &repair->read, text, true, err) : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

// What has expired cannot be made again: the span's part behind it is taken first.
static void cut_expired(struct rollup_repair *repair)
{
    const int64_t hour = rollup_bucket(ROLLUP_HOUR, repair->expired_ns);
    const int64_t first =
        hour == repair->expired_ns ? hour : rollup_next(ROLLUP_HOUR, hour); // none expired
    if (repair->span.since_ns < first && first < repair->span.until_ns)
        repair->span.since_ns = first;
}

// Goes on to a span's records.
static void begin_reading(struct rollup_repair *repair, const struct gap_span *span)
{
    repair->read_ns = span->since_ns;
    repair->read_id = 0; // no record's
}

// Goes on to the rows of a metric, grouping and level that touch the span.
static void begin_healing(struct rollup_repair *repair)
{
    const enum rollup_level level = (enum rollup_level)repair->level;
    repair->healed = (struct cell_key){repair->metrics->list[repair->metric].number,
                                       (enum rollup_grouping)repair->grouping, level,
                                       rollup_bucket(level, repair->span.since_ns), INT64_MIN};
}

enum status rollup_repair_begin(struct rollup_repair *repair, enum record_kind kind,
                                int64_t watermark, bool *found, struct error *err)
{
    rollup_repair_stop(repair);
    repair->kind = kind;
    repair->metrics = rollup_metrics_of(kind);
    repair->watermark = watermark;
    rollup_sheet_init(&repair->sheet, kind);
    enum status status = find_gap(repair, found, err);
    if (status == STATUS_OK && *found)
        status = read_expiry(repair, err);
    if (status == STATUS_OK && *found)
        cut_expired(repair);
    if (status == STATUS_OK && *found)
        status = cut_span(repair, err);
    if (status == STATUS_OK && *found)
        status = read_gaps(repair, err);
    if (status == STATUS_OK && *found)
        status = prepare_read(repair, err);
    if (status != STATUS_OK || !*found) {
        rollup_repair_stop(repair);
        return status;
    }
    repair->metric = repair->grouping = repair->level = 0;
    repair->parent_count = 0;
    repair->patient = (struct rollup_patient){repair->db, kind, repair->expired_ns, false};
    repair->phase = repair->span.since_ns < repair->expired_ns ? PHASE_HEAL : PHASE_DELETE;
    begin_healing(repair);
    return STATUS_OK;
}

// ---- Parents ---------------------------------------------------------------------------------

static enum status is_cleared_elsewhere(struct rollup_repair *repair, const struct gap_span *span,
                                        bool *cleared, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status =
        database_prepare(repair->db, &stmt,
                         "SELECT 1 FROM rollup_gap WHERE kind = ?1 AND grouping = 0 AND level = ?2"
                         " AND why = ?3 AND since_ns < ?5 AND until_ns > ?4"
                         " AND (max(since_ns, ?4) < ?6 OR min(until_ns, ?5) > ?7) LIMIT 1",
                         false, err);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_bind_int(stmt, 1, (int)repair->kind);
    (void)sqlite3_bind_int(stmt, 2, (int)ROLLUP_MONTH);
    (void)sqlite3_bind_int(stmt, 3, (int)ROLLUP_CLEARED);
    (void)sqlite3_bind_int64(stmt, 4, span->since_ns);
    (void)sqlite3_bind_int64(stmt, 5, span->until_ns);
    (void)sqlite3_bind_int64(stmt, 6, repair->span.since_ns);
    (void)sqlite3_bind_int64(stmt, 7, repair->span.until_ns);
    const int rc = sqlite3_step(stmt);
    *cleared = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = database_error(repair->db, "rollups", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

// Which children are to be had from records, and which groupings cannot be made since
// those have expired.
static void plan_children(const struct rollup_repair *repair, struct parent *parent)
{
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    parent->groupings = ROLLUP_ALL_GROUPINGS;
    int64_t child = parent->span.since_ns;
    for (unsigned i = 0; i < CHILDREN_MAX && child < parent->span.until_ns; i++) {
        const int64_t next = rollup_next(level, child);
        for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
            if (!gap_set_touches(&repair->kept_apart[g], level, child, next))
                continue;
            parent->missing[i] |= 1U << g;
            if (child < repair->expired_ns)
                parent->groupings &= ~(1U << g);
        }
        child = next;
    }
}

static enum status add_parent(struct rollup_repair *repair, enum rollup_level level,
                              int64_t time_ns, struct error *err)
{
    struct parent parent = {.level = level, .span.since_ns = rollup_bucket(level, time_ns)};
    parent.span.until_ns = rollup_next(level, parent.span.since_ns);
    bool cleared = false;
    for (unsigned i = 0; i < repair->parent_count; i++)
        if (repair->parents[i].level == level &&
            repair->parents[i].span.since_ns == parent.span.since_ns)
            return STATUS_OK;
    enum status status = is_cleared_elsewhere(repair, &parent.span, &cleared, err);
    if (status != STATUS_OK || cleared)
        return status;
    plan_children(repair, &parent);
    repair->parents[repair->parent_count++] = parent;
    return STATUS_OK;
}

// The days first: months are made from them.
static enum status find_parents(struct rollup_repair *repair, struct error *err)
{
    enum status status = STATUS_OK;
    repair->parent_count = 0;
    for (unsigned level = ROLLUP_DAY; level <= ROLLUP_MONTH && status == STATUS_OK; level++) {
        status = add_parent(repair, (enum rollup_level)level, repair->span.since_ns, err);
        if (status == STATUS_OK)
            status = add_parent(repair, (enum rollup_level)level, last_of(&repair->span), err);
    }
    return status;
}

static void begin_parent(struct rollup_repair *repair, unsigned parent)
{
    repair->parent = parent;
    repair->metric = repair->grouping = 0;
    repair->child = 0;
    repair->phase = parent < repair->parent_count ? PHASE_MERGE : PHASE_END;
    if (parent < repair->parent_count)
        begin_reading(repair, &repair->parents[parent].span);
}

// ---- Slices ------------------------------------------------------------------------------------

// Some of the rows; `*left` where there may be more.
static enum status erase(struct rollup_repair *repair, enum rollup_grouping grouping,
                         enum rollup_level level, int64_t first_ns, int64_t last_ns, bool *left,
                         struct error *err)
{
    const int metric = repair->metrics->list[repair->metric].number;
    (void)sqlite3_bind_int(repair->erase, 1, metric);
    (void)sqlite3_bind_int(repair->erase, 2, (int)grouping);
    (void)sqlite3_bind_int(repair->erase, 3, (int)level);
    (void)sqlite3_bind_int64(repair->erase, 4, first_ns);
    (void)sqlite3_bind_int64(repair->erase, 5, last_ns);
    (void)sqlite3_bind_int(repair->erase, 6, ERASE_ROWS);
    const enum status status = database_run(repair->db, repair->erase, err);
    *left = status == STATUS_OK && sqlite3_changes(repair->db) == ERASE_ROWS;
    return status;
}

// The last time of the buckets that lie in the span whole.
static int64_t last_whole(const struct gap_span *span, enum rollup_level level)
{
    const int64_t last = last_of(span);
    const int64_t bucket = rollup_bucket(level, last);
    if (rollup_next(level, bucket) <= span->until_ns)
        return last;
    return bucket == INT64_MIN ? INT64_MIN : bucket - 1;
}

// Rows of one metric, grouping and level that lie in the span whole.
static enum status delete_some(struct rollup_repair *repair, struct error *err)
{
    const enum rollup_level level = (enum rollup_level)repair->level;
    bool left = false;
    const enum status status =
        erase(repair, (enum rollup_grouping)repair->grouping, level, repair->span.since_ns,
              last_whole(&repair->span, level), &left, err);
    if (status != STATUS_OK || left || ++repair->level < ROLLUP_LEVEL_COUNT)
        return status;
    repair->level = 0;
    if (++repair->grouping < ROLLUP_GROUPING_COUNT)
        return STATUS_OK;
    repair->grouping = 0;
    if (++repair->metric == repair->metrics->count) {
        begin_reading(repair, &repair->span);
        repair->phase = PHASE_READ;
    }
    return STATUS_OK;
}

// There is nothing to make an expired span's rows from; those that are damaged would
// be found damaged again with each record that comes late.
static enum status heal_some(struct rollup_repair *repair, struct error *err)
{
    bool left = false;
    const enum status status =
        rollup_heal_some(&repair->patient, &repair->healed, &repair->span, &left, err);
    if (status != STATUS_OK || left)
        return status;
    if (++repair->level == ROLLUP_LEVEL_COUNT) {
        repair->level = 0;
        repair->grouping++;
    }
    if (repair->grouping == ROLLUP_GROUPING_COUNT) {
        repair->grouping = 0;
        repair->metric++;
    }
    if (repair->metric == repair->metrics->count)
        repair->phase = PHASE_END;
    else
        begin_healing(repair);
    return STATUS_OK;
}

// Reads the next records up to `last_ns` into the sheet.
static enum status read_chunk(struct rollup_repair *repair, int64_t last_ns, struct error *err)
{
    rollup_sheet_clear(&repair->sheet, false);
    (void)sqlite3_bind_int64(repair->read, 1, repair->read_ns);
    (void)sqlite3_bind_int64(repair->read, 2, repair->read_id);
    (void)sqlite3_bind_int64(repair->read, 3, last_ns);
    (void)sqlite3_bind_int64(repair->read, 4, repair->watermark);
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(repair->read)) == SQLITE_ROW)
        status = rollup_sheet_add_row(&repair->sheet, repair->read);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(repair->db, "rollups", err);
    (void)sqlite3_reset(repair->read);
    repair->at_end = status == STATUS_OK && repair->sheet.count < CHUNK_ROWS;
    if (status == STATUS_FULL) // sketches are large: the rest with the next chunk
        status = STATUS_OK;
    if (status == STATUS_NOMEM)
        return out_of_memory(err);
    if (status == STATUS_OK && repair->sheet.count > 0) {
        repair->read_ns = repair->sheet.started_ns[repair->sheet.count - 1];
        repair->read_id = repair->sheet.ids[repair->sheet.count - 1];
    }
    return status;
}

// Takes up the chunk.
static enum status begin_fold(struct rollup_repair *repair, unsigned levels, unsigned groupings,
                              struct error *err)
{
    static const struct gap_set no_gaps[ROLLUP_GROUPING_COUNT];
    // A parent's gaps were looked at when it was planned.
    const bool of_parent = levels & (1U << ROLLUP_DAY | 1U << ROLLUP_MONTH);
    const struct rollup_scope scope = {
        .levels = levels, .groupings = groupings, .gaps = of_parent ? no_gaps : repair->kept_apart};
    enum status status = rollup_fold_begin(repair->fold, &repair->sheet, err);
    if (status == STATUS_OK)
        status = rollup_fold_plan(repair->fold, &scope, err);
    repair->folding = status == STATUS_OK;
    repair->metric = 0;
    return status;
}

// Folds one metric of the chunk.
static enum status fold_metric(struct rollup_repair *repair, struct error *err)
{
    const struct rollup_target target = {.metric = &repair->metrics->list[repair->metric]};
    struct gap_span damaged;
    const enum status status = rollup_fold_metric(repair->fold, &target, &damaged, err);
    if (++repair->metric == repair->metrics->count) {
        rollup_fold_end(repair->fold);
        repair->folding = false;
    }
    return status;
}

// One step of a span's records: a chunk is read, or one metric of it folded.  They are
// done where nothing is being folded and the chunk was the last.
static enum status take_records(struct rollup_repair *repair, const struct gap_span *span,
                                unsigned levels, unsigned groupings, struct error *err)
{
    if (repair->folding)
        return fold_metric(repair, err);
    enum status status = read_chunk(repair, last_of(span), err);
    if (status == STATUS_OK && repair->sheet.count > 0)
        status = begin_fold(repair, levels, groupings, err);
    return status;
}

static bool records_are_done(const struct rollup_repair *repair)
{
    return !repair->folding && repair->at_end;
}

static enum status read_span(struct rollup_repair *repair, struct error *err)
{
    enum status status = take_records(
        repair, &repair->span, 1U << ROLLUP_MINUTE | 1U << ROLLUP_HOUR, ROLLUP_ALL_GROUPINGS, err);
    if (status != STATUS_OK || !records_are_done(repair))
        return status;
    status = find_parents(repair, err);
    if (status == STATUS_OK)
        begin_parent(repair, 0);
    return status;
}

static enum status write_cell(struct rollup_repair *repair, const struct cell_key *key,
                              const struct ratio *cell, struct error *err)
{
    if (cell->values.count == 0)
        return STATUS_OK;
    sqlite3_stmt *stmt = repair->insert;
    (void)sqlite3_bind_int(stmt, 1, key->metric);
    (void)sqlite3_bind_int(stmt, 2, (int)key->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)key->level);
    (void)sqlite3_bind_int64(stmt, 4, key->started_ns);
    (void)sqlite3_bind_int64(stmt, 5, key->series);
    const bool derived = repair->metrics->list[repair->metric].source == ROLLUP_RATIOS;
    enum status status = cell_bind(stmt, 6, key, cell, derived, err);
    return status == STATUS_OK ? database_run(repair->db, stmt, err) : status;
}

static void empty_cell(struct ratio *cell)
{
    struct sketch *sketch = cell->values.sketch;
    sketch_reset(sketch);
    *cell = (struct ratio){.values.sketch = sketch};
}

// Adds up the children of a parent that are kept, series by series.  Where one is
// damaged, fails with STATUS_CORRUPT and it is `*damaged`.
static enum status merge_children(struct rollup_repair *repair, enum rollup_grouping grouping,
                                  struct ratio *cell, struct cell_key *damaged, struct error *err)
{
    const struct parent *parent = &repair->parents[repair->parent];
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    const int metric = repair->metrics->list[repair->metric].number;
    struct cell_key key = {metric, grouping, parent->level, parent->span.since_ns, 0};
    sqlite3_stmt *row = repair->children;
    (void)sqlite3_bind_int(row, 1, metric);
    (void)sqlite3_bind_int(row, 2, (int)grouping);
    (void)sqlite3_bind_int(row, 3, (int)level);
    (void)sqlite3_bind_int64(row, 4, parent->span.since_ns);
    (void)sqlite3_bind_int64(row, 5, last_of(&parent->span));
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const struct cell_key child = {metric, grouping, level, sqlite3_column_int64(row, 0),
                                       sqlite3_column_int64(row, 1)};
        if (gap_set_touches(&repair->kept_apart[grouping], level, child.started_ns,
                            rollup_next(level, child.started_ns)))
            continue;
        if (child.series != key.series) {
            status = write_cell(repair, &key, cell, err);
            empty_cell(cell);
            key.series = child.series;
        }
        if (status == STATUS_OK)
            status = cell_add(cell, &child, row, 2, err);
        *damaged = child;
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(repair->db, "rollups", err);
    (void)sqlite3_reset(row);
    return status == STATUS_OK ? write_cell(repair, &key, cell, err) : status;
}

// The parent's rows of one metric and grouping.
static enum status merge_grouping(struct rollup_repair *repair, enum rollup_grouping grouping,
                                  struct cell_key *damaged, struct error *err)
{
    const struct parent *parent = &repair->parents[repair->parent];
    struct ratio cell = {0};
    if (aggregate_want_quantiles(&cell.values, NULL) != STATUS_OK)
        return out_of_memory(err);
    enum status status = STATUS_OK;
    for (bool left = true; left && status == STATUS_OK;)
        status = erase(repair, grouping, parent->level, parent->span.since_ns,
                       parent->span.since_ns, &left, err);
    if (status == STATUS_OK)
        status = merge_children(repair, grouping, &cell, damaged, err);
    aggregate_deinit(&cell.values);
    return status;
}

// The same, or nothing: where a child is damaged, the parent's rows are left as they are,
// and what is at work begins anew when something was done about the child.
static enum status merge_or_heal(struct rollup_repair *repair, bool *healed, struct error *err)
{
    struct error again;
    struct cell_key damaged = {0};
    *healed = false;
    enum status status = database_exec(repair->db, "SAVEPOINT merge", err);
    if (status != STATUS_OK)
        return status;
    status = merge_grouping(repair, (enum rollup_grouping)repair->grouping, &damaged, err);
    if (status == STATUS_OK)
        return database_exec(repair->db, "RELEASE merge", err);
    if (status != STATUS_CORRUPT || damaged.metric == 0 || sqlite3_get_autocommit(repair->db) ||
        database_exec(repair->db, "ROLLBACK TO merge; RELEASE merge", &again) != STATUS_OK)
        return status;
    status = rollup_heal_row(&repair->patient, &damaged, err);
    *healed = true;
    if (status == STATUS_OK)
        rollup_repair_stop(repair);
    return status;
}

static enum status merge_some(struct rollup_repair *repair, struct error *err)
{
    enum status status = STATUS_OK;
    bool healed = false;
    if (repair->parents[repair->parent].groupings & 1U << repair->grouping)
        status = merge_or_heal(repair, &healed, err);
    if (status != STATUS_OK || healed)
        return status;
    if (++repair->grouping < ROLLUP_GROUPING_COUNT)
        return status;
    repair->grouping = 0;
    if (++repair->metric == repair->metrics->count)
        repair->phase = PHASE_FILL;
    return status;
}

// The children that are not kept, from records, a chunk at a time.
static enum status fill_parent(struct rollup_repair *repair, struct error *err)
{
    const struct parent *parent = &repair->parents[repair->parent];
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    struct gap_span child = {parent->span.since_ns, 0};
    for (unsigned i = 0; i < repair->child; i++)
        child.since_ns = rollup_next(level, child.since_ns);
    child.until_ns = rollup_next(level, child.since_ns);
    if (repair->child == CHILDREN_MAX || child.since_ns >= parent->span.until_ns) {
        begin_parent(repair, repair->parent + 1);
        return STATUS_OK;
    }
    const unsigned groupings = parent->missing[repair->child] & parent->groupings;
    enum status status = STATUS_OK;
    if (groupings != 0) {
        if (!repair->folding && repair->read_ns < child.since_ns)
            begin_reading(repair, &child);
        status = take_records(repair, &child, 1U << parent->level, groupings, err);
    }
    if (groupings == 0 || records_are_done(repair))
        repair->child++;
    return status;
}

// All is right again: the gap goes.
static enum status end_span(struct rollup_repair *repair, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_remove(repair->db,
                            &(struct gap){.kind = repair->kind,
                                          .grouping = (enum rollup_grouping)g,
                                          .level = ROLLUP_MONTH,
                                          .since_ns = repair->span.since_ns,
                                          .until_ns = repair->span.until_ns,
                                          .why = ROLLUP_CLEARED},
                            err);
    if (status == STATUS_OK)
        rollup_repair_stop(repair);
    return status;
}

enum status rollup_repair_step(struct rollup_repair *repair, struct error *err)
{
    switch (repair->phase) {
    case PHASE_HEAL:
        return heal_some(repair, err);
    case PHASE_DELETE:
        return delete_some(repair, err);
    case PHASE_READ:
        return read_span(repair, err);
    case PHASE_MERGE:
        return merge_some(repair, err);
    case PHASE_FILL:
        return fill_parent(repair, err);
    case PHASE_END:
        return end_span(repair, err);
    case PHASE_NONE:
        break;
    }
    return STATUS_OK;
}
