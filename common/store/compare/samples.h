// Statistical samples for comparisons.  A sample is the series of one metric's values for one
// subject (a model, operation or workload) on one device, in order of time; of pipelines also for
// one batch size.  Used for baselines (baseline.h) and the query COMPARE.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/base/key_index.h"
#include "common/core/query/query.h"
#include "common/core/stats/stats.h"

struct store;

// A part of a total: one request or successive ones, by run and in order of their starts.  A
// request's busy time is that in which no earlier request of its run was in progress, so that the
// sum over a run is the time with a request in progress.  Requests that failed or were cancelled
// take their share, too.
enum total_column {
    TOTAL_STARTED_NS, // of the first request
    TOTAL_ENDED_NS,   // of the last one; all others are sums
    TOTAL_TOKENS,     // output tokens
    TOTAL_BUSY_NS,
    TOTAL_E2E_NS,
    TOTAL_RUNNING_NS, // the same without the time in the queue
    TOTAL_PROMPT_TOKENS,
    TOTAL_REQUESTS,
    TOTAL_SUCCEEDED, // of the requests: all but failed ones
    TOTAL_COLUMNS
};

enum sampled_form {
    SAMPLED_VALUES,    // a value of each record
    SAMPLED_MEAN,      // the same, with a mean but no verdict; those below have parts of a total
    SAMPLED_BUSY_RATE, // a total per time with a request in progress
    SAMPLED_WALL_RATE, // a total per time of the window: a matter of demand, without a verdict
    SAMPLED_LACK,      // the share of requests of which the total lacks
};

// A metric that is sampled.  Only successful records count, but for totals: completed requests,
// loads and pipelines with status ok, and operations.  Samples of devices explain what others
// measured, so none are read without it.  Two sorts of records are excluded: pipelines
// named model_load, which are a part of a load; and operations named like a pipeline's workload,
// which are its batches (their time includes queueing, which grows with the queue's depth).
struct sampled {
    enum record_kind kind;
    const char *name;             // the metric's name
    enum stats_sampling sampling; // whether the values depend on their predecessors (stats.h)
    // Work metrics measure the amount of work (tokens or items of a request, page cache share of a
    // file), not its speed.  Each has one bit in `work`; other metrics have 0 there.
    unsigned work;
    unsigned depends; // bits of the work metrics on which this metric's value depends
    // The metric explains an internal part (copy/compute overlap), which may get worse while the
    // whole improves, or the cause (the device's clock).  It is reported, but has a verdict only on
    // request.
    bool explains;
    enum sampled_form form;
    enum total_column amount; // of totals
};

enum { SAMPLED_MAX = 32 }; // limit for the count of sampled metrics

enum { TOTAL_PARTS_MAX = 480 }; // of a sample; beyond it, successive parts are merged

// The sampled metric at index `place`, ordered by kind; static.  NULL: there are no more.
const struct sampled *samples_sampled(unsigned place);

// The place of the sample that has the metric's values: totals share one, of parts.
unsigned samples_place(unsigned place);

// The metric at index `place` as a metric of queries (query.h).
const struct query_metric *samples_metric(unsigned place);

// The index of the sampled metric with that name, e.g. "ttft_ns" or "load.duration_ns"; -1: none.
int samples_find_metric(const char *name);

// One sample.  When it has STATS_SAMPLES_MAX values, every second value is dropped and the stride
// doubled; so the values that are kept are evenly spaced.
struct sample {
    double *values;    // in order of time
    uint16_t *sources; // per value the low 16 bits of its run's id; NULL: unknown
    size_t kept, room; // values kept, and allocated
    uint64_t count;    // values added, with those not kept or merged
    uint64_t stride;   // one value in `stride` is kept; 0: none added yet
};

// Adds the next value; `source` is the low 16 bits of its run's id.
MUST_CHECK enum status sample_add(struct sample *sample, double value, uint16_t source);

MUST_CHECK enum status sample_add_part(struct sample *sample, const double part[TOTAL_COLUMNS],
                                       uint16_t source);

// Frees its arrays.
void sample_deinit(struct sample *sample);

// The key of a group of samples.
struct sample_key {
    enum record_kind kind;
    // Id of a name; 0: none.  Of an operation's records the operation; of a pipeline's its model
    // or, if unknown, its workload; else the model.
    int64_t subject;
    int64_t device;      // id of its name
    int64_t batch_items; // items per batch of pipelines; 0: unknown
    int64_t host;        // id of its name; 0: hosts are merged
};

// The samples of one subject on one device, indexed by metric.
struct sample_group {
    struct sample_key key;
    struct sample samples[SAMPLED_MAX];
    int64_t run, busy_until_ns; // of the request last added to its total
};

// True if the subject of the kind's records is a model (of some pipelines a workload).
bool samples_are_of_models(enum record_kind kind);

struct samples {
    struct groups *groups;     // their data: struct sample_group; NULL: none
    struct key_index runs;     // ids of the values' runs
    size_t bytes;              // memory of all values
    int64_t first_ns, last_ns; // first and last started_ns of the records; 0: none
};

// The caller zeroes the structure before its first use.
void samples_deinit(struct samples *samples);

// The number of groups, and the group at `index`, in order of appearance.
size_t samples_count(const struct samples *samples);
struct sample_group *samples_at(const struct samples *samples, size_t index);

// Finds or adds the group with that key.
MUST_CHECK enum status samples_group(struct samples *samples, const struct sample_key *key,
                                     struct sample_group **out, struct error *err);

// A request, as totals count it.
struct sample_request {
    int64_t run, started_ns, e2e_ns, queue_ns, tokens, prompt_tokens;
    bool has_failed;
};

// Adds a request to the total of its group: run by run, in order of their starts.
MUST_CHECK enum status sample_group_add_request(struct sample_group *group,
                                                const struct sample_request *request);

// Reads the samples of the records that the filter covers, by host or of all hosts.  Skips kinds of
// records that lack a dimension of the filter.  Returns STATUS_FULL if there are too many groups or
// values.
MUST_CHECK enum status samples_collect(struct samples *samples, struct store *store,
                                       const struct query_filter *filter, bool by_host,
                                       struct error *err);

// Reads the samples of requests alone, by host, without totals.
MUST_CHECK enum status samples_collect_requests(struct samples *samples, struct store *store,
                                                const struct query_filter *filter,
                                                struct error *err);
