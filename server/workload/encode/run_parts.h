// An encoding, as load.c makes it and run.c runs it.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_PARTS_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_PARTS_H

#include <assert.h>

#include "server/workload/encode/npy.h"
#include "server/workload/encode/run.h"

enum { ENCODING_NAME_SIZE = 64, ENCODING_BEGUN = 32 };

static_assert((int)ENCODING_BEGUN > PIPELINE_BUFFERS_MAX + PIPELINE_GROUPS_BEHIND + 1,
              "more places than batches can be under way");

struct encoding {
    struct encoding_options options;
    char name[ENCODING_NAME_SIZE]; // "iqp 16 qubits f64"
    struct inferstat_monitor *monitor;
    uint32_t model_number, device_number, operation_number;

    struct device *device;
    struct inputs *inputs;
    struct npy_writer *writer; // NULL: no output
    struct pipeline *pipeline;
    double *reference;     // one state, to check with
    unsigned char *sample; // its inputs

    // Layout of a batch's memory on the device.  In front of the states are the samples'
    // faults; behind them is what kernels work in.
    struct encode_job launch; // of a whole batch, but for its memory
    size_t batch_size;        // bytes of its inputs
    size_t chunks_a_batch;
    size_t states_at, scratch_at;
    uint64_t batches;

    struct encoding_description description;

    // When the kernels of the last batches were queued: written by the driver, read by
    // the taker once the pipeline has handed it that batch.
    uint64_t begun_ns[ENCODING_BEGUN];
    struct encoding_figures *figures; // of the run; the taker's, but for `pipeline`
};

// Samples of a batch, which are fewer in the last one.
size_t encoding_samples(const struct encoding *encoding, uint64_t batch);

#endif
