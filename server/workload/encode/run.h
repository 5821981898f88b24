// Data-parallel batch encoding: encodes each input vector (sample) as a quantum state vector
// (server/device/encode.h) on one device or several.  Batches of samples are assigned to the
// devices round-robin; each device has its own pipeline (server/pipeline/pipeline.h).  The output
// is bitwise identical for any number of devices of one kind.
//
// Records as telemetry, for each device:
//   load       one, of encoding_new: opening the device and allocating memory
//   operation  one per batch: from queueing its kernels until its states are available
//   pipeline   one per call of encoding_run, also if it fails
#pragma once

#include "common/monitor/inferstat.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"
#include "server/workload/encode/inputs.h"
#include "server/workload/encode/reference.h"

struct encoding_options {
    struct inputs_options inputs;
    struct device_options device; // `spec` may be a list of devices (device_list_parse)
    const char *output;           // .npy file for the states; NULL: the states are discarded
    bool replace;                 // replace an existing output file
    bool check;                   // compare every state with the reference
    enum pipeline_sync sync;
    struct tuning_request tuning;
    size_t chunk_bytes;      // for tests; 0: from `tuning`
    bool (*cancelled)(void); // polled; NULL: never cancelled
};

// Metrics of one encoding_run.  With several devices they are sums over the devices, except:
// `worst` is the worst one, the duration is that of encoding_run, and the percentiles are 0.
struct encoding_figures {
    struct pipeline_figures pipeline;
    uint64_t items;                    // samples encoded
    uint64_t batches;                  // batches encoded
    uint64_t take_ns;                  // time spent writing and checking states
    uint64_t checked;                  // samples compared with the reference
    uint64_t differing;                // checked samples outside the tolerance
    struct reference_difference worst; // largest difference and lowest fidelity of checked samples
};

struct encoding;

// Opens devices, inputs and output, allocates all memory, tunes the pipelines with trial runs, and
// records a load of each device.  Fails with STATUS_NOMEM, before it allocates much, if memory does
// not suffice.  Borrows `monitor` (may be NULL) and the texts in `*options` until encoding_free.
MUST_CHECK enum status encoding_new(struct encoding **out, const struct encoding_options *options,
                                    struct inferstat_monitor *monitor, struct error *err);
void encoding_free(struct encoding *encoding); // accepts NULL

// Encodes all batches.  Fails with STATUS_CORRUPT if a sample cannot be encoded (`err` names the
// sample), STATUS_CANCELLED, or as pipeline_run, npy_append and npy_finish do.  A failed run leaves
// an existing output file as it was.  If one device fails, the others stop too; the error of the
// first failed batch is returned.  Samples that differ from the reference are only counted.
// `*figures` is valid also after a failure.  May be repeated after success if there is no output.
MUST_CHECK enum status encoding_run(struct encoding *encoding, struct encoding_figures *figures,
                                    struct error *err);

// Calibrates the devices (device_calibrate_for_later), unless their rates are cached.  Call it
// after all timed work.  Does nothing without a monitor.
void encoding_calibrate_devices(const struct encoding *encoding);

struct encoding_description {
    const struct inputs_shape *inputs;
    size_t batch;         // samples of a batch
    unsigned int devices; // number of devices
    uint64_t load_ns;     // duration of encoding_new
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
