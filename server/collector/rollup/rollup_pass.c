#include "server/collector/rollup/rollup_pass.h"

void rollup_pass_end(struct rollup_pass *pass)
{
    rollup_flush_end(pass->flush);
    pass->kind = RECORD_KIND_COUNT;
}

bool rollup_pass_is_for(const struct rollup_pass *pass, const struct rollup_kind *kind)
{
    return kind->ahead.id > 0 ||
           (kind->memtable.full_series.count > pass->above && kind->memtable.bytes_used == 0);
}

bool rollup_pass_is_ready(const struct rollup_kind *kind)
{
    return kind->ahead.id == 0 || kind->fed >= kind->ahead.id || kind->fed == kind->last;
}

// The rows that a pass writes: all, or those that the first metrics of a pass broken off have.
static size_t rows_of(const struct rollup_kind *kind)
{
    size_t rows = kind->memtable.count;
    while (kind->ahead.id > 0 && rows > 0 && kind->memtable.ids[rows - 1] > kind->ahead.id)
        rows--;
    return rows;
}

static void finish(struct rollup_pass *pass, struct rollup_kind *kind, size_t rows, uint64_t now_ns)
{
    rollup_pass_end(pass);
    kind->since_ns = now_ns;
    rollup_memtable_drop(&kind->memtable, rows);
}

enum status rollup_pass_write(struct rollup_pass *pass, struct rollup_kind *kind,
                              struct gap_span rebuilt, int64_t wall_ns, uint64_t now_ns,
                              struct rollup_row_key *damaged, struct error *err)
{
    const bool goes_on = pass->kind == kind->memtable.kind;
    if (!goes_on) {
        rollup_memtable_drop(&kind->memtable, kind->first_row);
        kind->first_row = 0;
    }
    const size_t rows = goes_on ? rollup_flush_groups(pass->flush)->end_row : rows_of(kind);
    if (rows == 0) { // what the first metrics have was deleted since
        enum status status = rollup_kind_save(kind, pass->save, kind->ahead.id, err);
        if (status == STATUS_OK)
            finish(pass, kind, 0, now_ns);
        return status;
    }
    struct rollup_ahead ahead = kind->ahead;
    const struct rollup_job job = {
        .slice = {.memtable = &kind->memtable, .rows_most = rows},
        .metrics = {ahead.metrics, ahead.metrics + 1},
        .is_part = true,
        .goes_on = goes_on,
        .host = ahead.host,
        .hosts_most = pass->groups_most,
        .levels = ROLLUP_ALL_LEVELS,
        .rebuilt = rebuilt,
        .wall_ns = wall_ns,
    };
    struct rollup_written written;
    enum status status =
        rollup_levels_write(pass->levels, pass->flush, &job, &written, damaged, err);
    // An older id where records with higher ones were deleted since: the first metrics have it.
    ahead.id = kind->ahead.id > 0 ? kind->ahead.id : kind->memtable.ids[rows - 1];
    ahead.host = written.host;
    if (status == STATUS_OK)
        status = rollup_kind_save_ahead(kind, pass->save, &ahead, err);
    if (status != STATUS_OK)
        return status;
    pass->kind = kind->memtable.kind;
    if (kind->ahead.id == 0)
        finish(pass, kind, rows, now_ns);
    return STATUS_OK;
}
