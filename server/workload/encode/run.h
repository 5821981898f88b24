// Data-parallel batch encoding: turns each input vector (sample) into a quantum state vector
// (server/device/encode.h) on one device or several.  Each device has its own pipeline
// (server/pipeline/pipeline.h); batches of samples are assigned round-robin.  The output is
// bitwise identical for any number of devices of one kind.
//
// Telemetry per device: a load record (opening and allocation), an operation record per batch,
// from queueing its kernels to its states being available, and a pipeline record per run,
// successful or not.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_H

#include "common/monitor/inferstat.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"
#include "server/workload/encode/inputs.h"
#include "server/workload/encode/reference.h"

struct encoding_options {
    struct inputs_options inputs;
    struct device_options device; // its spec may be a list (device_list.h)
    const char *output;           // .npy file of the states; NULL: they stay on the device
    bool replace;                 // replaces an existing output file
    bool check;                   // compare every state with the reference
    enum pipeline_sync sync;
    struct tuning_request tuning;
    size_t chunk_bytes;      // for tests; 0: from `tuning`
    bool (*cancelled)(void); // polled; NULL: never cancelled
};

// Metrics of a run.  Over several devices: sums, the worst difference, the duration from the first
// fill to the last result, and no percentiles (0).
struct encoding_figures {
    struct pipeline_figures pipeline;
    uint64_t items;                    // samples encoded
    uint64_t batches;                  // batches encoded
    uint64_t take_ns;                  // time of writing and checking states
    uint64_t checked;                  // samples compared with the reference
    uint64_t differing;                // checked samples outside the tolerance
    struct reference_difference worst; // of all checked samples
};

struct encoding;

// Opens devices and inputs and allocates all memory, recorded as a load of each device.  Fails
// with STATUS_NOMEM, before large allocations, when memory does not suffice.  `monitor` may be
// NULL and is borrowed until encoding_free.
MUST_CHECK enum status encoding_new(struct encoding **out, const struct encoding_options *options,
                                    struct inferstat_monitor *monitor, struct error *err);
void encoding_free(struct encoding *encoding); // accepts NULL

// Encodes all batches.  Fails with STATUS_CORRUPT on a sample that cannot be encoded, naming it,
// STATUS_CANCELLED, or as pipeline_run and npy_append do; then no output file is written and an
// existing one stays.  Samples that differ from the reference are not an error.  `figures` are
// valid in any case.  When one device fails, the others stop too, and its error is returned.
// Without an output it may be called again after a successful run.
MUST_CHECK enum status encoding_run(struct encoding *encoding, struct encoding_figures *figures,
                                    struct error *err);

// Calibrates the devices for later runs unless their rates are cached (device_get_to_know); call
// it after all timed work.  Does nothing without a monitor.
void encoding_get_to_know_devices(const struct encoding *encoding);

// Describes an encoding.
struct encoding_description {
    const struct inputs_shape *inputs;
    size_t batch;         // samples
    unsigned int devices; // at least 1
    uint64_t load_ns;     // time of opening and allocating
    uint64_t generate_ns; // time of generating inputs in advance
    int64_t device_bytes; // allocated on all devices
};
void encoding_describe(const struct encoding *encoding, struct encoding_description *out);

// One device's share of the batches; `status` and `figures` are valid after encoding_run.
struct encoding_share {
    struct device_description device;
    struct pipeline_plan plan;
    enum status status;
    struct encoding_figures figures;
};
const struct encoding_share *encoding_get_share(const struct encoding *encoding,
                                                unsigned int device);

#endif
