// Rollups over a store of their own, fed by the real inserter; and what plain SQL over
// the records says that they must hold.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/codec.h"
#include "server/collector/rollup/rollups.h"
#include "server/collector/writer/writer_insert.h"
#include "tests/support/folder.h"

enum { ROLLUP_RIG_NAMES = 4, ROLLUP_RIG_RUNS = 3 };

struct rollup_rig {
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE];
    struct sqlite3 *db;
    struct inserter *inserter;
    struct rollups *rollups;
    struct table_builder *builder;
    uint64_t random, number;
    uint64_t now_ns; // monotonic, as told
    bool by_metrics; // with rollup_rig_by_metrics
};
extern struct rollup_rig rollup_rig;

int rollup_rig_set_up(void **state);
int rollup_rig_tear_down(void **state);

// From now on all kinds are written by passes, one metric of one host at once.
void rollup_rig_by_metrics(void);

// Ends and begins anew, as after a crash.
void rollup_rig_restart(void);

int64_t rollup_rig_integer(const char *sql);
void rollup_rig_exec(const char *sql);

// A random record of the kind: values absent, edges, late and absurd times at times;
// else of the three hours from `base_ns`.
void rollup_rig_record(struct record *record, enum record_kind kind, int64_t base_ns);

// Inserts the records, in the transaction under way, as a batch of that run (from 1).
void rollup_rig_insert(const struct record *records, unsigned count, int64_t run);

// Inserts three startups a minute in run 1, for three hours from `base_ns`.
void rollup_rig_insert_hours(int64_t base_ns);

// Folds: in a transaction of its own, all that there is.
void rollup_rig_fold(enum rollups_pace pace);
void rollup_rig_fold_all(void);

// Reads all that is not in memory.
void rollup_rig_catch_up(void);

// Makes again what was cleared, all of it.
void rollup_rig_rebuild(void);

// Fails where some rollup of the kind outside of gaps is not what plain SQL says of the
// records up to its watermark, or is missing or too much.  Looks at all metrics, or at
// each with a chance of one in `one_in`.
void rollup_rig_check(enum record_kind kind, unsigned one_in);
