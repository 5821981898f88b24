// What any pipeline comes down to, in a few lines: chunks through one slot and one buffer,
// with the waits that make it right.  Leaving one out is a race, and a device that is late
// shows it; so the tests of pipelines and of devices know that they would see one.
//
//   fill the slot -> copy it to the buffer -> kernel -> copy the results out -> look
//
// Streams and copies alone, so that it runs on any device.
#ifndef INFERSTAT_TESTS_TOY_PIPELINE_H
#define INFERSTAT_TESTS_TOY_PIPELINE_H

#include <stdbool.h>

#include "server/device/device.h"

enum toy_omission {
    TOY_SLOT_FREE,        // the host waits for the last copy before it fills the slot
    TOY_SLOT_FREE_QUEUED, // likewise, but queued on the copy stream, where it holds nobody
    TOY_BUFFER_FREE,      // the copy waits for the last kernel
    TOY_CHUNK_COPIED,     // the kernel waits for its copy
    TOY_KERNELS_DONE,     // the copy of the results waits for the kernels
    TOY_RESULTS_COPIED,   // the host waits for the results
    TOY_NOTHING
};

const char *toy_omission_name(enum toy_omission omission);

// Streams chunks through it, of which `omission` is left out; returns whether all results
// are right.  Of the device everything is freed again.
bool toy_pipeline_run(struct device *device, enum toy_omission omission);

#endif
