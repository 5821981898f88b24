// One kind's records on their way into rollups: which ones the SQL table `rollup` contains, and the
// memtable (rollup_memtable.h) with those that it lacks.  Writer thread only.
//
// The table has the records with ids up to `watermark`.  During a pass (rollup_pass.h), also after
// a crash in the midst of it, it has more of them in some metrics: `ahead`.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "server/collector/rollup/rollup_memtable.h"
#include "server/collector/rollup/rollup_metrics.h"

// The first `metrics` metrics have the records with ids up to `id`; the next one has those of
// the hosts up to `host`.
struct rollup_ahead {
    int64_t id; // 0: no metric is ahead
    unsigned metrics;
    int64_t host; // by name id; INT64_MIN: of no host
};

struct rollup_kind {
    const struct rollup_metrics *metrics;
    struct rollup_memtable memtable;
    size_t first_row; // rows of the memtable before it are written
    int64_t watermark;
    struct rollup_ahead ahead;
    int64_t fed;       // the memtable has the records up to this id
    int64_t last;      // the highest id there is
    uint64_t since_ns; // when the first record of the memtable came
    struct sqlite3_stmt *read;
};

// Reads what the table has of the kind.  If the metrics have different records, but not as a pass
// leaves them, all of the kind's days are to be rebuilt.  `save`: as rollup_kind_prepare sets it.
MUST_CHECK enum status rollup_kind_load(struct rollup_kind *kind, struct sqlite3_stmt *save,
                                        struct error *err);

// Prepares the statement that the functions here save with.
MUST_CHECK enum status rollup_kind_prepare(struct sqlite3 *db, struct sqlite3_stmt **save,
                                           struct error *err);

// Saves that the table has the records up to `id` in all metrics.
MUST_CHECK enum status rollup_kind_save(struct rollup_kind *kind, struct sqlite3_stmt *save,
                                        int64_t id, struct error *err);

// Saves what a metric has after a part of a pass: the records up to `ahead->id` of the hosts up to
// `ahead->host`, or of all hosts if that is INT64_MAX.  The metric is number `ahead->metrics`.
MUST_CHECK enum status rollup_kind_save_ahead(struct rollup_kind *kind, struct sqlite3_stmt *save,
                                              const struct rollup_ahead *ahead, struct error *err);

// Empties the memtable.
void rollup_kind_clear(struct rollup_kind *kind);
