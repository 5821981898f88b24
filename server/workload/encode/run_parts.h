// An encoding, as load.c makes it, run.c runs it and device_share.c runs a device's share of it.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_PARTS_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_PARTS_H

#include <assert.h>

#include "server/device/device_list.h"
#include "server/workload/encode/npy.h"
#include "server/workload/encode/output_order.h"
#include "server/workload/encode/run.h"

enum { ENCODING_NAME_SIZE = 64, ENCODING_BEGUN = 32 };

static_assert((int)ENCODING_BEGUN > PIPELINE_BUFFERS_MAX + PIPELINE_GROUPS_BEHIND + 1,
              "more places than batches can be under way");

// A device's share: every share_count-th batch, beginning with the share's own number.
// Batches of the share, counted from 0, are the groups of its pipeline.
struct device_share {
    struct encoding *encoding;
    unsigned int number;
    uint32_t device_number;
    struct device *device;
    struct tuning_host host;     // and
    struct tuning_wishes wishes; // that the plan was made by
    struct pipeline *pipeline;
    double *reference;     // one state, to check with
    unsigned char *sample; // its inputs

    // Layout of a batch's memory on the device.  In front of the states are the samples'
    // faults; behind them is what kernels work in.
    size_t chunks_a_batch;
    size_t states_at, scratch_at;

    struct encoding_share report; // what it does; figures are the taker's while it runs

    // When the kernels of the last batches were queued: written by the driver, read by
    // the taker once the pipeline has handed it that batch.
    uint64_t begun_ns[ENCODING_BEGUN];
    uint64_t started_ns;
    struct error why;   // how it ended, where not well
    struct error taken; // why the taker gave up: it comes before what the driver met later
    enum status take_status;
};

struct encoding {
    struct encoding_options options;
    char name[ENCODING_NAME_SIZE]; // "iqp 16 qubits f64"
    struct inferstat_monitor *monitor;
    uint32_t model_number, operation_number;

    struct inputs *inputs;
    struct npy_writer *writer; // NULL: no output; of the share whose turn it is
    bool has_run;
    struct output_order *order;

    struct encode_job launch; // of a whole batch, but for its memory
    size_t batch_size;        // bytes of its inputs
    uint64_t batches;         // of all shares

    struct encoding_description description;
    unsigned int share_count;
    struct device_share shares[DEVICE_LIST_MAX];
};

// Samples of a batch, which are fewer in the last one.
size_t encoding_samples(const struct encoding *encoding, uint64_t batch);

// Whether what all shares' plans need fits what their devices, and the host, can give now.
// Fails with STATUS_NOMEM and the numbers.
MUST_CHECK enum status encoding_check_memory(const struct encoding *encoding, struct error *err);

// Tries how many threads fill best, where the user did not say.
MUST_CHECK enum status device_share_tune(struct device_share *share, struct error *err);

// Runs a device's share to its end; report.status and `why` say how it went.
void device_share_run(struct device_share *share);

// Records the share's run.
void device_share_record(const struct device_share *share);

#endif
