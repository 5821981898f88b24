// Query handlers of the store: the functions that answer queries, one per query kind that only
// reads (query_*.c in this folder; those of alerts are in query_alerts.c).  Those of AUDIT, COMPARE
// and COPY are in audit.h, baseline.h and copy.h. store_query calls them in a read transaction
// (session.h).  store.h lists the columns of the answers.
#pragma once

#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/aggregate/aggregate_scan.h"

// Answers a query; on success the caller frees `*out` with result_free.
typedef enum status query_answer(struct store *store, const struct query *query,
                                 struct result **out, struct error *err);

query_answer query_ping, query_summary, query_average, query_overview, query_records, query_slowest,
    query_stages, query_errors, query_events, query_fleet, query_admin_log, query_baselines,
    query_now, query_device_health, query_host_health, query_alerts, query_alert_try, query_why;

// The most rows of the query's answer.
static inline uint32_t query_rows_most(const struct query *query)
{
    return query->limit && query->limit < QUERY_ROWS_MAX ? query->limit : QUERY_ROWS_MAX;
}

// Metrics that SUMMARY and OVERVIEW share.  The enums are their indexes in an aggregation:
// aggregate_scan_want_inferences and aggregate_scan_want_loads add the metrics in this order.
// answer_inferences and answer_loads set the cells of the last row from their aggregates, the array
// `sums`.  The cell load_mean_ns is the mean duration of loads that succeeded.
enum {
    INFERENCE_E2E,       // e2e_ns, with quantiles
    INFERENCE_TTFT,      // ttft_ns, with quantiles
    INFERENCE_PROMPT,    // prompt_tokens
    INFERENCE_GENERATED, // generated_tokens
    INFERENCE_SPEED,     // tokens_per_second
    INFERENCE_ITEM_COUNT,
    INFERENCE_ITEM_SPEED, // items_per_second
    INFERENCE_METRICS
};
enum { LOAD_DURATION, LOAD_SPEED, LOAD_METRICS }; // duration_ns, load_bytes_per_second
void aggregate_scan_want_inferences(struct aggregate_scan *scan);
void aggregate_scan_want_loads(struct aggregate_scan *scan);
void answer_inferences(struct result *answer, const struct ratio *sums);
void answer_loads(struct result *answer, const struct ratio *sums);

// Reads the records of one kind with ids from `first` to `last`, at most `limit`, in order of their
// ids, which is the order of arrival.  Columns are those of QUERY_RECORDS.  Used by the live feed.
MUST_CHECK enum status store_records_between(struct store *store, enum record_kind kind,
                                             int64_t first, int64_t last, uint32_t limit,
                                             struct result **out, struct error *err);

// Sets `*out` to the highest id of a record of that kind; 0 if there is none.
MUST_CHECK enum status store_last_id(struct store *store, enum record_kind kind, int64_t *out,
                                     struct error *err);
