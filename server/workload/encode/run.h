// Streams batches of vectors through a pipeline and encodes them on a device, or on several
// at once: then each has a pipeline of its own, and the batches are dealt out to them in
// turn.  Every sample is encoded once, and the output is the same to the last bit however
// many devices alike there are.
//
// Records of each device: a load (its tables and buffers), one operation a batch, from when
// its kernels were queued to when its states were there, and one pipeline record a run,
// however the run ended.
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
    const char *output;           // .npy of the states; NULL: they stay on the device
    bool replace;                 // an output that is there
    bool check;                   // every state is compared with the reference
    enum pipeline_sync sync;
    struct tuning_wishes wishes;
    size_t chunk_bytes;      // 0: by the wishes; for tests of small ones
    bool (*cancelled)(void); // asked now and then; NULL: never
};

// What a run did.  Of several devices: sums, the worst difference of all, the time from the
// first fill to the last result; percentiles of batches are each device's own (0 here).
struct encoding_figures {
    struct pipeline_figures pipeline;
    uint64_t items;                    // samples whose states came out
    uint64_t batches;                  // likewise
    uint64_t take_ns;                  // writing and checking states
    uint64_t checked;                  // samples compared with the reference
    uint64_t differing;                // of those, too far from it
    struct reference_difference worst; // of all compared
};

struct encoding;

// Opens devices and inputs and allocates everything, as a load of each device.  Fails with
// STATUS_NOMEM, before anything large is allocated, where it does not fit in memory.
// `monitor` may be NULL and is borrowed until encoding_free.
MUST_CHECK enum status encoding_new(struct encoding **out, const struct encoding_options *options,
                                    struct inferstat_monitor *monitor, struct error *err);
void encoding_free(struct encoding *encoding); // accepts NULL

// Encodes everything.  Fails with STATUS_CORRUPT on a sample that cannot be encoded,
// naming it, STATUS_CANCELLED when cancelled; there is no output then, and what it was to
// replace stays.  Samples that differ from the reference are no error.  `figures` are valid in any
// case.  Where one of several devices fails, the others end too, and its error is the run's.
// Again, as another run of the same samples, after one that ended well, but not with an output.
MUST_CHECK enum status encoding_run(struct encoding *encoding, struct encoding_figures *figures,
                                    struct error *err);

// Measures the devices where that was never done, for what is run later: when nothing is
// timed any more.  Without a monitor it does nothing.
void encoding_get_to_know_devices(const struct encoding *encoding);

// How it runs.
struct encoding_description {
    const struct inputs_shape *inputs;
    size_t batch;         // samples
    unsigned int devices; // at least 1
    uint64_t load_ns;     // opening and allocating
    uint64_t generate_ns; // inputs made beforehand
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
