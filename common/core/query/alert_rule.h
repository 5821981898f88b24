// Alert rule: one condition that the collector evaluates, of a metric or of a source, by group.
// query_text_read_alert parses one; alert_file.h reads all rules of a file.  No I/O.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/query.h"

// Sources: conditions that no metric of records tells (inferstatd-alerts(5) has what each means).
// The collector computes one value per group over the rule's window.
//
// X(suffix of the enumerator, name, unit, grouping (bits: BY_MODEL, ...), whether groups without a
// value are good (is_rare, below))
#define ALERT_SOURCES(X)                                                                           \
    X(HOST_SILENT, "host_silent_ns", DURATION, BY_HOST, false)                                     \
    X(RUNS_KILLED, "runs_killed", COUNT, BY_MODEL | BY_HOST, true)                                 \
    X(FAILED_RATIO, "failed_ratio", RATIO, BY_MODEL | BY_HOST, true)                               \
    X(RECORDS_DROPPED, "records_dropped", COUNT, BY_HOST, true)                                    \
    X(CLOCK_OFFSET, "clock_offset_ns", DURATION, BY_HOST, false)                                   \
    X(DISK_FULL_IN, "disk_full_in_ns", DURATION, 0, false)                                         \
    X(XID_COUNT, "xid_count", COUNT, BY_HOST | BY_DEVICE, true)                                    \
    X(SLOWDOWN_MARGIN, "slowdown_margin_celsius", CELSIUS, BY_HOST | BY_DEVICE, false)             \
    X(PCIE_NARROW, "pcie_narrow_ratio", RATIO, BY_HOST | BY_DEVICE, true)                          \
    X(ECC_UNCORRECTED, "ecc_uncorrected_count", COUNT, BY_HOST | BY_DEVICE, true)                  \
    X(BASELINE_SLOWER, "baseline_slower_ratio", RATIO, BY_MODEL | BY_HOST, false)

enum alert_source {
#define ALERT_SOURCE_ENUM(name, text, unit, grouping, is_rare) ALERT_SOURCE_##name,
    ALERT_SOURCES(ALERT_SOURCE_ENUM)
#undef ALERT_SOURCE_ENUM
        ALERT_SOURCE_COUNT,
    ALERT_SOURCE_NONE = -1, // the rule is of a metric
};

struct alert_source_info {
    const char *name;
    enum unit unit;
    unsigned grouping; // bit i: enum query_dimension i
    bool is_rare;
};

// The description of a source, static.
const struct alert_source_info *alert_source_info(enum alert_source source);

// The source with this name; ALERT_SOURCE_NONE if there is none.
enum alert_source alert_source_find(const char *name);

// Statistics of the values of a window: X(suffix of the enumerator, name).
#define ALERT_STATS(X)                                                                             \
    X(COUNT, "count")                                                                              \
    X(MEAN, "mean")                                                                                \
    X(MIN, "min")                                                                                  \
    X(MAX, "max")                                                                                  \
    X(P50, "p50")                                                                                  \
    X(P90, "p90")                                                                                  \
    X(P95, "p95")                                                                                  \
    X(P99, "p99")

enum alert_stat {
#define ALERT_STAT_ENUM(name, text) ALERT_STAT_##name,
    ALERT_STATS(ALERT_STAT_ENUM)
#undef ALERT_STAT_ENUM
        ALERT_STAT_COUNT_OF
};

// The name of a statistic, static; also its key in rows of AVERAGE.
const char *alert_stat_name(enum alert_stat stat);

enum {
    ALERT_NAME_SIZE = 64,   // terminating NUL included, as below
    ALERT_TEXT_SIZE = 1024, // of a line
};

// Plain data.  Values and thresholds are in the unit of the metric or source; those of
// ALERT_STAT_COUNT are counts.
struct alert_rule {
    char name[ALERT_NAME_SIZE];
    struct query query;       // kind QUERY_AVERAGE: metric, filter without times, group_by, slo
    enum alert_source source; // not ALERT_SOURCE_NONE: query.metric is its name
    enum unit unit;           // of values and thresholds
    int64_t window_ns;        // the values of the last window_ns count
    int64_t for_ns;           // for so long the condition must hold
    enum alert_stat stat;
    bool is_below; // the condition is value < threshold, otherwise value > threshold
    double warning;
    double critical; // NaN: the rule has no critical threshold
    double clear;    // an alert resolves when the value is not past it
    uint64_t least;  // with fewer values a window has no data
    bool is_rare;    // a window without data is good: of loads, startups and some sources
    bool is_builtin; // not from the file
    unsigned line;   // of the file, from 1; of a built-in rule 0
    char text[ALERT_TEXT_SIZE]; // as written, without the name
};
