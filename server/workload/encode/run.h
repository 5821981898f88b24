// Streams batches of vectors through a pipeline and encodes them on a device, or on several
// devices: each has a pipeline of its own, and batches are assigned round-robin.  Every sample
// is encoded once, and the output is the same to the last bit for any number of devices of one
// kind.
//
// Records for each device: a load (opening and allocation), one operation per batch, from
// queueing its kernels to its states being available, and one pipeline record per run, however
// the run ended.
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
    bool replace;                 // an existing output
    bool check;                   // compare every state with the reference
    enum pipeline_sync sync;
    struct tuning_wishes wishes;
    size_t chunk_bytes;      // 0: from the wishes; for tests
    bool (*cancelled)(void); // polled; NULL: never cancelled
};

// Figures of a run.  Over several devices: sums, the worst difference, the time from the first
// fill to the last result, and no percentiles (0).
struct encoding_figures {
    struct pipeline_figures pipeline;
    uint64_t items;                    // samples encoded
    uint64_t batches;                  // batches encoded
    uint64_t take_ns;                  // writing and checking states
    uint64_t checked;                  // samples compared with the reference
    uint64_t differing;                // of those, outside the tolerance
    struct reference_difference worst; // of all compared
};

struct encoding;

// Opens devices and inputs and allocates all memory, recorded as a load of each device.  Fails
// with STATUS_NOMEM, before anything large is allocated, when it does not fit in memory.
// `monitor` may be NULL and is borrowed until encoding_free.
MUST_CHECK enum status encoding_new(struct encoding **out, const struct encoding_options *options,
                                    struct inferstat_monitor *monitor, struct error *err);
void encoding_free(struct encoding *encoding); // accepts NULL

// Encodes all batches.  Fails with STATUS_CORRUPT on a sample that cannot be encoded, naming it,
// and STATUS_CANCELLED when cancelled; then there is no output and an existing file stays.
// Samples that differ from the reference are not an error.  `figures` are valid in any case.
// When one of several devices fails, the others stop too, and the run fails with its error.
// Without an output it may be called again after a successful run.
MUST_CHECK enum status encoding_run(struct encoding *encoding, struct encoding_figures *figures,
                                    struct error *err);

// Measures the devices' rates for later runs unless they are cached; call it when nothing is
// timed any more.  Does nothing without a monitor.
void encoding_get_to_know_devices(const struct encoding *encoding);

// Describes an encoding.
struct encoding_description {
    const struct inputs_shape *inputs;
    size_t batch;         // samples
    unsigned int devices; // at least 1
    uint64_t load_ns;     // opening and allocating
    uint64_t generate_ns; // generating inputs in advance
    int64_t device_bytes; // allocated on all devices
};
void encoding_describe(const struct encoding *encoding, struct encoding_description *out);

// One device's share; status and figures once the run has ended.
struct encoding_share {
    struct device_description device;
    struct pipeline_plan plan;
    enum status status;
    struct encoding_figures figures;
};
const struct encoding_share *encoding_get_share(const struct encoding *encoding,
                                                unsigned int device);

#endif
