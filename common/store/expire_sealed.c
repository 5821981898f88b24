// Sealed rows that expire.  A segment goes as a whole where all of it is old, by what stands
// beside it of its runs; of one that is partly old the rest is written anew, no more than
// once an hour, so that a segment of a month is not written anew each minute of it.
#include <sqlite3.h>

#include "common/store/database.h"
#include "common/store/expire_parts.h"
#include "common/store/sealed_cut.h"
#include "common/store/sealed_loss.h"
#include "common/sys/log.h"

enum { LOOKS_MAX = 64 }; // at segments whose rows rollups are waiting for

// What a slice may do, and has done.
struct sealed_slice {
    sqlite3 *db;
    const struct expire_rows *rows;
    int64_t before_ns; // as far as rollups do not need them
    unsigned gone;
};

static enum status out_of_memory(struct error *err)
{
    return error_set(err, STATUS_NOMEM, "store: out of memory");
}

// ---- Whole segments -----------------------------------------------------------------------

static enum status lose(struct sealed_slice *slice, const struct sealed_segment *segment,
                        bool whatever, struct error *err)
{
    const int64_t end_ns = rollup_bucket(ROLLUP_MINUTE, segment->last_started_ns);
    const int64_t next_ns = rollup_next(ROLLUP_MINUTE, end_ns);
    const int64_t floor_ns = slice->rows->before_ns;
    int64_t rows = 0;
    enum status status = database_exec(slice->db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    status = sealed_lose(slice->db, segment, SEALED_EXPIRED, whatever, &rows, err);
    if (status == STATUS_OK)
        status = expire_until(slice->db, slice->rows->kind, next_ns < floor_ns ? next_ns : floor_ns,
                              err);
    status = expire_end(slice->db, status, err);
    if (status == STATUS_OK)
        slice->gone = rows > 0 ? (unsigned)rows : 1; // at least that
    return status;
}

static enum status lose_damaged(struct sealed_slice *slice, const struct sealed_segment *segment,
                                const struct error *damage, struct error *err)
{
    enum status status = lose(slice, segment, true, err);
    if (status == STATUS_OK)
        log_write(LOG_LEVEL_WARNING, "records have expired unread: %s", damage->text);
    return status;
}

// ---- Parts of segments --------------------------------------------------------------------

static void append_old(sqlite3_str *sql, const struct sealed_segment *segment, int64_t before_ns)
{
    sqlite3_str_appendf(
        sql, " FROM \"sealed_%w\" WHERE id BETWEEN %lld AND %lld AND started_ns < %lld",
        record_kind_info((enum record_kind)segment->kind)->name, (long long)segment->first_id,
        (long long)segment->last_id, (long long)before_ns);
}

static enum status find_old(struct sealed_cut *cut, sqlite3 *db, int64_t before_ns,
                            struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(sql, "SELECT id");
    append_old(sql, &cut->segment, before_ns);
    sqlite3_str_appendall(sql, " ORDER BY id");
    char *text = sqlite3_str_finish(sql);
    enum status status = text ? database_prepare(db, &stmt, text, false, err) : out_of_memory(err);
    sqlite3_free(text);
    int rc = SQLITE_DONE;
    while (status == STATUS_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        status = sealed_cut_add(cut, sqlite3_column_int64(stmt, 0), err);
    if (status == STATUS_OK && rc != SQLITE_DONE)
        status = database_error(db, "store", err);
    (void)sqlite3_finalize(stmt);
    return status;
}

static enum status tell_ledgers(const struct sealed_cut *cut, sqlite3 *db, int64_t before_ns,
                                struct error *err)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_str_appendall(
        sql, "WITH gone AS (SELECT run, count(*) AS n, fingerprint(stream, number) AS sum");
    append_old(sql, &cut->segment, before_ns);
    sqlite3_str_appendf(sql,
                        " GROUP BY run) UPDATE ledger SET expired = expired +"
                        " (SELECT n FROM gone WHERE gone.run = ledger.run),"
                        " gone_sum = fingerprint_add(gone_sum,"
                        " (SELECT sum FROM gone WHERE gone.run = ledger.run))"
                        " WHERE kind = %d AND run IN (SELECT run FROM gone)",
                        (int)cut->segment.kind);
    return database_exec_built(db, sql, err);
}

static enum status store_cut(struct sealed_slice *slice, const struct sealed_cut *cut,
                             struct error *err)
{
    sqlite3 *db = slice->db;
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status != STATUS_OK)
        return status;
    status = tell_ledgers(cut, db, slice->before_ns, err);
    if (status == STATUS_OK)
        status = sealed_cut_store(cut, db, err);
    if (status == STATUS_OK)
        status = expire_until(db, slice->rows->kind, slice->before_ns, err);
    status = expire_end(db, status, err);
    if (status == STATUS_OK)
        slice->gone = cut->count;
    return status;
}

// What is left is packed before anything is locked.
static enum status cut_segment(struct sealed_slice *slice, const struct sealed_segment *segment,
                               struct error *err)
{
    struct sealed_cut cut = {.segment = *segment};
    enum status status = find_old(&cut, slice->db, slice->before_ns, err);
    if (status == STATUS_OK && cut.count > 0)
        status = sealed_cut_prepare(&cut, slice->db, err);
    if (status == STATUS_OK && cut.count > 0)
        status = store_cut(slice, &cut, err);
    sealed_cut_deinit(&cut);
    return status;
}

// ---- Which -------------------------------------------------------------------------------

static bool is_old(const struct sealed_slice *slice, const struct sealed_segment *segment)
{
    return segment->last_started_ns < slice->before_ns;
}

// What is damaged waits until all of it is old, and holds up nothing until then.  Where
// only what stands beside it is, its rows are read.
static enum status take_damaged(struct sealed_slice *slice, const struct sealed_segment *segment,
                                struct error *err)
{
    struct error damage;
    enum status status = sealed_check(slice->db, segment, &damage);
    if (status == STATUS_OK)
        return cut_segment(slice, segment, err);
    if (status != STATUS_CORRUPT)
        return error_set(err, status, "%s", damage.text);
    return is_old(slice, segment) ? lose_damaged(slice, segment, &damage, err) : STATUS_OK;
}

static enum status take_segment(struct sealed_slice *slice, const struct sealed_segment *segment,
                                struct error *err)
{
    const int64_t hour_ns = rollup_bucket(ROLLUP_HOUR, slice->before_ns);
    if (!is_old(slice, segment) && segment->first_started_ns >= hour_ns)
        return STATUS_OK;
    enum status status = is_old(slice, segment) ? lose(slice, segment, false, err)
                                                : cut_segment(slice, segment, err);
    return status == STATUS_CORRUPT ? take_damaged(slice, segment, err) : status;
}

// Rollups that wait for the rows of a damaged segment would wait for ever.
static enum status take_awaited(struct sealed_slice *slice, const struct sealed_segment *segment,
                                struct error *err)
{
    struct error damage;
    struct seal_reader *reader = NULL;
    if (segment->last_started_ns >= slice->rows->before_ns)
        return STATUS_OK;
    enum status status = sealed_load(slice->db, segment, &reader, &damage);
    seal_reader_free(reader);
    if (status == STATUS_CORRUPT)
        return lose_damaged(slice, segment, &damage, err);
    return status == STATUS_OK ? status : error_set(err, status, "%s", damage.text);
}

static bool may_go(const struct sealed_slice *slice, const struct sealed_segment *segment)
{
    return segment->id != 0 && segment->first_started_ns < slice->rows->before_ns &&
           segment->last_id <= slice->rows->last_id;
}

// Takes the oldest segment that there is something to do with, and no other.
enum status expire_sealed(sqlite3 *db, const struct expire_rows *rows, int64_t before_ns,
                          unsigned *gone, struct error *err)
{
    struct sealed_slice slice = {db, rows, before_ns, 0};
    struct sealed_segment segment, after;
    unsigned looks = 0;
    enum status status = sealed_oldest(db, rows->kind, NULL, &segment, err);
    while (status == STATUS_OK && may_go(&slice, &segment) && slice.gone == 0) {
        after = segment;
        if (after.first_started_ns < before_ns)
            status = take_segment(&slice, &after, err);
        else if (looks++ < LOOKS_MAX)
            status = take_awaited(&slice, &after, err);
        else
            break;
        if (status == STATUS_OK)
            status = sealed_oldest(db, rows->kind, &after, &segment, err);
    }
    *gone = slice.gone;
    return status;
}
