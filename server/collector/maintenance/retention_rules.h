// Parses retention rules: "raw=30d,minute=35d,bytes=50GB".
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_RULES_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_RULES_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

// Ages in nanoseconds; RETENTION_FOREVER and 0: no limit.
#define RETENTION_FOREVER INT64_MAX

struct retention_rules {
    int64_t raw_ns;                        // records
    int64_t level_ns[ROLLUP_LEVEL_COUNT];  // rollups of coarser groupings
    int64_t finest_ns[ROLLUP_LEVEL_COUNT]; // rollups by full key
    int64_t bytes;                         // largest size of the store's file; 0: no limit
};

// The defaults: records forever; minutes 35 days, hours 400 days (full key: 2 and 35 days),
// days and months forever; no limit of bytes.
struct retention_rules retention_rules_default(void);

// Parses "KEY=VALUE,..." over the defaults.  Keys: raw, minute, hour, day, month,
// finest-minute and so on (rollups by full key), bytes.  Ages are durations of at
// least a minute or "forever"; bytes are "512MB", "50GB", "1.5TB" (1 KB = 1024 bytes)
// or "unlimited".  A finer level that is not given is kept no longer than the
// coarser one.  Fails with STATUS_INVALID on an unknown key, a duplicate, a bad value, or a
// finer level that would be kept longer than the coarser one that replaces it.
MUST_CHECK enum status retention_rules_parse(struct retention_rules *rules, const char *text,
                                             struct error *err);

#endif
