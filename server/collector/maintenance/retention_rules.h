// Parser of retention rules, the option that says how long records and rollups (pre-aggregated
// rows per minute, hour, day and month) are kept: "raw=30d,minute=35d,bytes=50GB".  No I/O.
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_RULES_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_RULES_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

// Largest ages, in nanoseconds; RETENTION_FOREVER and 0: no limit.
#define RETENTION_FOREVER INT64_MAX

struct retention_rules {
    int64_t raw_ns;                        // records
    int64_t level_ns[ROLLUP_LEVEL_COUNT];  // rollups of coarser groupings
    int64_t finest_ns[ROLLUP_LEVEL_COUNT]; // rollups by full key
    int64_t bytes;                         // size limit of the store's file; 0: no limit
};

// Returns the defaults: records forever; minutes 35 days, hours 400 days (by full key 2 and 35
// days), days and months forever; no size limit.
struct retention_rules retention_rules_default(void);

// Parses rules "NAME=VALUE,..." over the defaults.  Names: raw, minute, hour, day, month,
// finest-minute and so on (rollups by full key), bytes.  Ages are durations of at
// least a minute or "forever"; bytes are "512MB", "50GB", "1.5TB" (1 KB = 1024 bytes)
// or "unlimited".  A level without a rule is kept no longer than the next coarser level.
// Returns STATUS_INVALID if a name is unknown or duplicate, a value is invalid, or a rule keeps
// a level longer than the coarser level that replaces it.
MUST_CHECK enum status retention_rules_parse(struct retention_rules *rules, const char *text,
                                             struct error *err);

#endif
