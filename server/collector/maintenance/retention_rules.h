// How long the collector keeps what, in words: "raw=30d,minute=35d,bytes=50GB".
#ifndef INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_RULES_H
#define INFERSTAT_COLLECTOR_MAINTENANCE_RETENTION_RULES_H

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

// Ages in nanoseconds; RETENTION_FOREVER, and what was never set: nothing is too old.
#define RETENTION_FOREVER INT64_MAX

struct retention_rules {
    int64_t raw_ns;                        // records
    int64_t level_ns[ROLLUP_LEVEL_COUNT];  // rollups by model, by host and of all
    int64_t finest_ns[ROLLUP_LEVEL_COUNT]; // rollups of every series apart
    int64_t bytes;                         // of the store's file; 0: as many as there are
};

// The defaults: records forever; minutes 35 days, hours 400 days (full key: 2 and 35 days),
// days and months forever; no limit of bytes.
struct retention_rules retention_rules_default(void);

// Reads "KEY=VALUE,..." over the defaults.  Keys: raw, minute, hour, day, month,
// finest-minute and so on (every series apart), bytes.  Ages are durations of at
// least a minute or "forever"; bytes are "512MB", "50GB", "1.5TB" (1 KB = 1024 bytes)
// or "unlimited".  A finer level that is not given is kept no longer than the
// coarser one.  STATUS_INVALID says which word is wrong: unknown, twice, not a value,
// or a finer level that would outlive a coarser one, which has to replace it.
MUST_CHECK enum status retention_rules_parse(struct retention_rules *rules, const char *text,
                                             struct error *err);

#endif
