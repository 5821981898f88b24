#include "server/collector/rollup_sparse.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "common/store/database.h"

// A bucket is over so long after its end.
#define OVER_NS INT64_C(600000000000)

// Levels that may be too fine, and how many records a row of them must have.  At a
// window's edges as many are read one by one for each row that is not there: of twenty
// models at most 2,400 in an hour of minutes, 1,920 in a day of hours.  Where there are
// more series, and fewer ask, what the rows take counts for more.
enum { LEVELS = ROLLUP_MONTH };
static const uint64_t records_a_row[ROLLUP_GROUPING_COUNT][LEVELS] = {
    // minutes, hours, days
    [ROLLUP_FULL] = {8, 32, 32},
    [ROLLUP_MODEL] = {2, 4, 4},
    [ROLLUP_HOST] = {8, 32, 32},
    [ROLLUP_ALL] = {2, 4, 4},
};

// How many buckets back are looked at when the collector begins, or the clock was set:
// that is what more time than this since the last look, or less than none, tells.
enum { LOOK_BACK = 3 };
#define CLOCK_SET_NS INT64_C(8640000000000000) // a hundred days

// Rows deleted in one step.
enum { ERASE_ROWS = 1024 };

// Gaps that a sheet adds of a grouping and level: all of a kind's are read again and again.
enum { SPANS_MAX = 64 };

// Of a kind and level: buckets of the coarser level up to here were looked at.
struct progress {
    int64_t until_ns;
    bool begun;
};

struct rollup_sparse {
    sqlite3 *db;
    sqlite3_stmt *count, *any, *erase;
    struct progress progress[RECORD_KIND_COUNT][LEVELS];
    // Rows under way to be deleted: of the level and finer ones, metric by metric.
    bool erasing;
    struct gap gap;
    unsigned metric, level;
};

enum status rollup_sparse_new(struct rollup_sparse **out, sqlite3 *db, struct error *err)
{
    struct rollup_sparse *sparse = calloc(1, sizeof *sparse);
    if (!sparse)
        return error_set(err, STATUS_NOMEM, "rollups: out of memory");
    sparse->db = db;
    enum status status = database_prepare(db, &sparse->count,
                                          "SELECT count(*), total(count) FROM rollup"
                                          " WHERE metric = ? AND grouping = ? AND level = ?"
                                          " AND started_ns >= ? AND started_ns < ?",
                                          true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &sparse->any,
                                  "SELECT 1 FROM rollup WHERE metric = ? AND grouping = ?"
                                  " AND level = ? AND started_ns >= ? AND started_ns < ? LIMIT 1",
                                  true, err);
    if (status == STATUS_OK)
        status = database_prepare(db, &sparse->erase,
                                  "DELETE FROM rollup WHERE (metric, grouping, level,"
                                  " started_ns, series) IN (SELECT metric, grouping, level,"
                                  " started_ns, series FROM rollup WHERE metric = ?"
                                  " AND grouping = ? AND level = ? AND started_ns >= ?"
                                  " AND started_ns < ? LIMIT ?)",
                                  true, err);
    if (status != STATUS_OK) {
        rollup_sparse_free(sparse);
        return status;
    }
    *out = sparse;
    return STATUS_OK;
}

void rollup_sparse_free(struct rollup_sparse *sparse)
{
    if (!sparse)
        return;
    (void)sqlite3_finalize(sparse->count);
    (void)sqlite3_finalize(sparse->any);
    (void)sqlite3_finalize(sparse->erase);
    free(sparse);
}

void rollup_sparse_forget(struct rollup_sparse *sparse)
{
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        for (unsigned level = 0; level < LEVELS; level++)
            sparse->progress[kind][level] = (struct progress){0};
    sparse->erasing = false;
}

// The metric that stands for its kind: one that all records have.
static int main_metric(enum record_kind kind)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(kind);
    const struct record_kind_info *info = record_kind_info(kind);
    for (unsigned m = 0; m < metrics->count; m++)
        if (metrics->list[m].source != ROLLUP_RATIOS &&
            !info->columns[metrics->list[m].columns[0]].maybe)
            return metrics->list[m].number;
    return metrics->list[0].number;
}

static bool is_over(int64_t bucket_end_ns, int64_t wall_ns)
{
    return wall_ns > OVER_NS && bucket_end_ns <= wall_ns - OVER_NS;
}

static void bind_gap(sqlite3_stmt *stmt, const struct gap *gap)
{
    (void)sqlite3_bind_int(stmt, 1, main_metric(gap->kind));
    (void)sqlite3_bind_int(stmt, 2, (int)gap->grouping);
    (void)sqlite3_bind_int(stmt, 3, (int)gap->level);
    (void)sqlite3_bind_int64(stmt, 4, gap->since_ns);
    (void)sqlite3_bind_int64(stmt, 5, gap->until_ns);
}

static enum status has_rows(struct rollup_sparse *sparse, const struct gap *gap, bool *any,
                            struct error *err)
{
    bind_gap(sparse->any, gap);
    const int rc = sqlite3_step(sparse->any);
    *any = rc == SQLITE_ROW;
    const enum status status = rc == SQLITE_ROW || rc == SQLITE_DONE
                                   ? STATUS_OK
                                   : database_error(sparse->db, "rollups", err);
    (void)sqlite3_reset(sparse->any);
    return status;
}

// The rows there are of a level in a span, and the records in them.
static enum status count_rows(struct rollup_sparse *sparse, const struct gap *gap, uint64_t *rows,
                              double *records, struct error *err)
{
    sqlite3_stmt *stmt = sparse->count;
    bind_gap(stmt, gap);
    enum status status = STATUS_OK;
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        *rows = (uint64_t)sqlite3_column_int64(stmt, 0);
        *records = sqlite3_column_double(stmt, 1);
    } else {
        status = database_error(sparse->db, "rollups", err);
    }
    (void)sqlite3_reset(stmt);
    return status;
}

// ---- Beforehand ------------------------------------------------------------------------------

// What a sheet has of a level within a bucket of the coarser one; and apart what the
// bucket of the level has in which the sheet ends, which the next one goes on with.
struct peer_credit {
    int64_t bucket;
    uint64_t rows, records;
    uint64_t open_rows, open_records;
};

struct shares {
    enum rollup_level coarser;
    int64_t open; // bucket of the level
    struct peer_credit *list;
    size_t count, room;
    bool starved;
};

static void join(struct peer_credit *peer_credit, const struct peer_credit *more)
{
    peer_credit->rows += more->rows;
    peer_credit->records += more->records;
    peer_credit->open_rows += more->open_rows;
    peer_credit->open_records += more->open_records;
}

static void add_share(void *context, int64_t bucket, size_t records)
{
    struct shares *shares = context;
    const int64_t of = rollup_bucket(shares->coarser, bucket);
    const bool is_open = bucket == shares->open;
    const struct peer_credit more = {of, !is_open, is_open ? 0 : records, is_open,
                                     is_open ? records : 0};
    struct peer_credit *last =
        shares->list && shares->count ? &shares->list[shares->count - 1] : NULL;
    if (last && last->bucket == of) {
        join(last, &more);
        return;
    }
    if (!shares->list || shares->count == shares->room) {
        const size_t room = shares->room ? 2 * shares->room : 64;
        struct peer_credit *bigger = realloc(shares->list, room * sizeof *bigger);
        if (!bigger) {
            shares->starved = true;
            return;
        }
        shares->list = bigger;
        shares->room = room;
    }
    shares->list[shares->count++] = more;
}

static int by_bucket(const void *a, const void *b)
{
    const struct peer_credit *left = a, *right = b;
    return (left->bucket > right->bucket) - (left->bucket < right->bucket);
}

// Rows come by series: those of one bucket are brought together.
static void join_shares(struct shares *shares)
{
    if (!shares->list || shares->count == 0)
        return;
    qsort(shares->list, shares->count, sizeof *shares->list, by_bucket);
    size_t kept = 0;
    for (size_t i = 1; i < shares->count; i++) {
        struct peer_credit *last = &shares->list[kept];
        if (shares->list[i].bucket == last->bucket) {
            join(last, &shares->list[i]);
        } else {
            shares->list[++kept] = shares->list[i];
        }
    }
    shares->count = kept + 1;
}

// The bucket that the next sheet may have more records of.
static int64_t newest_bucket(const struct rollup_sheet *sheet, enum rollup_level level)
{
    return rollup_bucket(level, sheet->started_ns[sheet->count - 1]);
}

// Whether the share's rows will not pay.  That of the newest bucket is judged by what is
// whole of it, else by the bucket before, else by as much as passed of the open one.
static bool is_sparse(const struct rollup_sheet *sheet, const struct shares *shares, size_t i,
                      const struct gap *gap, bool before_is_sparse)
{
    const struct peer_credit *peer_credit = &shares->list[i];
    const enum rollup_level level = gap->level;
    const uint64_t enough = records_a_row[gap->grouping][level];
    const uint64_t rows = peer_credit->rows + peer_credit->open_rows;
    const uint64_t records = peer_credit->records + peer_credit->open_records;
    if (peer_credit->bucket != newest_bucket(sheet, shares->coarser))
        return records < rows * enough;
    if (peer_credit->rows > 0)
        return peer_credit->records < peer_credit->rows * enough;
    if (i > 0 && rollup_next(shares->coarser, shares->list[i - 1].bucket) == peer_credit->bucket)
        return before_is_sparse;
    const double passed = (double)sheet->started_ns[sheet->count - 1] - (double)shares->open + 1;
    const double whole = (double)rollup_next(level, shares->open) - (double)shares->open;
    return (double)records * whole < (double)(rows * enough) * passed;
}

// The gaps to add of a grouping and level, rising and apart; those of neighbours are one.
struct wanted {
    struct gap_span *spans;
    bool *is_cut; // between the span and the one before are rows, or will be
    size_t count;
};

static void want(struct wanted *wanted, const struct gap *gap, bool is_cut)
{
    if (wanted->count > 0 && wanted->spans[wanted->count - 1].until_ns == gap->since_ns) {
        wanted->spans[wanted->count - 1].until_ns = gap->until_ns;
        return;
    }
    wanted->spans[wanted->count] = (struct gap_span){gap->since_ns, gap->until_ns};
    wanted->is_cut[wanted->count++] = is_cut;
}

static enum status find_wanted(struct rollup_sparse *sparse, const struct rollup_sheet *sheet,
                               const struct shares *shares, struct gap gap,
                               const struct gap_set *there, int64_t wall_ns, struct wanted *wanted,
                               struct error *err)
{
    bool is_cut = false, sparse_before = false;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < shares->count && status == STATUS_OK; i++) {
        const struct peer_credit *peer_credit = &shares->list[i];
        bool any = true;
        gap.since_ns = peer_credit->bucket;
        gap.until_ns = rollup_next(shares->coarser, peer_credit->bucket);
        if (gap_set_touches(there, gap.level, gap.since_ns, gap.until_ns)) {
            sparse_before = true;
            continue;
        }
        sparse_before = is_sparse(sheet, shares, i, &gap, sparse_before);
        if (sparse_before && is_over(gap.until_ns, wall_ns))
            status = has_rows(sparse, &gap, &any, err);
        if (status == STATUS_OK && !any)
            want(wanted, &gap, is_cut);
        is_cut = any;
    }
    return status;
}

// Where there are too many, those are joined that have nothing but empty time between
// them, the nearest first.  What is too many even then is left out: its rows are kept.
static enum status join_wanted(struct rollup_sparse *sparse, struct gap gap, struct wanted *wanted,
                               struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 1; i < wanted->count && status == STATUS_OK; i++) {
        gap.since_ns = wanted->spans[i - 1].until_ns;
        gap.until_ns = wanted->spans[i].since_ns;
        if (!wanted->is_cut[i])
            status = has_rows(sparse, &gap, &wanted->is_cut[i], err);
    }
    uint64_t apart_ns = UINT64_C(3600000000000);
    for (bool all = false; !all && wanted->count > SPANS_MAX && status == STATUS_OK;
         apart_ns *= 2) {
        size_t kept = 0;
        all = apart_ns > UINT64_MAX / 2;
        for (size_t i = 1; i < wanted->count; i++) {
            const uint64_t between_ns =
                (uint64_t)wanted->spans[i].since_ns - (uint64_t)wanted->spans[kept].until_ns;
            if (!wanted->is_cut[i] && between_ns <= apart_ns) {
                wanted->spans[kept].until_ns = wanted->spans[i].until_ns;
            } else {
                wanted->spans[++kept] = wanted->spans[i];
                wanted->is_cut[kept] = wanted->is_cut[i];
            }
        }
        wanted->count = kept + 1;
    }
    if (wanted->count > SPANS_MAX)
        wanted->count = SPANS_MAX;
    return status;
}

// Adds the gaps of a grouping and level.
static enum status add_gaps(struct rollup_sparse *sparse, const struct rollup_sheet *sheet,
                            const struct shares *shares, const struct gap *gap,
                            const struct gap_set *there, int64_t wall_ns, bool *added,
                            struct error *err)
{
    if (shares->count == 0)
        return STATUS_OK;
    struct wanted wanted = {.spans = calloc(shares->count, sizeof *wanted.spans),
                            .is_cut = calloc(shares->count, sizeof *wanted.is_cut)};
    enum status status = wanted.spans && wanted.is_cut
                             ? STATUS_OK
                             : error_set(err, STATUS_NOMEM, "rollups: out of memory");
    if (status == STATUS_OK)
        status = find_wanted(sparse, sheet, shares, *gap, there, wall_ns, &wanted, err);
    if (status == STATUS_OK && wanted.count > SPANS_MAX)
        status = join_wanted(sparse, *gap, &wanted, err);
    if (status == STATUS_OK && wanted.count > 0) {
        status = gap_add_spans(sparse->db, gap, wanted.spans, wanted.count, err);
        *added = true;
    }
    free(wanted.spans);
    free(wanted.is_cut);
    return status;
}

enum status rollup_sparse_foresee(struct rollup_sparse *sparse, const struct rollup_groups *groups,
                                  const struct gap_set *gaps, int64_t wall_ns, bool *added,
                                  struct error *err)
{
    const struct rollup_sheet *sheet = groups->sheet;
    struct shares shares = {0};
    enum status status = STATUS_OK;
    *added = false;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT; g++) {
        for (unsigned level = 0; level < LEVELS && status == STATUS_OK; level++) {
            shares.count = 0;
            shares.coarser = (enum rollup_level)(level + 1);
            shares.open = newest_bucket(sheet, (enum rollup_level)level);
            rollup_groups_each(groups, (enum rollup_grouping)g, (enum rollup_level)level, add_share,
                               &shares);
            if (shares.starved)
                status = error_set(err, STATUS_NOMEM, "rollups: out of memory");
            join_shares(&shares);
            const struct gap gap = {.kind = sheet->kind,
                                    .grouping = (enum rollup_grouping)g,
                                    .level = (enum rollup_level)level,
                                    .why = ROLLUP_SPARSE};
            if (status == STATUS_OK)
                status = add_gaps(sparse, sheet, &shares, &gap, &gaps[g], wall_ns, added, err);
        }
    }
    free(shares.list);
    return status;
}

// ---- Afterwards --------------------------------------------------------------------------------

// The next bucket of a level that is over and was not looked at; false: none.
static bool next_bucket(const struct rollup_sparse *sparse, unsigned kind, unsigned level,
                        int64_t wall_ns, struct gap_span *span)
{
    const enum rollup_level coarser = (enum rollup_level)(level + 1);
    const struct progress *progress = &sparse->progress[kind][level];
    const int64_t now = rollup_bucket(coarser, wall_ns);
    int64_t first = now;
    for (unsigned i = 0; i < LOOK_BACK; i++)
        first = rollup_bucket(coarser, first - 1);
    const bool follows = progress->begun && progress->until_ns <= rollup_next(coarser, now) &&
                         progress->until_ns / 2 >= now / 2 - CLOCK_SET_NS / 2;
    span->since_ns = follows ? progress->until_ns : first;
    span->until_ns = rollup_next(coarser, span->since_ns);
    return is_over(span->until_ns, wall_ns);
}

bool rollup_sparse_is_due(const struct rollup_sparse *sparse, int64_t wall_ns)
{
    struct gap_span span;
    if (sparse->erasing)
        return true;
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        for (unsigned level = 0; level < LEVELS; level++)
            if (rollup_has_kind((enum record_kind)kind) &&
                next_bucket(sparse, kind, level, wall_ns, &span))
                return true;
    return false;
}

bool rollup_sparse_is_erasing(const struct rollup_sparse *sparse)
{
    return sparse->erasing;
}

enum status rollup_sparse_erase(struct rollup_sparse *sparse, struct error *err)
{
    const struct rollup_metrics *metrics = rollup_metrics_of(sparse->gap.kind);
    (void)sqlite3_bind_int(sparse->erase, 1, metrics->list[sparse->metric].number);
    (void)sqlite3_bind_int(sparse->erase, 2, (int)sparse->gap.grouping);
    (void)sqlite3_bind_int(sparse->erase, 3, (int)sparse->level);
    (void)sqlite3_bind_int64(sparse->erase, 4, sparse->gap.since_ns);
    (void)sqlite3_bind_int64(sparse->erase, 5, sparse->gap.until_ns);
    (void)sqlite3_bind_int(sparse->erase, 6, ERASE_ROWS);
    const enum status status = database_run(sparse->db, sparse->erase, err);
    if (status != STATUS_OK || sqlite3_changes(sparse->db) == ERASE_ROWS)
        return status;
    if (sparse->level++ < (unsigned)sparse->gap.level)
        return STATUS_OK;
    sparse->level = 0;
    // The metric by which rows are found goes last.
    if (++sparse->metric == metrics->count)
        sparse->erasing = false;
    return STATUS_OK;
}

// Looks at the rows of one grouping.
static enum status look(struct rollup_sparse *sparse, const struct gap *gap, bool *added,
                        struct error *err)
{
    uint64_t rows = 0;
    double records = 0;
    enum status status = count_rows(sparse, gap, &rows, &records, err);
    if (status != STATUS_OK || rows == 0 ||
        records >= (double)rows * (double)records_a_row[gap->grouping][gap->level])
        return status;
    status = gap_add(sparse->db, gap, err);
    *added = true;
    sparse->erasing = true;
    sparse->gap = *gap;
    sparse->metric = 0;
    sparse->level = 0;
    return status;
}

static enum status look_at_bucket(struct rollup_sparse *sparse, unsigned kind, unsigned level,
                                  const struct gap_span *span, bool *added, struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned g = 0; g < ROLLUP_GROUPING_COUNT && status == STATUS_OK && !sparse->erasing; g++)
        status = look(sparse,
                      &(struct gap){.kind = (enum record_kind)kind,
                                    .grouping = (enum rollup_grouping)g,
                                    .level = (enum rollup_level)level,
                                    .since_ns = span->since_ns,
                                    .until_ns = span->until_ns,
                                    .why = ROLLUP_SPARSE},
                      added, err);
    // Where one grouping is erased first, the bucket is looked at again.
    if (status == STATUS_OK && !sparse->erasing)
        sparse->progress[kind][level] = (struct progress){span->until_ns, true};
    return status;
}

enum status rollup_sparse_step(struct rollup_sparse *sparse, int64_t wall_ns, bool *added,
                               struct error *err)
{
    struct gap_span span;
    *added = false;
    if (sparse->erasing)
        return rollup_sparse_erase(sparse, err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++)
        for (unsigned level = 0; level < LEVELS; level++)
            if (rollup_has_kind((enum record_kind)kind) &&
                next_bucket(sparse, kind, level, wall_ns, &span))
                return look_at_bucket(sparse, kind, level, &span, added, err);
    return STATUS_OK;
}
