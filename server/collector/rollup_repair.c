#include "server/collector/rollup_repair.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/core/pace.h"
#include "common/store/cell.h"
#include "common/store/database.h"
#include "common/store/gap_table.h"
#include "common/store/sealed.h"
#include "common/sys/clock.h"
#include "server/collector/rollup_fold.h"
#include "server/collector/rollup_heal.h"
#include "server/collector/rollup_merge.h"

// A step is a few milliseconds of work.
enum {
    STEP_NS = 5000000,
    CHUNK_LEAST = 128,
    CHUNK_FIRST = 512,
    CHUNK_MOST = 8192,
    ERASE_ROWS = 512,
    CHILDREN_MAX = ROLLUP_CHILDREN_MAX,
};

// A slice does one step of a phase; each phase ends by going on to the next.
enum phase {
    PHASE_NONE,
    PHASE_HEAL,   // of a span that has expired: rows that are damaged are given up
    PHASE_DELETE, // the span's rollups, some rows of a metric, grouping and level at a time
    PHASE_READ,   // its records: a chunk is read, then folded a metric at a time
    PHASE_MERGE,  // the parent from its children, some series of a metric and grouping at a time
    PHASE_FILL,   // the children that are not kept, from records
    PHASE_END,
};

// A day or month that the span touches; or the hour in which records have expired up to
// some minute.
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
    struct rollup_merge *merge;
    sqlite3_stmt *erase;
    sqlite3_stmt *read;                               // of the kind at work
    struct gap_set kept_apart[ROLLUP_GROUPING_COUNT]; // gaps, but those of what was cleared

    enum phase phase;
    enum record_kind kind;
    const struct rollup_metrics *metrics;
    int64_t watermark, expired_ns;
    struct gap_span span;
    struct gap_span made; // what of it is made from records
    unsigned given_up;    // groupings in which the hour of expiry's edge cannot be made
    struct pace chunk;    // rows of one
    uint64_t slowest_ns;  // metric of the chunk
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
    repair->chunk = (struct pace){CHUNK_FIRST, CHUNK_LEAST, CHUNK_MOST};
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
        status = rollup_merge_new(&repair->merge, db, err);
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
    rollup_merge_free(repair->merge);
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
    // Of sealed rows the last that may be there.
    sqlite3_str_appendf(sql,
                        "SELECT max(at) FROM (SELECT max(started_ns) AS at FROM \"%w\""
                        " WHERE started_ns BETWEEN ?1 AND ?2 UNION ALL"
                        " SELECT min(max(last_started_ns), ?2) FROM sealed WHERE kind = %d"
                        " AND last_started_ns >= ?1 AND first_started_ns <= ?2)",
                        record_kind_info(repair->kind)->name, (int)repair->kind);
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
    sqlite3_str_appendall(sql, " FROM ");
    sealed_append_from(sql, repair->kind, SEALED_TOO);
    sqlite3_str_appendall(sql, " WHERE (t.started_ns, t.id) > (?, ?) AND t.started_ns <= ?"
                               " AND t.id <= ? ORDER BY t.started_ns, t.id LIMIT ?");
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(repair->db, &repair->read, text, true, err) : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

static int64_t edge_hour(const struct rollup_repair *repair)
{
    return rollup_bucket(ROLLUP_HOUR, repair->expired_ns);
}

// Whether records have expired in a part of the span: then it is an hour.
static bool is_at_edge(const struct rollup_repair *repair)
{
    return repair->span.since_ns < repair->expired_ns && repair->expired_ns < repair->span.until_ns;
}

// What has expired cannot be made again: the span's part behind it is taken first, then
// the hour in which it ends.
static void cut_expired(struct rollup_repair *repair)
{
    struct gap_span *span = &repair->span;
    const int64_t hour = edge_hour(repair);
    const int64_t first =
        hour == repair->expired_ns ? hour : rollup_next(ROLLUP_HOUR, hour); // none expired
    if (span->since_ns < first && first < span->until_ns)
        span->since_ns = first;
    else if (span->since_ns < hour && hour < span->until_ns)
        span->since_ns = hour;
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
    if (status == STATUS_OK && *found && !is_at_edge(repair))
        status = cut_span(repair, err);
    if (status == STATUS_OK && *found)
        status = rollup_merge_begin(repair->merge, err);
    if (status == STATUS_OK && *found)
        status = read_gaps(repair, err);
    if (status == STATUS_OK && *found)
        status = prepare_read(repair, err);
    if (status != STATUS_OK || !*found) {
        rollup_repair_stop(repair);
        return status;
    }
    repair->made = repair->span;
    if (is_at_edge(repair))
        repair->made.since_ns = repair->expired_ns;
    repair->given_up = 0;
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

// Whether a child's row is not kept in a grouping.
static bool is_missing(const struct rollup_repair *repair, unsigned grouping,
                       enum rollup_level level, int64_t child, int64_t next)
{
    return gap_set_touches(&repair->kept_apart[grouping], level, child, next) ||
           (repair->given_up & 1U << grouping && level == ROLLUP_HOUR &&
            child == edge_hour(repair));
}

// Which children are to be had from records, and which groupings cannot be made since
// those have expired.  Of an hour in which some have, the others do for its day.
static void plan_children(const struct rollup_repair *repair, struct parent *parent)
{
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    parent->groupings = ROLLUP_ALL_GROUPINGS;
    int64_t child = parent->span.since_ns;
    for (unsigned i = 0; i < CHILDREN_MAX && child < parent->span.until_ns; i++) {
        const int64_t next = rollup_next(level, child);
        const bool is_lost =
            level == ROLLUP_HOUR ? next <= repair->expired_ns : child < repair->expired_ns;
        for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
            if (!is_missing(repair, g, level, child, next))
                continue;
            parent->missing[i] |= 1U << g;
            if (is_lost)
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

// Groupings in which the level is kept there.
static unsigned kept_groupings(const struct rollup_repair *repair, enum rollup_level level,
                               const struct gap_span *span)
{
    unsigned groupings = 0;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        if (!gap_set_touches(&repair->kept_apart[g], level, span->since_ns, span->until_ns))
            groupings |= 1U << g;
    return groupings;
}

// The hour in which records have expired up to some minute is made from minutes like a
// day from hours.  Where those of what has expired are not kept it is given up: what it
// has counts records that were cleared.
static enum status add_edge(struct rollup_repair *repair, struct error *err)
{
    enum status status = add_parent(repair, ROLLUP_HOUR, repair->span.since_ns, err);
    if (status != STATUS_OK || repair->parent_count == 0)
        return status;
    struct parent *hour = &repair->parents[0];
    const unsigned kept = kept_groupings(repair, ROLLUP_HOUR, &hour->span);
    repair->given_up = kept & ~hour->groupings;
    hour->groupings &= kept;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        if (repair->given_up & 1U << g)
            status = gap_add(repair->db,
                             &(struct gap){.kind = repair->kind,
                                           .grouping = (enum rollup_grouping)g,
                                           .level = ROLLUP_HOUR,
                                           .since_ns = hour->span.since_ns,
                                           .until_ns = hour->span.until_ns,
                                           .why = ROLLUP_OLD},
                             err);
    return status;
}

// The days first: months are made from them.
static enum status find_parents(struct rollup_repair *repair, struct error *err)
{
    enum status status = STATUS_OK;
    repair->parent_count = 0;
    if (is_at_edge(repair))
        status = add_edge(repair, err);
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
        erase(repair, (enum rollup_grouping)repair->grouping, level, repair->made.since_ns,
              last_whole(&repair->made, level), &left, err);
    if (status != STATUS_OK || left || ++repair->level < ROLLUP_LEVEL_COUNT)
        return status;
    repair->level = 0;
    if (++repair->grouping < ROLLUP_GROUPING_COUNT)
        return STATUS_OK;
    repair->grouping = 0;
    if (++repair->metric == repair->metrics->count) {
        begin_reading(repair, &repair->made);
        repair->phase = PHASE_READ;
    }
    return STATUS_OK;
}

// Goes on: at expiry's edge to the records there are, else to days and months, which
// also count what was cleared elsewhere.
static enum status end_healing(struct rollup_repair *repair, struct error *err)
{
    enum status status = read_gaps(repair, err); // rows were given up
    if (status != STATUS_OK)
        return status;
    repair->metric = repair->grouping = repair->level = 0;
    if (is_at_edge(repair)) {
        repair->phase = PHASE_DELETE;
        return STATUS_OK;
    }
    status = find_parents(repair, err);
    if (status == STATUS_OK)
        begin_parent(repair, 0);
    return status;
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
    if (repair->metric < repair->metrics->count)
        begin_healing(repair);
    else
        return end_healing(repair, err);
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
    (void)sqlite3_bind_int64(repair->read, 5, repair->chunk.now);
    enum status status = STATUS_OK;
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(repair->read)) == SQLITE_ROW)
        status = rollup_sheet_add_row(&repair->sheet, repair->read);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(repair->db, "rollups", err);
    (void)sqlite3_reset(repair->read);
    repair->at_end = status == STATUS_OK && repair->sheet.count < repair->chunk.now;
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
    const bool of_parent = repair->phase == PHASE_FILL;
    const struct rollup_scope scope = {
        .levels = levels, .groupings = groupings, .gaps = of_parent ? no_gaps : repair->kept_apart};
    enum status status =
        rollup_fold_begin(repair->fold, &(struct rollup_slice){.sheet = &repair->sheet}, err);
    if (status == STATUS_OK)
        status = rollup_fold_plan(repair->fold, &scope, err);
    repair->folding = status == STATUS_OK;
    repair->metric = 0;
    repair->slowest_ns = 0;
    return status;
}

// Folds one metric of the chunk.
static enum status fold_metric(struct rollup_repair *repair, struct error *err)
{
    const struct rollup_target target = {.metric = &repair->metrics->list[repair->metric]};
    struct gap_span damaged;
    const uint64_t began_ns = clock_monotonic_ns();
    const enum status status = rollup_fold_metric(repair->fold, &target, &damaged, err);
    const uint64_t took_ns = clock_monotonic_ns() - began_ns;
    if (took_ns > repair->slowest_ns)
        repair->slowest_ns = took_ns;
    if (++repair->metric == repair->metrics->count) {
        if (!repair->at_end || repair->slowest_ns > STEP_NS)
            pace_took(&repair->chunk, repair->slowest_ns, STEP_NS);
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
    const unsigned levels =
        is_at_edge(repair) ? 1U << ROLLUP_MINUTE : 1U << ROLLUP_MINUTE | 1U << ROLLUP_HOUR;
    enum status status = take_records(repair, &repair->made, levels, ROLLUP_ALL_GROUPINGS, err);
    if (status != STATUS_OK || !records_are_done(repair))
        return status;
    status = find_parents(repair, err);
    if (status == STATUS_OK)
        begin_parent(repair, 0);
    return status;
}

// A parent's rows of one metric and grouping from its children that are kept.
static struct rollup_merge_job merge_job(const struct rollup_repair *repair)
{
    const struct parent *parent = &repair->parents[repair->parent];
    const struct rollup_metric *metric = &repair->metrics->list[repair->metric];
    const enum rollup_level level = (enum rollup_level)(parent->level - 1);
    struct rollup_merge_job job = {.metric = metric->number,
                                   .is_derived = metric->source == ROLLUP_RATIOS,
                                   .grouping = (enum rollup_grouping)repair->grouping,
                                   .level = parent->level,
                                   .started_ns = parent->span.since_ns};
    int64_t child = parent->span.since_ns;
    for (unsigned i = 0; i < CHILDREN_MAX && child < parent->span.until_ns; i++) {
        if (!(parent->missing[i] & 1U << repair->grouping))
            job.children[job.child_count++] = child;
        child = rollup_next(level, child);
    }
    return job;
}

// Some series of it.  Where a child is damaged, the parent's rows are left as they are,
// and what is at work begins anew when something was done about the child.
static enum status merge_or_heal(struct rollup_repair *repair, bool *left, bool *healed,
                                 struct error *err)
{
    const struct rollup_merge_job job = merge_job(repair);
    struct cell_key damaged;
    enum status status = rollup_merge_step(repair->merge, &job, left, &damaged, err);
    *healed = status == STATUS_CORRUPT && damaged.metric != 0;
    if (!*healed)
        return status;
    status = rollup_heal_row(&repair->patient, &damaged, err);
    if (status == STATUS_OK)
        rollup_repair_stop(repair);
    return status;
}

// An hour that cannot be made goes, with the gap that was left in its place.
static enum status erase_given_up(struct rollup_repair *repair, bool *left, struct error *err)
{
    const struct parent *parent = &repair->parents[repair->parent];
    const bool is_given_up =
        parent->level == ROLLUP_HOUR && repair->given_up & 1U << repair->grouping;
    return is_given_up ? erase(repair, (enum rollup_grouping)repair->grouping, ROLLUP_HOUR,
                               parent->span.since_ns, parent->span.since_ns, left, err)
                       : STATUS_OK;
}

static enum status merge_some(struct rollup_repair *repair, struct error *err)
{
    bool healed = false, left = false;
    const bool is_made = repair->parents[repair->parent].groupings & 1U << repair->grouping;
    enum status status =
        is_made ? merge_or_heal(repair, &left, &healed, err) : erase_given_up(repair, &left, err);
    if (status != STATUS_OK || healed || left)
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
