// NVIDIA devices of the host, by the management library (NVML): finds GPUs and MIG instances, reads
// them, and collects the errors that the driver reports (XIDs).  Opens the library again after the
// driver was reloaded or updated.
#pragma once

#include <stdbool.h>

#include "common/core/base/status.h"
#include "common/devices/gpu_reading.h"
#include "common/devices/nvml_device.h"

// All NVIDIA devices.  Initialise it with zeros.  One thread uses it.
struct nvml_set {
    struct nvml_library library;
    nvml_event_set events;       // NULL: no XIDs
    unsigned int count, gpus;    // of `devices`, and of those that are no MIG instances
    struct nvml_device *devices; // `count`
    uint64_t retry_ns;           // monotonic: when to open the library again
};

// Finds new devices if their number or the instances of a GPU in MIG mode have changed, and reads
// all of them (`slow`: with what takes long) into `snapshot->gpus`, which has room for GPU_MAX;
// sets the other members of the snapshot but the times.  /proc is read below `root`.  Fails with
// STATUS_NOMEM.
MUST_CHECK enum status nvml_set_read(struct nvml_set *set, struct gpu_snapshot *snapshot, bool slow,
                                     const char *root);
void nvml_set_close(struct nvml_set *set);
