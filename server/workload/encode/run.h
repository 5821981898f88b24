// Streams batches of vectors through the pipeline and encodes them on a device.
//
// Records: a load (its tables and buffers), one operation a batch, from when its kernels
// were queued to when its states were there, and one pipeline record a run, however the
// run ended.
#ifndef INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_H
#define INFERSTAT_SERVER_WORKLOAD_ENCODE_RUN_H

#include "common/monitor/inferstat.h"
#include "server/pipeline/pipeline.h"
#include "server/pipeline/tuning.h"
#include "server/workload/encode/inputs.h"
#include "server/workload/encode/reference.h"

struct encoding_options {
    struct inputs_options inputs;
    struct device_options device;
    const char *output; // .npy of the states; NULL: they stay on the device
    bool replace;       // an output that is there
    bool check;         // every state is compared with the reference
    enum pipeline_sync sync;
    struct tuning_wishes wishes;
    size_t chunk_bytes;      // 0: by the wishes; for tests of small ones
    bool (*cancelled)(void); // asked now and then; NULL: never
};

// What a run did.
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

// Opens the device and the inputs and allocates everything, as a load.  Fails with
// STATUS_NOMEM, before anything large is allocated, where it does not fit in memory.
// `monitor` may be NULL and is borrowed until encoding_free.
MUST_CHECK enum status encoding_new(struct encoding **out, const struct encoding_options *options,
                                    struct inferstat_monitor *monitor, struct error *err);
void encoding_free(struct encoding *encoding); // accepts NULL

// Encodes everything.  Fails with STATUS_CORRUPT on a sample that cannot be encoded,
// naming it, STATUS_CANCELLED when cancelled; the output then has what was encoded
// before, or is removed where it could not be written.  Samples that differ from the
// reference are no error.  `figures` are valid in any case.  Once.
MUST_CHECK enum status encoding_run(struct encoding *encoding, struct encoding_figures *figures,
                                    struct error *err);

// How it runs and on what.
struct encoding_description {
    struct device_description device;
    struct pipeline_plan plan;
    const struct inputs_shape *inputs;
    size_t batch;         // samples
    uint64_t load_ns;     // opening and allocating
    uint64_t generate_ns; // inputs made beforehand
    int64_t device_bytes; // allocated on the device
};
void encoding_describe(const struct encoding *encoding, struct encoding_description *out);

#endif
