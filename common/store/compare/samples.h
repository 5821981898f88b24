// Statistical samples for comparisons: the values of a metric for one subject (a model, operation
// or workload) on one device, in order of time.
#ifndef INFERSTAT_STORE_COMPARE_SAMPLES_H
#define INFERSTAT_STORE_COMPARE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/core/base/error.h"
#include "common/core/query/query.h"
#include "common/core/stats/stats.h"

struct store;

// A sampled metric.  Only successful records count: completed requests, loads and pipelines with
// status ok, and operations.  Excluded: the pipeline model_load, which is a part of a load; and
// operations named like a pipeline's workload, which are its batches: their time includes queueing
// and so grows with the queue's depth.
struct sampled {
    enum record_kind kind;
    const char *name; // the metric's name
    enum stats_sampling sampling;
    // Bit of a metric that measures the work itself, not its speed: tokens of a request, page cache
    // share of a file.  0: other metrics.
    unsigned work;
    unsigned depends; // bits of the work that the metric's value depends on
    // An internal metric, which may get worse while the whole improves: reported, but judged only
    // on request.
    bool explains;
};

enum { SAMPLED_MAX = 20 }; // more than there are

// The sampled metric at an index below SAMPLED_MAX, ordered by kind; static.  NULL behind the last.
const struct sampled *samples_sampled(unsigned place);

// The same as a metric of queries.
const struct query_metric *samples_metric(unsigned place);

// The index of the metric with that name, "ttft_ns" or "load.duration_ns"; -1: none.
int samples_find_metric(const char *name);

// One sample.  Beyond STATS_SAMPLES_MAX values, every second value is dropped and the stride
// doubled, so that at least half as many, evenly spaced, are kept.
struct sample {
    double *values;    // in order of time
    uint16_t *sources; // of each value the low 16 bits of its run's id; NULL: unknown
    size_t kept, room;
    uint64_t count;  // values added
    uint64_t stride; // one value in `stride` is kept; 0: none added yet
};

// Adds the next value.
MUST_CHECK enum status sample_add(struct sample *sample, double value, uint16_t source);

// Frees its arrays.
void sample_deinit(struct sample *sample);

// The key of a group of samples.
struct sample_key {
    enum record_kind kind;
    // Name ids, 0: none.  The model; of operations the operation; of pipelines the model or, if
    // unknown, the workload.
    int64_t subject;
    int64_t device;
    int64_t batch_items; // of pipelines; 0: unknown
};

// The samples of one subject on one device, indexed by metric.
struct sample_group {
    struct sample_key key;
    struct sample samples[SAMPLED_MAX];
};

// Whether the subject of the kind's records is a model.
bool samples_are_of_models(enum record_kind kind);

struct samples {
    struct groups *groups; // of struct sample_group; NULL: none
    int64_t *runs;         // runs of the values, ascending
    size_t run_count, run_room;
    size_t bytes;              // of all values
    int64_t first_ns, last_ns; // first and last started_ns of the records; 0: none
};

// The caller zeroes the structure before its first use.
void samples_deinit(struct samples *samples);

// The groups, in order of appearance.
size_t samples_count(const struct samples *samples);
struct sample_group *samples_at(const struct samples *samples, size_t index);

// Finds or adds a group.
MUST_CHECK enum status samples_group(struct samples *samples, const struct sample_key *key,
                                     struct sample_group **out, struct error *err);

// Reads the samples of the records that the filter covers.  STATUS_FULL if there are too many
// groups.
MUST_CHECK enum status samples_collect(struct samples *samples, struct store *store,
                                       const struct query_filter *filter, struct error *err);

#endif
