// Query API of a store.  store_query executes a query on an open store (session.h) and returns its
// answer as a table of cells (result.h).  store_restore replaces a store file by a backup.  Used by
// the collector's query service, and by clients on a store file.  One thread at a time.
#pragma once

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/query/result.h"
#include "common/store/read/session.h"

// Executes a query of one of the kinds below, in one snapshot of the store.  On success the caller
// frees `*out` with result_free.  Returns STATUS_INVALID for another kind or an invalid query,
// STATUS_NO_DATA if an average has no rows or no record matches a summary's filter, STATUS_FULL if
// the answer would have too many groups, STATUS_TIMEOUT if it exceeds the time budget (session.h).
//
// The rest says what answers have by query kind (query.h), beyond the keys of columns that
// proto/inferstat.proto lists.  "?" after a column: may be null.  A run is the lifetime of one
// monitored process.  Rollups are aggregates of records, computed in advance (rollup.h).  A record
// expires when retention deletes it; a deletion by QUERY_CLEAR clears it.  A lost record was
// produced but never stored.
//
// PING: what only a collector knows is null if a file is queried directly
// ADMIN_LOG, one row per act, newest first
// SUMMARY, one row: runs runs_open first_started_ns? (of runs) hosts models loads loads_failed
// inferences inferences_failed
//   operations prompt_tokens generated_tokens tokens_per_second (total tokens over total time)
//   mean_tokens_per_second (mean of the requests' rates) ttft_mean_ns ttft_p95_ns e2e_mean_ns
//   e2e_p50_ns? e2e_p95_ns? items? items_per_second? (these four only if requests have items; their
//   tokens are null if none has tokens) load_mean_ns host_memory_bytes (sum of the last sample of
//   each open run) last_load_model last_load_started_ns last_load_duration_ns last_load_status
//   last_inference_model last_inference_started_ns last_inference_tokens_per_second
//   last_inference_ttft_ns last_inference_generated_tokens last_inference_items
//   last_inference_e2e_ns startup_last_ns produced stored dropped unnumbered lost
//   (without a window: dropped + unnumbered), dropped_REASON for each of DELIVERY_REASONS
//   (dropped_ring_full includes unnumbered), duplicates refused expired cleared in_flight
//   coverage_ratio refused_messages
//   (messages, connections and names refused, regardless of the filter) refusals? (how many for
//   each reason, as text: "names 10, message_size 3") forgotten_runs forgotten_stored
//   forgotten_lost forgotten_on_request (runs that were removed, their records and losses, and how
//   many of these runs FORGET removed, regardless of the filter) store_bytes (the file and its
//   write-ahead log) store_error? (as in PING) pipelines pipelines_failed last_pipeline_workload
//   last_pipeline_model last_pipeline_started_ns last_pipeline_status
//   last_pipeline_items_per_second last_pipeline_overlap_ratio, and throughput (throughput.h):
//   request_rate output_token_rate prompt_token_rate item_rate? error_ratio cancelled_ratio
//   output_tokens window_ns (null without requests).  Sums include rollups, as in
//   AVERAGE; inferences_failed, loads_failed and pipelines_failed count only records that have not
//   expired
// AVERAGE, one row per group; with step_ns one per group and time step that has values, oldest
//   first (started_ns: start of the step, a multiple of step_ns): also total_over_total? (of a
//   rate: sum of numerators over sum of denominators) met_ratio?, and of the whole answer sketches
//   (rollups read) rows (records read).  note?: expired records and what replaces them; why many
//   rollups were read.  sum? is of tokens and throughput; of running_requests and waiting_requests
//   the mean in all processes together.
//   A window of 10 minutes or more of samples of devices and hosts is widened to whole minutes,
//   unless steps are shorter; the note has its bounds.
//   Throughput (throughput.h): count is the number of requests that ended; mean is the rate or
//   ratio; sum is what was divided: requests, tokens, failed or cancelled requests, at most
//   2^63 - 1; window_ns is the wall time of the window or step; quantiles and extremes are null.
//   itl_ns: sums, minimum and maximum are those of the sketches, within 1 %.  mbu_ratio: from
//   records, of requests with known weights and device bandwidth; the note has the number of
//   requests without a known KV cache size (bandwidth.h).
//   tokens_per_joule, joules_per_request (energy.h): count is the number of requests, sum the
//   tokens or joules that were divided, window_ns as of throughput; mean is null if no device
//   counts, and the note says how often one was left out and why; quantiles and extremes are null.
//   goodput_per_second (requires slo; from records): count is the number of requests; mean is the
//   number of requests that met all objectives per second (goodput.h has the divisor); met_ratio is
//   their share of all requests (null for other metrics).  A request without a second token meets
//   objectives on later tokens; one that has no first token, failed or was cancelled meets none
// OVERVIEW, one row per host, device and model: host device model runs_open inferences
//   prompt_tokens generated_tokens tokens_per_second mean_tokens_per_second ttft_mean_ns
//   ttft_p95_ns e2e_mean_ns e2e_p50_ns? e2e_p95_ns? items? items_per_second? (as in SUMMARY) loads
//   load_mean_ns host_memory_bytes device_memory_bytes last_ns lost coverage_ratio (of the host,
//   in the window).  runs_open and device_memory_bytes are from the newest 4,000 inferences and
//   loads; for a row without any of these, last_ns may be the start of its newest rollup: of a day,
//   or of a month that has expired and has no rollups of days
// RECORDS: load_stage also has the model and device of its load.  run has no stream and number, but
//   dropped unnumbered lost, dropped_REASON, coverage_ratio, in_flight, and balanced? (1 if
//   v_ledger (schema.h) finds no contradiction, else 0; null while the run is open or silent).
//   Derived columns follow the kind's; names and enumerations are texts.  Sorted by started_ns,
//   newest first or oldest first.  An answer ends after limit rows or some megabytes of text; the
//   cursor continues after it.
// AUDIT, one row per run, oldest first: also started_ns dropped_REASON expired cleared duplicates
//   in_flight rows (counted).  finding?: contradictions in words, separated by "; ".  Orphan rows,
//   of a run that the store does not have, are reported in a row of their own, with null for the
//   run; so are, without a filter, the sums of removed runs (verdict forgotten).  audit.h lists the
//   checks. The cursor continues after limit runs (QUERY_ROWS_MAX at most), or fewer if they have
//   many streams.
//
// COPY, one row: copy.h lists the columns.  Creates the file at query->file.path.
// BASELINES, one row per stored baseline: baseline created_ns filter (in words) since_ns until_ns
//   coverage_ratio runs samples values (stored values in all) fingerprint (the environment as JSON:
//   environment.h)
// COMPARE, one row per subject, device, pipeline batch size and metric that both sides have: model
//   operation device metric unit (the model of a pipeline without a model is its workload)
//   before_count after_count needed_count (values needed for an interval) before_median
//   after_median ratio (after / before) ratio_low? ratio_high? (its confidence interval) confidence
//   margin verdict (stats.h) note? (why the verdict is undecided) before_runs after_runs
//   before_coverage_ratio after_coverage_ratio differences? (of the environments, and subjects that
//   only one side has, in words) batch_items; for times, else null, before_p95 after_p95 p95_ratio
//   p95_ratio_low p95_ratio_high p95_verdict, and the same of p99; for totals before_total
//   after_total instead of medians; of two models, else null, before_parameters? after_parameters?
//   parameters_ratio? before_file_bytes? after_file_bytes? file_bytes_ratio? before_quantisation?
//   after_quantisation?.
//   `verdict` is that of the median or the total.  Totals are busy_output_token_rate, output tokens
//   / time with a request in progress, run by run (judge.h says when demand leaves it undecided);
//   error_ratio; and without a verdict, since they show the demand, request_rate,
//   output_token_rate and prompt_token_rate of the window.  Metrics that explain a pipeline's
//   items_per_second (overlap_ratio, exposed_copy_ns, ...) have one only if the query names the
//   metric.  Operations named like a pipeline's workload are its batches and are not compared
//   (samples.h).  Of more than 10,000 values, an evenly spaced subset is compared.
//   The query returns STATUS_INVALID if the environments are incomparable, unless it has `force`.
//   The verdict on a metric that depends on the work (tokens or items of requests, page cache
//   share) is undecided if the work differs by more than 10 %, or requests of only one side have
//   tokens or items, unless forced.  If both sides are filters that name a model, the records of
//   one are compared with those of the other on the same device.  With force, subjects without a
//   counterpart are compared across devices; if each side has one subject left, these two are
//   compared.
// SLOWEST, one row for each of the 10 (or limit, at most 1,000) slowest requests by query->metric
//   (default e2e_ns), slowest first: those with the highest times or the lowest rates: run host
//   model device request finish started_ns metric value e2e_ns queue_ns prefill_ns decode_ns?
//   prompt_tokens cached_prompt_tokens generated_tokens (these and prefill_ns are null where the
//   request has) items? concurrent_requests? peers (how many requests with its model and device the
//   filter covers) took_ns? (time of the phases that the metric covers: all, those up to the first
//   token, decode, ...) median_ns? (of the peers; for a rate the time of the same work at the
//   median rate) excess_ns? and its parts, which add up to it: queue_excess_ns prompt_excess_ns
//   prefill_excess_ns tokens_excess_ns decode_excess_ns copy_excess_ns load_excess_ns
//   starvation_excess_ns throttle_excess_ns stopped_excess_ns concurrency_excess_ns
//   other_excess_ns (latency_attribution.h), blame? (the largest part; null if the excess is at
//   most 10 % of the median, or with fewer than 5 peers) throttle_reasons? note? expired_ns?
//   (requests before that time have expired).  Medians are within 1 %.
// STAGES, rows per group (one group without group_by), largest first: the dimensions, cache (all;
//   then cold, mixed, warm, unknown if there are such loads), part (total; stage, in order; other),
//   stage? loads failed? count (loads that have the part) mean_ns p50_ns max_ns share_ratio (of the
//   time of all loads) load_bytes_per_second? storage_bytes_per_second? page_cache_ratio? note?.  A
//   load is cold if at most 0.1 of its file was in the page cache, warm from 0.9.  Covers the
//   newest 100,000 loads.
// ERRORS, one row per group, kind and error, most failures first, 100 of them (or limit, at most
//   1,000): error? is null where none was recorded, example? the text that arrived last, note? what
//   the counts lack.  Covers the newest 100,000 failures of each kind.
// EVENTS, newest first, 100 events (or limit, at most 1,000) that overlap the window; one row per
//   event and model that ran requests then, else one row of model null: run host device? (null: the
//   event is of the host) model? event started_ns ended_ns? (null: it lasts; what lasted when its
//   run ended, ended with it) duration_ns (so far) code? detail? requests usual_requests?
//   tokens_per_second? usual_tokens_per_second? tokens_per_second_ratio? (while it lasted, of an
//   XID in the minute after it / usual) tokens_per_second_ratio_low? tokens_per_second_ratio_high?
//   (99 % interval), the same of ttft_ns (ttft_ratio, ...) and joules_per_token, tokens_lost?
//   tokens_lost_low? tokens_lost_high? (what the requests would have put out at the usual speed in
//   their time, less what they did), joules_lost? joules_lost_low? joules_lost_high? (used beyond
//   what their tokens usually take) note? (event_cost.h has all of these) left_out (events that
//   match, too, beyond the limit).  The filter may have a host, a device, a model and an event.
//   Reads the newest 20,000 records of events up to the window's end; before the window a day of
//   them, and of each open run the newest 64
// ALERTS, one row per alert that is open, those that fire first (alert.list: or that ever fired, by
//   the filter's window, the newest first); since_ns: it fired; pending: the condition holds.
//   Silences that have not ended; trouble
// ALERT_TRY, one row per group of the rule that has values
// FLEET, one row per model, device, host and metric (query->metric, or decode, prefill, item and
//   load rates and ttft), outliers first: model device host metric unit verdict (worse, different,
//   better, usual; few values, few hosts: not compared) deviation_ratio? score? (distance from the
//   median, in spreads) value (the host's median) median? (of the hosts' medians) spread? hosts
//   (compared) count (values) reason? (fleet.h).  Metrics of samples of devices and hosts have no
//   model (nor device), means in place of medians, and no reason
//
// NOW, one row per model and host of the processes that are open or were heard of in the last 24
//   hours, those that need attention first (now.h): model is null for processes without a model
//   yet.  Figures are null where no process is open, of 5 min or from filter.since_ns on, but not
//   before the first process began; item_rate? e2e_p50_ns? e2e_p95_ns? only if its requests have
//   items (then rates of tokens are null).  running_requests? waiting_requests? are of the model in
//   its open processes, as last sampled; of processes whose samples do not say of which model, all
//   of the process.  A file is judged as of its last message.  The usual level is that of the same
//   hour of the 14 days before.
//
// DEVICE_HEALTH, one row per device of the runs that are open or were heard of in the last 24 hours
//   (with a window: whose lives overlap it), by host and device: device (as the run calls it that
//   samples it) sampled_ns? (null: it is not sampled) pcie_rx_bytes_per_second?
//   pcie_tx_bytes_per_second? (read once a minute: of the newest sample with them, at most two
//   minutes before the newest one) processes? (at most 8, those with most memory first) events?
//   (what is wrong with it now, "throttling, xid 48": lasting.h) window_ns? (null without since;
//   widened to whole minutes from 10 minutes on, to whole hours from 10 hours on).  The filter may
//   have a host, a device and a run.
// HOST_HEALTH, one row per host that such a run has sampled, by host: devices (that the run
//   describes) device_events? (of its devices: "throttling (8 devices), memory_full"); in a window
//   memory_available_min_bytes? cpu_pressure_mean_ratio?.  The filter may have a host and a run.
// WHY, one row per cause, the most important first (why.h): host? (null: several) share_ratio? (of
//   the quantile's difference; null: it is no part of a difference) usual? (which time); quantiles
//   are of its slow hosts and devices, if there are any.  The window is of 10 min or from
//   filter.since_ns on.  The filter may have a model and a host.
//
// coverage_ratio is stored / (stored + lost) over all kinds of records; it is 1 if nothing was
// lost, and null if it could not be counted within the time budget.  It and `lost` cover the
// filter's host, run and window (of AVERAGE with steps: the part of the window in the step), and
// a group's own host or run if the query groups by these; with a filter by model, device,
// operation, stage or workload, the runs that used the name.  They are never by model, since the
// model of a lost record is unknown.  coverage.h defines the times of losses.  Expired records
// count as stored, as far as ledgers and rollups include them; cleared records do not count.
// AVERAGE's note reports uncertainties.  In AUDIT and RECORDS of runs, both columns cover the whole
// lifetimes of the runs, as do SUMMARY's counts from produced to in_flight, but for lost.
MUST_CHECK enum status store_query(struct store *store, const struct query *query,
                                   struct result **out, struct error *err);

// ---- Restore ----------------------------------------------------------------------------

// Restores FILE, the file at `path` with symbolic links resolved:
//   1. copies `backup` to FILE.restored, and checks the copy
//   2. renames FILE, if it exists, to FILE.before-TIME
//   3. renames FILE.restored to FILE, with the owner and permissions of the earlier file
// If the process is killed, the earlier store and the backup are intact, and another call completes
// the restore.
//
// On success sets `*out` to the answer of query_copy (copy.h) with the path of the store, which the
// caller frees, and `before` to the name of the earlier store; "": there was none.  Returns
// STATUS_BUSY if a collector has the store open, STATUS_INVALID if both are one file, or an error
// of store_open or query_copy.
MUST_CHECK enum status store_restore(const char *path, const char *backup, struct result **out,
                                     char before[QUERY_PATH_SIZE], struct error *err);
