// Samples of what comparisons are about: a metric's values of one model (or operation,
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

// A metric that is sampled.  Of records that did not fail: requests that were answered
// to the end, loads and pipelines with status ok (but for the model_load of a load, which
// is a part of it and depends on the page cache as it does), all operations but those that carry
// the name of a pipeline's workload: they are its batches, which begin when they are queued, so
// that the deeper the queue the longer they take; how fast they are the run says.
struct sampled {
    enum record_kind kind;
    const char *name; // of the metric
    enum stats_sampling sampling;
    // What the work was, not how well it went: tokens of a request, how much of a file
    // was in the page cache.  Told from the others by a bit, 0 of the others.
    unsigned work;
    unsigned depends; // set of such bits that a value cannot be judged without
    // What goes on inside, which may get worse while the whole gets better: told, and
    // judged only where it is asked for.
    bool explains;
};

enum { SAMPLED_MAX = 20 };

// All of them, `*count` at most SAMPLED_MAX, those of a kind together; static.
const struct sampled *samples_metrics(unsigned *count);

// The metric of a place in that table.
const struct query_metric *samples_metric(unsigned place);

// The place of the metric with that name, "ttft_ns" or "load.duration_ns"; -1: none.
int samples_find_metric(const char *name);

// One sample.  Of more than STATS_SAMPLES_MAX values every second one goes, again and
// again, so that half as many at least, evenly chosen, are kept.
struct sample {
    double *values;    // in order of time
    uint16_t *sources; // of each the run, by the last 16 bits of its id; NULL: not known
    size_t kept, room;
    uint64_t count;  // values there were
    uint64_t stride; // every how many are kept; 0: none came yet
};

// Takes the next value.
MUST_CHECK enum status sample_add(struct sample *sample, double value, uint16_t source);

// Frees what it has.
void sample_deinit(struct sample *sample);

// What samples are of.
struct sample_key {
    enum record_kind kind;
    // Ids of names, 0: none.  A model; of operations the operation; of pipelines the
    // model or, where they do not say it, the workload.
    int64_t subject;
    int64_t device;
    int64_t batch_items; // of pipelines; 0: not said
};

// The samples of one subject on one device, by place of the metric.
struct sample_group {
    struct sample_key key;
    struct sample samples[SAMPLED_MAX];
};

// Whether records of the kind are of models.
bool samples_are_of_models(enum record_kind kind);

struct samples {
    struct groups *groups; // of struct sample_group; NULL: none
    int64_t *runs;         // that they are from, rising
    size_t run_count, run_room;
    size_t bytes;              // of all values
    int64_t first_ns, last_ns; // started_ns of the records; 0 where there are none
};

// The structure is the caller's, zeroed before its first use.
void samples_deinit(struct samples *samples);

// The groups, in order of appearance.
size_t samples_count(const struct samples *samples);
struct sample_group *samples_at(const struct samples *samples, size_t index);

// The group, made when it is not there.
MUST_CHECK enum status samples_group(struct samples *samples, const struct sample_key *key,
                                     struct sample_group **out, struct error *err);

// Reads what the filter covers.  STATUS_FULL where that is from too many subjects.
MUST_CHECK enum status samples_collect(struct samples *samples, struct store *store,
                                       const struct query_filter *filter, struct error *err);

#endif
