// Parser of retention rules, the option that says how long records and rollups (pre-aggregated
// rows per minute, hour, day and month) are kept: "raw=30d,samples=2d,minute=35d".  No I/O.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/store/rollup/rollup.h"

#define RETENTION_FOREVER INT64_MAX // an age without a limit

// Largest ages, in nanoseconds, and the size limit.
struct retention_rules {
    int64_t raw_ns;                        // records
    int64_t samples_ns;                    // records of samples; those go at raw_ns at the latest
    int64_t level_ns[ROLLUP_LEVEL_COUNT];  // rollups by model only (ROLLUP_MODEL)
    int64_t finest_ns[ROLLUP_LEVEL_COUNT]; // rollups by all columns (ROLLUP_FULL)
    int64_t bytes;                         // size limit of the store's file; 0: no limit
};

// Returns the defaults: records forever, samples a day; minutes 35 days (2 in ROLLUP_FULL); hours
// 400 days (35 in ROLLUP_FULL); days and months forever; no size limit.
struct retention_rules retention_rules_default(void);

// Parses rules "NAME=VALUE,..." over the defaults.  Names: raw, samples, minute, hour, day, month,
// finest-minute, finest-hour, finest-day, finest-month (grouping ROLLUP_FULL), bytes.  Ages are
// durations of at least a minute or "forever"; bytes are "512MB", "50GB", "1.5TB" (1 KB = 1024
// bytes; at least 1 MB) or "unlimited".
//
// When a level expires, the next coarser one replaces it: minutes by hours, hours by days, days by
// months.  So a level's age is at most that of the next coarser level of the same grouping: a
// larger default is lowered to it, a larger rule is invalid.  Returns STATUS_INVALID also if a name
// is unknown or duplicate or a value is invalid.
MUST_CHECK enum status retention_rules_parse(struct retention_rules *rules, const char *text,
                                             struct error *err);

// The age at which records of the kind expire.  Samples are the records of devices, of hosts and of
// the processes on devices: there is one every second, and averages need only their rollups.
int64_t retention_rules_age(const struct retention_rules *rules, enum record_kind kind);
