// Private structs of an encoding: load.c creates it, run.c runs it, device_share.c runs each
// device's share.
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

// A device's share: every share_count-th batch, starting with batch `number`.  The share's
// batches, counted from 0, are the groups of its pipeline.
struct device_share {
    struct encoding *encoding;
    unsigned int number;
    uint32_t device_number;
    struct device *device;
    struct tuning_host host; // the plan was made from these two
    struct tuning_wishes wishes;
    struct pipeline *pipeline;
    double *reference;     // one state, to check with
    unsigned char *sample; // its inputs

    // Layout of a batch's results on the device: the samples' faults, the states, scratch
    // memory.
    size_t chunks_a_batch;
    size_t states_at, scratch_at;

    struct encoding_share report; // during a run the drain's thread owns its figures

    // When the kernels of the last batches were queued: written by the driver, read by the
    // drain's thread when it gets the batch.
    uint64_t begun_ns[ENCODING_BEGUN];
    uint64_t started_ns;
    struct error why;   // why the run failed
    struct error taken; // why consuming failed; takes precedence over the driver's later error
    enum status take_status;
};

struct encoding {
    struct encoding_options options;
    char name[ENCODING_NAME_SIZE]; // "iqp 16 qubits f64"
    struct inferstat_monitor *monitor;
    uint32_t model_number, operation_number;

    struct inputs *inputs;
    struct npy_writer *writer; // NULL: no output; used by the share whose batch is next
    bool has_run;
    struct output_order *order;

    struct encode_job launch; // of a whole batch, without addresses
    size_t batch_size;        // bytes of its inputs
    uint64_t batches;         // of all shares

    struct encoding_description description;
    unsigned int share_count;
    struct device_share shares[DEVICE_LIST_MAX];
};

// Samples of a batch, which are fewer in the last one.
size_t encoding_samples(const struct encoding *encoding, uint64_t batch);

// Checks that the memory of all shares' plans is available on their devices and the host.  Fails
// with STATUS_NOMEM and the numbers.
MUST_CHECK enum status encoding_check_memory(const struct encoding *encoding, struct error *err);

// Chooses the number of fill threads by a trial run, unless the user set it.
MUST_CHECK enum status device_share_tune(struct device_share *share, struct error *err);

// Runs a device's share to its end; report.status and `why` say how it went.
void device_share_run(struct device_share *share);

// Records the share's run.
void device_share_record(const struct device_share *share);

#endif
