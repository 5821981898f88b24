// The samples of processes that say how many requests each model had: of a sample whose process had
// requests, the rows with a model do, which older libraries did not write.
#pragma once

#include "common/store/aggregate/aggregate_scan.h"

struct process_samples {
    struct query query;            // as asked, without models
    struct aggregate_scan all;     // of the rows without a model
    struct aggregate_scan unknown; // those of them that have requests, but no row with a model
};

// Reads the samples of the processes that the query covers; `metric` is running_requests or
// waiting_requests.  `samples` must stay where it is until process_samples_deinit, which is to be
// called also after a failure.  Expired samples count as known.
MUST_CHECK enum status process_samples_read(struct process_samples *samples,
                                            const struct query *query,
                                            const struct query_metric *metric, struct store *store,
                                            struct error *err);
void process_samples_deinit(struct process_samples *samples);

// The number of samples of a group that say how many requests each model had.  The keys are those
// of `query`'s group_by, then the start of the step.
uint64_t process_samples_known(const struct process_samples *samples, const int64_t *keys);

// Sets `out` to the keys of a group of the query, and of its step, without those of models.
void process_samples_keys(int64_t out[GROUP_KEYS_MAX], const struct query *query,
                          const int64_t *keys);
