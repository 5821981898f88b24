#include "tests/support/store/history_rollups.h"

#include <stdbool.h>

#include <sqlite3.h>

#include "common/store/sqlite/database.h"
#include "common/store/rollup/gap_table.h"
#include "common/store/rollup/rollup.h"
#include "common/sys/clock.h"
#include "common/store/schema/database_open.h"
#include "server/collector/maintenance/retention_rules.h"
#include "server/collector/rollup/rollups.h"

static enum status add_old(sqlite3 *db, struct gap gap, int64_t age_ns, int64_t now_ns,
                           struct error *err)
{
    const enum rollup_level coarser =
        gap.level == ROLLUP_MONTH ? ROLLUP_MONTH : (enum rollup_level)(gap.level + 1);
    if (age_ns == RETENTION_FOREVER)
        return STATUS_OK;
    gap.since_ns = INT64_MIN;
    gap.until_ns = rollup_bucket(coarser, now_ns - age_ns);
    gap.why = ROLLUP_OLD;
    return gap_add(db, &gap, err);
}

static enum status add_all_old(sqlite3 *db, int64_t now_ns, struct error *err)
{
    const struct retention_rules rules = retention_rules_default();
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    for (unsigned kind = 0; kind < RECORD_KIND_COUNT; kind++) {
        if (!rollup_has_kind((enum record_kind)kind))
            continue;
        for (unsigned i = 0; i < ROLLUP_GROUPING_COUNT * ROLLUP_LEVEL_COUNT; i++) {
            const struct gap gap = {.kind = (enum record_kind)kind,
                                    .grouping = (enum rollup_grouping)(i / ROLLUP_LEVEL_COUNT),
                                    .level = (enum rollup_level)(i % ROLLUP_LEVEL_COUNT)};
            const int64_t *ages = gap.grouping == ROLLUP_FULL ? rules.finest_ns : rules.level_ns;
            if (status == STATUS_OK)
                status = add_old(db, gap, ages[gap.level], now_ns, err);
        }
    }
    if (status == STATUS_OK)
        status = database_exec(db, "COMMIT", err);
    return status;
}

// Reads as much as memory takes, and folds it all in one transaction.
static enum status fold_once(sqlite3 *db, struct rollups *rollups, bool *left, struct error *err)
{
    while (rollups_are_behind(rollups, clock_monotonic_ns()))
        rollups_catch_up(rollups, clock_monotonic_ns(), false);
    enum status status = database_exec(db, "BEGIN IMMEDIATE", err);
    *left = true;
    while (status == STATUS_OK && *left)
        status = rollups_flush(rollups, ROLLUPS_ALL, clock_monotonic_ns(), left, err);
    if (status == STATUS_OK)
        status = database_exec(db, "COMMIT", err);
    *left = rollups_are_behind(rollups, clock_monotonic_ns());
    return status;
}

// Looks until there is nothing to look at, not only for a moment.
static void prune_all(struct rollups *rollups)
{
    uint64_t later_ns = clock_monotonic_ns();
    while (rollups_prune(rollups, later_ns))
        later_ns += UINT64_C(3600000000000);
}

static enum status roll_up(sqlite3 *db, int64_t now_ns, struct error *err)
{
    struct rollups *rollups = NULL;
    // Pages that are written again and again stay in memory.
    enum status status =
        database_exec(db, "PRAGMA synchronous=OFF; PRAGMA cache_size=-131072", err);
    if (status == STATUS_OK)
        status = add_all_old(db, now_ns, err);
    if (status == STATUS_OK)
        status = rollups_new(&rollups, db, err);
    if (status != STATUS_OK)
        return status;
    rollups_tell_time(rollups, now_ns);
    bool left = true;
    while (left && status == STATUS_OK)
        status = fold_once(db, rollups, &left, err);
    if (status == STATUS_OK)
        prune_all(rollups);
    rollups_free(rollups);
    return status;
}

enum status history_roll_up(const char *path, int64_t now_ns, struct error *err)
{
    sqlite3 *db = NULL;
    enum status status = database_open_writer(&db, path, err);
    if (status != STATUS_OK)
        return status;
    status = roll_up(db, now_ns, err);
    database_close(db);
    return status;
}
