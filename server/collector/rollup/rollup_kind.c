#include "server/collector/rollup/rollup_kind.h"

#include <sqlite3.h>

#include "common/store/rollup/gap_table.h"
#include "common/store/sqlite/database.h"

enum status rollup_kind_prepare(sqlite3 *db, sqlite3_stmt **save, struct error *err)
{
    return database_prepare(db, save,
                            "INSERT OR REPLACE INTO rollup_state(metric, watermark, ahead_id,"
                            " ahead_host) VALUES(?, ?, ?, ?)",
                            true, err);
}

void rollup_kind_clear(struct rollup_kind *kind)
{
    rollup_memtable_clear(&kind->memtable, false);
    kind->first_row = 0;
}

enum status rollup_kind_save(struct rollup_kind *kind, sqlite3_stmt *save, int64_t id,
                             struct error *err)
{
    enum status status = STATUS_OK;
    for (unsigned m = 0; m < kind->metrics->count && status == STATUS_OK; m++) {
        database_bind(save, (int64_t[]){kind->metrics->list[m].number, id, 0, 0}, 4);
        status = database_run(sqlite3_db_handle(save), save, err);
    }
    if (status != STATUS_OK)
        return status;
    kind->watermark = id;
    kind->ahead = (struct rollup_ahead){.host = INT64_MIN};
    return STATUS_OK;
}

enum status rollup_kind_save_ahead(struct rollup_kind *kind, sqlite3_stmt *save,
                                   const struct rollup_ahead *ahead, struct error *err)
{
    const bool has_all = ahead->host == INT64_MAX;
    database_bind(save,
                  (int64_t[]){kind->metrics->list[ahead->metrics].number,
                              has_all ? ahead->id : kind->watermark, has_all ? 0 : ahead->id,
                              has_all ? 0 : ahead->host},
                  4);
    enum status status = database_run(sqlite3_db_handle(save), save, err);
    if (status != STATUS_OK)
        return status;
    kind->ahead = *ahead;
    if (!has_all)
        return STATUS_OK;
    kind->ahead.metrics++;
    kind->ahead.host = INT64_MIN;
    if (kind->ahead.metrics < kind->metrics->count)
        return STATUS_OK;
    kind->watermark = ahead->id;
    kind->ahead = (struct rollup_ahead){.host = INT64_MIN};
    return STATUS_OK;
}

// Older versions moved the watermarks of a kind's metrics one by one, and a new version may
// have metrics that the table lacks: all days are rebuilt then, but for those that have expired.
static enum status level(struct rollup_kind *kind, sqlite3_stmt *save, int64_t highest,
                         struct error *err)
{
    sqlite3 *const db = sqlite3_db_handle(save);
    const enum record_kind k = kind->memtable.kind;
    struct gap_span all = {INT64_MIN, INT64_MIN};
    enum status status = database_integerf(
        db, &all.until_ns, err, "SELECT max(started_ns) FROM \"%s\"", record_kind_info(k)->name);
    all.until_ns += all.until_ns < INT64_MAX;
    if (status == STATUS_OK)
        status = gap_read_expired(db, k, &all.since_ns, err);
    if (status == STATUS_OK)
        status = database_exec(db, "BEGIN IMMEDIATE", err);
    if (status == STATUS_OK)
        status = gap_request_rebuild(db, k, &all, 1, err);
    if (status == STATUS_OK)
        status = rollup_kind_save(kind, save, highest, err);
    return database_end(db, status, err);
}

// What rollup_state has of a metric.
struct state {
    int64_t watermark, ahead_id, ahead_host;
};

// Finds how far a pass came that was broken off: some first metrics have one watermark, the others
// a lower one, and the next metric may have some hosts' records up to the first.  False if the
// states are not of such a pass.
static bool find_ahead(struct rollup_kind *kind, const struct state states[ROLLUP_METRICS_MAX])
{
    const unsigned count = kind->metrics->count;
    const int64_t rest = states[count - 1].watermark;
    struct rollup_ahead ahead = {.host = INT64_MIN};
    while (states[ahead.metrics].watermark > rest)
        ahead.metrics++;
    const struct state *next = &states[ahead.metrics];
    ahead.id = ahead.metrics > 0 ? states[0].watermark : next->ahead_id;
    if (next->ahead_id > 0)
        ahead.host = next->ahead_host;
    for (unsigned m = 0; m < count; m++) {
        const bool is_ahead = m < ahead.metrics;
        const int64_t partly = m == ahead.metrics ? states[m].ahead_id : 0;
        if (states[m].watermark != (is_ahead ? ahead.id : rest) || states[m].ahead_id != partly ||
            (partly > 0 && partly != ahead.id))
            return false;
    }
    if (ahead.id > 0 && (ahead.id <= rest || rest <= 0))
        return false;
    kind->watermark = rest;
    kind->ahead = ahead;
    return true;
}

enum status rollup_kind_load(struct rollup_kind *kind, sqlite3_stmt *save, struct error *err)
{
    sqlite3 *const db = sqlite3_db_handle(save);
    static const char *const columns[] = {"watermark", "ahead_id", "ahead_host"};
    struct state states[ROLLUP_METRICS_MAX] = {{0}};
    int64_t highest = 0;
    enum status status = STATUS_OK;
    kind->ahead = (struct rollup_ahead){.host = INT64_MIN};
    for (unsigned m = 0; m < kind->metrics->count && status == STATUS_OK; m++) {
        int64_t *const out[] = {&states[m].watermark, &states[m].ahead_id, &states[m].ahead_host};
        for (unsigned i = 0; i < sizeof out / sizeof *out && status == STATUS_OK; i++)
            status = database_integerf(db, out[i], err,
                                       "SELECT max(%s) FROM rollup_state WHERE metric = %d",
                                       columns[i], kind->metrics->list[m].number);
        highest = states[m].watermark > highest ? states[m].watermark : highest;
        highest = states[m].ahead_id > highest ? states[m].ahead_id : highest;
    }
    if (status == STATUS_OK && !find_ahead(kind, states))
        status = level(kind, save, highest, err);
    kind->fed = kind->watermark;
    return status == STATUS_OK ? gap_last_id(db, kind->memtable.kind, &kind->last, err) : status;
}
