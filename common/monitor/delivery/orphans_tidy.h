// Storage quota for orphans, the files of dead runs: bounds the memory of a user's run files and
// the disk space of the spools until a collector takes their records.  While the collector is
// unreachable, an engine that is killed and restarted leaves a run file, and perhaps a spool, each
// time.
#ifndef INFERSTAT_MONITOR_ORPHANS_TIDY_H
#define INFERSTAT_MONITOR_ORPHANS_TIDY_H

#include <stdint.h>

#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/delivery/orphans.h"

struct orphans_bounds {
    uint64_t memory_max; // bytes of dead runs' files in orphans_folders.runs
    uint64_t total_max;  // bytes of all files and spools of dead runs
};

// The default bounds for a folder of run files `runs`:
//   memory_max  256 MiB, or half of the folder's file system if that is less; unlimited on a disk
//   total_max   16 times `spool_bytes`, at least 4 GiB
struct orphans_bounds orphans_default_bounds(const char *runs, uint64_t spool_bytes);

// Enforces the bounds on the user's dead runs: frees the parts of run files that hold no record,
// then takes step 1 with each run, the oldest first, then step 2, and so on, until the runs are
// within the bounds.  Steps are logged.
//  1. moves run files from memory to the folder of spools, if that leaves SPOOL_FREE_DEFAULT there
//  2. drops the run's records: its replay reports them as lost (DELIVERY_SPOOL_FULL)
//  3. removes the files of a run without records; the collector does not learn of its losses
// Several processes may call it at once.  Any thread.
void orphans_tidy(const struct orphans_folders *folders, const struct orphans_bounds *bounds,
                  const struct log_sink *log);

#endif
