// Composes the metrics page of a collector from what it was read into before: running totals,
// tables of query results, and the collector's own state.  Pure.  inferstatd(8) lists
// the metrics.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/core/query/result.h"
#include "common/core/record/record.h"
#include "common/store/query/inventory.h"
#include "common/store/query/totals.h"
#include "server/collector/exporters/metrics_text.h"
#include "server/collector/threads/reject_counters.h"

// Most lines that the totals of one host, model and device take.
enum { METRICS_PAGE_LINES_PER_SERIES = 81 };

// Tables beside those of the inventory: answers of the queries PING, DEVICE_HEALTH, HOST_HEALTH and
// ALERTS (those that are open).
enum {
    METRICS_PAGE_PING = INVENTORY_TABLES,
    METRICS_PAGE_DEVICES,
    METRICS_PAGE_HOST_SAMPLES,
    METRICS_PAGE_ALERTS,
    METRICS_PAGE_TABLES,
};

// What the page is made of; borrowed.
struct metrics_page {
    const struct totals *totals;
    const struct result *tables[METRICS_PAGE_TABLES]; // NULL: nothing is known
    uint64_t stored[RECORD_KIND_COUNT];               // records since the start, by kind
    uint64_t rejected[REFUSAL_COUNT];                 // since the start
    bool can_write;                                   // the last commit succeeded
    double started_seconds;                           // the process, since the epoch
    double cpu_seconds, memory_bytes;                 // of the process
    uint64_t scrapes;
    double scrape_cpu_seconds;
    double refreshed_seconds, refresh_seconds; // when the tables were read, since the epoch; NaN:
                                               // not yet; and how long that took
    uint64_t series_max; // lines of the page, but for the collector's own; about so many at most
};

// Writes the page into an open text.  Totals that are not marked as shown are zero.
void metrics_page_write(struct metrics_text *text, const struct metrics_page *page);
