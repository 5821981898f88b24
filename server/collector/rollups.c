#include "server/collector/rollups.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/gap_table.h"
#include "common/store/rollup.h"
#include "common/sys/clock.h"
#include "common/sys/log.h"
#include "server/collector/rollup_fold.h"
#include "server/collector/rollup_heal.h"
#include "server/collector/rollup_repair.h"
#include "server/collector/rollup_sheet.h"
#include "server/collector/rollup_sparse.h"
#include "server/collector/rollup_values.h"

enum {
    TAIL_ROWS = 2000, // so many are read raw without anyone noticing
    PRUNE_REST_TIMES = 4,
    STEP_NS = 10000000,      // of folding within a group's transaction
    STEP_ALL_NS = 100000000, // where there is nothing else to do
    METRIC_NS_MOST = 50000000,
    METRIC_NS_BEHIND = 150000000, // of one that small sheets do not keep up with
    READ_ROWS = 2048,             // in one slice
    // Bounds of a sheet's bounds, whatever they cost; a group is some rollups a metric.
    ROWS_LEAST = 4 * READ_ROWS,
    ROWS_FIRST = 16 * READ_ROWS, // and most while others wait
    GROUPS_LEAST = 1024,
    GROUPS_FIRST = 512,
    HOSTS = 1024, // runs whose host is remembered
    NO_KIND = RECORD_KIND_COUNT,
};

// After folding or reading the thread is left alone, times what that took, by what others
// have for it to do: much, little, and nothing since QUIET_NS.
enum { REST_TIMES = 20, REST_TIMES_LIGHT = 1, LIGHT_ROWS_PER_SECOND = 20000 };
#define QUIET_NS UINT64_C(200000000)
#define RATE_NS  UINT64_C(100000000) // over which rows are counted

#define AGE_NS         UINT64_C(60000000000) // the longest that records stay in memory alone
#define RETRY_FIRST_NS UINT64_C(1000000000)
#define RETRY_LAST_NS  UINT64_C(60000000000)

// Of one kind.  Rows with ids up to `fed` are in the tables or in one of the sheets,
// those above in none; of a metric all up to its watermark are in the tables.
struct kind {
    const struct rollup_metrics *metrics;
    struct rollup_sheet filling, folding;
    int64_t fed, last; // `last`: the highest id there is
    int64_t watermarks[ROLLUP_METRICS_MAX];
    uint64_t since_ns; // when the first of `filling` came
    // In a sheet: so many that folding a metric takes no longer than it may.
    size_t rows_most, groups_most;
    uint64_t slowest_ns; // metric of the round under way
    sqlite3_stmt *read;
};

struct host {
    int64_t run, host;
};

struct rollups {
    sqlite3 *db;
    sqlite3_stmt *save, *find_host;
    struct rollup_fold *fold;
    struct rollup_repair *repair;
    struct rollup_sparse *sparse;
    int64_t wall_ns; // as told last
    struct kind kinds[RECORD_KIND_COUNT];
    struct host hosts[HOSTS];
    struct gap_set gaps[ROLLUP_GROUPING_COUNT]; // of the kind at work
    unsigned active;                            // the kind whose round is under way, or NO_KIND
    unsigned next_metric;                       // of it
    bool begun;                                 // the fold has its sheet
    bool gaps_known, planned;                   // for it
    bool repaired; // nothing is left to be made again, as far as is known
    bool busy;     // others have work for the thread
    bool stale;    // what is in memory says nothing
    // Rows that come in: since when they are counted, and whether those before were few.
    uint64_t heard_ns, counted_ns, counted_rows;
    bool light;
    uint64_t rest_ns; // no fold and no reading before, unless it presses
    uint64_t prune_rest_ns;
    uint64_t retry_ns; // no fold and no reading before, after a failure
    uint64_t pause_ns; // how long to wait after the next failure
    bool complained;
    uint64_t repair_rest_ns; // no repair before, after one failed
    bool repair_complained;
};

// ---- Opening -----------------------------------------------------------------------------

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "rollups: out of memory");
}

static enum status read_watermarks(struct rollups *rollups, unsigned k, struct error *err)
{
    struct kind *kind = &rollups->kinds[k];
    sqlite3_stmt *stmt = NULL;
    enum status status = database_prepare(
        rollups->db, &stmt, "SELECT watermark FROM rollup_state WHERE metric = ?", false, err);
    kind->fed = INT64_MAX;
    for (unsigned m = 0; m < kind->metrics->count && status == STATUS_OK; m++) {
        (void)sqlite3_bind_int(stmt, 1, kind->metrics->list[m].number);
        const int rc = sqlite3_step(stmt);
        kind->watermarks[m] = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            status = database_error(rollups->db, "rollups", err);
        (void)sqlite3_reset(stmt);
        if (kind->watermarks[m] < kind->fed)
            kind->fed = kind->watermarks[m];
    }
    (void)sqlite3_finalize(stmt);
    return status;
}

static void clear_sheets(struct kind *kind)
{
    rollup_sheet_clear(&kind->filling, true);
    rollup_sheet_clear(&kind->folding, true);
}

// Reads how far the tables are; memory begins empty.
static enum status load(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < RECORD_KIND_COUNT && status == STATUS_OK; k++) {
        struct kind *kind = &rollups->kinds[k];
        clear_sheets(kind);
        if (kind->metrics->count == 0)
            continue;
        status = read_watermarks(rollups, k, err);
        if (status == STATUS_OK)
            status = gap_last_id(rollups->db, (enum record_kind)k, &kind->last, err);
    }
    rollups->stale = status != STATUS_OK;
    return status;
}

enum status rollups_new(struct rollups **out, sqlite3 *db, struct error *err)
{
    struct rollups *rollups = calloc(1, sizeof *rollups);
    if (!rollups)
        return out_of_memory(err);
    rollups->db = db;
    rollups->active = NO_KIND;
    rollups->pause_ns = RETRY_FIRST_NS;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        struct kind *kind = &rollups->kinds[k];
        kind->metrics = rollup_metrics_of((enum record_kind)k);
        kind->rows_most = ROWS_FIRST;
        kind->groups_most = GROUPS_FIRST;
        rollup_sheet_init(&kind->filling, (enum record_kind)k);
        rollup_sheet_init(&kind->folding, (enum record_kind)k);
    }
    enum status status = rollup_fold_new(&rollups->fold, db, err);
    if (status == STATUS_OK)
        status = rollup_repair_new(&rollups->repair, db, err);
    if (status == STATUS_OK)
        status = rollup_sparse_new(&rollups->sparse, db, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &rollups->save,
                                  "INSERT OR REPLACE INTO rollup_state(metric, watermark)"
                                  " VALUES(?, ?)",
                                  true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &rollups->find_host, "SELECT host FROM run WHERE run = ?",
                                  true, err);
    if (status == STATUS_OK)
        status = load(rollups, err);
    if (status != STATUS_OK) {
        rollups_free(rollups);
        return status;
    }
    *out = rollups;
    return STATUS_OK;
}

void rollups_free(struct rollups *rollups)
{
    if (!rollups)
        return;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        rollup_sheet_deinit(&rollups->kinds[k].filling);
        rollup_sheet_deinit(&rollups->kinds[k].folding);
        (void)sqlite3_finalize(rollups->kinds[k].read);
    }
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++)
        gap_set_deinit(&rollups->gaps[g]);
    rollup_fold_free(rollups->fold);
    rollup_repair_free(rollups->repair);
    rollup_sparse_free(rollups->sparse);
    (void)sqlite3_finalize(rollups->save);
    (void)sqlite3_finalize(rollups->find_host);
    free(rollups);
}

// ---- Taking --------------------------------------------------------------------------------

static bool find_host(struct rollups *rollups, int64_t run, int64_t *out)
{
    struct host *host = &rollups->hosts[(uint64_t)run % HOSTS];
    if (host->run != run) {
        (void)sqlite3_bind_int64(rollups->find_host, 1, run);
        const bool found = sqlite3_step(rollups->find_host) == SQLITE_ROW;
        if (found)
            *host = (struct host){run, sqlite3_column_int64(rollups->find_host, 0)};
        (void)sqlite3_reset(rollups->find_host);
        if (!found)
            return false;
    }
    *out = host->host;
    return true;
}

static bool is_quiet(const struct rollups *rollups, uint64_t now_ns)
{
    return !rollups->busy && now_ns >= rollups->heard_ns + QUIET_NS;
}

// Where nobody waits, a sheet is as large as it may be: the fewer rollups a record.
static bool is_full(const struct rollups *rollups, const struct kind *kind, uint64_t now_ns)
{
    const struct rollup_sheet *sheet = &kind->filling;
    if (!rollup_sheet_fits(sheet, 1))
        return true;
    return !is_quiet(rollups, now_ns) &&
           (sheet->count >= kind->rows_most || sheet->group_count >= kind->groups_most);
}

static size_t within(size_t value, size_t least, size_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

// A metric's rows are written in one transaction, for which others wait, where there are any.
static void adapt(struct kind *kind)
{
    const bool is_behind = kind->last - kind->fed > ROWS_FIRST;
    const uint64_t most_ns = is_behind ? METRIC_NS_BEHIND : METRIC_NS_MOST;
    if (kind->slowest_ns > most_ns) {
        kind->rows_most = kind->folding.count / 2;
        kind->groups_most = kind->folding.group_count / 2;
    } else if (kind->slowest_ns < most_ns / 4) {
        kind->rows_most *= 2;
        kind->groups_most *= 2;
    }
    kind->rows_most = within(kind->rows_most, ROWS_LEAST, ROWS_FIRST);
    kind->groups_most = within(kind->groups_most, GROUPS_LEAST, ROWS_FIRST);
}

static enum status take(struct rollups *rollups, struct kind *kind,
                        const struct rollups_batch *batch)
{
    const size_t count = batch->table->count - batch->first_row;
    int64_t host = 0;
    if (is_full(rollups, kind, batch->now_ns) || kind->filling.count + count > kind->rows_most ||
        !rollup_sheet_fits(&kind->filling, count) || !find_host(rollups, batch->run, &host))
        return STATUS_FULL;
    kind->filling.groups_most = kind->groups_most;
    if (kind->filling.count == 0)
        kind->since_ns = batch->now_ns;
    return rollup_sheet_add(&kind->filling, &(struct rollup_batch){.table = batch->table,
                                                                   .first_row = batch->first_row,
                                                                   .first_id = batch->first_id,
                                                                   .host = host,
                                                                   .names = batch->names});
}

static void note_rate(struct rollups *rollups, size_t count, uint64_t now_ns)
{
    rollups->heard_ns = now_ns;
    rollups->counted_rows += count;
    const uint64_t over_ns = now_ns - rollups->counted_ns;
    if (over_ns < RATE_NS)
        return;
    rollups->light = (double)rollups->counted_rows * 1e9 < (double)over_ns * LIGHT_ROWS_PER_SECOND;
    rollups->counted_rows = 0;
    rollups->counted_ns = now_ns;
}

void rollups_add(struct rollups *rollups, const struct rollups_batch *batch)
{
    struct kind *kind = &rollups->kinds[batch->table->kind];
    const size_t count = batch->table->count - batch->first_row;
    note_rate(rollups, count, batch->now_ns);
    if (rollups->stale || kind->metrics->count == 0 || count == 0)
        return;
    // What is left out here makes the kind fall behind, and is read later.
    const bool follows = kind->fed == kind->last;
    kind->last = batch->first_id + (int64_t)count - 1;
    if (follows && take(rollups, kind, batch) == STATUS_OK)
        kind->fed = kind->filling.ids[kind->filling.count - 1];
}

// ---- Forgetting ------------------------------------------------------------------------------

static void end_round(struct rollups *rollups)
{
    rollup_fold_end(rollups->fold);
    rollups->active = NO_KIND;
    rollups->begun = false;
    rollups->gaps_known = false;
}

void rollups_forget(struct rollups *rollups)
{
    end_round(rollups);
    rollup_fold_forget(rollups->fold);
    rollup_repair_stop(rollups->repair);
    rollup_sparse_forget(rollups->sparse);
    rollups->repaired = false;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        clear_sheets(&rollups->kinds[k]);
    for (unsigned i = 0; i < HOSTS; i++)
        rollups->hosts[i] = (struct host){0};
    rollups->stale = true;
}

void rollups_rows_added(struct rollups *rollups, enum record_kind kind)
{
    struct error err;
    struct kind *of = &rollups->kinds[kind];
    if (of->metrics->count > 0 && gap_last_id(rollups->db, kind, &of->last, &err) != STATUS_OK)
        rollups->stale = true;
}

void rollups_rows_removed(struct rollups *rollups, enum record_kind kind)
{
    struct kind *of = &rollups->kinds[kind];
    rollups_gaps_changed(rollups); // of what was cleared
    if (of->filling.count == 0 && of->folding.count == 0)
        return;
    if (rollups->active == (unsigned)kind)
        end_round(rollups);
    clear_sheets(of);
    of->fed = INT64_MAX;
    for (unsigned m = 0; m < of->metrics->count; m++)
        if (of->watermarks[m] < of->fed)
            of->fed = of->watermarks[m];
}

void rollups_gaps_changed(struct rollups *rollups)
{
    rollups->gaps_known = false;
    rollups->repaired = false;
    rollup_repair_stop(rollups->repair);
}

// ---- Folding ---------------------------------------------------------------------------------

// Records that are old are folded, however little the last fold was ago; a full memory
// is no reason to: what comes then is read later, when there is less to do.
static bool presses(const struct kind *kind, uint64_t now_ns)
{
    return kind->filling.count > 0 && now_ns - kind->since_ns >= AGE_NS;
}

static bool has_rested(const struct rollups *rollups, uint64_t now_ns)
{
    return now_ns >= rollups->rest_ns || is_quiet(rollups, now_ns);
}

// After work that began then.
static void rest(struct rollups *rollups, uint64_t began_ns)
{
    const uint64_t now_ns = clock_monotonic_ns();
    const bool light = rollups->light && !rollups->busy;
    rollups->rest_ns = now_ns + (light ? REST_TIMES_LIGHT : REST_TIMES) * (now_ns - began_ns);
}

// The larger a sheet, the fewer rollups a record: where there is more to read, it is
// filled first.
static bool is_due(const struct rollups *rollups, const struct kind *kind, uint64_t now_ns)
{
    const bool is_ready = is_full(rollups, kind, now_ns) ||
                          (kind->filling.count >= TAIL_ROWS && kind->fed == kind->last);
    return presses(kind, now_ns) || (is_ready && has_rested(rollups, now_ns));
}

// Whether the kind's watermarks must stay where they are.
static bool is_held(const struct rollups *rollups, unsigned k)
{
    return (unsigned)rollup_repair_kind(rollups->repair) == k;
}

bool rollups_are_due(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || rollups->stale)
        return false;
    if (rollups->active != NO_KIND &&
        (has_rested(rollups, now_ns) || presses(&rollups->kinds[rollups->active], now_ns)))
        return true;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (is_due(rollups, &rollups->kinds[k], now_ns) && !is_held(rollups, k))
            return true;
    return false;
}

// The kind to fold next, or NO_KIND.
static unsigned choose(const struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns)
{
    unsigned chosen = NO_KIND;
    size_t most = 0;
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++) {
        const struct kind *kind = &rollups->kinds[k];
        if (kind->filling.count > most && !is_held(rollups, k) &&
            (pace != ROLLUPS_DUE || is_due(rollups, kind, now_ns))) {
            chosen = k;
            most = kind->filling.count;
        }
    }
    return chosen;
}

static void begin_round(struct rollups *rollups, unsigned k)
{
    struct kind *kind = &rollups->kinds[k];
    const struct rollup_sheet full = kind->filling;
    kind->filling = kind->folding;
    kind->folding = full;
    kind->slowest_ns = 0;
    rollups->active = k;
    rollups->next_metric = 0;
    rollups->begun = false;
    rollups->gaps_known = false;
}

static enum status read_gaps(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK; g++)
        status = gap_set_read(&rollups->gaps[g], rollups->db, (enum record_kind)rollups->active,
                              (enum rollup_grouping)g, false, err);
    rollups->gaps_known = status == STATUS_OK;
    rollups->planned = false;
    return status;
}

static enum status save_watermark(struct rollups *rollups, int metric, int64_t id,
                                  struct error *err)
{
    (void)sqlite3_bind_int(rollups->save, 1, metric);
    (void)sqlite3_bind_int64(rollups->save, 2, id);
    return database_run(rollups->db, rollups->save, err);
}

// Where nothing is in memory, all that was fed is in the tables, and metrics that do not
// say so yet do then: records above their watermarks were cleared.
static enum status level_watermarks(struct rollups *rollups, struct kind *kind, struct error *err)
{
    enum status status = STATUS_OK;
    if (kind->filling.count > 0 || kind->folding.count > 0)
        return STATUS_OK;
    for (unsigned m = 0; m < kind->metrics->count && status == STATUS_OK; m++) {
        if (kind->watermarks[m] >= kind->fed)
            continue;
        status = save_watermark(rollups, kind->metrics->list[m].number, kind->fed, err);
        if (status == STATUS_OK)
            kind->watermarks[m] = kind->fed;
    }
    return status;
}

// Takes up the sheet of the round.
static enum status begin_fold(struct rollups *rollups, struct error *err)
{
    const struct rollup_sheet *sheet = &rollups->kinds[rollups->active].folding;
    bool added = false;
    enum status status = rollup_fold_begin(rollups->fold, sheet, err);
    if (status == STATUS_OK)
        status = read_gaps(rollups, err);
    if (status == STATUS_OK)
        status = rollup_sparse_foresee(rollups->sparse, rollup_fold_groups(rollups->fold),
                                       rollups->gaps, rollups->wall_ns, &added, err);
    if (added)
        rollups->gaps_known = false;
    rollups->begun = status == STATUS_OK;
    return status;
}

// Sees to it that the sheet's rows are planned by the gaps there are.
static enum status plan(struct rollups *rollups, struct error *err)
{
    enum status status = STATUS_OK;
    if (!rollups->begun)
        status = begin_fold(rollups, err);
    if (status == STATUS_OK && !rollups->gaps_known)
        status = read_gaps(rollups, err);
    if (status == STATUS_OK && !rollups->planned)
        status = rollup_fold_plan(rollups->fold,
                                  &(struct rollup_scope){.levels = ROLLUP_ALL_LEVELS,
                                                         .groupings = ROLLUP_ALL_GROUPINGS,
                                                         .gaps = rollups->gaps},
                                  err);
    rollups->planned = status == STATUS_OK;
    return status;
}

// Folds one metric of the round under way.
static enum status fold_metric(struct rollups *rollups, struct gap_span *damaged, struct error *err)
{
    struct kind *kind = &rollups->kinds[rollups->active];
    const unsigned m = rollups->next_metric;
    enum status status = plan(rollups, err);
    if (status != STATUS_OK)
        return status;
    const int64_t last = kind->folding.ids[kind->folding.count - 1];
    const struct rollup_target target = {
        .metric = &kind->metrics->list[m],
        .first_row = rollup_sheet_above(&kind->folding, kind->watermarks[m])};
    if (target.first_row < kind->folding.count) {
        const uint64_t began_ns = clock_thread_ns();
        status = rollup_fold_metric(rollups->fold, &target, damaged, err);
        const uint64_t took_ns = clock_thread_ns() - began_ns;
        if (took_ns > kind->slowest_ns)
            kind->slowest_ns = took_ns;
        if (status == STATUS_OK)
            status = save_watermark(rollups, target.metric->number, last, err);
        if (status != STATUS_OK)
            return status;
        kind->watermarks[m] = last;
    }
    if (++rollups->next_metric < kind->metrics->count)
        return STATUS_OK;
    adapt(kind);
    // Memory for a burst is not kept for ever.
    rollup_sheet_clear(&kind->folding, kind->folding.room > 4 * TAIL_ROWS);
    end_round(rollups);
    return level_watermarks(rollups, kind, err);
}

static enum status fold_some(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                             struct gap_span *damaged, struct error *err)
{
    const uint64_t began_ns = clock_monotonic_ns();
    const uint64_t limit_ns = pace == ROLLUPS_ALL ? STEP_ALL_NS : STEP_NS;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && clock_monotonic_ns() - began_ns < limit_ns) {
        if (rollups->active == NO_KIND) {
            const unsigned next = choose(rollups, pace, now_ns);
            if (next == NO_KIND)
                break;
            begin_round(rollups, next);
        }
        status = fold_metric(rollups, damaged, err);
        if (pace == ROLLUPS_ONE)
            break;
    }
    rest(rollups, began_ns);
    return status;
}

// After a failure, when the savepoint has been undone: what to do about it.
static void fail(struct rollups *rollups, const struct error *err, uint64_t now_ns)
{
    if (!rollups->complained)
        log_write(LOG_LEVEL_WARNING, "%s (rollups wait; records are stored all the same)",
                  err->text);
    rollups->complained = true;
    rollups->retry_ns = now_ns + rollups->pause_ns;
    rollups->pause_ns =
        2 * rollups->pause_ns < RETRY_LAST_NS ? 2 * rollups->pause_ns : RETRY_LAST_NS;
}

enum status rollups_flush(struct rollups *rollups, enum rollups_pace pace, uint64_t now_ns,
                          bool *left, struct error *err)
{
    *left = false;
    if (rollups->stale || now_ns < rollups->retry_ns)
        return STATUS_OK;
    struct gap_span damaged = {0};
    enum status status = database_exec(rollups->db, "SAVEPOINT rollups", err);
    if (status == STATUS_OK)
        status = fold_some(rollups, pace, now_ns, &damaged, err);
    if (status == STATUS_OK) {
        rollups->pause_ns = RETRY_FIRST_NS;
        rollups->complained = false;
        *left = pace != ROLLUPS_DUE &&
                (rollups->active != NO_KIND || choose(rollups, pace, now_ns) != NO_KIND);
        return database_exec(rollups->db, "RELEASE rollups", err);
    }
    const unsigned kind = rollups->active;
    rollups->repaired = false;
    rollups_forget(rollups);
    if (sqlite3_get_autocommit(rollups->db))
        return status; // the transaction went with it
    struct error again;
    enum status undone = database_exec(rollups->db, "ROLLBACK TO rollups; RELEASE rollups", &again);
    if (undone == STATUS_OK && damaged.since_ns < damaged.until_ns) {
        log_write(LOG_LEVEL_WARNING, "%s (it is made again from the records)", err->text);
        return rollup_heal_span(rollups->db, (enum record_kind)kind, &damaged, err);
    }
    fail(rollups, err, now_ns);
    return undone;
}

// ---- Catching up -------------------------------------------------------------------------------

// The kind that is behind and has room, or NO_KIND.  One sheet at a time is large enough:
// while it is folded none is filled.
static unsigned lagging(const struct rollups *rollups, uint64_t now_ns)
{
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (rollups->kinds[k].fed < rollups->kinds[k].last &&
            !is_full(rollups, &rollups->kinds[k], now_ns) &&
            rollups->kinds[k].folding.count <= ROWS_FIRST)
            return k;
    return NO_KIND;
}

bool rollups_are_behind(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || !has_rested(rollups, now_ns))
        return false;
    return rollups->stale || lagging(rollups, now_ns) != NO_KIND;
}

static enum status prepare_read(struct rollups *rollups, unsigned k, struct error *err)
{
    if (rollups->kinds[k].read)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(rollups->db);
    sqlite3_str_appendall(sql, "SELECT ");
    rollup_sheet_select(sql, (enum record_kind)k);
    sqlite3_str_appendf(sql, " FROM \"%w\" t WHERE t.id > ? AND t.id <= ? ORDER BY t.id LIMIT %d",
                        record_kind_info((enum record_kind)k)->name, READ_ROWS);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(rollups->db, &rollups->kinds[k].read, text, true, err)
             : out_of_memory(err);
    sqlite3_free(text);
    return status;
}

// All there is was fed.
static enum status end_reading(struct rollups *rollups, struct kind *kind, struct error *err)
{
    kind->fed = kind->last;
    if (kind->filling.count > 0 || kind->folding.count > 0)
        return STATUS_OK;
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = level_watermarks(rollups, kind, err);
    if (status == STATUS_OK)
        status = database_exec(rollups->db, "COMMIT", err);
    if (status != STATUS_OK)
        database_rollback(rollups->db);
    return status;
}

static enum status read_some(struct rollups *rollups, unsigned k, uint64_t now_ns,
                             struct error *err)
{
    struct kind *kind = &rollups->kinds[k];
    enum status status = prepare_read(rollups, k, err);
    if (status != STATUS_OK)
        return status;
    if (kind->filling.count == 0)
        kind->since_ns = now_ns;
    (void)sqlite3_bind_int64(kind->read, 1, kind->fed);
    (void)sqlite3_bind_int64(kind->read, 2, kind->last);
    int rc = SQLITE_DONE;
    unsigned rows = 0;
    kind->filling.groups_most = is_quiet(rollups, now_ns) ? ROLLUP_SHEET_ROWS : kind->groups_most;
    while (status == STATUS_OK && (rc = sqlite3_step(kind->read)) == SQLITE_ROW) {
        status = is_full(rollups, kind, now_ns) ? STATUS_FULL
                                                : rollup_sheet_add_row(&kind->filling, kind->read);
        if (status == STATUS_OK) {
            kind->fed = kind->filling.ids[kind->filling.count - 1];
            rows++;
        }
    }
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(rollups->db, "rollups", err);
    (void)sqlite3_reset(kind->read);
    if (status == STATUS_FULL)
        return STATUS_OK; // the rest after the next fold
    if (status == STATUS_NOMEM)
        return out_of_memory(err);
    if (status == STATUS_OK && rows < READ_ROWS)
        return end_reading(rollups, kind, err);
    return status;
}

void rollups_catch_up(struct rollups *rollups, uint64_t now_ns, bool is_busy)
{
    struct error err = {.text = ""};
    rollups->busy = is_busy;
    if (now_ns < rollups->retry_ns || !has_rested(rollups, now_ns))
        return;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = rollups->stale ? load(rollups, &err) : STATUS_OK;
    const unsigned k = status == STATUS_OK ? lagging(rollups, now_ns) : NO_KIND;
    if (k != NO_KIND)
        status = read_some(rollups, k, now_ns, &err);
    if (rollups->stale || k != NO_KIND)
        rest(rollups, began_ns);
    if (status != STATUS_OK) {
        rollups_forget(rollups);
        fail(rollups, &err, now_ns);
    }
}

// ---- Repair ------------------------------------------------------------------------------------

// Whether all metrics of a kind hold the same records.
static bool is_even(const struct rollups *rollups, unsigned k)
{
    const struct kind *kind = &rollups->kinds[k];
    for (unsigned m = 1; m < kind->metrics->count; m++)
        if (kind->watermarks[m] != kind->watermarks[0])
            return false;
    return kind->metrics->count > 0 && rollups->active != k;
}

bool rollups_need_repair(const struct rollups *rollups, uint64_t now_ns)
{
    return !rollups->stale && !rollups->repaired && now_ns >= rollups->retry_ns &&
           now_ns >= rollups->repair_rest_ns;
}

// Takes up the next hour of whatever kind, where there is one.  A kind that is not even
// is looked at again later.
static enum status begin_repair(struct rollups *rollups, struct error *err)
{
    bool found = false, all_even = true;
    enum status status = STATUS_OK;
    for (unsigned k = 0; k < RECORD_KIND_COUNT && status == STATUS_OK && !found; k++) {
        if (rollups->kinds[k].metrics->count == 0)
            continue;
        if (is_even(rollups, k))
            status = rollup_repair_begin(rollups->repair, (enum record_kind)k,
                                         rollups->kinds[k].watermarks[0], &found, err);
        else
            all_even = false;
    }
    rollups->repaired = status == STATUS_OK && !found && all_even;
    return status;
}

static enum status repair_some(struct rollups *rollups, struct error *err)
{
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", err);
    const uint64_t began_ns = clock_monotonic_ns();
    while (status == STATUS_OK && !is_held(rollups, NO_KIND) &&
           clock_monotonic_ns() - began_ns < STEP_NS)
        status = rollup_repair_step(rollups->repair, err);
    if (status == STATUS_OK)
        status = database_exec(rollups->db, "COMMIT", err);
    if (status != STATUS_OK)
        database_rollback(rollups->db);
    if (status == STATUS_OK && is_held(rollups, NO_KIND))
        rollups->gaps_known = false; // one of them is gone
    return status;
}

// What is in memory is none of a repair's: folding goes on, and what is not repaired is
// read from the records.
static void fail_repair(struct rollups *rollups, const struct error *err, uint64_t now_ns)
{
    if (!rollups->repair_complained)
        log_write(LOG_LEVEL_WARNING, "%s (what was cleared is read without rollups)", err->text);
    rollups->repair_complained = true;
    rollups->repair_rest_ns = now_ns + RETRY_LAST_NS;
    rollup_repair_stop(rollups->repair);
}

bool rollups_repair(struct rollups *rollups, uint64_t now_ns)
{
    struct error err = {.text = ""};
    if (!rollups_need_repair(rollups, now_ns))
        return false;
    enum status status = STATUS_OK;
    if (is_held(rollups, NO_KIND))
        status = begin_repair(rollups, &err);
    const bool works = status == STATUS_OK && !is_held(rollups, NO_KIND);
    if (works)
        status = repair_some(rollups, &err);
    if (status != STATUS_OK)
        fail_repair(rollups, &err, now_ns);
    else if (works && is_held(rollups, NO_KIND))
        rollups->repair_complained = false;
    return works;
}

// ---- Pruning
// -------------------------------------------------------------------------------------

void rollups_tell_time(struct rollups *rollups, int64_t wall_ns)
{
    rollups->wall_ns = wall_ns;
}

bool rollups_prune(struct rollups *rollups, uint64_t now_ns)
{
    struct error err = {.text = ""};
    bool added = false;
    if (rollups->stale || now_ns < rollups->retry_ns || now_ns < rollups->prune_rest_ns ||
        !rollup_sparse_is_due(rollups->sparse, rollups->wall_ns))
        return false;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", &err);
    if (status == STATUS_OK)
        status = rollup_sparse_step(rollups->sparse, rollups->wall_ns, &added, &err);
    while (status == STATUS_OK && rollup_sparse_is_erasing(rollups->sparse) &&
           clock_monotonic_ns() - began_ns < STEP_NS)
        status = rollup_sparse_erase(rollups->sparse, &err);
    if (status == STATUS_OK)
        status = database_exec(rollups->db, "COMMIT", &err);
    rollups->prune_rest_ns = now_ns + PRUNE_REST_TIMES * (clock_monotonic_ns() - began_ns);
    if (status != STATUS_OK) {
        database_rollback(rollups->db);
        rollups_forget(rollups);
        fail(rollups, &err, now_ns);
    } else if (added) {
        rollups_gaps_changed(rollups);
    }
    return true;
}
