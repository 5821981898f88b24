// Internals of data-parallel encoding (run.h): the structs that its three sources share.  load.c
// creates them, run.c runs all devices, and device_share.c runs one device's share of the batches.
#pragma once

#include <assert.h>
#include <pthread.h>

#include "server/workload/encode/npy.h"
#include "server/workload/encode/run.h"

enum { ENCODING_NAME_SIZE = 64, ENCODING_BEGUN = 32 }; // bytes of `name`, elements of `begun_ns`

static_assert((int)ENCODING_BEGUN > PIPELINE_BUFFERS_MAX + PIPELINE_GROUPS_BEHIND + 1,
              "more places than batches can be in flight");

// Ticket lock with an early end: makes several threads write their batches to one file in the order
// of batch numbers.  Used by the pipelines of several devices, to which batches are assigned
// round-robin.  For each batch a pipeline calls output_order_wait, writes the batch, and calls
// output_order_advance.  Any thread may call the functions.
//
// A pipeline that stops early ends the run at its first unfinished batch.  The other pipelines
// finish the batches before that one and write no later ones, so that the output of a failed run
// does not depend on timing.
struct output_order {
    pthread_mutex_t lock; // guards all members below
    pthread_cond_t changed;
    uint64_t next; // batch to be written next
    uint64_t end;  // the run ends before this batch; UINT64_MAX: no early end
};

void output_order_init(struct output_order *order);
void output_order_deinit(struct output_order *order);

// Waits until all batches before `batch` have been written.  Returns false if the run ends before
// `batch`.
bool output_order_wait(struct output_order *order, uint64_t batch);

// Marks the next batch as written.
void output_order_advance(struct output_order *order);

// Makes the run end before `batch`, unless it ends earlier already.
void output_order_end(struct output_order *order, uint64_t batch);

// True unless the run ends before `batch`.
bool output_order_reaches(struct output_order *order, uint64_t batch);

// A device's share: batches `number`, `number` + share_count, `number` + 2 * share_count, ...  A
// batch is a group of the device's pipeline (pipeline.h).
struct device_share {
    struct encoding *encoding;
    unsigned int number;         // index in `shares`
    uint32_t device_number;      // id of the interned device name, for records
    struct inferstat_load *load; // valid during encoding_new
    struct device *device;
    struct tuning_host host; // report.plan was computed from host and tuning
    struct tuning_request tuning;
    struct pipeline *pipeline;
    double *reference;     // the reference state of the sample being checked
    unsigned char *sample; // inputs of the sample being checked

    size_t chunks_a_batch;
    // A batch's results on the device are three parts: the faults of its samples, the states, and
    // scratch memory.  These are the offsets of the last two, in bytes.
    size_t states_at, scratch_at;

    struct encoding_share report; // during a run the completion thread owns its `figures`

    // When the kernels of the last batches were queued, by group modulo ENCODING_BEGUN.  The
    // pipeline's submitting thread writes them, the completion thread (pipeline_parts.h) reads
    // them.
    uint64_t begun_ns[ENCODING_BEGUN];
    uint64_t started_ns;     // start of the run
    struct error why;        // error of the run
    struct error taken;      // error of consuming results; replaces the pipeline's later error
    enum status take_status; // status of `taken`
};

struct encoding {
    struct encoding_options options;
    char name[ENCODING_NAME_SIZE]; // "iqp 16 qubits f64"
    struct inferstat_monitor *monitor;
    uint32_t model_number, operation_number; // ids of interned names, for records

    struct inputs *inputs;
    struct npy_writer *writer; // used by the share that has the next batch; NULL: no output
    bool has_run;              // encoding_run was called before, with any result
    struct output_order order; // of writing batches to `writer`

    struct encode_job launch; // kernel launch of a whole batch; its addresses are not set
    size_t batch_size;        // bytes of a batch's inputs
    uint64_t batches;         // number of batches of all shares

    struct encoding_description description;
    struct device_list devices; // a spec for each share
    unsigned int share_count;
    struct device_share shares[DEVICE_LIST_MAX];
};

// The number of samples of a batch; the last batch may be smaller.
size_t encoding_samples(const struct encoding *encoding, uint64_t batch);

// Autotunes the share's pipeline (autotune_run), unless the user set the number of threads.
MUST_CHECK enum status device_share_tune(struct device_share *share, struct error *err);

// Runs a device's share to its end.  Sets share->report.status and share->why.
void device_share_run(struct device_share *share);

// Adds the pipeline record of the share's run to the monitor.
void device_share_record(const struct device_share *share);
