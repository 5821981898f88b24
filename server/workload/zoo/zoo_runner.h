// Runs a small model: loads it and measures inferences of batches of seeded items.  Records as
// telemetry:
//   load       one per zoo_runner_new, also if it fails; stages device_selection, file_opening (of
//              weights), read_header (parse the description), model_building (weights and plan)
//   inference  one per batch, warm-ups included; it has items and no tokens
//   operation  "zoo MODEL BATCH", one per zoo_runner_measure: its figures are `extra`
// One thread uses a runner.
#pragma once

#include "common/monitor/inferstat.h"
#include "server/device/device.h"
#include "server/workload/zoo/plan.h"

struct zoo_parts {
    struct zoo_model *model;
    struct zoo_weights weights;
    const struct zoo_layer_int8 *int8; // one per layer, as of zoo_plan_new; NULL: all F32
    char name[2 * ZOO_NAME_SIZE];      // in records
    const char *quantisation;          // in records: "f32"
};

struct zoo_load_options {
    // One of these three: a model that is compiled in, the path of a description, or a model in
    // memory, borrowed until the runner is freed.
    const struct zoo_text *text;
    const char *path;
    const struct zoo_parts *parts;
    const char *weights; // GGUF file; NULL: seeded
    uint64_t seed;       // of weights and inputs
    size_t batch;        // items of an inference, at most 2^24
    struct device_options device;
    bool (*cancelled)(void); // polled
};

struct zoo_runner;

// Loads a model and records the load.  Opens `*device` if it is NULL; the caller closes it, also
// after a failure.  Fails as device_open, gguf_open, zoo_model_parse, zoo_model_read,
// zoo_weights_load and zoo_runner_set_batch do, or with STATUS_CANCELLED.  Borrows `monitor` (may
// be NULL).
MUST_CHECK enum status zoo_runner_new(struct zoo_runner **out, struct device **device,
                                      const struct zoo_load_options *options,
                                      struct inferstat_monitor *monitor, struct error *err);
void zoo_runner_free(struct zoo_runner *runner); // accepts NULL

// Changes the number of items of an inference.  Fails as device_network_new does, or with
// STATUS_NOMEM, before it allocates, if the batch needs more memory than is available; then the
// runner can only be freed.
MUST_CHECK enum status zoo_runner_set_batch(struct zoo_runner *runner, size_t batch,
                                            struct error *err);

// One inference, recorded.  Fails as device_network_run does.
MUST_CHECK enum status zoo_runner_infer(struct zoo_runner *runner, struct error *err);

struct zoo_trials {
    uint32_t warmups, trials;
    int64_t least_ns; // trials go on for this long at least
};

struct zoo_figures {
    size_t batch;
    uint64_t trials;
    uint64_t duration_ns;                  // of all trials, the time between them included
    uint64_t p50_ns, p95_ns, p99_ns;       // of an inference: the nearest rank
    double items_per_second;               // items of all trials / duration
    size_t weight_bytes, activation_bytes; // struct network_memory
};

// Runs warm-ups and trials.  The percentiles are those of all trials, or of the last 2^20.  Fails
// as zoo_runner_infer does, or with STATUS_CANCELLED; `*out` has the trials done until then.
MUST_CHECK enum status zoo_runner_measure(struct zoo_runner *runner,
                                          const struct zoo_trials *trials, struct zoo_figures *out,
                                          struct error *err);

// Borrowed until zoo_runner_free.
const struct zoo_parts *zoo_runner_parts(const struct zoo_runner *runner);

// From the beginning of the load to the end of the first inference; 0: there was none.
uint64_t zoo_runner_start_ns(const struct zoo_runner *runner);
