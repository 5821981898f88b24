// Bounds on what the dead runs of a user leave until a collector takes it: run files, which take
// memory, and spools, which take disk space.  While the collector is unreachable, an engine that is
// killed and started again and again leaves a run file, and perhaps a spool, each time.
#ifndef INFERSTAT_MONITOR_ORPHANS_TIDY_H
#define INFERSTAT_MONITOR_ORPHANS_TIDY_H

#include <stdint.h>

#include "common/monitor/delivery/log_sink.h"
#include "common/monitor/delivery/orphans.h"

struct orphans_bounds {
    uint64_t memory_max; // bytes of dead runs' files in orphans_folders.runs
    uint64_t total_max;  // bytes of all files and spools of dead runs
};

// The bounds for a folder of run files: in memory 256 MiB or, if less, half of the file system of
// `runs` (no bound if that is on a disk); in all 16 times `spool_bytes`, at least 4 GiB.
struct orphans_bounds orphans_default_bounds(const char *runs, uint64_t spool_bytes);

// Does nothing while the user's dead runs are within the bounds.  Otherwise takes these steps with
// dead runs, the oldest first, until they are; each change is logged:
//  1. deallocates the parts of run files that hold no record
//  2. moves run files from memory to the folder of spools, if that leaves SPOOL_FREE_DEFAULT
//  3. gives the run's records up: its replay reports them as lost (DELIVERY_SPOOL_FULL)
//  4. removes what is left of a run that was given up; its collector hears no more of it
// Several processes may do it at once.  Any thread.
void orphans_tidy(const struct orphans_folders *folders, const struct orphans_bounds *bounds,
                  const struct log_sink *log);

#endif
