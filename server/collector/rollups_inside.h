// What the parts of rollups share: rollups.c opens them and takes records,
// rollups_round.c folds these, rollups_reading.c reads those that memory does not have.
#ifndef INFERSTAT_COLLECTOR_ROLLUPS_INSIDE_H
#define INFERSTAT_COLLECTOR_ROLLUPS_INSIDE_H

#include "common/store/gap_table.h"
#include "server/collector/rollup_fold.h"
#include "server/collector/rollup_pace.h"
#include "server/collector/rollup_sheet.h"
#include "server/collector/rollup_values.h"
#include "server/collector/rollups.h"

#define ROLLUPS_RETRY_FIRST_NS UINT64_C(1000000000)

struct rollup_repair;
struct rollup_sparse;

enum {
    ROLLUPS_HOSTS = 1024, // runs whose host is remembered
    ROLLUPS_NO_KIND = RECORD_KIND_COUNT,
    ROLLUPS_STEP_NS = 10000000, // of work for which others wait
    ROLLUPS_READ_ROWS = 2048,   // records in one slice of reading
};

// Of one kind.  Rows with ids up to `fed` are in the tables or in one of the sheets,
// those above in none; of a metric all up to its watermark are in the tables.
struct rollups_kind {
    const struct rollup_metrics *metrics;
    struct rollup_sheet filling, folding;
    int64_t fed, last; // `last`: the highest id there is
    int64_t watermarks[ROLLUP_METRICS_MAX];
    uint64_t since_ns; // when the first of `filling` came
    struct sqlite3_stmt *read;
};

struct rollups_host {
    int64_t run, host;
};

struct rollups {
    struct sqlite3 *db;
    struct sqlite3_stmt *save, *find_host;
    struct rollup_fold *fold;
    struct rollup_repair *repair;
    struct rollup_sparse *sparse;
    int64_t wall_ns; // as told last
    struct rollups_kind kinds[RECORD_KIND_COUNT];
    struct rollups_host hosts[ROLLUPS_HOSTS];
    struct gap_set gaps[ROLLUP_GROUPING_COUNT]; // of the kind at work
    unsigned active;          // the kind whose round is under way, or ROLLUPS_NO_KIND
    size_t first_row;         // of its sheet's slice
    unsigned next_metric;     // of the slice
    bool begun;               // the fold has it
    bool is_wide;             // it takes long
    bool gaps_known, planned; // for it
    bool (*is_awaited)(void *context);
    void *context;
    bool repaired; // nothing is left to be made again, as far as is known
    bool stale;    // what is in memory says nothing
    struct rollup_pace pace;
    uint64_t prune_rest_ns;
    uint64_t retry_ns; // no fold and no reading before, after a failure
    uint64_t pause_ns; // how long to wait after the next failure
    bool complained;
    uint64_t repair_rest_ns; // no repair before, after one failed
    bool repair_complained;
};

// Whether the kind's sheet takes no more.
bool rollups_is_full(const struct rollups_kind *kind);

// After some work: says to the pace how much there is left.
void rollups_worked(struct rollups *rollups, uint64_t began_ns);

// Reads how far the tables are; memory begins empty.
MUST_CHECK enum status rollups_load(struct rollups *rollups, struct error *err);

// Ends the round under way, if there is one.
void rollups_end_round(struct rollups *rollups);

// Whether the kind's watermarks must stay where they are.
bool rollups_is_held(const struct rollups *rollups, unsigned kind);

// Where nothing is in memory, all that was fed is in the tables, and metrics that do not
// say so yet do then: records above their watermarks were cleared.
MUST_CHECK enum status rollups_level_watermarks(struct rollups *rollups, struct rollups_kind *kind,
                                                struct error *err);

// After a failure, when what was begun has been undone: waits, longer each time.
void rollups_fail(struct rollups *rollups, const struct error *err, uint64_t now_ns);

MUST_CHECK enum status rollups_out_of_memory(struct error *err);

#endif
