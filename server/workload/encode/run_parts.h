// Private structs of data-parallel encoding (run.h): load.c creates them, run.c runs all devices,
// device_share.c runs one device's share of the batches.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_PARTS_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_PARTS_H

#include <assert.h>

#include "server/device/device_list.h"
#include "server/workload/encode/npy.h"
#include "server/workload/encode/output_order.h"
#include "server/workload/encode/run.h"

enum { ENCODING_NAME_SIZE = 64, ENCODING_BEGUN = 32 };

static_assert((int)ENCODING_BEGUN > PIPELINE_BUFFERS_MAX + PIPELINE_GROUPS_BEHIND + 1,
              "more places than batches can be in flight");

// A device's share: every share_count-th batch, starting with batch `number`.  A batch is a group
// of the device's pipeline (pipeline.h).
struct device_share {
    struct encoding *encoding;
    unsigned int number;
    uint32_t device_number;
    struct device *device;
    struct tuning_host host; // report.plan was computed from host and tuning
    struct tuning_request tuning;
    struct pipeline *pipeline;
    double *reference;     // the reference state of the sample being checked
    unsigned char *sample; // its inputs

    // Layout of a batch's results on the device: the samples' faults, the states, scratch
    // memory.
    size_t chunks_a_batch;
    size_t states_at, scratch_at;

    struct encoding_share report; // during a run the completion thread owns its `figures`

    // Times of queueing the kernels of the last batches, by group modulo ENCODING_BEGUN: written
    // by the pipeline's submitting thread, read by the completion thread (result_drain.h).
    uint64_t begun_ns[ENCODING_BEGUN];
    uint64_t started_ns;
    struct error why;   // error of the run
    struct error taken; // error of consuming results; replaces the pipeline's later error
    enum status take_status;
};

struct encoding {
    struct encoding_options options;
    char name[ENCODING_NAME_SIZE]; // "iqp 16 qubits f64"
    struct inferstat_monitor *monitor;
    uint32_t model_number, operation_number;

    struct inputs *inputs;
    struct npy_writer *writer; // NULL: no output; used by the share that has the next batch
    bool has_run;
    struct output_order order;

    struct encode_job launch; // the kernel launch of a whole batch, without addresses
    size_t batch_size;        // bytes of its inputs
    uint64_t batches;         // of all shares

    struct encoding_description description;
    unsigned int share_count;
    struct device_share shares[DEVICE_LIST_MAX];
};

// The number of samples of a batch; the last batch may be smaller.
size_t encoding_samples(const struct encoding *encoding, uint64_t batch);

// Checks that the devices and the host have the memory that the shares' plans need.  Fails with
// STATUS_NOMEM, naming both sizes.
MUST_CHECK enum status encoding_check_memory(const struct encoding *encoding, struct error *err);

// Autotuning of the share's pipeline (autotune_run), skipped when the user set the threads.
MUST_CHECK enum status device_share_tune(struct device_share *share, struct error *err);

// Runs a device's share to its end; writes the outcome to report.status and `why`.
void device_share_run(struct device_share *share);

// Adds the pipeline record of the share's run.
void device_share_record(const struct device_share *share);

#endif
