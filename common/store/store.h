// Queries of an open store.  One thread at a time.
#ifndef INFERSTAT_STORE_STORE_H
#define INFERSTAT_STORE_STORE_H

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/read/session.h"

// Answers a query (every kind but QUERY_CLEAR; QUERY_PING gives what a file can
// know).  On success `*out` is to be freed with result_free.  STATUS_INVALID for
// a query that makes no sense, STATUS_NO_DATA where an average has no rows
// or nothing passes a summary's filter,
// STATUS_FULL where the answer would have too many groups.
//
// Keys of the answers:
//
// PING: version protocol store uptime_ns? now_ns store_bytes runs_open store_error? (why a
//   collector could not write what it was sent last; null of a file)
// SUMMARY, one row: runs runs_open hosts models loads loads_failed inferences
//   inferences_failed operations prompt_tokens generated_tokens
//   tokens_per_second (total over total) mean_tokens_per_second (mean of requests)
//   ttft_mean_ns ttft_p95_ns e2e_mean_ns load_mean_ns host_memory_bytes (last
//   sample of every open run, summed) last_load_model last_load_started_ns
//   last_load_duration_ns last_load_status last_inference_model
//   last_inference_started_ns last_inference_tokens_per_second
//   last_inference_ttft_ns last_inference_generated_tokens startup_last_ns
//   produced stored dropped unnumbered lost (the two together) and why:
//   dropped_REASON for each reason of DELIVERY_REASONS (dropped_ring_full has the
//   unnumbered, too); duplicates refused expired cleared in_flight coverage_ratio; refused_messages
//   (messages, connections and names not taken, whatever the filter) refusals (why, as text: "names
//   10, message_size 3"; null where there are none) store_bytes (the file and its log)
//   store_error? (as of PING)
//   pipelines pipelines_failed last_pipeline_workload last_pipeline_model
//   last_pipeline_started_ns last_pipeline_status last_pipeline_items_per_second
//   last_pipeline_overlap_ratio
//   Sums are those of rollups and records, as of AVERAGE; inferences_failed,
//   loads_failed and pipelines_failed are counted among the records that have not expired
// AVERAGE, a row per group, and with step_ns per group and step of time that has
//   values, oldest first: the dimensions' names as keys, [started_ns: start of the step,
//   a multiple of step_ns], then metric unit count mean total_over_total? min max p50
//   p90 p95 p99 met_ratio? coverage_ratio lost, and of the whole answer: sketches (rollups read)
//   rows (records read) note (what is to be known about it, as text, or null: that
//   records have expired, and what stands in for them; why so many rollups were read).
//   itl_ns: sums and extremes are those of the sketches, within 1 %.  mbu_ratio: from
//   records, of requests whose model's weights and device's bandwidth are known; the note says
//   of how many the KV cache is not (bandwidth.h).
//   goodput_per_second (with slo; from records): count is that of requests, mean those that
//   met all objectives per second of the window (or of the step's part of it; of a window
//   that is open, between the first and the last request's start), met_ratio their share
//   of all (null for other metrics).  What has no second token meets objectives about
//   these; what has no first one, or failed, or was cancelled, meets none
// OVERVIEW, a row per host, device and model: host device model runs_open
//   inferences prompt_tokens generated_tokens tokens_per_second
//   mean_tokens_per_second ttft_mean_ns ttft_p95_ns e2e_mean_ns loads
//   load_mean_ns host_memory_bytes device_memory_bytes last_ns lost
//   coverage_ratio (of the host, in the window).  runs_open and device_memory_bytes know the newest
//   4,000 inferences and loads; last_ns of what is not among them is the start of its
//   newest rollup
// RECORDS: run host stream number started_ns received_ns, the kind's columns
//   (names and enumerations as text; a sketch as hexadecimal), its derived columns; load_stage also
//   has model and device of its parent; run has dropped unnumbered lost, the same
//   by reason as in SUMMARY, coverage_ratio, in_flight, and balanced (1, 0, or null
//   while open or silent; what AUDIT recounts) in addition, and no stream, no number.  Newest (or
//   oldest) by started_ns first.  An answer ends after limit rows or some megabytes of text; the
//   cursor goes on behind it.
// AUDIT, a row a run, oldest first: run host started_ns end produced stored lost,
//   by reason as in SUMMARY, expired cleared duplicates in_flight rows (counted)
//   verdict (balanced, unbalanced, open, unknown) finding (what is wrong, in words,
//   "; " between; null where nothing is).  What belongs to no run has a row of its
//   own, without the run.  audit.h says what is checked.  The cursor goes on behind
//   limit runs (QUERY_ROWS_MAX at most), or fewer where they have many streams.
//
// COPY, one row: copy.h lists the keys.  The file at query->file.path is made.
// BASELINES: baseline created_ns filter (in words) since_ns until_ns coverage_ratio
//   runs samples values (numbers kept in all) fingerprint (JSON: environment.h)
// COMPARE, a row per model (or operation; of a pipeline that says no model its workload,
//   as model), device, size of a pipeline's batches and metric that both sides have: model
//   operation device metric unit
//   before_count after_count needed_count (values for an interval) before_median
//   after_median ratio (after / before) ratio_low ratio_high (its interval; null: none)
//   confidence margin verdict (stats.h) note (why nothing is decided; or null)
//   before_runs after_runs before_coverage_ratio after_coverage_ratio differences (of
//   the fingerprints, and what only one side has, in words; or null) batch_items, and of
//   times, else null: before_p95 after_p95 p95_ratio p95_ratio_low p95_ratio_high
//   p95_verdict.  The verdict of a row is that of the median; there is none, but where
//   the query asks for the metric, of what explains a pipeline's items_per_second
//   (overlap_ratio, exposed_copy_ns, ...).  Operations named as a pipeline's workload are
//   its batches and are not compared (samples.h).  Of more than
//   10,000 values, evenly chosen ones are compared.  STATUS_INVALID where the
//   fingerprints are unlike and the query does not force it.  A verdict on figures that
//   depend on the work (tokens of requests, files in the page cache) is undecided where
//   that differs by more than 10 %, unless forced.  With force, what has no counterpart
//   is compared with the only one on another device, else with the only one.
// SLOWEST, a row for each of the 10 (or limit, at most 1,000) slowest requests by
//   query->metric (e2e_ns where it is empty; a time: the highest, a rate: the lowest),
//   the slowest first: run host model device request finish started_ns metric value
//   e2e_ns queue_ns prefill_ns decode_ns? prompt_tokens cached_prompt_tokens
//   generated_tokens concurrent_requests? peers (requests of its model and device that
//   the filter covers) took_ns? (what the metric is about: all of it, ttft, decode, ...)
//   median_ns? (of the peers; for a rate what this much work takes at the median rate)
//   excess_ns? and its parts, whose sum it is: queue_excess_ns prompt_excess_ns
//   prefill_excess_ns tokens_excess_ns decode_excess_ns copy_excess_ns load_excess_ns
//   starvation_excess_ns throttle_excess_ns concurrency_excess_ns other_excess_ns
//   (latency_attribution.h), blame (the largest; null up to 10 % above the median and with fewer
//   than 5 peers) throttle_reasons? note?.  Medians are within 1 %.
// STAGES, rows per group (none: one), largest first: the dimensions, cache (all, then
//   cold mixed warm unknown as far as there are such loads: cold from 0 to 0.1 of the
//   file in the page cache, warm from 0.9), part (total; stage, in order; other), stage?
//   loads failed? count (loads that have the part) mean_ns p50_ns max_ns share_ratio (of
//   the time of all loads) load_bytes_per_second? storage_bytes_per_second?
//   page_cache_ratio? note?.  Of loads that ended well, the newest 200,000.
// FLEET, a row per model, device, host and metric (query->metric, or decode, prefill and
//   load rates and ttft), those that stand out first: model device host metric unit
//   verdict (worse different better usual; few values, few hosts: not compared)
//   deviation_ratio? score? (spreads from the median) value (the host's median) median?
//   (of the hosts' medians) spread? hosts (compared) count (values) reason? (fleet.h)
//
// Coverage, lost: stored / (stored + lost) and how many were lost, over all kinds of
// records, in the filter's window (of AVERAGE with steps: in the step's part of it), of the
// filter's host and run, and of a group's own host or run where the answer is grouped by
// these.  What was lost has no model, so this is never split by one.  A loss counts where
// it may have been (coverage.h): as far as its time is known, there, else in all of its
// run's life.  Where nothing was lost the ratio is 1; what has expired was stored, as far
// as ledgers and rollups know it; what was cleared is neither.  Null: not counted within
// the budget.  AVERAGE's note says what is not known.  SUMMARY, RUNS and AUDIT tell of
// runs, not of windows: all they ever stored and lost.
MUST_CHECK enum status store_query(struct store *store, const struct query *query,
                                   struct result **out, struct error *err);

#endif
