#include "server/collector/rollups_inside.h"

#include <sqlite3.h>

#include "common/store/database.h"
#include "common/sys/clock.h"

// The kind that is behind and has room, or ROLLUPS_NO_KIND.  One sheet at a time is large enough:
// while it is folded none is filled.
static unsigned lagging(const struct rollups *rollups)
{
    for (unsigned k = 0; k < RECORD_KIND_COUNT; k++)
        if (rollups->kinds[k].fed < rollups->kinds[k].last && !rollups_is_full(&rollups->kinds[k]))
            return k;
    return ROLLUPS_NO_KIND;
}

bool rollups_are_behind(const struct rollups *rollups, uint64_t now_ns)
{
    if (now_ns < rollups->retry_ns || !rollup_pace_allows(&rollups->pace, now_ns))
        return false;
    return rollups->stale || lagging(rollups) != ROLLUPS_NO_KIND;
}

static enum status prepare_read(struct rollups *rollups, unsigned k, struct error *err)
{
    if (rollups->kinds[k].read)
        return STATUS_OK;
    sqlite3_str *sql = sqlite3_str_new(rollups->db);
    sqlite3_str_appendall(sql, "SELECT ");
    rollup_sheet_select(sql, (enum record_kind)k);
    sqlite3_str_appendf(sql,
                        " FROM main.\"%w\" t WHERE t.id > ? AND t.id <= ? ORDER BY t.id LIMIT %d",
                        record_kind_info((enum record_kind)k)->name, ROLLUPS_READ_ROWS);
    char *text = sqlite3_str_finish(sql);
    enum status status =
        text ? database_prepare(rollups->db, &rollups->kinds[k].read, text, true, err)
             : rollups_out_of_memory(err);
    sqlite3_free(text);
    return status;
}

// All there is was fed.
static enum status end_reading(struct rollups *rollups, struct rollups_kind *kind, bool *committed,
                               struct error *err)
{
    kind->fed = kind->last;
    if (kind->filling.count > 0 || kind->folding.count > 0)
        return STATUS_OK;
    enum status status = database_exec(rollups->db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = rollups_level_watermarks(rollups, kind, err);
    if (status == STATUS_OK)
        status = database_exec(rollups->db, "COMMIT", err);
    if (status != STATUS_OK)
        database_rollback(rollups->db);
    *committed = status == STATUS_OK;
    return status;
}

static enum status read_some(struct rollups *rollups, unsigned k, uint64_t now_ns, bool *committed,
                             struct error *err)
{
    struct rollups_kind *kind = &rollups->kinds[k];
    enum status status = prepare_read(rollups, k, err);
    if (status != STATUS_OK)
        return status;
    if (kind->filling.count == 0)
        kind->since_ns = now_ns;
    (void)sqlite3_bind_int64(kind->read, 1, kind->fed);
    (void)sqlite3_bind_int64(kind->read, 2, kind->last);
    int rc = SQLITE_DONE;
    unsigned rows = 0;
    while (status == STATUS_OK && (rc = sqlite3_step(kind->read)) == SQLITE_ROW) {
        status =
            rollups_is_full(kind) ? STATUS_FULL : rollup_sheet_add_row(&kind->filling, kind->read);
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
        return rollups_out_of_memory(err);
    if (status == STATUS_OK && rows < ROLLUPS_READ_ROWS)
        return end_reading(rollups, kind, committed, err);
    return status;
}

bool rollups_catch_up(struct rollups *rollups, uint64_t now_ns, bool is_busy)
{
    struct error err = {.text = ""};
    bool committed = false;
    rollup_pace_tell(&rollups->pace, is_busy);
    if (now_ns < rollups->retry_ns || !rollup_pace_allows(&rollups->pace, now_ns))
        return false;
    const uint64_t began_ns = clock_monotonic_ns();
    enum status status = rollups->stale ? rollups_load(rollups, &err) : STATUS_OK;
    const unsigned k = status == STATUS_OK ? lagging(rollups) : ROLLUPS_NO_KIND;
    if (k != ROLLUPS_NO_KIND)
        status = read_some(rollups, k, now_ns, &committed, &err);
    if (rollups->stale || k != ROLLUPS_NO_KIND)
        rollups_worked(rollups, began_ns);
    if (status != STATUS_OK) {
        rollups_forget(rollups);
        rollups_fail(rollups, &err, now_ns);
    }
    return committed;
}
